"""One-off jobs: enough replicas for the deadline, whole nodes, and hours that are their own."""

from math import ceil
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.fleets import candidate, estimate, sized, sizing
from gpuplan.domain.inference.serving import ServingLayout
from gpuplan.domain.plan.candidate import AcceleratorShare
from gpuplan.studies.sizing.one_off import as_jobs


def task(n, deadline_s, *, price=None, most=None):
    """A job of so many documents, with a dollar for each accelerator-hour unless said otherwise."""
    return SimpleNamespace(
        workload=SimpleNamespace(amount=n, deadline_s=deadline_s),
        scenario=SimpleNamespace(policy=SimpleNamespace(n_accelerators_max=most)),
        context=SimpleNamespace(price=price or (lambda c, n: float(c.n_accelerators_for(n)))),
    )


def job_of(capacity, n=1000.0, deadline_s=10.0, *, made=None, **rest):
    fleet = sized(1, capacity_per_s=capacity, **({"candidate": made} if made else {}))
    [job] = as_jobs(task(n, deadline_s, **rest), sizing(sized=(fleet,))).jobs
    return job


def test_the_job_ends_by_its_deadline_even_at_the_slow_end():
    job = job_of(estimate(10.0, 8.0, 12.0))
    assert job.n_accelerators == 13  # 1000 / 10 s = 100/s; 8/s each at the slow end
    assert job.wall_s.value == pytest.approx(1000 / 130)
    assert job.wall_s.high == pytest.approx(1000 / 104)
    assert job.wall_s.high <= 10.0
    assert any("slow end" in line for line in job.remarks)


def test_whole_nodes_are_filled_where_that_is_cheaper_for_the_whole_job():
    def nodes(made, n):
        return 8.0 * ceil(made.n_accelerators_for(n) / 8)

    job = job_of(estimate(10.0), 500.0, price=nodes)
    assert job.n_accelerators == 8  # 5 would do, but 8 are paid for: it ends after 6.25 s
    assert job.wall_s.value == pytest.approx(6.25)
    assert job_of(estimate(10.0), 500.0).n_accelerators == 5


def test_a_limit_on_accelerators_takes_the_margin_first_and_is_told_when_it_is_too_low():
    assert job_of(estimate(10.0, 8.0, 12.0), most=11).n_accelerators == 11
    assert job_of(estimate(10.0, 8.0, 12.0), most=3).n_accelerators == 10  # the limit refuses it


def test_slices_fill_their_accelerators():
    share = AcceleratorShare(
        kind="mig", name="1g", n_per_accelerator=7, compute_frac=1 / 7, memory_bytes=1e10
    )
    job = job_of(estimate(10.0), 1100.0, made=candidate(share=share))
    assert job.n_accelerators == 2
    assert job.n_replicas == 14


def test_a_fleet_of_unknown_capacity_is_no_job():
    found = as_jobs(task(10.0, 1.0), sizing(sized=(sized(1),)))
    assert found.jobs == found.sized == ()


@given(
    n=st.floats(1.0, 1e9),
    deadline_s=st.floats(60.0, 1e7),
    rate=st.floats(1e-3, 1e4),
    spread=st.floats(0.3, 1.0),
    tp=st.sampled_from([1, 2, 4, 8]),
)
def test_capacity_is_never_below_the_demand(n, deadline_s, rate, spread, tp):
    made = candidate(layout=ServingLayout(tp=tp))
    job = job_of(estimate(rate, rate * spread, rate / spread), n, deadline_s, made=made)
    assert job.n_accelerators % tp == 0
    assert job.n_replicas * tp == job.n_accelerators
    assert job.wall_s.high <= deadline_s * (1 + 1e-6)
    done = job.n_replicas * rate * job.wall_s.value
    assert done == pytest.approx(n)
