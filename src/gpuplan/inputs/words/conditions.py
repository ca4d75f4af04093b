"""Facts of a description → the keys of its terms: SLOs, money, owned nodes, site and policy."""

from gpuplan.inputs.documents.document import KeyPath
from gpuplan.inputs.words.draft import Draft
from gpuplan.inputs.words.scan import Fact
from gpuplan.inputs.words.targets import EXCHANGE_DAY
from gpuplan.inputs.words.tasks import USES, patience
from gpuplan.units import DAY, MONTH

CPU_PATIENCE = 3.0  # 150 ms a token: some 300 words a minute
NO_SLO_S = 300.0  # of a whole response, where nobody asks for one


def put_terms(draft: Draft, *, is_job: bool) -> None:
    """Budget, growth, site, owned hardware and policy."""
    _money(draft, is_job=is_job)
    _prices(draft)
    _growth(draft)
    _own_site(draft)
    owned = draft.take("owned")
    if owned is not None:
        nodes = [
            {"accelerator": card, "nodes": n, "accelerators_per_node": per_node}
            for card, n, per_node in owned.value
        ]
        draft.put(("owned",), nodes, owned.words)
        _existing_only(draft, owned)
    if "span_s" in draft.facts:
        draft.move("span_s", ("budget", "horizon_months"), 1 / MONTH)
    roots = ("policy.", "budget.", "growth.", "site.", "objective")
    for field in [name for name in draft.facts if name.startswith(roots)]:
        draft.move(field, tuple(field.split(".")))


def _own_site(draft: Draft) -> None:
    """Who pays for electricity has a site, and buys what stands in it."""
    tariff = draft.facts.get("site.electricity_usd_per_kwh")
    rented = ("policy.purchases", "policy.clouds.allowed", "policy.spot_allowed")
    if tariff is not None and not set(rented) & set(draft.facts):
        why = "who pays for electricity has a site of their own: hardware is bought"
        draft.note("purchases", "owned", why, '"rented", or policy.purchases')
        draft.facts["policy.purchases"] = tariff._replace(value=["owned"])


def _existing_only(draft: Draft, owned: Fact) -> None:
    """Nothing is rented, and no more bought than there is."""
    only = draft.take("existing_only")
    if only is None:
        return
    n_most = sum(n_nodes * n_each for _, n_nodes, n_each in owned.value)
    draft.put(("policy", "purchases"), ["owned"], only.words)
    draft.put(("policy", "max_accelerators"), n_most, only.words)
    kinds = [card for card, _, _ in owned.value]
    draft.put(("policy", "accelerators", "allowed"), kinds, only.words)


def _money(draft: Draft, *, is_job: bool) -> None:
    fact = draft.take("money")
    if fact is None:
        return
    usd, period_s, exchange = fact.value
    if exchange:
        why = f"reference rate of the European Central Bank of {EXCHANGE_DAY}: an old one"
        draft.note("exchange rate", exchange, why, "a budget in $")
    if period_s is None and not is_job and draft.value("policy.purchases") == ["owned"]:
        why = "a budget without a period, for hardware that is bought, is what buying may cost"
        draft.note("budget", f"{usd:g} USD of purchases", why, '"$… per month"')
        draft.put(("budget", "capex_usd"), round(usd, 2), fact.words)
        return
    if period_s == 0.0 or (period_s is None and is_job):
        draft.put(("budget", "total_usd"), round(usd, 2), fact.words)
        return
    if period_s is None:
        why = "a budget without a period is taken per month, as the work goes on"
        draft.note("budget", f"{usd:g} USD per month", why, '"$… in total", or --budget')
    per_month = usd if period_s is None else usd * MONTH / period_s
    draft.put(("budget", "usd_per_month"), round(per_month, 2), fact.words)


def _prices(draft: Draft) -> None:
    """A price per token and what is paid today are no limits: they stand beside the plan's."""
    for field, what, change in (
        ("price_limit", "USD per million tokens", '"$… per month" limits what the fleet may cost'),
        ("spent", "USD paid today", '"budget $… per month"'),
    ):
        fact = draft.take(field)
        if fact is not None:
            draft.read_as(what, round(fact.value, 6), fact.words)
            why = "no limit of the plan, which is the cheapest there is: compare it with the plan's"
            draft.note(what, f"{fact.value:g}", why, change)


def _growth(draft: Draft) -> None:
    """A load that grows to another one: compound growth per month."""
    fact = draft.facts.get("grow_to")
    demand = draft.tree["workloads"][0].get("demand", {}) if draft.tree["workloads"] else {}
    keys = ("users", "requests_per_s", "requests_per_day", "concurrent_requests")
    now = next((float(demand[key]) for key in keys if key in demand), 0.0)
    if fact is None or not now:
        return
    draft.take("grow_to")
    target, seconds = fact.value
    monthly = (target / now) ** (MONTH / max(seconds, DAY)) - 1
    draft.put(("growth", "per_month_frac"), round(monthly, 6), fact.words)


def put_slo(draft: Draft, at: KeyPath, use: str, why: str) -> None:
    """Targets as stated; where a whole response is limited, none but that."""
    due = draft.facts.get("deadline_s")
    if (
        due is not None
        and due.value < DAY
        and not any(f.startswith("slo.e2e") for f in draft.facts)
    ):
        draft.facts["slo.e2e_p95_s"] = draft.facts.pop("deadline_s")  # each is ready in 20 minutes
    draft.move_keys(at, ("slo.",))
    none = draft.take("no_slo")
    if none is not None:
        draft.read_as("SLOs", "none but what is stated", none.words)
        if "slo" not in draft.tree["workloads"][at[1]]:
            why = "no SLO was asked for; without any, load could grow without end"
            draft.assume((*at, "slo", "e2e_p95_s"), NO_SLO_S, "SLO e2e_p95_s", why)
        return
    slo: KeyPath = (*at, "slo")
    is_whole = any(draft.has((*slo, f"e2e_{statistic}_s")) for statistic in ("p50", "p95", "p99"))
    if is_whole:
        return
    allowed = draft.value("policy.accelerators.allowed") or ("any",)
    is_cpu = all(name.lower().startswith("cpu") for name in allowed)
    is_patient = is_cpu or _is_one_at_a_time(draft)
    if is_patient:
        why = "as fast as people read: usual of CPUs, and where it is asked whether hardware does"
    for key, limit in USES[use].slo.items():
        metric = key.split("_")[0]
        work = draft.tree["workloads"][at[1]]
        if not any(other.startswith(f"{metric}_") for other in work.get("slo", {})):
            longer, reason = patience(USES[use], key, draft.request(at))
            longer *= CPU_PATIENCE if is_patient else 1.0
            draft.assume((*slo, key), round(limit * longer, 1), f"SLO {key}", why + reason)


def _is_one_at_a_time(draft: Draft) -> bool:
    """Whether it is asked if hardware is enough, and no load was named."""
    is_assumed = any(note.what == "concurrent requests" for note in draft.assumed)
    return is_assumed and draft.value("question") == "enough"
