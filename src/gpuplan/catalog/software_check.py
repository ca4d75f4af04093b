"""Does this software run on this hardware? in: a Stack; out: findings that name the fix."""

import difflib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from gpuplan.catalog.software import read_software
from gpuplan.domain.hardware.software import (
    Architecture,
    DriverNeed,
    FrameworkSupport,
    PackagePins,
    SoftwareMatrix,
    SoftwareStack,
    TorchRelease,
    Version,
    Wheel,
    allows,
    version,
)
from gpuplan.domain.model.precision import format_named
from gpuplan.domain.system.findings import Finding, Severity
from gpuplan.errors import InputError, Problem

FRAMEWORKS = ("vllm", "sglang", "tensorrt-llm")
ROCM_LEAST = "6.3"  # for vLLM's builds [vllm-repo]
ROCM_LEAST_BY_ARCH = {"gfx950": "7.0"}
NUMBERS = ("driver", "cuda", "torch", "python", "framework_version", "rocm")
HIGHEST_UPDATE = 9  # a larger third number is a build number, not an update of the toolkit


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


def check_stack(
    stack: SoftwareStack, matrix: SoftwareMatrix | None = None, *, month: str | None = None
) -> tuple[Finding, ...]:
    """Everything that keeps the stack from running, or from running well; empty if all fits.

    A month ("2026-11") lets it say whose support has ended.
    """
    known = matrix or read_software()
    parsed, derived = _parse(stack, known)
    rules: tuple[Callable[[Parsed, SoftwareMatrix], Iterable[Finding]], ...] = (
        _pin_findings, _python_findings, _torch_findings, _driver_findings, _toolkit_findings,
        _wheel_findings, _precision_findings, _framework_findings, _rocm_findings,
    )  # fmt: skip
    found = (finding for rule in rules for finding in rule(parsed, known))
    return (*derived, *found, *_branch_findings(parsed, known, month))


def _finding(severity: Severity, rule: str, where: str, what: str, fix: str) -> Finding:
    return Finding(severity=severity, rule=rule, where=where, what=what, fix=fix)


# --- reading -----------------------------------------------------------------------------------


def _parse(stack: SoftwareStack, known: SoftwareMatrix) -> tuple[Parsed, list[Finding]]:
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
    return Parsed(stack, arch, numbers["driver"], cuda, torch, pins, numbers["python"],
                  compute), derived  # fmt: skip


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
        derived.append(_finding("note", "requirements-known", framework,
                                "what it requires is not in the table",
                                "compare with its release notes"))  # fmt: skip
        return None
    older = [p for p in rows if p.version <= wanted]
    newer = [p for p in rows if p.version >= wanted]
    if older and newer and older[-1].torch == newer[0].torch:
        return older[-1]
    near = ", ".join(f"{p.version} needs torch{p.torch}" for p in (*older[-1:], *newer[:1]))
    derived.append(_finding("note", "requirements-known", f"{framework} {wanted}",
                            f"not in the table; nearest: {near}",
                            "compare with its release notes"))  # fmt: skip
    return None


def _pinned_torch(pins: PackagePins | None, derived: list[Finding]) -> Version | None:
    if pins is None or not pins.torch.startswith("=="):
        return None
    torch = version(pins.torch.removeprefix("=="))
    where = f"{pins.package} {pins.version}"
    fix = "give torch if another is installed"
    derived.append(_finding("note", "torch-assumed", where, f"brings torch {torch}", fix))
    return torch


def _default_cuda(
    arch: Architecture, torch: Version | None, known: SoftwareMatrix, derived: list[Finding]
) -> Version | None:
    release = _release(torch, known)
    if arch.capability is None or release is None or release.default_cuda is None:
        return None
    cuda = release.default_cuda.minor
    derived.append(_finding("note", "cuda-assumed", f"torch {torch}",
                            f"a plain install is built with CUDA {cuda}",
                            "give cuda if another build is installed"))  # fmt: skip
    return cuda


def _release(torch: Version | None, known: SoftwareMatrix) -> TorchRelease | None:
    if torch is None:
        return None
    return next((r for r in known.torch if r.torch.minor == torch.minor), None)


# --- rules -------------------------------------------------------------------------------------


def _pin_findings(parsed: Parsed, _: SoftwareMatrix) -> Iterator[Finding]:
    pins, torch = parsed.pins, parsed.torch
    if pins and pins.torch and torch and not allows(pins.torch, torch):
        name = f"{pins.package} {parsed.stack.framework_version}"
        yield _finding("error", "framework-torch", name, f"requires torch{pins.torch}, got {torch}",
                       f"install torch{pins.torch}, or another {pins.package}")  # fmt: skip


def _python_findings(parsed: Parsed, known: SoftwareMatrix) -> Iterator[Finding]:
    if parsed.python is None:
        return
    release = _release(parsed.torch, known)
    needs = [(f"torch {parsed.torch}", release.python)] if release and release.python else []
    if parsed.pins and parsed.pins.python:
        needs.append((f"{parsed.pins.package} {parsed.pins.version}", parsed.pins.python))
    for name, need in needs:
        # A range of Pythons names minor versions: 3.14.2 lies within <=3.14.
        if not allows(need, parsed.python.minor):
            yield _finding("error", "python-version", name,
                           f"requires Python {need}, got {parsed.python}",
                           f"use a Python that meets {need}")  # fmt: skip


def _torch_findings(parsed: Parsed, known: SoftwareMatrix) -> Iterator[Finding]:
    if parsed.torch is None or parsed.cuda is None:
        return
    name = f"torch {parsed.torch}"
    release = _release(parsed.torch, known)
    if release is None:
        yield _finding("note", "torch-known", name, "not in the table",
                       "compare with PyTorch's release page")  # fmt: skip
        return
    builds = (*release.stable_cuda, *release.experimental_cuda)
    if release.default_cuda:
        builds = (*builds, release.default_cuda.minor)
    if parsed.cuda.minor not in builds:
        listed = ", ".join(sorted({str(b) for b in builds}))
        yield _finding("error", "torch-cuda", name, f"has no build for CUDA {parsed.cuda}",
                       f"use a build for CUDA {listed}")  # fmt: skip
    elif parsed.cuda.minor in release.experimental_cuda:
        stable = ", ".join(map(str, release.stable_cuda))
        yield _finding("note", "torch-cuda", name, f"its CUDA {parsed.cuda} build is experimental",
                       f"stable builds: CUDA {stable}")  # fmt: skip


def _driver_findings(parsed: Parsed, known: SoftwareMatrix) -> Iterator[Finding]:
    driver, cuda = parsed.driver, parsed.cuda
    if driver is None or cuda is None or parsed.arch.capability is None:
        return
    least = _least_driver(_toolkit_need(cuda, known), parsed.stack.system)
    floor = _least_driver(_major_need(cuda, known), parsed.stack.system)
    known_needs = [need for need in (least, floor) if need is not None]
    where = f"driver {driver}"
    if not known_needs:
        yield _finding("note", "driver-known", where, f"need of CUDA {cuda} not in the table",
                       "compare with the toolkit's release notes")  # fmt: skip
    elif driver < min(known_needs):
        what = f"too old for CUDA {cuda}, which needs at least {min(known_needs)}"
        fix = f"install driver >= {max(known_needs)}, or a build for an older CUDA"
        yield _finding("error", "driver-cuda", where, what, fix)
    elif least is not None and driver < least:
        yield _finding("warning", "driver-cuda", where,
                       f"older than the {least} that came with CUDA {cuda}; it runs by "
                       "minor-version compatibility, without code compiled at run time from PTX",
                       f"install driver >= {least}")  # fmt: skip


def _branch_findings(parsed: Parsed, known: SoftwareMatrix, month: str | None) -> Iterator[Finding]:
    """How long the installed line of drivers gets fixes, and which one to go to."""
    if parsed.driver is None or parsed.arch.capability is None:
        return
    number = parsed.driver.release[0]
    branch = next((one for one in known.branches if one.number == number), None)
    if branch is None:
        return
    lasting = [one for one in known.branches if one.kind == "long-term" and one.ends != "ended"]
    next_one = max(lasting, key=lambda one: one.ends)
    fix = f"go to {next_one.number}, a long-term line until {next_one.ends}"
    where = f"driver {parsed.driver}"
    if branch.has_ended(month or ""):
        until = "" if branch.ends == "ended" else f" since {branch.ends}"
        what = f"its line {number} gets no fixes any more{until}"
        yield _finding("warning", "driver-support", where, what, fix)
    elif branch is not next_one:
        what = f"its line {number} ({branch.kind}) gets fixes until {branch.ends}"
        yield _finding("note", "driver-support", where, what, fix)


def _toolkit_need(cuda: Version, known: SoftwareMatrix) -> DriverNeed | None:
    """The row of this update of the toolkit; of its first release where none is named."""
    rows = [d for d in known.drivers if not d.is_minor_floor and d.cuda.minor == cuda.minor]
    is_update = len(cuda.release) > 2 and cuda.release[2] <= HIGHEST_UPDATE
    reached = [d for d in rows if is_update and d.cuda <= cuda]
    if reached:
        return max(reached, key=lambda d: d.cuda)
    return min(rows, key=lambda d: d.cuda, default=None)


def _major_need(cuda: Version, known: SoftwareMatrix) -> DriverNeed | None:
    floors = (d for d in known.drivers if d.is_minor_floor and d.cuda.major == cuda.major)
    return next(floors, None)


def _least_driver(need: DriverNeed | None, system: str) -> Version | None:
    if need is None:
        return None
    return need.windows if system == "windows" else need.linux


def _toolkit_findings(parsed: Parsed, _: SoftwareMatrix) -> Iterator[Finding]:
    arch, cuda = parsed.arch, parsed.cuda
    if cuda is None or arch.capability is None:
        return
    name = f"{arch.id} ({arch.family})"
    if arch.last_cuda is not None and cuda.minor > arch.last_cuda:
        yield _finding("error", "arch-cuda", name, f"dropped by CUDA {cuda}",
                       f"use a build for CUDA {arch.last_cuda} or older, e.g. 12.6")  # fmt: skip
    if arch.first_cuda is not None and cuda.minor < arch.first_cuda:
        yield _finding("error", "arch-cuda", name, f"unknown to CUDA {cuda}",
                       f"use a build for CUDA {arch.first_cuda} or newer")  # fmt: skip


def _wheel_findings(parsed: Parsed, known: SoftwareMatrix) -> Iterator[Finding]:
    if parsed.torch is None or parsed.cuda is None or parsed.arch.capability is None:
        return
    name = f"torch {parsed.torch} for CUDA {parsed.cuda}"
    wheels = [w for w in known.wheels if w.platform == parsed.stack.platform]
    wheel = next((w for w in wheels if w.cuda.minor == parsed.cuda.minor), None)
    if wheel is None:
        yield _finding("note", "wheel-arch", name, "its list of architectures is not in the table",
                       "print torch.cuda.get_arch_list()")  # fmt: skip
    elif not has_binary(wheel, parsed.arch):
        yield from _missing_arch(parsed, wheel, wheels, known)


def has_binary(wheel: Wheel, arch: Architecture) -> bool:
    """Whether the build carries code for it: code runs on its own major version from its minor
    version on, and nowhere else, whatever the numbers suggest."""
    mine = arch.capability
    return mine is not None and any(
        major == mine[0] and minor <= mine[1] for major, minor in wheel.archs
    )


def _missing_arch(
    parsed: Parsed, wheel: Wheel, wheels: Iterable[Wheel], known: SoftwareMatrix
) -> Iterator[Finding]:
    arch, name = parsed.arch, f"torch {parsed.torch} for CUDA {parsed.cuda}"
    if wheel.ptx is not None and arch.capability is not None and arch.capability >= wheel.ptx:
        yield _finding("note", "wheel-arch", name, f"no binary for {arch.id}: translated from PTX",
                       "expect a slow first start")  # fmt: skip
        return
    release = _release(parsed.torch, known)
    built = (*release.stable_cuda, *release.experimental_cuda) if release else ()
    fitting = [str(w.cuda) for w in wheels if w.cuda in built and has_binary(w, arch)]
    fix = f"use its build for CUDA {', '.join(fitting)}" if fitting else "use another torch"
    sureness = "" if wheel.is_sure else " as far as is known"
    yield _finding("error" if wheel.is_sure else "warning", "wheel-arch", name,
                   f"carries no code for {arch.id} ({arch.family}){sureness}", fix)  # fmt: skip


def _precision_findings(parsed: Parsed, known: SoftwareMatrix) -> Iterator[Finding]:
    arch, compute = parsed.arch, parsed.compute
    if compute is None or compute in arch.precisions:
        return
    able = [a.family for a in known.architectures if compute in a.precisions]
    support = _support(parsed, known, compute)
    instead = "bf16" if "bf16" in arch.precisions else "fp16"
    note = f" ({support.note})" if support and support.note else ""
    yield _finding("error", "arch-precision", f"{arch.id} ({arch.family})",
                   f"has no {compute} arithmetic",
                   f"compute in {instead}{note}, or use {', '.join(able)}")  # fmt: skip


def _support(parsed: Parsed, known: SoftwareMatrix, what: str) -> FrameworkSupport | None:
    rows = (f for f in known.frameworks if f.framework == parsed.stack.framework)
    return next((row for row in rows if row.what == what), None)


def _framework_findings(parsed: Parsed, known: SoftwareMatrix) -> Iterator[Finding]:
    arch = parsed.arch
    runs = _support(parsed, known, "run")
    name = f"{parsed.stack.framework} on {arch.id} ({arch.family})"
    if runs is not None and arch.id not in runs.archs:
        note = f" ({runs.note})" if runs.note else ""
        yield _finding("error" if runs.is_sure else "warning", "framework-arch", name,
                       f"not among the architectures it supports{note}",
                       f"use one of {', '.join(runs.archs)}, or another framework")  # fmt: skip
        return
    kernels = _support(parsed, known, parsed.compute) if parsed.compute else None
    if kernels and parsed.compute in arch.precisions and arch.id not in kernels.archs:
        note = f"; {kernels.note}" if kernels.note else ""
        yield _finding("warning", "framework-precision", name,
                       f"no {parsed.compute} kernels for it are listed{note}",
                       f"measure first, or use one of {', '.join(kernels.archs)}")  # fmt: skip


def _rocm_findings(parsed: Parsed, _: SoftwareMatrix) -> Iterator[Finding]:
    stack, is_amd = parsed.stack, parsed.arch.capability is None
    if is_amd and stack.cuda is not None:
        yield _finding("error", "vendor", stack.arch, f"cannot run CUDA {stack.cuda}",
                       "use a ROCm build")  # fmt: skip
    if not is_amd and stack.rocm is not None:
        yield _finding("error", "vendor", stack.arch, f"cannot run ROCm {stack.rocm}",
                       "use a CUDA build")  # fmt: skip
    if is_amd and stack.framework == "tensorrt-llm":
        return
    least = ROCM_LEAST_BY_ARCH.get(parsed.arch.id, ROCM_LEAST)
    if is_amd and stack.rocm is not None and version(stack.rocm) < version(least):
        yield _finding("error", "arch-rocm", f"{parsed.arch.id} ({parsed.arch.family})",
                       f"ROCm {stack.rocm} is too old", f"use ROCm {least} or newer")  # fmt: skip
