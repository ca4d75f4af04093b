"""How kernels are put together: parts are gathered first and optimized once, as one piece.

By itself the compiler optimizes every function with all that it calls and writes machine code for
it, at each level anew, and looks for much in it that kernels do not have. All of that took two
thirds of the time.
"""

import gc
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from warnings import warn

from llvmlite.binding import Linkage
from numba import _dynfunc, njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import AnalysisPass, PassManager, register_pass
from numba.core.imputils import user_function
from numba.core.typed_passes import (
    IRLegalization,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import (
    FixupArgs,
    GenericRewrites,
    IRProcessing,
    ReconstructSSA,
    TranslateByteCode,
)

from gpuplan.simulation.serving.kernels.jit.lowering import (
    LeanLowering,
    NameConstants,
    call_of,
    checks_bounds,
)

BEFORE = (
    TranslateByteCode,
    FixupArgs,
    IRProcessing,
    NameConstants,
    GenericRewrites,
    ReconstructSSA,
    NopythonTypeInference,
    PreLowerStripPhis,
    IRLegalization,
)
# Of `operator`: what is done with numbers and arrays in nearly every line.
OPERATORS = {one for one in vars(operator).values() if callable(one)}


class PartLibrary(JITCodeLibrary):
    """One function as it was written down: it becomes machine code only within a kernel."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout  # noqa: SLF001

    def finalize(self) -> None:
        """Nothing is to be done before a kernel takes it."""
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        # Only kernels use it: there is no original to keep, and several may hold the same part.
        if self._shared_module is None:
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == Linkage.external:
                    function.linkage = Linkage.linkonce_odr
            self._shared_module = self._final_module
        return self._shared_module


class KernelLibrary(JITCodeLibrary):
    """A kernel with all the parts that it is made of."""

    level = 3

    def _optimize_functions(self, module: Any) -> None:
        # All functions are optimized together, once.
        module.data_layout = self._codegen._data_layout  # noqa: SLF001

    def finalize(self) -> None:
        """Link what parts are made of too, then optimize and write machine code."""
        found, left = dict.fromkeys(self._linking_libraries), list(self._linking_libraries)
        while left:
            library = left.pop()
            if isinstance(library, PartLibrary):
                more = [one for one in library._linking_libraries if one not in found]  # noqa: SLF001
                found.update(dict.fromkeys(more))
                left += more
        self._linking_libraries = list(found)
        super().finalize()

    def _optimize_final_module(self) -> None:
        # The compiler's pass before this one serves to drop counts of references: there are none.
        passes, builder = self._codegen._module_pass_manager(  # noqa: SLF001
            opt=self.level, loop_vectorize=False, slp_vectorize=False
        )
        passes.run(self._final_module, builder)


class SeldomLibrary(KernelLibrary):
    """A kernel that runs so seldom that to optimize it in full would take longer than it runs."""

    level = 1


def _begin(state: Any, kind: type[JITCodeLibrary]) -> None:
    state.library = kind(state.targetctx.codegen(), state.func_id.func_qualname)
    state.library.enable_object_caching()


class _Pass(AnalysisPass):
    def __init__(self) -> None:
        super().__init__()


@register_pass(mutates_CFG=False, analysis_only=True)
class BeginPart(_Pass):
    """What follows is written into a part."""

    _name = "begin_part"

    def run_pass(self, state: Any) -> bool:
        """The part's own library, which is not to be made ready by itself."""
        _begin(state, PartLibrary)
        state.flags.no_compile = True
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class EndPart(_Pass):
    """The part may be called by others."""

    _name = "end_part"

    def run_pass(self, state: Any) -> bool:
        """An entry that nobody calls: functions know each other by it."""
        lowered, library = state.cr, state.library
        where, name = lowered.fndesc.lookup_module(), lowered.fndesc.qualname
        entry = _dynfunc.make_function(where, name, "", 0, lowered.env, (library,))
        call = (user_function if checks_bounds() else call_of)(lowered.fndesc, [library])
        state.targetctx.insert_func_defn([(call, entry, call.signature)])
        state.cr = lowered._replace(cfunc=entry)
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class BeginSeldom(_Pass):
    """What follows is written into a kernel that runs now and then."""

    _name = "begin_seldom"

    def run_pass(self, state: Any) -> bool:
        """Write what follows into a library of its own."""
        _begin(state, SeldomLibrary)
        return False


@register_pass(mutates_CFG=False, analysis_only=True)
class BeginKernel(_Pass):
    """What follows is written into a kernel."""

    _name = "begin_kernel"

    def run_pass(self, state: Any) -> bool:
        """Write what follows into a library of its own."""
        _begin(state, KernelLibrary)
        return False


class LeanPasses(PassManager):
    """Passes one after the other; none of these asks for the IR to be analysed after each."""

    def _runPass(self, _index: int, one: Any, state: Any) -> None:  # noqa: N802
        one.analysis = self._analysis
        for run in (one.run_initialization, one.run_pass, one.run_finalizer):
            run(state)


@cache
def _pipeline(begin: type[_Pass], *end: type[_Pass]) -> PassManager:
    """The compiler's passes less those that look for what kernels here never have."""
    passes = LeanPasses("kernel")
    for one in (*BEFORE, begin, LeanLowering, *end, NoPythonBackend):
        passes.add_pass(one, one.__name__)
    passes.finalize()
    return passes


@contextmanager
def _remembering(context: Any) -> Iterator[None]:
    """What an operator makes of two types is looked up once a kernel, not once a line."""
    if "resolve_function_type" in vars(context):
        yield  # within another kernel, which remembers
        return
    found: dict[Any, Any] = {}
    look_up = context.resolve_function_type

    def resolve(function: Any, given: Any, named: Any) -> Any:
        key = getattr(function, "typing_key", function)
        if key not in OPERATORS or named:
            return look_up(function, given, named)
        if (key, *given) not in found:
            found[key, *given] = look_up(function, given, named)
        return found[key, *given]

    context.resolve_function_type = resolve
    try:
        yield
    finally:
        del context.resolve_function_type


class _Part(CompilerBase):
    def define_pipelines(self) -> list[PassManager]:
        return [_pipeline(BeginPart, EndPart)]


class _Whole(CompilerBase):
    begin: type[_Pass] = BeginKernel

    def define_pipelines(self) -> list[PassManager]:
        return [_pipeline(self.begin)]

    def compile_extra(self, function: Any) -> Any:
        """Compile, and look for no garbage meanwhile: nearly all that is made is kept."""
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            with _remembering(self.state.typingctx):
                return super().compile_extra(function)
        finally:
            if was_enabled:
                gc.enable()


@cache
def works() -> bool:
    """A part and a kernel made of it compile, and answer right, with the numba at hand."""
    whole: dict[str, Any] = {"_nrt": False, "no_cfunc_wrapper": True, "pipeline_class": _Whole}
    inside = whole | {"no_cpython_wrapper": True, "pipeline_class": _Part}
    try:
        doubled = njit(**inside)(lambda n: 2 * n)
        found = njit(**whole)(lambda n: doubled(n) + 1)(20)
    except Exception as why:  # noqa: BLE001  (what has changed inside may fail in any way)
        warn(f"numba has changed inside ({why!r}): kernels compile slower", RuntimeWarning, 2)
        return False
    return bool(found == 41)


class PartCompiler(_Part):
    """Python in, a part of kernels out; the compiler's own way where this one fails."""

    def define_pipelines(self) -> list[PassManager]:
        """The passes that turn Python into this sort of code."""
        if works():
            return super().define_pipelines()
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


class KernelCompiler(_Whole):
    """Python in, a kernel out; the compiler's own way where this one fails."""

    def define_pipelines(self) -> list[PassManager]:
        """The passes that turn Python into this sort of code."""
        if works():
            return super().define_pipelines()
        return [DefaultPassBuilder.define_nopython_pipeline(self.state)]


class SeldomCompiler(KernelCompiler):
    """Python in, a kernel out that runs now and then."""

    begin = BeginSeldom
