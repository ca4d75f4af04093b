"""Memory of a plan, in: pools, models and cards; out: checks that weights and KV cache fit.

Bounds from below: whatever an engine or a framework adds comes on top, so a plan that fails here
cannot run. Weights count their elements without scales, spread over all accelerators of a replica.

Time and power of a plan, in: claims and cards; out: checks against bounds of physics.

A token cannot be written before the weights that it passes have been read, nor a prompt be read
faster than the arithmetic units work; what is trained takes its six operations per parameter and
token [Kaplan2020, Williams2009].
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.model.layers import Cache
from gpuplan.domain.model.network import Model
from gpuplan.domain.plan.certificate import Check
from gpuplan.domain.plan.facts import PlanFacts
from gpuplan.domain.scenario.workload import Batch, Serving, Training, Workload
from gpuplan.units import GB, KWH, MONTH, TFLOP
from gpuplan.verification.claims import (
    Document,
    at_least,
    at_most,
    fraction_of,
    is_cpu,
    n_per_replica,
    pools_of,
    purchases_of,
)

FLOP_PER_PARAM = 2.0  # one multiplication and one addition, forward
TRAINED = {"pretraining": 6.0, "full": 6.0, "lora": 4.0, "qlora": 4.0}
# No published run is above: the best are near 0.65 in 16 bits [Chowdhery2022].
MOST_MFU = 0.75
MOST_SERVING_FRAC = 0.95
# Wall over board power: conversion and fans; and what the rest of a server may draw.
SUPPLY_RATIO = 1.4
HOST_W, HOST_W_PER_CARD = 1500.0, 500.0
DIRTIEST_KG_PER_KWH = 2.0  # above any grid's yearly mean, losses included


class _Placed(NamedTuple):
    """A pool with the facts that bound it."""

    pool: Document
    card: Accelerator
    model: Model | None
    workload: Workload

    @property
    def peak_flop_per_s(self) -> float:
        """Dense peak of one accelerator in its precision; the 16-bit one where it has no other."""
        peaks = self.card.peak_flop_per_s
        width = element_bytes(self.pool["precision"])
        names = {1.0: ("fp8", "int8"), 0.5: ("fp4", "fp8")}.get(width, ("bf16", "fp16"))
        known = [peaks[name] for name in (*names, "bf16", "fp16", "fp32") if name in peaks]
        return max(known, default=max(peaks.values(), default=0.0))

    @property
    def replicas_flop_per_s(self) -> float:
        """Dense peak of all replicas of the pool."""
        n = self.pool["n_replicas"] * n_per_replica(self.pool) * fraction_of(self.pool)
        return float(n * self.peak_flop_per_s)


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
LORA_BYTES = 2.0  # of an adapter's element
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
    """Weights, LoRA slots and the longest request's KV cache, over a replica's accelerators.

    A slot holds two rows and two columns of the hidden width in every layer, at least.
    """
    weights = model.n_params * element_bytes(pool["precision"])
    if isinstance(workload.work, Serving) and (adapters := workload.work.request.adapters):
        rows = int(pool.get("max_loras") or 0) * adapters.rank * model.main.n_layers
        weights += LORA_BYTES * 4.0 * model.main.hidden_size * rows
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
    return sum(n * _retained(cache, n_tokens) * each for n, cache in model.caches())


def _retained(cache: Cache, n_tokens: float) -> float:
    observed = n_tokens if cache.window_tokens is None else min(n_tokens, cache.window_tokens)
    return cache.n_heads * cache.elements_per_head * observed / cache.tokens_per_entry


def _training_bytes(pool: Document, model: Model, work: Training) -> float:
    """Weights, gradients and moments of what is trained, by how they are sharded."""
    n_all = max(1, int(pool["n_accelerators"]))
    n_model = max(1, int(pool["tp"]) * int(pool["pp"]) * int(pool.get("ep") or 1))
    n_held_by = n_model if pool.get("sharding") in WHOLE_STATES else n_all
    if work.method in ("lora", "qlora"):
        each = 0.5 if work.method == "qlora" else element_bytes(pool["precision"])
        return model.n_params * each / n_held_by
    resident = element_bytes(pool["precision"]) + GRADIENT_BYTES
    return model.n_params * (resident / n_held_by + MOMENT_BYTES / n_all)


def physics_checks(document: Document, facts: PlanFacts) -> Iterator[Check]:
    """Latencies, run times, work and power of every pool whose facts are known."""
    all_placed = list(_placed(document, facts))
    for placed in all_placed:
        if isinstance(placed.workload.work, Training):
            yield from _run_checks(document, placed)
        elif placed.model is not None and isinstance(placed.workload.work, Serving):
            yield from _latency_checks(document, placed, placed.model)
            beside = [each for each in all_placed if each.workload == placed.workload]
            yield from _work_checks(document, placed.model, beside)
    yield from _power_checks(document, facts)


def _placed(document: Document, facts: PlanFacts) -> Iterator[_Placed]:
    for pool in pools_of(document):
        card = facts.accelerators.get(str(pool["accelerator"]))
        workload = facts.scenario.workload(pool["workload"])
        if card is not None and workload is not None and not is_cpu(pool):
            yield _Placed(pool, card, facts.models.get(pool["workload"]), workload)


def _reached(document: Document, workload: str) -> Iterator[tuple[str, float]]:
    for row in document["plan"]["slo"]["promises"]:
        if row["workload"] == workload and row["reached_s"] is not None:
            yield row["what"], row["reached_s"]["value"]


def _latency_checks(document: Document, placed: _Placed, model: Model) -> Iterator[Check]:
    """TPOT by bytes over bandwidth, TTFT by operations over peak."""
    n = n_per_replica(placed.pool) * fraction_of(placed.pool)
    work = placed.workload.work
    assert isinstance(work, Serving)
    width = element_bytes(placed.pool["precision"])
    bytes_per_s = n_per_replica(placed.pool) * _bytes_per_s(placed.pool, placed.card)
    read = model.main.n_active_params * width / bytes_per_s
    lengths = work.request.input
    prompt = min(lengths.mean_tokens, lengths.p50_tokens or lengths.mean_tokens)
    fresh = _passes(model, prompt) * (1.0 - work.request.prefix_hit_frac.high)
    flop = FLOP_PER_PARAM * model.main.n_active_params * fresh
    prefill = flop / (n * placed.peak_flop_per_s)
    for what, value in _reached(document, placed.workload.name):
        name = f"{placed.workload.name} {what}"
        if what.startswith(("tpot", "itl")) and work.request.output.mean_tokens > 1:
            yield at_least(f"{name}: reading the weights once", value, read, "s")
        elif what.startswith(("ttft", "e2e")):
            yield at_least(f"{name}: arithmetic of a prompt", value, prefill, "s")


def _passes(model: Model, n_tokens: float) -> float:
    """How often a request passes each parameter; a picture at least once, whatever its tokens."""
    return min(n_tokens, 1.0) if model.kind == "vision" else n_tokens


def _bytes_per_s(pool: Document, card: Accelerator) -> float:
    """Bandwidth that a replica may have of one card: all in its turn, or that of its MIG slice."""
    share = str(pool.get("share") or "")
    if not share.endswith("gb"):
        return card.memory.bytes_per_s
    # Memory and its bandwidth are cut together, in eighths.
    slice_frac = have_bytes(pool, card.memory.visible_bytes) / card.memory.visible_bytes
    return card.memory.bytes_per_s * slice_frac


def _work_checks(document: Document, model: Model, placed: Sequence[_Placed]) -> Iterator[Check]:
    """The load's arithmetic against all accelerators that serve it, in all of its pools."""
    work, name = placed[0].workload.work, placed[0].workload.name
    load = next((x for x in document["load"] if x["workload"] == name), None)
    if load is None or load["peak_requests_per_s"] is None or not isinstance(work, Serving):
        return
    shape = work.request
    fresh = _passes(model, shape.input.mean_tokens) * (1.0 - shape.prefix_hit_frac.high)
    tokens = load["peak_requests_per_s"] * (fresh + shape.output.mean_tokens)
    flop_per_s = FLOP_PER_PARAM * model.main.n_active_params * tokens
    have = sum(each.replicas_flop_per_s for each in placed) * MOST_SERVING_FRAC
    what = f"{name}: arithmetic of the load within the peak"
    yield at_most(what, flop_per_s / TFLOP, have / TFLOP, "TFLOP/s")


def _run_checks(document: Document, placed: _Placed) -> Iterator[Check]:
    """A run's time against six operations per parameter and token at the best efficiency."""
    work = placed.workload.work
    assert isinstance(work, Training)
    flop = _run_flop(placed, work)
    n = placed.pool["n_accelerators"]
    if flop is None or n <= 0:
        return
    given = [c.mfu_frac.high for c in placed.workload.capacities if c.mfu_frac is not None]
    most = max([MOST_MFU, *given, work.mfu_frac.high if work.mfu_frac else 0.0])
    least_s = flop / (n * placed.peak_flop_per_s * most)
    for what, value in _reached(document, placed.workload.name):
        yield at_least(f"{placed.workload.name} {what}: arithmetic of the run", value, least_s, "s")
    span = document["plan"]["span_s"]
    yield at_least(f"{placed.workload.name}: the paid span covers the run", span, least_s, "s")


def _run_flop(placed: _Placed, work: Training) -> float | None:
    """Operations of the whole run; None where neither parameters nor tokens are known."""
    ref, model = placed.workload.model, placed.model
    if model is not None:
        n_params: float | None = model.main.n_active_params
    else:
        n_params = None if ref is None else (ref.n_active_params or ref.n_params)
    tokens = work.n_tokens
    if tokens is None and work.n_samples is not None:
        # Every parameter meets an image once at the least.
        is_image = model is not None and model.kind == "vision"
        tokens = work.n_samples * (1 if is_image else work.sequence_tokens)
    if n_params is None or tokens is None:
        return None
    return TRAINED[work.method] * n_params * tokens * work.n_epochs


def _power_checks(document: Document, facts: PlanFacts) -> Iterator[Check]:
    """Between idle boards and every board at its limit, with servers around them."""
    plan = document["plan"]
    claimed = (plan["power_w"] or {}).get("value")
    bounds = _power_bounds(document, facts)
    if not claimed or bounds is None:
        return
    idle_w, most_w = bounds
    yield at_least("power: boards at idle", claimed, idle_w, "W")
    yield at_most("power: boards at their limit, and servers", claimed, most_w, "W")
    energy = plan["energy_j_per_month"]
    if energy:
        yield at_most("energy: the highest draw, all month", energy, claimed * MONTH, "J")
    carbon = plan["carbon_kg_per_month"]
    if energy and carbon:
        dirtiest = energy / KWH * DIRTIEST_KG_PER_KWH
        yield at_most("carbon: the dirtiest grid", carbon, dirtiest, "kg")


def _power_bounds(document: Document, facts: PlanFacts) -> tuple[float, float] | None:
    """Watts of what is in use at the first peak; None where a board's power is not published."""
    idle = most = 0.0
    for pool in pools_of(document):
        card = facts.accelerators.get(str(pool["accelerator"]))
        if card is None or (card.power.limit_w is None and not is_cpu(pool)):
            return None
        idle += pool["n_accelerators"] * (card.power.idle_w or 0.0)
    for pool in pools_of(document):
        card = facts.accelerators[str(pool["accelerator"])]
        for line in pool["purchases"]:
            each = SUPPLY_RATIO * (card.power.limit_w or 0.0) + HOST_W_PER_CARD
            most += line["n_nodes"] * (HOST_W + line["n_accelerators_per_node"] * each)
    return (idle, most) if purchases_of(document) else None
