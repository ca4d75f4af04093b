"""The door to HiGHS: a program in, checked values out. Nothing leaves that is not proven finite."""

from typing import TYPE_CHECKING

import numpy as np

from gpuplan.domain.columns import Floats
from gpuplan.domain.noun import dataclass
from gpuplan.errors import SolverError, one
from gpuplan.selection.program.builder import Program

if TYPE_CHECKING:
    from highspy import Highs


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How far to go: the gap that is good enough, and the seconds one solve may take."""

    gap_frac: float = 0.0
    max_s: float | None = None
    n_nodes_max: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A feasible point and the bound that no other can beat; LPs carry their duals."""

    values: Floats
    objective: float
    bound: float
    is_proven: bool  # within the gap asked for
    row_duals: Floats | None = None


def load(program: Program) -> "Highs":
    """A HiGHS instance that holds the program."""
    from highspy import Highs  # noqa: PLC0415  heavy: loaded by the first solve

    highs = Highs()  # type: ignore[no-untyped-call]
    highs.silent()
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("random_seed", 0)
    nothing = np.zeros(0, dtype=np.int32)
    columns = (program.cost, program.lower, program.upper)
    highs.addCols(program.n_columns, *columns, 0, nothing, nothing, np.zeros(0))
    entries = (len(program.value), program.starts, program.index, program.value)
    highs.addRows(program.n_rows, program.row_lower, program.row_upper, *entries)
    set_integers(highs, program.is_integer)
    return highs


def set_integers(highs: "Highs", is_integer: Floats) -> None:
    """Columns that must be whole."""
    from highspy import HighsVarType  # noqa: PLC0415

    whole = np.flatnonzero(is_integer).astype(np.int32)
    kinds = np.full(len(whole), int(HighsVarType.kInteger), dtype=np.uint8)
    if len(whole):
        highs.changeColsIntegrality(len(whole), whole, kinds)


def solve(program: Program, effort: Effort | None = None) -> Answer | None:
    """The best point, or None where there is none."""
    if not program.n_columns:
        return _empty(program)
    return run(load(program), is_mip=bool(program.is_integer.any()), effort=effort or Effort())


def _empty(program: Program) -> Answer | None:
    """Nothing to decide: right if every row allows zero."""
    fits = bool(np.all(program.row_lower <= 0) and np.all(program.row_upper >= 0))
    return Answer(values=np.zeros(0), objective=0.0, bound=0.0, is_proven=True) if fits else None


def run(highs: "Highs", *, is_mip: bool, effort: Effort) -> Answer | None:
    """Solve what is loaded; None: infeasible; SolverError: neither an answer nor a proof."""
    from highspy import HighsModelStatus as Status  # noqa: PLC0415

    highs.setOptionValue("mip_rel_gap", effort.gap_frac)
    highs.setOptionValue("mip_abs_gap", 1e-6)
    highs.setOptionValue("time_limit", effort.max_s if effort.max_s is not None else float("inf"))
    if effort.n_nodes_max is not None:
        highs.setOptionValue("mip_max_nodes", effort.n_nodes_max)
    highs.run()
    status = highs.getModelStatus()
    # Every column is bounded below and costs something, so "unbounded or infeasible" is the latter.
    if status in (Status.kInfeasible, Status.kUnboundedOrInfeasible):
        return None
    stopped = (Status.kTimeLimit, Status.kSolutionLimit, Status.kIterationLimit, Status.kInterrupt)
    if status == Status.kOptimal or (is_mip and status in stopped):
        return _answer(highs, is_mip=is_mip, is_proven=status == Status.kOptimal)
    text = highs.modelStatusToString(status)
    raise one(SolverError, "selection", "solver", f"ended with status {text}", _ADVICE)


_ADVICE = "allow more time, fewer options or a wider gap"


def _answer(highs: "Highs", *, is_mip: bool, is_proven: bool) -> Answer:
    info = highs.getInfo()
    solution = highs.getSolution()
    values = np.array(solution.col_value)
    objective = float(info.objective_function_value)
    bound = float(info.mip_dual_bound) if is_mip else objective
    is_sound = np.isfinite(objective) and len(values) and np.all(np.isfinite(values))
    if not is_sound or int(info.primal_solution_status) != 2:
        raise one(SolverError, "selection", "solver", "stopped without a plan", _ADVICE)
    duals = None if is_mip else np.array(solution.row_dual)
    return Answer(
        values=values, objective=objective, bound=bound, is_proven=is_proven, row_duals=duals
    )
