"""A table of the simulator against vLLM's own scheduler, for the page of validation."""

import gzip
import json
from typing import Any, NamedTuple

import numpy as np

from gpuplan.domain.simulation.engine import Admission, BlockRules
from gpuplan.performance.serving.vllm import vllm_version
from oracles.asking import fresh_rows
from oracles.recorded import DRAFTED, HERE, TOLERANCE_S, n_differing, recorded, simulated
from oracles.vllm.runs import ours

MODES = ("sync", "async")
VERSIONS = ("0.32.0", "0.15.1")
MEASURED = HERE / "vllm" / "fresh.json"  # written by tools/check_vllm.py
HEAD = """\
## vLLM's own scheduler

Recorded streams through vLLM's own scheduler, KV cache manager and engine loop, on a clock instead
of a device (`tests/oracles/vllm.json.gz`), and through ours: requests whose first token, end and
preemptions are equal to two nanoseconds, with the number of steps of each run. Sync, async, and
async with responses that end by EOS, together.
"""
FRESH = """\
Fresh random streams (`python tools/check_vllm.py`), by version: streams, streams that differ,
requests. The counts are the tool's own.

| vLLM | streams | differ | requests |
|---|---:|---:|---:|
"""
COVERED = """
Some are of named regimes (`tests/oracles/vllm/fresh.py`); in the others every setting is
drawn by itself (`tests/oracles/vllm/mixes.py`), so that any of them meet: caches from one request
to ample, blocks of 1 to 256 tokens, one to 1,024 sequences, iterations of 16 to 65,536 tokens,
prompts of one token and prompts longer than an iteration, chunked prefill off, priorities below
zero and equal ones, arrivals at one instant, on a grid, or in bursts 40 s apart, sessions, shared
system prompts and prompts that are repeated word by word, limits on long prefills, watermarks,
responses of which some end by EOS and some at their length, draft tokens, limits on LoRA adapters
(`max_loras`), two to five pipeline stages.

Groups of layers (`--hybrids`, `tests/oracles/vllm/hybrid.py`) are mixes of the same kind on vLLM's
hybrid KV cache: sliding windows of 2 to 1,124 tokens in one to five groups, sometimes of two sizes,
or chunks of local attention, beside full attention, or one window alone; most pools hold one to two
of the largest requests (393 preemptions in 17 of the 50 streams of 0.32.0, 4,498 in 23 of those of
0.15.1). What is simulated: blocks leave a window before the next are taken (since 0.26 when the
step that passed them has ended), a prompt reserves no more of a window than it spans (since 0.20),
a text is found as far as all groups have it. Chunks are drawn as whole blocks. Groups of recurrent
layers (`--states`) are driven through vLLM's own manager without prefix caching, its default for
them: one block a request and group, however long. With groups not simulated: stages, draft tokens,
data-parallel ranks in lockstep, autoscaled fleets and closed loops, a prefix cache of recurrent
states.

A model's own groups come from its layers: vLLM's `get_kv_cache_groups` was asked for each of the 24
kinds of layers with windows in the catalog (60 models), by 0.32.0 and by 0.15.1; groups and their
layers are equal in all. It was given as many layers of each kind, windows first: that models begin
with a window, and so the order of groups, is assumed. Models with states have no groups of their
own here: their
blocks are as many tokens as a state is large, and ours are powers of two. Gemma 4 and MiMo have
blocks of two sizes, DeepSeek V4 compressed ones. What `fit` calls a sequence leaves out the layers
that vLLM pads groups with, so that one no longer than the window takes more than `fit` says: of
Gemma 3 13 % (27B), 8 % (1B) and 3 % (4B), of Step 3.5 Flash 7 %, of Gemma 3n E2B 5 %, of the other
19 kinds nothing.

Where requests of one priority come at the same instant, vLLM orders them by the text of their ids
("10" before "9"), which servers draw at random. Where a stream gives ids, ours are put in that
order and every request is equal; in other streams ids sort as they came
(`tests/oracles/vllm/real.py`).

Speculative decoding is driven by the scheduler's own draft tokens, with as many accepted as the
case says for the step (`tests/oracles/vllm/drafts.py`). Pipeline stages are driven through the
engine's own queue of batches (`step_with_batch_queue`, the synchronous scheduler), each stage
taking an equal share of a step. Streams of stages, drafts, adapters and groups of layers are
recorded (`tests/oracles/vllm/drafted.json.gz`). Before 0.27, what is preempted while tokens of it
are on their way through the stages is admitted again at once, and all of these tokens count, though
some are of the same place: its response ends early. Ours does the same.

A stream is not counted where the engine itself never ends: unless room for whole prompts is
reserved, half-read prompts that are larger than the cache together can preempt one another for
ever (one stream of 0.15.1, after 100,000 steps). Ours ends such a run with an error.

Three of the streams of 0.15.1 that differ, and one more that was traced (mix 357, recorded), are of
two or three stages with priorities and many preemptions. Before 0.28, vLLM moves back its place in
the list of what runs only for a victim that has tokens in the batch: where the victim stood before
the request in need and was passed over, having a token on the way, the request after it is left out
of the batch. Ours does the same now; streams of that kind counted since do not differ. The three
were not kept by number and are not run again. The other two are known. Of 0.32.0, one request is
within its draft tokens of the whole cache: ours refuses it, vLLM preempts it twice and ends it. Of
0.15.1, a prompt holds the response of a request that comes at the same instant and after it by its
id: that a response repeats text of an earlier prompt, or another response, token by token, is not
known to ours; vLLM finds it after a preemption, or when another prompt holds it too. Of this kind
is the one that differs of 300 more streams of 0.32.0 (mix 7074; 18,240 requests). Not simulated
together: draft tokens with priorities or with a limit on long prefills, stages with draft tokens,
with async scheduling (vLLM's second model runner) or with adapters. Not driven: KV connectors whose
loads fail, empty steps of data-parallel ranks, and the second model runner, which lets stages
schedule ahead and does not start without Triton.
"""

TRANSFERS = """\
### Prefill and decode in two engines

vLLM 0.32.0 with a KV connector (`tests/oracles/vllm/connector.py`): its own schedulers for prefill
and for decode, and a connector in between that takes a given time, as its NIXL connector does.
Recorded streams with ample memory (`python tools/check_vllm.py --transfers N`), ours less vLLM's:

| scheduling | streams | prefill | TTFT | E2E |
|---|---:|---:|---:|---:|
"""
WAITS = """
Prefill is exact. Of the decode engine ours lacks what the connector waits for. vLLM sees the
request when a step has ended, takes blocks for it, and only then begins to pull; whether it has
come is asked when a step is handed to the worker, and heard when that step has ended. With a quick
transfer that is two steps of the decode engine, or three with async scheduling; ours transfers as
soon as the prompt is read, and admits at the next step. TPOT is not touched. vLLM holds blocks in
both engines during a transfer, ours in neither.
"""

VIDUR = """\
### Vidur on the same streams

Vidur 0.0.26, its Sarathi scheduler, on the recorded streams whose policies it has, with the same
step times (`benchmarks/peers/vidur_streams.py`): requests equal to vLLM 0.32.0, and signed errors
of mean TTFT and E2E. Ours has every request equal in every row, sync and async. Vidur has no async
scheduling, which is vLLM's default; preempted requests fail an assertion of its own unless they are
made to forget what their stages had processed, as they are here. AISimulate was not run: its source
package fetches further files when it is built.

| regime | equal, sync | TTFT, E2E, sync | preemptions | equal, async | TTFT, E2E, async |
|---|---:|---:|---:|---:|---:|
| light | 30 of 30 | +0.0%, +0.0% | 0 for 0 | 0 of 30 | -22.9%, -0.6% |
| saturated | 30 of 30 | +0.0%, +0.0% | 0 for 0 | 0 of 30 | -19.8%, -1.0% |
| memory-tight | 0 of 30 | +55.0%, +22.1% | 28 for 8 | 0 of 30 | +51.0%, +21.3% |
| memory-tight, no reserve | 7 of 30 | +2.1%, +2.6% | 39 for 11 | 0 of 30 | +1.7%, +2.2% |
| long prompts | 30 of 30 | +0.0%, +0.0% | 0 for 0 | 2 of 30 | -3.2%, -0.7% |
| long prompts, tight | 10 of 30 | -7.9%, +9.2% | 2 for 1 | 1 of 30 | -9.0%, +8.2% |
| sequence-bound | 30 of 30 | +0.0%, +0.0% | 0 for 0 | 0 of 30 | -10.4%, -1.2% |
| sequence-bound, short answers | 30 of 30 | +0.0%, +0.0% | 0 for 0 | 0 of 30 | -41.2%, -25.5% |
| no caching, defaults 8192/256 | 30 of 30 | +0.0%, +0.0% | 0 for 0 | 0 of 30 | -23.2%, -1.2% |
"""


def admission(version: str, mode: str, limits: dict[str, Any]) -> Admission:
    """The version's rules in one mode, with what the recorded limits switch off."""
    rules = vllm_version(version)
    return Admission(
        reserves_prompt=bool(limits["reserves_prompt"]) and rules.reserves_prompt,
        is_ahead=mode != "sync",
        ends_by_eos=mode == "async-eos",
        lone_prompt_is_whole=rules.lone_prompt_is_whole,
        blocks=BlockRules(reuses_bare_first=rules.reuses_bare_first),
    )


def vllm_section() -> list[str]:
    """The section of the page: a row for every regime, then what fresh streams gave."""
    cells = " | ".join(f"{version}: requests equal | runs | preemptions" for version in VERSIONS)
    lines = [f"| regime | {cells} |", "|---|" + "---:|" * (3 * len(VERSIONS))]
    for regime, stream in recorded("vllm")["streams"].items():
        counted = " | ".join(_counted(stream, version) for version in VERSIONS)
        lines.append(f"| {regime} | {counted} |")
    rows = "\n".join(_transfer_row(mode) for mode in MODES)
    fresh = FRESH + fresh_rows(MEASURED)
    return [HEAD, *lines, "", fresh, COVERED, TRANSFERS + rows, WAITS, VIDUR]


class TransferErrors(NamedTuple):
    """Ours less the engine's: end of prefill at most, means of TTFT and E2E, preemptions."""

    prefill_s: float
    ttft_frac: float
    e2e_frac: float
    n_preemptions: int


def transfers(mode: str) -> list[dict[str, Any]]:
    """Recorded streams with a KV connector between two engines."""
    kept = json.loads(gzip.decompress(DRAFTED.read_bytes())).values()
    streams = [one for one in kept if "transfer" in one["case"]]
    return [one for one in streams if one["case"]["limits"]["is_ahead"] == (mode == "async")]


def transfer_errors(kept: dict[str, Any]) -> TransferErrors:
    """What a stream's times lack."""
    case, answer = kept["case"], kept["answers"]["0.32.0"]
    alone = {name: value for name, value in case.items() if name != "transfer"}
    prompts = ours(alone | {"requests": [one | {"n_out": 1} for one in case["requests"]]}, "0.32.0")
    read_s = prompts.requests.arrive_s + prompts.times.e2e_s
    times, arrive_s = (found := ours(case, "0.32.0")).times, found.requests.arrive_s
    ttft_s, e2e_s = (np.mean(answer[name] - arrive_s) for name in ("first_s", "end_s"))
    return TransferErrors(
        prefill_s=float(np.abs(read_s - answer["read_s"]).max()),
        ttft_frac=float(times.ttft_s.mean() / ttft_s - 1.0),
        e2e_frac=float(times.e2e_s.mean() / e2e_s - 1.0),
        n_preemptions=int(times.n_preemptions.sum() + np.sum(answer["n_preemptions"])),
    )


def _transfer_row(mode: str) -> str:
    errors = [transfer_errors(kept) for kept in transfers(mode)]
    equal = sum(one.prefill_s < TOLERANCE_S for one in errors)
    ttft, e2e = ([getattr(one, name) for one in errors] for name in ("ttft_frac", "e2e_frac"))
    cells = [f"{np.mean(x):+.1%} ({min(x):+.1%} to {max(x):+.1%})" for x in (ttft, e2e)]
    return f"| {mode} | {len(errors)} | {equal} equal | {cells[0]} | {cells[1]} |"


def _counted(stream: dict[str, Any], version: str) -> str:
    n = len(stream["requests"])
    answers, step = stream["answers"][version], recorded("vllm")["step"]
    wrong = [
        n_differing(simulated(stream, step, admission(version, mode, stream["limits"])), answer)
        for mode, answer in answers.items()
    ]
    n_preempted = sum(int(np.sum(answer["n_preemptions"])) for answer in answers.values())
    equal, runs = n * len(wrong) - sum(wrong), sum(not one for one in wrong)
    return f"{equal} of {n * len(wrong)} | {runs} of {len(wrong)} | {n_preempted}"
