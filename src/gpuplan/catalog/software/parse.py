"""A software stack as typed to versions, in: a SoftwareStack; out: what follows from it."""

import difflib
from typing import NamedTuple

from gpuplan.domain.hardware.software import (
    Architecture,
    PackagePins,
    SoftwareMatrix,
    SoftwareStack,
    TorchRelease,
    Version,
    version,
)
from gpuplan.domain.model.precision import format_named
from gpuplan.domain.system.findings import Finding, Severity
from gpuplan.errors import InputError, Problem

FRAMEWORKS = ("vllm", "sglang", "tensorrt-llm")
NUMBERS = ("driver", "cuda", "torch", "python", "framework_version", "rocm")


class Parsed(NamedTuple):
    """A stack with its versions read and what follows from them filled in."""

    stack: SoftwareStack
    arch: Architecture
    driver: Version | None
    cuda: Version | None
    torch: Version | None
    pins: PackagePins | None
    python: Version | None
    compute: str | None


def finding(severity: Severity, rule: str, where: str, what: str, fix: str) -> Finding:
    """A finding of the software rules."""
    return Finding(severity=severity, rule=rule, where=where, what=what, fix=fix)


def parse(stack: SoftwareStack, known: SoftwareMatrix) -> tuple[Parsed, list[Finding]]:
    """The stack with its versions read, and notes on what had to be assumed."""
    problems: list[Problem] = []
    arch = _architecture(stack.arch, known, problems)
    numbers = {name: _version(stack, name, problems) for name in NUMBERS}
    compute = _compute(stack.precision, problems)
    if stack.framework is not None and stack.framework not in FRAMEWORKS:
        fix = f"one of {', '.join(FRAMEWORKS)}"
        problems.append(Problem("framework", f"got {stack.framework!r}", fix))
    if problems or arch is None:
        raise InputError("software", problems)
    derived: list[Finding] = []
    pins = _pins(stack.framework, numbers["framework_version"], known, derived)
    torch = numbers["torch"] or _pinned_torch(pins, derived)
    cuda = numbers["cuda"] or _default_cuda(arch, torch, known, derived)
    return Parsed(
        stack, arch, numbers["driver"], cuda, torch, pins, numbers["python"], compute
    ), derived


def _architecture(name: str, known: SoftwareMatrix, problems: list[Problem]) -> Architecture | None:
    wanted = name.strip().lower()
    by_id = {arch.id: arch for arch in known.architectures}
    if wanted not in by_id:
        near = difflib.get_close_matches(wanted, by_id, n=3, cutoff=0.5) or sorted(by_id)
        problems.append(Problem("arch", f"got {name!r}", f"one of {', '.join(near)}"))
    return by_id.get(wanted)


def _version(stack: SoftwareStack, name: str, problems: list[Problem]) -> Version | None:
    text = getattr(stack, name)
    if text is None:
        return None
    try:
        return version(text)
    except ValueError:
        problems.append(Problem(name, f"got {text!r}", "a version number, e.g. 12.8 or 580.65.06"))
        return None


def _compute(precision: str | None, problems: list[Problem]) -> str | None:
    if precision is None:
        return None
    form = format_named(precision)
    if form is None:
        problems.append(Problem("precision", f"got {precision!r}", "e.g. bf16, fp8, nvfp4, int8"))
        return None
    return form.compute


def _pins(
    framework: str | None, wanted: Version | None, known: SoftwareMatrix, derived: list[Finding]
) -> PackagePins | None:
    """The requirements of that version; between two known versions that agree, theirs."""
    rows = sorted((p for p in known.packages if p.package == framework), key=lambda p: p.version)
    if wanted is None or framework is None:
        return None
    if not rows:
        derived.append(
            finding(
                "note",
                "requirements-known",
                framework,
                "what it requires is not in the table",
                "compare with its release notes",
            )
        )
        return None
    older = [p for p in rows if p.version <= wanted]
    newer = [p for p in rows if p.version >= wanted]
    if older and newer and older[-1].torch == newer[0].torch:
        return older[-1]
    near = ", ".join(f"{p.version} needs torch{p.torch}" for p in (*older[-1:], *newer[:1]))
    derived.append(
        finding(
            "note",
            "requirements-known",
            f"{framework} {wanted}",
            f"not in the table; nearest: {near}",
            "compare with its release notes",
        )
    )
    return None


def _pinned_torch(pins: PackagePins | None, derived: list[Finding]) -> Version | None:
    if pins is None or not pins.torch.startswith("=="):
        return None
    torch = version(pins.torch.removeprefix("=="))
    where = f"{pins.package} {pins.version}"
    fix = "give torch if another is installed"
    derived.append(finding("note", "torch-assumed", where, f"brings torch {torch}", fix))
    return torch


def _default_cuda(
    arch: Architecture, torch: Version | None, known: SoftwareMatrix, derived: list[Finding]
) -> Version | None:
    release = release_of(torch, known)
    if arch.capability is None or release is None or release.default_cuda is None:
        return None
    cuda = release.default_cuda.minor
    derived.append(
        finding(
            "note",
            "cuda-assumed",
            f"torch {torch}",
            f"a plain install is built with CUDA {cuda}",
            "give cuda if another build is installed",
        )
    )
    return cuda


def release_of(torch: Version | None, known: SoftwareMatrix) -> TorchRelease | None:
    """The release of torch that this version belongs to."""
    if torch is None:
        return None
    return next((r for r in known.torch if r.torch.minor == torch.minor), None)
