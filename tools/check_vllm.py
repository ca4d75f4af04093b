"""Hold the simulator to fresh streams that vLLM's own scheduler serves on a clock.

python tools/check_vllm.py --python ENVIRONMENT/bin/python [--path FOLDER] [--first 1] [--seeds 4]
python tools/check_vllm.py --install ENVIRONMENT [--version 0.32.0]

`--install` makes the environment (CPU only, no models). `--path` is a folder with another version
of vLLM, put there by pip --target. The harness that drives vLLM is kept outside the repository
(set GPUPLAN_SHARED_DATA). Ends with 1 where any request differs.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from oracles.recorded import DRAFTED, n_differing  # noqa: E402
from oracles.vllm.fresh import cases  # noqa: E402
from oracles.vllm.runs import ours  # noqa: E402
from oracles.vllm_page import MEASURED  # noqa: E402
from shared_data import SHARED  # noqa: E402

HARNESS = SHARED.parent / "oracles" / "vllm"
NEEDED = (
    "torch", "transformers>=5.16.1,<5.20", "pydantic", "msgspec", "cloudpickle", "pyzmq",
    "cachetools", "blake3", "cbor2", "pybase64", "psutil", "regex", "openai", "fastapi",
    "prometheus_client", "opentelemetry-sdk", "oss-harmony", "uvloop", "xgrammar", "llguidance",
    "diskcache", "gguf", "mistral_common", "aiohttp", "py-cpuinfo", "setproctitle", "pillow",
    "protobuf", "sentencepiece", "partial_json_parser", "einops",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", type=Path)
    parser.add_argument("--version", default="0.32.0")
    parser.add_argument("--python", type=Path)
    parser.add_argument("--path", type=Path)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--requests", type=int, default=60)
    parser.add_argument("--regime", default="", help="only regimes whose name holds this")
    parser.add_argument("--record", action="store_true", help="keep streams with draft tokens")
    parser.add_argument("--write", action="store_true", help="add the counts to the page's figures")
    given = parser.parse_args()
    if given.install is not None:
        return install(given.install, given.version)
    if not HARNESS.is_dir() or given.python is None:
        print(f"give --python, and GPUPLAN_SHARED_DATA whose neighbour holds {HARNESS.name}/")
        return 2
    n = n_wrong = 0
    for seed in range(given.first, given.first + given.seeds):
        drawn = cases(seed, given.requests)
        streams = {name: one for name, one in drawn.items() if given.regime in name}
        answers = real_answers(streams, given.python, given.path)
        version, n_now = answers.pop("_version"), -n_wrong
        if given.record:
            record(version, streams, answers)
        for name, answer in answers.items():
            wrong = difference(streams[name], answer, version)
            n, n_wrong = n + 1, n_wrong + bool(wrong)
            if wrong:
                print(f"vLLM {version}, {name}: {wrong}", flush=True)
        print(f"vLLM {version}: {n} streams, {n_wrong} differ", flush=True)
        if given.write:
            note(
                version,
                n=len(answers),
                n_wrong=n_wrong + n_now,
                n_requests=given.requests * len(answers),
            )
    return int(n_wrong > 0)


def note(version: str, *, n: int, n_wrong: int, n_requests: int) -> None:
    """Add what was found to the figures of the page of validation."""
    known = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    before = known.get(version, {"streams": 0, "differ": 0, "requests": 0})
    found = {"streams": n, "differ": n_wrong, "requests": n_requests}
    known[version] = {name: before[name] + found[name] for name in found}
    MEASURED.write_text(json.dumps(known, indent=1) + "\n")


def record(version: str, streams: dict[str, Any], answers: dict[str, Any]) -> None:
    """Keep the streams and what the engine made of them, to a nanosecond."""
    kept = json.loads(gzip.decompress(DRAFTED.read_bytes())) if DRAFTED.exists() else {}
    for name, case in streams.items():
        found = {
            key: [round(one, 9) for one in value] if isinstance(value, list) else value
            for key, value in answers[name].items()
        }
        kept.setdefault(name, {"case": case, "answers": {}})["answers"][version] = found
    DRAFTED.write_bytes(gzip.compress(json.dumps(kept).encode(), mtime=0))


def install(folder: Path, version: str) -> int:
    """An environment with vLLM's Python parts, and all that importing its scheduler needs."""
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q"]
    subprocess.run([*pip, *NEEDED], check=True)
    return subprocess.run([*pip, "--no-deps", f"vllm=={version}"], check=True).returncode


def real_answers(streams: dict[str, Any], python: Path, path: Path | None) -> dict[str, Any]:
    """What vLLM's own scheduler makes of the streams."""
    script = ROOT / "tests" / "oracles" / "vllm" / "real.py"
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder) / "cases.json", Path(folder) / "answers.json"
        given.write_text(json.dumps(streams))
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        if path is not None:
            environment["PYTHONPATH"] = str(path)
        command = [str(python), str(script), str(HARNESS), str(given), str(found)]
        subprocess.run(command, check=True, env=environment, capture_output=True)
        answers: dict[str, Any] = json.loads(found.read_text())
    return answers


def difference(case: dict[str, Any], answer: dict[str, Any], version: str) -> str:
    """What differs, or nothing."""
    if "error" in answer:
        return f"the oracle failed: {answer['error']}"
    found = ours(case, version)
    n_other = n_differing(found, answer)
    steps = f"{found.totals.n_steps} steps for {answer['n_steps']}"
    return f"{n_other} of {len(case['requests'])} requests, {steps}" if n_other else ""


if __name__ == "__main__":
    sys.exit(main())
