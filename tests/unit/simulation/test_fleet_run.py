"""An autoscaled fleet: theory where it knows the answer, small cases by hand, bad fleets told."""

import math
from dataclasses import replace

import numpy as np
import pytest

from gpuplan.domain.simulation.engine import EngineLimits, KvTransfer
from gpuplan.domain.simulation.fleet import (
    FINISHED,
    LOST,
    REFUSED,
    TIMED_OUT,
    UNSERVED,
    AdmissionControl,
    Autoscaler,
    Clients,
    ColdStart,
    ElasticFleet,
    Failures,
    HoursFloor,
    Outage,
    Pool,
    PoolShare,
    PoolSize,
    Restarts,
    Router,
    Service,
    Spot,
)
from gpuplan.domain.traffic.stream import ClosedLoop, Requests, no_requests, requests_of
from gpuplan.errors import InputError
from gpuplan.simulation.serving.fleet.run import simulate_closed_loop, simulate_fleet
from gpuplan.simulation.serving.run import simulate_serving
from kernels.cases import constant_table, fleet_of, limits_of, stream_of

STEP_S = 0.1
LIMITS = EngineLimits(max_batch_tokens=64, max_sequences=1, n_blocks=1000, block_tokens=16)
TABLE = constant_table(STEP_S, max_tokens=64, max_sequences=64)


def pool(n: int = 1, **parts: object) -> Pool:
    values: dict[str, object] = {"name": "a", "limits": LIMITS, "table": TABLE}
    return Pool(**(values | {"size": PoolSize(n_first=n)} | parts))  # type: ignore[arg-type]


def fleet(*pools: Pool, **parts: object) -> ElasticFleet:
    return ElasticFleet(pools=pools or (pool(),), **parts)  # type: ignore[arg-type]


def ones(arrive_s: list[float], n_steps: int = 10) -> Requests:
    """Requests of one prompt token, each so many steps long."""
    return requests_of(arrive_s, [1] * len(arrive_s), [n_steps] * len(arrive_s))


@pytest.mark.parametrize("rule", ["round_robin", "least_outstanding", "power_of_two"])
@pytest.mark.parametrize("method", ["jump", "step"])
def test_a_fleet_at_rest_is_the_fleet_of_equal_engines(rule: str, method: str):
    draw = np.random.default_rng(7)
    requests = stream_of(draw, 300)
    limits = limits_of(draw, requests)
    still = fleet_of(limits, n_engines=5, router=rule, seed=3)
    one = Pool(name="a", limits=limits, table=still.table, size=PoolSize(n_first=5))
    elastic = ElasticFleet(pools=(one,), router=Router(rule=rule), seed=3)
    a, b = simulate_serving(requests, still), simulate_fleet(requests, elastic, method=method)
    for name in ("wait_s", "ttft_s", "tpot_s", "e2e_s", "n_preemptions", "is_finished"):
        assert getattr(a.times, name).tobytes() == getattr(b.outcome.times, name).tobytes()
    assert (a.totals.n_steps, a.totals.n_computed_tokens, a.totals.n_free_blocks) == (
        b.outcome.totals.n_steps, b.outcome.totals.n_computed_tokens,
        b.outcome.totals.n_free_blocks,
    )  # fmt: skip
    assert b.paid_s == pytest.approx(a.paid_s)
    np.testing.assert_allclose(a.use.busy_frac, b.outcome.use.busy_frac, rtol=1e-12)


def erlang_c(n_servers: int, offered: float) -> float:
    terms = [offered**k / math.factorial(k) for k in range(n_servers)]
    last = offered**n_servers / math.factorial(n_servers) * n_servers / (n_servers - offered)
    return last / (sum(terms) + last)


def test_replicas_of_one_slot_before_one_queue_are_m_m_c():
    """Mean wait of Erlang C inside the 95 % interval of 20 seeds [Erlang1917]."""
    n_servers, load_frac, n_tokens, step_s = 4, 0.8, 200, 1e-3
    table = constant_table(step_s, max_tokens=64, max_sequences=1)
    one = pool(n_servers, table=table, admission=AdmissionControl(max_outstanding=1))
    service_s, means = n_tokens * step_s, []
    for seed in range(20):
        draw = np.random.default_rng(seed)
        arrive_s = np.cumsum(draw.exponential(service_s / (load_frac * n_servers), 6000))
        outputs = np.maximum(1, np.rint(draw.exponential(n_tokens, 6000)))
        found = simulate_fleet(requests_of(arrive_s, np.ones(6000), outputs), fleet(one))
        means.append(float(found.outcome.times.wait_s.mean()))
    offered = load_frac * n_servers
    expected = erlang_c(n_servers, offered) * service_s / (n_servers - offered)
    half = 2.093 * np.std(means, ddof=1) / math.sqrt(len(means))
    assert abs(np.mean(means) - expected) < half + step_s


def test_availability_is_that_of_repaired_machines():
    """Ready share = MTBF / (MTBF + MTTR) [Trivedi2016]."""
    one = pool(8, failures=Failures(mtbf_s=90.0, mttr_s=30.0))
    found = simulate_fleet(ones([0.0, 20_000.0], 1), fleet(one))
    totals = found.pools[0]
    assert found.counts.n_failures > 800
    assert totals.ready_s / (totals.ready_s + totals.failed_s) == pytest.approx(0.75, abs=0.02)
    assert totals.paid_s == pytest.approx(8 * 20_000.1, rel=1e-6)


def test_littles_law_closes_while_replicas_come_and_go():
    draw = np.random.default_rng(1)
    arrive_s = np.cumsum(draw.exponential(0.25, 2000))
    one = pool(
        3, size=PoolSize(n_first=3, n_least=1, n_most=8),
        failures=Failures(mtbf_s=200.0, mttr_s=9.0),
        scaler=Autoscaler(target_requests=2.0, interval_s=5.0, down_window_s=20.0),
    )  # fmt: skip
    found = simulate_fleet(ones(arrive_s.tolist()), fleet(one, router=Router(max_resends=99)))
    assert found.n_ended(FINISHED) == 2000
    start_s = found.outcome.requests.arrive_s - arrive_s[0]
    end_s = np.sort(start_s + found.outcome.times.e2e_s)
    instants = (np.arange(100_000) + 0.5) / 100_000 * found.outcome.totals.span_s
    inside = np.searchsorted(start_s, instants) - np.searchsorted(end_s, instants)
    rate = 2000 / found.outcome.totals.span_s
    assert inside.mean() == pytest.approx(rate * found.outcome.times.e2e_s.mean(), rel=1e-2)


def test_a_dead_replicas_work_is_done_elsewhere_from_the_start():
    one = pool(2, failures=Failures(outages=(Outage(at_s=0.55, replica=0, lasts_s=10.0),)))
    found = simulate_fleet(ones([0.0]), fleet(one))
    assert found.outcome.times.e2e_s[0] == pytest.approx(0.55 + 10 * STEP_S)
    assert found.counts.n_resends == 1
    assert found.outcome.totals.n_computed_tokens == 5 + 10


def test_a_request_whose_replicas_die_too_often_is_lost():
    outages = tuple(Outage(at_s=at, replica=0, lasts_s=0.1) for at in (0.5, 1.0, 1.5))
    one = pool(1, failures=Failures(outages=outages))
    found = simulate_fleet(ones([0.0]), fleet(one, router=Router(max_resends=1)))
    assert found.end.tolist() == [LOST]
    assert found.counts.n_broken == 2


def test_what_nobody_has_room_for_is_refused_and_asks_again():
    one = pool(1, admission=AdmissionControl(max_outstanding=1, max_held=1))
    found = simulate_fleet(ones([0.0, 0.01, 0.02, 0.03]), fleet(one))
    assert found.end.tolist() == [FINISHED, FINISHED, REFUSED, REFUSED]
    patient = fleet(one, clients=Clients(max_retries=3, backoff_s=1.0))
    again = simulate_fleet(ones([0.0, 0.01, 0.02, 0.03]), patient)
    assert again.n_ended(FINISHED) == 4
    # The third comes back at 1.02, when the first has left, and waits until 2.0.
    assert again.outcome.times.e2e_s[2] == pytest.approx(3.0 - 0.02)
    assert again.counts.n_retries == int(again.n_tries.sum()) - 4


@pytest.mark.parametrize(("is_first_token", "way"), [(False, TIMED_OUT), (True, FINISHED)])
def test_clients_that_have_gone_leave_at_the_next_boundary(is_first_token: bool, way: int):
    clients = Clients(timeout_s=0.55, is_first_token=is_first_token)
    found = simulate_fleet(ones([0.0, 0.1]), fleet(clients=clients))
    assert found.end.tolist() == [way, TIMED_OUT]
    if not is_first_token:
        # Six steps for the first; the second is noticed at 0.7, after one step of its own.
        assert found.outcome.totals.n_computed_tokens == 6 + 1


def test_a_fleet_grows_after_its_cold_start_and_shrinks_after_its_window():
    start = ColdStart(boot_s=1.0, load_s=2.0)
    one = pool(
        1, size=PoolSize(n_first=1, n_least=1, n_most=2), start=start,
        scaler=Autoscaler(target_requests=1.0, interval_s=1.0, down_window_s=4.0),
    )  # fmt: skip
    found = simulate_fleet(ones([0.0, 0.0, 0.0, 0.0, 30.0], 30), fleet(one))
    timeline = found.timeline
    changes = list(zip(timeline.at_s, timeline.n_ready, timeline.n_starting, strict=True))
    assert changes[:3] == [(0.0, 1, 0), (1.0, 1, 1), (4.0, 2, 0)]
    assert timeline.n_ready[3:].tolist() == [1, 1]
    # Three of the four run on the first replica, as nobody moves; the last ends at 12 s.
    assert found.paid_s == pytest.approx(33.0 + timeline.at_s[-1] - 1.0)


def test_floors_by_the_hour_keep_replicas():
    floors = (HoursFloor(from_hour=1, to_hour=2, n_least=3),)
    one = pool(
        1, size=PoolSize(n_first=1, n_least=1, n_most=4),
        scaler=Autoscaler(target_requests=5.0, interval_s=60.0, down_window_s=0.0, floors=floors),
    )  # fmt: skip
    found = simulate_fleet(ones([0.0, 3 * 3600.0], 1), fleet(one))
    at_s, n = found.timeline.at_s, found.timeline.n_ready
    assert n[np.searchsorted(at_s, 1.5 * 3600) - 1] == 3
    assert n[-1] == 1
    assert found.pools[0].ready_s == pytest.approx(3 * 3600 + 2 * 3600, rel=0.01)


def test_spot_replicas_drain_within_their_notice():
    one = pool(2, spot=Spot(mean_s=30.0, notice_s=5.0, away_s=3.0))
    found = simulate_fleet(ones([float(at) for at in range(100)]), fleet(one))
    assert found.counts.n_reclaims > 3
    assert found.counts.n_broken == 0
    assert found.n_ended(FINISHED) == 100
    sudden = pool(2, spot=Spot(mean_s=30.0, notice_s=0.0, away_s=3.0))
    broken = simulate_fleet(ones([float(at) for at in range(100)]), fleet(sudden))
    assert broken.counts.n_broken > 0


def test_a_roll_restarts_all_and_never_too_many():
    one = pool(4, restarts=Restarts(first_s=1.0, max_unavailable=2), start=ColdStart(load_s=3.0))
    found = simulate_fleet(ones([0.2 * at for at in range(100)]), fleet(one))
    assert found.pools[0].n_starts == 4
    assert found.timeline.n_ready.min() == 2
    assert found.n_ended(FINISHED) == 100
    assert found.counts.n_broken == 0


def test_users_ask_after_their_answer_and_their_pause():
    loop = ClosedLoop(
        user=np.array([0, 0, 0, 1, 1]), think_s=np.array([0.0, 2.0, 1.0, 0.5, 1.0]),
        input_tokens=np.ones(5, dtype=np.int64), output_tokens=np.full(5, 10),
    )  # fmt: skip
    found = simulate_closed_loop(loop, fleet(pool(2)))
    assert found.outcome.requests.arrive_s.tolist() == pytest.approx([0.0, 0.5, 2.5, 3.0, 5.0])
    assert found.outcome.times.e2e_s.tolist() == pytest.approx([1.0] * 5)


def test_the_interactive_response_time_law_holds():
    """Throughput = users / (response + think) [Lazowska1984]."""
    draw = np.random.default_rng(0)
    n_users, n_each, think_s = 12, 300, 5.0
    loop = ClosedLoop(
        user=np.repeat(np.arange(n_users), n_each),
        think_s=draw.exponential(think_s, n_users * n_each),
        input_tokens=np.ones(n_users * n_each, dtype=np.int64),
        output_tokens=1 + draw.geometric(0.1, n_users * n_each),
    )
    found = simulate_closed_loop(loop, fleet(pool(3))).outcome
    end_s = found.requests.arrive_s + found.times.e2e_s
    # Until the first user has asked all: then fewer are left.
    until_s = min(end_s[found.requests.session == user].max() for user in range(n_users))
    is_early = end_s <= until_s
    rate = is_early.sum() / until_s
    response_s = found.times.e2e_s[is_early].mean()
    assert rate == pytest.approx(n_users / (response_s + loop.think_s.mean()), rel=0.03)


def test_prompts_and_answers_apart_cost_the_journey():
    service = Service(
        name="s", pools=(PoolShare(pool="read"),), decode_pools=(PoolShare(pool="write"),)
    )
    hand = KvTransfer(cache_bytes_per_token=1e6, link_bytes_per_s=1e7, latency_s=0.05)
    pools = (pool(1, name="read"), pool(1, name="write"))
    requests = requests_of([0.0], [20], [5])
    found = simulate_fleet(requests, fleet(*pools, services=(service,), kv_transfer=hand))
    assert found.counts.n_handovers == 1
    # 20 tokens of 1 MB at 10 MB/s, then the decode replica computes the last prompt token itself.
    assert found.outcome.times.ttft_s[0] == pytest.approx(STEP_S + 2.0 + 0.05 + STEP_S)
    assert found.outcome.times.e2e_s[0] == pytest.approx(STEP_S + 2.0 + 0.05 + 5 * STEP_S)
    assert found.outcome.totals.n_free_blocks == 2 * LIMITS.n_blocks


def test_a_session_stays_where_it_is():
    draw = np.random.default_rng(2)
    requests = requests_of(
        np.sort(draw.uniform(0, 50, 200)), np.ones(200), np.full(200, 3),
    )  # fmt: skip
    requests = replace(requests, session=draw.integers(0, 6, 200))
    found = simulate_fleet(requests, fleet(pool(3), router=Router(rule="session")))
    assert found.n_ended(FINISHED) == 200


def test_a_fleet_that_never_has_a_replica_ends():
    outage = Failures(outages=(Outage(at_s=0.0, replica=0, lasts_s=1e9),))
    found = simulate_fleet(ones([0.0, 1.0]), fleet(pool(1, failures=outage)))
    assert found.end.tolist() == [UNSERVED, UNSERVED]
    assert found.outcome.n_completed + found.outcome.n_refused == 2


def test_nothing_is_a_defined_result():
    found = simulate_fleet(no_requests(), fleet())
    assert found.outcome.n_completed == 0
    assert found.paid_s == 0.0


SCALER = Autoscaler(target_requests=1.0)
FAR_REPLICA = Outage(at_s=0.0, replica=5, lasts_s=1.0)


@pytest.mark.parametrize(
    ("bad", "where"),
    [
        (fleet(*(pool(0, name=str(at)) for at in range(10))), "no replica"),
        (ElasticFleet(pools=()), "there is none"),
        (fleet(pool(1), pool(1)), "same name"),
        (fleet(pool(1, size=PoolSize(n_first=1, n_least=3, n_most=2), scaler=SCALER)), "at most 2"),
        (fleet(pool(1, size=PoolSize(n_first=1, n_most=2))), "no scaler"),
        (fleet(pool(-1)), "n_first"),
        (fleet(pool(1, scaler=replace(SCALER, interval_s=-1.0))), "interval_s"),
        (fleet(pool(1, scaler=replace(SCALER, target_requests=math.nan))), "target_requests"),
        (fleet(pool(1, failures=Failures(mtbf_s=0.0))), "mtbf_s"),
        (fleet(pool(1, failures=Failures(outages=(FAR_REPLICA,)))), "replica"),
        (fleet(pool(1, spot=Spot(mean_s=-3.0))), "mean_s"),
        (fleet(pool(1, start=ColdStart(boot_s=math.inf))), "boot_s"),
        (fleet(pool(1, admission=AdmissionControl(max_outstanding=0))), "max_outstanding"),
        (fleet(clients=Clients(timeout_s=-1.0)), "timeout_s"),
        (fleet(router=Router(rule="magic")), "router.rule"),
        (fleet(services=(Service(name="s", pools=(PoolShare(pool="z"),)),)), "names a pool"),
        (fleet(pool(1, limits=replace(LIMITS, draws_acceptance=True))), "speculative decoding"),
        (fleet(pool(1, limits=replace(LIMITS, scheduling="magic"))), "scheduling"),
        (
            fleet(
                pool(1, limits=replace(LIMITS, caches_prefixes=True)),
                pool(1, name="b", limits=replace(LIMITS, caches_prefixes=True, block_tokens=32)),
            ),
            "blocks of 16, 32",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "fleet",
)  # fmt: skip
def test_a_fleet_that_cannot_be_is_told(bad: ElasticFleet, where: str):
    with pytest.raises(InputError, match=where):
        simulate_fleet(ones([0.0]), bad)


def test_clients_that_would_never_give_up_are_refused_before_they_fill_the_memory():
    endless = fleet(pool(1), clients=Clients(timeout_s=1.0, max_retries=10**9))
    with pytest.raises(InputError, match="max_retries"):
        simulate_fleet(ones([0.0]), endless)


def test_every_problem_is_told_at_once():
    bad = fleet(
        pool(-1, spot=Spot(mean_s=0.0), drain_s=-1.0), router=Router(rule="x"),
        clients=Clients(max_retries=-1),
    )  # fmt: skip
    with pytest.raises(InputError) as caught:
        simulate_fleet(ones([0.0]), bad)
    assert len(caught.value.problems) >= 5


def test_one_waiting_request_starts_a_pool_from_zero():
    """Looked at every 5 s, started in 12 s (boot, image, weights, compilation, warm-up)."""
    start = ColdStart(boot_s=4.0, image_s=3.0, load_s=2.0, compile_s=2.0, warmup_s=1.0)
    scaler = Autoscaler(metric="queue", target_requests=8.0, interval_s=5.0, down_window_s=10.0)
    size = PoolSize(n_first=0, n_least=0, n_most=3)
    found = simulate_fleet(ones([0.0, 100.0]), fleet(pool(size=size, start=start, scaler=scaler)))
    assert found.end.tolist() == [FINISHED, FINISHED]
    # The second finds the pool at zero again: it left when nothing was asked of it.
    np.testing.assert_allclose(found.outcome.times.wait_s, [5.0 + 12.0, 5.0 + 12.0], atol=1e-6)
    assert found.pools[0].n_starts == 2
    assert found.pools[0].starting_s == pytest.approx(24.0)
    assert found.timeline.n_ready.max() == 1


def test_the_last_replica_stays_while_it_works():
    """A queue scaler sees nobody wait; what runs is still asked of the pool."""
    scaler = Autoscaler(metric="queue", target_requests=1.0, interval_s=5.0, down_window_s=0.0)
    size = PoolSize(n_first=2, n_least=0, n_most=2)
    found = simulate_fleet(ones([0.0], n_steps=600), fleet(pool(size=size, scaler=scaler)))
    assert found.outcome.times.e2e_s[0] == pytest.approx(60.0)
    at = found.timeline.at_s
    is_working = (at > 10.0) & (at < 60.0)
    assert (found.timeline.n_ready[is_working] == 1).all()
    assert found.timeline.n_draining[is_working].max(initial=0) == 0
