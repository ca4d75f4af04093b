"""Every float and every column that passes between rooms says its unit."""

import ast
import dataclasses
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import gpuplan.domain

UNITS = (
    "s", "bytes", "flop", "w", "j", "usd", "kg", "frac", "ratio", "px", "tokens", "v", "a", "m",
    "u", "requests", "samples", "docs", "interruptions", "operations", "k", "c", "hz",
)  # fmt: skip
# A count says so in front: n_layers. An estimate and a range carry the unit of what holds them.
COUNT = "n_"
# Shares that statistics call by names of their own: absolute percentage errors and their kin.
UNITS += ("ape", "mape", "bias", "coverage")
UNIT_ELSEWHERE = {
    (cls, part)
    for cls in ("Constant", "Effect", "Estimate", "Range")
    for part in ("value", "low", "mid", "high", "most", "log_sd")
} | {("Spread", part) for part in ("log_low", "log_mid", "log_high")}
# A limit has the unit of its kind, a proof that of its objective, a trade-off that of its measure.
UNIT_ELSEWHERE |= {("NamedLimit", "most"), ("Proof", "value"), ("Proof", "bound")}
UNIT_ELSEWHERE |= {("ParetoPoint", "other")}


def dataclasses_of_domain():
    for info in pkgutil.walk_packages(gpuplan.domain.__path__, "gpuplan.domain."):
        for cls in vars(importlib.import_module(info.name)).values():
            is_ours = inspect.isclass(cls) and cls.__module__ == info.name
            if is_ours and dataclasses.is_dataclass(cls):
                yield cls


def float_fields():
    for cls in dataclasses_of_domain():
        for field in dataclasses.fields(cls):
            is_float = field.type in (float, float | None)
            is_count = field.name.startswith(COUNT)
            if is_float and not is_count and (cls.__name__, field.name) not in UNIT_ELSEWHERE:
                yield cls.__name__, field.name


@pytest.mark.parametrize(("cls", "field"), list(float_fields()))
def test_float_says_its_unit(cls, field):
    unit = field.split("_per_")[0].split("_")[-1]
    assert unit in UNITS, f"{cls}.{field}: end the name in one of {UNITS}; rates are x_per_y"


@pytest.mark.parametrize("cls", list(dataclasses_of_domain()), ids=lambda cls: cls.__name__)
def test_noun_is_frozen_and_small(cls):
    assert cls.__dataclass_params__.frozen, f"{cls.__name__} can be changed behind your back"
    assert len(dataclasses.fields(cls)) <= 12, f"{cls.__name__}: group its fields"


# Participles that say that something happened, not what the thing is; and words of our own.
HOME_MADE = {
    "asked", "crowd", "dealt", "fed", "foretold", "held", "island", "kept", "promise", "prospect",
    "said", "seen", "talk", "told",
}  # fmt: skip
COMPILER = "kernels/jit/"  # `held` is a tuple that compiled code holds by its address


def named(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno


def test_names_are_nouns_of_the_field():
    root = Path(gpuplan.domain.__path__[0]).parent
    found = [
        f"{path.relative_to(root)}:{line}: {name}"
        for path in sorted(root.rglob("*.py"))
        if COMPILER not in path.as_posix()
        for name, line in named(ast.parse(path.read_text("utf-8")))
        if name.strip("_") in HOME_MADE
    ]
    assert not found, f"call each by what it is (docs/glossary.md): {found}"
