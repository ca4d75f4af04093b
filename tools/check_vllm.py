"""Hold the simulator to fresh streams that vLLM's own scheduler serves on a clock.

python tools/check_vllm.py --python ENVIRONMENT/bin/python [--path FOLDER] [--kept FILE]
    [--first 1] [--seeds 4] [--mixes 200] [--hybrids 100] [--states 50]
    [--transfers 50] [--write]
python tools/check_vllm.py --install ENVIRONMENT [--version 0.32.0]

`--install` makes the environment (CPU only, no models). `--path` is a folder with another version
of vLLM, put there by pip --target. `--kept` is a file of the engine's answers, so that a run that
was ended goes on; `--write` puts the counts of the run on the page of validation. The harness that
drives vLLM is kept outside the repository (set GPUPLAN_SHARED_DATA). Ends with 1 where any request
differs.
"""

import argparse
import gzip
import json
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from oracles.asking import Engine, note  # noqa: E402
from oracles.recorded import DRAFTED, n_differing  # noqa: E402
from oracles.vllm.disaggregated import disaggregated  # noqa: E402
from oracles.vllm.fresh import cases  # noqa: E402
from oracles.vllm.hybrid import hybrid  # noqa: E402
from oracles.vllm.mixes import mixed  # noqa: E402
from oracles.vllm.runs import by_ids, ours  # noqa: E402
from oracles.vllm_page import MEASURED  # noqa: E402
from shared_data import SHARED  # noqa: E402

ENDLESS = "endless"  # the engine's own requests preempt one another for ever: nothing to hold to
HARNESS = SHARED.parent / "oracles" / "vllm"
NEEDED = (
    "torch", "transformers>=5.16.1,<5.20", "pydantic", "msgspec", "cloudpickle", "pyzmq",
    "cachetools", "blake3", "cbor2", "pybase64", "psutil", "regex", "openai", "fastapi",
    "prometheus_client", "opentelemetry-sdk", "oss-harmony", "uvloop", "xgrammar", "llguidance",
    "diskcache", "gguf", "mistral_common", "aiohttp", "py-cpuinfo", "setproctitle", "pillow",
    "protobuf", "sentencepiece", "partial_json_parser", "einops",
)  # fmt: skip


def main() -> int:
    given = asked()
    if given.install is not None:
        return install(given.install, given.version)
    if not HARNESS.is_dir() or given.python is None:
        print(f"give --python, and GPUPLAN_SHARED_DATA whose neighbour holds {HARNESS.name}/")
        return 2
    engine = started(given.python, given.path, given.kept)
    version, counts = engine.version, {"streams": 0, "differ": 0, "requests": 0}
    try:
        for name, case in streams(given):
            answer = engine.answer(case)
            if given.record:
                record(version, name, case, answer)
            if ENDLESS in answer.get("error", ""):
                continue
            wrong = difference(case, answer, version)
            counts["streams"] += 1
            counts["differ"] += bool(wrong)
            counts["requests"] += len(case["requests"])
            if wrong:
                print(f"vLLM {version}, {name}: {wrong}", flush=True)
            if counts["streams"] % 50 == 0:
                print(f"vLLM {version}: {counts}", flush=True)
    finally:
        engine.close()
    print(f"vLLM {version}: {counts}")
    if given.write:
        note(MEASURED, version, counts)
    return int(counts["differ"] > 0)


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", type=Path)
    parser.add_argument("--version", default="0.32.0")
    parser.add_argument("--python", type=Path)
    parser.add_argument("--path", type=Path)
    parser.add_argument("--kept", type=Path, help="answers of the engine, to go on from")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=4, help="streams of every named regime")
    parser.add_argument("--mixes", type=int, default=0, help="streams with all settings drawn")
    parser.add_argument("--hybrids", type=int, default=0, help="the same with groups of layers")
    parser.add_argument("--states", type=int, default=0, help="with groups of recurrent layers")
    parser.add_argument("--transfers", type=int, default=0, help="prefill and decode apart")
    parser.add_argument("--requests", type=int, default=60, help="of a stream of a named regime")
    parser.add_argument("--regime", default="", help="only regimes whose name holds this")
    parser.add_argument("--record", action="store_true", help="keep streams and answers for tests")
    parser.add_argument("--write", action="store_true", help="the counts are the page's figures")
    return parser.parse_args()


def streams(given: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Streams by name: of every regime by seed, then those of which all is drawn."""
    for seed in range(given.first, given.first + given.seeds):
        for name, case in cases(seed, given.requests).items():
            if given.regime in name:
                yield name, case
    for number in range(given.first, given.first + given.mixes):
        yield f"mix {number}", mixed(number)
    for number in range(given.first, given.first + given.hybrids):
        yield f"hybrid {number}", hybrid(number)
    for number in range(given.first, given.first + given.states):
        yield f"states {number}", hybrid(number, has_states=True)
    for number in range(given.first, given.first + given.transfers):
        yield f"transfers {number}", disaggregated(number)


def started(python: Path, path: Path | None, kept: Path | None = None) -> Engine:
    """vLLM's own scheduler, to be asked."""
    script = ROOT / "tests" / "oracles" / "vllm" / "real.py"
    return Engine([str(python), str(script), str(HARNESS)], path=path, kept=kept)


def record(version: str, name: str, case: dict[str, Any], answer: dict[str, Any]) -> None:
    """Keep the stream and what the engine made of it, to a nanosecond."""
    kept = json.loads(gzip.decompress(DRAFTED.read_bytes())) if DRAFTED.exists() else {}
    found = {
        key: [round(one, 9) for one in value] if isinstance(value, list) else value
        for key, value in answer.items()
    }
    kept.setdefault(name, {"case": case, "answers": {}})["answers"][version] = found
    DRAFTED.write_bytes(gzip.compress(json.dumps(kept).encode(), mtime=0))


def install(folder: Path, version: str) -> int:
    """An environment with vLLM's Python parts, and all that importing its scheduler needs."""
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q"]
    subprocess.run([*pip, *NEEDED], check=True)
    return subprocess.run([*pip, "--no-deps", f"vllm=={version}"], check=True).returncode


def difference(case: dict[str, Any], answer: dict[str, Any], version: str) -> str:
    """What differs, or nothing."""
    if "error" in answer:
        return f"the oracle failed: {answer['error']}"
    case, answer = by_ids(case, answer)
    found = ours(case, version)
    n_other = n_differing(found, answer)
    steps = f"{found.totals.n_steps} steps for {answer['n_steps']}"
    return f"{n_other} of {len(case['requests'])} requests, {steps}" if n_other else ""


if __name__ == "__main__":
    sys.exit(main())
