"""Memory of a plan, in: pools, models and cards; out: checks that weights and KV cache fit.

Bounds from below: whatever an engine or a framework adds comes on top, so a plan that fails here
cannot run. Weights count their elements without scales, spread over all accelerators of a replica.
"""

from collections.abc import Iterator

from gpuplan.domain.model.layers import Cache
from gpuplan.domain.model.network import Model
from gpuplan.domain.plan.certificate import Check
from gpuplan.domain.plan.facts import PlanFacts
from gpuplan.domain.scenario.workload import Batch, Serving, Training, Workload
from gpuplan.units import GB
from gpuplan.verification.claims import Document, at_most, is_cpu, n_per_replica, pools_of

# Bytes of one stored element, without the scales that come on top.
ELEMENT_BYTES = {
    "fp32": 4.0,
    "tf32": 4.0,
    "bf16": 2.0,
    "fp16": 2.0,
    "fp8": 1.0,
    "fp8-block": 1.0,
    "mxfp8": 1.0,
    "int8": 1.0,
    "w8a16": 1.0,
    "mxfp4": 0.5,
    "nvfp4": 0.5,
    "int4": 0.5,
    "nf4": 0.5,
    "nf4-dq": 0.5,
}
CACHE_BYTES = {"fp8": 1.0, "int8": 1.0}
USUAL_CACHE_BYTES = 2.0
# Weights and gradients in 16 bits, and the two moments of Adam in 32 [Rajbhandari2020].
GRADIENT_BYTES, MOMENT_BYTES = 2.0, 8.0
WHOLE_STATES = ("none", "ddp", "zero1", "zero2", "distributed")


def memory_checks(document: Document, facts: PlanFacts) -> Iterator[Check]:
    """Every pool of a known model: the least that must lie on one accelerator."""
    for pool in pools_of(document):
        model = facts.models.get(pool["workload"])
        card = facts.accelerators.get(str(pool["accelerator"]))
        workload = facts.scenario.workload(pool["workload"])
        if model is None or card is None or workload is None or is_cpu(pool):
            continue
        have = have_bytes(pool, card.memory.visible_bytes) / GB
        if isinstance(workload.work, Training):
            need = _training_bytes(pool, model, workload.work) / GB
        else:
            need = _serving_bytes(pool, model, workload) / GB
        yield at_most(f"memory of {pool['workload']}: one accelerator", need, have, "GB")


def element_bytes(precision: str) -> float:
    """Bytes of one weight; the narrowest there is where the name is not known."""
    return ELEMENT_BYTES.get(precision, 0.25)


def have_bytes(pool: Document, visible_bytes: float) -> float:
    """What a replica may use of one accelerator: all of it, or its slice."""
    share = str(pool.get("share") or "")
    if "/" in share:
        part, _, whole = share.partition("/")
        return visible_bytes * float(part) / float(whole)
    size = share.partition("g.")[2].removesuffix("gb")
    return min(visible_bytes, float(size) * GB * 1.08) if size.isdigit() else visible_bytes


def _serving_bytes(pool: Document, model: Model, workload: Workload) -> float:
    """Weights and the KV cache of the longest request, over the accelerators of a replica."""
    weights = model.n_params * element_bytes(pool["precision"])
    cache = kv_bytes(model, longest_tokens(workload), workload.cache_precision or "")
    return (weights + cache) / n_per_replica(pool)


def longest_tokens(workload: Workload) -> float:
    """Tokens of the longest request that the scenario describes."""
    if not isinstance(workload.work, Serving | Batch):
        return 0.0
    shape = workload.work.request
    ends = [x.max_tokens or x.p99_tokens or x.mean_tokens for x in (shape.input, shape.output)]
    return max(sum(ends), float(workload.work.max_context_tokens or 0))


def kv_bytes(model: Model, n_tokens: float, precision: str) -> float:
    """Keys and values of a sequence: layers x heads x width, up to each layer's window."""
    each = CACHE_BYTES.get(precision, USUAL_CACHE_BYTES)
    return sum(n * _kept(cache, n_tokens) * each for n, cache in model.caches())


def _kept(cache: Cache, n_tokens: float) -> float:
    seen = n_tokens if cache.window_tokens is None else min(n_tokens, cache.window_tokens)
    return cache.n_heads * cache.elements_per_head * seen / cache.tokens_per_entry


def _training_bytes(pool: Document, model: Model, work: Training) -> float:
    """Weights, gradients and moments of what is trained, by how they are sharded."""
    n_all = max(1, int(pool["n_accelerators"]))
    n_model = max(1, int(pool["tp"]) * int(pool["pp"]) * int(pool.get("ep") or 1))
    n_held_by = n_model if pool.get("sharding") in WHOLE_STATES else n_all
    if work.method in ("lora", "qlora"):
        each = 0.5 if work.method == "qlora" else element_bytes(pool["precision"])
        return model.n_params * each / n_held_by
    held = element_bytes(pool["precision"]) + GRADIENT_BYTES
    return model.n_params * (held / n_held_by + MOMENT_BYTES / n_all)
