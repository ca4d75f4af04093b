"""The program as a user meets it: forms, exit codes, errors, pipes."""

import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys

import pytest
import yaml

from gpuplan.cli import app as door
from gpuplan.cli.app import EXAMPLES


def gpuplan(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpuplan", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
    )


def test_alone_it_prints_six_examples():
    done = gpuplan()
    assert done.returncode == 0
    assert len(re.findall(r"^  gpuplan ", done.stdout, re.MULTILINE)) == 6


@pytest.mark.parametrize("line", re.findall(r"^  gpuplan (.*)$", EXAMPLES, re.MULTILINE))
def test_every_example_runs(line):
    done = gpuplan(*shlex.split(line))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_fit_has_the_stable_keys():
    done = gpuplan("fit", "Llama-3.1-8B", "--on", "H100", "--json")
    document = json.loads(done.stdout)
    wanted = {
        "schema_version", "n_params", "n_active_params", "kv_bytes_per_token",
        "weights_bytes_per_accelerator", "usable_bytes", "fits", "headroom_bytes",
        "max_concurrency", "suggestions",
    }  # fmt: skip
    assert wanted <= set(document)
    assert document["kv_bytes_per_token"] == 131072


def test_forms_say_the_same():
    asked = ["fit", "Llama-3.1-8B", "--on", "L4"]
    as_json = json.loads(gpuplan(*asked, "-o", "json").stdout)
    as_yaml = yaml.safe_load(gpuplan(*asked, "-o", "yaml").stdout)
    assert as_json == as_yaml
    assert "| weights, bf16 |" in gpuplan(*asked, "-o", "md").stdout
    cells = list(csv.reader(io.StringIO(gpuplan(*asked, "-o", "csv").stdout)))
    assert [row[0] for row in cells if row and row[0].startswith("weights")] == ["weights, bf16"]


def test_remarks_stay_off_stdout():
    done = gpuplan("fit", "Llama-3.1-8B", "--on", "H100")
    assert "Assumptions:" in done.stderr
    assert "Assumptions:" not in done.stdout
    assert "h100-pcie" in done.stderr, "an ambiguous name is told"


def test_tables_fit_a_page_and_carry_no_colour():
    done = gpuplan("fit", "deepseek-v3", "--on", "8xH100", "--concurrency", "64", COLUMNS="100")
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert "\x1b[" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["fit", "Lamma-3.1-70X", "--on", "H100"], 2, "nearest"),
        (["fit", "Llama-3.1-8B", "--on", "H1000"], 2, "H1000"),
        (["fit", "Llama-3.1-8B", "--on", "H100", "--precision", "fp7"], 2, "use fp8"),
        (["fit", "Llama-3.1-8B", "--on", "H100", "--tp", "3"], 2, "32 attention heads"),
        (["fit", "Llama-3.1-8B", "--on", "H100", "--tp", "0"], 2, "--tp"),
        (["fit", "Llama-3.1-8B", "--on", "H100", "--context", "-5"], 2, "--context"),
        (["fit", "Llama-3.1-8B", "--on", "H100", "--engine-version", "new"], 2, "0.11"),
        (["fit", "/nowhere/config.json", "--on", "H100"], 2, "nowhere"),
        (["fit", "Llama-3.1-70B", "--on", "T4", "--strict"], 3, "Assumptions"),
        (["catalog", "list", "cakes"], 2, "accelerators"),
        (["catalog", "show", "nothing-of-the-kind"], 2, "neither"),
        (["scenario", "check", "/nowhere.yaml"], 2, "nowhere"),
        (["fly"], 2, "fly"),
    ],
)
def test_wrong_input_says_where_what_and_fix(arguments, code, said):
    done = gpuplan(*arguments)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_leaves_early_is_no_error():
    command = f"{shlex.quote(sys.executable)} -m gpuplan catalog list offers -o csv | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("cloud,")
    assert done.stderr == ""


def test_catalog_is_sound():
    done = gpuplan("catalog", "check", "--json")
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["ok"]


def test_every_number_has_a_source():
    document = json.loads(gpuplan("catalog", "show", "h100-sxm", "--json").stdout)
    assert document["facts"]
    assert all(fact["source_title"] for fact in document["facts"])
    assert any(not fact["preferred"] and fact["note"] for fact in document["facts"])


def test_overlay_is_visible_in_the_result(tmp_path):
    overlay = tmp_path / "ours.yaml"
    overlay.write_text('accelerators:\n  h100-sxm: {memory_visible_gib: 78, source: "our lab"}\n')
    asked = ["fit", "Llama-3.1-8B", "--on", "h100-sxm", "--json"]
    plain = json.loads(gpuplan(*asked).stdout)
    done = gpuplan(*asked, "--overlay", str(overlay))
    laid = json.loads(done.stdout)
    assert laid["usable_bytes"] == 78 * 2**30
    assert plain["usable_bytes"] > laid["usable_bytes"]
    assert laid["overrides"][0]["item"] == "h100-sxm"
    assert laid["overrides"][0]["overlay"] == str(overlay)
    assert plain["overrides"] == []


def test_init_writes_what_check_accepts(tmp_path):
    path = tmp_path / "scenario.yaml"
    assert gpuplan("init", "--kind", "mixed", "--out", str(path)).returncode == 0
    assert gpuplan("scenario", "check", str(path)).returncode == 0
    again = gpuplan("init", "--out", str(path))
    assert again.returncode == 2
    assert "--force" in again.stderr


def test_our_fault_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(door, "app", lambda: 1 / 0)
    monkeypatch.setattr(sys, "argv", ["gpuplan", "fit"])
    monkeypatch.delenv("GPUPLAN_DEBUG", raising=False)
    with pytest.raises(SystemExit) as ended:
        door.main()
    assert ended.value.code == 1
    assert "internal error: ZeroDivisionError" in capsys.readouterr().err


def test_help_lists_the_commands():
    done = gpuplan("--help")
    assert done.returncode == 0
    for command in ("fit", "init", "scenario", "catalog"):
        assert command in done.stdout


def test_help_loads_nothing_heavy():
    """What help costs is bounded by what it imports."""
    script = (
        "import sys\nfrom gpuplan.cli.app import app\n"
        "heavy = {'numpy', 'scipy', 'numba', 'polars', 'pydantic', 'rich', 'yaml', 'httpx'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
