"""Options of `gpuplan simulate` for batches that run to their end."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gpuplan.domain.simulation.batching import BatchPolicy


class Batching(StrEnum):
    """When requests join a batch."""

    CONTINUOUS = "continuous"
    STATIC = "static"
    DYNAMIC = "dynamic"


BatchingKind = Annotated[
    Batching, typer.Option(help="static waits for a full batch, dynamic a little; none joins.")
]
MaxBatch = Annotated[int | None, typer.Option(min=1, help="Of a static or dynamic batch.")]
MaxDelay = Annotated[
    float | None, typer.Option("--max-delay-ms", min=0, help="That a request waits for others.")
]
PreferredBatch = Annotated[
    str | None, typer.Option(help="Dynamic sizes that are not kept waiting, e.g. 4,8.")
]


def batch_policy(
    kind: Batching, max_batch: int | None, *, max_delay_ms: float | None, preferred: str | None
) -> "BatchPolicy | None":
    """How batches are formed; None where requests join and leave between iterations."""
    from gpuplan.domain.simulation.batching import BatchPolicy
    from gpuplan.errors import InputError, Problem, one
    from gpuplan.units import MS

    given = {
        "--max-batch": max_batch,
        "--max-delay-ms": max_delay_ms,
        "--preferred-batch": preferred,
    }
    if kind is Batching.CONTINUOUS:
        fix = "leave it out, or add --batching static or dynamic"
        wrong = [Problem(k, "with continuous", fix) for k, v in given.items() if v is not None]
        if wrong:
            raise InputError("simulate", wrong)
        return None
    if max_batch is None:
        raise one(InputError, "simulate", "--max-batch", "missing", "give e.g. 8")
    if kind is Batching.DYNAMIC and max_delay_ms is None:
        max_delay_ms = 0.0
    return BatchPolicy(
        max_batch=max_batch,
        max_delay_s=None if max_delay_ms is None else max_delay_ms * MS,
        preferred_sizes=_numbers(preferred, "--preferred-batch"),
    )


def _numbers(text: str | None, flag: str) -> tuple[int, ...]:
    from gpuplan.errors import InputError, one

    try:
        return tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        fix = "write numbers with commas, e.g. 4,8"
        raise one(InputError, "simulate", flag, f"got {text!r}", fix) from None
