"""Does this software run on this hardware? in: a SoftwareStack; out: findings that name the fix."""

from collections.abc import Callable, Iterable, Iterator

from gpuplan.catalog.software.parse import Parsed, finding, parse, release_of
from gpuplan.catalog.software.tables import read_software
from gpuplan.domain.hardware.software import (
    Architecture,
    DriverNeed,
    FrameworkSupport,
    SoftwareMatrix,
    SoftwareStack,
    Version,
    Wheel,
    allows,
    version,
)
from gpuplan.domain.system.findings import Finding

ROCM_LEAST = "6.3"  # for vLLM's builds [vllm-repo]
ROCM_LEAST_BY_ARCH = {"gfx950": "7.0"}
HIGHEST_UPDATE = 9  # a larger third number is a build number, not an update of the toolkit


def check_stack(
    stack: SoftwareStack, matrix: SoftwareMatrix | None = None, *, month: str | None = None
) -> tuple[Finding, ...]:
    """Everything that keeps the stack from running, or from running well; empty if all fits.

    A month ("2026-11") lets it say whose support has ended.
    """
    known = matrix or read_software()
    parsed, derived = parse(stack, known)
    rules: tuple[Callable[[Parsed, SoftwareMatrix], Iterable[Finding]], ...] = (
        _pin_findings,
        _python_findings,
        _torch_findings,
        _driver_findings,
        _toolkit_findings,
        _wheel_findings,
        _precision_findings,
        _framework_findings,
        _rocm_findings,
    )
    found = (one for rule in rules for one in rule(parsed, known))
    return (*derived, *found, *_branch_findings(parsed, known, month))


def _pin_findings(parsed: Parsed, _: SoftwareMatrix) -> Iterator[Finding]:
    pins, torch = parsed.pins, parsed.torch
    if pins and pins.torch and torch and not allows(pins.torch, torch):
        name = f"{pins.package} {parsed.stack.framework_version}"
        yield finding(
            "error",
            "framework-torch",
            name,
            f"requires torch{pins.torch}, got {torch}",
            f"install torch{pins.torch}, or another {pins.package}",
        )


def _python_findings(parsed: Parsed, known: SoftwareMatrix) -> Iterator[Finding]:
    if parsed.python is None:
        return
    release = release_of(parsed.torch, known)
    needs = [(f"torch {parsed.torch}", release.python)] if release and release.python else []
    if parsed.pins and parsed.pins.python:
        needs.append((f"{parsed.pins.package} {parsed.pins.version}", parsed.pins.python))
    for name, need in needs:
        # A range of Pythons names minor versions: 3.14.2 lies within <=3.14.
        if not allows(need, parsed.python.minor):
            yield finding(
                "error",
                "python-version",
                name,
                f"requires Python {need}, got {parsed.python}",
                f"use a Python that meets {need}",
            )


def _torch_findings(parsed: Parsed, known: SoftwareMatrix) -> Iterator[Finding]:
    if parsed.torch is None or parsed.cuda is None:
        return
    name = f"torch {parsed.torch}"
    release = release_of(parsed.torch, known)
    if release is None:
        yield finding(
            "note", "torch-known", name, "not in the table", "compare with PyTorch's release page"
        )
        return
    builds = (*release.stable_cuda, *release.experimental_cuda)
    if release.default_cuda:
        builds = (*builds, release.default_cuda.minor)
    if parsed.cuda.minor not in builds:
        listed = ", ".join(sorted({str(b) for b in builds}))
        what, fix = f"has no build for CUDA {parsed.cuda}", f"use a build for CUDA {listed}"
        yield finding("error", "torch-cuda", name, what, fix)
    elif parsed.cuda.minor in release.experimental_cuda:
        stable = ", ".join(map(str, release.stable_cuda))
        what = f"its CUDA {parsed.cuda} build is experimental"
        yield finding("note", "torch-cuda", name, what, f"stable builds: CUDA {stable}")


def _driver_findings(parsed: Parsed, known: SoftwareMatrix) -> Iterator[Finding]:
    driver, cuda = parsed.driver, parsed.cuda
    if driver is None or cuda is None or parsed.arch.capability is None:
        return
    least = _least_driver(_toolkit_need(cuda, known), parsed.stack.system)
    floor = _least_driver(_major_need(cuda, known), parsed.stack.system)
    known_needs = [need for need in (least, floor) if need is not None]
    where = f"driver {driver}"
    if not known_needs:
        yield finding(
            "note",
            "driver-known",
            where,
            f"need of CUDA {cuda} not in the table",
            "compare with the toolkit's release notes",
        )
    elif driver < min(known_needs):
        what = f"too old for CUDA {cuda}, which needs at least {min(known_needs)}"
        fix = f"install driver >= {max(known_needs)}, or a build for an older CUDA"
        yield finding("error", "driver-cuda", where, what, fix)
    elif least is not None and driver < least:
        yield finding(
            "warning",
            "driver-cuda",
            where,
            f"older than the {least} that came with CUDA {cuda}; it runs by "
            "minor-version compatibility, without code compiled at run time from PTX",
            f"install driver >= {least}",
        )


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
        yield finding("warning", "driver-support", where, what, fix)
    elif branch is not next_one:
        what = f"its line {number} ({branch.kind}) gets fixes until {branch.ends}"
        yield finding("note", "driver-support", where, what, fix)


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
        yield finding(
            "error",
            "arch-cuda",
            name,
            f"dropped by CUDA {cuda}",
            f"use a build for CUDA {arch.last_cuda} or older, e.g. 12.6",
        )
    if arch.first_cuda is not None and cuda.minor < arch.first_cuda:
        yield finding(
            "error",
            "arch-cuda",
            name,
            f"unknown to CUDA {cuda}",
            f"use a build for CUDA {arch.first_cuda} or newer",
        )


def _wheel_findings(parsed: Parsed, known: SoftwareMatrix) -> Iterator[Finding]:
    if parsed.torch is None or parsed.cuda is None or parsed.arch.capability is None:
        return
    name = f"torch {parsed.torch} for CUDA {parsed.cuda}"
    wheels = [w for w in known.wheels if w.platform == parsed.stack.platform]
    wheel = next((w for w in wheels if w.cuda.minor == parsed.cuda.minor), None)
    if wheel is None:
        yield finding(
            "note",
            "wheel-arch",
            name,
            "its list of architectures is not in the table",
            "print torch.cuda.get_arch_list()",
        )
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
        yield finding(
            "note",
            "wheel-arch",
            name,
            f"no binary for {arch.id}: translated from PTX",
            "expect a slow first start",
        )
        return
    release = release_of(parsed.torch, known)
    built = (*release.stable_cuda, *release.experimental_cuda) if release else ()
    fitting = [str(w.cuda) for w in wheels if w.cuda in built and has_binary(w, arch)]
    fix = f"use its build for CUDA {', '.join(fitting)}" if fitting else "use another torch"
    sureness = "" if wheel.is_sure else " as far as is known"
    yield finding(
        "error" if wheel.is_sure else "warning",
        "wheel-arch",
        name,
        f"carries no code for {arch.id} ({arch.family}){sureness}",
        fix,
    )


def _precision_findings(parsed: Parsed, known: SoftwareMatrix) -> Iterator[Finding]:
    arch, compute = parsed.arch, parsed.compute
    if compute is None or compute in arch.precisions:
        return
    able = [a.family for a in known.architectures if compute in a.precisions]
    support = _support(parsed, known, compute)
    instead = "bf16" if "bf16" in arch.precisions else "fp16"
    note = f" ({support.note})" if support and support.note else ""
    yield finding(
        "error",
        "arch-precision",
        f"{arch.id} ({arch.family})",
        f"has no {compute} arithmetic",
        f"compute in {instead}{note}, or use {', '.join(able)}",
    )


def _support(parsed: Parsed, known: SoftwareMatrix, what: str) -> FrameworkSupport | None:
    rows = (f for f in known.frameworks if f.framework == parsed.stack.framework)
    return next((row for row in rows if row.what == what), None)


def _framework_findings(parsed: Parsed, known: SoftwareMatrix) -> Iterator[Finding]:
    arch = parsed.arch
    runs = _support(parsed, known, "run")
    name = f"{parsed.stack.framework} on {arch.id} ({arch.family})"
    if runs is not None and arch.id not in runs.archs:
        note = f" ({runs.note})" if runs.note else ""
        yield finding(
            "error" if runs.is_sure else "warning",
            "framework-arch",
            name,
            f"not among the architectures it supports{note}",
            f"use one of {', '.join(runs.archs)}, or another framework",
        )
        return
    kernels = _support(parsed, known, parsed.compute) if parsed.compute else None
    if kernels and parsed.compute in arch.precisions and arch.id not in kernels.archs:
        note = f"; {kernels.note}" if kernels.note else ""
        yield finding(
            "warning",
            "framework-precision",
            name,
            f"no {parsed.compute} kernels for it are listed{note}",
            f"measure first, or use one of {', '.join(kernels.archs)}",
        )


def _rocm_findings(parsed: Parsed, _: SoftwareMatrix) -> Iterator[Finding]:
    stack, is_amd = parsed.stack, parsed.arch.capability is None
    if is_amd and stack.cuda is not None:
        yield finding(
            "error", "vendor", stack.arch, f"cannot run CUDA {stack.cuda}", "use a ROCm build"
        )
    if not is_amd and stack.rocm is not None:
        yield finding(
            "error", "vendor", stack.arch, f"cannot run ROCm {stack.rocm}", "use a CUDA build"
        )
    if is_amd and stack.framework == "tensorrt-llm":
        return
    least = ROCM_LEAST_BY_ARCH.get(parsed.arch.id, ROCM_LEAST)
    if is_amd and stack.rocm is not None and version(stack.rocm) < version(least):
        yield finding(
            "error",
            "arch-rocm",
            f"{parsed.arch.id} ({parsed.arch.family})",
            f"ROCm {stack.rocm} is too old",
            f"use ROCm {least} or newer",
        )
