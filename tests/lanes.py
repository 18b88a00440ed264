"""Every vector function as machine code that can be called on arrays, its exact results, and arguments to test."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from pullback.compiler.builder import TYPES, Code, Value, vector
from pullback.compiler.math.functions import VectorFunctions
from pullback.compiler.runtime.llvm import get_code
from pullback.compiler.target import get_target

UNARY = [
    "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "arcsin", "arccos", "arctan",
    "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "sqrt", "cbrt", "erf", "absolute", "floor", "ceil",
    "rint", "isnan", "isinf", "isfinite", "logical_not",
]  # fmt: skip
BINARY = [
    "logaddexp", "logaddexp2", "arctan2", "hypot", "power", "copysign", "maximum", "minimum", "remainder",
    "fmod", "floor_divide", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_xor",
]  # fmt: skip
WHOLE = [
    "absolute", "floor", "ceil", "isnan", "isinf", "isfinite", "invert", "logical_not", "maximum", "minimum",
    "remainder", "fmod", "floor_divide", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
]  # fmt: skip
BY_LARGER = {"logaddexp", "logaddexp2"}  # measured in ulps of the larger part of the sum, where it cancels
ROUNDED = [
    "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "logaddexp", "logaddexp2", "sin", "cos", "tan",
    "arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "sqrt", "cbrt",
    "hypot", "power", "erf",
]  # fmt: skip
EXACT = sorted({*UNARY, *BINARY, *WHOLE} - {*ROUNDED})
BOUND = {"f4": 4, "f8": 2}  # ulps
WIDTHS = {"f4": (1, 3, 4, 8, 16), "f8": (1, 3, 4, 16, 8)}  # the last one is measured


def arity(name: str) -> int:
    return 1 if name in UNARY or name == "invert" else 2


def body(
    name: str, dtype: str, width: int, formula: Callable[..., Any], count: int, has_fma: bool = True
) -> tuple[str, Code]:
    """Return a function of the addresses of the result and the arguments, and of the number of elements."""
    code = Code(has_fma and get_target().has_fma)
    memory = "i8" if dtype == "b1" else TYPES[dtype]
    with code.loop("0", "%n", width) as i:
        xs = []
        for k in range(count):
            at = code.op(f"getelementptr {memory}, ptr %x{k}, i64 {i}")
            x = code.op(f"load {vector(memory, width)}, ptr {at}, align 1")
            x = x if dtype != "b1" else code.op(f"trunc {vector('i8', width)} {x} to {vector('i1', width)}")
            xs.append(Value(code, x, dtype, width))
        y = formula(VectorFunctions(code), *xs)
        kept, given = y.name, TYPES[y.dtype]
        if y.dtype == "b1":
            kept, given = code.op(f"zext {y.type} {y.name} to {vector('i8', width)}"), "i8"
        at = code.op(f"getelementptr {given}, ptr %y, i64 {i}")
        code.line(f"store {vector(given, width)} {kept}, ptr {at}, align 1")
    params = "".join(f", ptr %x{k}" for k in range(count))
    text = f"define void @{name}(ptr %y{params}, i64 %n) {{\nentry:\n" + "\n".join([*code.lines, "ret void", "}"])
    return text, code


class Machine:
    """Formulas compiled as functions of arrays, all in one module."""

    def __init__(
        self, dtype: str, width: int, formulas: dict[str, tuple[Callable[..., Any], int]], has_fma: bool = True
    ) -> None:
        self.dtype, self.width = dtype, width
        bodies, declared, helpers = [], set(), {}
        for name, (formula, count) in formulas.items():
            text, code = body(f"f_{name}", dtype, width, formula, count, has_fma)
            bodies.append(text)
            declared |= code.declared
            helpers.update(code.helpers)
        weights = '!0 = !{!"branch_weights", i32 1, i32 100000}'
        self.text = "\n".join([*sorted(declared), *(h.text for h in helpers.values()), *bodies, weights, ""])
        names = [f"f_{name}" for name in formulas]
        self.library, _ = get_code(self.text, names, {})
        self.functions: dict[str, Any] = {}
        for name, (_, count) in formulas.items():
            kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (count + 1), ctypes.c_int64)
            self.functions[name] = kind(self.library.addresses[f"f_{name}"])

    def __call__(self, name: str, *xs: Any) -> Any:
        truth = name.startswith(("is", "logical", "equal", "not_equal", "less", "greater"))
        out = np.dtype(bool) if truth else xs[0].dtype
        n = -(-len(xs[0]) // self.width) * self.width
        padded = [np.resize(x, n) for x in xs]
        y = np.empty(n, out)
        self.functions[name](y.ctypes.data, *(x.ctypes.data for x in padded), n)
        return y[: len(xs[0])]


@lru_cache
def machine(dtype: str, width: int, has_fma: bool = True) -> Machine:
    """Return all functions of a dtype at one width."""
    names = [*UNARY, *BINARY] if dtype[0] == "f" else [n for n in WHOLE if dtype != "b1" or n not in NOT_OF_BOOLS]
    return Machine(dtype, width, {n: ((lambda s, *xs, n=n: getattr(s, n)(*xs)), arity(n)) for n in names}, has_fma)


NOT_OF_BOOLS = {"remainder", "fmod", "floor_divide"}


# ---- where to look

SPECIAL = [
    0.0, 1e-320, 1e-40, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 1e5, 1e9, 2.0**24, 2.0**53, 1e30, 1e300, np.inf, np.nan,
]  # fmt: skip


# The worst that were found: in f4 among all the numbers from 2**-13 to 1e5, in f8 among some millions.
WORST = {
    "f4": [
        3.92694, 0.06253939, 1.0132926, 1.0253991, 7.971257, 8.672902, 922.8229, 1936.005, 0.41728124, 0.2525233,
        0.12126644, 0.54794437, 0.54722834, 5.1989627, 0.499894, 15.652163, 0.70685637, 1.4140214, 1.3282484,
    ],
    "f8": [
        18.368964780838127, 1.356011760307211, 0.34666834578341943, 1.0567965581676029, 500.29257930838776,
        0.363930959316879, 1.031374343841858, 1.1528256552592782, 0.5265601100988218, 4.1728672290063,
    ],
}  # fmt: skip
WORST_PAIRS = {
    "f4": [(0.0007258208, -2.5016391), (-0.06797486, -1.3733068), (1.4941248, 1.4751692), (0.08025132, -0.35467795)],
    "f8": [
        (0.005113076967141583, -1.2994877889525829), (0.007740253505973742, -1.4755534083903823),
        (0.09071207421300921, -1.4308755521968375), (0.9999999819051927, -19894141.940441072),
    ],
}  # fmt: skip


def special(dtype: str) -> Any:
    limits = np.finfo(dtype)
    with np.errstate(all="ignore"):
        some = np.array([*SPECIAL, limits.max, limits.tiny, limits.smallest_subnormal], dtype)
    return np.concatenate([some, -some])


def anywhere(dtype: str, n: int, random: np.random.Generator) -> Any:
    """Return numbers of every exponent and both signs: random bits."""
    return random.integers(0, 1 << (8 * int(dtype[1])), n, f"u{dtype[1]}").view(dtype)


def points(dtype: str, n: int = 4000, seed: int = 0) -> Any:
    """Return numbers of every exponent, and more of them where errors are largest."""
    random = np.random.default_rng(seed)
    single = dtype == "f4"
    parts = [special(dtype), anywhere(dtype, n, random), WORST[dtype], np.negative(WORST[dtype])]
    for reach in (1.0, 4.0, 20.0, 105.0 if single else 750.0, 1e4):
        parts.append(random.uniform(-reach, reach, n))
    for low, high in ((-30, 14), (-8, 3), (-1.2, 1.2)):
        parts.append(random.choice([-1, 1], n) * np.exp2(random.uniform(low, high, n)))
    for at in (1.0, -1.0, 0.5, -0.5, 0.927734375, np.sqrt(0.5), np.sqrt(2.0), np.sqrt(2.0) - 1):  # ends of ranges
        parts.append(
            at * (1 + random.uniform(-1, 1, n // 4) * 2.0 ** random.uniform(-24 if single else -52, -1, n // 4))
        )
    edge = (87.33, 88.72, 103.9, 126.0, 1e18) if single else (708.39, 709.78, 745.1, 1022.0, 1e150)
    for at in (*edge, 10.0, 20.0, 5.95, 4.0, 1e5, 1e9):
        parts.append(at * random.choice([-1, 1], n // 8) * (1 + random.uniform(-1e-3, 1e-3, n // 8)))
    quarters = random.integers(-(60000 if single else 600000000), 60000 if single else 600000000, n) * (np.pi / 2)
    parts += [quarters, np.arange(-200, 200) * (np.pi / 4), np.exp2(random.uniform(-1, 1, n))]
    with np.errstate(all="ignore"):
        return np.concatenate([np.asarray(p).astype(dtype) for p in parts])


def pairs(dtype: str, n: int = 4000, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    some = special(dtype)
    x, y = (v.ravel() for v in np.meshgrid(some, some))
    parts: list[Any] = [
        (x, y),
        np.transpose(WORST_PAIRS[dtype]),
        (anywhere(dtype, n, random), anywhere(dtype, n, random)),
    ]
    for reach in (1.0, 10.0, 300.0):
        parts.append((random.uniform(-reach, reach, n), random.uniform(-reach, reach, n)))
    parts.append((np.exp2(random.uniform(-30, 30, n)), random.uniform(-20, 20, n)))
    parts.append((np.exp2(random.uniform(-1, 1, n)), random.uniform(-700, 700, n)))
    parts.append((1 + random.uniform(-1, 1, n) * 2.0 ** random.uniform(-20, -5, n), random.uniform(-1e4, 1e4, n)))
    parts.append((random.integers(-20, 20, n), random.integers(-20, 20, n)))
    x, y, small = random.choice([-1, 1], (3, n)) * np.exp2(random.uniform([[-4], [-4], [-8]], [[4], [4], [3]], (3, n)))
    parts += [(x, y), (x, x + small), (np.abs(x) * 1e-6, y)]
    parts.append((random.uniform(-10, 10, n), random.integers(-9, 9, n)))
    with np.errstate(all="ignore"):
        near = anywhere(dtype, n, random)
        parts.append((near, near * random.uniform(0.25, 4, n).astype(dtype)))
        parts.append((near, near * np.exp2(random.uniform(-60, 60, n)).astype(dtype)))
        return tuple(np.concatenate([np.asarray(p[k]).astype(dtype) for p in parts]) for k in (0, 1))  # type: ignore[return-value]


def wholes(dtype: str) -> tuple[Any, Any]:
    """Return integers or bools with the hardest cases of division, and others."""
    random = np.random.default_rng(0)
    if dtype == "b1":
        x, y = random.integers(0, 2, (2, 300)).astype(bool)
        return x, y
    limits = np.iinfo(dtype)
    ends = [limits.max, limits.max - 1, limits.min, limits.min + 1]
    near = [0, 1, 2, 3, 7, *ends, *((-1, -2, -3) if limits.min else ())]
    x, y = (v.ravel() for v in np.meshgrid(np.array(near, dtype), np.array(near, dtype)))
    more = random.integers(limits.min, limits.max, (2, 300), dtype)
    return np.concatenate([x, more[0]]), np.concatenate([y, more[1]])


# ---- what it should be

PRECISE = np.finfo(np.longdouble).nmant > 60


def compute_exact(name: str, *xs: Any) -> Any:
    """Return the result in higher precision than that of the arguments."""
    wide = np.float64 if xs[0].dtype == np.float32 else np.longdouble
    with np.errstate(all="ignore"):
        if name == "erf":
            return erf(xs[0].astype(np.longdouble))
        return getattr(np, name)(*(x.astype(wide) for x in xs))


def erf(x: Any) -> Any:
    """Return erf by its series, whose terms all have one sign."""
    a = np.minimum(np.abs(x), 6.6)
    term = total = a.copy()
    for n in range(1, 190):
        term = term * (a * a) * (np.longdouble(2) / (2 * n + 1))
        total = total + term
    pi = np.longdouble("3.14159265358979323846264338327950288")
    return np.copysign(np.where(a > 6.5, 1, total * np.exp(-a * a) * 2 / np.sqrt(pi)), x)


def ulps(got: Any, want: Any, scale: Any = None) -> Any:
    """Return the distance in ulps of the first argument's dtype at the second."""
    limits = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        exponent = np.maximum(np.frexp(want if scale is None else scale)[1], limits.minexp + 1)
        unit = np.ldexp(want.dtype.type(1), exponent - limits.nmant - 1)
        apart = np.abs(got.astype(want.dtype) - want) / unit
        over = np.isinf(got) & (np.abs(want) >= limits.max) & (np.sign(got) == np.sign(want))
        same = (got == want.astype(got.dtype)) & ~np.isfinite(got)
    apart = np.where(over | same | (np.isnan(got) & np.isnan(want)), 0, apart)
    return np.where(np.isnan(apart), np.inf, apart)


def error(name: str, dtype: str, width: int, *xs: Any, has_fma: bool = True) -> tuple[float, tuple[Any, ...]]:
    """Return the largest error on these arguments, and where it is."""
    got, want = machine(dtype, width, has_fma)(name, *xs), compute_exact(name, *xs)
    scale = None
    if name in BY_LARGER:
        with np.errstate(all="ignore"):
            larger = np.maximum(*(x.astype(want.dtype) for x in xs))
            part = np.maximum(np.abs(larger), want - larger)
            scale = np.where(np.isfinite(want) & (part > np.abs(want)), part, want)
    apart = ulps(got, want, scale)
    worst = int(np.argmax(apart))
    return float(apart[worst]), (*(x[worst] for x in xs), got[worst], want[worst])


def arguments(name: str, dtype: str, seed: int = 0, n: int = 4000) -> tuple[Any, ...]:
    return (points(dtype, n, seed),) if arity(name) == 1 else pairs(dtype, n, seed)
