"""Unit costs: what a bill means per token and per team, and what a token service would charge."""

from collections.abc import Mapping

from gpuplan.cost.statement import cents, shares_of
from gpuplan.domain.money.worth import (
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

RULE_TEXTS: dict[TokenRule, str] = {
    "accelerator time": "by the accelerator seconds that a token of each kind takes",
    "price ratio": "in the ratio of the prices of a token service",
    "token count": "every token alike",
}


def token_costs(total_cents: int, tokens: Tokens, weights: TokenWeights) -> TokenCosts:
    """The bill of all paid hours split over the tokens served, exact to the cent."""
    counts: dict[TokenKind, float] = {
        "input": tokens.n_input,
        "cached": tokens.n_cached,
        "output": tokens.n_output,
    }
    ratios = (weights.input_ratio, weights.cached_ratio, weights.output_ratio)
    loads = [n * ratio for n, ratio in zip(counts.values(), ratios, strict=True)]
    if sum(loads) <= 0:
        raise one(InputError, "cost", "tokens", "none were served", "give the offered tokens")
    split = shares_of(total_cents, loads)
    parts = tuple(
        TokenCost(
            kind=kind,
            n_tokens=n,
            cost_cents=share,
            usd_per_token=total_cents * load / sum(loads) / 100.0 / n if n else None,
        )
        for (kind, n), share, load in zip(counts.items(), split, loads, strict=True)
    )
    return TokenCosts(
        rule=weights.rule, rule_text=RULE_TEXTS[weights.rule], basis="paid hours", parts=parts
    )


def price_weights(price: TokenPrice) -> TokenWeights:
    """Weights in the ratio of a service's prices; without a cached price the input price holds."""
    cached = price.cached_usd_per_token
    return TokenWeights(
        input_ratio=price.input_usd_per_token,
        cached_ratio=price.input_usd_per_token if cached is None else cached,
        output_ratio=price.output_usd_per_token,
        rule="price ratio",
    )


def service_cents(tokens: Tokens, price: TokenPrice) -> int:
    """The charge of a token service for the same tokens."""
    weights = price_weights(price)
    usd = tokens.n_input * weights.input_ratio + tokens.n_cached * weights.cached_ratio
    return cents(usd + tokens.n_output * weights.output_ratio)


def team_costs(
    total_cents: int,
    used: Mapping[str, float],
    *,
    idle: Mapping[str, float],
    unassigned: float = 0.0,
) -> tuple[TeamCost, ...]:
    """A shared bill by team, split in the ratio of used, idle and unassigned amounts.

    Idle capacity is charged to the team that holds it, unassigned capacity to all teams by what
    they hold. The parts add up to the bill.
    """
    teams = sorted({*used, *idle})
    retained = {team: used.get(team, 0.0) + idle.get(team, 0.0) for team in teams}
    whole = sum(retained.values())
    weights: list[float] = []
    for team in teams:
        share = retained[team] / whole if whole else 1 / len(teams)
        weights += [used.get(team, 0.0), idle.get(team, 0.0), unassigned * share]
    if sum(weights) <= 0:
        fix = "give the hours or the cost of each team"
        raise one(InputError, "cost", "teams", "there is nothing to split", fix)
    parts = iter(shares_of(total_cents, weights))
    return tuple(
        TeamCost(team=team, used_cents=used_cents, idle_cents=idle_cents, shared_cents=shared)
        for team, used_cents, idle_cents, shared in zip(teams, parts, parts, parts, strict=True)
    )
