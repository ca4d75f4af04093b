"""Runs and jobs in the idle hours of services, in: what services chose; out: the runs beside them.

Nodes that services hold at all hours are paid for whether they are busy or not. A run that ends in
time in the hours in which enough of them are idle needs no nodes of its own: its bill is nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import NamedTuple

import numpy as np

from gpuplan.domain.columns import Floats, floats
from gpuplan.domain.money.rates import NodeRate, PriceEvidence, RateTerms
from gpuplan.domain.plan.sizing import SizedJob, Sizing
from gpuplan.domain.ranges import exactly
from gpuplan.domain.scenario.scenario import Scenario
from gpuplan.domain.scenario.workload import Serving, Workload
from gpuplan.selection.choose import best
from gpuplan.selection.program.solver import Effort
from gpuplan.studies.market.offers import indexed
from gpuplan.studies.market.ranks import RentedServer
from gpuplan.studies.planning.chosen import Choice
from gpuplan.studies.planning.deferrable import is_recurring
from gpuplan.studies.planning.groups import SolvedGroup
from gpuplan.studies.planning.inputs import PlanInputs
from gpuplan.studies.planning.options import FleetTable, fleet_table
from gpuplan.studies.planning.owned_first import with_kinds
from gpuplan.studies.planning.runs import as_fleets
from gpuplan.studies.sizing.workload import size_workload
from gpuplan.units import DAY, HOUR, MINUTE

# Assumption: lost each day to a checkpoint, the model's load and its restart.
WINDOW_S = 10 * MINUTE
LEAST_H_PER_DAY = 1.0  # below, starting and stopping eats the window
TIE = 1e-9
N_LEVELS = 3  # of idle accelerators that are tried in a pool, the most first


class IdleWindow(NamedTuple):
    """Accelerators of a pool that services leave idle, and for how long each day."""

    pool: str
    n_accelerators: int
    h_per_day: float

    @property
    def useful_s(self) -> float:
        """Of each day, after what starting and stopping takes."""
        return max(0.0, self.h_per_day * HOUR - WINDOW_S)

    @property
    def closed_s(self) -> float:
        """Of each day in which the run stands still, or starts and stops."""
        return DAY - self.useful_s

    def wall_s(self, work_s: float) -> float:
        """Until so much work is done, where the window has just closed when it is given."""
        return ceil(work_s / self.useful_s - TIE) * self.closed_s + work_s

    def work_s(self, wall_s: float) -> float:
        """What is done by then at the least."""
        n_days, rest_s = divmod(wall_s, DAY)
        return n_days * self.useful_s + max(0.0, rest_s - self.closed_s)


class SharedRun(NamedTuple):
    """A run in a window, as sized for it."""

    sizing: Sizing
    job: SizedJob  # on the clock of the window
    server: RentedServer
    window: IdleWindow
    work_s: float  # of one run, where nothing stands still


def in_idle_hours(
    inputs: PlanInputs, host: SolvedGroup, runs: Sequence[Sizing]
) -> SolvedGroup | None:
    """All runs one after the other in idle hours of one pool; None where they do not end in time.

    Whoever wants the shortest time, or less energy or carbon, does not wait for idle hours.
    """
    if inputs.scenario.objective != "cost" or inputs.request.is_check:
        return None
    for window in idle_windows(host.choice):
        found = _in_window(inputs, host.choice, window, [run.workload for run in runs])
        if found is not None:
            return _group(inputs, found, n_rounds=host.n_rounds)
    return None


def idle_windows(host: Choice) -> Iterator[IdleWindow]:
    """Every pool with the most accelerators that are idle at once for some hours of the day."""
    hour_s = np.asarray(host.table.problem.horizon.hour_s)
    for pool in host.table.problem.pools:
        idle = idle_accelerators(host, pool.name)
        for n in sorted({int(each) for each in idle if each >= 1}, reverse=True)[:N_LEVELS]:
            share = float(hour_s[idle >= n].sum() / hour_s.sum())
            if share * 24.0 >= LEAST_H_PER_DAY:
                yield IdleWindow(pool.name, n, share * 24.0)


def idle_accelerators(host: Choice, pool: str) -> Floats:
    """[hour] accelerators that are held and not needed, in the fullest of all periods."""
    size = host.pool(pool).n_accelerators_per_node
    shape = host.table.problem.horizon.shape[1:]
    provisioned = sum(
        (h.n_nodes[0] for h in host.selection.provisioned if h.pool == pool), np.zeros(shape)
    )
    mine = [option for option in host.selection.chosen if option.pool == pool]
    need = sum((option.need[0] + option.n_reserve for option in mine), np.zeros(shape))
    is_cut = any(option.slice_kind for option in mine)
    return floats(np.zeros(shape[1]) if is_cut else (provisioned * size - need).min(axis=0))


def _in_window(
    inputs: PlanInputs, host: Choice, window: IdleWindow, names: Sequence[str]
) -> list[SharedRun] | None:
    """Each run after the one before it, the earliest deadline first; None where one is late."""
    server = _server(inputs, host, window)
    works = [inputs.scenario.workload(name) for name in names]
    if server is None or window.useful_s <= 0:
        return None
    found: list[SharedRun] = []
    for work in sorted((w for w in works if w), key=lambda work: work.deadline_s or np.inf):
        before_s = sum(_work_s(run, inputs.scenario, work.deadline_s) for run in found)
        sizing = _sized(inputs, work, server, window, before_s=before_s)
        if sizing is None or not sizing.jobs:
            return None
        quickest = min(sizing.jobs, key=lambda job: job.wall_s.value)
        job = _on_the_clock(quickest, window, before_s=before_s)
        found.append(SharedRun(sizing, job, server, window, quickest.wall_s.value))
    return found


def _work_s(run: SharedRun, scenario: Scenario, deadline_s: float | None) -> float:
    """What a run takes of the window before a deadline: once, or as often as its schedule says."""
    work = scenario.workload(run.sizing.workload)
    if work is None or work.interval_s is None or deadline_s is None:
        return run.work_s
    return run.work_s * ceil(deadline_s / work.interval_s - TIE)


def _server(inputs: PlanInputs, host: Choice, window: IdleWindow) -> RentedServer | None:
    """The servers of the pool as runs may stand on them, so many of them as are idle."""
    pool = host.pool(window.pool)
    size = pool.n_accelerators_per_node
    is_own = pool.n_nodes_existing > 0 or window.pool.endswith("(own)")
    kinds = [
        server
        for server in inputs.around.servers
        if server.node.accelerator == pool.accelerator and server.node.n_accelerators == size
    ]
    if not kinds:
        return None
    kind = min(kinds, key=lambda server: server.is_own != is_own)
    n_nodes = window.n_accelerators // size
    if n_nodes:
        most = kind.n_most
        return kind._replace(n_most=n_nodes if most is None else min(most, n_nodes))
    # Parts of a server: as many of its accelerators as ranks divide evenly.
    n = 1 << (window.n_accelerators.bit_length() - 1)
    return kind._replace(node=replace(kind.node, n_accelerators=n), n_most=1)


def _sized(
    inputs: PlanInputs, work: Workload, server: RentedServer, window: IdleWindow, *, before_s: float
) -> Sizing | None:
    """The run on idle servers alone, with the useful part of the time that is left to it."""
    around = replace(inputs.around, servers=(server,))
    n_most = (server.n_most or 0) * server.node.n_accelerators
    scenario = with_kinds(inputs.scenario, (server.node.accelerator,))
    scenario = replace(scenario, policy=replace(scenario.policy, n_accelerators_max=n_most))
    deadline_s, what = work.deadline_s, work.work
    if deadline_s is not None and not isinstance(what, Serving):
        left_s = window.work_s(deadline_s) - before_s
        if left_s <= 0:
            return None
        work = replace(work, work=replace(what, deadline_s=left_s))
    found = size_workload(work, scenario, around)
    return replace(found, jobs=tuple(j for j in found.jobs if j.n_accelerators <= n_most))


def _on_the_clock(job: SizedJob, window: IdleWindow, *, before_s: float) -> SizedJob:
    """The job with the days that it takes in idle hours, after the work before it."""
    wall = replace(
        job.wall_s,
        value=window.wall_s(before_s + job.wall_s.value),
        low=window.wall_s(before_s + job.wall_s.low),
        high=window.wall_s(before_s + job.wall_s.high),
    )
    notes = (
        f"time-sharing: it runs in the {window.h_per_day:.3g} hours a day in which services leave "
        f"{window.n_accelerators} accelerators of {window.pool} idle; the nodes are paid for by "
        "the services, electricity beyond their mean draw is not counted",
    )
    return replace(job, wall_s=wall, remarks=(*notes, *job.remarks))


def _group(inputs: PlanInputs, runs: Sequence[SharedRun], *, n_rounds: int) -> SolvedGroup | None:
    """The runs as a group whose nodes cost nothing more."""
    sizings = as_fleets(inputs.scenario, [replace(run.sizing, jobs=(run.job,)) for run in runs])
    table = _table(inputs.scenario, inputs, sizings, runs[0])
    found = best(table.problem, Effort())  # nodes without a price are meant
    if found is None:
        return None
    repeats, host = is_recurring(inputs.scenario, sizings), runs[0].window.pool
    choice = Choice(table=table, selection=found, is_jobs=True, host=host, repeats=repeats)
    return SolvedGroup(choice, sizings, n_rounds)


def _table(
    scenario: Scenario, inputs: PlanInputs, sizings: Sequence[Sizing], run: SharedRun
) -> FleetTable:
    """The idle nodes as the only ones, free and within limits that services are held to."""
    rate = NodeRate(
        id=f"idle hours of {run.window.pool}",
        node=run.server.node,
        purchase="on_demand",
        price_usd_per_h=exactly(0.0),
        parts=(),
        evidence=PriceEvidence(source="user", note="paid for by the services"),
        terms=RateTerms(n_nodes_max=run.server.n_most),
    )
    market = indexed(inputs.market._replace(rates=(rate,), standing=(), porting_usd={}))
    table = fleet_table(scenario, inputs.catalog, sizings, market=market, is_jobs=True)
    problem = replace(table.problem, limits=(), site_usd_per_h=0.0)
    return table._replace(problem=problem)
