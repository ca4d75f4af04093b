"""Requests drawn from recorded clients: each with its own rate, burstiness and lengths."""

from pathlib import Path

from gpuplan.demand.mixes import mix_requests
from gpuplan.domain.provenance import assume
from gpuplan.domain.traffic.drawn import LoadSource
from gpuplan.domain.traffic.trace import TraceQuery
from gpuplan.errors import InputError, one
from gpuplan.inputs.traces.servegen import (
    MixRead,
    client_tables,
    models_of,
    read_servegen,
    read_servegen_folder,
)
from gpuplan.units import HOUR

DEFAULT_S = HOUR
START = "start_s"


def clients_load(
    folder: Path,
    *,
    query: TraceQuery | None = None,
    duration_s: float | None = None,
    scale: float = 1.0,
    seed: int = 0,
) -> LoadSource:
    """Requests drawn from recorded clients: a folder as ServeGen publishes them."""
    where = dict(query.where) if query is not None else {}
    read = _read(folder, where)
    start_s, lasts_s = _start_s(where), DEFAULT_S if duration_s is None else duration_s
    requests, _ = mix_requests(
        read.mix, start_s=start_s, duration_s=lasts_s, factor=scale, seed=seed
    )
    notes = (*read.remarks, "requests are drawn: clients were recorded, not what they asked")
    assumed = []
    if duration_s is None:
        assumed.append(
            assume("duration", f"{DEFAULT_S / HOUR:g} h", "none was given", "--duration")
        )
    if START not in where:
        assumed.append(
            assume(
                "begin", "the recording's first hour", "none was given", "--where start_s=SECONDS"
            )
        )
    return LoadSource(requests=requests, source="trace", assumptions=tuple(assumed), remarks=notes)


def _read(folder: Path, where: dict[str, str]) -> MixRead:
    tables = client_tables(folder)
    if tables is None:
        return read_servegen_folder(folder)
    rates, lengths = tables
    if "model" not in where:
        known = ", ".join(models_of(rates))
        raise one(
            InputError,
            "trace",
            str(folder),
            "holds several models",
            f"choose with --where model=NAME: {known}",
        )
    return read_servegen(rates, lengths, model=where["model"])


def _start_s(where: dict[str, str]) -> float:
    text = where.get(START, "0")
    try:
        return float(text)
    except ValueError:
        fix = "give seconds from the beginning of the recording"
        raise one(InputError, "trace", START, f"got {text!r}", fix) from None
