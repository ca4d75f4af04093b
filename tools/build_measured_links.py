"""Builds the package's table of measured collectives from the published tables.

    python tools/build_measured_links.py SHARED_DATA OPERATOR_TABLES

SHARED_DATA holds measured/collectives_measured.csv and measured/nccl_allreduce_vtrain.csv;
OPERATOR_TABLES is a folder of aiconfigurator's communication tables (Apache-2.0), one Parquet
file each, named SYSTEM__comm__LIBRARY__VERSION__TABLE.parquet.
"""

import sys
from pathlib import Path

import polars as pl

OUT = Path(__file__).parents[1] / "src/gpuplan/calibration/data/measured/links.csv"
SYSTEMS = {  # link class, one direction of one rank in GB/s
    "a100_sxm": ("nvlink3", 300.0),
    "h100_sxm": ("nvlink4", 450.0),
    "h200_sxm": ("nvlink4", 450.0),
    "b200_sxm": ("nvlink5", 900.0),
    "b300_sxm": ("nvlink5", 900.0),
    "gb200": ("nvlink5", 900.0),
    "gb300": ("nvlink5", 900.0),
    "rtx_pro_6000_server": ("pcie", 63.0),
    "l40s": ("pcie", 31.5),
}
# The newest complete collection of each library; older ones repeat it within a few per cent.
LIBRARIES = {
    "nccl": ("2.27.3", "2.29.2", "2.27.3", "2.27", "2.23"),
    "vllm": ("0.24.0", "0.19.0", "0.22.0", "0.14.0"),
    "sglang": ("0.5.14",),
    "trtllm": ("1.3.0rc20", "1.0.0"),
}
DIRECT_BYTES_MAX = 16e6
COLUMNS = ("source", "library", "system", "link", "line_gb_per_s", "op", "n_nodes", "n_per_node")


def operator_rows(folder: Path) -> pl.DataFrame:
    frames = []
    for system, (link, rate) in SYSTEMS.items():
        for library, versions in LIBRARIES.items():
            found = [p for v in versions for p in folder.glob(f"{system}__comm__{library}__{v}__*")]
            tables = [
                p for p in found if p.name.endswith(("nccl_perf.parquet", "reduce_perf.parquet"))
            ]
            if tables:
                frames.append(one_table(tables[0], system, link, rate, library))
    return pl.concat(frames)


def one_table(path: Path, system: str, link: str, rate: float, library: str) -> pl.DataFrame:
    table = pl.read_parquet(path)
    if library == "nccl":
        table = table.filter(pl.col("nccl_dtype") == "half")
    elif "backend" in table.columns:
        table = table.filter(pl.col("backend").str.ends_with("graph"))
    version = path.name.split("__")[3]
    op = "op_name" if library == "nccl" else pl.lit("direct_all_reduce").alias("op_name")
    rows = table.select(
        pl.lit("aiconfigurator").alias("source"),
        pl.lit(f"{library}-{version}").alias("library"),
        pl.lit(system).alias("system"),
        pl.lit(link).alias("link"),
        pl.lit(rate).alias("line_gb_per_s"),
        pl.col(op).alias("op") if isinstance(op, str) else op.alias("op"),
        pl.lit(1).alias("n_nodes"),
        pl.col("num_gpus").cast(pl.Int64).alias("n_per_node"),
        (2.0 * pl.col("message_size")).alias("message_bytes"),  # counted in 16-bit elements
        (1e3 * pl.col("latency")).alias("time_us"),
        pl.lit(0.0).alias("fabric_gb_per_s"),
    )
    if library != "nccl":
        rows = rows.filter(pl.col("message_bytes") <= DIRECT_BYTES_MAX)
    if system == "l40s" or (link == "pcie" and library != "nccl"):
        rows = rows.filter(pl.col("n_per_node") == 2)  # larger groups of L40S are known wrong
    keys = [name for name in rows.columns if name != "time_us"]
    return rows.group_by(keys, maintain_order=True).agg(pl.col("time_us").min())


PUBLISHED = {  # as the table writes it: system, link, GB/s a rank, fabric GB/s a node
    ("A100", 1): ("a100_sxm", "nvlink3", 300.0, 0.0),
    ("H200", 1): ("h200_sxm", "nvlink4", 450.0, 0.0),
    ("B200", 1): ("b200_sxm", "nvlink5", 900.0, 0.0),
    ("A100-80GB (p4de.24xlarge)", 2): ("a100_sxm", "nvlink3", 300.0, 50.0),
    ("H100-80GB (p5.48xlarge)", 2): ("h100_sxm", "nvlink4", 450.0, 400.0),
    ("B200", 4): ("b200_sxm", "nvlink5", 900.0, 400.0),
}


def published_rows(path: Path) -> pl.DataFrame:
    rows = []
    for row in pl.read_csv(path, infer_schema_length=None).iter_rows(named=True):
        key = (row["gpu"], row["nodes"])
        # The aws-batch listing says two nodes and shows the curve of one.
        if key not in PUBLISHED or "aws-batch" in row["source_path"]:
            continue
        seconds = published_time_us(row)
        # The first calls of one run are warm-up: milliseconds for kilobytes.
        if seconds is None or (key == ("B200", 4) and row["payload_bytes"] < 2**19):
            continue
        system, link, rate, fabric = PUBLISHED[key]
        ring = "Ring" in (row["algo"] or "")
        rows.append(
            {
                "source": f"{row['source_repo']}:{row['source_path']}:{row['source_line']}",
                "library": "nccl-ring" if ring else "nccl-any",
                "system": system,
                "link": link,
                "line_gb_per_s": rate,
                "op": row["collective"],
                "n_nodes": row["nodes"],
                "n_per_node": row["ranks"] // row["nodes"],
                "message_bytes": float(row["payload_bytes"]),
                "fabric_gb_per_s": fabric,
                "time_us": seconds,
            }
        )
    return pl.DataFrame(rows)


def published_time_us(row: dict) -> float | None:
    if row["time_us"]:
        return float(row["time_us"])
    if row["algbw_gb_s"]:
        return row["payload_bytes"] / row["algbw_gb_s"] / 1e3
    passes = 2 if row["collective"] == "all_reduce" else 1
    n = row["ranks"]
    return passes * (n - 1) / n * row["payload_bytes"] / row["busbw_gb_s"] / 1e3


def vtrain_rows(path: Path) -> pl.DataFrame:
    table = pl.read_csv(path, infer_schema_length=None)
    sizes = [2**k for k in range(20, 31)]
    table = table.filter(pl.col("size_bytes").is_in(sizes))
    names = {"A100": ("a100_sxm", "nvlink3", 300.0), "V100": ("v100_sxm", "nvlink2", 150.0)}
    return table.select(
        pl.col("source").str.replace("github:", ""),
        pl.lit("nccl-vtrain").alias("library"),
        pl.col("gpu").replace({k: v[0] for k, v in names.items()}).alias("system"),
        pl.col("gpu").replace({k: v[1] for k, v in names.items()}).alias("link"),
        pl.when(pl.col("gpu") == "A100").then(300.0).otherwise(150.0).alias("line_gb_per_s"),
        pl.lit("all_reduce").alias("op"),
        pl.lit(1).alias("n_nodes"),
        pl.col("n_gpus_single_node").alias("n_per_node"),
        pl.col("size_bytes").cast(pl.Float64).alias("message_bytes"),
        pl.lit(0.0).alias("fabric_gb_per_s"),
        pl.col("out_of_place_us").alias("time_us"),
    )


def main() -> None:
    shared, operators = Path(sys.argv[1]) / "measured", Path(sys.argv[2])
    parts = [
        operator_rows(operators),
        published_rows(shared / "collectives_measured.csv"),
        vtrain_rows(shared / "nccl_allreduce_vtrain.csv"),
    ]
    order = [*COLUMNS, "message_bytes", "fabric_gb_per_s", "time_us"]
    table = pl.concat([part.select(order) for part in parts], how="vertical_relaxed").with_columns(
        pl.col("time_us").round(3), pl.col("message_bytes").cast(pl.Int64)
    )
    OUT.parent.mkdir(parents=True, exist_ok=True)
    table.write_csv(OUT)
    print(f"{OUT.name}: {len(table)} rows")


if __name__ == "__main__":
    main()
