"""What all readers share: numbers and texts from untrusted files, rows, and regimes of load."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuplan.domain.calibration.runs import RunsRead
from gpuplan.errors import InputError, one

Row = dict[str, str]

CONDITIONS = (
    "id",
    "source",
    "accelerator",
    "n_accelerators",
    "model",
    "precision",
    "engine",
    "engine_version",
    "tp",
    "pp",
    "layout_note",
    "regime",
    "batch",
    "request_rate_per_s",
    "input_tokens",
    "output_tokens",
)
MEASURED = (
    "output_tokens_per_s",
    "ttft_mean_ms",
    "ttft_p99_ms",
    "tpot_mean_ms",
    "tpot_p50_ms",
    "tpot_p99_ms",
    "e2e_s",
    "power_w",
    "energy_j_per_output_token",
)
COLUMNS = (*CONDITIONS, *(f"measured_{name}" for name in MEASURED), "grade", "flag")
NUMBERS = frozenset(
    {"n_accelerators", "tp", "pp", "batch", "request_rate_per_s", "input_tokens", "output_tokens"}
    | {f"measured_{name}" for name in MEASURED}
)
LONGEST_TEXT = 200
LARGEST_NUMBER = 1e15
MOST_FAILED_FRAC = 0.1  # above, the load was not what the file says
LONGEST_TAIL = 3.0  # end-to-end latencies that a server which keeps up may take after the last
FEW_WAVES = 3.0  # below, ramp-up and tail weigh in every figure
TPOT_MISMATCH = 0.3
OUR_TPOT = "mean over requests of (end to end - first token) / (tokens - 1)"


@dataclass(slots=True)
class Reading:
    """Rows and remarks while a file is read."""

    where: str
    tool: str
    rows: list[Row] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def remark(self, what: str) -> None:
        """Add a remark about the file, once."""
        line = f"{short(self.where)}: {what}"
        if line not in self.remarks:
            self.remarks.append(line)

    def result(self) -> RunsRead:
        """The rows and remarks of the whole file."""
        return RunsRead(tool=self.tool, rows=tuple(self.rows), remarks=tuple(self.remarks))

    def add(self, cells: Mapping[str, object], *, flag: str = "") -> None:
        """Add a row; numbers that are absent or not positive stay blank."""
        row = dict.fromkeys(COLUMNS, "")
        row["id"] = f"{short(self.where)}#{len(self.rows) + 1}"
        row["source"] = f"user: {self.tool}"
        row["flag"] = flag
        row |= {name: cell(name, value) for name, value in cells.items()}
        if any(row[f"measured_{name}"] for name in MEASURED):
            self.rows.append(row)
        else:
            self.remark("a run without any usable figure is not used")


def short(where: str) -> str:
    """The file's name without its folders."""
    return where.replace("\\", "/").rpartition("/")[2] or where


def number(value: object) -> float | None:
    """A positive finite number, also with thousands separators; None for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value.strip().replace(",", "") if isinstance(value, str) else value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and 0.0 < found < LARGEST_NUMBER else None


def words(value: object) -> str:
    """A short printable text; nothing for what is not text."""
    if not isinstance(value, str):
        return ""
    printable = "".join(letter for letter in value if letter.isprintable())
    return printable.strip()[:LONGEST_TEXT]


def cell(name: str, value: object) -> str:
    """The value as text in this column, blank where a number is none."""
    if name not in NUMBERS:
        return words(value)
    found = number(value)
    return "" if found is None else f"{found:.10g}"


def mapping(value: object) -> dict[str, object]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def scaled(value: object, unit: float) -> float | None:
    """The value in another unit, None where it is no number."""
    found = number(value)
    return None if found is None else found * unit


def per(total: object, count: object) -> float | None:
    """The mean from a sum and a count, None where one is missing."""
    above, below = number(total), number(count)
    return None if above is None or below is None else above / below


def unreadable(where: str, at: str, what: str, fix: str) -> InputError:
    """The error of every reader: the file by its name, what was found, what would be right."""
    error = one(InputError, short(where), at, what, fix)
    assert isinstance(error, InputError)
    return error


def is_failure(reading: Reading, n_failed: float, n_done: float) -> bool:
    """Whether too many requests failed for the run to be used; failures are always remarked."""
    if n_failed <= 0:
        return False
    n_all = n_failed + n_done
    share = n_failed / n_all
    is_bad = share > MOST_FAILED_FRAC
    outcome = "the run is rejected" if is_bad else "figures are of those that succeeded"
    reading.remark(f"{n_failed:.0f} of {n_all:.0f} requests failed; {outcome}")
    return is_bad


def offered(
    reading: Reading,
    cells: Mapping[str, object],
    *,
    concurrency: float | None,
    rate_per_s: float | None,
    n_requests: float | None,
    duration_s: float | None = None,
) -> dict[str, object]:
    """The row with its regime, less the figures that have another meaning in it."""
    if rate_per_s is not None:
        if concurrency is not None:
            reading.remark(
                f"requests came at {rate_per_s:g}/s with at most {concurrency:g} at once; "
                "read as an open loop"
            )
        row = {**cells, "regime": "poisson", "request_rate_per_s": rate_per_s}
        if n_requests is not None and duration_s is not None:
            row = _open(reading, row, idle_s=duration_s - n_requests / rate_per_s)
        return row
    if concurrency is None:
        reading.remark(
            "all requests were sent at once: read as max_load; TTFT, TPOT and end-to-end latencies "
            "are of the backlog and not used"
        )
        return {**_without(cells, "ttft", "tpot", "e2e"), "regime": "max_load"}
    return _closed(reading, cells, concurrency, n_requests)


def _open(reading: Reading, row: dict[str, object], *, idle_s: float) -> dict[str, object]:
    """The row; of a server that keeps up the throughput is only that of the request rate."""
    ttft, tpot = number(row.get("measured_ttft_mean_ms")), number(row.get("measured_tpot_mean_ms"))
    whole_s = 1e-3 * ((ttft or 0.0) + (tpot or 0.0) * (number(row.get("output_tokens")) or 0.0))
    if not whole_s or idle_s > LONGEST_TAIL * whole_s:
        return row
    reading.remark(
        "the server kept up with the request rate: its throughput is that of the rate and, with "
        "the time of the last requests, not used"
    )
    return _without(row, "output_tokens_per_s")


def _closed(
    reading: Reading, cells: Mapping[str, object], concurrency: float, n_requests: float | None
) -> dict[str, object]:
    if n_requests is not None and 1 < n_requests <= concurrency:
        reading.remark(
            f"{n_requests:.0f} requests at a concurrency of {concurrency:g} are one wave: read as "
            "static_batch; TTFT and TPOT are not used"
        )
        left = _without(cells, "ttft", "tpot")
        return {**left, "regime": "static_batch", "batch": n_requests}
    if n_requests is not None and n_requests < FEW_WAVES * concurrency:
        reading.remark(f"{n_requests:.0f} requests are few for a concurrency of {concurrency:g}")
    return {**cells, "regime": "fixed_concurrency", "batch": concurrency}


def _without(cells: Mapping[str, object], *kinds: str) -> dict[str, object]:
    starts = tuple(f"measured_{kind}" for kind in kinds)
    return {name: value for name, value in cells.items() if not name.startswith(starts)}


def check_tpot(reading: Reading, cells: Mapping[str, object]) -> None:
    """Remark where TPOT does not follow from the other figures of its run."""
    tpot, e2e = number(cells.get("measured_tpot_mean_ms")), number(cells.get("measured_e2e_s"))
    ttft, n = number(cells.get("measured_ttft_mean_ms")), number(cells.get("output_tokens"))
    if tpot is None or e2e is None or ttft is None or n is None or n <= 1:
        return
    implied = (1e3 * e2e - ttft) / (n - 1)
    if implied <= 0 or abs(math.log(tpot / implied)) > TPOT_MISMATCH:
        reading.remark(
            f"TPOT is {tpot:.3g} ms per token, where end-to-end latency less TTFT gives "
            f"{implied:.3g}: lengths vary much, or the tool counts otherwise"
        )
