"""Which formats the weights and the cache lie in: as published, or as asked."""

from dataclasses import replace

from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.inference.serving import StorageFormats
from gpuplan.domain.model.network import Model
from gpuplan.domain.model.precision import FORMATS, NumberFormat, sixteen_on
from gpuplan.domain.provenance import Assumption, assume

# What quantizers leave in the base precision unless told otherwise: tables, head, norms, routers.
QUANTIZED_PARTS = ("attention", "feed_forward", "experts", "shared_experts")


def storage_of(
    model: Model, precision: NumberFormat | None, cache_precision: NumberFormat | None
) -> tuple[StorageFormats, tuple[Assumption, ...]]:
    """Formats in memory, with what was assumed where the user was silent."""
    published = model.checkpoint
    assumptions = []
    base = published.base
    if base.element_bytes > FORMATS["bf16"].element_bytes and precision != base:
        assumptions.append(
            assume(
                "precision",
                "bf16",
                f"published in {base.name}, which engines cast down when they load it",
                f"--precision {base.name}",
            )
        )
        base = FORMATS["bf16"]
    cache = cache_precision or published.cache or FORMATS["bf16"]
    if cache_precision is None:
        assumptions.append(_assumed_cache(cache, is_published=published.cache is not None))
    if precision is None:
        parts: tuple[str, ...] = published.parts if published.quantized else ()
        stored = StorageFormats(
            base=base,
            quantized=published.quantized,
            parts=parts,
            cache=cache,
            others=published.others,
        )
        return stored, tuple(assumptions)
    if precision.is_quantized:
        parts = _parts_in(model, precision)
        return StorageFormats(base=base, quantized=precision, parts=parts, cache=cache), tuple(
            assumptions
        )
    return StorageFormats(base=precision, quantized=None, parts=(), cache=cache), tuple(assumptions)


def stored_on(storage: StorageFormats, accelerator: Accelerator) -> StorageFormats:
    """The formats as this device runs them: FP16 where it has no BF16."""

    def on_it(form: NumberFormat) -> NumberFormat:
        return FORMATS.get(sixteen_on(form.name, accelerator.peak_flop_per_s), form)

    return replace(storage, base=on_it(storage.base), cache=on_it(storage.cache))


def _assumed_cache(cache: NumberFormat, *, is_published: bool) -> Assumption:
    why = "the checkpoint asks for it" if is_published else "engines store it in 16 bits by default"
    return assume("KV cache precision", cache.name, why, "--kv-precision")


def _parts_in(model: Model, precision: NumberFormat) -> tuple[str, ...]:
    """The checkpoint's own choice where it is in this format already, else the usual one."""
    published = model.checkpoint.quantized
    if published is not None and published.compute == precision.compute:
        return tuple(model.checkpoint.parts)
    return QUANTIZED_PARTS


def storage_cautions(storage: StorageFormats, accelerator: Accelerator) -> list[str]:
    """Formats that this hardware can hold but not compute in, and what touches quality."""
    cautions = []
    quantized = storage.quantized
    if quantized is not None and quantized.compute not in accelerator.peak_flop_per_s:
        cautions.append(
            f"{accelerator.name} has no {quantized.compute} units: {quantized.name} weights save "
            "memory there, the arithmetic stays in 16 bits"
        )
    return cautions
