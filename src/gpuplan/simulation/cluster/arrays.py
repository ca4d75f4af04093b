"""A cluster and its jobs as the arrays that the kernel works on."""

from typing import Any, NamedTuple

import numpy as np

from gpuplan.domain.cluster.cluster import (
    BLOCKINGS,
    ORDERS,
    PLACEMENTS,
    RECLAIMS,
    WITHINS,
    Cluster,
)
from gpuplan.domain.cluster.jobs import ANY, Jobs, column
from gpuplan.domain.columns import Floats, Ints
from gpuplan.simulation.cluster.kernels import state as st
from gpuplan.simulation.cluster.kernels.nodes import list_node
from gpuplan.simulation.cluster.kernels.state import Sim
from gpuplan.simulation.cluster.slices import slice_table
from gpuplan.units import MIB

WORD_BITS = 64
PLENTY = 1 << 40  # of CPUs and memory that nobody counts


class RunExtras(NamedTuple):
    """What a run has beside the stream: replicas of services as jobs, events, room for runs."""

    service_job: Ints
    service_work: Floats
    event_at: Floats
    event: Ints
    n_segments: int
    n_bins: int
    bin_s: float


def cluster_state(cluster: Cluster, jobs: Jobs, extras: RunExtras) -> tuple[Sim, Ints]:
    """Arrays of a run that has not begun, and each row's place in the stream.

    Rows stand in order of submission; places past the stream are replicas of services.
    """
    job, work, rows = job_rows(cluster, jobs, extras)
    sim = state_of(cluster, jobs, extras, job, work)
    for node in range(len(sim.node)):
        _plain(list_node)(sim, node, 1)
    return sim, rows


def job_rows(cluster: Cluster, jobs: Jobs, extras: RunExtras) -> tuple[Ints, Floats, Ints]:
    """Rows of the jobs and services that fit somewhere, and each one's place in the stream."""
    job = np.concatenate([_job_rows(cluster, jobs), extras.service_job])
    work = np.concatenate([_work_rows(cluster, jobs), extras.service_work])
    rows = np.flatnonzero(fits_somewhere(cluster, job))
    rows = rows[np.argsort(work[rows, st.ARRIVE], kind="stable")]
    return np.ascontiguousarray(job[rows]), np.ascontiguousarray(work[rows]), rows


def state_of(cluster: Cluster, jobs: Jobs, extras: RunExtras, job: Ints, work: Floats) -> Sim:
    """Arrays for these rows of jobs; no node is listed yet."""
    parts = {**_queues(cluster, job), **_places(cluster, job, jobs), **_scratch(cluster, job)}
    return Sim(
        **parts,
        job=job,
        work=work,
        real=_reals(cluster, extras),
        curve=_curves(jobs),
        event_at=extras.event_at,
        event=extras.event,
        bins=np.zeros((extras.n_bins, st.N_LAYER)),
        segment=np.zeros((extras.n_segments, st.N_SEGMENT)),
    )


def _plain(part: Any) -> Any:
    """The Python function of a part of the kernel."""
    return getattr(part, "py_func", part)


def _job_rows(cluster: Cluster, jobs: Jobs) -> Ints:
    n, needs, terms = len(jobs), jobs.needs, jobs.terms
    row = np.zeros((n, st.N_JOB), np.int64)
    gpus = np.maximum(jobs.n_accelerators, 1)
    share = np.rint(column(needs.share_frac, n, 1.0) * st.MILLI)
    row[:, st.GPUS] = gpus
    row[:, st.CURVE] = column(terms.curve, n, ANY)
    is_rigid = row[:, st.CURVE] == ANY
    row[:, st.LEAST] = np.where(is_rigid, gpus, np.minimum(column(terms.n_least, n, 1), gpus))
    row[:, st.MOST] = np.where(is_rigid, gpus, np.maximum(column(terms.n_most, n, 1), gpus))
    row[:, st.TEAM] = jobs.team
    row[:, st.PRIORITY] = column(terms.priority, n, 0)
    row[:, st.LEVEL] = column(needs.level, n, 0)
    row[:, st.PROFILE] = column(needs.profile, n, ANY)
    row[:, st.SHARE] = np.where((share < st.MILLI) | (row[:, st.PROFILE] >= 0), share, 0)
    pieces = np.where(row[:, st.SHARE] > 0, 1, gpus)
    row[:, st.CPU] = np.ceil(column(needs.n_cpus, n, 0) * st.MILLI / pieces)
    row[:, st.RAM] = np.ceil(column(needs.ram_bytes, n, 0) / MIB / pieces)
    row[:, st.IS_FIXED] = column(terms.is_fixed, n, 0)
    row[:, st.POOLS] = _allowed(cluster, jobs)
    row[:, [st.ENTRY, st.POOL, st.FIRST_NODE]] = -1
    return row


def _allowed(cluster: Cluster, jobs: Jobs) -> Ints:
    """Pools of the wanted GPU type, one bit each; all of them where any will do."""
    names = jobs.needs.accelerator_names
    every = [group.accelerator for group in cluster.groups]
    bits = [sum(1 << p for p, one in enumerate(every) if one == name) for name in names]
    table = np.array([*bits, (1 << len(every)) - 1], np.int64)  # ANY is the last
    return table[column(jobs.needs.accelerator, len(jobs), ANY).astype(np.int64)]


def _work_rows(cluster: Cluster, jobs: Jobs) -> Floats:
    n, terms, defaults = len(jobs), jobs.terms, cluster.defaults
    row = np.zeros((n, st.N_WORK))
    row[:, st.ARRIVE] = jobs.arrive_s
    row[:, st.WORK] = row[:, st.LEFT] = jobs.duration_s
    known = jobs.duration_s * (defaults.limit_ratio or 1.0)
    row[:, st.LIMIT] = terms.limit_s if len(terms.limit_s) else known
    row[:, st.DEADLINE] = column(terms.deadline_s, n, st.NEVER)
    row[:, st.CHECKPOINT] = column(terms.checkpoint_s, n, defaults.checkpoint_s)
    row[:, st.RESTART] = column(terms.restart_s, n, defaults.restart_s)
    row[:, [st.FIRST, st.END]] = np.nan
    return row


def fits_somewhere(cluster: Cluster, job: Ints) -> Any:
    """Whether some group could ever hold the job, were it empty and its team alone."""
    fits = np.zeros(len(job), bool)
    quotas = _quotas(cluster)
    flavors = list(cluster.accelerators)
    for p, group in enumerate(cluster.groups):
        is_allowed = (job[:, st.POOLS] >> p) & 1 == 1
        size, least = group.n_accelerators_per_node, job[:, st.LEAST]
        cpu = PLENTY if group.n_cpus is None else group.n_cpus * st.MILLI
        ram = PLENTY if group.ram_bytes is None else group.ram_bytes / MIB
        most = np.where(job[:, st.SHARE] > 0, 1, np.minimum(least, size))
        fits_host = (job[:, st.CPU] * most <= cpu) & (job[:, st.RAM] * most <= ram)
        units = np.where(job[:, st.SHARE] > 0, job[:, st.SHARE], least * st.MILLI)
        q = quotas[:, flavors.index(group.accelerator)]
        reach = q[:, st.NOMINAL] + np.where(_has_cohort(cluster), q[:, st.BORROW], 0)
        is_service = job[:, st.IS_SERVICE] == 1
        in_quota = is_service | (units <= reach[job[:, st.TEAM]])
        fits |= is_allowed & fits_host & in_quota & (least <= group.n_accelerators)
    return fits


def _has_cohort(cluster: Cluster) -> Any:
    return np.array([team.cohort is not None for team in cluster.teams], bool)


def _nodes(cluster: Cluster) -> Ints:
    rows = []
    rack0 = zone0 = 0
    for p, group in enumerate(cluster.groups):
        i = np.arange(group.n_nodes)
        rack = i // (group.n_nodes_per_rack or max(1, group.n_nodes))
        zone = rack // (group.n_racks_per_zone or max(1, group.n_nodes))
        row = np.zeros((group.n_nodes, st.N_NODE), np.int64)
        row[:, st.NODE_POOL], row[:, st.FREE] = p, group.n_accelerators_per_node
        row[:, st.CPU_FREE] = PLENTY if group.n_cpus is None else group.n_cpus * st.MILLI
        row[:, st.RAM_FREE] = PLENTY if group.ram_bytes is None else group.ram_bytes / MIB
        row[:, st.RACK], row[:, st.ZONE] = rack0 + rack, zone0 + zone
        if group.n_nodes:
            rack0, zone0 = rack0 + int(rack[-1]) + 1, zone0 + int(zone[-1]) + 1
        rows.append(row)
    return np.concatenate(rows)


def _pools(cluster: Cluster) -> Ints:
    pool = np.zeros((len(cluster.groups), st.N_POOL), np.int64)
    flavors = list(cluster.accelerators)
    for p, group in enumerate(cluster.groups):
        pool[p, st.SIZE] = group.n_accelerators_per_node
        pool[p, st.FLAVOR] = flavors.index(group.accelerator)
    return pool


def _quotas(cluster: Cluster) -> Ints:
    """By team and GPU type; a team without any quota is limited by the hardware alone."""
    flavors = list(cluster.accelerators)
    quota = np.zeros((max(1, len(cluster.teams)), len(flavors), 4), np.int64)
    quota[:, :, st.BORROW] = quota[:, :, st.LEND] = st.UNLIMITED
    for t, team in enumerate(cluster.teams):
        if not team.quotas:
            quota[t, :, st.NOMINAL] = st.UNLIMITED if team.cohort is None else 0
        for one in team.quotas:
            q = quota[t, flavors.index(one.accelerator)]
            q[st.NOMINAL] = round(one.n_accelerators * st.MILLI)
            if one.n_borrow is not None:
                q[st.BORROW] = round(one.n_borrow * st.MILLI)
            if one.n_lend is not None:
                q[st.LEND] = round(one.n_lend * st.MILLI)
    return quota


def _queues(cluster: Cluster, job: Ints) -> dict[str, Any]:
    """Teams, and a list for every queue, for services and for what runs."""
    order = ORDERS.index(cluster.policy.order)
    n_teams, is_by_team = len(cluster.teams), order >= st.FAIR
    n_queues = n_teams if is_by_team else 1
    is_service = job[:, st.IS_SERVICE] == 1
    queue = np.where(is_service, n_queues, job[:, st.TEAM] if is_by_team else 0)
    sizes = [*np.bincount(queue, minlength=n_queues + 1), len(job)]
    lists = np.zeros((n_queues + 2, 4), np.int64)
    lists[:, st.CAP] = [2 * size + 4 for size in sizes]
    lists[:, st.LOW] = np.cumsum(lists[:, st.CAP]) - lists[:, st.CAP]
    lists[:, st.HEAD] = lists[:, st.LOW] + lists[:, st.CAP] // 2
    cohorts = {
        c: i for i, c in enumerate(dict.fromkeys(t.cohort for t in cluster.teams if t.cohort))
    }
    team = np.zeros((max(1, n_teams), st.N_TEAM), np.int64)
    team[:, st.COHORT] = [cohorts.get(t.cohort or "", -1) for t in cluster.teams] or -1
    usage = np.zeros((max(1, n_teams), 3))
    usage[:, st.WEIGHT] = [t.share_ratio for t in cluster.teams] or 1.0
    n_store = int(lists[:, st.CAP].sum())
    return {
        "rule": _rules(cluster, order, n_queues),
        "team": team,
        "usage": usage,
        "list_of": lists,
        "list_key": np.zeros(n_store),
        "list_item": np.zeros(n_store, np.int64),
        "heap": np.zeros(len(job) + 1, np.int64),
    }


def _rules(cluster: Cluster, order: int, n_queues: int) -> Ints:
    policy, burst = cluster.policy, cluster.burst
    rule = np.zeros(st.N_RULE, np.int64)
    rule[st.ORDER], rule[st.BLOCKING] = order, BLOCKINGS.index(policy.blocking)
    rule[st.DEPTH], rule[st.PLACEMENT] = policy.depth, PLACEMENTS.index(policy.placement)
    rule[st.PREEMPTS], rule[st.SAVES] = policy.preempts, policy.saves_on_preemption
    rule[st.N_QUEUES], rule[st.N_TEAMS] = n_queues, len(cluster.teams)
    rule[st.RECLAIM], rule[st.WITHIN] = (
        RECLAIMS.index(policy.reclaim),
        WITHINS.index(policy.within),
    )
    if burst is not None:
        rule[st.BURST_GPUS] = burst.above_queued_accelerators
        rule[st.CLOUD_GPUS] = burst.n_accelerators
    n_nodes = sum(group.n_nodes for group in cluster.groups)
    rule[st.WORDS] = (n_nodes + WORD_BITS - 1) // WORD_BITS
    cpus = sum((g.n_cpus or 0.0) * g.n_nodes for g in cluster.groups)
    ram = sum((g.ram_bytes or 0.0) * g.n_nodes for g in cluster.groups)
    rule[st.TOTAL_CPU] = round(cpus * st.MILLI) or PLENTY
    rule[st.TOTAL_RAM] = round(ram / MIB) or PLENTY
    rule[st.TOTAL_GPUS] = cluster.n_accelerators * st.MILLI
    return rule


def _reals(cluster: Cluster, extras: RunExtras) -> Floats:
    speeds = [group.speed_ratio or 1.0 for group in cluster.groups]
    real = np.array([0.0] * st.N_REAL + speeds)
    real[st.HALF_LIFE] = cluster.policy.half_life_s
    real[st.BIN] = extras.bin_s
    real[st.CLOUD_SPEED] = 1.0
    if cluster.burst is not None:
        real[st.CLOUD_DELAY] = cluster.burst.start_s
        real[st.CLOUD_SPEED] = cluster.burst.speed_ratio
    return real


def _places(cluster: Cluster, job: Ints, jobs: Jobs) -> dict[str, Any]:
    """Nodes, pools, quotas and shared GPUs."""
    node = _nodes(cluster)
    most = max(group.n_accelerators_per_node for group in cluster.groups)
    words = (len(node) + WORD_BITS - 1) // WORD_BITS
    n_shared = int((job[:, st.SHARE] > 0).sum())
    entry = np.zeros((cluster.n_accelerators + n_shared + 1, 3), np.int64)
    entry[:, st.NEXT] = np.arange(1, len(entry) + 1)
    return {
        "node": node,
        "pool": _pools(cluster),
        "quota": _quotas(cluster),
        "bits": np.zeros((len(cluster.groups), most + 1, words), np.uint64),
        "at": np.zeros((len(cluster.groups), most + 1), np.int64),
        "mig": slice_table(cluster.groups, jobs.needs.profile_names),
        "slot": np.zeros((cluster.n_accelerators if n_shared else 1, st.N_SLOT), np.int64),
        "entry": entry,
    }


def _scratch(cluster: Cluster, job: Ints) -> dict[str, Any]:
    n_nodes, policy = sum(group.n_nodes for group in cluster.groups), cluster.policy
    is_profiled = policy.blocking == "conservative"
    n_breaks = len(job) + 2 * min(policy.depth, len(job)) + 4 if is_profiled else 1
    return {
        "counter": np.zeros(st.N_COUNTER, np.int64),
        "clock": np.zeros(2),
        "scratch": np.zeros((st.N_SCRATCH, n_nodes), np.int64),
        "victim": np.zeros((2, len(job) + 1), np.int64),
        "breaks": np.zeros((1 + len(cluster.groups), n_breaks)),
        "after": np.zeros(n_breaks, np.int64),
    }


def _curves(jobs: Jobs) -> Floats:
    """Speed by GPUs of every scaling curve; one row more, so that none is a shape as well."""
    curves = jobs.terms.curves
    table = np.ones((len(curves) + 1, max((len(c) for c in curves), default=1)))
    for i, curve in enumerate(curves):
        table[i, : len(curve)] = curve
        table[i, len(curve) :] = curve[-1]
    return table
