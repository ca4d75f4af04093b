"""Speculative decoding in vLLM's own scheduler; imported where vLLM is, by `real.py`.

The executor verifies the draft tokens of every sequence and keeps as many as the case says for
the step: `gain` tokens a step on average, in 2^-16, by the number of the step. As with n-gram
drafting, no slots are kept beyond those of the drafts themselves.
"""

from concurrent.futures import Future
from typing import Any

GAIN_BITS = 16
PREFILL_TOKENS, PAIRS, DECODE_TOKENS, CONTEXT = range(4)


def gained(gain: int, step: int) -> int:
    """Tokens that every sequence that decodes keeps in this step."""
    return ((step + 1) * gain >> GAIN_BITS) - (step * gain >> GAIN_BITS)


class Drafting:
    """Part of the oracle's clock: a decode brings its drafts to a step, and keeps some."""

    engine: Any
    cost: dict[str, float]
    n_drafts: int
    gain: int
    made: Any  # vLLM's class of what a step gives
    drafts: Any = None

    def execute_model(self: Any, output: Any, non_block: bool = False) -> Any:
        del non_block
        work, ids = [0, 0, 0, 0], list(output.num_scheduled_tokens)
        sampled = [self.served(rid, output.num_scheduled_tokens[rid], work) for rid in ids]
        end = self.lasting(work) if ids else self.engine.now_s
        made = self.made(
            req_ids=ids, req_id_to_index={rid: i for i, rid in enumerate(ids)},
            sampled_token_ids=sampled, logprobs=None, prompt_logprobs_dict={}, pooler_output=[],
        )  # fmt: skip
        # Nothing is drafted for a prompt that is half computed.
        self.drafts = (ids, [[7] * self.n_drafts if one else [] for one in sampled])
        result: Any = Future()
        result.result = lambda timeout=None: (self.engine.reach(end), made)[1]
        self.last = result
        return result

    def served(self: Any, rid: str, n: int, work: list[int]) -> list[int]:
        """Tokens that the request gets; its share of the step is added to `work`."""
        r = self.engine.scheduler.requests[rid]
        before = r.num_computed_tokens - n
        if self.seen.get(rid) != r.num_preemptions:
            self.seen[rid], self.phase[rid] = r.num_preemptions, "prefill"
            self.engine.started.setdefault(rid, None)
            self.engine.hits.setdefault(rid, before)
        if self.phase[rid] == "decode":
            work[DECODE_TOKENS] += n
            # Every token that is verified reads what the sequence has.
            work[CONTEXT] += n * (r.num_prompt_tokens + self.done.get(rid, 0))
            return self.following(rid, gained(self.gain, len(self.steps)))
        work[PREFILL_TOKENS] += n
        work[PAIRS] += n * (2 * before + n)
        if before + n < r.num_tokens:
            return []
        self.phase[rid] = "decode"
        return self.following(rid, 1)

    def following(self: Any, rid: str, n: int) -> list[int]:
        """The next tokens of the response; more than it has where drafts go on beyond it."""
        at = self.done.get(rid, 0)
        self.done[rid] = at + n
        found: list[int] = (self.answers[rid][at : at + n] + [7] * n)[:n]
        return found

    def lasting(self: Any, work: list[int]) -> float:
        """When the step ends, after the one before it."""
        c, (n_pre, pairs, n_dec, context) = self.cost, work
        lasts = c["step_s"] + c["token_s"] * (n_pre + n_dec) + c["context_s"] * context
        begin = max(self.engine.now_s, self.free_s)
        self.free_s = begin + lasts + c["pair_s"] * pairs / 2
        for rid, at in self.engine.started.items():
            if at is None:
                self.engine.started[rid] = begin
        self.steps.append((begin, n_pre, n_dec, context, 0))
        return float(self.free_s)


def drafting(oracle: Any, case: dict[str, Any]) -> Any:
    """The oracle's engine, whose scheduler is told of drafts after every step."""
    limits, outputs = case["limits"], oracle.ModelRunnerOutput
    fixed = {"n_drafts": limits["n_drafts"], "gain": limits["gain"], "made": outputs}
    clock = type("Clock", (Drafting, oracle.Clock), fixed)

    class Engine(oracle.Engine):  # type: ignore[misc]  # known where vLLM is
        def __init__(self, case: dict[str, Any]) -> None:
            super().__init__(case)
            self.scheduler.num_spec_tokens = limits["n_drafts"]
            self.scheduler._spec_token_placeholders = [-1] * limits["n_drafts"]
            self.model_executor = clock(self, case["cost"], self.model_executor.answers)

        def step(self) -> Any:
            found = super().step()
            if found[1] and self.model_executor.drafts is not None:
                made = oracle.DraftTokenIds(*self.model_executor.drafts)
                self.scheduler.update_draft_token_ids(made)
            return found

    return Engine
