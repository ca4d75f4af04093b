"""`dataclass` for nouns: the same as the standard one, with `__init__` written when first called.

The standard decorator compiles six functions for every class while its module is loaded. Of the
hundreds of nouns a command uses a few dozen, so loading them cost more than most answers. Here
frozen nouns with slots share what all have in common (equality, hash, text, refusal of changes);
any other kind is left to the standard decorator. Type checkers see the standard one.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

NOUN = {"frozen": True, "slots": True, "kw_only": True}
OWN = ("__init__", "__setattr__", "__delattr__", "__getstate__", "__setstate__")
_UNSET = object()

__all__ = ["dataclass", "noun"]

Values = Callable[[Any], tuple[Any, ...]]


def noun(cls: Any = None, /, **how: Any) -> Any:
    """The class as a noun; options as of `dataclasses.dataclass`."""
    if cls is not None:
        return _made(cls, how)
    return lambda cls: _made(cls, how)


def _made(cls: Any, how: dict[str, Any]) -> Any:
    is_noun = {key: value for key, value in how.items() if key != "eq"} == NOUN
    has_own = any(name in cls.__dict__ for name in OWN)
    if (
        not is_noun
        or has_own
        or any(vars(base).get("__slots__") != () for base in cls.__bases__ if base is not object)
    ):
        return dataclasses.dataclass(**how)(cls)
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # else the standard decorator asks for a signature
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(
        cls
    )
    if len(dataclasses.fields(made)) != len(made.__dataclass_fields__):
        raise TypeError(f"{cls.__name__} has class variables: use dataclasses.dataclass")
    _equip(made, is_compared=how.get("eq", True))
    return made


def _equip(cls: Any, *, is_compared: bool) -> None:
    """What all nouns can do; equality, hash or text that the class wrote itself stay."""
    params = cls.__dataclass_params__
    params.frozen = params.init = params.repr = True
    params.eq = is_compared
    cls.__init__ = _first_init(cls)
    cls.__setattr__, cls.__delattr__ = _refuse_set, _refuse_delete
    cls.__getstate__, cls.__setstate__ = _state, _set_state
    own = dict(cls.__dict__)
    if "__repr__" not in own and cls.__repr__ is object.__repr__:
        cls.__repr__ = _text
    if not is_compared:
        return
    values = _values_of([f.name for f in dataclasses.fields(cls) if f.compare])
    if "__eq__" not in own:
        cls.__eq__ = _equality(values)
    if own.get("__hash__") is None:  # a class with its own equality loses its hash
        cls.__hash__ = lambda self: hash(values(self))


def _values_of(names: list[str]) -> Values:
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda noun: ()
    get = attrgetter(names[0])
    return lambda noun: (get(noun),)


def _equality(values: Values) -> Callable[[Any, object], Any]:
    def is_equal(self: Any, other: object) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return is_equal


def _refuse_set(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for f, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, f.name, value)


def _text(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _first_init(cls: Any) -> Callable[..., None]:
    """Writes the real `__init__`, puts it in its own place, and calls it."""

    def first(self: Any, *args: Any, **given: Any) -> None:
        cls.__init__ = _written_init(cls)
        cls.__init__(self, *args, **given)

    return first


def _written_init(cls: Any) -> Any:
    """Keyword arguments into slots, in the order of the fields; defaults as declared."""
    scope: dict[str, Any] = {"_unset": _UNSET}
    heads, lines = [], []
    for f in dataclasses.fields(cls):
        scope[f"_set_{f.name}"] = cls.__dict__[f.name].__set__
        head, value = _argument(f, scope)
        heads += [head] if f.init else []
        lines += [f"    _set_{f.name}(self, {value})"] if value else []
    if hasattr(cls, "__post_init__"):
        lines.append("    self.__post_init__()")
    head = ", ".join(["self", *(["*"] if heads else []), *heads])
    exec("\n".join([f"def __init__({head}):", *(lines or ["    pass"])]), scope)
    made = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {f.name: f.type for f in dataclasses.fields(cls) if f.init}
    return made


def _argument(f: "dataclasses.Field[Any]", scope: dict[str, Any]) -> tuple[str, str]:
    """How the field stands among the arguments, and what is kept; nothing is kept of unset ones."""
    name = f.name
    if f.default_factory is not dataclasses.MISSING:
        scope[f"_make_{name}"] = f.default_factory
        made = f"_make_{name}()"
        return f"{name}=_unset", f"{made} if {name} is _unset else {name}" if f.init else made
    if f.default is not dataclasses.MISSING:
        scope[f"_default_{name}"] = f.default
        return f"{name}=_default_{name}", name if f.init else f"_default_{name}"
    return name, name if f.init else ""


if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    dataclass = noun
