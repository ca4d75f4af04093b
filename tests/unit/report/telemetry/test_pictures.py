"""Pictures of telemetry: cells by band, lines by name, characters for mail."""

import io
import itertools
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from fakes.telemetry import Scene
from gpuplan.api import svg_png
from gpuplan.domain.telemetry.diagnosis import BandEdges, DiagnoseRequest
from gpuplan.pipeline.diagnose import diagnose
from gpuplan.report.telemetry.pictures import BANDS, telemetry_pictures

ENGINE = {"instance": "n1:8000"}


@pytest.fixture(scope="module")
def found():
    scene = Scene()
    half = np.where(np.arange(240) < 120, 0.1, 0.8)
    scene.device(0, gpu_util=half).device(1, gpu_util=0.99).device(2, node="<b>", gpu_util=0.5)
    scene.counter("vllm:generation_tokens_total", 4000.0, **ENGINE)
    scene.exact("vllm:num_requests_running", 40.0, **ENGINE)
    scene.exact("vllm:num_requests_waiting", np.linspace(0, 40, 240), **ENGINE)
    return diagnose(scene.telemetry(), DiagnoseRequest())


def bands(text, row):
    root = ET.fromstring(text)
    cells = [one for one in root.iter() if one.get("data-band")]
    heights = sorted({one.get("y") for one in cells}, key=float)
    return [one.get("data-band") for one in cells if one.get("y") == heights[row]]


def test_cells_have_the_band_of_their_time(found):
    drawn = telemetry_pictures(found)
    first = bands(drawn, 2)  # below a line for each node
    assert first.count("waste") == pytest.approx(48, abs=2)
    assert first.count("good") == pytest.approx(48, abs=2)
    assert set(bands(drawn, 3)) <= {"hot", "overload"}
    assert set(bands(drawn, 4)) == {"under-used"}


def test_names_are_escaped(found):
    assert "<b> gpu" not in telemetry_pictures(found)
    assert "&lt;b&gt; gpu 2" in telemetry_pictures(found)


def test_demand_is_above_throughput_while_requests_wait(found):
    flow = found.quality.service.flow
    assert flow.throughput_tokens_per_s[50] == pytest.approx(4000, rel=0.05)
    ratio = flow.demand_tokens_per_s / flow.throughput_tokens_per_s
    assert ratio[0] == pytest.approx(1.0, abs=0.02)
    assert ratio[-1] == pytest.approx(2.0, abs=0.03)
    assert (flow.capacity_tokens_per_s >= flow.throughput_tokens_per_s).all()
    names = re.findall(r'data-name="(\w+)"', telemetry_pictures(found, "html"))
    assert names == ["throughput", "demand", "capacity"]


def test_characters_differ_by_band(found):
    text = telemetry_pictures(found, "txt")
    rows = text.splitlines()
    assert rows[2].strip().startswith("n1 gpu 0")
    assert rows[2].count(BANDS["waste"][1]) == pytest.approx(48, abs=2)
    assert all(mark in rows[-1] for _, mark in BANDS.values())


def teams(edges=None):
    scene = Scene()
    for gpu, (node, team) in enumerate(itertools.product(("n1", "n2"), ("ads", "vision"))):
        level = {"ads": 0.9, "vision": 0.2}[team]
        scene.exact(
            "DCGM_FI_DEV_GPU_UTIL",
            100 * level,
            gpu=str(gpu % 2),
            Hostname=node,
            namespace=team,
            pod=f"{team}-{node}",
        )
    return diagnose(scene.telemetry(), DiagnoseRequest(edges=edges))


def test_teams_and_nodes_have_lines_of_their_own_in_bands_of_ones_own():
    heat = teams().heat
    assert heat.groups == ("team ads", "team vision", "n1, all GPUs", "n2, all GPUs")
    means = np.nanmean(heat.group_use_frac, axis=1)
    assert means == pytest.approx([0.9, 0.2, 0.55, 0.55])
    drawn = telemetry_pictures(teams())
    assert [set(bands(drawn, k)).pop() for k in range(3)] == ["good", "waste", "under-used"]
    own = telemetry_pictures(teams(BandEdges(waste_frac=0.1, good_frac=0.5, hot_frac=0.6)))
    assert [set(bands(own, k)).pop() for k in range(3)] == ["hot", "under-used", "good"]


def test_a_picture_has_the_colours_of_the_drawing(found):
    image = pytest.importorskip("matplotlib.image")
    pixels = image.imread(io.BytesIO(svg_png(telemetry_pictures(found))))
    shares = {}
    for name, (colour, _) in BANDS.items():
        rgb = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        shares[name] = float((np.abs(pixels[:, :, :3] - rgb).max(axis=2) < 0.01).sum())
    cells = [band for k in range(5) for band in bands(telemetry_pictures(found), k)]
    for name in ("waste", "under-used", "good"):
        wanted = cells.count(name) / cells.count("under-used")
        assert shares[name] / shares["under-used"] == pytest.approx(wanted, abs=0.1), name


def test_without_devices_it_says_so():
    scene = Scene().exact("vllm:num_requests_running", 1.0, **ENGINE)
    nothing = diagnose(scene.telemetry(), DiagnoseRequest())
    assert "no utilization" in telemetry_pictures(nothing, "txt")
    assert "<svg" in telemetry_pictures(nothing)
