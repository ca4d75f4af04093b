"""A plan in one sentence that can be read aloud: work, accelerators, cost, and whether it holds."""

import re
from collections.abc import Iterable, Iterator
from datetime import date
from math import prod
from typing import Any

from gpuplan.domain.plan.answer import Answer, ChosenPlan, PlannedLoad, PlannedPool, PurchaseLine
from gpuplan.domain.plan.roles import merged
from gpuplan.domain.provenance import Estimate
from gpuplan.domain.scenario.demand import MediaShape
from gpuplan.report.formats import accelerator_name, chance, count, plural, span, usd, usd_range
from gpuplan.report.plan.direct import lead
from gpuplan.units import DAY, MONTH

UNEVEN_FRAC = 0.02  # less is the rounding of months
FIRM_DAYS = 180  # older prices are never firm
SHORT_SPAN_S = 300 * DAY  # a run with an end rather than a service
TASKS = {
    "online_inference": "Serve",
    "batch_inference": "Run batch inference of",
    "pretraining": "Pre-train",
    "finetuning": "Fine-tune",
    "generic": "Run",
}
PURCHASES = {
    "on_demand": "on demand",
    "reserved": "reserved",
    "spot": "on spot",
    "capacity_block": "in capacity blocks",
    "owned": "owned",
    "existing": "on nodes you already have",
}
CLIENTS = {"users": "users", "concurrent_requests": "concurrent clients"}
AMOUNTS = {"docs": "{item}", "docs_per_day": "{item}/day", "samples": "samples"}
METHODS = {"lora": "LoRA", "qlora": "QLoRA"}
RUNS = ("pretraining", "finetuning", "batch_inference")
AS_PUBLISHED = "as published"
LARGE_ENOUGH = "the fleet is large enough"
MET = {"deadline": "the deadline is met", "SLOs": "all SLOs met"}
SHARDINGS = {"none": "", "zero1": "ZeRO-1", "zero2": "ZeRO-2", "zero3": "FSDP", "hsdp": "HSDP"}
LATENCIES = ("ttft", "tpot", "e2e", "itl")


def headline(answer: Answer) -> str:
    """The answer in one sentence; without a plan, what binds and the smallest change that helps."""
    plan = answer.plan
    if plan is None:
        return _infeasible(answer)
    what = f"{_task(answer)} on {fleet_of(plan, answer.load)}{_length(plan, answer.load)}"
    cost = _cost(plan)
    first = with_names(f"{answer.explanation.largest} ").lstrip() or lead(answer, plan, cost)
    return f"{first}{what}: {cost}{_terms(answer, plan)}; {verdict(answer)}."


def _infeasible(answer: Answer) -> str:
    lines = map(with_names, answer.explanation.conflicts)
    what, *changes = [*lines] or ["nothing can run it"]
    helps = f" Smallest change that helps: {changes[0]}." if changes else ""
    if answer.explanation.question == "enough":
        return f"No, it is not enough. What binds: {what}.{helps}"
    return f"No plan meets every limit of “{answer.name}”. What binds: {what}.{helps}"


def _task(answer: Answer) -> str:
    if len(answer.load) != 1:
        names = ", ".join(load.workload for load in answer.load)
        return f"Run {plural(len(answer.load), 'workload')} ({names})"
    [load] = answer.load
    pools = answer.plan.pools if answer.plan else ()
    precision = next((p.precision.upper() for p in pools if p.precision != AS_PUBLISHED), "")
    what = load.model.rpartition("/")[2] or _sized_name(answer, load)
    what += f" ({precision})" if precision and load.kind != "generic" else ""
    method = (_stated(answer, load).get("training") or {}).get("method")
    what += f" with {METHODS[method]}" if method in METHODS else ""
    return f"{TASKS.get(load.kind, 'Run')} {what}{_demand(answer, load)}"


def _stated(answer: Answer, load: PlannedLoad) -> dict[str, Any]:
    """The workload as the scenario states it."""
    works = answer.provenance.scenario.get("workloads") or ()
    return next((work for work in works if work.get("name") == load.workload), {})


def _sized_name(answer: Answer, load: PlannedLoad) -> str:
    """A model without a name by its size, where its workload has none of its own either."""
    model = _stated(answer, load).get("model")
    size = model.get("params_b") if isinstance(model, dict) else None
    is_plain = load.workload == "run" and isinstance(size, int | float)
    return f"a {size:g}B model" if is_plain else load.workload


def _demand(answer: Answer, load: PlannedLoad) -> str:
    """Whom or how much it serves; users where the scenario counts them."""
    mine = _stated(answer, load)
    demand = mine.get("demand") or {}
    for key, words in CLIENTS.items():
        if isinstance(demand.get(key), int | float):
            return f" for {count(demand[key])} {words}"
    requested = map((mine.get("request") or {}).get, ("audio_s", "image_width_px", "frames"))
    item = MediaShape(
        **dict(zip(("audio_s", "image_width_px", "n_frames"), requested, strict=True))
    ).item
    for key, words in AMOUNTS.items():
        n = (mine.get("batch") or mine.get("work") or {}).get(key)
        if isinstance(n, int | float):
            return f" for {count(n)} {words.format(item=item)}"
    rate = load.peak_requests_per_s
    return "" if rate is None else f" at {_rate(rate)} requests/s"


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}" if per_s >= 100 else f"{per_s:.3g}"


_FORMAT = r"(?:[bt]?fp?\d+(?:-block)?|(?:nv|mx)fp\d|int\d|w\d+a\d+)"
_WAY = r"(?:\d+P\d+D|(?:TP|PP|DP|EP|CP)\d+)"
FLEET_TEXT = re.compile(rf"\b(\d[\d,]*\+?) x ([A-Za-z0-9][\w.-]*)((?: {_WAY})*)(?: ({_FORMAT})\b)?")
NODE_TEXT = re.compile(r"\b(?!none |full |selective )([a-z]\w*(?:-\w+)*) x(\d+)\b")
OFFER_TEXT = re.compile(r"\b(on_demand|capacity_block|reserved|spot) ([a-z]+) (?=\S*\d)")
FIGURE_TEXT = re.compile(
    rf"(?<![-/.\w])(?:(?:{'|'.join(LATENCIES)})(?= (?:p\d+|mean)\b)|{_FORMAT}(?![-\w]))"
)
CANDIDATE_TEXT = re.compile(
    rf"\b([a-z0-9][\w.-]*)((?: (?:\d+p\d+d|(?:tp|pp|dp|ep)\d+))+) ({_FORMAT})\b"
    r"((?: over [\d.]+ Gbit/s)?)"
    r"((?: (?:1/\d+|\d+g\.\d+gb))?)(?: b\d+)?\b"
)


def with_names(text: str) -> str:
    """Fleets, nodes, offers and SLOs as people name them: 6 x h100-sxm is 6 × H100 SXM."""
    named = FLEET_TEXT.sub(
        lambda found: _named(f"{found[1]} × ", found[2], found[3], found[4] or ""), text
    )
    named = CANDIDATE_TEXT.sub(
        lambda found: _named("", found[1], found[2], found[3]) + found[4] + found[5], named
    )
    named = NODE_TEXT.sub(
        lambda found: f"nodes of {found[2]} × {accelerator_name(found[1])}", named
    )
    named = OFFER_TEXT.sub(
        lambda found: f"{PURCHASES[found[1]]} at {cloud_name(found[2])}, ", named
    )
    return FIGURE_TEXT.sub(lambda found: found[0].upper(), named.replace(", TP1, ", ", "))


def _named(before: str, accelerator: str, layout: str, precision: str) -> str:
    """How many of what; one accelerator alone is no layout."""
    ways = [way for way in layout.upper().split() if way != "TP1"]
    return before + " ".join(
        filter(None, (accelerator_name(accelerator), *ways, precision.upper()))
    )


def fleet_of(plan: ChosenPlan, loads: Iterable[PlannedLoad]) -> str:
    """The accelerators of a plan by kind; the layout too where one workload has one pool."""
    pools = [pool for pool in merged(plan.pools) if pool.n_accelerators or is_cpu(pool)]
    if len(merged(plan.pools)) == 1 and pools:
        is_generic = all(load.kind == "generic" for load in loads)
        return fleet_words(pools[0], with_layout=not is_generic)
    sums: dict[str, int] = {}
    for pool in pools:
        if not is_cpu(pool):
            n = min(_n_held(pool), pool.n_accelerators) if is_growing(plan) else _n_held(pool)
            sums[pool.accelerator] = sums.get(pool.accelerator, 0) + n
    words = [f"{count(n)} × {accelerator_name(name)}" for name, n in sums.items() if n]
    words += [fleet_words(pool) for pool in pools if is_cpu(pool)]
    return " + ".join(words) or "what you already have"


def _n_held(pool: PlannedPool) -> int:
    """Accelerators of the nodes that the pool pays for; one that runs on nodes of another has none.

    Work that takes turns needs more in sum than there are nodes; where load grows these are the
    nodes of its end.
    """
    return sum(line.n_nodes * line.n_accelerators_per_node for line in pool.purchases)


def fleet_words(pool: PlannedPool, *, with_layout: bool = True) -> str:
    """The accelerators of a pool with their layout: 6 × H100 SXM (3 replicas, TP2)."""
    name = accelerator_name(pool.accelerator)
    if is_cpu(pool):
        n = sum(line.n_nodes for line in pool.purchases)
        return f"{plural(n, 'CPU node')} ({name.removeprefix('CPU ')}, no GPU needed)"
    if pool.n_accelerators == 0:
        return f"a fraction of {name}"
    what = f"{count(pool.n_accelerators)} × {name}"
    if pool.layout.share:
        return f"{what} as {pool.n_replicas} × {layout_name(pool)}"
    layout = layout_words(pool) if with_layout else ""
    return f"{what} ({layout})" if layout else what


def layout_words(pool: PlannedPool) -> str:
    """Replicas and how each is sharded; empty for one replica on one accelerator each."""
    parts = [plural(pool.n_replicas, "replica")] if pool.n_replicas > 1 else []
    name = layout_name(pool)
    if pool.layout.n_prefill:
        n_prefill, n_decode = (
            pool.n_replicas * n for n in (pool.layout.n_prefill, pool.layout.n_decode)
        )
        return (
            f"{n_prefill} prefill and {n_decode} decode replicas, {pool.layout.spread.engine.name}"
        )
    return ", ".join([*parts, *([] if name == "TP1" else [name])])


def layout_name(pool: PlannedPool) -> str:
    """The whole layout of one replica: TP2, DP16 EP16 over 2 servers, 1/2 H100 SXM."""
    layout = pool.layout
    if layout.share:
        return f"{layout.share} {accelerator_name(pool.accelerator)}"
    ways, sharding = layout.spread.name, SHARDINGS.get(layout.sharding, layout.sharding)
    spread = sharding if ways == "TP1" and sharding else f"{ways} {sharding}".strip()
    n = layout.n_servers_per_replica
    if layout.role:
        spread = f"{layout.role} {spread}"
    return f"{spread} over {n} servers" if n > 1 else spread


def is_cpu(pool: PlannedPool) -> bool:
    """Whether the pool has processors only."""
    return pool.n_accelerators == 0 and pool.accelerator.startswith("cpu")


def _length(plan: ChosenPlan, loads: Iterable[PlannedLoad]) -> str:
    is_run = any(load.kind in RUNS for load in loads)
    return f" in {span(plan.span_s)}" if is_run and plan.span_s < SHORT_SPAN_S else ""


def _cost(plan: ChosenPlan) -> str:
    month = _with_range(plan.cost_usd_per_month, "/month")
    if plan.span_s < MONTH:
        return _with_range(_total(plan), "")
    if plan.span_s < SHORT_SPAN_S:
        return f"{usd(plan.total_usd)} total, {month}"
    if is_uneven(plan):
        return f"{usd(plan.total_usd)} in {span(plan.span_s)}, {month} while all of it runs"
    return f"{_growing(plan)}{month}"


def _growing(plan: ChosenPlan) -> str:
    """The fleet at the end and today's month, where the fleet grows and the month is a mean."""
    if not is_growing(plan):
        return ""
    first, *_, last = plan.bill.by_period
    return (
        f"{usd(first.usd_per_month)}/month now; with growth to {count(last.n_accelerators)} "
        f"accelerators, on average over {span(plan.span_s)} "
    )


def is_growing(plan: ChosenPlan) -> bool:
    """Whether the fleet of the last period differs from today's."""
    counts = [period.n_accelerators for period in plan.bill.by_period]
    return bool(counts) and counts[0] != counts[-1]


def is_short(plan: ChosenPlan | None) -> bool:
    """Whether all of it ends within a month: its bill is then a sum, not a rate."""
    return plan is not None and plan.span_s < MONTH


def money_unit(plan: ChosenPlan | None) -> str:
    """Of amounts of a plan: dollars a month, or of the whole run where it ends within one."""
    return "$" if is_short(plan) else "$/month"


def _with_range(cost: Estimate, per: str) -> str:
    value, space, spread = usd_range(cost).partition(" ")
    return f"{value}{per}{space}{spread}"


def is_uneven(plan: ChosenPlan) -> bool:
    """Whether runs end before the services do: then no month is like the others."""
    even = plan.cost_usd_per_month.value * plan.span_s / MONTH
    return plan.total_usd < (1 - UNEVEN_FRAC) * even


def _total(plan: ChosenPlan) -> Estimate:
    """The whole of a short run, with the range of its monthly rate."""
    month = plan.cost_usd_per_month
    ratio = plan.total_usd / month.value if month.value else 1.0
    return month.scaled(ratio)


def _terms(answer: Answer, plan: ChosenPlan) -> str:
    """Every purchase option with its provider and the age of its price, once."""
    lines = [line for pool in plan.pools for line in pool.purchases]
    words = dict.fromkeys(f"{purchase_words(line)}{age_words(answer, line)}" for line in lines)
    return f" {' + '.join(words)}" if words else ""


def age_words(answer: Answer, line: PurchaseLine) -> str:
    """How old the price is; one of over half a year, or from a survey or market, is not firm."""
    if not line.price_date:
        return ""
    days = (date.fromisoformat(answer.provenance.as_of) - date.fromisoformat(line.price_date)).days
    is_firm = days <= FIRM_DAYS and line.price_usd_per_node_h.tier != "assumed"
    return f" (price {days} days old{'' if is_firm else ', not firm'})"


def purchase_words(line: PurchaseLine) -> str:
    """How nodes are paid for: on demand at Cudo, owned."""
    words = PURCHASES.get(line.purchase, line.purchase)
    if line.purchase in ("owned", "existing"):
        return words
    return f"{words} at {seller(line)}"


def purchase_option(line: PurchaseLine) -> str:
    """The purchase option with its provider in a table: on-demand (Cudo), owned, existing."""
    option = line.purchase.replace("_", "-")
    is_own = line.purchase in ("owned", "existing")
    return option if is_own else f"{option} ({provider(line) or 'your price'})"


def seller(line: PurchaseLine) -> str:
    """The provider with its region, and that no source confirms one where that is so."""
    name = provider(line)
    is_listed = bool(name and line.price_date)
    region = line.region or ("region unconfirmed" if is_listed else "")
    return ", ".join(filter(None, (name, region))) if is_listed else name or "your price"


def provider(line: PurchaseLine) -> str:
    """The cloud's name; empty where the price is the user's own."""
    return cloud_name(line.cloud)


def cloud_name(cloud: str) -> str:
    """A cloud as people write it: AWS, Runpod."""
    return cloud.upper() if len(cloud) <= 3 else cloud.capitalize()


def slo_name(what: str) -> str:
    """TTFT p95 for ttft p95; other names stay."""
    first, space, rest = what.partition(" ")
    return f"{first.upper()}{space}{rest}" if first in LATENCIES else what


def verdict(answer: Answer) -> str:
    """Whether SLOs and limits hold, and with what probability when inputs vary."""
    plan = answer.plan
    broken = list(_violated(plan)) if plan else []
    if plan is None or broken:
        return f"VIOLATED: {', '.join(broken)}"
    goals = goals_of(plan)
    is_run = all(load.kind in RUNS for load in answer.load)
    share = answer.uncertainty.kept_frac if answer.uncertainty else _odds(answer)
    if share is None:
        none = "no deadline was given" if is_run else "no SLO was given"
        return MET.get(goals, none)
    sure = chance(share)
    if is_run and not goals:
        return f"no deadline was given; the run fits in memory with {sure} probability"
    return f"{MET.get(goals, LARGE_ENOUGH)} with {sure} probability"


def _odds(answer: Answer) -> float | None:
    """The probability that services and runs beside them do what they should; None: not known."""
    decision = answer.decision
    if decision is None or decision.risk is None:
        return None
    runs = [row for row in decision.comparison if row.is_chosen and row.evidence.run]
    known = [row.probability_frac for row in runs if row.probability_frac is not None]
    return decision.risk.probability_frac * prod(known) if known else None


def goals_of(plan: ChosenPlan) -> str:
    """What the plan has to meet: SLOs, a deadline alone, or nothing."""
    goals = {target.what for target in plan.slo.promises}
    return "deadline" if goals == {"deadline"} else "SLOs" if goals else ""


def _violated(plan: ChosenPlan) -> Iterator[str]:
    yield from (f"{p.workload} {slo_name(p.what)}" for p in plan.slo.promises if not p.is_kept)
    yield from (limit.name for limit in plan.limits if not limit.is_kept)
