"""Policy and prices as nouns: what is more than a change of unit."""

from collections.abc import Sequence

from gpuplan.domain.model.precision import format_named
from gpuplan.domain.scenario.build import BuildRules
from gpuplan.domain.scenario.terms import Policy, Prices, Purchase, StatedOffer
from gpuplan.errors import InvariantError, one
from gpuplan.inputs.scenario.assumptions import Assumptions
from gpuplan.inputs.schema.build import BuildSpec
from gpuplan.inputs.schema.nouns import noun_of, range_of
from gpuplan.inputs.schema.scenario import ScenarioSpec
from gpuplan.inputs.schema.terms import OfferSpec, PricesSpec

RENTED: tuple[Purchase, ...] = ("on_demand", "reserved", "capacity_block")


def policy(spec: ScenarioSpec, assumptions: Assumptions) -> Policy:
    """The policy with the design rules; the purchase options that had to be assumed are noted."""
    return noun_of(
        spec.policy,
        Policy,
        precisions=precision_names(spec.policy.precisions),
        purchases=_purchases(spec, assumptions),
        build=_build(spec.build),
    )


def precision_names(names: Sequence[str] | None) -> tuple[str, ...]:
    """The formats' own names, each once."""
    found = [format_named(name) for name in names or ()]
    return tuple(dict.fromkeys(form.name for form in found if form is not None))


def _purchases(spec: ScenarioSpec, assumptions: Assumptions) -> tuple[Purchase, ...]:
    """What is listed; else everything rented, and bought where a price of hardware is given."""
    if spec.policy.purchases is not None:
        return tuple(dict.fromkeys(spec.policy.purchases))
    is_priced = spec.prices.hardware or any(x.purchase == "owned" for x in spec.prices.offers)
    bought: tuple[Purchase, ...] = ("owned",) if is_priced else ()
    spot: tuple[Purchase, ...] = ("spot",) if spec.policy.spot_allowed else ()
    allowed = (*RENTED, *bought, *spot)
    parts = ["spot can be reclaimed"] if not spot else []
    parts += [] if bought else ["buying is compared where owned is listed or a price is given"]
    what, why = "Purchase options that may be used", "; ".join(parts) or "every option"
    assumptions.add(("policy", "purchases"), list(allowed), why, what=what)
    return allowed


def _build(spec: BuildSpec) -> BuildRules:
    """The usual rules with those of the user in their place, and which those are."""
    given = [f"{part}.{name}" for part, rules in spec for name in rules.model_fields_set]
    return noun_of(spec, BuildRules, given=frozenset(given))


def prices(spec: PricesSpec) -> Prices:
    """The user's prices; those of accelerators become prices of whole nodes."""
    return noun_of(spec, Prices, offers=tuple(_offer(offer) for offer in spec.offers))


def _offer(spec: OfferSpec) -> StatedOffer:
    if spec.usd_per_node_h is not None:
        price = range_of(spec.usd_per_node_h)
    elif spec.usd_per_accelerator_h is not None:
        price = range_of(spec.usd_per_accelerator_h, spec.accelerators_per_node)
    else:
        fix = "this is a defect of gpuplan; please report it"
        what = f"offer of {spec.accelerator} passed the checks without a price"
        raise one(InvariantError, "scenario", "prices.offers", what, fix)
    name = spec.name or spec.accelerator
    return noun_of(spec, StatedOffer, name=name, price_usd_per_h=price)
