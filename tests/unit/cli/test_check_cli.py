"""`gpuplan check`: forms, files, exit codes."""

import json
import xml.etree.ElementTree as ET

from typer.testing import CliRunner

from gpuplan.cli.app import app
from gpuplan.errors import PlannerError
from shared_data import ROOT


def run(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def exit_code(done) -> int:
    return done.exception.exit_code if isinstance(done.exception, PlannerError) else done.exit_code


def test_rejected_ends_with_4_and_still_prints_the_document():
    done = run("check", str(ROOT / "examples" / "slow-disks.yaml"), "--json")
    assert exit_code(done) == 4
    assert json.loads(done.stdout)["ok"] is False


def test_sound_ends_with_0_and_writes_files(tmp_path):
    racks, fabric, todo = (tmp_path / name for name in ("racks.svg", "fabric.svg", "todo.md"))
    done = run(
        "check", str(ROOT / "examples" / "power-shortfall.yaml"), "--racks", str(racks),
        "--fabric", str(fabric), "--checklist", str(todo),
    )  # fmt: skip
    assert exit_code(done) == 0, done.output
    assert ET.parse(racks).getroot().tag.endswith("svg")
    assert ET.parse(fabric).getroot().tag.endswith("svg")
    assert todo.read_text().startswith("# Before installation")


def test_faults_of_the_file_end_with_2(tmp_path):
    path = tmp_path / "system.yaml"
    path.write_text("name: x\nworkloads: []\n")
    assert exit_code(run("check", str(path))) == 2
