"""The answer to "does it fit": memory of a deployment, its longest context, and what would help."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.fit import Deployment, Fit
from gpuplan.domain.inference.serving import InferenceMemory, SequenceLoad, Suggestion
from gpuplan.domain.model.precision import FORMATS, NumberFormat
from gpuplan.performance.memory.inference import inference_memory
from gpuplan.performance.memory.layouts import allowed_tp, layout_cautions, layout_problems
from gpuplan.performance.memory.storage import storage_cautions, storage_of

UNLIMITED_CONTEXT_TOKENS = 2**20
MOST_TP = 16
NODE_TP = 8  # accelerators of an ordinary server, linked or not
N_OTHER_ACCELERATORS = 3
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
        memory=memory_of(deployment),
        max_context_tokens=_longest_context(deployment),
        cautions=tuple(cautions),
    )


def memory_of(deployment: Deployment) -> InferenceMemory:
    """Every part of the fullest accelerator's memory."""
    return inference_memory(
        deployment.model,
        deployment.accelerator,
        storage=deployment.storage,
        layout=deployment.layout,
        engine=deployment.engine,
        load=deployment.load,
    )


def most_tp(accelerator: Accelerator) -> int:
    """Ways of tensor parallelism worth trying: a server, or the island where it is larger."""
    if accelerator.is_cpu:
        return 1
    link = accelerator.scale_up
    return min(MOST_TP, max(NODE_TP, link.n_domain if link else 1))


def fewest(deployment: Deployment) -> Fit | None:
    """The smallest tensor-parallel group on which it fits."""
    limit = most_tp(deployment.accelerator)
    for tp in allowed_tp(deployment.model, deployment.storage, most=limit):
        answer = measure(_with_tp(deployment, tp))
        if answer.fits:
            return answer
    return None


def suggest(answer: Fit, others: Sequence[Accelerator], move: Move) -> Iterator[Suggestion]:
    """Single changes that make it fit, the least painful first."""
    deployment = answer.deployment
    yield from _load_suggestions(answer)
    yield from _first(_cache_changes(deployment))
    yield from _first(_attention_changes(deployment))
    yield from _first(_tp_changes(deployment))
    yield from _first(_weight_changes(deployment))
    yield from _other_accelerators(deployment, others, move)


def _context_cautions(deployment: Deployment) -> list[str]:
    limit = deployment.model.max_context_tokens
    asked = deployment.load.context_tokens
    if limit is None or asked <= limit:
        return []
    return [f"the model was made for {limit} tokens of context; {asked} were asked"]


def _longest_context(deployment: Deployment) -> int:
    """Bisection over whole blocks: the cache never shrinks as the context grows."""
    block = deployment.engine.block_tokens
    limit = deployment.model.max_context_tokens or UNLIMITED_CONTEXT_TOKENS

    def has_room(n_tokens: int) -> bool:
        load = dataclasses.replace(deployment.load, context_tokens=n_tokens)
        memory = memory_of(dataclasses.replace(deployment, load=load))
        return memory.cache_bytes >= memory.needed_bytes

    if has_room(limit):
        return limit
    low, high = 0, max(1, limit // block)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if has_room(middle * block) else (low, middle)
    return low * block if low and has_room(low * block) else 0


def _load_suggestions(answer: Fit) -> Iterator[Suggestion]:
    load = answer.deployment.load
    if 0 < answer.max_context_tokens < load.context_tokens:
        n = answer.max_context_tokens
        shorter = dataclasses.replace(load, context_tokens=n)
        yield _with_load(answer, shorter, f"contexts of {n} tokens", f"--context {n}")
    if 0 < answer.max_concurrency < load.n_sequences:
        n = answer.max_concurrency
        fewer = dataclasses.replace(load, n_sequences=n)
        yield _with_load(answer, fewer, f"{n} sequences at once", f"--concurrency {n}")


def _with_load(answer: Fit, load: SequenceLoad, change: str, how: str) -> Suggestion:
    memory = memory_of(dataclasses.replace(answer.deployment, load=load))
    left = memory.cache_bytes - memory.needed_bytes
    return Suggestion(change=change, how=how, headroom_bytes=left)


# One change: what it is, how to type it, the deployment after it, and what to beware of.
Change = tuple[str, str, Deployment, str]


def _first(changes: Iterator[Change]) -> Iterator[Suggestion]:
    """The first change of a kind that is enough, so the smallest."""
    for change, how, after, caveat in changes:
        if layout_problems(after.model, after.storage, after.layout):
            continue
        tried = measure(after)
        if tried.fits:
            yield Suggestion(
                change=change, how=how, headroom_bytes=tried.headroom_bytes, caveat=caveat
            )
            return


def _cache_changes(deployment: Deployment) -> Iterator[Change]:
    storage = deployment.storage
    if storage.cache.element_bytes > FORMATS["fp8"].element_bytes:
        after = dataclasses.replace(storage, cache=FORMATS["fp8"])
        changed = dataclasses.replace(deployment, storage=after)
        yield "key-value cache in fp8", "--kv-precision fp8", changed, QUALITY


def _attention_changes(deployment: Deployment) -> Iterator[Change]:
    """A latent cache is copied to every tensor-parallel rank; attention replicas share it out."""
    layout, caches = deployment.layout, list(deployment.model.caches())
    is_copied = any(cache.n_heads < layout.tp for _, cache in caches if cache.role == "kv")
    if layout.tp > 1 and layout.dp == 1 and is_copied and deployment.model.is_moe:
        n = layout.tp
        after = dataclasses.replace(layout, tp=1, dp=n, ep=n)
        changed = dataclasses.replace(deployment, layout=after)
        caveat = "attention weights are copied to every device"
        yield f"attention replicas on all {n}", f"--tp 1 --dp {n} --ep {n}", changed, caveat


def _tp_changes(deployment: Deployment) -> Iterator[Change]:
    limit = most_tp(deployment.accelerator)
    for tp in allowed_tp(deployment.model, deployment.storage, most=limit):
        if tp > deployment.layout.tp:
            yield f"tensor parallel over {tp}", f"--tp {tp}", _with_tp(deployment, tp), ""


def _with_tp(deployment: Deployment, tp: int) -> Deployment:
    layout = dataclasses.replace(deployment.layout, tp=tp)
    return dataclasses.replace(deployment, layout=layout)


def _weight_changes(deployment: Deployment) -> Iterator[Change]:
    for name in ("fp8", "int4"):
        smaller = FORMATS[name]
        if smaller.stored_bytes < _weight_format(deployment).stored_bytes:
            storage, _ = storage_of(deployment.model, smaller, deployment.storage.cache)
            changed = dataclasses.replace(deployment, storage=storage)
            yield f"weights in {name}", f"--precision {name}", changed, QUALITY


def _weight_format(deployment: Deployment) -> NumberFormat:
    return deployment.storage.quantized or deployment.storage.base


def _other_accelerators(
    deployment: Deployment, others: Sequence[Accelerator], move: Move
) -> Iterator[Suggestion]:
    """The next larger devices that would do with the same layout."""
    here = deployment.accelerator.memory.visible_bytes
    larger = [o for o in others if o.memory.visible_bytes > here and not o.is_cpu]
    n_found = 0
    for other in sorted(larger, key=lambda o: o.memory.visible_bytes):
        tried = measure(move(deployment, other))
        if tried.fits:
            n_found += 1
            yield Suggestion(
                change=f"on {other.name}",
                how=f"--on {other.id}",
                headroom_bytes=tried.headroom_bytes,
            )
        if n_found == N_OTHER_ACCELERATORS:
            return
