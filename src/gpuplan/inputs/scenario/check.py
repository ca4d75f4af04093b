"""Rules across the keys of a scenario: what is well formed and still cannot be meant."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gpuplan.domain.model.precision import format_named
from gpuplan.domain.scenario.site import Circuit
from gpuplan.inputs.documents.document import KeyPath
from gpuplan.inputs.documents.problems import Finding, nearest
from gpuplan.inputs.scenario.check_workload import precision_findings, workload_findings
from gpuplan.inputs.schema.keys import Spread, Strict
from gpuplan.inputs.schema.kinds import ReinforcementLearningSpec, plain_of
from gpuplan.inputs.schema.nouns import noun_of
from gpuplan.inputs.schema.scenario import ScenarioSpec
from gpuplan.inputs.schema.terms import ChoiceSpec, OfferSpec, PolicySpec
from gpuplan.units import KW


def cross_findings(spec: ScenarioSpec) -> list[Finding]:
    """Everything that contradicts something else."""
    return [finding for rule in RULES for finding in rule(spec)]


def _workloads(spec: ScenarioSpec) -> Iterator[Finding]:
    for i, workload in enumerate(spec.workloads):
        yield from workload_findings(plain_of(workload), ("workloads", i))


def _spreads(spec: ScenarioSpec) -> Iterator[Finding]:
    for path, spread in _all_spreads(spec, ()):
        if not spread.low <= spread.mid <= spread.high:
            what = f"got low {spread.low:g}, mid {spread.mid:g}, high {spread.high:g}"
            yield Finding(path, what, "must rise: low, mid, high")


def _all_spreads(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Spread]]:
    if isinstance(value, Spread):
        yield path, value
    elif isinstance(value, Strict):
        for name in type(value).model_fields:
            yield from _all_spreads(getattr(value, name), (*path, name))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _all_spreads(item, (*path, i))


def _names(spec: ScenarioSpec) -> Iterator[Finding]:
    yield from _twice([work.name for work in spec.workloads], "workloads")
    yield from _twice([team.name for team in spec.teams], "teams")


def _twice(names: Sequence[str], part: str) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        if first.setdefault(name, i) != i:
            what = f"{name!r} is the name of {part}[{first[name]}] too"
            yield Finding((part, i, "name"), what, "give each its own name")


def _teams(spec: ScenarioSpec) -> Iterator[Finding]:
    known = [team.name for team in spec.teams]
    for i, work in enumerate(spec.workloads):
        if work.team is not None and work.team not in known:
            guess = nearest(work.team, known)
            fix = f"did you mean {guess}?" if guess else "add it to teams"
            yield Finding(("workloads", i, "team"), f"{work.team!r} is not among teams", fix)
    quotas = sum(team.quota_accelerators or 0 for team in spec.teams)
    most = spec.policy.max_accelerators
    if most is not None and quotas > most:
        what = f"guarantee {quotas} accelerators, but policy.max_accelerators is {most}"
        yield Finding(("teams",), what, "lower the quotas, or raise the limit")


def _policy(spec: ScenarioSpec) -> Iterator[Finding]:
    policy = spec.policy
    for name in ("accelerators", "clouds", "regions"):
        yield from _choice(getattr(policy, name), ("policy", name))
    yield from precision_findings(policy.precisions, ("policy", "precisions"))
    yield from _weights(spec)
    yield from _purchases(policy)
    most = policy.max_accelerators
    if policy.survive != "none" and most is not None and most <= policy.survive_count:
        what = f"got {most}, but {policy.survive_count} may be lost and work must go on"
        fix = f"must be above {policy.survive_count}"
        yield Finding(("policy", "max_accelerators"), what, fix)


def _choice(spec: ChoiceSpec, path: KeyPath) -> Iterator[Finding]:
    forbidden = {_plain(name) for name in spec.forbidden or ()}
    for name in spec.allowed or ():
        if _plain(name) in forbidden:
            yield Finding(path, f"{name} is allowed and forbidden", "keep it in one of the lists")


def kind_findings(spec: ScenarioSpec) -> list[Finding]:
    """What keeps a workload from being read as the plain kinds that it consists of."""
    found = []
    for i, work in enumerate(spec.workloads):
        if not isinstance(work, ReinforcementLearningSpec):
            continue
        path = ("workloads", i, "training")
        if work.training.tokens is None:
            fix = "give the tokens of all rollouts, prompts included"
            found.append(Finding((*path, "tokens"), "missing", fix))
        if work.training.deadline_days is None:
            fix = "rollouts and training end together: give their deadline"
            found.append(Finding((*path, "deadline_days"), "missing", fix))
    return found


def _weights(spec: ScenarioSpec) -> Iterator[Finding]:
    weights = spec.policy.weights
    if (spec.objective == "weighted") != (weights is not None):
        what = "weights and the objective `weighted` go together"
        yield Finding(("policy", "weights"), what, "give both or none")
    elif weights is not None and not any(weights.model_dump().values()):
        fix = "give one above 0, e.g. cost: 1"
        yield Finding(("policy", "weights"), "all weights are 0", fix)


def _purchases(policy: PolicySpec) -> Iterator[Finding]:
    has_spot = policy.purchases is not None and "spot" in policy.purchases
    if has_spot and policy.spot_allowed is False:
        what = "lists spot, but spot_allowed is false"
        yield Finding(("policy", "purchases"), what, "keep one of them")
    if policy.spot_allowed and policy.purchases is not None and not has_spot:
        what = "is true, but purchases does not list spot"
        yield Finding(("policy", "spot_allowed"), what, "add spot to purchases")


def _allowed_hardware(spec: ScenarioSpec) -> Iterator[Finding]:
    for i, nodes in enumerate(spec.owned):
        yield from _is_allowed(spec, nodes.accelerator, ("owned", i, "accelerator"))
    for i, offer in enumerate(spec.prices.offers):
        yield from _is_allowed(spec, offer.accelerator, ("prices", "offers", i, "accelerator"))


def _is_allowed(spec: ScenarioSpec, name: str, path: KeyPath) -> Iterator[Finding]:
    choice = spec.policy.accelerators
    if choice.allowed and not any(_is_same(name, other) for other in choice.allowed):
        fix = "add it to the list, or remove it here"
        yield Finding(path, f"{name} is not in policy.accelerators.allowed", fix)
    if any(_plain(name) == _plain(other) for other in choice.forbidden or ()):
        fix = "take it off the list, or remove it here"
        yield Finding(path, f"{name} is in policy.accelerators.forbidden", fix)


def _plain(name: str) -> str:
    return "-".join(name.lower().replace("_", " ").replace("-", " ").split())


def _is_same(name: str, other: str) -> bool:
    """Equal, or one the family of the other: h100 and h100-sxm. The catalog knows more."""
    short, long = sorted((_plain(name), _plain(other)), key=len)
    return short == long or long.startswith(f"{short}-")


def _precisions(spec: ScenarioSpec) -> Iterator[Finding]:
    allowed = _format_names(spec.policy.precisions)
    for i, work in enumerate(spec.workloads):
        wanted = _format_names(work.precision)
        if allowed and wanted and not allowed & wanted:
            what = f"allows {', '.join(sorted(wanted))}, but policy only {', '.join(allowed)}"
            yield Finding(("workloads", i, "precision"), what, "add one that both allow")


def _format_names(names: Sequence[str] | None) -> set[str]:
    found = (format_named(name) for name in names or ())
    return {form.name for form in found if form is not None}


def _offers(spec: ScenarioSpec) -> Iterator[Finding]:
    named = [offer.name for offer in spec.prices.offers if offer.name is not None]
    for i, offer in enumerate(spec.prices.offers):
        path: KeyPath = ("prices", "offers", i)
        if offer.name is not None and named.count(offer.name) > 1:
            yield Finding((*path, "name"), f"{offer.name!r} is given twice", "name each once")
        yield from _offer(offer, path, spec.policy)


def _offer(offer: OfferSpec, path: KeyPath, policy: PolicySpec) -> Iterator[Finding]:
    if (offer.usd_per_accelerator_h is None) == (offer.usd_per_node_h is None):
        what = "has no price" if offer.usd_per_node_h is None else "has two prices"
        yield Finding(path, what, "give usd_per_accelerator_h or usd_per_node_h, one of them")
    if offer.term_months is not None and offer.purchase in ("on_demand", "spot"):
        fix = "remove it, or set purchase: reserved"
        yield Finding((*path, "term_months"), f"stands beside {offer.purchase}", fix)
    is_spot = offer.purchase == "spot"
    if offer.availability.interruptions_per_week is not None and not is_spot:
        at = (*path, "availability", "interruptions_per_week")
        yield Finding(at, f"stands beside {offer.purchase}", "it is for purchase: spot")
    if policy.purchases is not None and offer.purchase not in policy.purchases:
        what = f"{offer.purchase} is not in policy.purchases"
        yield Finding((*path, "purchase"), what, "allow it there, or remove the offer")
    elif is_spot and not policy.spot_allowed and policy.purchases is None:
        fix = "set policy.spot_allowed: true, or remove the offer"
        yield Finding((*path, "purchase"), "spot is not allowed by policy", fix)


def _hardware_prices(spec: ScenarioSpec) -> Iterator[Finding]:
    for i, price in enumerate(spec.prices.hardware):
        if price.usd_per_accelerator is not None and price.usd_per_node is not None:
            what = "has a price of the accelerator and of the node"
            yield Finding(("prices", "hardware", i), what, "keep one: the node is paid once")


def _site(spec: ScenarioSpec) -> Iterator[Finding]:
    site = spec.site
    if site is None or site.rack is None:
        return
    rack = site.rack
    if rack.circuit is not None and rack.power_kw is not None:
        usable_kw = noun_of(rack.circuit, Circuit).usable_w / KW
        if rack.power_kw > usable_kw * 1.0001:
            feeds = "; A and B are not added" if rack.circuit.feeds == "A+B" else ""
            what = f"got {rack.power_kw:g}, but its circuit carries {usable_kw:.4g} kW{feeds}"
            yield Finding(("site", "rack", "power_kw"), what, f"must be at most {usable_kw:.4g}")
    if site.power_kw is not None and rack.power_kw is not None and rack.power_kw > site.power_kw:
        what = f"got {rack.power_kw:g}, more than the whole site with {site.power_kw:g}"
        yield Finding(("site", "rack", "power_kw"), what, f"must be at most {site.power_kw:g}")


def _owned(spec: ScenarioSpec) -> Iterator[Finding]:
    for i, nodes in enumerate(spec.owned):
        peak, mean = nodes.peak_utilization_frac, nodes.mean_utilization_frac
        if peak is not None and mean is not None and mean > peak:
            what = f"got {mean:g}, above the peak with {peak:g}"
            yield Finding(("owned", i, "mean_utilization_frac"), what, f"must be at most {peak:g}")
        cap_w, node_kw = nodes.accelerator_cap_w, nodes.node_max_kw
        if cap_w is None or node_kw is None:
            continue
        if cap_w * nodes.accelerators_per_node > node_kw * KW:
            what = f"{nodes.accelerators_per_node} x {cap_w:g} W exceed node_max_kw {node_kw:g}"
            yield Finding(("owned", i, "accelerator_cap_w"), what, "lower one, or raise the other")


def _growth(spec: ScenarioSpec) -> Iterator[Finding]:
    growth = spec.growth
    trigger, target = growth.trigger_utilization_frac, growth.target_utilization_frac
    if trigger is not None and target is not None and target > trigger:
        what = f"got {target:g}, above the trigger with {trigger:g}: orders would never end"
        at = ("growth", "target_utilization_frac")
        yield Finding(at, what, f"must be at most {trigger:g}")
    if growth.monthly_profile is not None and not any(growth.monthly_profile):
        at = ("growth", "monthly_profile")
        yield Finding(at, "is 0 in every month", "give the busiest month a number above 0")


RULES: tuple[Callable[[ScenarioSpec], Iterator[Finding]], ...] = (
    _spreads,
    _names,
    _workloads,
    _teams,
    _policy,
    _allowed_hardware,
    _precisions,
    _offers,
    _hardware_prices,
    _site,
    _owned,
    _growth,
)
