"""What a plan costs: CPU and wall seconds of a fresh process, warm, and beside a peer.

    python benchmarks/bench_plan.py [--repeat 3] [--peer PATH/TO/aiconfigurator]
    python benchmarks/bench_plan.py --only-kinds [--repeat 0] [--kind agents]

Kinds are questions of every sort over all accelerators with the full comparison: the target is 3
CPU-seconds for one service, warm, and 30 for services with batch. Warm is the first answer to that
very question in a process that has answered another one: imports, tables and kernels are there,
nothing of the question is. Beside the seconds stand what was done for them, which no other process
on the machine changes: runs of fleets, requests in them and steps of engines.

Fresh processes find modules and kernels compiled, as after an installation and a first run; the
first run after a change compiles them. The peer recommends for one type of accelerator; ours plans
the same service with all of them, simulated. Ours and the peer's runs take turns, so that both
meet the same load. Process time counts work, not waiting, but a core that is shared with others
still runs slower. Without the peer its recorded figures are shown.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DAY = "2026-11-01"
CHAT = "examples/chat.yaml"
TARGETS = (
    CHAT, "examples/which-gpu.yaml", "examples/coding-agents.yaml",
    "examples/large-training.yaml", "Llama-3.3-70B, 6000 users, chat",
)  # fmt: skip
BESIDE = """
name: two services beside documents
workloads:
  - {name: chat, kind: online_inference, model: meta-llama/Llama-3.1-8B-Instruct,
     demand: {requests_per_s: 5, peak_to_mean: 3},
     request: {input_tokens: 1000, output_tokens: 250},
     slo: {ttft_p95_ms: 1500, tpot_p95_ms: 40}}
  - {name: search, kind: online_inference, model: Qwen/Qwen3-32B, precision: fp8,
     demand: {requests_per_s: 3}, request: {input_tokens: 3000, output_tokens: 200},
     slo: {ttft_p95_ms: 2000, tpot_p95_ms: 50}}
  - {name: nightly, kind: batch_inference, model: meta-llama/Llama-3.1-8B-Instruct,
     batch: {docs_per_day: 2.0e6, deadline_h: 24}, request: {input_tokens: 500, output_tokens: 50}}
"""
# Kind → words, or a scenario.
KINDS: dict[str, str] = {
    "small dense": "Qwen3-8B, chat, 1000 users",
    "dense": "Qwen3-32B, chat, 3000 users",
    "large dense": "Llama-3.3-70B, 6000 users, chat",
    "small mixture of experts": "Qwen3-30B-A3B, chat, 20 requests/s",
    "large mixture of experts": "DeepSeek-R1, 2000 users, chat",
    "concurrent requests": "Llama-3.3-70B, 200 concurrent requests, 2000 input tokens, "
    "300 output tokens",
    "agents": "serve Qwen3-32B for 100 concurrent coding agents with 20k context",
    "agents, large": "serve Qwen3-235B for 200 concurrent coding agents with 30k context",
    "reasoning": "Qwen3-32B, reasoning, 2 requests/s, 800 in 6k out",
    "reasoning, large": "DeepSeek-R1, reasoning, 5 requests/s, 1k in 8k out",
    "long contexts": "Llama-3.1-70B, 0.2 requests/s, 100k in 500 out, TTFT p95 60 s",
    "growth": "Llama-3.1-8B, chat, 2000 users, load doubles in a year",
    "owned": "Qwen2.5-72B, chat, 4000 users, we own 16 A100",
    "embeddings": "bge-m3, 5M docs/day embeddings",
    "speech": "whisper large-v3, 10k hours/day",
    "batch": "summarise 100M documents in a week with Llama-3.1-8B",
    "LoRA": "fine-tune Llama-3.1-70B with LoRA on 50M tokens in 2 days",
    "fine-tuning": "full fine-tune Qwen3-8B on 200M tokens in 1 day",
    "pretraining": "Llama-2-7B, pretrain, 1T tokens, in 30 days",
}  # fmt: skip
SEVERAL: dict[str, str] = {
    "three models": "RAG: bge-m3 + bge-reranker-v2-m3 + Llama-3.3-70B, 20 requests/s",
    "owned, with runs by night": "we own 2 DGX H100: serve Llama-3.3-70B chat for 3000 users and "
    "fine-tune Llama-3.1-8B with LoRA on 100M tokens every night",
    "two services and batch": BESIDE,
}
TARGETS_S = (3.0, 30.0)  # one service, several
OTHER = "Qwen3-8B, chat, 50 users on L4"  # answered first, so that a process is warm
# The same layers, formats, lengths, promises and rate as the chat example; its configuration is
# in the peer's package, so that nothing is fetched.
PEER = (
    "cli recommend --model nvidia/Llama-3.1-70B-Instruct-FP8 --system h100_sxm --backend vllm "
    "--isl 2200 --osl 350 --ttft 2000 --tpot 40 --target-request-rate 3.333"
)  # fmt: skip


class Counted(NamedTuple):
    """What was simulated for an answer."""

    n_runs: int
    n_requests: int
    n_steps: int


class Spent(NamedTuple):
    """What a process took."""

    cpu_s: float
    wall_s: float


# aiconfigurator 0.12.0, this command, on a shared 2-core machine at a load of 4.
RECORDED = Spent(16.0, 24.7)


def spent(command: list[str], env: dict[str, str]) -> Spent:
    """CPU and wall seconds of one process."""
    before, start_s = os.times(), time.perf_counter()
    subprocess.run(
        command, cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    after, wall_s = os.times(), time.perf_counter() - start_s
    cpu_s = sum(after[2:4]) - sum(before[2:4])
    return Spent(cpu_s, wall_s)


def fresh(target: str) -> Spent:
    """`gpuplan plan` as a new process; compiled modules are kept, as an installation does."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "gpuplan", "plan", target, "--as-of", DAY, "--json"]
    return spent(command, kept | {"PYTHONPATH": str(ROOT / "src")})


def warm_s(target: str) -> float:
    """CPU-seconds of the verb once everything is loaded."""
    from gpuplan.domain.requests.plan import PlanRequest  # noqa: PLC0415
    from gpuplan.pipeline.plan import plan  # noqa: PLC0415

    request = PlanRequest(target=target, today=date.fromisoformat(DAY))
    plan(request)
    start = time.process_time()
    plan(request)
    return time.process_time() - start


def beside(peer: str | None, repeat: int) -> None:
    """The chat example on one type and on all, and the peer's answer for one type."""
    text = (ROOT / CHAT).read_text("utf-8")
    line = "  accelerators: {allowed: [H100]}\n"
    if line not in text:
        raise SystemExit(f"{CHAT} no longer names its accelerator as expected")
    with tempfile.TemporaryDirectory() as folder:
        every = Path(folder, "all.yaml")
        every.write_text(text.replace(line, ""), "utf-8")
        rounds = [_round(str(every), peer) for _ in range(repeat)]
    best = [Spent(*(min(column) for column in zip(*runs, strict=True)))
            for runs in zip(*rounds, strict=True)]  # fmt: skip
    theirs = best[2] if peer else RECORDED
    print(f"\n{'chat for 6000 users':40} {'CPU-s':>8} {'wall s':>8} {'CPU ratio':>10}")
    names = ("ours, one type", "ours, all accelerators")
    for name, took in zip(names, best[:2], strict=True):
        ratio = theirs.cpu_s / took.cpu_s
        print(f"{name:40} {took.cpu_s:8.2f} {took.wall_s:8.2f} {ratio:10.1f}")
    where = "peer, one type" if peer else "peer, one type (recorded)"
    print(f"{where:40} {theirs.cpu_s:8.2f} {theirs.wall_s:8.2f}")


def _round(every: str, peer: str | None) -> list[Spent]:
    ours = [fresh(CHAT), fresh(every)]
    return [*ours, spent([peer, *PEER.split()], dict(os.environ))] if peer else ours


@contextmanager
def counting() -> Iterator[Callable[[], Counted]]:
    """Counts what the simulator is asked for while it lasts."""
    from gpuplan.studies.sizing import streams  # noqa: PLC0415

    seen: list[Counted] = []
    before = {name: getattr(streams, name) for name in ("routed_outcome", "closed_outcome")}

    def counted(run: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **options: Any) -> Any:
            found = run(*given, **options)
            seen.append(Counted(1, len(found.requests), found.totals.n_steps))
            return found

        return wrapped

    for name, run in before.items():
        setattr(streams, name, counted(run))
    try:
        yield lambda: Counted(*(sum(column) for column in zip((0, 0, 0), *seen, strict=True)))
    finally:
        for name, run in before.items():
            setattr(streams, name, run)


def first_s(target: str) -> tuple[float, Counted]:
    """CPU-seconds of the first answer to a question in a warm process, and what was simulated."""
    from gpuplan.domain.requests.plan import PlanRequest  # noqa: PLC0415
    from gpuplan.pipeline.plan import plan  # noqa: PLC0415

    with counting() as total:
        start = time.process_time()
        plan(PlanRequest(target=target, today=date.fromisoformat(DAY)))
        return time.process_time() - start, total()


def kinds(repeat: int, only: str) -> None:
    """CPU-seconds of every kind of question, in a fresh process and warm, beside its target."""
    print(f"\n{'kind, all accelerators':28} {'fresh':>7} {'warm':>7} {'target':>7} "
          f"{'runs':>6} {'requests':>10} {'steps':>8}")  # fmt: skip
    first_s(OTHER)
    with tempfile.TemporaryDirectory() as folder:
        beside_path = Path(folder, "beside.yaml")
        beside_path.write_text(BESIDE, "utf-8")
        for questions, target_s in zip((KINDS, SEVERAL), TARGETS_S, strict=True):
            for kind in (name for name in questions if only in name):
                asked = questions[kind]
                target = str(beside_path) if asked is BESIDE else asked
                best = min((fresh(target).cpu_s for _ in range(repeat)), default=float("nan"))
                warm, done = first_s(target)
                print(
                    f"{kind:28} {best:7.2f} {warm:7.2f} {target_s:7.0f} {done.n_runs:6,} "
                    f"{done.n_requests / 1e6:9.2f}M {done.n_steps / 1e6:7.0f}M",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peer", default=shutil.which("aiconfigurator"))
    parser.add_argument("--only-peer", action="store_true", help="leave the other examples out")
    parser.add_argument("--only-kinds", action="store_true", help="every kind of question, no peer")
    parser.add_argument("--kind", default="", help="those kinds whose name holds this")
    asked = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "src"))
    if asked.only_kinds:
        kinds(asked.repeat, asked.kind)
        return
    beside(asked.peer, asked.repeat)
    if asked.only_peer:
        return
    kinds(asked.repeat, asked.kind)
    print(f"\n{'plan':40} {'fresh, CPU-s':>14} {'warm, CPU-s':>12}")
    for target in TARGETS:
        best = min(fresh(target).cpu_s for _ in range(asked.repeat))
        print(f"{target:40} {best:14.2f} {warm_s(target):12.2f}")


if __name__ == "__main__":
    main()
