"""Slots: functions that a module calls without importing the module that defines them.

Three kinds of calls go through a slot, as in ``late_binding.call_ufunc(...)``: from a lower layer to an upper one,
between modules that would import each other, and to modules that ``import pullback`` is not to wait for.  A slot is a
name of this module with the type of its function, so a call costs what a call of any function of a module costs.

- A slot that is declared without a value is bound when the module that defines the function is imported, which
  assigns it: ``late_binding.make_alias = make_alias``.  All these modules are imported by ``import pullback``.
- A slot with ``_defer(slot, module, function)`` is bound at its first call, which imports the module.

``tests/test_architecture.py`` lists the slots with the modules that bind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from pullback.core.accelerate import Elements
    from pullback.core.op import Op
    from pullback.core.tape import Tape
    from pullback.core.tensor import Tensor
    from pullback.typing import Array, Function, Shape, TensorLike, Value

# ---- bound by ``pullback`` itself, which knows what is imported when it is first used

# imports a module of this package, and registers its ops
load_module: Callable[[str], ModuleType]
# imports all modules of ops; returns whether one was still to be imported
load_ops: Callable[[], bool]
# imports what implements a module of NumPy, such as "numpy.fft"; returns whether that was still to be done
load_numpy_module: Callable[[str], bool]


def _defer(slot: str, module: str, function: str = "") -> Any:
    """Return a function whose call imports a module, binds the slot to a function of that module, and calls it."""

    def bind_and_call(*args: object) -> Any:
        bound = globals()[slot] = getattr(load_module(module), function or slot)
        return bound(*args)

    return bind_and_call


class DeferredMethod:
    """A method of tensors that a module defines which is not imported yet: access imports it, and so replaces this."""

    def __init__(self, name: str, module: str) -> None:
        self.name, self.module = name, module

    def __get__(self, instance: Tensor | None, owner: type[Tensor]) -> Any:
        load_module(self.module)
        return getattr(owner if instance is None else instance, self.name)


# ---- within the engine: tensors and tapes are defined before in-place writes and views, which need them

# core.tape: returns a tensor on no tape
constant: Callable[[Any], Tensor]
# core.writes: returns a tensor of the same value that later in-place writes do not change
make_alias: Callable[[Tensor], Any]
# core.writes: returns the array that NumPy would have in place of a tensor, or one with the same layout in memory
get_layout: Callable[[Tensor], Any]
# core.writes: returns a new tensor, which is an array in NumPy even without axes
mark_as_array: Callable[[Any], Any]
# core.writes: records that the result of an op is a view of its operand, and returns it
note_view: Callable[[Tensor, Tensor, Op, dict[str, Any]], Any]
# core.writes: records the base of a view that is on no tape
link_constant: Callable[[Tensor], None]
# core.writes: gives every node of a tape the operands that it saw before later in-place writes
resolve_writes: Callable[[Tape], None]

# ---- from ``numerics`` to the engine, and from the engine to ops

# core.accelerate: sums an array that is read as (outer, count, inner) over the middle axis; None if NumPy is to do it
sum_middle: Callable[[Array, int, int, int], Any]
# ops.gathering: returns zeros of a shape with rows added at their positions
scatter_add: Callable[[TensorLike, TensorLike, Shape], Any]

# ---- from the engine to the compiler, which is imported when the first op needs it

# returns machine code for small ops and the backward pass, or None; with True it is compiled if it is not cached
load_native_ops: Callable[[bool], Any] = _defer("load_native_ops", "compiler.runtime.abi.eager_ops", "load")
# returns the addresses of the routines of NumPy's OpenBLAS by name
find_blas: Callable[[], dict[str, int]] = _defer("find_blas", "compiler.target")
# returns a function of arrays for a function of tensors and the (shape, dtype) of each; None if it cannot be compiled
compile_formula: Callable[[Function, list[tuple[Any, Any]]], Function | None] = _defer(
    "compile_formula", "compiler.eager_kernels.single_ops"
)
# returns an elementwise op for a dtype, given which operands are single numbers; None if it cannot be compiled
compile_function: Callable[[Op, np.dtype[Any], tuple[bool, ...]], Elements | None] = _defer(
    "compile_function", "compiler.eager_kernels.elements"
)
# returns ``f(x, out, outer, count, inner)``, which sums as ``sum_middle`` and returns whether all sums are finite
compile_sum: Callable[[np.dtype[Any]], Callable[[Array, Array, int, int, int], bool] | None] = _defer(
    "compile_sum", "compiler.eager_kernels.sums"
)

# ---- from the engine to ``interop``, and from there to ``scipy``

# calls a NumPy function that is not in the table ``NUMPY`` yet, or has no rule
call_function: Callable[[Function, tuple[Any, ...], dict[str, Any]], Any] = _defer("call_function", "interop.numpy")
# calls a method of a ufunc that has no op, or with parameters or lists
call_ufunc: Callable[[Function, str, tuple[Any, ...], dict[str, Any]], Any] = _defer("call_ufunc", "interop.numpy")
# calls an op with a sparse array of SciPy's
call_with_sparse: Callable[[Op, Sequence[Any]], Any] = _defer("call_with_sparse", "interop.sparse")
# interop.sklearn_metrics: lets the metrics of scikit-learn return traced tensors
keep_gradients: Callable[[], None]


def load_array_api() -> ModuleType:
    """Return the namespace of the Array API standard."""
    return load_module("array_api")


def load_scipy_fft() -> ModuleType:
    """Return the module with the functions of ``scipy.fft``."""
    return load_module("scipy.fft")


# ---- to modules of the same layer or a lower one, which are imported when they are first used

# returns the HTML of an array, with a title and facts
show_array: Callable[[object, tuple[object, ...], Array], str] = _defer("show_array", "display.values")
# returns the HTML of a title and facts
render_frame: Callable[[object, Iterable[object]], str] = _defer("render_frame", "display.html")
# puts one node on a tape instead of many equal steps
roll_steps: Callable[[Tape], None] = _defer("roll_steps", "transforms.backward_loops")
# returns the norm of matrices, for those that need a decomposition
matrix_norm: Callable[[Value, str | float, bool], Any] = _defer("matrix_norm", "ops.linalg")
# returns the modified Bessel function of order 0
i0: Callable[[Value], Any] = _defer("i0", "ops.special")
# returns the op for a ufunc of SciPy's, or None
find_scipy_op: Callable[[Function], Any] = _defer("find_scipy_op", "ops.special")
# returns the differentiable function for a ufunc of SciPy's that is no op, or None
find_special_function: Callable[[np.ufunc], Function | None] = _defer("find_special_function", "ops.special.functions")
