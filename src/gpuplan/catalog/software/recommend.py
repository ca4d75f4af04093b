"""A software stack that goes together: from an engine's version down to the driver."""

from collections.abc import Iterator

from gpuplan.catalog.software.tables import read_software
from gpuplan.domain.hardware.software import (
    PackagePins,
    SoftwareLayer,
    SoftwareMatrix,
    TorchRelease,
    Version,
    allows,
    version,
)

TABLE_NAMES = {"trtllm": "tensorrt-llm"}


def recommended_stack(
    engine: str, engine_version: str, *, arch: str, maker: str
) -> tuple[SoftwareLayer, ...]:
    """Engine, Python, PyTorch, CUDA or ROCm, and the oldest driver that carries them."""
    known = read_software()
    layers = [SoftwareLayer(layer="engine", name=engine, version=engine_version, why="as planned")]
    pins = _pins(TABLE_NAMES.get(engine, engine), engine_version, known)
    release = _torch(pins, known)
    if pins is not None:
        why = f"what {pins.package} {pins.version} requires"
        layers.append(SoftwareLayer(layer="python", name="Python", version=pins.python, why=why))
    if release is None:
        return tuple(layers)
    why = f"pinned by {engine}" if pins else "the newest release that is listed"
    layers.append(
        SoftwareLayer(layer="framework", name="PyTorch", version=str(release.torch), why=why)
    )
    layers += _below(release, known, arch=arch, maker=maker)
    return tuple(layers)


def _pins(package: str, text: str, known: SoftwareMatrix) -> PackagePins | None:
    """The listed version next to the planned one: the same, else the newest before it."""
    wanted = version(text) if text and text[0].isdigit() else None
    rows = sorted((p for p in known.packages if p.package == package), key=lambda p: p.version)
    if not rows:
        return None
    same = [p for p in rows if wanted is None or p.version.minor <= wanted.minor]
    return (same or rows[:1])[-1]


def _torch(pins: PackagePins | None, known: SoftwareMatrix) -> TorchRelease | None:
    rows = sorted(known.torch, key=lambda row: row.torch, reverse=True)
    if pins is None or not pins.torch:
        return rows[0] if rows else None
    return next((row for row in rows if _is_pinned(row.torch, pins.torch)), None)


def _is_pinned(release: Version, specifier: str) -> bool:
    """Whether the pin names a version of this release line."""
    exact = specifier.removeprefix("==")
    if exact != specifier:
        return version(exact).minor == release.minor
    return allows(specifier, release)


def _below(
    release: TorchRelease, known: SoftwareMatrix, *, arch: str, maker: str
) -> Iterator[SoftwareLayer]:
    """What PyTorch stands on: CUDA and its driver, or ROCm."""
    torch = f"PyTorch {release.torch}"
    if maker == "AMD" and release.rocm:
        why = f"the build of {torch} for {arch}"
        yield SoftwareLayer(layer="rocm", name="ROCm", version=release.rocm, why=why)
    if maker != "NVIDIA":
        return
    cuda = release.default_cuda or max(release.stable_cuda, default=None)
    if cuda is None:
        return
    yield SoftwareLayer(layer="cuda", name="CUDA", version=str(cuda), why=f"what {torch} brings")
    needs = [n for n in known.drivers if not n.is_minor_floor and n.cuda.minor == cuda.minor]
    least = min((n.linux for n in needs if n.linux is not None), default=None)
    if least is not None:
        text = f"the oldest whose toolkit is CUDA {cuda.minor}"
        yield SoftwareLayer(layer="driver", name="NVIDIA driver", version=f"{least}", why=text)
