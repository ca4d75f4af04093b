"""Software of a described system: what is wrong, until when, and what an upgrade would do."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from fakes.scenarios import read_scenario_text
from gpuplan.catalog.load import read_catalog
from gpuplan.catalog.software.rules import check_stack
from gpuplan.cli.app import app
from gpuplan.domain.hardware.software import SoftwareStack
from gpuplan.errors import InputError
from gpuplan.pipeline.check import check, check_scenario

CATALOG = read_catalog()
SERVING = {
    "kind": "online_inference",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "demand": {"requests_per_s": 1},
    "request": {"input_tokens": 500, "output_tokens": 100},
    "slo": {"ttft_p99_ms": 2000},
}


def tree(accelerator: str, software: dict, **work) -> dict:
    return {
        "name": "x",
        "workloads": [{"name": "w", **SERVING, **work}],
        "site": {"software": software},
        "owned": [{"accelerator": accelerator, "nodes": 1, "accelerators_per_node": 8}],
    }


def errors(data: dict) -> set[str]:
    found = check_scenario(read_scenario_text(yaml.safe_dump(data)), CATALOG)
    return {f.rule for f in found.findings if f.severity == "error"}


@pytest.mark.parametrize(
    ("accelerator", "software", "work", "fixed"),
    [
        ("H100", {"driver": "535.104.05", "cuda": "13.0"}, {}, {"driver": "580.65.06"}),
        ("B200", {"driver": "580.65.06", "cuda": "12.4"}, {}, {"cuda": "12.8"}),
    ],
)
def test_a_stack_that_cannot_run_is_refused_and_the_fix_mends_it(
    accelerator, software, work, fixed
):
    assert errors(tree(accelerator, software, **work))
    assert not errors(tree(accelerator, software | fixed, **work))


@pytest.mark.parametrize(
    ("accelerator", "precision", "is_refused"),
    [
        ("A100-SXM-80GB", "fp8", True),
        ("H100", "fp8", False),
        ("H100", "nvfp4", True),
        ("B200", "nvfp4", False),
    ],
)
def test_precision_needs_its_architecture(accelerator, precision, is_refused):
    software = {"driver": "580.65.06", "cuda": "12.8"}
    assert bool(errors(tree(accelerator, software, precision=precision))) == is_refused


@pytest.mark.parametrize(
    ("driver", "month", "severity"),
    [
        ("535.104.05", "2026-05", "note"),
        ("535.104.05", "2026-11", "warning"),
        ("550.54.15", "2026-05", "warning"),
        ("580.65.06", "2026-11", None),
    ],
)
def test_end_of_support_depends_on_the_month(driver, month, severity):
    found = check_stack(SoftwareStack(arch="sm_90", driver=driver), month=month)
    told = [f for f in found if f.rule == "driver-support"]
    assert [f.severity for f in told] == ([severity] if severity else [])
    assert all("580" in f.fix for f in told)


def test_an_upgrade_is_tried_before_it_is_done(tmp_path):
    path = tmp_path / "system.yaml"
    path.write_text(yaml.safe_dump(tree("H100", {"driver": "535.104.05", "cuda": "13.0"})))
    assert not check(path).is_ok
    assert check(path, changes=['site.software.driver="580.65.06"']).is_ok
    with pytest.raises(InputError):
        check(path, changes=["site.software.driver"])
    ran = CliRunner().invoke(
        app, ["check", str(path), "--what-if", 'site.software.driver="580.65.06"', "--json"]
    )
    assert ran.exit_code == 0
    document = json.loads(ran.stdout)
    assert next(f["rule"] for f in document["mended"]) == "driver-cuda"
    assert not [f for f in document["new"] if f["severity"] == "error"]
    worse = CliRunner().invoke(
        app,
        [
            "check",
            str(path),
            "--what-if",
            'site.software.cuda="12.4"',
            "--what-if",
            "owned[0].accelerator=B200",
        ],
    )
    assert worse.exception.exit_code == 4
    assert "new" in worse.stdout
