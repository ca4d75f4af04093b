"""A good start for many scenarios: the relaxed problem of their mean, which is so much smaller.

Its prices, times the probability of each scenario, are lawful prices of the whole problem: an order
serves all scenarios, and what it is worth is shared out among them.
"""

from dataclasses import replace

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.selection.master import open_master, pool_rows, solve_relaxed
from gpuplan.selection.program import Model, model
from gpuplan.selection.tables import Tables, Terms, tables


def mean_tables(full: Tables) -> Tables:
    """One scenario: the mean of all, by probability."""
    problem = full.problem
    time = replace(problem.horizon, probability_frac=floats([1.0]), n_shared_periods=None)
    steady = tuple(replace(terms, price_ratio=None) for terms in problem.terms)
    # Profiles are taken from the tables below; the nouns would have to be whole numbers.
    bare = replace(problem, horizon=time, terms=steady, options=(), deferrable=(), limits=())
    weight = problem.horizon.probability_frac
    return replace(
        full,
        problem=replace(bare, options=problem.options, deferrable=problem.deferrable),
        need=np.einsum("s,osqh->oqh", weight, full.need)[:, None],
        work=np.einsum("s,wsq->wq", weight, full.work)[:, None],
        orders=tables(bare).orders,
        burst=_mean_terms(full.burst, weight),
        spot=_mean_terms(full.spot, weight),
    )


def _mean_terms(terms: Terms, weight: Floats) -> Terms:
    mean = np.einsum("s,msq->mq", weight, terms.usd_per_h)[:, None]
    return replace(terms, usd_per_h=mean)


def mean_prices(built: Model) -> Floats | None:
    """[row] prices of a problem with scenarios, from its mean; None where that has no answer."""
    tab = built.tab
    mean = model(mean_tables(tab), integer=False)
    master = open_master(mean)
    found = solve_relaxed(master)
    if not np.isfinite(found.objective):
        return None
    weight = tab.problem.horizon.probability_frac
    prices = np.zeros(built.program.n_rows)
    for (rows, _), (mean_rows, _) in zip(pool_rows(built), pool_rows(mean), strict=True):
        shape = (1, len(weight)) + (1,) * (rows.ndim - 2)
        prices[rows] = master.best[mean_rows] * weight.reshape(shape)
    return prices
