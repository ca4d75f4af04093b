"""Claims beside findings, in: two amounts and how they must relate; out: a Check."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpuplan.domain.plan.certificate import Amount, Check, Relation

Document = Mapping[str, Any]
EXACT = 1e-9
ROUNDING = 1e-6  # of sums whose parts are rounded to the cent
CENT = 0.01
MIG_SLICES = 7  # compute slices of a MIG-capable accelerator [NVIDIA-MIG]


def equal(
    name: str, claimed: float, found: float, unit: str, *, tolerance: float = ROUNDING
) -> Check:
    """Both must agree within the tolerance."""
    slack = tolerance * abs(found) + EXACT
    ok = abs(claimed - found) <= slack
    return _check(name, (claimed, "=", found), unit, tolerance, ok=ok)


def same_money(name: str, claimed: float, found: float) -> Check:
    """Both must agree to the cent."""
    tolerance = CENT / abs(found) if found else 0.0
    ok = abs(claimed - found) <= CENT * (1.0 + ROUNDING)
    return _check(name, (claimed, "=", found), "USD/month", tolerance, ok=ok)


def at_most(name: str, claimed: float, bound: float, unit: str, *, tolerance: float = 0.0) -> Check:
    """The claim may not lie above the bound."""
    slack = tolerance * abs(bound) + EXACT
    return _check(name, (claimed, "<=", bound), unit, tolerance, ok=claimed <= bound + slack)


def at_least(
    name: str, claimed: float, bound: float, unit: str, *, tolerance: float = 0.0
) -> Check:
    """The claim may not lie below the bound."""
    slack = tolerance * abs(bound) + EXACT
    return _check(name, (claimed, ">=", bound), unit, tolerance, ok=claimed >= bound - slack)


def same(name: str, claimed: str, found: str) -> Check:
    """Two words, or two digests, must be one."""
    return _check(name, (claimed, "=", found), "", 0.0, ok=claimed == found)


def same_verdict(name: str, claimed: bool, found: bool) -> Check:
    """A verdict must be the one that its own numbers give."""
    return same(name, _verdict(is_met=claimed), _verdict(is_met=found))


def _verdict(*, is_met: bool) -> str:
    return "met" if is_met else "violated"


def _check(
    name: str, claim: tuple[Amount, Relation, Amount], unit: str, tolerance: float, *, ok: bool
) -> Check:
    claimed, relation, found = claim
    # A figure that is no number agrees with nothing, and JSON has no way to write it.
    claimed, found = _written(claimed), _written(found)
    return Check(
        name=name,
        claimed=claimed,
        relation=relation,
        found=found,
        tolerance_frac=tolerance,
        unit=unit,
        ok=bool(ok),
    )


def _written(amount: Amount) -> Amount:
    if isinstance(amount, str):
        return amount
    return float(amount) if math.isfinite(amount) else str(float(amount))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that holds no other, with its path."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for place, item in enumerate(value):
            yield from leaves(item, f"{path}[{place}]")
    else:
        yield path, value


def is_number(value: Any) -> bool:
    """Whether it is a figure; truth values are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def pools_of(document: Document) -> list[Document]:
    """The pools of the plan; none where there is no plan."""
    return list((document.get("plan") or {}).get("pools", ()))


def purchases_of(document: Document) -> list[Document]:
    """Every purchase line of the plan."""
    return [line for pool in pools_of(document) for line in pool["purchases"]]


def n_per_replica(pool: Document) -> int:
    """Accelerators that one replica spans; of a training run, one model copy."""
    return math.prod(max(1, int(pool.get(key) or 1)) for key in ("tp", "pp", "dp", "cp"))


def n_engines_per_replica(row: Document) -> int:
    """Engines of one replica: of a disaggregated one, those of both roles."""
    return int(row.get("n_prefill") or 0) + int(row.get("n_decode") or 0) or 1


def fraction_of(pool: Document) -> float:
    """The share of one accelerator's compute that a replica takes; 1 where it takes whole ones."""
    share = str(pool.get("share") or "")
    if "/" in share:
        part, _, whole = share.partition("/")
        return float(part) / float(whole)
    slices = share.partition("g.")[0]
    return int(slices) / MIG_SLICES if slices.isdigit() and share.endswith("gb") else 1.0


def is_cpu(pool: Document) -> bool:
    """Whether the pool runs on host processors, which are no accelerators."""
    return str(pool["accelerator"]).startswith("cpu")
