"""Every command of the README's "Use" section runs, in order, with the sample files we ship."""

import re
import shlex
from pathlib import Path

import make_samples
import write_docs
from typer.testing import CliRunner

from gpuplan.cli.app import app
from shared_data import ROOT

NEEDS_NETWORK = ("http://", "catalog update", "gpuplan serve")  # or wait for somebody to ask


def use_section() -> str:
    text = (ROOT / "README.md").read_text()
    return text.partition("\n## Use\n")[2].partition("\n## ")[0]


def commands() -> list[str]:
    lines = re.findall(r"^    (gpuplan .*)$", use_section(), re.MULTILINE)
    found = [re.split(r"\s+# ", line)[0] for line in lines]
    return [line for line in found if not any(word in line for word in NEEDS_NETWORK)]


def test_commands_of_the_readme_run():
    """In one folder and in order, because some read what others wrote."""
    assert len(commands()) >= 20
    with write_docs.scratch():
        for command in commands():
            line, _, target = command.partition(" > ")
            done = CliRunner().invoke(app, shlex.split(line)[1:])
            assert done.exit_code == 0, f"{command}: {done.output}"
            if target:
                Path(target).write_text(done.stdout)


def test_python_of_the_readme_runs(capsys):
    code = re.search(r"```python\n(.*?)```", use_section(), re.DOTALL)[1]
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_samples_are_what_the_tool_writes(tmp_path, monkeypatch):
    monkeypatch.setattr(make_samples, "FOLDER", tmp_path)
    make_samples.main()
    for path in sorted(tmp_path.iterdir()):
        assert path.read_bytes() == (ROOT / "examples" / "data" / path.name).read_bytes(), path.name
