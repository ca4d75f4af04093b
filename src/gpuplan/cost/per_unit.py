"""What a unit costs, in: a bill and what was done; out: dollars per hour, token, run, team."""

from collections.abc import Mapping

from gpuplan.cost.statement import cents, shares_of
from gpuplan.domain.money.worth import (
    HourCost,
    RunCost,
    TeamCost,
    TokenCost,
    TokenCosts,
    TokenKind,
    TokenRule,
    Tokens,
    TokenWeights,
)
from gpuplan.domain.scenario.terms import TokenPrice
from gpuplan.errors import InputError, one
from gpuplan.units import HOUR

RULE_TEXTS: dict[TokenRule, str] = {
    "accelerator time": "by the accelerator seconds that a token of each kind takes",
    "price ratio": "in the ratio of the prices of a bought service",
    "token count": "every token alike",
}


def hour_cost(
    total_usd: float, *, n_paid_accelerator_hours: float, utilization_frac: float
) -> HourCost:
    """Cost of an hour on the basis of paid and of used hours."""
    if n_paid_accelerator_hours <= 0 or not 0 < utilization_frac <= 1:
        what = f"{n_paid_accelerator_hours} hours at {utilization_frac}"
        fix = "use hours above 0 and a share in (0, 1]"
        raise one(InputError, "cost", "accelerator hours", what, fix)
    paid = total_usd / n_paid_accelerator_hours
    return HourCost(usd_per_paid_h=paid, usd_per_used_h=paid / utilization_frac)


def token_costs(total_cents: int, tokens: Tokens, weights: TokenWeights) -> TokenCosts:
    """The bill of all paid hours shared out over the tokens really served, to the cent."""
    kinds: tuple[TokenKind, ...] = ("input", "cached", "output")
    counts = (tokens.n_input, tokens.n_cached, tokens.n_output)
    loads = [
        n * w
        for n, w in zip(
            counts, (weights.input_ratio, weights.cached_ratio, weights.output_ratio), strict=True
        )
    ]
    if sum(loads) <= 0:
        raise one(InputError, "cost", "tokens", "none were served", "give the offered tokens")
    parts = tuple(
        TokenCost(
            kind=kind,
            n_tokens=n,
            cost_cents=share,
            usd_per_token=total_cents * load / sum(loads) / 100.0 / n if n else None,
        )
        for kind, n, share, load in zip(
            kinds, counts, shares_of(total_cents, loads), loads, strict=True
        )
    )
    return TokenCosts(
        rule=weights.rule, rule_text=RULE_TEXTS[weights.rule], basis="paid hours", parts=parts
    )


def time_weights(
    *, input_s_per_token: float, output_s_per_token: float, cached_frac: float = 0.0
) -> TokenWeights:
    """Weights by accelerator time; a cached token costs no prefill unless a share is given."""
    return TokenWeights(
        input_ratio=input_s_per_token,
        cached_ratio=cached_frac * input_s_per_token,
        output_ratio=output_s_per_token,
        rule="accelerator time",
    )


def price_weights(price: TokenPrice) -> TokenWeights:
    """Weights in the ratio of a bought service's prices; without a cached price input's holds."""
    cached = price.cached_usd_per_token
    return TokenWeights(
        input_ratio=price.input_usd_per_token,
        cached_ratio=price.input_usd_per_token if cached is None else cached,
        output_ratio=price.output_usd_per_token,
        rule="price ratio",
    )


def service_cents(tokens: Tokens, price: TokenPrice) -> int:
    """What a service that sells tokens would charge for the same tokens."""
    weights = price_weights(price)
    usd = tokens.n_input * weights.input_ratio + tokens.n_cached * weights.cached_ratio
    return cents(usd + tokens.n_output * weights.output_ratio)


def service_break_even_tokens(
    fixed_usd_per_month: float, price: TokenPrice, *, tokens: Tokens
) -> float:
    """Tokens a month, in this mix, above which own machines are cheaper than the service.

    Own machines are paid whether used or not; they must also be able to serve so many.
    """
    n = tokens.n_input + tokens.n_cached + tokens.n_output
    return fixed_usd_per_month / (service_cents(tokens, price) / 100.0 / n)


def run_cost(
    *,
    ideal_accelerator_hours: float,
    goodput_frac: float,
    n_accelerators: int,
    usd_per_accelerator_h: float,
    porting_usd: float = 0.0,
    other_usd: float = 0.0,
) -> RunCost:
    """One training run: hours that count, over the share of time that counts."""
    if not 0 < goodput_frac <= 1:
        fix = "use a share above 0, e.g. 0.9"
        raise one(InputError, "cost", "goodput_frac", f"got {goodput_frac}", fix)
    paid_h = ideal_accelerator_hours / goodput_frac
    return RunCost(
        n_accelerator_hours=paid_h,
        compute_usd=paid_h * usd_per_accelerator_h,
        porting_usd=porting_usd,
        other_usd=other_usd,
        wall_s=paid_h / n_accelerators * HOUR,
    )


def team_costs(
    total_cents: int,
    used_hours: Mapping[str, float],
    *,
    idle_hours: Mapping[str, float],
    free_hours: float = 0.0,
) -> tuple[TeamCost, ...]:
    """A shared bill by team: idle hours are charged to who holds them, free ones to all by share.

    The parts add up to the bill.
    """
    teams = sorted(set(used_hours) | set(idle_hours))
    held = {team: used_hours.get(team, 0.0) + idle_hours.get(team, 0.0) for team in teams}
    weights: list[float] = []
    for team in teams:
        share = held[team] / sum(held.values()) if sum(held.values()) else 1 / len(teams)
        weights += [used_hours.get(team, 0.0), idle_hours.get(team, 0.0), free_hours * share]
    if sum(weights) <= 0:
        fix = "give the hours that were paid for"
        raise one(InputError, "cost", "hours", "no hours to share out", fix)
    parts = shares_of(total_cents, weights)
    return tuple(
        TeamCost(team=team, used_cents=used, idle_cents=idle, shared_cents=shared)
        for team, used, idle, shared in zip(
            teams, parts[::3], parts[1::3], parts[2::3], strict=True
        )
    )
