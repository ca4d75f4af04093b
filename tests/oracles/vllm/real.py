"""Streams through vLLM's own scheduler; run by the interpreter of an environment that has vLLM.

python real.py HARNESS cases.json answers.json

HARNESS is the folder of `vllm_oracle.py`, which drives the engine's real classes on a clock. Cases
are as `fresh.py` writes them: prompts and responses as runs [first token, count].
"""

import importlib
import json
import sys
from functools import wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch


def main(harness: str, cases: str, answers: str) -> None:
    """Answers by the name of the case; a case that fails says why."""
    sys.path.insert(0, harness)
    oracle: Any = importlib.import_module("vllm_oracle")
    drafts: Any = importlib.import_module("drafts")
    oracle.Request = _ordered(oracle.Request)

    if not (Path(harness) / "tinymodel").is_dir():
        oracle.HERE = str(Path(harness).parent / "sglang")
    found: dict[str, Any] = {"_version": oracle.vllm.__version__}
    for name, case in json.loads(Path(cases).read_text()).items():
        try:
            found[name] = _run(oracle, drafts, case)
        except Exception as problem:  # noqa: BLE001  any failure of the engine is its answer
            found[name] = {"error": repr(problem)[:300]}
    Path(answers).write_text(json.dumps(found))


class Number(str):
    """The id of a request, which sorts as a number.

    vLLM puts requests of equal priority and arrival in the order of their ids as text, where "10"
    is before "9". Ids of a server are drawn, so that this order means nothing; here it is the one
    in which they came.
    """

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return int(self) < int(other)


def _ordered(kind: Any) -> Any:
    """The engine's requests, with ids that sort in the order in which they came."""

    @wraps(kind.__init__)
    def begin(self: Any, *given: Any, **named: Any) -> None:
        kind.__init__(self, *given, **named)
        self.request_id = Number(self.request_id)

    return type("Ordered", (kind,), {"__init__": begin})


def _run(oracle: Any, drafts: Any, case: dict[str, Any]) -> dict[str, Any]:
    for one in case["requests"]:
        for name in ("prompt", "answer"):
            if name in one:
                runs = one[name]
                one[name] = [first + k for first, n in runs for k in range(n)]
    changes: dict[str, Any] = {"SchedulerConfig": _configured(oracle.SchedulerConfig, case)}
    if "n_max" in case["requests"][0] and not case["ends_by_itself"]:
        changes["SamplingParams"] = _asking(oracle, case)
    if case["limits"].get("n_drafts"):
        oracle.DraftTokenIds = importlib.import_module("vllm.v1.outputs").DraftTokenIds
        changes["Engine"] = drafts.drafting(oracle, case)
    with patch.multiple(oracle, **changes):
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
    main(*sys.argv[1:4])
