"""A shared cluster's week from end to end: telemetry in, owners, money and a dry-run patch out.

The example's own numbers, and others drawn with a seed; what is expected is counted from the
tables that the telemetry is made from.
"""

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from gpuplan.cli.app import app
from shared_data import ROOT

WEEK = ROOT / "examples" / "clusters" / "telemetry-week.py"
MONTH_H, SPAN_H, SIZE = 730, 167, 8


class Drawn:
    """Teams, nodes and idle GPUs with other numbers than the example's."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        names = [str(one) for one in rng.permutation(["red", "blue", "lab", "nlp", "ocr", "web"])]
        n_nodes = [int(n) for n in rng.integers(1, 4, len(names))]
        sizes = [[8] * n for n in n_nodes]
        for one in sizes[-2:]:  # the last two leave GPUs of their nodes free
            one[:] = [int(rng.integers(3, 7)) for _ in range(max(2, len(one)))]
        first = np.cumsum([0, *map(len, sizes)])
        self.allocated = tuple(
            (name, int(at), tuple(size))
            for name, at, size in zip(names, first, sizes, strict=False)
        )
        self.idle_team, self.idle_node = names[0], 0
        self.days, self.n_part = int(rng.integers(2, 6)), int(rng.integers(1, 5))
        self.part_team, self.part_node = names[1], int(first[1])
        self.small_team = names[-2]
        self.usd = round(float(rng.uniform(1, 6)), 2)

    def level(self, team: str, node: int, gpu: int, hour: int) -> float:
        if team == self.idle_team and node == self.idle_node:
            return 0.0
        if team == self.part_team and node == self.part_node and gpu < self.n_part:
            return 0.8 if hour >= self.days * 24 else 0.0
        return 0.08 if team == self.small_team else 0.8


def diagnosed(place: Path, week: dict[str, Any], usd: float) -> tuple[dict[str, Any], list]:
    (place / "week.json").write_text(json.dumps(week))
    words = ["diagnose", str(place / "week.json"), "--on", "H100", "--usd-per-h", str(usd)]
    words += ["--reclaim", str(place / "reclaim.yaml"), "--json"]
    answer = CliRunner().invoke(app, words, catch_exceptions=False)
    return json.loads(answer.stdout), [*yaml.safe_load_all((place / "reclaim.yaml").read_text())]


def held_to(found: dict[str, Any], patches: list, case: Any) -> None:
    """Idle GPUs, fragmentation, MIG candidates, money by team, precision and patches, by hand."""
    idle = [(case.idle_team, 7 * 24 - 1)] * SIZE + [(case.part_team, case.days * 24)] * case.n_part
    got = sorted((r["team"], round((r["end_s"] - r["begin_s"]) / 3600)) for r in found["reclaim"])
    assert got == sorted(idle)
    for row in found["reclaim"]:
        idle_frac = (row["end_s"] - row["begin_s"]) / 3600 / SPAN_H  # what it worked is no waste
        assert row["usd_per_month"] == pytest.approx(case.usd * MONTH_H * idle_frac)
        assert row["job"].startswith(row["team"])
    assert len(patches) == 2  # one a pod
    money = sum(float(p["metadata"]["annotations"]["gpuplan.io/usd-per-month"]) for p in patches)
    assert money == pytest.approx(sum(h for _, h in idle) / SPAN_H * case.usd * MONTH_H, abs=1.5)
    for team, _, sizes in case.allocated:
        row = next(one for one in found["teams"] if one["team"] == team)
        assert row["accelerator_h"] == pytest.approx(sum(sizes) * SPAN_H)
        assert row["usd"] == pytest.approx(sum(sizes) * SPAN_H * case.usd)
        idle_h = {case.idle_team: SIZE * SPAN_H}.get(team, 0.0)
        idle_h += case.n_part * case.days / 7 * SPAN_H if team == case.part_team else 0.0
        assert row["idle_h"] == pytest.approx(idle_h, rel=0.01)
    free = [SIZE - n for _, _, sizes in case.allocated for n in sizes if n < SIZE]
    causes = {one["cause"]: one for one in found["verdicts"]}
    is_scattered = sum(free) >= SIZE > max(free)
    assert ("fragmented" in causes) == is_scattered
    if is_scattered:
        text = causes["fragmented"]["evidence"][0]["found"]
        assert text == f"{sum(free)} on {len(free)} nodes"
    small = sum(sum(sizes) for team, _, sizes in case.allocated if team == case.small_team)
    assert found["packing"]["n_before"] == small
    assert found["packing"]["n_after"] == -(-small // 7)  # 1g.10gb: seven on a GPU
    n_all = SIZE * sum(len(sizes) for _, _, sizes in case.allocated)
    useful = sum(
        0.75 * case.level(team, first + k, gpu, hour)
        for team, first, sizes in case.allocated
        for k, n in enumerate(sizes)
        for gpu in range(n)
        for hour in range(168)
    )
    assert found["precision"] == pytest.approx(useful / (n_all * 168), rel=0.01)
    assert found["recall"] == 1.0  # nobody waits


class Example:
    """The numbers of the example's own text."""

    idle_team, part_team, small_team = "speech", "vision", "ads"
    days, n_part, usd = 4, 4, 2.0

    def __init__(self, made: dict[str, Any]) -> None:
        self.allocated, self.level = made["ALLOCATED"], made["level"]


def test_the_example_says_what_its_text_works_out(tmp_path):
    made = runpy.run_path(str(WEEK))
    found, patches = diagnosed(tmp_path, made["week"](), 2.0)
    held_to(found, patches, Example(made))
    assert sum(row["usd_per_month"] for row in found["reclaim"]) == pytest.approx(15_037, abs=1)
    assert found["n_devices"] == 128


@pytest.mark.parametrize("seed", range(4))
def test_other_weeks_agree_with_their_own_arithmetic(tmp_path, seed):
    case, made = Drawn(seed), runpy.run_path(str(WEEK))
    module = made["week"].__globals__
    small = case.small_team
    n_nodes = sum(len(sizes) for _, _, sizes in case.allocated)
    module |= {"ALLOCATED": case.allocated, "level": case.level, "SMALL": small, "N_NODES": n_nodes}
    found, patches = diagnosed(tmp_path, made["week"](), case.usd)
    held_to(found, patches, case)


def test_pods_that_wait_lower_recall_and_name_the_gang(tmp_path):
    made = runpy.run_path(str(WEEK))
    week = made["week"]()
    labels = {"namespace": "research", "pod": "pretrain-0", "resource": "nvidia_com_gpu"}
    name = "kube_pod_container_resource_requests"
    week["data"]["result"].append(made["series"](name, [8.0] * 168, labels))
    found, _ = diagnosed(tmp_path, week, 2.0)
    assert found["recall"] == pytest.approx(116 / 124)
    fragmented = next(one for one in found["verdicts"] if one["cause"] == "fragmented")
    assert fragmented["confidence"] == pytest.approx(0.9)  # somebody waits for such a slot
