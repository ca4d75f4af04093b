"""A tuple of arrays by its address: a call hands on two numbers, not every array's header.

What is inlined reads from a copy whose address never leaves the function: the compiler keeps it
in registers. What is called, and not inlined, gets the address of the original by `far`, and makes
a copy of its own by `near` where it reads again and again. To write an original down costs as much
as a short call does: where tuples of many things are held in turn, each has a row of memory, into
which `lodge` writes it once, and is `lodged` there. In Python a held tuple is the tuple itself.
"""

from functools import cache
from itertools import accumulate
from typing import Any, TypeVar
from zlib import crc32

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import default_manager, models
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    register_model,
    type_callable,
)

from gpuplan.simulation.serving.kernels.engine.state import N_HOME

Tuple = TypeVar("Tuple", bound=tuple[Any, ...])


HOME, READ = range(2)


def held(tuple_: Tuple) -> Tuple:
    """The tuple by its address, for as long as the caller runs."""
    return tuple_


def far(tuple_: Tuple) -> Tuple:
    """The original, for what is called."""
    return tuple_


def near(tuple_: Tuple) -> Tuple:
    """A copy for who was called."""
    return tuple_


def lodge(_tuple: Tuple, _home: Any) -> None:
    """The tuple's original is written into this row of integers."""


def lodged(tuple_: Tuple, _home: Any) -> Tuple:
    """The tuple by its address, as `held`, where its original is in this row already."""
    return tuple_


class Held(types.Type):
    """A held tuple; a short name, since names of functions spell out all types."""

    def __init__(self, of: Any) -> None:
        self.of = of
        self.instance_class = of.instance_class
        super().__init__(f"{of.instance_class.__name__}({crc32(str(of).encode()):08x})")

    @property
    def key(self) -> Any:
        """What tells one type from another."""
        return self.of.key


@register_model(Held)
class HeldModel(models.StructModel):
    """Two addresses: of the original, and of what is read."""

    def __init__(self, manager: Any, kind: Held) -> None:
        # Types of addresses would spell out every array, in every line of text.
        super().__init__(manager, kind, [("home", types.voidptr), ("read", types.voidptr)])


@infer_getattr
class HeldFields(AttributeTemplate):
    """The fields of the tuple."""

    key = Held

    def generic_resolve(self, kind: Held, name: str) -> Any:
        """Type of a field; None where there is no such field."""
        return kind.of.types[kind.of.fields.index(name)] if name in kind.of.fields else None


@cache
def _places(of: Any) -> dict[str, int]:
    sizes = [_n_bytes(one) for one in of.types]
    return dict(zip(of.fields, accumulate(sizes, initial=0), strict=False))


def _n_bytes(of: Any) -> int:
    """Bytes of an array's header: all that it is made of is as long as an address."""
    parts = default_manager[of].get_value_type().elements
    return sum(8 * (part.count if isinstance(part, ir.ArrayType) else 1) for part in parts)


def place_of(kind: Held, name: str) -> int:
    """Bytes before a field."""
    return _places(kind.of)[name]


def address_of(builder: Any, value: Any, place: int, what: Any) -> Any:
    """Where, so many bytes into what is read of a held tuple, something of this type is."""
    at = builder.gep(builder.extract_value(value, READ), [cgutils.intp_t(place)], inbounds=True)
    return builder.bitcast(at, what.as_pointer())


@lower_getattr_generic(Held)
def _field(context: Any, builder: Any, kind: Held, value: Any, name: str) -> Any:
    what = context.get_value_type(kind.of.types[kind.of.fields.index(name)])
    return builder.load(address_of(builder, value, place_of(kind, name), what))


def _pair(context: Any, builder: Any, kind: Held, addresses: tuple[Any, Any]) -> Any:
    pair = ir.Constant(context.get_value_type(kind), ir.Undefined)
    for at, address in enumerate(addresses):
        plain = builder.bitcast(address, cgutils.voidptr_t)
        pair = builder.insert_value(pair, plain, at)
    return pair


def _copied(context: Any, builder: Any, kind: Held, value: Any) -> Any:
    copy = cgutils.alloca_once(builder, context.get_value_type(kind.of))
    size = ir.Constant(cgutils.intp_t, context.get_abi_sizeof(copy.type.pointee))
    cgutils.raw_memcpy(builder, copy, builder.extract_value(value, READ), size, 1, align=8)
    return copy


@type_callable(held)
def _type_held(_context: Any) -> Any:
    def typer(tuple_: Any) -> Held:
        return Held(tuple_)

    return typer


@lower_builtin(held, types.BaseNamedTuple)
def _hold(context: Any, builder: Any, signature: Any, given: Any) -> Any:
    home, read = (cgutils.alloca_once_value(builder, given[0]) for _ in range(2))
    return _pair(context, builder, signature.return_type, (home, read))


@type_callable(lodge)
def _type_lodge(_context: Any) -> Any:
    def typer(_tuple: Any, _home: Any) -> Any:
        return types.none

    return typer


@type_callable(lodged)
def _type_lodged(_context: Any) -> Any:
    def typer(tuple_: Any, _home: Any) -> Held:
        return Held(tuple_)

    return typer


def _row(context: Any, builder: Any, signature: Any, given: Any) -> Any:
    """The address of the row, as that of a tuple."""
    array = context.make_array(signature.args[1])(context, builder, given[1])
    return builder.bitcast(array.data, given[0].type.as_pointer())


@lower_builtin(lodge, types.BaseNamedTuple, types.Array)
def _lodge(context: Any, builder: Any, signature: Any, given: Any) -> Any:
    if context.get_abi_sizeof(given[0].type) > N_HOME * 8:
        raise NotImplementedError("a tuple outgrew the row it is written into")
    builder.store(given[0], _row(context, builder, signature, given), align=8)
    return context.get_dummy_value()


@lower_builtin(lodged, types.BaseNamedTuple, types.Array)
def _lodged(context: Any, builder: Any, signature: Any, given: Any) -> Any:
    home = _row(context, builder, signature, given)
    read = cgutils.alloca_once_value(builder, given[0])
    return _pair(context, builder, signature.return_type, (home, read))


@type_callable(far)
@type_callable(near)
def _type_same(_context: Any) -> Any:
    def typer(tuple_: Held) -> Held:
        return tuple_

    return typer


@lower_builtin(far, Held)
def _far(context: Any, builder: Any, signature: Any, given: Any) -> Any:
    home = builder.extract_value(given[0], HOME)
    return _pair(context, builder, signature.return_type, (home, home))


@lower_builtin(near, Held)
def _near(context: Any, builder: Any, signature: Any, given: Any) -> Any:
    home, kind = builder.extract_value(given[0], HOME), signature.return_type
    return _pair(context, builder, kind, (home, _copied(context, builder, kind, given[0])))
