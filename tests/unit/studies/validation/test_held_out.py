"""Fits of links, power, networks and start-up: formulas, folds and their scores."""

import numpy as np
import pytest
from fits import held_out as v
from fits import links as links_fit
from fits import networks as networks_fit
from fits import power as power_fit
from fits import startup

from gpuplan.calibration.links import link_of
from gpuplan.catalog.load import read_catalog
from gpuplan.domain.hardware.devices import AcceleratorId
from gpuplan.performance import collectives

H100 = read_catalog().accelerators[AcceleratorId("h100-sxm")]


def group(op: str, n_nodes: int = 1) -> links_fit.Group:
    sizes = np.array([1e4, 1e6, 1e8])
    return links_fit.Group(
        link="nvlink4",
        line_bytes_per_s=450e9,
        fabric_bytes_per_s=400e9,
        op=op,
        n_nodes=n_nodes,
        n_per_node=8,
        library="nccl",
        system="made up",
        source="test",
        message_bytes=sizes,
        time_s=np.ones(3),
    )


@pytest.mark.parametrize(
    ("op", "time_s"),
    [
        ("all_reduce", collectives.all_reduce_time_s),
        ("all_gather", collectives.all_gather_time_s),
        ("reduce_scatter", collectives.all_gather_time_s),
        ("alltoall", collectives.all_to_all_time_s),
    ],
)
def test_columns_of_messages_take_what_single_messages_take(op, time_s) -> None:
    link = link_of(H100, n_ranks=8)
    found = v.collective_times_s(group(op), link, link)
    assert found == pytest.approx([time_s(size, 8, link) for size in (1e4, 1e6, 1e8)])


def test_several_nodes_take_longer_than_one() -> None:
    link = link_of(H100, n_ranks=8)
    near = v.collective_times_s(group("all_reduce"), link, link)
    far = v.collective_times_s(group("all_reduce", n_nodes=4), link, link)
    assert (far > near).all()


def test_link_groups_hold_the_cube_mesh_out() -> None:
    assert {"nvlink2"} == {g.link for g in links_fit.read_groups()} - {
        g.link for g in v.link_groups()
    }


def test_a_link_model_takes_its_constants_by_field() -> None:
    constants = {c.name: c.value for c in v.LINKS.constants()}
    inner = links_fit.inner_link(group("direct_all_reduce"), constants)
    assert inner.ring.launch_s == constants["ring.launch_s"]
    assert inner.pairwise.ramp_bytes == constants["pairwise.ramp_bytes"]
    assert inner.switch is not None
    assert (inner.switch.extra_s, inner.switch.n_ranks_min) == (constants["switch.extra_s"], 5)
    assert inner.direct is not None
    assert inner.direct.n_ranks_max == 8
    assert links_fit.inner_link(group("all_reduce"), constants).direct is None
    outer = links_fit.outer_link(group("all_reduce", 2), constants)
    assert (outer.ring.copy_frac, outer.bytes_per_s) == (0.0, 400e9)


def test_measurements_have_one_observation_per_message() -> None:
    groups = v.link_groups()[:5]
    measured = v.LINKS.measured(groups)
    assert len(measured.observed.row) == sum(len(g.time_s) for g in groups)
    assert len(measured.labels) == 5
    constants = {c.name: np.full(5, c.value) for c in v.LINKS.constants()}
    assert np.isfinite(measured.predict(constants)).all()


def test_errors_of_prior_constants_are_logs_of_predicted_over_measured() -> None:
    rows = power_fit.read_power_rows()[:4]
    measured = v.POWER.measured(rows)
    values = {c.name: np.full(4, c.value) for c in v.POWER.constants()}
    watts = np.exp(measured.predict(values))
    for row, predicted in zip(rows, watts, strict=True):
        mine = {c.name: c.value for c in v.POWER.constants()}
        alone = v.predicted_power_w(row, power_fit.constants_of(mine), power_fit.busy_of(row, mine))
        assert predicted == pytest.approx(alone)
    assert measured.observed.log_value == pytest.approx(np.log([row.power_w for row in rows]))


def test_waiting_work_weighs_less_and_repeated_models_no_more_than_their_share() -> None:
    rows = power_fit.read_power_rows()
    weight = v.POWER.measured(rows).observed.weight
    by_model: dict[str, float] = {}
    for row, value in zip(rows, weight, strict=True):
        by_model[row.model] = by_model.get(row.model, 0.0) + value
        assert value <= (1.0 if row.work in power_fit.BUSY_WORK else power_fit.WAITING_WEIGHT)
    assert max(by_model.values()) <= power_fit.ROWS_PER_MODEL + 1e-9


def test_networks_are_fitted_kind_by_kind() -> None:
    rows = networks_fit.read_network_rows("denoiser")[::40]
    model = v.network_model("denoiser")
    fitted = model.fit(rows)
    assert {c.name for c in fitted.constants} == set(fitted.log_value)
    inside = np.abs(np.expm1(model.errors(rows, fitted)))
    assert np.median(inside) < 0.2


def test_folds_hold_every_row_of_their_key_out() -> None:
    rows = networks_fit.read_network_rows("denoiser")[::40]
    model = v.network_model("denoiser")
    folds = model.folds(lambda row: row.model, rows)
    assert set(folds) == {row.model for row in rows}
    first = rows[0].model
    others = model.fit([row for row in rows if row.model != first])
    held = [row for row in rows if row.model == first]
    assert folds[first] == pytest.approx(model.errors(held, others))


def test_scores_of_folds_are_those_of_all_their_rows() -> None:
    folds = {"a": np.log([1.1, 1.2]), "b": np.log([0.9, 1.0]), "c": np.log([1.3, 1.0])}
    found = v.score_folds(folds, are_lots=True)
    assert found.n == 6
    assert found.median_ape == pytest.approx((0.1 + 0.1) / 2)
    assert found.bias == pytest.approx(np.sqrt(1.0 * 1.1) - 1)
    assert 0 <= found.range_coverage <= 1
    alone = v.score_folds({"a": np.log([1.1, 1.2])})
    assert np.isnan(alone.range_coverage)


def test_slowdowns_are_judged_by_kind_of_run_at_half_the_limit_and_above() -> None:
    found = v.cap_errors()
    n_all = len(power_fit.read_cap_rows())
    assert set(found) == {"light", "saturated"}
    assert sum(map(len, found.values())) < n_all
    assert sum(map(len, v.cap_errors(0.0).values())) == n_all


def test_rates_of_a_board_come_from_the_others() -> None:
    folds = v.benchmark_folds()
    assert len(folds) > 10
    assert all(len(errors) and np.isfinite(errors).all() for errors in folds.values())
    # Carried over, not looked up: no board is predicted exactly.
    assert all(np.abs(errors).max() > 1e-6 for errors in folds.values())


def test_start_up_phases_are_medians_of_hosts_medians() -> None:
    rows = [
        startup.PhaseRow("s", host, "m", "load-local-disk", units, seconds)
        for host, units, seconds in (("a", 1, 1.0), ("a", 2, 4.0), ("a", 1, 3.0), ("b", 1, 8.0))
    ]
    # Host a: median of 1, 2 and 3 s a unit; host b: 8; the middle of their logs is 4.
    assert startup.fit_phase(rows) == pytest.approx(4.0)
    errors = startup.log_errors(rows, 4.0)
    assert errors == pytest.approx(np.log([4.0, 2.0, 4.0 / 3.0, 0.5]))


def test_start_up_folds_need_two_groups() -> None:
    phase = "load-local-disk"
    assert v.startup_folds(phase, lambda row: "one") == {}
    folds = v.startup_folds(phase, lambda row: row.host)
    assert sum(map(len, folds.values())) == len(startup.read_phase_rows(phase))
