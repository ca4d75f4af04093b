"""How a trace is read, as typed: columns of its own, and which of its rows."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from gpuplan.domain.traffic.trace import TraceQuery

Columns = Annotated[
    str | None,
    typer.Option(help="Of a plain trace: arrive=ts,input=prompt,output=answer,session=,unit=ms."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(help="Rows of a trace whose COLUMN=VALUE, e.g. run=tp1_bs64; of clients, model=."),
]

LengthsFrom = Annotated[
    Path | None,
    typer.Option(help="With --rate, --phases or --users: lengths of a trace's requests."),
]
SharedPrefix = Annotated[
    int | None,
    typer.Option(help="Tokens that every prompt begins with: a system prompt."),
]
Priorities = Annotated[
    str | None,
    typer.Option(help="Urgencies drawn for the requests: number x share, e.g. 0x0.2,1x0.8."),
]


def urgencies(text: str | None) -> "tuple[tuple[int, float], ...]":
    """0x0.2,1x0.8: numbers and shares."""
    from gpuplan.errors import InputError, one

    if text is None:
        return ()
    try:
        pairs = [part.split("x", 1) for part in text.split(",")]
        return tuple((int(number), float(share)) for number, share in pairs)
    except ValueError:
        fix = "write number x share, e.g. 0x0.2,1x0.8"
        raise one(InputError, "simulate", "--priorities", f"got {text!r}", fix) from None


def trace_query(columns: str | None, where: list[str] | None) -> "TraceQuery | None":
    """What was typed; None where nothing was."""
    from gpuplan import api
    from gpuplan.domain.traffic.trace import TraceQuery
    from gpuplan.errors import InputError, Problem

    pairs = [part.partition("=") for part in where or []]
    bad = [
        Problem("--where", f"got {''.join(pair)!r}", "write COLUMN=VALUE")
        for pair in pairs
        if not (pair[0].strip() and pair[1])
    ]
    if bad:
        raise InputError("simulate", bad)
    if columns is None and not pairs:
        return None
    return TraceQuery(
        columns=None if columns is None else api.column_map(columns),
        where=tuple((name.strip(), value.strip()) for name, _, value in pairs),
    )
