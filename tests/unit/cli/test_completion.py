"""TAB: the shell's real protocol, in a process of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpuplan.cli.app import COMMANDS
from gpuplan.cli.completion import accelerator_names, model_names


@pytest.fixture
def program(tmp_path) -> Path:
    """The program under its own name, as an installation has it."""
    path = tmp_path / "gpuplan"
    path.write_text(f"#!{sys.executable}\nfrom gpuplan.cli.app import main\nmain()\n")
    path.chmod(0o755)
    return path


def offered_to_bash(program: Path, *words: str) -> list[str]:
    """What bash shows after the last word: its own function, as `--show-completion` prints it."""
    script = f"""
        export PATH={program.parent}:$PATH
        eval "$(gpuplan --show-completion bash)"
        COMP_WORDS=(gpuplan {" ".join(f"'{word}'" for word in words)}); COMP_CWORD={len(words)}
        _gpuplan_completion gpuplan
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    bash = [shutil.which("bash"), "--norc", "-c", script]
    done = subprocess.run(bash, capture_output=True, text=True, check=True, env=environment)
    assert not done.stderr
    return done.stdout.split()


def answer_to_zsh(program: Path, line: str) -> str:
    environment = {**os.environ, "_GPUPLAN_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": line}
    done = subprocess.run([program], capture_output=True, text=True, check=True, env=environment)
    return done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["pl"], ["plan"]),
        (["predict"], [verb for verb in COMMANDS if verb.startswith("predict")]),
        ([""], list(COMMANDS)),
        (["fit", "--kv"], ["--kv-precision"]),
        (["fit", "Llama-3.3-70B-I"], ["Llama-3.3-70B-Instruct"]),
        (["fit", "Llama-3.1-8B", "--on", "2xl40"], ["2xl40", "2xl40s"]),
        (["fit", "Llama-3.1-8B", "-o", "j"], ["json"]),
        (["catalog", "sh"], ["show"]),
        (["report", "pla"], []),  # the shell's own: files
    ],
)
def test_bash_is_offered(program, words, offered):
    assert offered_to_bash(program, *words) == offered


def test_zsh_is_offered_verbs_and_options_with_their_help(program):
    verbs = answer_to_zsh(program, "gpuplan fi")
    assert verbs.startswith("_arguments '*: :((")
    assert '"fit":"' in verbs
    assert '"fit-training":"' in verbs
    assert '"plan"' not in verbs
    assert '"--kv-precision":"' in answer_to_zsh(program, "gpuplan fit --kv")
    assert '"h100-sxm"' in answer_to_zsh(program, "gpuplan fit x --on h100")
    assert answer_to_zsh(program, "gpuplan report pla").strip() == "_files"


def test_no_completion_asked_shows_the_examples(program):
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert "gpuplan --help lists the commands." in done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("4xRTX-PRO", "4xRTX-PRO-6000-bw"), ("a10,h10", "a10,h100-sxm"), ("t4", "t4")],
)
def test_counts_and_lists_of_accelerators_stay(typed, offered):
    found = accelerator_names(typed)
    assert offered in found


def test_models_are_found_with_and_without_owner():
    assert "meta-llama/Llama-3.3-70B-Instruct" in model_names("meta-llama/Llama-3.3")
    assert "llama-3.3-70B-Instruct" in model_names("llama-3.3")
    assert not model_names("no such model")
