"""The six needs of a workload, demand against supply: of a checked system, and of a plan."""

from collections.abc import Iterator

from gpuplan.domain.plan.answer import Answer, ChosenPlan
from gpuplan.domain.plan.candidate import RunNeeds
from gpuplan.domain.sheet import Table
from gpuplan.domain.system.check import Need, next_bottleneck
from gpuplan.report.formats import three
from gpuplan.report.table import table
from gpuplan.units import GB, MB

BAR = 12  # cells of all that is there: a line of a terminal holds them
ELSEWHERE = "sized by gpuplan design, judged by gpuplan check"
POWER = "site.power_kw"


def needs_table(needs: tuple[Need, ...]) -> Table:
    """Demand, supply and headroom of each; the balance score is the smallest headroom."""
    tightest = next_bottleneck(needs)
    columns = {
        "need": lambda n: n.name + (" ← next bottleneck" if n is tightest else ""),
        "what": lambda n: n.what,
        ">demand": lambda n: "" if n.n_demand is None else amount(n.n_demand, n.unit),
        ">supply": lambda n: "" if n.n_supply is None else amount(n.n_supply, n.unit),
        ">headroom": lambda n: "unknown" if n.headroom_frac is None else f"{n.headroom_frac:.0%}",
        "": _bar,
    }
    score = "unknown" if tightest is None else f"{tightest.headroom_frac or 0.0:.0%}"
    return table(f"The six needs; balance score {score}", needs, columns)


def _bar(need: Need) -> str:
    """Demand as a share of supply; a bar that is full is short."""
    if need.headroom_frac is None:
        return ""
    used = min(1.0, 1.0 - need.headroom_frac)
    return "█" * round(BAR * used) + "░" * round(BAR * (1.0 - used))


def amount(n: float, unit: str) -> str:
    """A quantity with its unit; bytes in GB or MB, shares in percent."""
    if unit.startswith("bytes"):
        size, name = (n / MB, "MB") if 0 < n < 0.01 * GB else (n / GB, "GB")
        return f"{size:,.2f} {name}{unit.removeprefix('bytes')}"
    if unit == "s":
        return f"{three(n)} s"
    return f"{n:.0%}" if unit == "share" else f"{n:,.0f} {unit}"


def plan_needs(answer: Answer) -> tuple[Need, ...]:
    """What a plan states of each need, its tightest workload first; nothing without a plan."""
    plan = answer.plan
    if plan is None:
        return ()
    return (
        _tightest("compute", "share", _utilization(plan)),
        _tightest("memory", "bytes", _memory(answer, plan)),
        _tightest("speed", "s", _latency(plan)),
        _tightest("storage", "bytes", _storage(answer)),
        _tightest("network", "bytes/s", _links(answer)),
        _tightest("power", "W", _power(plan)),
    )


Row = tuple[str, float | None, float | None]  # what, demand, supply


def _tightest(name: str, unit: str, rows: Iterator[Row]) -> Need:
    needs = [Need(name=name, what=w, unit=unit, n_demand=d, n_supply=s) for w, d, s in rows]
    unknown = Need(name=name, what=ELSEWHERE, unit=unit, n_demand=None, n_supply=None)
    return next_bottleneck(tuple(needs)) or next(iter(needs), unknown)


def _utilization(plan: ChosenPlan) -> Iterator[Row]:
    for pool in plan.pools:
        what = f"{pool.workload}: utilization at the peak, of what is safe"
        if pool.use.peak_frac is not None:
            yield what, pool.use.peak_frac, pool.use.safe_frac
    for one in plan.slo.promises:
        if one.what == "deadline" and one.reached_s is not None:
            what = f"{one.workload}: accelerator-hours, of those until the deadline"
            yield what, one.reached_s.value / one.limit_s, 1.0


def _memory(answer: Answer, plan: ChosenPlan) -> Iterator[Row]:
    """The least that lies on one accelerator, as the certificate has it; `fit` tells the parts."""
    size = {(row.accelerator, row.precision): row.memory_bytes for row in answer.decision.trade}
    checks = answer.proof.certificate if answer.proof else ()
    least = {check.name: check for check in checks}
    runs = dict(_runs(answer))
    for pool in plan.pools:
        if run := runs.get(pool.workload):
            yield f"{pool.workload}: of the fullest accelerator", run.peak_bytes, run.usable_bytes
            continue
        found = least.get(f"memory of {pool.workload}: one accelerator")
        what = f"{pool.workload}: at least, of one accelerator; gpuplan fit tells the parts"
        if found is None:
            yield what, None, size.get((pool.accelerator, pool.precision))
        else:
            yield what, float(found.claimed) * GB, float(found.found) * GB


def _storage(answer: Answer) -> Iterator[Row]:
    """Of one server; drives are those of the maker's server, for clouds do not publish theirs."""
    for one in answer.decision.storage:
        parts = ", ".join(
            f"{name} {amount(size, 'bytes')}" for name, size in one.parts_bytes.items()
        )
        drives = f"; drives of {one.server}" if one.server else ""
        yield f"{one.workload}: a server's {parts}{drives}", one.needed_bytes, one.drives_bytes


def _latency(plan: ChosenPlan) -> Iterator[Row]:
    for one in plan.slo.promises:
        reached = None if one.reached_s is None else one.reached_s.value
        yield f"{one.workload}: {one.what} of its limit", reached, one.limit_s


def _links(answer: Answer) -> Iterator[Row]:
    """What one server sends to others and to clients, against its NICs."""
    for name, run in _runs(answer):
        what = f"{name}: a server's traffic to others, of its NICs"
        yield what, run.sent_bytes_per_s, run.nics_bytes_per_s
    for one in answer.decision.network:
        stated = "its NICs" if one.nics_bytes_per_s else "NICs that the offer does not state"
        what = f"{one.workload}: a server's {one.what}, of {stated}"
        yield what, one.sent_bytes_per_s, one.nics_bytes_per_s


def _runs(answer: Answer) -> Iterator[tuple[str, RunNeeds]]:
    """The chosen training runs, with what they take."""
    for row in answer.decision.comparison:
        run = row.evidence.run
        if row.is_chosen and run and run.needs:
            yield row.workload, run.needs


def _power(plan: ChosenPlan) -> Iterator[Row]:
    drawn = plan.power_w.value if plan.power_w else None
    share = next((one.used_frac for one in plan.limits if one.name == POWER), None)
    limit = "" if share else f"; no limit given ({POWER})"
    yield f"peak draw at the plug{limit}", drawn, drawn / share if drawn and share else None
