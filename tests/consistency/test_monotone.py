"""More demand or tighter SLOs never make a plan cheaper; a looser limit never makes it dearer."""

from copy import deepcopy

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from consistency.plans import planned
from consistency.strategies import KINDS, cards, finetunings, scenario, served

FEW = settings(settings.get_profile("consistency"), max_examples=8)
SLACK = 1.0 + 1e-9
# Two sizes of one fleet are simulated apart: a replica more or less is within chance.
CHANCE = 1.0 + 1e-6


def cost(tree):
    """What the plan costs by the month; None without a plan."""
    plan = planned(tree).plan
    return None if plan is None else plan.cost_usd_per_month.value


def priced(tree, usd):
    """The scenario at one price of one's own."""
    [card] = tree["policy"]["accelerators"]["allowed"]
    offer = {"accelerator": card, "usd_per_accelerator_h": usd}
    return {**tree, "prices": {"offers": [offer]}, "policy": {**tree["policy"]}}


@FEW
@given(KINDS["chat"], st.sampled_from([1.5, 4.0]))
def test_more_demand_is_never_cheaper(tree, factor):
    more = deepcopy(tree)
    more["workloads"][0]["demand"]["requests_per_s"] *= factor
    few, many = cost(tree), cost(more)
    assume(few is not None and many is not None)
    assert many * CHANCE >= few


@FEW
@given(served(), st.sampled_from(["ttft_p95_ms", "tpot_p95_ms"]), cards(most=1))
def test_a_tighter_slo_is_never_cheaper(work, key, allowed):
    loose = deepcopy(work)
    loose["slo"][key] *= 2
    tight, wide = cost(scenario(work, allowed=allowed)), cost(scenario(loose, allowed=allowed))
    assume(tight is not None)
    assert wide is not None, "a looser SLO has no plan"
    assert tight * CHANCE >= wide


@FEW
@given(served(), cards(("H100", "L40S", "A100"), most=1), st.sampled_from([1.25, 3.0]))
def test_one_price_scales_the_bill_and_changes_nothing_else(work, allowed, factor):
    tree = scenario(work, allowed=allowed)
    cheap, dear = planned(priced(tree, 2.0)), planned(priced(tree, 2.0 * factor))
    assume(cheap.plan is not None)
    before, after = cheap.plan.pools[0], dear.plan.pools[0]
    assert (before.n_replicas, before.layout) == (after.n_replicas, after.layout)
    ratio = dear.plan.cost_usd_per_month.value / cheap.plan.cost_usd_per_month.value
    assert abs(ratio - factor) < 1e-6 * factor


@FEW
@given(KINDS["chat"])
def test_a_budget_of_the_plans_own_cost_changes_nothing(tree):
    free = planned(tree)
    assume(free.plan is not None)
    usd = free.plan.cost_usd_per_month.value
    bound = planned({**tree, "budget": {"usd_per_month": usd * 1.001}})
    assert bound.plan is not None
    assert bound.plan.cost_usd_per_month.value <= usd * SLACK
    less = planned({**tree, "budget": {"usd_per_month": usd * 0.5}})
    assert less.plan is None or less.plan.cost_usd_per_month.value <= usd * 0.5 * SLACK


@FEW
@given(KINDS["chat"], st.sampled_from(["B200", "L4", "MI300X"]))
def test_one_more_accelerator_to_choose_from_is_never_dearer(tree, other):
    allowed = tree["policy"]["accelerators"]["allowed"]
    assume(other not in allowed)
    wider = deepcopy(tree)
    wider["policy"]["accelerators"]["allowed"] = [*allowed, other]
    few, many = cost(tree), cost(wider)
    assume(few is not None)
    assert many is not None
    assert many <= few * SLACK


@FEW
@given(finetunings(), st.sampled_from([2.0, 10.0]))
def test_more_tokens_are_never_cheaper(tree, factor):
    more = deepcopy(tree)
    more["workloads"][0]["training"]["tokens"] *= factor
    few, many = planned(tree).plan, planned(more).plan
    assume(few is not None and many is not None)
    assert many.total_usd * SLACK >= few.total_usd


@FEW
@given(finetunings(), st.sampled_from([2.0, 5.0]))
def test_a_later_deadline_is_never_dearer(tree, factor):
    later = deepcopy(tree)
    later["workloads"][0]["training"]["deadline_days"] *= factor
    soon, late = planned(tree).plan, planned(later).plan
    assume(soon is not None)
    assert late is not None
    assert late.total_usd <= soon.total_usd * SLACK
