"""Figures of `gpuplan simulate`: text in, values out, or an error that names the option."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from gpuplan.errors import InputError, one
from gpuplan.units import MS

if TYPE_CHECKING:
    from gpuplan.domain.scenario.demand import LengthShape, TokenLengths
    from gpuplan.domain.simulation.engine import KvGroup
    from gpuplan.domain.simulation.outcome import SloTargets
    from gpuplan.domain.traffic.drawn import Phase

MOST_SIZES = 1_000
UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def seconds(text: str | None, flag: str) -> float | None:
    """600, 600s, 10m, 2h, 7d."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*([0-9.eE+-]+)\s*([a-z]*)\s*", text)
    try:
        return float(found[1]) * UNITS_S[found[2]] if found else float("nan")
    except (ValueError, KeyError):
        raise _wrong(flag, text, "write e.g. 600, 10m, 2h or 7d") from None


def warmup_s(text: str | None, *, is_steady: bool) -> float | None:
    """None: found by itself. What has no steady part is measured from its start, unless asked."""
    if text == "auto" or (text is None and is_steady):
        return None
    if text is None:
        return 0.0
    found = seconds(text, "--warmup")
    if found is None or not found >= 0:
        raise _wrong("--warmup", text, "write auto, or seconds of 0 or more")
    return found


def sizes(text: str) -> tuple[int, ...]:
    """1..12, or 1,2,4,8."""
    try:
        if ".." in text:
            low, high = (int(part) for part in text.split("..", 1))
            if high - low >= MOST_SIZES:
                raise _wrong(
                    "--sweep-replicas", text, f"name at most {MOST_SIZES:,} sizes, e.g. 1..12"
                )
            return tuple(range(low, high + 1))
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise _wrong("--sweep-replicas", text, "write e.g. 1..12 or 1,2,4,8") from None


def phases(text: str | None) -> "tuple[Phase, ...]":
    """2x300,20x30: rates and mean stays."""
    from gpuplan.domain.traffic.drawn import Phase

    if text is None:
        return ()
    try:
        pairs = [part.split("x", 1) for part in text.split(",")]
        return tuple(Phase(requests_per_s=float(a), stay_s=float(b)) for a, b in pairs)
    except ValueError:
        raise _wrong("--phases", text, "write rate x seconds, e.g. 2x300,20x30") from None


def kv_groups(text: str | None) -> "tuple[KvGroup, ...] | None":
    """window:128,full or window:1024x5,full: kinds, tokens, and how many; none: all alike."""
    from gpuplan.domain.simulation.engine import KvGroup

    found: list[KvGroup] = []
    if text is None:
        return None
    for part in text.split(",") if text != "none" else ():
        read = re.fullmatch(
            r"\s*(full|state|(window|chunk):0*([1-9]\d{0,8}))(x(\d{1,3}))?\s*", part
        )
        if read is None:
            raise _wrong("--kv-groups", part, "write e.g. window:128,full or window:1024x5,full")
        one_group = KvGroup(kind=read[2] or read[1], tokens=int(read[3] or "0"))
        found += [one_group] * int(read[5] or "1")
    return tuple(found)


def hours(text: str | None) -> tuple[float, ...]:
    """Numbers with commas or lines, in place or in a file."""
    if text is None:
        return ()
    path = Path(text)
    try:
        given = path.read_text(encoding="utf-8") if path.is_file() else text
        return tuple(float(part) for part in re.split(r"[,\s]+", given.strip()))
    except (ValueError, OSError):
        raise _wrong("--profile", text, "give 24 or 168 numbers, or a file of them") from None


def lengths(
    mean: float | None, p95: float | None, shape: "LengthShape | None"
) -> "TokenLengths | None":
    """One figure is a length near it, two are a lognormal law, unless a shape is named."""
    from gpuplan.domain.scenario.demand import TokenLengths

    if mean is None:
        return None
    default: LengthShape = "near" if p95 is None else "lognormal"
    return TokenLengths(shape=shape or default, mean_tokens=mean, p95_tokens=p95)


def objective(
    ttft_ms: float | None, tpot_ms: float | None, e2e_s: float | None, percentile: float | None
) -> "SloTargets | None":
    """Limits of each request; None where none was given."""
    from gpuplan.domain.simulation.outcome import SloTargets

    slo = SloTargets(
        ttft_s=None if ttft_ms is None else ttft_ms * MS,
        tpot_s=None if tpot_ms is None else tpot_ms * MS,
        e2e_s=e2e_s,
        kept_frac=0.99 if percentile is None else percentile / 100,
    )
    return slo if slo.is_given or percentile is not None else None


def whole_numbers(text: str | None, flag: str) -> tuple[int, ...]:
    """4,8; none where nothing was typed."""
    try:
        return tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        raise _wrong(flag, text or "", "write numbers with commas, e.g. 4,8") from None


def priority_mix(text: str | None) -> tuple[tuple[int, float], ...]:
    """0x0.2,1x0.8: priorities and shares."""
    if text is None:
        return ()
    try:
        pairs = [part.split("x", 1) for part in text.split(",")]
        return tuple((int(number), float(share)) for number, share in pairs)
    except ValueError:
        fix = "write priority x share, e.g. 0x0.2,1x0.8"
        raise _wrong("--priorities", text, fix) from None


def _wrong(flag: str, text: str, fix: str) -> Exception:
    return one(InputError, "simulate", flag, f"cannot read {text!r}", fix)
