"""A stream is replayed part by part as it would be whole, in bounded memory."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gpuplan.domain.cluster.answer import ClusterRequest
from gpuplan.domain.cluster.cluster import (
    CloudBurst,
    Cluster,
    NodeFailures,
    NodeGroup,
    SchedulingPolicy,
)
from gpuplan.errors import InputError
from gpuplan.inputs.jobs.read import job_parts, read_jobs
from gpuplan.simulation.cluster.run import simulate_cluster, with_all_teams
from gpuplan.simulation.cluster.stream import ClusterStream
from gpuplan.studies.cluster import stream as stream_study
from gpuplan.studies.cluster.stream import Sketch, simulate_jobs

FILE = """version: 1
name: streamed
nodes:
  - {accelerator: A100-SXM-80GB, nodes: 3, accelerators_per_node: 8, usd_per_accelerator_h: 2.0}
  - {accelerator: L4, nodes: 4, accelerators_per_node: 2, usd_per_accelerator_h: 0.5}
teams: [{name: t1, wait_p90_min: 10}]
"""
GROUPS = (
    NodeGroup(accelerator="A100", n_nodes=3, n_accelerators_per_node=8),
    NodeGroup(accelerator="L4", n_nodes=4, n_accelerators_per_node=2),
)
DISTURBED = {
    "failures": NodeFailures(mtbf_s=4e4, mttr_s=3e3),
    "burst": CloudBurst(above_queued_accelerators=20, n_accelerators=8, start_s=60.0),
}
POLICIES = {
    "strict": SchedulingPolicy(blocking="strict"),
    "easy": SchedulingPolicy(),
    "conservative": SchedulingPolicy(blocking="conservative"),
    "priority": SchedulingPolicy(order="priority", preempts=True),
    "fair": SchedulingPolicy(order="fair", blocking="skip"),
    "kueue": SchedulingPolicy(order="kueue", blocking="skip", preempts=True),
}


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> Path:
    rng, n = np.random.default_rng(3), 600
    gpus = rng.choice([1, 2, 4, 8, 16, 999], n, p=[0.6, 0.15, 0.1, 0.1, 0.04, 0.01])
    is_shared = (gpus == 1) & (rng.random(n) < 0.3)
    table = pl.DataFrame(
        {
            "submit_s": np.cumsum(rng.exponential(90.0, n)),
            "duration_s": rng.lognormal(5.5, 1.5, n),
            "gpus": gpus,
            "share_frac": np.where(is_shared, 0.5, 1.0),
            "team": [f"t{k}" for k in rng.integers(0, 4, n)],
            "priority": rng.integers(0, 3, n),
        }
    )
    path = tmp_path_factory.mktemp("stream") / "jobs.parquet"
    table.write_parquet(path, row_group_size=70)
    return path


def fed(cluster: Cluster, path: Path, n_rows: int):
    """Ended jobs in order of submission, and the stream itself."""
    head, found = job_parts(path, n_rows)
    parts, stream = [*found], ClusterStream(cluster, head.team_names, head.span_s)
    assert len(parts) > 5
    ended = []
    for k, part in enumerate(parts):
        ended += stream.feed(part, parts[k + 1].arrive_s[0] if k + 1 < len(parts) else None)
    arrive = np.concatenate([one.jobs.arrive_s for one in ended])
    order = np.argsort(arrive, kind="stable")

    def column(name: str):
        return np.concatenate([getattr(one.outcomes, name) for one in ended])[order]

    return column, stream


@pytest.mark.parametrize("is_disturbed", [False, True])
@pytest.mark.parametrize("name", POLICIES)
def test_every_start_is_that_of_a_whole_replay(trace, name, is_disturbed):
    jobs = read_jobs(trace)
    described = Cluster(name="x", groups=GROUPS, policy=POLICIES[name])
    cluster = with_all_teams(replace(described, **(DISTURBED if is_disturbed else {})), jobs)
    whole = simulate_cluster(cluster, jobs)
    column, stream = fed(cluster, trace, 70)
    for field in ("start_s", "end_s", "n_preempted", "n_failed", "lost_accelerator_s", "group"):
        np.testing.assert_array_equal(column(field), getattr(whole.jobs, field), err_msg=field)
    np.testing.assert_allclose(stream.outcome(jobs).timeline.batch, whole.timeline.batch)
    assert stream.n_unfit == whole.n_unfit == int((jobs.n_accelerators == 999).sum())


def test_the_answers_are_those_of_a_whole_replay(trace, tmp_path, monkeypatch):
    monkeypatch.setattr(stream_study, "N_ROWS", 70)
    (tmp_path / "c.yaml").write_text(FILE)
    whole = simulate_jobs(tmp_path / "c.yaml", trace)
    streamed = simulate_jobs(tmp_path / "c.yaml", trace, ClusterRequest(is_streamed=True))
    assert streamed.use.recall_frac == pytest.approx(whole.use.recall_frac)
    assert streamed.use.batch_frac == pytest.approx(whole.use.batch_frac)
    for mine, theirs in zip(streamed.bills, whole.bills, strict=True):
        assert mine.total_usd == pytest.approx(theirs.total_usd)
    rows = [streamed.all_jobs, *streamed.by_team, *streamed.by_size]
    others = {r.name: r for r in (whole.all_jobs, *whole.by_team, *whole.by_size)}
    assert [r.name for r in rows] == [*others]
    for row in rows:
        other = others[row.name]
        assert (row.n_jobs, row.n_never) == (other.n_jobs, other.n_never)
        assert row.wait_mean_s == pytest.approx(other.wait_mean_s)
        assert row.target_p90_s == other.target_p90_s


def test_sketched_quantiles_are_within_a_percent():
    values = np.random.default_rng(1).lognormal(6.0, 2.0, 100_001)
    sketch = Sketch(0.0)
    for part in np.array_split(values, 7):
        sketch.add(part)
    for share in (0.5, 0.9, 0.99):
        assert sketch.quantile(share) == pytest.approx(np.quantile(values, share), rel=0.01)


def test_a_state_does_not_grow_with_the_stream(trace):
    jobs = read_jobs(trace)
    cluster = with_all_teams(Cluster(name="x", groups=GROUPS), jobs)
    _, stream = fed(cluster, trace, 70)
    # What is left at the end: the last part and what still waited or ran when it came.
    assert len(stream.sim.job) < len(jobs) / 2


def test_what_a_stream_cannot_do_is_refused(trace, tmp_path):
    (tmp_path / "c.yaml").write_text(FILE)
    request = ClusterRequest(is_streamed=True, policies=("fifo",))
    with pytest.raises(InputError, match="replays a trace once"):
        simulate_jobs(tmp_path / "c.yaml", trace, request)
    pl.read_parquet(trace).reverse().write_parquet(tmp_path / "back.parquet", row_group_size=70)
    _, parts = job_parts(tmp_path / "back.parquet", 70)
    with pytest.raises(InputError, match="order of submission"):
        list(parts)
