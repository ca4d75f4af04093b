"""A mixed-integer program in the making: columns and rows are added in blocks of arrays."""

from dataclasses import dataclass, field

import numpy as np

from gpuplan.domain.columns import Floats, Ints

INF = float("inf")


@dataclass(frozen=True)
class Program:
    """Columns, rows and non-zeros; rows lie behind one another."""

    cost: Floats
    lower: Floats
    upper: Floats
    is_integer: Floats
    row_lower: Floats
    row_upper: Floats
    starts: Ints
    index: Ints
    value: Floats

    @property
    def n_columns(self) -> int:
        """How many decisions there are."""
        return len(self.cost)

    @property
    def n_rows(self) -> int:
        """How many constraints there are."""
        return len(self.row_lower)


@dataclass
class Builder:
    """Collects blocks; `program` puts them in order."""

    n_columns: int = 0
    n_rows: int = 0
    lower: list[Floats] = field(default_factory=list)
    upper: list[Floats] = field(default_factory=list)
    is_integer: list[Floats] = field(default_factory=list)
    row_lower: list[Floats] = field(default_factory=list)
    row_upper: list[Floats] = field(default_factory=list)
    entries: list[tuple[Ints, Ints, Floats]] = field(default_factory=list)

    def columns(
        self, shape: tuple[int, ...], *, upper: Floats | float = INF, integer: bool = False
    ) -> Ints:
        """New decisions from 0 to `upper`; their numbers, in the shape asked for."""
        n_new = int(np.prod(shape))
        numbers = np.arange(self.n_columns, self.n_columns + n_new).reshape(shape)
        self.lower.append(np.zeros(n_new))
        self.upper.append(np.broadcast_to(upper, shape).astype(float).ravel())
        self.is_integer.append(np.full(n_new, float(integer)))
        self.n_columns += n_new
        return numbers

    def rows(
        self, shape: tuple[int, ...], *, lower: Floats | float = -INF, upper: Floats | float = INF
    ) -> Ints:
        """New constraints; their numbers, in the shape asked for."""
        n_new = int(np.prod(shape))
        numbers = np.arange(self.n_rows, self.n_rows + n_new).reshape(shape)
        self.row_lower.append(np.broadcast_to(lower, shape).astype(float).ravel())
        self.row_upper.append(np.broadcast_to(upper, shape).astype(float).ravel())
        self.n_rows += n_new
        return numbers

    def put(self, rows: Ints, columns: Ints, values: Floats | float) -> None:
        """Coefficients; the three are stretched to one shape."""
        r, c, v = np.broadcast_arrays(rows, columns, np.asarray(values, dtype=float))
        is_there = v.ravel() != 0.0
        self.entries.append((r.ravel()[is_there], c.ravel()[is_there], v.ravel()[is_there]))

    def program(self, cost: Floats) -> Program:
        """The finished program; coefficients put twice are added."""
        rows, columns, values = (
            np.concatenate([entry[i] for entry in self.entries]) if self.entries else np.zeros(0)
            for i in range(3)
        )
        key = rows.astype(np.int64) * max(1, self.n_columns) + columns.astype(np.int64)
        order = np.argsort(key, kind="stable")
        key, values = key[order], values[order]
        is_new = np.ones(len(key), dtype=bool)
        is_new[1:] = key[1:] != key[:-1]
        firsts = np.flatnonzero(is_new)
        values = np.add.reduceat(values, firsts) if len(firsts) else values
        row, index = np.divmod(key[firsts], max(1, self.n_columns))
        starts = np.searchsorted(row, np.arange(self.n_rows))
        return Program(
            cost=cost,
            lower=_joined(self.lower),
            upper=_joined(self.upper),
            is_integer=_joined(self.is_integer),
            row_lower=_joined(self.row_lower),
            row_upper=_joined(self.row_upper),
            starts=starts.astype(np.int32),
            index=index.astype(np.int32),
            value=values.astype(float),
        )


def _joined(blocks: list[Floats]) -> Floats:
    return np.concatenate([*blocks, np.zeros(0)])
