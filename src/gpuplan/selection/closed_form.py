"""Own or rent by the hour, in closed form: the marginal node. An oracle, not a second path."""

from gpuplan.domain.columns import Floats, Ints


def owned_base(
    n_needed: Ints, weight: Floats, *, own_usd_per_h: float, rent_usd_per_h: float
) -> tuple[int, float]:
    """How many nodes to own, and the cost of that over all hours.

    Node k is worth owning if it is needed for a larger share of the hours than the ratio of the
    two prices; need only falls with k, so the answer is the last such k.
    """
    total_h = float(weight.sum())
    most = int(n_needed.max(initial=0))
    owned = 0
    for k in range(1, most + 1):
        needed_h = float(weight[n_needed >= k].sum())
        if needed_h * rent_usd_per_h > total_h * own_usd_per_h:
            owned = k
    rented_h = float((weight * (n_needed - owned).clip(min=0)).sum())
    return owned, owned * total_h * own_usd_per_h + rented_h * rent_usd_per_h
