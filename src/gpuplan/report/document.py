"""Documents and sheets made the same way for every result: keys from attributes, remarks alike."""

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from gpuplan.domain.provenance import Assumption, Estimate, Override
from gpuplan.domain.ranges import Range
from gpuplan.domain.sheet import Sheet, Table

SCHEMA_VERSION = "1.0"
Document = dict[str, Any]
Remarks = Sequence[tuple[str, Sequence[str]]]


def pick(value: object, *names: str, **renamed: str) -> Document:
    """Attributes under their own names, then others under new keys; dots reach inside."""
    paths = {name: name for name in names} | renamed
    return {key: plain(attrgetter(path)(value)) for key, path in paths.items()}


def pick_each(values: Iterable[object], *names: str, **renamed: str) -> list[Document]:
    """The same of every value."""
    return [pick(value, *names, **renamed) for value in values]


def plain(value: Any) -> Any:
    """The value as JSON has it: estimates and ranges as three figures, columns as lists."""
    if isinstance(value, Estimate):
        return pick(value, "value", "low", "high", "tier")
    if isinstance(value, Range):
        return {"value": value.mid, "low": value.low, "high": value.high}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


def sourced(estimate: Estimate) -> Document:
    """An estimate with the sources that it rests on."""
    return {**plain(estimate), "sources": list(estimate.sources)}


def result_sheet(
    body: Document,
    tables: Iterable[Table],
    *,
    head: str = "",
    remarks: Remarks = (),
    assumptions: Sequence[Assumption] | None = None,
    overrides: Sequence[Override] | None = None,
) -> Sheet:
    """A result ready to show; tables without rows are not shown."""
    beside = [*remarks]
    if assumptions is not None:
        beside.append(("Assumptions:", assumption_lines(assumptions)))
    if overrides is not None:
        beside.append(("Overlay:", override_lines(overrides)))
    return Sheet(
        document=result_document(body, assumptions=assumptions, overrides=overrides),
        tables=tuple(table for table in tables if table.rows),
        head=head,
        remarks=tuple((heading, tuple(lines)) for heading, lines in beside),
    )


def result_document(
    body: Document,
    *,
    assumptions: Sequence[Assumption] | None = None,
    overrides: Sequence[Override] | None = None,
) -> Document:
    """The body between the version of its format and what it rests on."""
    document = {"schema_version": SCHEMA_VERSION, **body}
    if assumptions is not None:
        document["assumptions"] = pick_each(assumptions, "what", "value", "why", "change", "source")
    if overrides is not None:
        keys = ("item", "quantity", "catalog_value", "overlay_value", "overlay")
        document["overrides"] = pick_each(overrides, *keys)
    return document


def assumption_lines(assumptions: Iterable[Assumption]) -> tuple[str, ...]:
    """One line for each value that the user did not give, with the flag that changes it."""
    return tuple(
        f"{a.what}: {a.value} ({a.why}{'; change with ' + a.change if a.change else ''})"
        for a in assumptions
    )


def override_lines(overrides: Iterable[Override]) -> tuple[str, ...]:
    """One line for each catalog fact that an overlay replaced."""
    return tuple(
        f"{o.item} {o.quantity}: {o.overlay_value} from {o.overlay}"
        + (f" instead of {o.catalog_value}" if o.catalog_value else "")
        for o in overrides
    )
