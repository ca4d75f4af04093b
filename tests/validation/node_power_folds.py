"""Machines at the wall, judged on machines that chose nothing: nested folds by machine.

Outer folds hold machines back. On the rest, inner folds (by machine again) choose the form of the
model and the share of its limit that a saturated board draws; then the constants are fitted; then
the machines held back are predicted, once. No figure of a held-back machine enters any choice.
"""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares

from gpuplan.domain.columns import Floats, Ints

ROWS = Path(__file__).parent / "node_power_rows.csv"
SATURATED = (0.85, 0.9, 0.95, 1.0)
N_OUTER, N_INNER = 5, 4
ROW_SPREAD = 0.08  # of a row around its machine, as the fit weighs it against its plain guesses


class Readings(NamedTuple):
    """One row per run."""

    machine: np.ndarray
    build: np.ndarray
    n: Ints
    limit_w: Floats
    cap_w: Floats  # infinite: none
    wall_w: Floats


class Boards(NamedTuple):
    """What a form may look at."""

    build: np.ndarray
    n: Ints
    limit_w: Floats
    drawn_w: Floats


class Form(NamedTuple):
    """A form of the model with plain guesses that hold its constants weakly."""

    name: str
    wall_w: Callable[[Floats, "Boards"], Floats]  # constants, machines
    guess: tuple[float, ...]
    spread: tuple[float, ...]


class Fold(NamedTuple):
    """One outer fold: who was held back, what was chosen without them, and their errors."""

    machines: tuple[str, ...]
    form: str
    saturated_frac: float
    errors: Floats  # of each run
    of_machine: np.ndarray


def read() -> Readings:
    rows = list(csv.DictReader(ROWS.read_text().splitlines()))
    return Readings(
        machine=np.array([row["machine"] for row in rows]),
        build=np.array([row["build"] for row in rows]),
        n=np.array([int(row["n_accelerators"]) for row in rows]),
        limit_w=np.array([float(row["board_limit_w"]) for row in rows]),
        cap_w=np.array([float(row["board_cap_w"] or "inf") for row in rows]),
        wall_w=np.array([float(row["wall_w"]) for row in rows]),
    )


def capped_power_w(uncapped_w: float, cap_w: float) -> float:
    """A smooth minimum of demand and 97 % of the cap [Zeus, Perseus]."""
    ratio = uncapped_w / (0.97 * cap_w)
    return float(uncapped_w / (1.0 + ratio**5.8) ** (1.0 / 5.8))


def boards_w(data: Readings, saturated_frac: float) -> Floats:
    uncapped = saturated_frac * data.limit_w
    each = [
        capped_power_w(w, cap) if np.isfinite(cap) else w
        for w, cap in zip(uncapped, data.cap_w, strict=True)
    ]
    return data.n * np.array(each)


def _is_island(build: np.ndarray) -> np.ndarray:
    return np.char.startswith(build, "island")


def _share(values: Floats, at: Boards) -> Floats:
    base, ratio = values
    return base + ratio * at.drawn_w


def _hosts(values: Floats, at: Boards) -> Floats:
    base, island, card, fan = values
    host = base + np.where(_is_island(at.build), island, card) * at.n
    return 1.06 * (host + (1 + fan) * at.drawn_w)


def _builds(values: Floats, at: Boards) -> Floats:
    island, old, base, card, second, fan, liquid_fan = values
    build, n = at.build, at.n
    host = np.select(
        [build == "island, old", _is_island(build)],
        [20 + old * n, 20 + island * n],
        base + card * n + second * ((n > 1) & (build == "cards")),
    )
    return 1.06 * (host + (1 + _fans(at, fan, liquid_fan)) * at.drawn_w)


def _limits(values: Floats, at: Boards) -> Floats:
    """Hosts grow with what their boards may draw: no era is named, so none must be known."""
    base, island, socket, card, second, fan, liquid_fan = values
    is_many = (at.n > 1) & (at.build == "cards")
    host = np.where(_is_island(at.build), base + island * at.limit_w * at.n, socket + card * at.n)
    return 1.06 * (host + second * is_many + (1 + _fans(at, fan, liquid_fan)) * at.drawn_w)


def _fans(at: Boards, fan: float, liquid_fan: float) -> Floats:
    kinds = [at.build == "island, liquid", at.build == "desktop"]
    return np.select(kinds, [liquid_fan, 0.0], fan)


FORMS = (
    Form("a base and a share of the boards", _share, (300, 1.3), (300, 0.3)),
    Form("host by kind of board", _hosts, (150, 100, 20, 0.15), (150, 80, 30, 0.15)),
    Form("host by build and era", _builds, (120, 100, 150, 20, 80, 0.15, 0.05),
         (80, 80, 100, 30, 60, 0.15, 0.1)),
    Form("host by what boards may draw", _limits, (100, 0.15, 150, 20, 80, 0.15, 0.05),
         (100, 0.1, 100, 30, 60, 0.15, 0.1)),
)  # fmt: skip


def _boards(data: Readings, drawn_w: Floats, at: Ints) -> Boards:
    return Boards(data.build[at], data.n[at], data.limit_w[at], drawn_w[at])


def fitted(data: Readings, boards: Floats, at: Ints, form: Form) -> Floats:
    """Constants from these rows, machines weighing alike, weakly held by plain guesses."""
    guess, spread = np.array(form.guess, float), np.array(form.spread, float)
    names, counts = np.unique(data.machine[at], return_counts=True)
    weigh = dict(zip(names, counts, strict=True))
    weight = np.array([weigh[name] ** -0.5 for name in data.machine[at]])

    seen = _boards(data, boards, at)

    def errors(values: Floats) -> Floats:
        wall = form.wall_w(values, seen)
        fit = weight * np.log(wall / data.wall_w[at]) / ROW_SPREAD
        return np.concatenate([fit, (values - guess) / spread])

    return np.asarray(least_squares(errors, guess, bounds=(0.0, np.inf)).x)


def predicted_errors(
    data: Readings, boards: Floats, form: Form, *, seen: Ints, held: Ints
) -> Floats:
    values = fitted(data, boards, seen, form)
    wall = form.wall_w(values, _boards(data, boards, held))
    return np.abs(wall / data.wall_w[held] - 1)


def chosen(data: Readings, at: Ints, rng: np.random.Generator) -> tuple[Form, float]:
    """Form and share with the least mean over machines of their median error, by inner folds."""
    splits = list(_splits(data.machine[at], N_INNER, rng))
    best: tuple[float, Form, float] | None = None
    for share in SATURATED:
        boards = boards_w(data, share)
        for form in FORMS:
            medians = []
            for names in splits:
                held = at[np.isin(data.machine[at], names)]
                seen = at[~np.isin(data.machine[at], names)]
                errors = predicted_errors(data, boards, form, seen=seen, held=held)
                medians += [np.median(errors[data.machine[held] == name]) for name in names]
            score = float(np.mean(medians))
            if best is None or score < best[0]:
                best = (score, form, share)
    assert best is not None
    return best[1], best[2]


def _splits(machines: np.ndarray, k: int, rng: np.random.Generator) -> Iterator[list[str]]:
    names = rng.permutation(np.unique(machines))
    for fold in np.array_split(names, k):
        yield [str(name) for name in fold]


def folds(seed: int, data: Readings | None = None) -> list[Fold]:
    """All outer folds of one shuffle of the machines."""
    known = data or read()
    rng = np.random.default_rng(seed)
    every = np.arange(len(known.wall_w))
    found = []
    for names in _splits(known.machine, N_OUTER, rng):
        is_held = np.isin(known.machine, names)
        form, share = chosen(known, every[~is_held], rng)
        boards = boards_w(known, share)
        errors = predicted_errors(known, boards, form, seen=every[~is_held], held=every[is_held])
        found.append(Fold(tuple(names), form.name, share, errors, known.machine[is_held]))
    return found


def over_rows(found: list[Fold]) -> float:
    return float(np.median(np.concatenate([fold.errors for fold in found])))


def over_machines(found: list[Fold]) -> float:
    return float(
        np.median([np.median(f.errors[f.of_machine == name]) for f in found for name in f.machines])
    )
