"""An op is a kernel and three facts: how it acts on axes, how it differentiates, how it compiles.

The public function and the operators of Tensor are generated from the facts when the op is first used, so that
importing is quick and the hot path looks nothing up.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial, update_wrapper
from itertools import chain, repeat
from threading import RLock
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy import ndarray
from numpy.exceptions import AxisError

from pullback import late_binding
from pullback.core import hooks, native, templates
from pullback.core.accelerate import FUNCTIONS, run_elements, run_pairs
from pullback.core.axes import Acts, broadcast, elementwise1, elementwise2, moves
from pullback.core.calculus import Calculus
from pullback.core.capture import MAX_COPIED_BYTES, MUTABLE, capture, copy_parameter
from pullback.core.convert import as_value, check_sequence, join_tensors, unwrap_constant
from pullback.core.fitting import fit, floats_of
from pullback.core.formula import Expr, Names, derive_rule, flatten_formula, halves_bytes, is_product
from pullback.core.interpreter import dispatch
from pullback.core.lowering import Lowering, lower_kernel, view, windows
from pullback.core.memory import LARGE, Large, keep, take_buffer
from pullback.core.operands import call_prepared
from pullback.core.rowsparse import add_rows_picked
from pullback.core.source import compile_text, is_defined_again
from pullback.core.tape import (
    CAUGHT,
    LooseStep,
    Step,
    add_into,
    add_many,
    as_tensor,
    constant,
    perform_many,
    perform_with_constant,
    place,
    place_complex,
)
from pullback.core.templates import (
    BINARY,
    MANY,
    NATIVE,
    NODE,
    OTHER_OPERAND,
    PLACE,
    PLACE_VIEW,
    UNARY,
    UNARY_WITH_PARAMS,
)
from pullback.core.tensor import ARRAYS, BY_KERNEL, NUMPY, OBJECT, RAW, Tensor
from pullback.core.weak import weaken_value
from pullback.core.writes import define_in_place, note_view
from pullback.errors import (
    ArgumentError,
    AxisRangeError,
    DataError,
    DefinitionError,
    IndexRangeError,
    IntegerRangeError,
    PullbackError,
    ShapeError,
)
from pullback.names.answers import make_call_error
from pullback.numerics.axis_arguments import format_shapes
from pullback.settings import is_enabled

if TYPE_CHECKING:
    from pullback.core.tape import Meta
    from pullback.typing import Operand, TensorLike, Value

REGISTRY: dict[str, Op] = {}
F = TypeVar("F", bound=Callable[..., Any])

OPERATORS = {  # kernels with a Python operator: its method and its sign
    np.add: ("add", "+"), np.subtract: ("sub", "-"), np.multiply: ("mul", "*"), np.divide: ("truediv", "/"),
    np.matmul: ("matmul", "@"), np.power: ("pow", "**"), np.floor_divide: ("floordiv", "//"), np.mod: ("mod", "%"),
    np.negative: ("neg", "-"), np.absolute: ("abs", None),
    np.greater: ("gt", ">"), np.less: ("lt", "<"), np.greater_equal: ("ge", ">="), np.less_equal: ("le", "<="),
    np.equal: ("eq", "=="), np.not_equal: ("ne", "!="), operator.getitem: ("getitem", None),
    np.bitwise_and: ("and", "&"), np.bitwise_or: ("or", "|"), np.bitwise_xor: ("xor", "^"), np.invert: ("invert", "~"),
    np.left_shift: ("lshift", "<<"), np.right_shift: ("rshift", ">>"),
}  # fmt: skip
REFLECTED = frozenset({
    "add", "sub", "mul", "truediv", "matmul", "pow", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift",
})  # fmt: skip
# Kernels whose operator gives other results on NumPy values than the op, or is slower.
WITHOUT_OPERATOR = frozenset({np.floor_divide, np.power})
WEAK = (float, int, bool, complex)  # Python's numbers, which do not widen arrays
# Keywords of NumPy's array methods that ops do not take.
NUMPY_KEYWORDS = frozenset({"dtype", "initial", "kind", "mode", "order", "out", "where"})
MAX_UNBUILT_CALLS = 256  # calls that would not use an op's generated function, after which it is built nevertheless
CALLS_PER_LARGE = 64  # as how many of these a call with a large array counts: its backward pass needs machine code
BUILDING = RLock()  # held while an op's functions are generated; reentrant, since its rules may build other ops
STEPS_BY_ARITY = {
    1: ("one",),
    2: ("both", "both_fit", "fit_x", "fit_y", "left", "left_fit", "right", "right_fit"),
    3: ("many",),
}
STEPS = tuple(chain.from_iterable(STEPS_BY_ARITY.values()))


def list_ops() -> list[Op]:
    """Return all ops, after importing the modules of ops that are not imported yet.

    >>> len(list_ops()) > 200
    True
    """
    late_binding.load_ops()
    return [*REGISTRY.values()]


def find_op(name: str) -> Op | None:
    """Return the op with this name, after importing its module if needed; None if there is none.

    >>> find_op("sin").kernel, find_op("sine")
    (<ufunc 'sin'>, None)
    """
    if name not in REGISTRY:
        late_binding.load_ops()
    return REGISTRY.get(name)


def build_ops() -> None:
    """Build the functions of all ops now, where lazy building is switched off."""
    if not is_enabled("lazy ops"):
        for op in [*REGISTRY.values()]:
            op.build(reflecting=False)


def _write_kept(name: str, step: Step | None, input_number: int) -> str:
    """Return the expression for what a node saves of an array operand: a copy if the step's rule reads it."""
    reads = step is not None and step.needs[input_number]
    return f"{name}.copy() if {name}.nbytes <= MAX_COPIED_BYTES else capture({name}, m.tape)" if reads else name


def is_unusual(x: object) -> bool:
    """Return whether an argument goes through ``dispatch`` in any case, so that no function needs to be built."""
    return isinstance(x, Tensor) and not x.refers and (type(x) is not Tensor or not x.meta.raw)


def perform_observed(op: Op, args: Sequence[Any], params: dict[str, Any], without: type | tuple[type, ...] = ()) -> Any:
    """Perform an op by its innermost observer, not counting types ``without``; by the engine if there is none."""
    observer = hooks.find_for_op(op, without)
    return dispatch(op, args, params) if observer is None else observer.perform(op, args, params)


# The names in an op's generated text that decide between the fast path and the general one.
QUICK = {
    "Tensor": Tensor, "ndarray": ndarray, "Large": Large, "dispatch": dispatch, "perform_many": perform_many,
    "perform_with_constant": perform_with_constant,
}  # fmt: skip
OBSERVED = {
    "Tensor": None, "ndarray": None, "Large": None, "dispatch": perform_observed, "perform_many": perform_observed,
    "perform_with_constant": native.give_nothing, "native": native.give_nothing,
    "native_reflected": native.give_nothing,
}  # fmt: skip


def call_with_unknown(op: Op, args: tuple[Any, ...], unknown: dict[str, Any], params: dict[str, Any]) -> Any:
    """Call the NumPy function of an op with keywords that only NumPy has, such as ``dtype=``; raise for all others."""
    if params.keys() >= {*op.required} and (flags := read_flags(op, params)):
        return op.function(*args, **{**params, **flags, **unknown})
    is_numpy = not (getattr(op.kernel, "__module__", None) or "").startswith("pullback.")
    if unknown and is_numpy and NUMPY_KEYWORDS.issuperset(unknown) and any(isinstance(a, Tensor) for a in args):
        changed = {k: v for k, v in params.items() if v is not op.params[k]}
        return late_binding.call_function(op.kernel, args, changed | unknown)
    raise make_call_error(op.function, unknown, op.required)


def read_flags(op: Op, params: dict[str, Any]) -> dict[str, bool]:
    """Return the parameters that are None, 1, 0 or NumPy's bools in place of True and False; raise for other values.

    None is the default: ``x.sum(0, None)`` is NumPy's ``dtype``, which is at this place.
    """
    flags = {}
    for name in op.flags:
        value = params[name]
        if value is not True and value is not False:
            if value is not None and not (isinstance(value, int | np.integer | np.bool_) and value in (0, 1)):
                raise ArgumentError(
                    f"{op.name}: {name} must be True or False, got {value!r}. The parameters are "
                    f"{', '.join(op.params)}; others that NumPy has, such as dtype, are given by name."
                )
            flags[name] = bool(op.params[name] if value is None else value)
    return flags


def call_stub(*args: object, **kwargs: object) -> Any:
    """Build the op's function and call it; this is the code of an op's function until then, with the op's globals."""
    return OP.call_unbuilt(args, kwargs)  # type: ignore[name-defined]  # noqa: F821


def call_reflected_stub(*args: object) -> Any:
    """Build the reflected operator and call it; this is its code until then, as ``call_stub`` is an op's."""
    return OP.call_reflected_unbuilt(args)  # type: ignore[name-defined]  # noqa: F821


class Op:
    """An op: its kernel, its facts, and everything derived from them.  ``function`` is the public function.

    ``form`` says what the slots ``x`` and ``y`` of its nodes hold:

    1  one input: the input, and the tuple of parameters
    2  two inputs without parameters: both, or the one on the tape and the value of the other
    3  anything else: ``(nodes, values, which are on the tape)``, and the tuple of parameters
    """

    custom = False  # True for ops with a custom gradient, which fill in their nodes themselves
    waited = 0  # calls without a generated function
    native: Any = None  # its functions in machine code, and the reflected one, where there are any
    one: Any
    both: Any
    left: Any
    right: Any
    many: Any

    def __init__(
        self,
        kernel: Callable[..., Any],
        run: Any,
        acts: Acts,
        d: Calculus,
        lower: Lowering,
        doc: Callable[..., Any],
        shortcuts: Any,
        domain: tuple[Any, ...],
        saving: Any = None,
    ) -> None:
        self.name = doc.__name__
        self.kernel, self.acts, self.d, self.lower, self.domain = kernel, acts, d, lower, domain
        self.regular_point = 0.3 * domain[0] + 0.7 * domain[1]  # at which it and its derivatives are finite
        self._read_signature(doc)
        self._check_names(doc)
        self.variadic = d.each is not None
        self.makes_views = isinstance(lower, view)
        self.elementwise = isinstance(acts, broadcast) and not acts.out and not any(acts.core)
        self.quick, self.shortcuts, self.is_product = run, shortcuts or {}, is_product(kernel, run)
        binding = Names(self.name, self.inputs, tuple(self.params), self.variadic, d.together is not None)
        d.bind(binding)
        self.flows = d.flows
        # which inputs determine the dtype of the result: not conditions and positions
        self.mixing = repeat(d.mixes) if self.variadic or not self.flows else [f is not None for f in d.formulas]
        self.chooses = self.elementwise and isinstance(self.mixing, list) and not all(self.mixing)
        # the inputs of its rules: 1, 2, or 3 for any number of them
        self.arity = 3 if binding.signature == "g, z, args, p" else len(self.inputs)
        self.run = run or self._make_run()
        self.saving = saving
        self.space: dict[str, Any] = {"OP": self}
        hooks.add_op(self)
        self.function: FunctionType = self._make_stub(call_stub, doc)
        signed = OPERATORS.get(kernel, ("",))[0] in REFLECTED
        self.reflected = self._make_stub(call_reflected_stub, doc) if signed else None
        self.function.__wrapped__ = doc  # type: ignore[attr-defined]
        self.function.op = self  # type: ignore[attr-defined]
        REGISTRY[self.name] = BY_KERNEL[kernel] = self
        NUMPY.pop(kernel, None)  # forget an earlier definition
        self._become_operator()

    def _read_signature(self, doc: Callable[..., Any]) -> None:
        code, defaults = doc.__code__, doc.__defaults__ or ()
        names = code.co_varnames[: code.co_argcount]
        optional = len(names) - len(defaults)
        self.inputs = names[: code.co_posonlyargcount]
        self.required = names[len(self.inputs) : optional]
        self.params = dict.fromkeys(self.required) | dict(zip(names[optional:], defaults, strict=True))
        self.flags = [n for n, default in self.params.items() if isinstance(default, bool)]
        if not self.inputs or len(self.inputs) > optional:
            raise DefinitionError(f"{self.name}: inputs come first, without defaults, and are closed by '/'.")

    def _check_names(self, doc: Callable[..., Any]) -> None:
        if self.name in Tensor.__slots__:
            raise DefinitionError(f"{self.name}: this is the name of an attribute of Tensor; choose another.")
        if {"g", "z", "p", "args"} & {*self.inputs, *self.params}:
            raise DefinitionError(f"{self.name}: 'g', 'z', 'p' and 'args' are reserved names.")
        former, other = REGISTRY.get(self.name), BY_KERNEL.get(self.kernel)
        if former is not None and not is_defined_again(doc, former.function.__wrapped__):  # type: ignore[attr-defined]
            raise DefinitionError(f"{self.name}: defined twice; an op lives in exactly one place.")
        if other is not None and other is not former:
            raise DefinitionError(f"{self.name}: its kernel is already that of {other.name}, found by it.")

    def _make_stub(self, code: Callable[..., Any], doc: Callable[..., Any]) -> FunctionType:
        """Return a function that is built when it is first called; its globals are ``self.space``."""
        stub = FunctionType(code.__code__, self.space, self.name)
        stub.__doc__, stub.__module__, stub.__qualname__ = doc.__doc__, doc.__module__, doc.__qualname__
        return stub

    def _make_run(self) -> Any:
        """Return the kernel as a function that takes the parameters by position, after the inputs."""
        kernel, names = self.kernel, tuple(self.params)
        if kernel in FUNCTIONS:
            return run_elements(kernel) if kernel.nin == 1 else run_pairs(kernel)
        n = 1 if self.variadic else len(self.inputs)
        code = kernel.__code__ if isinstance(kernel, FunctionType) else None
        if not names or (code and code.co_varnames[: code.co_argcount][n : n + len(names)] == names):
            return kernel
        return lambda *a: kernel(*a[:n], **dict(zip(names, a[n:], strict=True)))

    def _become_operator(self) -> None:
        word, sign = OPERATORS.get(self.kernel, (None, None))
        public = getattr(sys.modules.get(self.function.__module__), "__all__", (self.name,))
        if self.name in public:  # an internal op is no method
            setattr(Tensor, self.name, self.function)
        if word:
            setattr(Tensor, f"__{word}__", self.function)
        if word in REFLECTED:
            setattr(Tensor, f"__r{word}__", self.reflected)
            define_in_place(self.function, word, str(sign))

    # ---- built at first use

    def __getattr__(self, name: str) -> Any:
        if name in STEPS:  # one by one: a program that is compiled needs few of them
            with BUILDING:
                if name not in self.__dict__:
                    self.__dict__[name] = self._make_step_by_name(name)
            return self.__dict__[name]
        raise AttributeError(name)

    def call_unbuilt(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call before the function is built; build it if the arguments would use it."""
        if any(type(a) is Expr for a in args):  # a rule that calls an op: building that op might lead here again
            raise TypeError(f"{self.name}: an op is called, not flattened")
        bound = self.bind_call(args, kwargs) if self._can_wait(args) else None
        if bound is None:
            return self.build(reflecting=False)(*args, **kwargs)
        shortcut = self._find_shortcut(*args) if self.shortcuts else None
        return dispatch(self, *bound) if shortcut is None else shortcut(args[0])

    def call_reflected_unbuilt(self, args: tuple[Any, ...]) -> Any:
        """Run a call of the reflected operator before it is built; build it if the arguments would use it."""
        return dispatch(self, args[::-1], {}) if self._can_wait(args) else self.build(reflecting=True)(*args)

    def _can_wait(self, args: tuple[Any, ...]) -> bool:
        """Return whether a call needs no generated function, which takes longer to make than hundreds of such calls."""
        self.waited += CALLS_PER_LARGE if any(type(a) is Large for a in args) else 1
        return not self.is_observed and self.waited < MAX_UNBUILT_CALLS and any(map(is_unusual, args))

    def _find_shortcut(self, x: Any, y: Any) -> Any:
        """Return the function of one input that computes the same for a constant second operand, if there is one."""
        fits = type(x) is Tensor and type(y) in (float, int) and x.meta.small and y in self.shortcuts
        return BY_KERNEL[self.shortcuts[y]].function if fits else None

    def build(self, reflecting: bool) -> Any:
        """Build the op's functions, which replace their stubs."""
        with BUILDING:
            if self.function.__code__ is call_stub.__code__:
                native.built.append(self)  # first: machine code may be started by another thread
                self.native = None if native.machine is None else native.machine.make_op(self)
                self._write_functions()
        return self.reflected if reflecting else self.function

    def build_native(self) -> None:
        """Build the functions again, with machine code or without it."""
        with BUILDING:
            before, machine = self.native, native.machine
            self.native = None if machine is None else machine.make_op(self)
            if self.native is not before:
                self._write_functions()

    def _write_functions(self) -> None:
        names: dict[str, Any] = {**self._build_names()}
        exec(compile_text(self._write_source(), f"<op {self.name}>", "exec"), names)
        self.space.update(names, **self._choose_paths())
        function, other = names[self.name], names.get("reflected")
        self.function.__defaults__ = function.__defaults__
        self.space[self.name] = self.function
        if other is not None and self.reflected is not None:
            self.reflected.__code__ = cast(CodeType, other.__code__)
        self.function.__code__ = function.__code__  # last: another thread may be calling it

    def _build_names(self) -> dict[str, Any]:
        others = {f"other{n}": BY_KERNEL[k].function for n, k in enumerate(self.shortcuts.values())}
        return {
            "OP": self, "kernel": self.kernel, "run": self.run, "saving": self.saving, "new_node": Tensor,
            "place": place, "place_complex": place_complex, "translate_error": self.translate_error, "CAUGHT": CAUGHT,
            "check_sequence": check_sequence, "keep": keep, "take_buffer": take_buffer, "capture": capture,
            "MAX_COPIED_BYTES": MAX_COPIED_BYTES, "MUTABLE": MUTABLE, "copy_parameter": copy_parameter,
            "note_view": note_view, "OBJECT": OBJECT, "call_with_unknown": call_with_unknown,
            "REQUIRED": templates.REQUIRED, **others,
            **{f"_{n}": templates.REQUIRED if n in self.required else d for n, d in self.params.items()},
            **{k: getattr(self, k) for k in STEPS},
        }  # fmt: skip

    def set_observed(self, on: bool) -> None:
        """Set whether the op's functions leave all calls to observers."""
        self.is_observed = on
        self.space.update(self._choose_paths())

    def _choose_paths(self) -> dict[str, Any]:
        """Return the names in the generated text that decide between the fast path, machine code and observers."""
        if self.native is None or self.is_observed:
            return OBSERVED if self.is_observed else QUICK
        return {**QUICK, "native": self.native[0], "native_reflected": self.native[1]}

    def _write_native(self) -> dict[str, str]:
        """Return the texts with which the functions try machine code first, where there is any."""
        if self.native is None:
            return {"native": "", "native_reflected": ""}
        args = ", ".join("xy"[: self.arity])
        other = NATIVE.format(function="native_reflected", args="y, x")
        return {"native": NATIVE.format(function="native", args=args), "native_reflected": other}

    def _make_step_by_name(self, name: str) -> Step | None:
        """Return the step for one choice of operands on the tape, with or without broadcasting; None if it has none."""
        if not self.flows or name not in STEPS_BY_ARITY[self.arity]:
            return None
        if self.arity == 2:
            return self._make_binary_step(name)
        d = self.d
        if self.arity == 1:
            (dx,) = self.vjps
            if d.into is None:
                return self._make_step(0, dx=dx)
            return self._make_step(0, rule=dx, back=add_into(dx, d.into, d.row_rule()))
        rules = self._join_rules(self.vjps)
        add, rows = add_many(rules), d.row_rule()
        inputs = range(1 if self.variadic else len(self.inputs))
        back = add if rows is None else add_rows_picked(add, rows)
        many = self._make_step(*inputs, rules=rules, back=back)
        many.loose = LooseStep(self, rules=rules)
        return many

    def _make_step(self, *of: int, fitted: bool = False, **rules: Any) -> Step:
        """Return a step with the rules of some inputs; with ``fitted``, they sum over broadcast axes."""
        names = frozenset().union(*map(self.d.get_needed_names, of))
        needs = repeat(self.inputs[0] in names) if self.variadic else tuple(n in names for n in self.inputs)
        parts = self.elementwise and not (fitted or self.params or any(n.endswith("_shape") for n in names))
        return Step(self, needs=needs, needs_z="z" in names, blockwise=parts, **rules)

    def _fit_step(self, loose: Step, *of: int, **rules: object) -> Step:
        """Return a step with rules that sum over broadcast axes; ``loose`` is the same step without these sums."""
        step = self._make_step(*of, fitted=True, crossed=loose.crossed, **rules)
        step.loose = loose
        return step

    def _make_binary_step(self, name: str) -> Step | None:
        """Return a step of an op of two inputs; None if one of them that is on the tape has no derivative."""
        dx, dy = self.vjps
        crossed = "g, z, y, x"  # the tensor is the second operand
        if name == "left":
            return dx and self._make_step(0, dx=dx)
        if name == "left_fit":
            return dx and self._fit_step(self.left, 0, dx=self.fit_dx)
        if name == "right":
            return dy and self._make_step(1, dx=derive_rule(self.name, dy, crossed), crossed=True)
        if name == "right_fit":
            return dy and self._fit_step(self.right, 1, dx=derive_rule(self.name, dy, crossed, fit, "y"))
        if not (dx and dy):
            return None
        if name == "both":
            return self._make_step(0, 1, dx=dx, dy=dy)
        fits_x, fits_y = name != "fit_y", name != "fit_x"
        return self._fit_step(self.both, 0, 1, dx=self.fit_dx if fits_x else dx, dy=self.fit_dy if fits_y else dy)

    @cached_property
    def vjps(self) -> list[Any]:
        """The rule of each input; None for one without a derivative."""
        return self.d.vjps()

    @cached_property
    def fit_dx(self) -> Any:
        """The rule of the first of two inputs, which sums over broadcast axes."""
        return derive_rule(self.name, self.vjps[0], "g, z, x, y", fit, "x")

    @cached_property
    def fit_dy(self) -> Any:
        """The rule of the second of two inputs, which sums over broadcast axes."""
        return derive_rule(self.name, self.vjps[1], "g, z, x, y", fit, "y")

    def _join_rules(self, vjps: Sequence[Any]) -> Callable[..., Any]:
        """Return the rules of an op of any number of inputs as one function, which returns a cotangent for each."""
        if self.variadic:
            each = vjps[0]
            return lambda g, z, args, p, live: each(g, z, args, p)

        in_order, joint = isinstance(self.lower, windows), self.d.joint_rule()

        def rules(g: Value, z: Value, args: Any, p: Any, live: Any) -> list[Any]:
            if in_order and type(g) is ndarray:
                g = np.ascontiguousarray(g)  # once for all rules, each of which would copy a view
            if joint is not None and all(live):
                return list(joint(g, z, args, p))
            return [f(g, z, args, p) if f and on else None for f, on in zip(vjps, live, strict=True)]

        return rules

    def _write_source(self) -> str:
        """Return the source text of the public function, which depends on the form."""
        _, sign = OPERATORS.get(self.kernel, (None, None))
        sign = None if self.kernel in WITHOUT_OPERATOR else sign
        if self.arity == 1 and self.flows:
            return self._write_unary(sign) if self.acts is elementwise1 and not self.params else self._write_moving()
        return self._write_binary(sign) if self.arity == 2 and self.both else self._write_many()

    def _write_parameters(self, inputs: str) -> tuple[str, str, dict[str, str]]:
        """Return the parameters as items of a dict and as a signature, and the checks of keywords.

        ``inputs`` are the names of the inputs in the text.
        """
        word, _ = OPERATORS.get(self.kernel, (None, None))  # Python calls operators without keywords
        signature, check = templates.write_parameters(list(self.params), self.required, self.flags, not word, inputs)
        # parameters that need no copy: numbers and strings are immutable, and an index is copied when it is normalized
        mutable = [n for n, d in self.params.items() if not isinstance(d, bool | int | float | str) and n != "index"]
        check["own"] = templates.write_copies(mutable)
        return ", ".join(f"{n!r}: {n}" for n in self.params), signature, check

    def _write_unary(self, sign: str | None) -> str:
        node = {"m": "m", "step": "one", "x": "x", "y": "None"}
        run = "run(x.value)"
        if getattr(self.run, "kernel", None) is self.kernel:  # as ``run`` itself decides, without its call
            run = f"(kernel(x.value) if m.size <= {self.run.largest} else run(x.value))"
        expression = f"{sign}x.value" if sign else flatten_formula(self.quick, "x.value") or run
        above = NODE.format(v=f"{sign}x.value" if sign else f"{self.name}(x.value)", **node)
        array = expression.replace("x.value", "x").replace("m.size", "x.size")
        return UNARY.format(
            name=self.name, plain=NODE.format(v=expression, **node), above=above, array=array, **self._write_native()
        )

    def _write_moving(self) -> str:
        """Return the text of an op of one input with parameters, or whose result has another shape."""
        items, signature, check = self._write_parameters("x")
        listed, packed = ", ".join(self.params), f"({''.join(n + ', ' for n in self.params)})"
        node = {"v": "v", "m": "q", "step": "one", "x": "x", "y": packed, "pad": " " * 12}
        placed = f"place(v, m.tape[_s, v.dtype], one, x.x, {packed})"
        run = "run" if self.saving is None else "(saving if m.tape.level else run)"
        if self.makes_views:  # x[0] is a number, not a view
            node["note"] = "if q.ndim: m.note(r)" if self.kernel is operator.getitem else "m.note(r)"
            placed = f"note_view({placed}, x, OP, {{{items}}})"
        return UNARY_WITH_PARAMS.format(
            name=self.name, params=f"{signature}, " * bool(self.params), items=items, **check,
            run="x.value[index]" if self.kernel is operator.getitem else f"{run}(x.value, {listed})",
            array=f"run(x, {listed})", above=f"{self.name}(x.value, {listed})",
            scalar="; v = v if _s else v[()]" if isinstance(self.acts, moves) else "", noted=placed,
            node=PLACE_VIEW.format(items=items, **node) if self.makes_views else PLACE.format(**node),
        )  # fmt: skip

    def _write_many(self) -> str:
        items, signature, check = self._write_parameters(", ".join(self.inputs))
        if self.variadic:
            names = self.inputs[0]
            args = f"{names} if type({names}) is list else check_sequence(OP.name, {names})"
        else:
            names, args = ", ".join(self.inputs), f"({''.join(n + ', ' for n in self.inputs)})"
        names = f"{names}, {signature}" if self.params else names
        source = MANY.format(name=self.name, signature=names, args=args, items=items, **check)
        return source + OTHER_OPERAND if len(self.inputs) == 2 else source

    def _write_binary(self, sign: str | None) -> str:
        same = {"m": "m", "x": "x", "y": "y"}
        quick = self.acts is elementwise2
        same_shape, two = self._write_variants()
        both, left, right = self._write_results(sign)
        raw = "run({}, {})" if self.quick or not sign else f"{{}} {sign} {{}}"
        pad = {"pad": " " * 12, "v": "v", "m": "q"}
        kept_y, kept_x = _write_kept("y", self.left, 1), _write_kept("x", self.right, 0)
        # not for integers, whose power may have another dtype than their product
        shortcut = "\n            if y == {!r} and (m.small or m.pool is not None): return other{}(x)"
        of_large = "    if type(x) is Large and (t is float or t is int) and y == {!r}: return other{}(x)\n"
        return BINARY.format(
            **self._write_native(),
            name=self.name,
            same="m is q and m.small" if quick else "False",
            weak="m.small" if quick else "False",
            complex="m.complex" if quick and self.left and self.right else "False",
            large="type(x) is Large" if quick and self.left and isinstance(self.run, np.ufunc) else "False",
            fast="plain" if quick else "direct",
            wide=' and x.dtype.kind == "f"' if halves_bytes(self.kernel) else "",
            shortcuts="".join(shortcut.format(c, n) for n, c in enumerate(self.shortcuts)),
            large_shortcuts="".join(of_large.format(c, n) for n, c in enumerate(self.shortcuts)),
            both=NODE.format(v=both, step="both", **same),
            raw=raw.format("x.value", "y.value"),
            arrays=raw.format("x", "y"),
            raw_left=raw.format("x.value", "y"),
            raw_right=raw.format("x", "y.value"),
            both_fit=PLACE.format(**{**pad, "pad": " " * 16}, step=two, x="x", y="y"),
            left=NODE.format(v=left, step="left", **same),
            left_array=PLACE.format(**pad, step=f"left if {same_shape} else left_fit", x="x", y=kept_y),
            right=NODE.format(v=right, step="right", m="m", x="y", y="x"),
            right_array=PLACE.format(**pad, step=f"right if {same_shape} else right_fit", x="y", y=kept_x),
        )

    def _write_variants(self) -> tuple[str, str]:
        """Return two expressions: whether nothing was broadcast, and the step of a node with two operands."""
        if self.acts is elementwise2:  # by the identity of the metas
            return "q is m", "fit_y if q is m else fit_x if q is p else both_fit"
        core = len(self.acts.out) if isinstance(self.acts, broadcast) else -1
        same_shape = f"v.ndim == {core} and v.dtype is m.dtype"  # only core axes are left
        return same_shape, f"both if {same_shape} else both_fit"

    def _write_results(self, sign: str | None) -> tuple[str, str, str]:
        """Return the expressions of the result where both operands are tensors, the left one, or the right one."""
        if sign:
            return f"x.value {sign} y.value", f"x.value {sign} y", f"x {sign} y.value"
        call = f"({'run' if self.kernel in WITHOUT_OPERATOR else 'kernel'} if m.plain else {self.name})"
        return f"{call}(x.value, y.value)", f"{call}(x.value, y)", f"{call}(x, y.value)"

    # ---- calls outside the fast path

    def call(self, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Call the public function with inputs and parameters given separately."""
        return self.function(args, **params) if self.variadic else self.function(*args, **params)

    def bind_call(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Return the inputs and parameters of a call; None if it does not fit the signature."""
        count = 1 if self.variadic else len(self.inputs)
        if len(args) == count and not (kwargs or self.required or self.variadic):
            return tuple(args), dict(self.params)
        named = dict(zip(self.params, args[count:], strict=False))
        if self.variadic or len(args) < count or len(args) > count + len(self.params) or named.keys() & kwargs.keys():
            return None
        if not (kwargs.keys() <= self.params.keys() and {*self.required} <= {*named, *kwargs}):
            return None
        params = {**self.params, **named, **kwargs}
        return None if any(type(params[n]) is not bool for n in self.flags) else (tuple(args[:count]), params)

    def prepare_call(self, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Call the op after converting operands that are neither arrays nor tensors."""
        return call_prepared(self, args, params)

    def perform(self, values: Sequence[Any], params: dict[str, Any]) -> Any:
        """Return the value of the op for arrays and numbers."""
        values = self._convert_values(values)
        inputs = [list(values)] if self.variadic else values
        run = self.kernel if self.is_product and values[0].dtype == bool else self.run  # a product is bool
        z = self.run_guarded(lambda: run(*inputs, *params.values()), values, params)
        if getattr(z, "dtype", None) == np.float16 and not self._is_short(values, params):
            wider = [np.asarray(v).astype(np.float32)[()] for v in values]  # NumPy has short floats for bools and bytes
            return self.perform(wider, params)
        return z[()] if type(z) is ndarray and not z.ndim else z

    def _convert_values(self, values: Sequence[Any]) -> list[Any]:
        """Return inputs as the kernel takes them: NumPy's values of a common kind, beside which numbers may stay."""
        converted = [v if isinstance(v, RAW) or type(v) in WEAK else as_value(v, self.name) for v in values]
        if len(converted) > 1:
            converted = self.promote(converted)
        if self.elementwise and any(isinstance(v, RAW) for v in converted):
            return converted
        return [v if isinstance(v, RAW) else np.asarray(v, self._find_weak_dtype(v, converted))[()] for v in converted]

    @staticmethod
    def _is_short(values: Sequence[Any], params: dict[str, Any]) -> bool:
        """Return whether a result of float16 is what the caller wants: there is a ``dtype=``, or an input is one."""
        return "dtype" in params or any(getattr(v, "dtype", None) == np.float16 for v in values)

    def _find_weak_dtype(self, number: complex, values: list[Any]) -> Any:
        """Return the dtype of a Python number among arrays: that of the arrays if it can hold the number."""
        among = [v.dtype for v in values if isinstance(v, RAW)]
        return np.result_type(*among, number) if among and self.variadic else None

    def promote(self, values: list[Any]) -> list[Any]:
        """Convert inputs to a common kind: integers never widen a float, as in PyTorch; else by NumPy's promotion."""
        kinds = {v.dtype.kind for v, on in zip(values, self.mixing, strict=False) if on and isinstance(v, RAW)}
        if not kinds.isdisjoint("OMm"):
            got = [v.dtype for v in values if isinstance(v, RAW)]
            raise DataError(f"{self.name}: expected numbers or bools, got {' and '.join(map(str, got))}.")
        if not kinds & {"f", "c"} or not kinds & {"i", "u", "b"}:
            return values
        wide = np.result_type(*[v.dtype for v in values if isinstance(v, RAW) and v.dtype.kind in "fc"])
        return [
            v.astype(wide) if on and isinstance(v, RAW) and v.dtype.kind in "iub" else v
            for v, on in zip(values, self.mixing, strict=False)
        ]

    def run_guarded(self, compute: Callable[[], Any], values: Sequence[Any], params: dict[str, Any]) -> Any:
        """Return ``compute()``, with NumPy's errors translated into this library's."""
        try:
            return compute()
        except CAUGHT as error:
            raise self.translate_error(self, error, values, params) from None

    @staticmethod
    def translate_error(op: Op, error: Exception, args: Sequence[Any], params: dict[str, Any]) -> Exception:
        """Return this library's error for a NumPy error: about shapes if these do not fit, else with NumPy's text."""
        if isinstance(error, PullbackError | OverflowError):
            return error if isinstance(error, PullbackError) else IntegerRangeError.of(op.name, error)
        shapes = [getattr(a, "shape", ()) for a in args]
        try:
            op.acts.shape(op.name, shapes, params)
        except PullbackError as ours:
            return ours
        except CAUGHT:
            pass
        if (refused := op.refuse_dtypes(error, [a.dtype for a in args if hasattr(a, "dtype")])) is not None:
            return refused
        settings = "".join(f", {k}={v!r}" for k, v in params.items())
        kind: type[PullbackError] = ArgumentError if isinstance(error, TypeError) else ShapeError
        if isinstance(error, IndexError):
            kind = AxisRangeError if isinstance(error, AxisError) else IndexRangeError
        dtypes = " and ".join(str(getattr(a, "dtype", type(a).__name__)) for a in args)
        return kind(f"{op.name}: {str(error).rstrip('.')} (given shapes {format_shapes(shapes)}, {dtypes}{settings}).")

    def refuse_dtypes(self, error: Exception, dtypes: Sequence[np.dtype[Any]]) -> Exception | None:
        """Return the error about inputs that are not numbers, or complex where they must be real; None if none is."""
        if any(dtype.kind in "USOMm" for dtype in dtypes):
            return DataError(f"{self.name}: expected numbers or bools, got {' and '.join(map(str, dtypes))}.")
        found = next((dtype for dtype in dtypes if dtype.kind == "c"), None)
        if found is not None and "not supported for the input types" in str(error):
            return ArgumentError(f"{self.name}: expected real numbers, got dtype {found}.")
        return None

    def select_step(
        self, nodes: list[Any], values: list[Any], live: list[bool], params: dict[str, Any], m: Meta
    ) -> tuple[Any, Any, Any] | None:
        """Return the step and the two operand slots of a node; None if no operand on the tape has a derivative."""
        if not self.flows:
            return None
        if self.arity == 1:
            return self.one, nodes[0], tuple(params.values())
        if self.arity == 2:
            return self._select_step_of_two(nodes, values, live, m)
        return self._select_step_of_many(nodes, values, live, params, m)

    def _select_step_of_two(
        self, nodes: list[Any], values: list[Any], live: list[bool], m: Meta
    ) -> tuple[Any, Any, Any] | None:
        quick = self.acts is elementwise2 and m.dtype.kind == "f"
        on_x, on_y = (on and self.d.differentiable(i) for i, on in enumerate(live))
        if on_x and on_y:
            x, y = nodes
            return (self.both if quick and x.meta is m and y.meta is m else self.both_fit), x, y
        if on_x:
            step = self.left if quick and nodes[0].meta is m else self.left_fit
            return step, nodes[0], self._keep(values[1], step.needs[1], m)
        if on_y:
            step = self.right if quick and nodes[1].meta is m else self.right_fit
            return step, nodes[1], self._keep(values[0], step.needs[0], m)
        return None

    def _select_step_of_many(
        self, nodes: list[Any], values: list[Any], live: list[bool], params: dict[str, Any], m: Meta
    ) -> tuple[Any, Any, Any] | None:
        if not any(on and self.d.differentiable(i) for i, on in enumerate(live)):
            return None
        kept = [
            self._trim(v, n) if on else self._keep(v, n, m)
            for v, n, on in zip(values, self.many.needs, live, strict=False)
        ]
        return self.many, (nodes, kept, live), tuple(params.values())

    @staticmethod
    def _trim(value: Operand, needed: bool) -> Any:
        """Return what a node saves of an operand: only shape and dtype of a big one that no rule reads."""
        if needed or type(value) is not ndarray or value.nbytes < LARGE:
            return value
        return constant(value).meta

    def _keep(self, value: Value, needed: bool, m: Meta) -> Any:
        """Return what a node saves of an operand that is not on a tape."""
        if needed and type(value) is ndarray:
            return capture(value, m.tape)
        return self._trim(value, needed)

    # ---- for transforms

    def call_example(self, i: int, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
        """Call the op on the example ``i`` of the arguments that are ``on``, which have examples along axis 0."""
        if hooks.blocks and (observer := hooks.find("note")) is not None:
            with observer.note("example", i):
                return self.call([a[i] if b else a for a, b in zip(args, on, strict=True)], params)
        return self.call([a[i] if b else a for a, b in zip(args, on, strict=True)], params)

    def jvp(self, z: Value, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Any:
        """Return the tangent of the result ``z``, None for zero."""
        if self.elementwise and self.flows:
            primals = floats_of(self, z, primals)
        if hooks.blocks and (observer := hooks.find("note")) is not None:
            with observer.note("tangent", self, primals):
                return self.d.jvp(self, z, primals, tangents, params)
        return self.d.jvp(self, z, primals, tangents, params)

    def __repr__(self) -> str:
        return f"<op {self.name}({', '.join([*self.inputs, *self.params])})>"


def op(
    kernel: Callable[..., Any], *, acts: Acts, d: Calculus, lower: Lowering | None = None, run: Any = None,
    shortcuts: dict[Any, Any] | None = None, domain: tuple[float, float] = (-2.0, 2.0), saving: Any = None,
) -> Callable[[F], F]:  # fmt: skip
    """Declare an op.  The decorated function gives its name, signature and documentation.

    Its inputs are the parameters before ``/``; the others are passed by position or keyword.
    ``kernel`` computes the value; the op is looked up by it.
    ``run(x, *params)``, if given, computes the same faster; plain arithmetic is inlined into the op's function.
    ``shortcuts`` maps a constant second operand to the kernel of a one-input op that computes the same.
    ``domain`` is the interval from which the generated tests draw numbers.
    ``saving(x, *params)`` computes the same and saves a value for the rule (see residuals.py).
    """

    def define(doc: F) -> F:
        return cast(F, Op(kernel, run, acts, d, lower or lower_kernel(kernel), doc, shortcuts, domain, saving).function)

    return define


def run_observed(function: Any, *args: object, **kwargs: object) -> Any:
    """Run a function made of ops, by the observer of calls in this thread if there is one."""
    observer = hooks.find("run_call")
    if observer is None:
        return function(*args, **kwargs)
    return observer.run_call("composition", function, *args, **kwargs)


def call_composition_stub(*args: object, **kwargs: object) -> Any:
    """Build the function of a composition and call it; this is its code until then, with the composition's globals."""
    return COMPOSITION.build()(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821


class Composition:
    """A function made of ops whose calls observers can run.  ``function`` is the public function.

    It is built when first called, with the same parameters, so that it costs only one more call.
    """

    def __init__(self, own: Any) -> None:
        self.own = own
        self.space: dict[str, Any] = {"COMPOSITION": self, "run": own}
        self.function = FunctionType(call_composition_stub.__code__, self.space, own.__name__)
        update_wrapper(self.function, own)
        hooks.add_composition(self)

    def set_observed(self, on: bool) -> None:
        """Set whether the function leaves all calls to observers."""
        self.space["run"] = partial(run_observed, self.own) if on else self.own

    def build(self) -> Any:
        """Build the function, which replaces its stub."""
        if self.function.__code__ is call_composition_stub.__code__:
            name, (parameters, arguments) = self.own.__name__, templates.forward_parameters(self.own.__code__)
            space: dict[str, Any] = {}
            exec(compile_text(f"def {name}({parameters}): return run({arguments})\n", f"<op {name}>", "exec"), space)
            self.function.__defaults__, self.function.__kwdefaults__ = self.own.__defaults__, self.own.__kwdefaults__
            self.function.__code__ = space[name].__code__
        return self.function


def observable(function: F) -> F:
    """Return a function made of ops such that observers run its calls."""
    return cast(F, Composition(function).function)


def alias(name: str, function: F) -> F:
    """Return the same function under another name (NumPy's, beside TensorFlow.js's), as a method of Tensor too.

    >>> import pullback as pb
    >>> pb.multiply is pb.mul
    True
    """
    setattr(Tensor, name, function)
    return function


def method(function: F) -> F:
    """Return a composition of ops, made a method of Tensor as every op is."""
    return alias(function.__name__, observable(function))


def convert_operand(x: TensorLike, subject: str = "tensor") -> Value:
    """Return an argument of a composition as a tensor, an array or a number; lists become tensors, as for ops.

    ``subject`` is the name of the function in error messages.

    >>> convert_operand([1.0, 2.0]).shape, convert_operand(3).shape
    ((2,), ())
    """
    value: Value
    if isinstance(x, ARRAYS):
        value = join_tensors(x)
        return value
    if type(x) in WEAK or isinstance(x, range):
        value = weaken_value(np.asarray(x)[()])
        return value
    value = unwrap_constant(x, subject)
    return as_tensor(value) if isinstance(x, list | tuple) else value


def check_rank(name: str, x: TensorLike, rank: int, argument: str = "x") -> Value:
    """Return an argument as ``convert_operand`` does, after checking that it has this rank.

    >>> check_rank("pad1d", [1.0, 2.0], 1).shape
    (2,)
    """
    x = convert_operand(x, f"{name}: {argument}")
    if x.ndim != rank:
        raise ShapeError(f"{name}: {argument} must have rank {rank}, got shape {x.shape}.")
    return x
