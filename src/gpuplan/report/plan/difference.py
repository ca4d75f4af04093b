"""Two plans side by side: what changed in the answer, and which inputs moved it."""

from collections.abc import Iterator
from operator import itemgetter
from typing import Any

from gpuplan.domain.plan.answer import Answer, PlannedPool
from gpuplan.domain.sheet import Sheet
from gpuplan.report.document import result_sheet
from gpuplan.report.formats import peak_kw, signed_usd, usd
from gpuplan.report.plan.headline import fleet_words, headline
from gpuplan.report.table import table

Change = tuple[str, str, str]
ABSENT = "–"


def diff_sheet(old: Answer, new: Answer) -> Sheet:
    """What differs between two plans, ready to show."""
    answer, inputs = list(_answer_changes(old, new)), list(_input_changes(old, new))
    is_same = not answer and not inputs
    columns = {"what": itemgetter(0), "before": itemgetter(1), "after": itemgetter(2)}
    body = {
        "is_same": is_same,
        "cost_difference_usd_per_month": _cost_difference(old, new),
        "changes": [_document(change) for change in answer],
        "inputs": [_document(change) for change in inputs],
    }
    return result_sheet(
        body,
        [table("What changed", answer, columns), table("Inputs that changed", inputs, columns)],
        head="the plans are the same" if is_same else f"{headline(old)}\n→ {headline(new)}",
    )


def _document(change: Change) -> dict[str, str]:
    return dict(zip(("what", "before", "after"), change, strict=True))


def _cost_difference(old: Answer, new: Answer) -> float | None:
    if old.plan is None or new.plan is None:
        return None
    return new.plan.cost_usd_per_month.value - old.plan.cost_usd_per_month.value


def _answer_changes(old: Answer, new: Answer) -> Iterator[Change]:
    if old.feasible != new.feasible:
        yield "feasible", _word(old.feasible), _word(new.feasible)
    before, after = _pools(old), _pools(new)
    for name in dict.fromkeys((*before, *after)):
        yield from _changed(name, _fleet(before.get(name)), _fleet(after.get(name)))
        yield from _changed(f"{name}: from", _source(before.get(name)), _source(after.get(name)))
    difference = _cost_difference(old, new)
    if difference is not None and old.plan is not None and new.plan is not None:
        if abs(difference) >= 0.005:
            now = f"{usd(new.plan.cost_usd_per_month.value)} ({signed_usd(difference)})"
            yield "cost ($/month)", usd(old.plan.cost_usd_per_month.value), now
        yield from _changed("power", peak_kw(old.plan), peak_kw(new.plan))
        yield from _changed("SLOs met", _word(old.plan.slo.is_kept), _word(new.plan.slo.is_kept))
    made_old, made_new = old.provenance, new.provenance
    yield from _changed("gpuplan", made_old.package_version, made_new.package_version)
    yield from _changed("catalog", made_old.catalog_sha256[:12], made_new.catalog_sha256[:12])
    yield from _changed("seed", str(made_old.seed), str(made_new.seed))


def _input_changes(old: Answer, new: Answer) -> Iterator[Change]:
    before = dict(_leaves(old.provenance.scenario))
    after = dict(_leaves(new.provenance.scenario))
    for key in dict.fromkeys((*before, *after)):
        yield from _changed(key, before.get(key, ABSENT), after.get(key, ABSENT))


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}".removeprefix("."))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _leaves(item, f"{path}[{place}]")
    else:
        yield path, f"{value:g}" if isinstance(value, int | float) else str(value)


def _changed(what: str, before: str, after: str) -> Iterator[Change]:
    if before != after:
        yield what, before, after


def _pools(answer: Answer) -> dict[str, PlannedPool]:
    if answer.plan is None:
        return {}
    # A mixed fleet has several pools for one workload.
    return {
        f"{pool.workload} on {pool.accelerator}"
        if _is_mixed(answer, pool.workload)
        else pool.workload: pool
        for pool in answer.plan.pools
    }


def _is_mixed(answer: Answer, workload: str) -> bool:
    pools = answer.plan.pools if answer.plan else ()
    return sum(pool.workload == workload for pool in pools) > 1


def _fleet(pool: PlannedPool | None) -> str:
    return ABSENT if pool is None else f"{fleet_words(pool)} {pool.precision}"


def _source(pool: PlannedPool | None) -> str:
    return ABSENT if pool is None else pool.source


def _word(truth: bool) -> str:
    return "yes" if truth else "no"
