"""Telemetry as nobody should write it, and as it comes: cut short, corrupt, absurd, hostile."""

import gzip
import io
import json
import random
from collections.abc import Callable

import polars as pl

HEADER = "timestamp,hostname,gpu,gpu_util,power_w\n"
ESCAPE = "\x1b]0;owned\x07\x1b[31m"
START_S = 1_760_000_000


def rows(*extra: str, n: int = 200) -> bytes:
    """A sound table of two devices, and lines that are not."""
    lines = [f"{START_S + 60 * i},node-{i % 2},0,{40 + i % 30},{300 + i % 50}\n" for i in range(n)]
    return (HEADER + "".join(lines) + "".join(line + "\n" for line in extra)).encode()


def samples(*points: object, name: str = "DCGM_FI_DEV_GPU_UTIL", **labels: str) -> bytes:
    """An answer of a range query."""
    metric = {"__name__": name, "gpu": "0", "Hostname": "node-0", **labels}
    result = [{"metric": metric, "values": list(points)}]
    document = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    return json.dumps(document).encode()


def deep(n: int = 100_000) -> bytes:
    return b'{"data":' + b"[" * n + b"]" * n + b"}"


def parquet() -> bytes:
    stream = io.BytesIO()
    frame = pl.DataFrame(
        {"timestamp": [START_S, START_S + 60], "gpu_util": [50.0, 60.0], "hostname": ["a", "b"]}
    )
    frame.write_parquet(stream)
    return stream.getvalue()


def garbled(data: bytes, seed: int = 0, n_bytes: int = 40) -> bytes:
    draw = random.Random(seed)
    hurt = bytearray(data)
    for _ in range(n_bytes):
        hurt[draw.randrange(len(hurt))] = draw.randrange(256)
    return bytes(hurt)


ESCAPED = f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",Hostname="{ESCAPE}"}} 50\n'
DIGITS = "9" * 5000
FILES: dict[str, Callable[[], bytes]] = {
    "empty.csv": lambda: b"",
    "one row of 1970.csv": lambda: rows("0,node-0,0,50,300"),
    "a row of the year 9999.csv": lambda: rows("253402300799,node-0,0,50,300"),
    "a negative time.csv": lambda: rows("-1e15,node-0,0,50,300"),
    "a time that is no number.csv": lambda: rows("nan,node-0,0,50,300", "inf,node-0,0,5,3"),
    "a time of 1e300.csv": lambda: rows("1e300,node-0,0,50,300"),
    "only times of 1e300.csv": (HEADER + "1e300,a,0,50,300\n").encode,
    "an integer of 5000 digits.csv": lambda: rows(f"{DIGITS},node-0,0,50,300"),
    "a value of 5000 digits.csv": lambda: rows(f"{START_S},node-0,0,{DIGITS},300"),
    "a cell of 300 kB.csv": lambda: rows(f"{START_S},{'x' * 300_000},0,50,300"),
    "a stray carriage return.csv": lambda: rows(f"{START_S},node\r-0,0,50,300"),
    "zero bytes.csv": lambda: rows("\0\0,\0,0,50,300"),
    "an open quote.csv": lambda: rows('"' + "x" * 200_000),
    "packed and cut short.csv.gz": lambda: gzip.compress(rows())[:-20],
    "packed and garbled.csv.gz": lambda: garbled(gzip.compress(rows())),
    "a head of a packed file.gz": lambda: b"\x1f\x8b",
    "an archive cut short.tar": lambda: b"x" * 257 + b"ustar\x0000" + b"\0" * 100,
    "cut short.parquet": lambda: parquet()[:-30],
    "garbled.parquet": lambda: garbled(parquet()),
    "empty.parquet": lambda: b"",
    "not so.parquet": rows,
    "deep.json": deep,
    "a list 100,000 deep.json": lambda: b"[" * 100_000,
    "a number of 5000 digits.json": lambda: (
        b'{"data":{"resultType":"matrix","result":[' + DIGITS.encode() + b"]}}"
    ),
    "a time of 5000 digits.json": lambda: samples([1, "5"]).replace(b"[1,", f"[{DIGITS},".encode()),
    "no data.json": lambda: b'{"status":"success","data":null}',
    "results are no list.json": lambda: b'{"results": 5}',
    "results of null.json": lambda: b'{"results": [null]}',
    "series are no list.json": lambda: b'{"data":{"resultType":"matrix","result":5}}',
    "series of null.json": lambda: (
        b'{"data":{"resultType":"matrix","result":[null, {"metric":null,"values":[[1,"5"]]}]}}'
    ),
    "points that are none.json": lambda: samples(5, None, [], [1], [1, 2, 3], ["x", "y"]),
    "values that are no numbers.json": lambda: samples([START_S, "much"], [START_S + 60, None]),
    "times that are no numbers.json": lambda: samples(["NaN", "5"], ["inf", "5"], [None, "5"]),
    "times of 1e300.json": lambda: samples([1e300, "5"], [-1e300, "5"], [START_S, "6"]),
    "one point of 1970.json": lambda: samples([0, "5"], [START_S, "6"], [START_S + 60, "6"]),
    "labels that are no text.json": lambda: samples([START_S, "6"], Hostname=["a"]),  # type: ignore[arg-type]
    "labels with escapes.json": lambda: samples(
        [START_S, "6"], [START_S + 9, "7"], Hostname=ESCAPE + "\nnode"
    ),
    "warnings are no list.json": lambda: (
        b'{"warnings": 5, "data":{"resultType":"matrix","result":[]}}'
    ),
    "records are no objects.json": lambda: b'[{"timestamp": 1, "gpu_util": 5}, 7, null]',
    "records of lists.json": lambda: b'[{"timestamp": [1], "gpu_util": {"a": 1}, "hostname": []}]',
    "pods are no list.json": lambda: b'{"kind":"List","items":5}',
    "pods of null.json": lambda: (
        b'{"kind":"List","items":[null, {"kind":"Pod","metadata":null,"spec":null}]}'
    ),
    "exposition with escapes.prom": ESCAPED.encode,
    "exposition of 1e300.prom": lambda: (
        b'# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL{gpu="0"} 1e300 1e300\n'
    ),
    "exposition cut short.prom": lambda: (
        b'# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL{gpu="0'
    ),
    "a bucket without a bound.prom": lambda: (
        b"# TYPE vllm:time_to_first_token_seconds histogram\n"
        b'vllm:time_to_first_token_seconds_bucket{le="much"} 5\n'
    ),
    "pasted and absurd.txt": lambda: b"Time (min)  GPU %\n0 50\n999999 60\n",
    "pasted digits.txt": f"Time (min)  GPU %\n0 50\n{DIGITS} 60\n".encode,
    "a log with escapes.log": lambda: (
        (ESCAPE + "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=x\n").encode() * 3
    ),
    "slurm of nothing.txt": lambda: (
        b"JobID|State|AllocTRES|Elapsed\n|||\nx|y|gres/gpu=" + DIGITS.encode() + b"|z\n"
    ),
    "binary.bin": lambda: bytes(range(256)) * 500,
    "utf-16.csv": lambda: rows().decode().encode("utf-16"),
}
