"""Prefill and decode in two engines of vLLM, with a KV connector that takes a given time.

The engines' schedulers are vLLM's own. As with its NIXL connector, a prompt is read with one token
to make; the request then goes to the decode engine, which takes blocks for the whole prompt and
pulls its KV cache: one request at a time over the prefill engine's link. The worker is asked what
has come when a step is handed to it, and the scheduler hears of it when that step ends.
"""

import importlib
from typing import Any
from unittest.mock import patch

Case = dict[str, Any]
TOLD = ("first_s", "end_s", "n_preemptions")


def apart(oracle: Any, case: Case) -> Case:
    """First tokens and ends of the decode engine, in the order of the requests."""
    rows, n = case["requests"], len(case["requests"])
    read = oracle.run_case(case | {"requests": [one | {"n_out": 1} for one in rows]})
    order = sorted(range(n), key=lambda i: (read["end_s"][i], i))
    sent = [rows[i] | {"arrive_s": read["end_s"][i]} for i in order]
    with patch.multiple(oracle, Engine=_pulling(oracle, case), Clock=_hearing(oracle, sent)):
        answer = oracle.run_case(case | {"requests": sent})
    at = {i: place for place, i in enumerate(order)}
    found = {name: [answer[name][at[i]] for i in range(n)] for name in TOLD}
    n_steps = read["n_steps"] + answer["n_steps"]
    return found | {"n_steps": n_steps, "read_s": read["end_s"]}


def _connector() -> Any:
    """A connector whose transfers end when its link has carried them."""
    base: Any = importlib.import_module("vllm.distributed.kv_transfer.kv_connector.v1.base")

    def begin(self: Any, engine: Any, transfer: dict[str, float]) -> None:
        self.engine, self.transfer = engine, transfer
        self._kv_cache_config = engine.scheduler.kv_cache_config
        self.free_s, self.pulled, self.due_s = 0.0, set(), {}

    def matched(self: Any, request: Any, n_computed: int) -> tuple[int, bool]:
        n = request.num_prompt_tokens - n_computed
        is_new = request.request_id not in self.pulled and n > 0
        return (n, True) if is_new else (0, False)

    def allocated(self: Any, request: Any, _: Any, n_tokens: int) -> None:
        self.pulled.add(request.request_id)
        if n_tokens > 0:
            begins_s = max(self.engine.now_s, self.free_s)
            self.free_s = begins_s + request.num_prompt_tokens * self.transfer["token_s"]
            self.due_s[request.request_id] = self.free_s + self.transfer["latency_s"]

    def nothing(self: Any, *_: Any, **__: Any) -> None:
        """Of the worker's half, or not needed."""

    names = base.KVConnectorBase_V1.__abstractmethods__
    given = dict.fromkeys(names, nothing) | {
        "__init__": begin,
        "get_num_new_matched_tokens": matched,
        "update_state_after_alloc": allocated,
        "request_finished": lambda *_, **__: (False, None),
    }
    return type("Connector", (base.KVConnectorBase_V1,), given)


def _pulling(oracle: Any, case: Case) -> Any:
    """The decode engine, with its connector."""

    def begin(self: Any, given: Case) -> None:
        oracle_engine.__init__(self, given)
        self.connector = self.scheduler.connector = _connector()(self, case["transfer"])
        # As the engine sets it for consumers that schedule ahead.
        self.scheduler.defer_block_free = bool(case["limits"]["is_ahead"])

    oracle_engine = oracle.Engine
    return type("Pulling", (oracle_engine,), {"__init__": begin})


def _hearing(oracle: Any, sent: list[Case]) -> Any:
    """The clock, which says with every step what has come by then; an empty one waits for it."""
    output: Any = importlib.import_module("vllm.v1.outputs").KVConnectorOutput

    def execute_model(self: Any, scheduled: Any, non_block: bool = False) -> Any:
        result, engine = kind.execute_model(self, scheduled, non_block), self.engine
        due_s, at_s = engine.connector.due_s, engine.now_s
        if not scheduled.num_scheduled_tokens and due_s:
            later = [one["arrive_s"] for one in sent if one["arrive_s"] > at_s]
            at_s = max(at_s, min([*due_s.values(), *later[:1]]))
        come = {name for name, end_s in due_s.items() if end_s <= at_s}
        for name in come:
            del due_s[name]
        ended = result.result

        def heard(timeout: float | None = None) -> Any:
            made = ended(timeout)
            if not scheduled.num_scheduled_tokens:
                engine.reach(at_s)
            made.kv_connector_output = output(finished_recving=come) if come else None
            return made

        result.result = heard
        return result

    kind = oracle.Clock
    return type("Hearing", (kind,), {"execute_model": execute_model})
