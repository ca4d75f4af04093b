"""A run of the package beside one of the slow engine that looks at every block in every step."""

import numpy as np

from gpuplan.domain.simulation.engine import EngineLimits, Fleet
from gpuplan.domain.simulation.outcome import Outcome
from gpuplan.domain.traffic.stream import PrefixBlocks, Requests
from gpuplan.simulation.serving.kernels.engine.state import FRAC_BITS, TICKS_PER_S
from kernels.reference_features import Engine, Request, Rules
from kernels.texts import exact_time, rows_of, texts_of_blocks, texts_of_groups


def rules_of(limits: EngineLimits) -> Rules:
    return Rules(
        max_tokens=limits.max_batch_tokens, max_sequences=limits.max_sequences,
        n_blocks=limits.n_blocks, block_tokens=limits.block_tokens,
        reserves_prompt=limits.admission.reserves_prompt, is_ahead=limits.admission.is_ahead,
        long_prefill_tokens=limits.long_prefill_tokens or 0,
        ends_by_eos=limits.admission.ends_by_eos,
        lone_is_whole=limits.admission.lone_prompt_is_whole,
        watermark=limits.admission.blocks.watermark_blocks,
        bare_first=limits.admission.blocks.reuses_bare_first,
        caches=limits.caches_prefixes, is_priority=limits.scheduling == "priority",
    )  # fmt: skip


def oracle(
    requests: Requests,
    fleet: Fleet,
    blocks: PrefixBlocks | None = None,
) -> tuple[Engine, list[Request]]:
    if blocks is None:
        paths = texts_of_groups(requests, fleet.limits.block_tokens)
    else:
        paths = texts_of_blocks(requests, blocks, fleet.limits.block_tokens)
    rows = rows_of(requests, paths)
    engine = Engine(rules_of(fleet.limits), exact_time(fleet))
    engine.run(rows)
    return engine, rows


def assert_equals_oracle(found: Outcome, engine: Engine, rows: list[Request]) -> None:
    for name, instants in (
        ("wait_s", [r.start for r in rows]),
        ("ttft_s", [r.first for r in rows]),
        ("e2e_s", [r.end for r in rows]),
    ):
        since = [
            ((at >> FRAC_BITS) - (r.arrive >> FRAC_BITS)) / TICKS_PER_S
            for at, r in zip(instants, rows, strict=True)
        ]
        np.testing.assert_array_equal(getattr(found.times, name), since, name)
    assert found.times.n_preemptions.tolist() == [r.n_preemptions for r in rows]
    n_hits = found.times.n_cached_tokens
    assert ([0] * len(rows) if n_hits is None else n_hits.tolist()) == [r.n_hit for r in rows]
    assert found.totals.n_steps == engine.n_steps
    assert found.totals.n_free_blocks == engine.rules.n_blocks
