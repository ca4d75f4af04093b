"""A13 by hand: a shared cluster of several teams, who holds what idle, and what that costs."""

import pytest
import yaml

from fakes.telemetry import STEP_S, Scene
from gpuplan.domain.telemetry.diagnosis import DiagnoseRequest
from gpuplan.pipeline.diagnose import diagnose
from gpuplan.report.telemetry.autoscaler import reclaim_patches

MONTH_H = 730.0
BUSY = {"gpu_util": 0.9, "sm": 0.7, "tensor": 0.4, "dram": 0.4, "power_w": 560.0}
IDLE = {"gpu_util": 0.0, "sm": 0.0, "tensor": 0.0, "dram": 0.0, "power_w": 120.0}


def cluster(n_devices: int, n_teams: int, *, idle_of: dict[str, int], generation: int) -> Scene:
    """Devices dealt to teams in turn; the first ones of a team are held idle."""
    scene, left = Scene(generation=generation), dict(idle_of)
    for k in range(n_devices):
        team = f"team-{k % n_teams}"
        is_idle = left.get(team, 0) > 0
        left[team] = left.get(team, 0) - is_idle
        scene.device(
            k % 8, node=f"n{k // 8}", namespace=team, pod=f"job-{k}",
            held_bytes=20e9, **(IDLE if is_idle else BUSY),
        )  # fmt: skip
    return scene


@pytest.mark.parametrize("generation", [0, 1], ids=["percent", "ratio"])
@pytest.mark.parametrize(
    ("n_devices", "n_teams", "idle_of", "usd_per_h"),
    [
        (128, 6, {"team-0": 5, "team-3": 9}, 2.5),
        (64, 4, {"team-1": 16}, 4.0),
        (24, 3, {"team-0": 1, "team-1": 2, "team-2": 3}, 1.2),
    ],
    ids=["128 of six", "64 of four", "24 of three"],
)
def test_idle_share_cost_and_owners(n_devices, n_teams, idle_of, usd_per_h, generation):
    scene = cluster(n_devices, n_teams, idle_of=idle_of, generation=generation)
    found = diagnose(scene.telemetry(), DiagnoseRequest(usd_per_h=usd_per_h))
    n_idle = sum(idle_of.values())
    span_h = scene.n_samples * STEP_S / 3600.0
    owners = [one.team for one in found.reclaims]
    assert {team: owners.count(team) for team in idle_of} == idle_of
    assert all(one.usd_per_month == pytest.approx(usd_per_h * MONTH_H) for one in found.reclaims)
    teams = {one.team: one for one in found.teams}
    for name, team in teams.items():
        n_held = sum(k % n_teams == int(name[-1]) for k in range(n_devices))
        assert team.usd == pytest.approx(n_held * usd_per_h * span_h, rel=0.01)
        assert team.idle_s / team.accelerator_s == pytest.approx(
            idle_of.get(name, 0) / n_held, abs=0.01
        )
    verdict = next(one for one in found.verdicts if one.cause == "idle_allocated")
    assert verdict.share_frac == pytest.approx(n_idle / n_devices)


def test_patches_name_the_owner_and_stop_nothing():
    scene = cluster(24, 3, idle_of={"team-2": 2}, generation=0)
    text = reclaim_patches(diagnose(scene.telemetry(), DiagnoseRequest(usd_per_h=3.0)))
    patches = [patch for patch in yaml.safe_load_all(text) if patch]
    assert len(patches) == 2
    assert all("team-2" in str(patch) for patch in patches)
    assert not any(word in text for word in ("kubectl delete", "scancel", "replicas: 0"))
