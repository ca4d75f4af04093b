"""The answer to "does it fit": memory of a deployment, its longest context, and what would help."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.fit import Deployment, Fit
from gpuplan.domain.inference.serving import SequenceLoad, Suggestion
from gpuplan.domain.model.precision import FORMATS
from gpuplan.performance.memory.inference import inference_memory
from gpuplan.performance.memory.layouts import allowed_tp, layout_cautions, layout_problems
from gpuplan.performance.memory.storage import storage_cautions, storage_of
from gpuplan.performance.memory.suggestions import (
    N_OTHER_ACCELERATORS,
    Change,
    larger_than,
    that_fit,
)

UNLIMITED_CONTEXT_TOKENS = 2**20
MOST_TP = 16
NODE_TP = 8  # accelerators of an ordinary server, linked or not
QUALITY = "below the published precision: quality is yours to judge"

Move = Callable[[Deployment, Accelerator], Deployment]


def measure(deployment: Deployment) -> Fit:
    """Memory of the deployment, and the longest context that its load could have."""
    cautions = [
        *layout_cautions(deployment.layout, deployment.accelerator),
        *storage_cautions(deployment.storage, deployment.accelerator),
        *_context_cautions(deployment),
    ]
    return Fit(
        deployment=deployment,
        memory=inference_memory(deployment),
        max_context_tokens=_longest_context(deployment),
        cautions=tuple(cautions),
    )


def most_tp(accelerator: Accelerator) -> int:
    """Tensor parallelism worth trying: up to a server, or to a larger scale-up domain."""
    if accelerator.is_cpu:
        return 1
    link = accelerator.scale_up
    return min(MOST_TP, max(NODE_TP, link.n_domain if link else 1))


def fewest(deployment: Deployment) -> Fit | None:
    """The smallest tensor-parallel group on which it fits."""
    for tp in _tensor_ways(deployment):
        answer = measure(_with_tp(deployment, tp))
        if answer.fits:
            return answer
    return None


def suggest(answer: Fit, others: Sequence[Accelerator], move: Move) -> Iterator[Suggestion]:
    """Single changes that make it fit, the least painful first."""
    deployment = answer.deployment
    yield from _load_suggestions(answer)
    for kind in (_cache_changes, _attention_changes, _tp_changes, _weight_changes):
        yield from that_fit(kind(deployment), _headroom_bytes)
    larger = larger_than(deployment.accelerator, others)
    moved = (Change(f"on {o.name}", f"--on {o.id}", move(deployment, o)) for o in larger)
    yield from that_fit(moved, _headroom_bytes, n_most=N_OTHER_ACCELERATORS)


def _headroom_bytes(deployment: Deployment) -> float | None:
    """Memory that is left; None where the deployment cannot run or does not fit."""
    if layout_problems(deployment.model, deployment.storage, deployment.layout):
        return None
    memory = inference_memory(deployment)
    answer = Fit(deployment=deployment, memory=memory, max_context_tokens=0)
    return answer.headroom_bytes if answer.fits else None


def _context_cautions(deployment: Deployment) -> list[str]:
    limit = deployment.model.max_context_tokens
    requested = deployment.load.context_tokens
    if limit is None or requested <= limit:
        return []
    return [f"the model was made for {limit} tokens of context; {requested} were asked"]


def _longest_context(deployment: Deployment) -> int:
    """Bisection over whole blocks: the cache never shrinks as the context grows."""
    block = deployment.engine.block_tokens
    limit = deployment.model.max_context_tokens or UNLIMITED_CONTEXT_TOKENS

    def is_too_long(n_tokens: int) -> bool:
        load = replace(deployment.load, context_tokens=n_tokens)
        memory = inference_memory(replace(deployment, load=load))
        return memory.cache_bytes < memory.needed_bytes

    if not is_too_long(limit):
        return limit
    lengths = range(block, limit // block * block, block)
    return block * bisect_left(lengths, True, key=is_too_long)


def _load_suggestions(answer: Fit) -> Iterator[Suggestion]:
    load = answer.deployment.load
    if 0 < answer.max_context_tokens < load.context_tokens:
        n = answer.max_context_tokens
        shorter = replace(load, context_tokens=n)
        yield _with_load(answer, shorter, f"contexts of {n} tokens", f"--context {n}")
    if 0 < answer.max_concurrency < load.n_sequences:
        n = answer.max_concurrency
        fewer = replace(load, n_sequences=n)
        yield _with_load(answer, fewer, f"{n} concurrent sequences", f"--concurrency {n}")


def _with_load(answer: Fit, load: SequenceLoad, change: str, how: str) -> Suggestion:
    memory = inference_memory(replace(answer.deployment, load=load))
    left = memory.cache_bytes - memory.needed_bytes
    return Suggestion(change=change, how=how, headroom_bytes=left)


def _cache_changes(deployment: Deployment) -> Iterator[Change[Deployment]]:
    storage = deployment.storage
    if storage.cache.element_bytes > FORMATS["fp8"].element_bytes:
        changed = replace(deployment, storage=replace(storage, cache=FORMATS["fp8"]))
        yield Change("KV cache in fp8", "--kv-precision fp8", changed, QUALITY)


def _attention_changes(deployment: Deployment) -> Iterator[Change[Deployment]]:
    """A latent cache is copied to every tensor-parallel rank; data-parallel attention shares it."""
    layout, caches = deployment.layout, list(deployment.model.caches())
    is_copied = any(cache.n_heads < layout.tp for _, cache in caches if cache.role == "kv")
    if layout.tp > 1 and layout.dp == 1 and is_copied and deployment.model.is_moe:
        n = layout.tp
        changed = replace(deployment, layout=replace(layout, tp=1, dp=n, ep=n))
        how, caveat = f"--tp 1 --dp {n} --ep {n}", "attention weights are copied to every device"
        yield Change(f"data-parallel attention over {n}", how, changed, caveat)


def _tp_changes(deployment: Deployment) -> Iterator[Change[Deployment]]:
    for tp in _tensor_ways(deployment):
        if tp > deployment.layout.tp:
            after = _with_tp(deployment, tp)
            yield Change(f"tensor parallel over {tp}", f"--tp {tp}", after)


def _tensor_ways(deployment: Deployment) -> list[int]:
    """Ways of tensor parallelism that the model allows and the accelerator is worth."""
    most = most_tp(deployment.accelerator)
    return allowed_tp(deployment.model, deployment.storage, most=most)


def _with_tp(deployment: Deployment, tp: int) -> Deployment:
    return replace(deployment, layout=replace(deployment.layout, tp=tp))


def _weight_changes(deployment: Deployment) -> Iterator[Change[Deployment]]:
    stored = deployment.storage.quantized or deployment.storage.base
    for name in ("fp8", "int4"):
        if FORMATS[name].stored_bytes < stored.stored_bytes:
            storage, _ = storage_of(deployment.model, FORMATS[name], deployment.storage.cache)
            after = replace(deployment, storage=storage)
            yield Change(f"weights in {name}", f"--precision {name}", after, QUALITY)
