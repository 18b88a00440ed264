"""Find out why ``float(x)``, ``x.dtype`` or ``__array__`` of a traced tensor is called: by formatting, NumPy or SciPy.

These calls do not state their purpose, and the libraries use no protocol of NumPy's there.  The caller's frame shows
the instruction that it is at and the function that it belongs to.  Local variables are read in two places: ``x`` and
``tensor`` of series of ``numpy.polynomial``, and those in which SciPy's wrappers hold a function, for its name in an
error.  Instructions are checked on examples at first use.  "Reading the caller" in ``docs/design-notes.md`` lists what
is read and what works by it, what is assumed, and what happens where an assumption fails.
"""

from __future__ import annotations

import opcode
import sys
import warnings
from contextvars import ContextVar
from dis import opmap
from functools import lru_cache
from inspect import unwrap
from os.path import basename, dirname, sep
from types import CodeType, FrameType, TracebackType
from typing import Any, cast

import numpy as np

from pullback.core.source import NOT_THE_USER, NUMPY_FILES, OURS
from pullback.errors import ArgumentError, BatchedValueError, PullbackError, SymbolValueError, TracedValueError
from pullback.names.scipy import FUNCTIONS
from pullback.tracebacks import hide_frames

Instruction = tuple[int, int]  # an operation and its argument
UNKNOWN: Instruction = (-1, -1)
_BINARY, _COMPARE = opmap.get("BINARY_OP", -2), opmap.get("COMPARE_OP", -2)
_SIGNS = [sign for _, sign in getattr(opcode, "_nb_ops", ())]  # by the argument of BINARY_OP
_REMAINDERS = {n for n, sign in enumerate(_SIGNS) if sign in ("%", "%=")}
_IN_PLACE = {n for n, sign in enumerate(_SIGNS) if sign.endswith("=")}
_PICKS = {n for n, sign in enumerate(_SIGNS) if sign == "[]"}  # since Python 3.14
_READS = {opmap[name] for name in ("BINARY_SUBSCR",) if name in opmap}  # before that
_WRITES = {opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in opmap}


def _absent() -> None:
    """Stand for a function that NumPy does not have."""


# The code of NumPy's mean, which returns `ret.dtype.type(ret / n)`, a plain number, unless the sum has no dtype:
# tensors hide theirs from it.  Compared by identity, because hashing code is slow.  Where NumPy has other functions,
# the mean of an object array of traced numbers is refused.
MEANS = frozenset(
    id(found.__code__)
    for module, names in (
        ("numpy._core._methods", ("_mean", "_var", "_std")),
        ("numpy.lib._nanfunctions_impl", ("_divide_by_count", "nanstd")),
    )
    for name in names
    if (found := unwrap(getattr(sys.modules.get(module), name, _absent))) is not _absent
)
# Functions of numpy.polynomial that evaluate a series: they arrange coefficients in columns only where x is an ndarray.
SERIES = frozenset({"polyval", "chebval", "legval", "hermval", "hermeval", "lagval"})
SERIES_FILES = f"numpy{sep}polynomial"
# Functions that use the elements of an array one by one: np.r_ and np.c_; np.vectorize; np.ndenumerate; series of
# numpy.polynomial, whose coefficients may be objects; the products of pandas.
_TAKING_APART = {
    "numpy": ("AxisConcatenator.", "vectorize.", "ndenumerate."),
    SERIES_FILES: ("",),
    "pandas": ("DataFrame.dot", "Series.dot"),
}

ROOTS = "Solve it with plain numbers and let the equation give the derivative: pb.custom_root(f, solve)"
STEPS = (
    "Write the steps with NumPy's functions in a Python loop (such as Runge-Kutta with fixed steps), or give the "
    "result a gradient with pb.custom_gradient"
)
NODES = (
    "Sum over fixed nodes (np.polynomial.legendre.leggauss) or use np.trapezoid, or give the result a gradient with "
    "pb.custom_gradient"
)
MINIMA = "At the minimum the gradient is zero: pb.custom_root(pb.grad(loss), solve) has the derivative of the solution"
ADVICE = {
    **dict.fromkeys(
        ["brentq", "brenth", "ridder", "bisect", "newton", "toms748", "root_scalar", "fsolve", "root", "fixed_point"],
        ROOTS,
    ),
    **dict.fromkeys(["minimize", "minimize_scalar", "least_squares", "leastsq", "curve_fit", "fminbound"], MINIMA),
    **dict.fromkeys(["odeint", "solve_ivp", "ode", "solve_bvp"], STEPS),
    **dict.fromkeys(["quad", "dblquad", "tplquad", "nquad", "fixed_quad", "quad_vec", "cubature"], NODES),
}

OF_OBJECTS = "Make one tensor of traced numbers first, pb.stack(array), or call the function of this name in pb"
OF_SERIES = (
    "numpy.polynomial computes with traced numbers one by one, and asks whether some are 0. Of power series, "
    "np.polyval, np.polymul, np.polyder, np.polyfit and np.roots (from the highest power down) take arrays; "
    "fits by other series are np.linalg.lstsq of their Vandermonde matrix"
)
OF_MASKED = (
    "Masked arrays hold plain numbers. Choose with np.where(mask, x, 0.0) or give where=mask to np.sum, np.mean and "
    "the like; np.nanmean and the like leave NaN out"
)
OF_ITERATORS = (
    "np.nditer reads and writes memory, which traced tensors do not have. Iterate over x itself or x.flat, "
    "np.ndindex(x.shape) or np.ndenumerate(x), and write with y[i] = value"
)
DEFAULT = (
    "Compute with NumPy's functions, or give the result a gradient with pb.custom_gradient (with SCIPY_ARRAY_API=1 in "
    "the environment, more of SciPy's functions take tensors)"
)
_CURES = {SERIES_FILES: OF_SERIES, f"numpy{sep}ma": OF_MASKED}  # advice by the part of NumPy that calls
HOW_TO_PICK = "To pick by it write pb.tensor(a)[i] or pb.take(a, i), and x[i + np.arange(n)] for x[i : i + n]. "
REFUSALS = (TracedValueError, BatchedValueError, SymbolValueError)


def _read_code(frame: FrameType) -> Instruction:
    code, at = frame.f_code.co_code, frame.f_lasti
    return (code[at], code[at + 1]) if 0 <= at < len(code) - 1 else UNKNOWN


def _read_instruction(frame: FrameType | None) -> Instruction:
    """Return the operation that a frame is performing, and its argument; UNKNOWN where these cannot be read."""
    return _read_code(frame) if frame is not None and are_instructions_known() else UNKNOWN


def _is_remainder(instruction: Instruction) -> bool:
    return instruction[0] == _BINARY and instruction[1] in _REMAINDERS


def _is_pick(instruction: Instruction) -> bool:
    return instruction[0] in _READS | _WRITES or (instruction[0] == _BINARY and instruction[1] in _PICKS)


def _is_sign(instruction: Instruction) -> bool:
    return instruction[0] in (_BINARY, _COMPARE)


def _is_change(instruction: Instruction) -> bool:
    return instruction[0] == _BINARY and instruction[1] in _IN_PLACE


def is_formatting(depth: int = 2) -> bool:
    """Return whether the caller of the caller is at ``text % x``.

    Only text as the left operand converts the right one to a number; all others leave the operator to the tensor.
    """
    return _is_remainder(_read_instruction(sys._getframe(depth)))


def is_picking() -> bool:
    """Return whether the caller of the caller is at ``array[x]`` or ``array[x] = value``."""
    return _is_pick(_read_instruction(sys._getframe(2)))


def is_operator() -> bool:
    """Return whether the code outside the library is at an operator: Python then tries the other operand."""
    return _is_sign(_read_instruction(_find_user_frame()))


def is_in_place() -> bool:
    """Return whether the code outside the library is at an operator such as ``x *= y``."""
    return _is_change(_read_instruction(_find_user_frame()))


def is_shuffling() -> bool:
    """Return whether the caller of the caller calls ``shuffle`` of NumPy's generators, which writes ``x[i] = x[j]``."""
    frame = sys._getframe(2)
    return "shuffle" in frame.f_code.co_names and not _is_pick(_read_instruction(frame))


def _find_user_frame() -> FrameType | None:
    """Return the frame of the code outside the library."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(NOT_THE_USER):
        frame = frame.f_back
    return frame


# ---- the check of instructions


class Probe:
    """An object that notes the instruction at which it is used."""

    seen = UNKNOWN

    def __mul__(self, other: object) -> Probe:
        self.seen = _read_code(sys._getframe(1))
        return self

    __imul__ = __lt__ = __mul__

    def __index__(self) -> int:
        self.seen = _read_code(sys._getframe(1))
        return 0


def find_misread_instruction() -> str | None:
    """Return what the instruction of an example is not recognized as; None if all are.

    >>> find_misread_instruction()
    """
    product, change, order, remainder, pick, write, call = (Probe() for _ in range(7))
    items, changed, number = [0], change, cast("int", remainder)
    _ = product * 1, order < 1, "%d" % number, items[pick], call.__mul__(1)  # noqa: UP031
    changed *= 1
    items[write] = 0
    kinds = (_is_sign, _is_change, _is_remainder, _is_pick)
    expected: tuple[tuple[str, Probe, set[Any]], ...] = (
        ("x * y", product, {_is_sign}),
        ("x *= y", change, {_is_sign, _is_change}),
        ("x < y", order, {_is_sign}),
        ("text % x", remainder, {_is_sign, _is_remainder}),
        ("array[x]", pick, {_is_pick} | ({_is_sign} if _PICKS else set())),
        ("array[x] = y", write, {_is_pick}),
        ("f(x)", call, set()),
    )
    return next((text for text, x, meant in expected if {kind for kind in kinds if kind(x.seen)} != meant), None)


@lru_cache(1)
def are_instructions_known() -> bool:
    """Return whether the instructions of callers can be read here; warn once if not."""
    misread = find_misread_instruction()
    if misread is not None:
        warnings.warn(
            f"Python {sys.version.split()[0]} has other instructions than expected for {misread}: text % x of traced "
            "tensors and matrix * tensor are refused, and operators with arrays of other libraries return tensors.",
            RuntimeWarning,
            stacklevel=2,
        )
    return misread is None


def is_called_by(package: str) -> bool:
    """Return whether the caller of the caller is in the files of a package."""
    return _is_in(package, sys._getframe(2).f_code)


def _is_in(package: str, code: CodeType) -> bool:
    return f"{sep}{package}{sep}" in code.co_filename


def takes_elements() -> bool:
    """Return whether the caller's caller reads single elements: ``np.r_[...]``, ``np.vectorize``, ``df @ x``."""
    code = sys._getframe(2).f_code
    if code.co_name == "_fit":  # numpy.polynomial's, which calls LAPACK
        return False
    return any(code.co_qualname.startswith(names) and _is_in(p, code) for p, names in _TAKING_APART.items())


def checks_values() -> bool:
    """Return whether a function of ``np.testing`` is calling: it compares values and returns nothing."""
    frame = find_numpy_caller()
    return frame is not None and _is_in("testing", frame.f_code)


def leaves_product() -> bool:
    """Return whether the caller of the caller is a product of a SciPy sparse array."""
    code = sys._getframe(2).f_code
    return code.co_name == "_matmul_dispatch" and _is_in("sparse", code)


def find_numpy_caller() -> FrameType | None:
    """Return the frame of the NumPy function that calls this library; None if no NumPy function does."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    return frame if frame is not None and frame.f_code.co_filename.startswith(NUMPY_FILES) else None


def arrange_coefficients(frame: FrameType, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the operands of a step of a series with the axes of ``x`` behind those of the coefficients.

    NumPy does this itself where ``x`` is an ndarray.  Coefficients are still arrays, what came from ``x`` is a tensor.
    """
    code = frame.f_code
    if code.co_name not in SERIES or f"{sep}numpy{sep}polynomial{sep}" not in code.co_filename:
        return args
    x, tensor = read_argument(frame, "x"), read_argument(frame, "tensor")
    ndim = getattr(x, "ndim", 0)
    if not tensor or not ndim or isinstance(x, np.ndarray):
        return args
    return tuple(a.reshape(a.shape + (1,) * ndim) if type(a) is np.ndarray else a for a in args)


def read_argument(frame: FrameType, name: str) -> Any:
    """Return an argument of a function of ``numpy.polynomial`` by its name in NumPy's documentation."""
    if name not in frame.f_locals:
        raise ArgumentError(
            f"np.polynomial's {frame.f_code.co_name} of NumPy {np.__version__} has no argument {name}, which decides "
            "how coefficients are arranged. Of power series, np.polyval takes tensors."
        )
    return frame.f_locals[name]


# ---- messages for values that are refused

# The last call into SciPy to which a value was refused, by the id and the code of its frame (a later one may have the
# same id): C code may continue with the error set, and whatever it calls next fails with an unrelated error.
_refused: ContextVar[tuple[int, CodeType | None, str, str]] = ContextVar("refused", default=(0, None, "", ""))


def explain_refusal(dtype: np.dtype[Any]) -> tuple[str, str]:
    """Return what the caller needs the plain value for, and what to do instead; empty texts if that is not known."""
    frame: FrameType | None = sys._getframe(1)
    by_numpy, cure = "", OF_OBJECTS
    while frame is not None and frame.f_code.co_filename.startswith(NOT_THE_USER):
        if frame.f_code.co_filename.startswith(NUMPY_FILES):
            by_numpy = frame.f_code.co_name
            cure = next((c for package, c in _CURES.items() if _is_in(package, frame.f_code)), OF_OBJECTS)
        frame = frame.f_back
    if frame is None:
        return "", ""
    scipy_files = _scipy_files()
    if by_numpy and not frame.f_code.co_filename.startswith(scipy_files):
        return f" (in NumPy's {by_numpy})", cure
    if _read_instruction(frame)[0] in _WRITES and not frame.f_code.co_filename.startswith(scipy_files):
        line = f"{basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        example = f'out = pb.zeros(shape, "{dtype}")'
        cure = f"Make out a tensor, which takes traced values: {example}; or collect them in a list for np.array(list)"
        return f" (out[...] = x at {line}, where out is a NumPy array)", cure
    called = None
    while frame is not None and frame.f_code.co_filename.startswith(scipy_files):
        called, frame = frame, frame.f_back
    if called is None:
        return "", ""
    package, name = _find_package(called.f_code), _public_name(called)
    cure = find_replacement(package, name) or ADVICE.get(name, DEFAULT)
    purpose = f" (scipy.{package}.{name} computes with plain numbers)"
    _refused.set((id(called), called.f_code, purpose, cure))
    return purpose, cure


def _scipy_files() -> str:
    """Return the prefix of the names of SciPy's files; one that no file has if SciPy is not imported."""
    module = sys.modules.get("scipy")
    return dirname(module.__file__) + sep if module is not None and module.__file__ else "\0"


def _find_package(code: CodeType) -> str:
    """Return the public SciPy package that a function is in."""
    first, *rest = code.co_filename.removeprefix(_scipy_files()).split(sep)
    if first == "spatial" and rest[0] in ("distance.py", "transform"):
        return f"spatial.{rest[0].removesuffix('.py')}"
    return first


# The variables in which SciPy's wrappers hold the wrapped function, whose name is not that of their code.
_WRAPPED = ("hypotest_fun_in", "func", "method", "self")


def _public_name(frame: FrameType) -> str:
    """Return the name of the public SciPy function that a frame belongs to."""
    name = frame.f_code.co_name
    owner = frame.f_locals.get("self")
    if frame.f_code.co_qualname.partition(".")[0] in FUNCTIONS["spatial.transform"]:
        return frame.f_code.co_qualname
    of_distribution = getattr(owner, "name", None)
    if name.startswith(("_", "wrap")) or name == "axis_nan_policy_wrapper":
        for local in _WRAPPED:
            held = frame.f_locals.get(local)
            found = getattr(held, "__name__", None) or getattr(held, "name", None)
            if isinstance(found, str):
                return found
        return type(owner).__name__ if owner is not None else name
    return f"{of_distribution}.{name}" if isinstance(of_distribution, str) else name


def find_replacement(package: str, name: str) -> str:
    """Return the advice what to use instead of a SciPy function; empty if there is no replacement.

    >>> find_replacement("linalg", "expm")
    'Use pb.scipy.linalg.expm, which is differentiable, or call pb.scipy.install() first'
    """
    if name.partition(".")[0] not in FUNCTIONS.get(package, ()):
        return ""
    return f"Use pb.scipy.{package}.{name}, which is differentiable, or call pb.scipy.install() first"


# The message of SciPy's C code after it has printed our error and continued.
_SWALLOWING = "Result from function call is not a proper array of floats"
_SEVERAL = "Multiple namespaces for array inputs"
_LENGTHS = "expected a sequence of integers or a single integer, got '<symbol"  # of np.zeros(n) and the like
_HIDING = "setting an array element with a sequence"  # the beginning of NumPy's message where our error is the cause
_OUT = ("output must be an array", "'out' must be an array")  # of methods of arrays
_ITERATING = "cannot be written back to via WRITEBACKIFCOPY"  # the message of np.nditer in place of our error
_OBJECTS = (  # NumPy's messages about object arrays: no loop for them, no method of the elements, no cast
    "loop of ufunc does not support argument", "not supported for the input types", "from dtype('O') to dtype(",
    "array type object is unsupported in linalg",
)  # fmt: skip


def reveal(error: BaseException) -> None:
    """Raise our error about tensors again if C code replaced it by another one; otherwise hide our frames."""
    hide_frames(error.__traceback__)
    if isinstance(error, PullbackError):
        return
    cause, text = error.__cause__, str(error)
    if isinstance(cause, REFUSALS) and (isinstance(error, SystemError) or text.startswith(_HIDING)):
        raise cause from None
    frame, code, purpose, cure = _refused.get()
    if _is_from(frame, code, error.__traceback__):
        raise TracedValueError(f"float() of a traced tensor would lose its gradient{purpose}. {cure}.") from None
    _explain_object_arrays(error)
    if _ITERATING in text:
        raise TracedValueError(f"np.nditer of a traced tensor would lose its gradient. {OF_ITERATORS}.") from error
    if isinstance(error, TypeError) and text in _OUT:
        raise ArgumentError(
            f"{text}: the methods of NumPy's arrays write into arrays, not into tensors. If out is a tensor, call the "
            "function, as in np.conjugate(x, out=t)."
        ) from error
    if text.startswith(_LENGTHS):
        raise SymbolValueError(
            "a length of a shape is a traced number, as n in np.zeros(n): while a function is being compiled shapes "
            "must be known. Name the argument in static_argnums, or take the length from an array: x.shape[0]."
        ) from error
    if text.startswith(_SWALLOWING):
        name = _function_in(_scipy_files(), error.__traceback__)
        cure = find_replacement("integrate", name) or find_replacement("optimize", name) or ADVICE.get(name, DEFAULT)
        raise TracedValueError(
            f"SciPy's {name} got something else than plain numbers from the function. If that is a traced tensor, its "
            f"gradient would be lost. {cure}."
        ) from error
    if isinstance(error, TypeError) and text.startswith(_SEVERAL):
        raise TracedValueError(
            "SciPy does not compute with traced tensors and NumPy's arrays together (SCIPY_ARRAY_API=1). "
            f"{_find_replacement_in(error.__traceback__) or 'Make constants tensors as well: pb.tensor(array)'}."
        ) from error


def _explain_object_arrays(error: BaseException) -> None:
    """Raise an error that explains what NumPy cannot do with object arrays, if that is what an error is about."""
    text = str(error)
    fails = isinstance(error, TypeError) and any(words in text for words in _OBJECTS)
    by_numpy = isinstance(error, AttributeError) and _function_in(NUMPY_FILES, error.__traceback__)
    if fails or _is_of_ufunc(error) or (by_numpy and by_numpy != "__getattr__"):  # that is of a misspelt np.name
        raise ArgumentError(
            f"{f'NumPy, in {by_numpy}: ' if by_numpy else ''}{text}. np.array makes an object array of traced numbers, "
            f"for which NumPy has arithmetic, but not every function. {OF_OBJECTS}."
        ) from error


def _find_replacement_in(traceback: TracebackType | None) -> str:
    """Return what to use instead of the first SciPy function in the traceback of an error."""
    while traceback is not None:
        frame = traceback.tb_frame
        if frame.f_code.co_filename.startswith(_scipy_files()):
            return find_replacement(_find_package(frame.f_code), _public_name(frame))
        traceback = traceback.tb_next
    return ""


def _is_of_ufunc(error: BaseException) -> bool:
    """Return whether a binary ufunc did not find the method of its name on a Python number in an object array."""
    if not isinstance(error, AttributeError) or type(error.obj) not in (float, int, bool, complex):
        return False
    return isinstance(getattr(np, error.name or "", None), np.ufunc)


def _is_from(frame: int, code: CodeType | None, traceback: TracebackType | None) -> bool:
    """Return whether an error was raised in a frame, given by its id and its code, or in what that called."""
    while traceback is not None:
        if id(traceback.tb_frame) == frame and traceback.tb_frame.f_code is code:
            return True
        traceback = traceback.tb_next
    return False


def _function_in(files: str, traceback: TracebackType | None) -> str:
    """Return the name of the function in these files that the user's call led to, if the error was raised in them.

    The text is empty unless the innermost frame of the traceback is in these files.
    """
    name = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        name = (name or code.co_name) if files in code.co_filename else ""
        traceback = traceback.tb_next
    return name
