"""How statements of kernels become instructions: the shortest text for the few that they use.

Kernels read and write elements of arrays and compute with integers and floats, tens of thousands
of times. By itself the compiler looks up how for each of them anew, copies the header of an array
to read one element, lets every index count from the back too, and asks after every call whether it
failed. Kernels count from the front alone, and nothing in them can fail.
"""

import operator
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
from llvmlite import ir as llvm
from numba.core import cgutils, config, ir, types
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering

from gpuplan.simulation.serving.kernels.jit.addresses import Held, address_of, place_of

LONG = llvm.IntType(64)
NUMBERS = (types.int64, types.float64)
# What the builder calls it, for two integers and for two floats.
ARITHMETIC: dict[tuple[Callable[..., Any], Any], str] = {
    (operator.add, types.int64): "add",
    (operator.sub, types.int64): "sub",
    (operator.mul, types.int64): "mul",
    (operator.add, types.float64): "fadd",
    (operator.sub, types.float64): "fsub",
    (operator.mul, types.float64): "fmul",
}
BITS: dict[Callable[..., Any], str] = {
    operator.and_: "and_",
    operator.or_: "or_",
    operator.lshift: "shl",
    operator.rshift: "ashr",
}
COMPARISONS: dict[Callable[..., Any], str] = {
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
    operator.eq: "==",
    operator.ne: "!=",
}


def checks_bounds() -> bool:
    """Indices are to be checked, as in tests: kernels are then written as the compiler does it."""
    return bool(config.BOUNDSCHECK)


def _has_elements(kind: Any) -> bool:
    """An array of numbers, one row after the other."""
    return isinstance(kind, types.Array) and kind.layout == "C" and kind.dtype in NUMBERS


class LeanLower(Lower):
    """Elements of arrays and arithmetic by a short way; all else as the compiler does it."""

    def pre_lower(self) -> None:
        """Look for names that are given once: what they stand for is known wherever they are."""
        super().pre_lower()
        given = [one for block in self.blocks.values() for one in block.find_insts(ir.Assign)]
        counts = Counter(one.target.name for one in given)
        self._given = {one.target.name: one.value for one in given if counts[one.target.name] == 1}

    def _origin(self, name: str) -> Any:
        """What a name stands for; a name for a name is followed."""
        found = self._given.get(name)
        while isinstance(found, ir.Var):
            found = self._given.get(found.name)
        return found

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """The value of an expression."""
        found = None
        if expr.op == "binop":
            found = self._computed(resty, expr, expr.fn)
        elif expr.op == "inplace_binop":
            found = self._computed(resty, expr, expr.immutable_fn)
        elif expr.op in ("getitem", "static_getitem"):
            found = self._read(resty, expr)
        return super().lower_expr(resty, expr) if found is None else found

    def lower_inst(self, inst: Any) -> Any:
        """One statement."""
        if isinstance(inst, ir.SetItem | ir.StaticSetItem):
            address = self._element(inst.target, _index(inst))
            if address is not None:
                dtype = self.typeof(inst.target.name).dtype
                self.builder.store(self._as(inst.value, dtype), address)
                return None
        return super().lower_inst(inst)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """A name gets a value; nobody counts references to the one before."""
        if name in self._singly_assigned_vars:
            super().storevar(value, name, argidx=argidx)
            return
        self._alloca_var(name, self.typeof(name))
        self.builder.store(value, self.getvar(name))

    def delvar(self, name: str) -> None:
        """A name is no longer used: nothing is counted, nothing is to be done."""
        if name not in self._blk_local_varmap:
            self._singly_assigned_vars.discard(name)

    def alloca_lltype(self, name: str, lltype: Any, datamodel: Any = None) -> Any:
        """Room for a variable; no debugger is told of it."""
        return cgutils.alloca_once(self.builder, lltype, name=name)

    def _as(self, variable: Any, kind: Any) -> Any:
        value, own = self.loadvar(variable.name), self.typeof(variable.name)
        return self.context.cast(self.builder, value, own, kind)

    def _read(self, resty: Any, expr: Any) -> Any:
        address = self._element(expr.value, _index(expr))
        if address is None:
            return None
        dtype = self.typeof(expr.value.name).dtype
        return self.context.cast(self.builder, self.builder.load(address), dtype, resty)

    def _element(self, array: Any, index: Any) -> Any:
        """The address of an element; None where it is not one, or bounds are to be checked."""
        kind = self.typeof(array.name)
        if index is None or not _has_elements(kind) or checks_bounds():
            return None
        counts = self._counts(index)
        if len(counts) != kind.ndim:
            return None
        take, offset = self._header(array, kind), counts[0]
        for k in range(1, kind.ndim):
            offset = self.builder.add(self.builder.mul(offset, take("shape", k)), counts[k])
        return self.builder.gep(take("data"), [offset], inbounds=True)

    def _counts(self, index: Any) -> list[Any]:
        """How far to go along each axis; nothing where that is not told by whole numbers."""
        tuple_ = self._origin(index.name)
        is_tuple = isinstance(self.typeof(index.name), types.BaseTuple)
        if is_tuple and not (isinstance(tuple_, ir.Expr) and tuple_.op == "build_tuple"):
            return []
        along = tuple_.items if is_tuple else [index]
        if any(types.unliteral(self.typeof(one.name)) != types.int64 for one in along):
            return []
        return [self._as(one, types.int64) for one in along]

    def _header(self, array: Any, kind: Any) -> Callable[..., Any]:
        """What reads a part of an array's header: of a held tuple's array, that part alone."""
        model, origin = self.context.data_model_manager[kind], self._origin(array.name)
        is_field = isinstance(origin, ir.Expr) and origin.op == "getattr"
        if is_field and isinstance(self.typeof(origin.value.name), Held):
            tuple_, of = self.loadvar(origin.value.name), self.typeof(origin.value.name)
            place = place_of(of, origin.attr)

            def part(name: str, k: int = 0) -> Any:
                at = model.get_field_position(name)
                what = LONG if name == "shape" else model.get_value_type().elements[at]
                return self.builder.load(
                    address_of(self.builder, tuple_, place + 8 * (at + k), what)
                )

            return part
        value = self.loadvar(array.name)

        def whole(name: str, *k: int) -> Any:
            return self.builder.extract_value(value, [model.get_field_position(name), *k])

        return whole

    def _computed(self, resty: Any, expr: Any, op: Any) -> Any:
        """Arithmetic with two integers, or two floats; None where it is neither."""
        signature, build = self.fndesc.calltypes[expr], self.builder
        kinds = {types.unliteral(one) for one in signature.args}
        kind = kinds.pop()
        if kinds or kind not in NUMBERS:
            return None
        if op in COMPARISONS:
            compare = build.icmp_signed if kind == types.int64 else build.fcmp_ordered
            if kind == types.float64 and op is operator.ne:
                compare = build.fcmp_unordered
            found = compare(COMPARISONS[op], *self._sides(expr, kind))
        elif (op, kind) in ARITHMETIC:
            flags = ("nsw",) if kind == types.int64 else ()
            found = getattr(build, ARITHMETIC[op, kind])(*self._sides(expr, kind), flags=flags)
        elif op in BITS and kind == types.int64:
            found = getattr(build, BITS[op])(*self._sides(expr, kind))
        else:
            return None
        return self.context.cast(build, found, signature.return_type, resty)

    def _sides(self, expr: Any, kind: Any) -> tuple[Any, Any]:
        return self._as(expr.lhs, kind), self._as(expr.rhs, kind)


def _index(inst: Any) -> Any:
    is_known = isinstance(inst, ir.StaticSetItem) or getattr(inst, "op", "") == "static_getitem"
    return inst.index_var if is_known else inst.index


@register_pass(mutates_CFG=True, analysis_only=False)
class LeanLowering(BaseNativeLowering):
    """What was typed becomes instructions by the short way."""

    _name: Any = "lean_lowering"

    @property
    def lowering_class(self) -> type[Lower]:
        """What writes the instructions."""
        return LeanLower


@register_pass(mutates_CFG=False, analysis_only=False)
class NameConstants(FunctionPass):
    """Names of columns and limits become their numbers before types are looked for."""

    _name = "name_constants"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Replace whole numbers of modules where they are read."""
        blocks = state.func_ir.blocks.values()
        given = [one for block in blocks for one in block.find_insts(ir.Assign)]
        named = {one.target.name: one.value.value for one in given if type(one.value) is ir.Global}
        for one in given:
            value = one.value
            if not isinstance(value, ir.Expr) or value.op != "getattr":
                continue
            of = named.get(value.value.name)
            found = getattr(of, value.attr, None) if isinstance(of, ModuleType) else None
            if type(found) is int:
                # Not a plain integer, which would be a type of its own wherever it is handed on.
                one.value = ir.Const(np.int64(found), value.loc)
        return False


def call_of(fndesc: Any, libraries: Any) -> Any:
    """How a part is called: it cannot fail, so that nobody asks."""

    def call(context: Any, builder: Any, _signature: Any, given: Any) -> Any:
        callee, convention = context.declare_function(builder.module, fndesc), context.call_conv
        answer = cgutils.alloca_once(builder, convention.get_return_type(fndesc.restype).pointee)
        nothing = llvm.Constant(callee.args[1].type, None)
        packer = context.get_arg_packer(fndesc.argtypes)
        builder.call(callee, [answer, nothing, *packer.as_arguments(builder, given)])
        return context.get_returned_value(builder, fndesc.restype, builder.load(answer))

    call.signature = fndesc.argtypes
    call.libs = tuple(libraries)
    return call
