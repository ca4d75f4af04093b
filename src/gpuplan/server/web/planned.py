"""A page's state answered: the plan within the user's limits, and the table it was chosen from."""

import json
from typing import Any, NamedTuple

from gpuplan.errors import InputError, one
from gpuplan.report.formats import usd
from gpuplan.server.rest.door import Door
from gpuplan.server.rest.jobs import Job
from gpuplan.server.web.shown import Comparison, Limits, Row, comparison
from gpuplan.server.web.state import PageState

BUDGET = "budget.usd_per_month"
WAIT_S = 25.0
SHEET, QUICK = "plan+sheet", "plan+quick"


class Planned(NamedTuple):
    """What a page shows of a plan."""

    job: Job
    sheet: dict[str, Any] | None  # None: not answered yet, or failed
    table: Comparison | None
    note: str  # what the user's limits did to the choice
    is_within: bool  # whether the plan keeps to the limits of the page

    @property
    def document(self) -> dict[str, Any]:
        """The plan as the verb gives it."""
        return self.sheet["document"] if self.sheet else {}

    @property
    def error(self) -> dict[str, Any] | None:
        """What went wrong, in the one shape of errors."""
        return json.loads(self.job.error) if self.job.error else None


async def planned(door: Door, owner: str, state: PageState, wait_s: float = WAIT_S) -> Planned:
    """The plan of a state; one that is pinned is answered by the process kept for that."""
    verb = QUICK if state.pin else SHEET
    job = await door.ask(owner, verb, state.body(), wait_s)
    sheet = _sheet(job)
    if sheet is None:
        return Planned(job, None, None, "", is_within=False)
    compared = sheet
    if not sheet["document"]["feasible"] and BUDGET in state.keys:
        without = await door.ask(owner, verb, state.body(without=[BUDGET]), WAIT_S)
        compared = _sheet(without) or sheet
    limits = Limits(_budget(state), state.power_kw)
    table = comparison(compared["document"], limits, compared.get("purchases", ()))
    found = Planned(job, sheet, table, "", is_within=bool(sheet["document"]["feasible"]))
    return await _within_power(door, owner, state, found)


async def _within_power(door: Door, owner: str, state: PageState, found: Planned) -> Planned:
    """The plan, or the cheapest fleet that draws less where the plan draws too much."""
    rows = found.table.rows if found.table else []
    chosen = next((row for row in rows if row.status == "chosen"), None)
    limit = state.power_kw
    if limit is None or chosen is None or chosen.kw is None or chosen.kw <= limit:
        return found
    fits = [row for row in rows if row.status == "possible" and row.kw and not row.over]
    draws = f"the cheapest fleet draws {chosen.kw:,.1f} kW, more than {limit:g} kW"
    if not fits or len(found.document["plan"]["pools"] if found.document["plan"] else ()) != 1:
        return found._replace(note=_least(rows, limit, draws), is_within=False)
    best = min(fits, key=lambda row: row.usd or 0.0)
    job = await door.ask(owner, SHEET, state.body(pinned=best.pin), WAIT_S)
    sheet = _sheet(job)
    if sheet is None or found.table is None:
        return found._replace(job=job, sheet=None)
    table = found.table._replace(rows=_moved(rows, best))
    extra = usd((best.usd or 0.0) - (chosen.usd or 0.0))
    note = f"Within the power limit: {draws}; this one costs {extra}/month more."
    return Planned(job, sheet, table, note, is_within=True)


def _least(rows: list[Row], limit: float, draws: str) -> str:
    known = [row for row in rows if row.kw and row.status in ("chosen", "possible")]
    if not known:
        return f"No fleet keeps to {limit:g} kW: {draws}."
    least = min(known, key=lambda row: row.kw or 0.0)
    fleet = f"{least.cells[0].text} × {least.accelerator} {least.precision}"
    return f"No fleet keeps to {limit:g} kW: the least is {fleet} with {least.kw:,.1f} kW."


def _moved(rows: list[Row], best: Row) -> list[Row]:
    """The table with another row as the chosen one."""
    marks = {"chosen": "possible"}
    return [
        row._replace(status="chosen" if row is best else marks.get(row.status, row.status))
        for row in sorted(rows, key=lambda row: row is not best)
    ]


def _sheet(job: Job) -> dict[str, Any] | None:
    return json.loads(job.result) if job.state == "done" and job.result else None


def _budget(state: PageState) -> float | None:
    text = state.keys.get(BUDGET)
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def plan_of(job: Job) -> dict[str, Any]:
    """The document of the plan that a job answered; InputError where it is none."""
    if not job.verb.startswith("plan") or job.state != "done" or not job.result:
        raise one(InputError, "plan", job.id, "is no finished plan", "open one from the start page")
    found = json.loads(job.result)
    return found.get("document", found)  # type: ignore[no-any-return]
