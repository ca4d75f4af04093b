"""Streams through vLLM's own scheduler; run by the interpreter of an environment that has vLLM.

python real.py HARNESS < cases > answers

HARNESS is the folder of `vllm_oracle.py`, which drives the engine's real classes on a clock. A
line is a case as `fresh.py` makes it, prompts and responses as runs [first token, count]; an empty
one asks for the version.
"""

import importlib
import json
import os
import sys
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

MOST_STEPS, ENDLESS = 100_000, "endless"
WHOLE = 2**19  # tokens of a block that holds a state: more than any request has


def main(harness: str) -> None:
    """A line of answers for each line of cases; a case that fails says why."""
    told = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the engine writes to what it takes for the screen
    sys.path.insert(0, harness)
    oracle: Any = importlib.import_module("vllm_oracle")
    drafts: Any = importlib.import_module("drafts")
    if not (Path(harness) / "tinymodel").is_dir():
        oracle.HERE = str(Path(harness).parent / "sglang")
    for line in sys.stdin:
        told.write(json.dumps(_answer(oracle, drafts, json.loads(line))) + "\n")
        told.flush()


def _answer(oracle: Any, drafts: Any, case: dict[str, Any]) -> Any:
    if not case:
        return oracle.vllm.__version__
    try:
        return _run(oracle, drafts, case)
    except Exception as problem:  # noqa: BLE001  any failure of the engine is its answer
        return {"error": repr(problem)[:300]}


class Number(str):
    """The id of a request, which sorts as a number.

    vLLM puts requests of equal priority and arrival in the order of their ids as text, where "10"
    is before "9". Ids of a server are drawn, so that this order means nothing; here it is the one
    in which they came, unless the case gives ids.
    """

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return int(self) < int(other)


class Named(str):
    """The id of a request, which sorts as the one that the case gives it."""

    __slots__ = ("given",)
    given: str

    def __lt__(self, other: Any) -> bool:
        return bool(self.given < other.given)


def _requested(kind: Any, case: dict[str, Any]) -> Any:
    """The engine's requests, with ids that sort, and adapters, as the case says."""

    @wraps(kind.__init__)
    def begin(self: Any, *given: Any, **named: Any) -> None:
        row = case["requests"][int(named["request_id"])]
        if row.get("adapter"):
            lora: Any = importlib.import_module("vllm.lora.request")
            number = row["adapter"]
            named["lora_request"] = lora.LoRARequest(f"adapter-{number}", number, "/nowhere")
        kind.__init__(self, *given, **named)
        if "id" in row:
            self.request_id = Named(self.request_id)
            self.request_id.given = row["id"]
        else:
            self.request_id = Number(self.request_id)

    return type("Requested", (kind,), {"__init__": begin})


def _limited(kind: Any, n_adapters: int) -> Any:
    """The engine, whose batches have at most so many adapters."""

    def begin(self: Any, case: dict[str, Any]) -> None:
        kind.__init__(self, case)
        self.scheduler.lora_config = SimpleNamespace(max_loras=n_adapters)

    return type("Limited", (kind,), {"__init__": begin})


def _grouped(oracle: Any, limits: dict[str, Any]) -> Any:
    """The engine's cache, whose layers are in groups with windows of their own: [kind, tokens]."""
    interface: Any = importlib.import_module("vllm.v1.kv_cache_interface")
    shape = {"num_kv_heads": 1, "head_size": 1, "dtype": oracle.torch.float32}
    shape["block_size"] = limits["block_tokens"]

    def spec(kind: str, n_tokens: int) -> Any:
        if kind == "window":
            return interface.SlidingWindowSpec(**shape, sliding_window=n_tokens)
        if kind == "chunk":
            return interface.ChunkedLocalAttentionSpec(**shape, attention_chunk_size=n_tokens)
        if kind == "state":
            # One block for the whole of a request, however long, as without prefix caching.
            one = {"shapes": ((1,),), "dtypes": (oracle.torch.float32,)}
            return interface.MambaSpec(block_size=WHOLE, **one)
        return interface.FullAttentionSpec(**shape)

    def made(num_blocks: int, **_: Any) -> Any:
        groups = [
            oracle.KVCacheGroupSpec([f"layer {at}"], spec(*one))
            for at, one in enumerate(limits["groups"])
        ]
        return kind(num_blocks=num_blocks, kv_cache_tensors=[], kv_cache_groups=groups)

    kind = oracle.KVCacheConfig
    return made


def _spaced(kind: Any) -> Any:
    """The scheduler, told of the least common multiple of its groups' blocks, as by the engine."""

    def made(**named: Any) -> Any:
        return kind(**named | {"block_size": WHOLE})

    return made


def _ending(kind: Any) -> Any:
    """The clock, which ends a stream whose requests preempt one another for ever."""

    def execute_model(self: Any, output: Any, non_block: bool = False) -> Any:
        if len(self.steps) > MOST_STEPS:
            raise RuntimeError(ENDLESS)
        return kind.execute_model(self, output, non_block)

    return type("Ending", (kind,), {"execute_model": execute_model})


def _run(oracle: Any, drafts: Any, case: dict[str, Any]) -> dict[str, Any]:
    for one in case["requests"]:
        for name in ("prompt", "answer"):
            if name in one:
                runs = one[name]
                one[name] = [first + k for first, n in runs for k in range(n)]
    limits = case["limits"]
    changes: dict[str, Any] = {
        "SchedulerConfig": _configured(oracle.SchedulerConfig, case),
        "Request": _requested(oracle.Request, case),
        "Clock": _ending(oracle.Clock),
    }
    if "n_max" in case["requests"][0] and not case["ends_by_itself"]:
        changes["SamplingParams"] = _asking(oracle, case)
    if limits.get("n_drafts"):
        oracle.DraftTokenIds = importlib.import_module("vllm.v1.outputs").DraftTokenIds
        changes["Engine"] = drafts.drafting(oracle, case)
    if limits.get("groups"):
        changes["KVCacheConfig"] = _grouped(oracle, limits)
    if ["state", 0] in limits.get("groups", ()):
        changes |= {
            name: _spaced(getattr(oracle, name)) for name in ("Scheduler", "AsyncScheduler")
        }
    if limits.get("max_adapters"):
        changes["Engine"] = _limited(oracle.Engine, limits["max_adapters"])
    with patch.multiple(oracle, **changes):
        if "transfer" in case:
            apart: Any = importlib.import_module("connector").apart
            return dict(apart(oracle, case))
        answer: dict[str, Any] = oracle.run_case(case)
    return {name: answer[name] for name in ("first_s", "end_s", "n_preemptions", "n_steps", "hits")}


def _configured(kind: Any, case: dict[str, Any]) -> Any:
    """The engine's configuration with what the harness leaves at its default."""
    limits = case["limits"]
    given = {
        "watermark": limits.get("watermark", 0.0),
        "enable_chunked_prefill": limits.get("chunks", True),
        # Of prompts that are not cut, the engine asks that the longest fits one step.
        **({} if limits.get("chunks", True) else {"max_model_len": limits["max_batch_tokens"]}),
    }

    def made(**named: Any) -> Any:
        return kind(**named | {name: value for name, value in given.items() if name in named})

    made.__dataclass_fields__ = kind.__dataclass_fields__  # type: ignore[attr-defined]
    return made


def _asking(oracle: Any, case: dict[str, Any]) -> Any:
    """What each request asks for, in turn: some end before it, by EOS."""
    kind, coming = oracle.SamplingParams, iter(case["requests"])
    for i, one in enumerate(case["requests"]):
        if one["n_max"] > one["n_out"]:
            answer = one.setdefault("answer", oracle.tokens_of(i, one["n_out"], "out"))
            answer[one["n_out"] - 1] = oracle.EOS

    def asked(**named: Any) -> Any:
        one = next(coming)
        is_late = one["n_max"] > one["n_out"]
        found = kind(**named | {"max_tokens": one["n_max"], "ignore_eos": not is_late})
        if is_late and hasattr(found, "update_from_generation_config"):
            found.update_from_generation_config({}, oracle.EOS)
        return found

    return asked


if __name__ == "__main__":
    main(sys.argv[1])
