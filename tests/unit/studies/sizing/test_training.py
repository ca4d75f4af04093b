"""Training jobs: scenario A7 and others like it."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.catalog.load import read_catalog
from gpuplan.domain.ranges import exactly
from gpuplan.inputs.scenario.read import read_scenario
from gpuplan.studies.sizing.task import SizingContext
from gpuplan.studies.sizing.training import JobSizer, job_of
from gpuplan.studies.sizing.workload import size_workload
from gpuplan.units import DAY, GB, HOUR

EXAMPLES = Path(__file__).parents[4] / "examples"
CATALOG = read_catalog()
SCENARIO = read_scenario(EXAMPLES / "large-training.yaml")
[WORKLOAD] = SCENARIO.workloads
AROUND = SizingContext(catalog=CATALOG)
MFU = {"h100-sxm": 0.40, "tpu-v5p": 0.50, "b200-sxm": 0.38}


def jobs(workload=WORKLOAD):
    sizing = size_workload(workload, replace(SCENARIO, workloads=(workload,)), AROUND)
    return {str(job.candidate.accelerator): job for job in sizing.jobs}


@pytest.mark.parametrize(
    ("card", "chip_h"), [("h100-sxm", 843e3), ("tpu-v5p", 1452e3), ("b200-sxm", 390e3)]
)
def test_chip_hours_use_dense_peaks(card, chip_h):
    job = jobs()[card]
    assert job.flop == pytest.approx(1.2e24)
    assert job.accelerator_s.value / HOUR == pytest.approx(chip_h, rel=0.002)
    assert job.accelerator_s.tier == "given"


@pytest.mark.parametrize(
    ("card", "days"), [("h100-sxm", 34.3), ("tpu-v5p", 59.1), ("b200-sxm", 15.9)]
)
def test_1024_chips(card, days):
    accelerator = CATALOG.accelerators[card]
    sizer = JobSizer(job_of(WORKLOAD), CATALOG)
    job = sizer.at(jobs()[card].candidate, accelerator, 1024, mfu=exactly(MFU[card]))
    assert job.ideal_s / DAY == pytest.approx(days, rel=0.01)
    assert job.wall_s.value > job.ideal_s


@pytest.mark.parametrize(
    ("gb_per_s", "lost", "minutes"), [(2, 0.092, 263), (20, 0.031, 83), (100, 0.016, 37)]
)
def test_storage_is_justified_by_goodput(gb_per_s, lost, minutes):
    sizer = JobSizer(job_of(WORKLOAD), CATALOG)
    found = sizer.goodput_at(1024, gb_per_s * GB)
    assert found.interval_s / 60 == pytest.approx(minutes, rel=0.02)
    parts = found.checkpoint_frac + found.lost_work_frac
    restart = found.restart_frac
    # The reference counts about 10 minutes of restart; 15 are assumed here, and told.
    assert parts + restart * 10 / 15 == pytest.approx(lost, rel=0.05)
    assert found.goodput_frac == pytest.approx(1 - parts - restart)


def test_the_deadline_is_met_in_whole_nodes():
    found = jobs()
    for job in found.values():
        assert job.n_accelerators % job.n_accelerators_per_node == 0
        assert job.wall_s.value <= 45 * DAY * (1 + 1e-6)
    # By hand: 1452 k chip-hours / 1080 h = 1345, over a goodput of 96 % = 1400, in fours.
    assert found["tpu-v5p"].n_accelerators == pytest.approx(1400, abs=8)
    assert found["tpu-v5p"].n_slow_end == pytest.approx(1500, rel=0.03)
    assert found["h100-sxm"].n_accelerators == pytest.approx(804, abs=8)


def test_one_node_fewer_is_late():
    sizer = JobSizer(job_of(WORKLOAD), CATALOG)
    for card, mfu in MFU.items():
        job = jobs()[card]
        fewer = job.n_accelerators - job.n_accelerators_per_node
        late = sizer.at(job.candidate, CATALOG.accelerators[card], fewer, mfu=exactly(mfu))
        assert late.wall_s.value > 45 * DAY


@settings(max_examples=15, deadline=None)
@given(days=st.floats(10, 200), more=st.floats(1.01, 2.0))
def test_more_time_never_takes_more_chips(days, more):
    def n(deadline):
        work = replace(WORKLOAD.work, deadline_s=deadline * DAY)
        return jobs(replace(WORKLOAD, work=work))["h100-sxm"].n_accelerators

    assert n(days * more) <= n(days)


def test_processors_and_missing_formats_leave_with_a_reason():
    sizing = size_workload(WORKLOAD, SCENARIO, AROUND)
    assert len(sizing.jobs) + len(sizing.rejected) == len(CATALOG.accelerators)
    rejected = {str(r.candidate.accelerator) for r in sizing.rejected}
    assert {"cpu-xeon-8480", "t4"} <= rejected


def test_without_failure_figures_goodput_is_unknown_and_told():
    work = replace(WORKLOAD.work, checkpoint=None, accelerator_mtbf_s=None)
    workload = replace(WORKLOAD, work=work)
    sizing = size_workload(workload, replace(SCENARIO, workloads=(workload,)), AROUND)
    assert all(job.goodput is None for job in sizing.jobs)
    assert "goodput" in {a.what for a in sizing.assumptions}


def test_without_a_deadline_the_states_decide():
    workload = replace(WORKLOAD, work=replace(WORKLOAD.work, deadline_s=None))
    found = jobs(workload)["h100-sxm"]
    # 100 G parameters x 16 bytes over 0.8 x 85 GB: 24 of them.
    assert found.n_accelerators == 24
    assert found.n_slow_end is None
