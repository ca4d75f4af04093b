"""What a device and an engine can run at all, in: accelerator, format, engine; out: refusals.

One table for all verbs: the peaks of the device, and the kernels that engines have for its
architecture (catalog, software frameworks). A format without arithmetic of its own may still run
where an engine unpacks its weights to 16 bits: that saves memory and reads, not arithmetic.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

from gpuplan.catalog.software.tables import read_software
from gpuplan.domain.hardware.devices import Accelerator
from gpuplan.domain.hardware.software import FrameworkSupport
from gpuplan.domain.inference.serving import StorageFormats
from gpuplan.domain.model.precision import FORMATS, SIXTEEN, NumberFormat
from gpuplan.errors import Problem

TABLE_NAMES = {"trtllm": "tensorrt-llm"}
USUAL_ENGINE = "vllm"  # whose kernels stand for engines that the table does not know
JUDGED = ("fp8", "fp4", "int8")  # arithmetic that takes kernels made for the architecture
INSTEAD = ("int4", "fp8", "int8", "bf16", "fp16", "fp32")  # the narrowest first
N_NAMED = 2
# Assumption: compilers of these makers take no grouped 4-bit weights.
WITHOUT_UNPACKING = ("Google", "AWS")


def support_problems(
    accelerator: Accelerator, storage: StorageFormats, engine: str
) -> list[Problem]:
    """Everything that keeps this engine from running these formats there; empty: it runs."""
    forms = dict.fromkeys(form for form in (storage.quantized, storage.base) if form is not None)
    found = [engine_problem(accelerator, engine)]
    found += [format_problem(accelerator, form, engine) for form in forms]
    return [problem for problem in found if problem is not None]


def engine_problem(accelerator: Accelerator, engine: str) -> Problem | None:
    """Why the engine does not run on the device; None where it does, or nothing is known."""
    row = _support(engine, "run")
    if row is None or _family(accelerator) in {_generation(arch) for arch in row.archs}:
        return None
    # Builds beside the main one serve other makers' devices and CPUs; TensorRT-LLM does neither.
    is_other = accelerator.vendor != "NVIDIA" or accelerator.is_cpu
    if is_other and row.framework != "tensorrt-llm":
        return None
    what = f"{row.framework} does not run on {accelerator.name} ({accelerator.instruction_set})"
    return Problem("--engine", what, "use vllm" if row.framework != USUAL_ENGINE else "use another")


def format_problem(accelerator: Accelerator, form: NumberFormat, engine: str) -> Problem | None:
    """Why the device with this engine cannot run weights of this format; None where it can."""
    if _runs(accelerator, form, engine):
        return None
    known = ", ".join(sorted(accelerator.peak_flop_per_s))
    what = f"{accelerator.name} has no {form.name} with {engine or USUAL_ENGINE} (has {known})"
    return Problem("--precision", what, f"use {' or '.join(nearest(accelerator, form, engine))}")


def nearest(accelerator: Accelerator, form: NumberFormat, engine: str) -> list[str]:
    """Formats that run there, no narrower than the one asked for, the narrowest first."""
    wide = (FORMATS[name] for name in INSTEAD)
    able = [
        each.name
        for each in wide
        if each.element_bytes >= form.element_bytes
        and each.name != form.name
        and each.compute in accelerator.peak_flop_per_s
        and _runs(accelerator, each, engine)
    ]
    return able[:N_NAMED] or ["another accelerator"]


def _runs(accelerator: Accelerator, form: NumberFormat, engine: str) -> bool:
    peaks, compute = accelerator.peak_flop_per_s, form.compute
    is_sixteen = any(name in peaks for name in SIXTEEN)
    if not form.is_quantized:
        return compute in peaks or is_sixteen
    if compute not in JUDGED:
        return is_sixteen and accelerator.vendor not in WITHOUT_UNPACKING
    is_unpacked = is_sixteen and _unpacks(accelerator, form, engine)
    return is_unpacked or _computes(accelerator, compute, engine)


def _computes(accelerator: Accelerator, compute: str, engine: str) -> bool:
    """Whether it has such arithmetic, and the engine kernels for it where that is listed."""
    if compute not in accelerator.peak_flop_per_s:
        return False
    row = _support(engine, compute)
    is_listed = accelerator.vendor in ("NVIDIA", "AMD") and not accelerator.is_cpu
    return row is None or not is_listed or _architecture(accelerator) in row.archs


def _unpacks(accelerator: Accelerator, form: NumberFormat, engine: str) -> bool:
    """Whether the engine unpacks such weights to 16 bits there."""
    kind = form.name if form.compute == "fp4" else form.compute
    row = _support(engine, f"{kind} weights")
    return row is not None and _architecture(accelerator) in row.archs


def _architecture(accelerator: Accelerator) -> str:
    arch = accelerator.instruction_set
    return arch.removesuffix("a") if arch.startswith("sm_") else arch


def _family(accelerator: Accelerator) -> str:
    return _generation(_architecture(accelerator))


def _generation(arch: str) -> str:
    """sm_8 for sm_80 and sm_86; gfx9 for gfx942; other makers' names as they are."""
    found = re.match(r"sm_(\d+)\d$|gfx(\d+)..$", arch)
    return arch if found is None else arch[: found.end(found.lastindex or 0)]


@lru_cache(maxsize=256)
def _support(engine: str, what: str) -> FrameworkSupport | None:
    """The table's row; engines that it does not know are taken for a usual one."""
    rows = read_software().frameworks
    name = TABLE_NAMES.get(engine, engine)
    names = {row.framework for row in rows}
    return _first(rows, name if name in names else USUAL_ENGINE, what)


def _first(rows: Iterable[FrameworkSupport], framework: str, what: str) -> FrameworkSupport | None:
    return next((row for row in rows if (row.framework, row.what) == (framework, what)), None)
