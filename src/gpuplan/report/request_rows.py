"""Simulated requests as rows: one line each, in order of arrival."""

from collections.abc import Iterator

from gpuplan.domain.outcome import Outcome

COLUMNS = ("request_id", "arrival_s", "ttft_s", "tpot_s", "e2e_s", "n_preemptions")


def request_columns(outcome: Outcome) -> dict[str, list[float | int | None]]:
    """Columns by name; what a request never had is empty."""
    times, rows = outcome.times, range(len(outcome.requests))
    done = times.is_finished.astype(bool).tolist()
    many = (outcome.requests.output_tokens > 1).tolist()

    def given(column: list[float], is_there: list[bool]) -> list[float | int | None]:
        return [value if there else None for value, there in zip(column, is_there, strict=True)]

    has_tpot = [a and b for a, b in zip(done, many, strict=True)]
    return {
        "request_id": list(rows),
        "arrival_s": outcome.requests.arrive_s.tolist(),
        "ttft_s": given(times.ttft_s.tolist(), done),
        "tpot_s": given(times.tpot_s.tolist(), has_tpot),
        "e2e_s": given(times.e2e_s.tolist(), done),
        "n_preemptions": times.n_preemptions.tolist(),
    }


def requests_csv(outcome: Outcome) -> Iterator[str]:
    """Lines of a CSV file."""
    columns = request_columns(outcome)
    yield ",".join(COLUMNS) + "\n"
    for row in zip(*(columns[name] for name in COLUMNS), strict=True):
        yield ",".join("" if cell is None else str(cell) for cell in row) + "\n"
