"""From an installed package to a manifest that Kubernetes accepts: two commands."""

import subprocess
import sys

import kubernetes_validate
import yaml

WORDS = "Llama-3.1-8B chat, 4 requests/s, 500 input tokens, 100 output tokens, on L40S"
COMMANDS = (
    ["plan", WORDS, "--out", "plan.yaml"],
    ["render", "plan.yaml", "--to", "kubernetes", "--out", "manifests"],
)


def test_two_commands_give_a_manifest_that_kubernetes_accepts(tmp_path):
    for command in COMMANDS:
        run = [sys.executable, "-m", "gpuplan", *command]
        found = subprocess.run(
            run, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
        )
        assert found.returncode == 0, found.stderr
    made = [
        each
        for path in sorted((tmp_path / "manifests").rglob("*.yaml"))
        for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))
        if each
    ]
    kinds = {each["kind"] for each in made}
    assert "Deployment" in kinds
    for each in made:
        kubernetes_validate.validate(each, "1.34", strict=True)
