"""A case of `fresh.py` through the package's engine, by the rules of a version."""

from dataclasses import replace
from typing import Any

from gpuplan.domain.columns import ints
from gpuplan.domain.inference.performance import SpeculativeDecoding
from gpuplan.domain.simulation.engine import (
    Admission,
    BlockRules,
    EngineLimits,
    Fleet,
    KvGroup,
    StageRules,
)
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import Grouping, PrefixBlocks, requests_of
from gpuplan.performance.serving.vllm import vllm_version
from gpuplan.simulation.serving.run import simulate_serving
from oracles.recorded import table_of
from oracles.vllm.disaggregated import transferred

Case = dict[str, Any]


def admission(version: str, case: Case) -> Admission:
    """The version's rules, ahead and ended as the case says."""
    rules, limits = vllm_version(version), case["limits"]
    return Admission(
        reserves_prompt=rules.reserves_prompt and limits["reserves_prompt"],
        is_ahead=limits["is_ahead"],
        ends_by_eos=case["ends_by_itself"],
        lone_prompt_is_whole=rules.lone_prompt_is_whole,
        blocks=BlockRules(
            reuses_bare_first=rules.reuses_bare_first,
            watermark_blocks=int(limits.get("watermark", 0.0) * (limits["n_blocks"] + 1))
            if rules.has_watermark
            else 0,
            groups=tuple(
                KvGroup(kind=kind, tokens=tokens) for kind, tokens in limits.get("groups", ())
            ),
            caps_windows=rules.caps_windows,
            frees_windows_late=rules.frees_windows_late,
        ),
        stages=StageRules(
            fills_queue=rules.fills_queue,
            waits_for_late=rules.waits_for_late,
            keeps_turns=rules.keeps_turns,
        ),
        pads_decodes=rules.pads_decodes,
        chunks_prompts=limits.get("chunks", True),
    )


def text_of(case: Case) -> PrefixBlocks | None:
    """Prompts and responses by blocks of the engine's size; equal numbers are equal beginnings."""
    if "prompt" not in case["requests"][0]:
        return None
    size, known = case["limits"]["block_tokens"], {}
    first, block = [0], []
    for one in case["requests"]:
        tokens = [a + k for a, n in one["prompt"] + one["answer"] for k in range(n)]
        parent = -1 - one.get("adapter", 0)
        for at in range(0, len(tokens) - size + 1, size):
            key = (parent, tokens[at], tokens[at + size - 1], *tokens[at : at + size])
            parent = known.setdefault(key, len(known))
            block.append(parent)
        first.append(len(block))
    return PrefixBlocks(
        n_block_tokens=size, first=ints(first), block=ints(block), has_responses=True
    )


def drafts_of(limits: dict[str, Any]) -> SpeculativeDecoding | None:
    """Draft tokens of a case that has them."""
    if not limits.get("n_drafts"):
        return None
    return SpeculativeDecoding(n_tokens=limits["n_drafts"], acceptance_frac=limits["acceptance"])


def by_ids(case: Case, answer: Case) -> tuple[Case, Case]:
    """Case and answer with requests of one instant in the order of their ids, if they have any.

    So does vLLM sort those of equal priority; ours takes them as they stand.
    """
    rows = case["requests"]
    if "id" not in rows[0]:
        return case, answer
    order = sorted(range(len(rows)), key=lambda i: (rows[i]["arrive_s"], rows[i]["id"]))
    moved = {
        name: [value[i] for i in order] if isinstance(value, list) else value
        for name, value in answer.items()
    }
    return case | {"requests": [rows[i] for i in order]}, moved


def ours(case: Case, version: str, method: str = "jump") -> Outcome:
    """The stream as the package serves it."""
    limits, rows = case["limits"], case["requests"]
    engine = EngineLimits(
        **{name: limits[name] for name in (
            "max_batch_tokens", "max_sequences", "n_blocks", "block_tokens",
            "long_prefill_tokens", "scheduling", "caches_prefixes",
        )},
        admission=replace(
            admission(version, case),
            n_stages=limits.get("pp", 1),
            max_adapters=limits.get("max_adapters"),
        ),
        drafts=drafts_of(limits),
    )  # fmt: skip
    text = text_of(case) if limits["caches_prefixes"] else None
    asked = None
    if "n_max" in rows[0] and not case["ends_by_itself"]:
        asked = [one["n_max"] for one in rows]
    grouping = Grouping(
        priority=[one["priority"] for one in rows],
        max_tokens=asked,
        adapter=[one.get("adapter", 0) or -1 for one in rows],
    )
    columns = ([one[name] for one in rows] for name in ("arrive_s", "n_in", "n_out"))
    requests = requests_of(*columns, grouping=grouping)
    table = table_of(case["cost"], limits)
    if "transfer" in case:
        return transferred(requests, engine, table, case["transfer"])
    fleet = Fleet(limits=engine, table=table)
    return simulate_serving(requests, fleet, method=method, blocks=text)
