"""Facts of a description → the keys of its terms: money, owned nodes, growth, site and policy."""

from gpuplan.inputs.words.draft import Draft
from gpuplan.inputs.words.scan import Fact
from gpuplan.inputs.words.targets import EXCHANGE_DAY
from gpuplan.units import DAY, MONTH


def put_terms(draft: Draft, *, is_job: bool) -> None:
    """Budget, growth, site, owned hardware and policy."""
    _money(draft, is_job=is_job)
    _prices(draft)
    _growth(draft)
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
    if period_s is None and is_job:
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
