"""ServeGen's clients: windows of rate and burstiness, and histograms of lengths, as tables.

Rates come by 10 minutes, lengths by 6 hours. Clients without lengths stay without; the caller is
told how many.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gpuplan.domain.columns import floats, ints
from gpuplan.domain.traffic.mix import Client, ClientMix, LengthWindow
from gpuplan.inputs.traces.parquet_trace import missing_polars
from gpuplan.inputs.traces.source import fault

if TYPE_CHECKING:
    import polars as pl

WINDOW_S = 600.0
RATES = ("category", "model", "client", "t_s", "rate_rps", "iat_cv", "family")
LENGTHS = ("category", "model", "client", "t_s", "field", "value", "prob")


class MixRead(NamedTuple):
    """Clients of one service, and what was odd."""

    mix: ClientMix
    told: tuple[str, ...]


def read_servegen(rates: Path, lengths: Path, *, model: str) -> MixRead:
    """The clients of one model; InputError where the tables are not ServeGen's, or lack it."""
    windows = _rows(rates, RATES, model)
    shapes = _rows(lengths, LENGTHS, model)
    known: dict[int, dict[float, dict[str, Any]]] = {}
    for row in shapes.iter_rows(named=True):
        fields = known.setdefault(row["client"], {}).setdefault(row["t_s"], {})
        fields[str(row["field"])] = (row["value"], row["prob"])
    clients = tuple(_clients(windows, known))
    if not clients:
        raise fault(rates, f"has no client of model {model!r}", "name one that it has")
    n_bare = sum(not client.lengths for client in clients)
    told: tuple[str, ...] = (f"{len(clients)} clients in windows of {WINDOW_S:g} s",)
    if n_bare:
        told += (f"{n_bare} of them have no lengths: drawn with those of the nearest in rate",)
    return MixRead(ClientMix(window_s=WINDOW_S, clients=clients), told)


def _rows(path: Path, needed: tuple[str, ...], model: str) -> "pl.DataFrame":
    try:
        import polars as pl  # noqa: PLC0415 - paid only by those who read tables
    except ImportError:
        raise missing_polars() from None
    try:
        frame = pl.scan_parquet(path)
        missing = [name for name in needed if name not in frame.collect_schema()]
        if missing:
            raise fault(path, f"has no column {', '.join(missing)}", "give ServeGen's tables")
        chosen = frame.filter(pl.col("model").cast(pl.String) == model).select(needed)
        return chosen.sort("client", "t_s").collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        what = f"is no sound Parquet: {str(error)[:100]}"
        raise fault(path, what, "fetch it again") from None


def _clients(
    windows: "pl.DataFrame", known: dict[int, dict[float, dict[str, Any]]]
) -> Iterator[Client]:
    for (number,), rows in windows.group_by("client", maintain_order=True):
        yield Client(
            name=str(number),
            start_s=floats(rows["t_s"].to_numpy()),
            requests_per_s=floats(rows["rate_rps"].to_numpy()),
            gap_cv_ratio=floats(rows["iat_cv"].to_numpy()),
            is_weibull=ints((rows["family"] == "Weibull").to_numpy()),
            lengths=tuple(_lengths(known.get(int(str(number)), {}))),
        )


def _lengths(windows: dict[float, dict[str, Any]]) -> Iterator[LengthWindow]:
    for start, fields in sorted(windows.items()):
        asked = fields.get("input_tokens") or fields.get("text_tokens")
        answered = fields.get("output_tokens")
        if asked and answered and sum(asked[1]) > 0 and sum(answered[1]) > 0:
            yield LengthWindow(
                start_s=float(start),
                input_tokens=floats(asked[0]),
                input_weight=floats(asked[1]),
                output_tokens=floats(answered[0]),
                output_weight=floats(answered[1]),
            )
