"""Training of image networks in plans: the time of predict-network, spread over ranks, by hand."""

import pytest

import gpuplan
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.money.rates import NodeKind
from gpuplan.domain.plan.candidate import Rejection
from gpuplan.domain.plan.sizing import SizingOptions
from gpuplan.domain.requests.requests import NetworkRequest
from gpuplan.inputs.scenario.read import scenario_from_dict
from gpuplan.studies.market.ranks import RentedServer
from gpuplan.studies.networks.predict import predict_network
from gpuplan.studies.sizing.task import SizingContext, task_of
from gpuplan.studies.sizing.training.images import ImageRun, image_training_sizes
from gpuplan.units import HOUR

IMAGES = 1_281_167 * 90


def planned(hours, cards=("h100-sxm",)):
    run = {"samples": 1_281_167, "epochs": 90, "deadline_days": hours / 24}
    work = {"name": "run", "kind": "pretraining", "model": "resnet50", "training": run}
    policy = {"accelerators": {"allowed": list(cards)}}
    tree = {"version": 1, "name": "t", "workloads": [work], "policy": policy}
    return gpuplan.plan(tree, n_samples=50)


@pytest.mark.parametrize("card", ["h100-sxm", "a100-sxm-80gb"])
def test_days_are_images_over_the_rate_of_one_times_the_ranks(card):
    answer = planned(4.0, [card])
    [pool] = answer.plan.pools
    one = predict_network("resnet50", card, NetworkRequest(batch=256, is_training=True))
    by_hand = IMAGES / (pool.layout.dp * one.samples_per_s.value)
    assert by_hand <= answer.plan.span_s <= 1.1 * by_hand  # gradients and stops are small here
    assert pool.steps.global_batch == pool.layout.dp * pool.steps.micro_batch <= 8192
    assert answer.plan.slo.is_kept


def test_less_time_takes_more_of_them_and_too_little_none():
    slow, fast = planned(12.0).plan, planned(0.75).plan
    assert slow.pools[0].n_accelerators < fast.pools[0].n_accelerators
    assert fast.span_s <= 0.75 * HOUR
    nothing = planned(0.01)
    assert nothing.plan is None
    assert any("meets the deadline" in line for line in nothing.explanation.conflicts)


CATALOG = read_catalog()
H100 = CATALOG.accelerators["h100-sxm"]


def server(n=8, *, fabric="3200 Gbit/s InfiniBand per node", card="h100-sxm", n_most=None):
    node = NodeKind(name="server", accelerator=card, n_accelerators=n, fabric=fabric)
    return RentedServer(node, 20.0, n_most)


def task(*, servers=(), sure=None, **run):
    training = {"samples": 1_281_167, "epochs": 90, **run}
    work = {"name": "run", "kind": "pretraining", "model": "resnet50", "training": training}
    scenario = scenario_from_dict({"version": 1, "name": "t", "workloads": [work]}, name="t")
    options = SizingOptions(min_probability_frac=sure)
    context = SizingContext(catalog=CATALOG, servers=tuple(servers), options=options)
    return task_of(scenario.workloads[0], scenario, context)


def test_the_batch_shrinks_where_an_update_would_grow_too_large():
    run = ImageRun(task(), server(), H100)
    sizes = {n: run.layouts(n)[0].setup.micro_batch for n in (8, 64, 512)}
    assert sizes == {8: 256, 64: 128, 512: 16}
    assert run.layouts(2048) == ()
    assert run.resized(run.layouts(8)[0], 16) == run.layouts(16)


def test_one_rank_has_no_gradients_to_reduce_and_slow_links_cost():
    run = ImageRun(task(), server(), H100)
    [alone] = run.layouts(1)
    assert alone.step_s == run.forecast(256).batch_s.value
    slow = ImageRun(task(), server(fabric="10 Gbit/s TCP per node"), H100)
    assert slow.layouts(32)[0].step_s > 1.05 * run.layouts(32)[0].step_s


def test_what_is_asked_to_be_sure_takes_the_slow_end():
    plain, sure = (ImageRun(task(sure=p, deadline_days=1), server(), H100) for p in (None, 0.9))
    [trial] = plain.layouts(8)
    assert plain.wall_s(8, trial) == plain.wall(8, trial).mid
    assert sure.wall_s(8, trial) == pytest.approx(sure.wall(8, trial).high, rel=0.1)


def test_every_accelerator_has_a_run_or_a_reason():
    found = image_training_sizes(task(servers=[server()]))
    cards = {str(job.candidate.accelerator) for job in found.jobs}
    rejected = {str(each.candidate.accelerator): each for each in found.rejected}
    assert cards == {"h100-sxm"}
    assert set(rejected) | cards == {str(name) for name in CATALOG.accelerators}
    assert rejected["cpu-xeon-8480"].constraint == "precision"
    [job] = found.jobs
    assert job.flop == pytest.approx(3 * 8.22e9 * IMAGES, rel=0.01)
    assert job.goodput.goodput_frac > 0.99
    assert {"training of images", "time between failures"} <= {a.what for a in found.assumptions}


def test_a_deadline_that_no_number_meets_is_a_reason():
    found = ImageRun(task(deadline_days=1e-4), server(), H100)
    refused = found.sized(found.task.candidate(H100, "fp16"), 2)
    assert isinstance(refused, Rejection)
    assert refused.constraint == "deadline"
