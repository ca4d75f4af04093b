"""What must fit together: driver, toolkit, framework, architecture, precision."""

import re
from functools import total_ordering

from gpuplan.domain.noun import dataclass

VERSION = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)(?:[._-]?(?P<tag>a|b|rc|dev|post)[._-]?(?P<number>\d*))?(?:\+.*)?"
)
TAGS = {"dev": -4, "a": -3, "b": -2, "rc": -1, "post": 1}


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A version number; 2.10 comes after 2.9, and 2.8 equals 2.8.0."""

    text: str
    release: tuple[int, ...]
    tag: tuple[int, int] = (0, 0)

    @classmethod
    def read(cls, text: str) -> "Version":
        """The version that the text spells, e.g. 0.6.6.post1 or 2.9.1+cu128; else ValueError."""
        found = VERSION.fullmatch(text.strip())
        if not found:
            raise ValueError(f"{text!r} is no version number")
        release = tuple(int(part) for part in found["release"].split("."))
        tag = (TAGS[found["tag"]], int(found["number"] or 0)) if found["tag"] else (0, 0)
        return cls(text.strip(), release, tag)

    @property
    def _key(self) -> tuple[tuple[int, ...], tuple[int, int]]:
        trimmed = self.release
        while len(trimmed) > 1 and trimmed[-1] == 0:
            trimmed = trimmed[:-1]
        return trimmed, self.tag

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._key == other._key

    def __lt__(self, other: "Version") -> bool:
        return self._key < other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __str__(self) -> str:
        return self.text

    @property
    def major(self) -> int:
        """First number."""
        return self.release[0]

    @property
    def minor(self) -> "Version":
        """First two numbers."""
        release = (*self.release, 0)[:2]
        return Version(".".join(map(str, release)), release)


version = Version.read


def allows(specifier: str, candidate: Version) -> bool:
    """Whether a requirement such as `>=3.9,<3.13` or `==2.5.1` or `!=5.0.*` admits the version."""
    return all(_admits(clause.strip(), candidate) for clause in specifier.split(",") if clause)


def _admits(clause: str, candidate: Version) -> bool:
    found = re.fullmatch(r"(==|!=|>=|<=|~=|>|<)\s*([^*]+?)(\.\*)?", clause)
    if not found:
        raise ValueError(f"{clause!r} is no requirement")
    operator, bound = found[1], version(found[2])
    if found[3]:
        same = (*candidate.release, 0, 0)[: len(bound.release)] == bound.release
        return same == (operator == "==")
    if operator == "~=":
        n_fixed = len(bound.release) - 1
        return candidate >= bound and (*candidate.release, 0)[:n_fixed] == bound.release[:-1]
    return {
        "==": candidate == bound,
        "!=": candidate != bound,
        ">=": candidate >= bound,
        "<=": candidate <= bound,
        ">": candidate > bound,
        "<": candidate < bound,
    }[operator]


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareStack:
    """Software on a machine; what is not given is not judged."""

    arch: str = ""  # instruction set: sm_90, gfx942; empty: of whatever accelerator is looked at
    driver: str | None = None
    cuda: str | None = None  # of the torch build, or of the toolkit
    torch: str | None = None
    framework: str | None = None  # vllm, sglang, tensorrt-llm
    framework_version: str | None = None
    precision: str | None = None  # that arithmetic is to run in
    python: str | None = None
    rocm: str | None = None
    platform: str = "x86_64"  # or aarch64
    system: str = "linux"  # or windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A GPU instruction set and what its arithmetic units can do."""

    id: str  # sm_90, gfx942
    family: str
    precisions: frozenset[str]
    first_cuda: Version | None
    last_cuda: Version | None  # the last toolkit that still builds for it
    examples: str
    source: str

    @property
    def capability(self) -> tuple[int, int] | None:
        """Compute capability as (major, minor). It names a kind; it does not rank: a program
        built for (10, 0) does not run on (12, 0)."""
        found = re.fullmatch(r"sm_(\d+)(\d)", self.id)
        return (int(found[1]), int(found[2])) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverNeed:
    """The oldest driver for a toolkit, or for a whole major version by minor compatibility."""

    cuda: Version
    is_minor_floor: bool
    linux: Version
    windows: Version | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchRelease:
    """A release line of PyTorch and the builds it comes in."""

    torch: Version
    python: str
    stable_cuda: tuple[Version, ...]
    experimental_cuda: tuple[Version, ...]
    rocm: str
    default_cuda: Version | None  # of the wheel that a plain install brings
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """The architectures that a PyTorch build carries code for."""

    cuda: Version
    platform: str
    archs: tuple[tuple[int, int], ...]  # binary code
    ptx: tuple[int, int] | None  # code that newer architectures can translate
    is_sure: bool
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PackagePins:
    """What one version of a framework requires."""

    package: str
    version: Version
    python: str
    torch: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkSupport:
    """Architectures that a framework runs on, or has kernels of a precision for."""

    framework: str
    what: str  # run, fp8, fp4, int8
    archs: tuple[str, ...]
    is_sure: bool
    note: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverBranch:
    """A line of drivers and how long it gets fixes."""

    number: int
    kind: str  # long-term, production, new-feature
    ends: str  # year and month, or "ended" where only that is published
    source: str

    def has_ended(self, month: str) -> bool:
        """Whether fixes have ended by this year and month."""
        return self.ends == "ended" or self.ends < month


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareLayer:
    """One layer of a stack that goes together."""

    layer: str  # engine, framework, python, cuda, rocm, driver
    name: str
    version: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareMatrix:
    """Everything known about which software fits which."""

    architectures: tuple[Architecture, ...]
    drivers: tuple[DriverNeed, ...]
    torch: tuple[TorchRelease, ...]
    wheels: tuple[Wheel, ...]
    packages: tuple[PackagePins, ...]
    frameworks: tuple[FrameworkSupport, ...]
    branches: tuple[DriverBranch, ...] = ()
