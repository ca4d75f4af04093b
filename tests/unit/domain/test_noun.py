"""Nouns behave as the standard frozen dataclass does."""

import copy
import dataclasses
import pickle
from typing import Any, ClassVar

import pytest

from gpuplan.domain.noun import dataclass

HOW: dict[str, Any] = {"frozen": True, "slots": True, "kw_only": True}


@dataclass(**HOW)
class Lazy:
    """One of ours."""

    name: str
    size_bytes: float = 2.0
    parts: tuple[str, ...] = dataclasses.field(default_factory=lambda: ("a",))
    note: str = dataclasses.field(default="", compare=False, repr=False)

    @property
    def is_large(self) -> bool:
        """A property stays."""
        return self.size_bytes > 1


@dataclasses.dataclass(**HOW)
class Standard:
    """The same, as it is usually made."""

    name: str
    size_bytes: float = 2.0
    parts: tuple[str, ...] = dataclasses.field(default_factory=lambda: ("a",))
    note: str = dataclasses.field(default="", compare=False, repr=False)


BOTH = pytest.mark.parametrize("kind", [Lazy, Standard], ids=["lazy", "standard"])


@BOTH
def test_values_defaults_and_text(kind):
    made = kind(name="x")
    assert (made.name, made.size_bytes, made.parts, made.note) == ("x", 2.0, ("a",), "")
    assert repr(made) == f"{kind.__name__}(name='x', size_bytes=2.0, parts=('a',))"
    assert kind(name="x", parts=()).parts == ()


@BOTH
def test_equality_and_hash_leave_out_what_is_not_compared(kind):
    one, same, other = kind(name="x"), kind(name="x", note="n"), kind(name="y")
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != "x"
    assert len({one, same, other}) == 2


@BOTH
def test_nothing_can_be_changed(kind):
    made = kind(name="x")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "y"
    with pytest.raises(dataclasses.FrozenInstanceError):
        del made.name
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
        made.unknown = 1
    assert not hasattr(made, "__dict__")


@BOTH
@pytest.mark.parametrize("given", [{}, {"name": "x", "other": 1}], ids=["missing", "unknown"])
def test_wrong_arguments_are_refused(kind, given):
    with pytest.raises(TypeError):
        kind(**given)
    with pytest.raises(TypeError):
        kind("by place")


@BOTH
def test_copies_replacements_and_pickles(kind):
    made = kind(name="x", note="n")
    for same in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert (same, same.note) == (made, "n")
    assert dataclasses.replace(made, size_bytes=1.0) == kind(name="x", size_bytes=1.0)
    assert dataclasses.asdict(made) == {"name": "x", "size_bytes": 2.0, "parts": ("a",),
                                        "note": "n"}  # fmt: skip
    assert [f.name for f in dataclasses.fields(kind)] == ["name", "size_bytes", "parts", "note"]


def test_two_kinds_are_never_equal():
    assert Lazy(name="x") != Standard(name="x")


def test_what_a_class_says_of_itself_stays():
    @dataclass(**HOW)
    class Own:
        value_s: float

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

        def __post_init__(self) -> None:
            if self.value_s < 0:
                raise ValueError(self.value_s)

    assert Own(value_s=1.0) == Own(value_s=2.0)
    assert hash(Own(value_s=1.0)) == 7
    with pytest.raises(ValueError, match="-1"):
        Own(value_s=-1.0)


def test_identity_where_equality_is_not_wanted():
    @dataclass(**HOW, eq=False)
    class One:
        value_s: float

    assert One(value_s=1.0) != One(value_s=1.0)
    assert len({One(value_s=1.0), One(value_s=1.0)}) == 2


def test_class_variables_are_refused_in_words():
    with pytest.raises(TypeError, match="class variables"):

        @dataclass(**HOW)
        class Odd:
            value_s: float
            KIND: ClassVar[str] = "odd"


def test_other_kinds_are_the_standard_ones():
    @dataclass(frozen=True)
    class Placed:
        value_s: float

    assert Placed(1.0).value_s == 1.0
