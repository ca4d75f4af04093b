"""`gpuplan simulate`: replay requests against a fleet and see what users would feel."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuplan.cli.options import user_store
from gpuplan.cli.output import Form, busy, chosen, emit

if TYPE_CHECKING:
    from gpuplan.domain.outcome import Outcome, Slo

Model = Annotated[str, typer.Option("--model", help="Model name, config.json, or its folder.")]
On = Annotated[str, typer.Option(help="Accelerator of one replica, e.g. H100, 2xH100.")]
Trace = Annotated[Path, typer.Option(help="Requests: CSV, JSONL or Parquet, known formats as is.")]
Tp = Annotated[int | None, typer.Option(min=1, help="Tensor parallel of one replica.")]
Replicas = Annotated[int, typer.Option(min=1, help="Replicas behind the router.")]
Router = Annotated[str, typer.Option(help="least_outstanding, round_robin or power_of_two.")]
Precision = Annotated[str | None, typer.Option(help="Of the weights; as published by default.")]
KvPrecision = Annotated[str | None, typer.Option(help="Of the key-value cache.")]
Engine = Annotated[str, typer.Option(help="vllm, sglang, trtllm …")]
EngineVersion = Annotated[str | None, typer.Option(help="Its version; a recent one by default.")]
MaxSeqs = Annotated[int | None, typer.Option("--max-num-seqs", min=1, help="Of one iteration.")]
MaxTokens = Annotated[
    int | None, typer.Option("--max-num-batched-tokens", min=1, help="Of one iteration.")
]
KvBlocks = Annotated[int | None, typer.Option(min=1, help="Of the cache; computed by default.")]
LongPrefill = Annotated[
    int | None, typer.Option(min=1, help="The most that one prompt takes of an iteration.")
]
SloTtft = Annotated[float | None, typer.Option("--slo-ttft-ms", min=0, help="To the first token.")]
SloTpot = Annotated[float | None, typer.Option("--slo-tpot-ms", min=0, help="Per later token.")]
SloE2e = Annotated[float | None, typer.Option("--slo-e2e-s", min=0, help="For the whole answer.")]
Warmup = Annotated[float, typer.Option("--warmup-s", min=0, help="Arrivals not measured.")]
Bin = Annotated[float, typer.Option("--bin-s", min=0.001, help="Width of the use over time.")]
Seed = Annotated[int, typer.Option(min=0, help="Of a router that draws.")]
Overlay = Annotated[list[Path] | None, typer.Option(help="Your facts over the catalog's (YAML).")]
Out = Annotated[Path | None, typer.Option("--out", help="Every request: .parquet or .csv.")]
Output = Annotated[Form, typer.Option("-o", "--output", help="Output form.")]
Json = Annotated[bool, typer.Option("--json", help="Short for -o json.")]


def simulate(
    model: Model,
    on: On,
    trace: Trace,
    tp: Tp = None,
    replicas: Replicas = 1,
    router: Router = "least_outstanding",
    precision: Precision = None,
    kv_precision: KvPrecision = None,
    engine: Engine = "vllm",
    engine_version: EngineVersion = None,
    max_num_seqs: MaxSeqs = None,
    max_num_batched_tokens: MaxTokens = None,
    kv_blocks: KvBlocks = None,
    long_prefill_tokens: LongPrefill = None,
    slo_ttft_ms: SloTtft = None,
    slo_tpot_ms: SloTpot = None,
    slo_e2e_s: SloE2e = None,
    warmup_s: Warmup = 0.0,
    bin_s: Bin = 60.0,
    seed: Seed = 0,
    overlay: Overlay = None,
    out: Out = None,
    output: Output = Form.TABLE,
    as_json: Json = False,
) -> None:
    """Replay requests against a fleet: latencies, throughput, use over time, kept promises."""
    from gpuplan import api
    from gpuplan.domain.simulation import EngineRequest, SimulateRequest

    scheduler = EngineRequest(
        max_sequences=max_num_seqs, max_batch_tokens=max_num_batched_tokens, n_blocks=kv_blocks,
        long_prefill_tokens=long_prefill_tokens,
    )  # fmt: skip
    asked = SimulateRequest(
        tp=tp, n_replicas=replicas, router=router, precision=precision,
        cache_precision=kv_precision, engine=engine, engine_version=engine_version,
        scheduler=scheduler, slo=_slo(slo_ttft_ms, slo_tpot_ms, slo_e2e_s), warmup_s=warmup_s,
        bin_s=bin_s, seed=seed,
    )  # fmt: skip
    read = api.read_trace(trace)
    for line in read.told:
        typer.echo(f"{trace.name}: {line}", err=True)
    with busy("replaying; the first run compiles its kernels"):
        found = api.simulate(
            model, on, read.requests, asked, overlays=overlay or [], store=user_store()
        )
    if out is not None:
        _write(out, found.outcome)
    emit(api.simulate_sheet(found), chosen(output, as_json=as_json))


def _slo(ttft_ms: float | None, tpot_ms: float | None, e2e_s: float | None) -> "Slo":
    from gpuplan.domain.outcome import Slo
    from gpuplan.units import MS

    return Slo(
        ttft_s=None if ttft_ms is None else ttft_ms * MS,
        tpot_s=None if tpot_ms is None else tpot_ms * MS,
        e2e_s=e2e_s,
    )


def _write(path: Path, outcome: "Outcome") -> None:
    from gpuplan import api
    from gpuplan.errors import InputError, one

    if path.suffix not in (".csv", ".parquet"):
        raise one(InputError, "simulate", "--out", f"got {path.name!r}", "end in .parquet or .csv")
    try:
        if path.suffix == ".csv":
            path.write_text("".join(api.requests_csv(outcome)), encoding="utf-8")
        else:
            import polars

            polars.DataFrame(api.request_columns(outcome)).write_parquet(path)
    except OSError as error:
        fix = "name a file in a folder that can be written"
        raise one(InputError, "simulate", "--out", f"{path}: {error.strerror}", fix) from error
    typer.echo(f"wrote {len(outcome.requests)} requests to {path}", err=True)
