"""Small ops and the backward pass in machine code: the same numbers, bit by bit, as in Python, and the same errors."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from core.eager_programs import run_program

import pullback as pb
from pullback.compiler.runtime.abi import eager_fused, eager_ops, eager_programs, eager_records
from pullback.core import native
from pullback.core.op import list_ops

HERE = os.path.dirname(__file__)
RANDOM = 60  # programs
random = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def machine() -> None:
    if not native.start():
        pytest.skip("there is no machine code for this interpreter")


@pytest.fixture(scope="module")
def outcomes() -> list[dict[str, Any]]:
    """Return what every program gives, in machine code and in Python."""
    found = []
    for begin in (native.start, native.stop):
        begin()
        found.append({name: run_silently(f) for name, f in (*ELEMENTWISE.items(), *PROGRAMS.items())})
        found[-1] |= {f"warnings of {name}": list_warnings(f) for name, f in ODD.items()}
        found[-1]["random programs"] = [run_program(seed) for seed in range(RANDOM)]
    native.start()
    return found


def run_silently(f: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return as_bytes(f())


def list_warnings(f: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        f()
    return [str(w.message) for w in found]


def as_bytes(x: Any) -> Any:
    """Return the very bits of numbers, with their types."""
    if isinstance(x, list | tuple):
        return [as_bytes(y) for y in x]
    if isinstance(x, pb.Tensor):
        return "tensor", as_bytes(x.numpy())
    return type(x).__name__, np.asarray(x).dtype.str, np.asarray(x).tobytes()


def call_elementwise(op: Any) -> Callable[[], Any]:
    """Return a function that gives values and gradients of an op of elements, for arrays, numbers and constants."""
    f, (low, high) = op.function, op.domain

    def run() -> list[Any]:
        found: list[Any] = []
        for dtype in ("f8", "f4"):
            draw = np.random.default_rng(1)
            for shape in ((), (7,), (3, 4)):
                xs = [np.asarray(draw.uniform(low, high, shape), dtype)[()] for _ in range(op.arity)]
                weights = np.asarray(draw.normal(size=shape), dtype)[()]
                found += pb.value_and_grads(lambda *xs, w=weights: pb.sum(f(*xs) * w))(xs)
                found.append(f(*map(pb.tensor, xs)))
                if op.arity == 2 and all(map(op.d.differentiable, range(2))):
                    number = float(draw.uniform(low, high))
                    found.append(pb.grad(lambda x, w=weights, n=number: pb.sum(f(x, n) * w))(xs[0]))
                    found.append(pb.grad(lambda y, w=weights, n=number: pb.sum(f(n, y) * w))(xs[0]))
        return found

    return run


FILES = tuple(f"pullback.ops.{name}" for name in ("activations", "elementwise", "math", "scientific", "trigonometry"))
ELEMENTWISE = {
    op.name: call_elementwise(op) for op in list_ops()
    if op.elementwise and op.arity in (1, 2) and not op.params and op.flows and op.function.__module__.startswith(FILES)
    and op.name != "prelu"  # which takes no Python number first
}  # fmt: skip


def layers(n: Any, x: Any, w: Any) -> Any:
    y = x
    for _ in range(4):
        y = n.tanh(y * w + 0.25) - y / 3
        y = 1.5 - n.sin(y) * x
        y += y * w
    return y


X, W = random.uniform(0.1, 1, (3, 5)), random.uniform(0.1, 1, (3, 5))
PROGRAMS: dict[str, Callable[[], Any]] = {
    "first order": lambda: pb.value_and_grads(lambda x, w: pb.sum(layers(np, x, w)))([X, W]),
    "scalars": lambda: pb.value_and_grads(lambda x, w: layers(np, x, w))([0.5, 0.75]),
    "short floats": lambda: pb.value_and_grads(lambda x, w: pb.sum(layers(np, x, w)))([X.astype("f4"), W.astype("f4")]),
    "second order": lambda: pb.grad(lambda x: pb.sum(pb.grad(lambda x: pb.sum(layers(np, x, W)))(x) ** 2))(X),
    "third order": lambda: pb.grad(pb.grad(pb.grad(lambda x: np.tanh(x) * x * 2.0)))(0.3),
    "forward over reverse": lambda: pb.jvp(pb.grad(lambda x: pb.sum(layers(np, x, W))), [X], [W]),
    "reverse over forward": lambda: pb.grad(lambda x: pb.sum(pb.jvp(lambda y: layers(np, y, W), [x], [W])[1]))(X),
    "vmap of grad": lambda: pb.vmap(pb.grad(lambda x: pb.sum(layers(np, x, x))))(X),
    "grad of vmap": lambda: pb.grad(lambda x: pb.sum(pb.vmap(lambda r: layers(np, r, r))(x)))(X),
    "one tensor twice": lambda: pb.grad(lambda x: pb.sum((x * x + x) * (x - x * x)))(X),
    "shared cotangent": lambda: pb.grads(lambda x, w: pb.sum((x + w) + (x + w) * x))([X, W]),
    "above a limit of the op": lambda: pb.value_and_grad(lambda x: pb.sum(pb.softplus(x)))(
        np.linspace(-4.0, 4.0, 2000)
    ),
    "transposed operands": lambda: pb.grad(lambda x: pb.sum(np.tanh(x.T) * x.T))(X),
    "views and writes": lambda: pb.grad(write)(X),
    "broadcast": lambda: pb.grads(lambda x, b: pb.sum(np.tanh(x + b) * b))([X, W[0]]),
    "rows and columns": lambda: pb.grads(mix_shapes)([X, W[0], W[:, :1], W[:1], np.float64(0.5)]),
    "slices": lambda: pb.grads(lambda x, w: pb.sum(np.tanh(x[:, 1:4]) * w[:, :3] + x[:, ::2] / w[1, 2:]))([X, W]),
    "reversed rows": lambda: pb.grad(lambda x: pb.sum(np.sin(x[::-1]) * x[:, ::-1] * x[0, ::-1]))(X),
    "picks added to each other": lambda: pb.grads(pick_parts)([X, W, np.stack([X, W])]),
    "picked numbers": lambda: pb.grad(lambda x: x[0] * x[1] + x[-1] * x[0] - x[2] / x[1])(X[0]),
    "products": lambda: [pb.grads(multiply)([*xs]) for xs in (MATRICES, [m.astype("f4") for m in MATRICES])],
    "products with vectors": lambda: pb.grads(lambda x, w: pb.sum(x[:1] @ w.T + x[:, :1].T @ w[:, :1]))([X, W]),
    "product with itself": lambda: pb.grad(lambda x: pb.sum(np.tanh(x @ x.T) + (x.T @ x).sum() + (x.T @ W)[0, 0]))(X),
    "arrays in products changed later": lambda: change_later(np.matmul),
    "arrays beside tensors": lambda: pb.grad(lambda x: pb.sum((x * W - W[0]) * W[:, :1] / W + x * W.T.copy().T))(X),
    "arrays changed later": lambda: change_later(),
    "cotangents along rows": lambda: pb.grad(lambda x: pb.sum(np.sin(pb.sum(np.tanh(x), axis=0)) * W[0]))(X),
    "cotangents along columns": lambda: pb.grad(lambda x: pb.sum(pb.sum(np.tanh(x) * x, axis=1) * W[:, 0]))(X),
    "sums and means": lambda: [
        pb.grad(lambda x: x.mean() * 3.0 + (x * x).sum() + x.sum(1).sum() + x.sum(keepdims=True).mean())(x)
        for x in (X, X.astype("f4"), X.T, X[:1, :1], np.repeat(X, 50, 0))
    ],
    "mixed dtypes": lambda: pb.grads(lambda x, w: pb.sum(np.tanh(x) * w))([X.astype("f4"), W]),
    "integers": lambda: pb.tensor([1, 2]) * pb.tensor([3, 4]) + 2,
    "weak numbers": lambda: [pb.tensor(X.astype("f4")) * 2, 2.5 / pb.tensor(X.astype("f2")), pb.tensor(X) - True],
    "negative zero": lambda: [pb.tensor(X) * -0.0, pb.tensor(X) * 0.0, 0.0 - pb.tensor(X)],
    "empty": lambda: pb.tensor(np.zeros((0, 3))) * 2.0,
    "large": lambda: pb.grad(lambda x: pb.sum(layers(np, x, x)))(np.linspace(0.1, 1, 5000)),
    "big": lambda: pb.value_and_grads(use_much)([BIG, BIG[::-1].copy()]),
    "big short floats": lambda: pb.value_and_grads(use_much)([np.repeat(BIG, 2).astype("f4")] * 2),
    "big second order": lambda: pb.grad(lambda x: pb.sum(pb.grad(lambda y: pb.sum(y * np.sin(y)))(x) * x))(BIG),
    "tape": lambda: record_twice(),
}


BIG = np.linspace(0.1, 1, 140_000)  # above the size from which buffers are recycled
KEPT: list[Any] = []


def use_much(x: Any, w: Any) -> Any:
    KEPT.clear()
    y = x * w
    unused = y * 3.0
    y = y + x
    KEPT.append(y)
    for _ in range(5):  # longer than what is done at once
        y = y * x - w / 2.0
        y = y * y + y
        y = np.tanh(y) + (x + x)
    z = -y
    return pb.sum(z * w + z - 1.5 * y) + pb.sum(unused * 0.0)


def mix_shapes(x: Any, row: Any, column: Any, other: Any, number: Any) -> Any:
    y = x * row + column - other / number
    z = row * x - column + number * other
    return pb.sum(np.tanh(y) * z + (row + number) * (column * number))


MATRICES = [random.uniform(-1, 1, shape) for shape in ((6, 4), (4, 9), (9,), (9, 3))]


def multiply(x: Any, w: Any, b: Any, v: Any) -> Any:
    h = np.tanh(x @ w + b)
    z = (h @ v) * (h @ v[:, ::-1]) + MATRICES[0] @ w @ v
    return pb.sum(z.T @ z) + pb.sum(h[:, 1:5] @ v[2:6]) + pb.sum(np.zeros((3, 0)) @ (v[:0] + 1.0))


def pick_parts(x: Any, w: Any, both: Any) -> Any:
    first = both[:, 0, None, 1] * w[:2, 1, None]  # a column without a stride along its rows
    y = x[:, 1:3] * w[:, 2:4] - x[:, 1:3] + x[0, None, 0]
    z = both[1] * both[0, :, 1:2] - pb.sum(both[:, 1] @ w.T, axis=0)[:, None]
    return pb.sum(y * y[0]) + pb.sum(x[2] * w[1]) + pb.sum(z) + x[1, 2] * x[1, 2] + pb.sum(first)


def change_later(combine: Any = np.multiply) -> Any:
    w = (W if combine is np.multiply else W.T).copy()

    def f(x: Any) -> Any:
        nonlocal w
        y = np.tanh(combine(x, w))
        w[:] = 0.0
        return pb.sum(y)

    return pb.grad(f)(X)


def write(x: Any) -> Any:
    y = x * 2.0
    row = y[0]
    row *= x[1]
    y[1:] = np.sin(y[:-1]) * x[1:]
    y += x
    return pb.sum(y * y)


def record_twice() -> list[Any]:
    x = pb.tensor(X)
    with pb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = layers(np, x, W)
        z = pb.sum(y * y)
    outside = y * 2.0
    return [tape.gradient(z, x), tape.gradient(z, y), tape.gradient(y, x), outside]


@pytest.mark.parametrize("name", [*ELEMENTWISE, *PROGRAMS])
def test_native_ops_give_same_bits_as_python(name: str, outcomes: list[dict[str, Any]]) -> None:
    ours, theirs = outcomes
    assert ours[name] == theirs[name]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name.startswith("big")])
def test_native_fused_runs_give_same_bits_as_python(
    name: str, outcomes: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eager_fused, "WORK_TO_COMPILE", 0)
    assert run_silently(PROGRAMS[name]) == outcomes[1][name]
    assert native.machine.fused.loops


# ---- warnings and errors are NumPy's


HUGE = np.full(3, 1e308)
ODD: dict[str, Callable[[], Any]] = {
    "log of zero": lambda: pb.log(pb.tensor(np.zeros(3))),
    "division of scalars": lambda: pb.tensor(1.0) / pb.tensor(0.0),
    "overflow": lambda: pb.exp(pb.tensor(np.full(3, 1e4))),
    "invalid": lambda: pb.sqrt(pb.tensor(-np.ones(3))),
    "in a rule": lambda: pb.grad(lambda x: pb.sum(pb.sqrt(x)))(np.zeros(3)),
    "in a sum of cotangents": lambda: pb.grad(lambda x: pb.sum(x * HUGE + x * HUGE))(np.ones(3) * 0.5),
    "in rules of big arrays": lambda: pb.grad(lambda x: pb.sum((x * 1e300) * 1e300))(BIG * 1e-300),
    "in a sum of scalar cotangents": lambda: pb.grad(lambda x: x * 1e308 + x * 1e308)(0.5),
    "before a loop that clears flags": lambda: pb.grads(lambda x, y: pb.sum(x / y))([np.zeros(3), np.zeros(3)]),
    "in quotients of big arrays": lambda: pb.grads(lambda x, y: pb.sum(x * y / y * x))([BIG, BIG * 0.0]),
    "in a sum of picked cotangents": lambda: pb.grad(lambda x: pb.sum(x[1:] * HUGE + x[1:] * HUGE))(np.ones(4) * 0.5),
    "in sums of big arrays": lambda: pb.grad(lambda x: pb.sum((x * 1e308 + x * 1e308) * 0.5))(BIG * 0.5),
}


@pytest.mark.parametrize("name", ODD)
def test_native_ops_warn_as_numpy_does(name: str, outcomes: list[dict[str, Any]]) -> None:
    ours, theirs = (found[f"warnings of {name}"] for found in outcomes)
    if "big" in name:  # which are computed in blocks of other lengths
        ours, theirs = sorted({*ours}), sorted({*theirs})
    assert ours == theirs != []
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        ODD[name]()
    with np.errstate(all="ignore"):
        assert list_warnings(ODD[name]) == []


def test_underflow_in_cotangent_of_mean_is_reported_by_numpy() -> None:
    with np.errstate(under="raise"), pytest.raises(FloatingPointError, match="underflow"):
        pb.grad(lambda x: np.mean(x) * 1e-308)(np.ones(20))


@pytest.mark.parametrize("name", [name for name in ODD if "big" in name])
def test_native_fused_runs_warn_as_numpy_does(
    name: str, outcomes: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eager_fused, "WORK_TO_COMPILE", 0)
    assert {*list_warnings(ODD[name])} == {*outcomes[1][f"warnings of {name}"]}
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        ODD[name]()
    with np.errstate(all="ignore"):
        assert list_warnings(ODD[name]) == []


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.square, np.negative, np.exp], ids=str)
@pytest.mark.parametrize("char", "fd")
def test_native_ops_report_floating_point_flags_of_earlier_loops(ufunc: Any, char: str) -> None:
    def overflow_first(x: Any) -> Any:
        return ufunc(x * x, x) if ufunc.nin == 2 else ufunc(x * x)

    program = eager_programs.trace_program(overflow_first, range(1), char)
    values = np.full((eager_records.REGISTERS, 40), np.finfo(char).max, char)
    memory = np.array([v.ctypes.data for v in values])
    strides = np.tile([values.itemsize, 0], eager_records.REGISTERS)
    fields = np.array([eager_records.ARRAY, 0, values.itemsize, 40, 0, 0, 1, 0, 1, 40])
    run = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)(native.machine.addresses["run_program"])
    flags = run(ctypes.addressof(program), memory.ctypes.data, strides.ctypes.data, fields.ctypes.data)
    assert flags & eager_ops.FLAG_OF["over"]


def test_native_ops_underflow_follows_errstate() -> None:
    tiny = pb.tensor(np.full(3, 1e-300))
    assert list_warnings(lambda: tiny * tiny) == []
    with np.errstate(under="raise"), pytest.raises(FloatingPointError, match="underflow"):
        tiny * tiny


def test_error_in_gradient_rule_ends_backward_pass() -> None:
    @pb.custom_grad
    def f(x: Any) -> Any:
        def back(g: Any) -> Any:
            raise RuntimeError("no gradient today")

        return x * 2.0, back

    with pytest.raises(RuntimeError, match="no gradient today"):
        pb.grad(lambda x: pb.sum(np.sin(f(np.cos(x)))))(np.ones(3))
    assert pb.grad(lambda x: pb.sum(np.sin(x)))(np.zeros(3)).tolist() == [1.0, 1.0, 1.0]


def test_observers_see_native_ops() -> None:
    f = pb.grad(lambda x: pb.sum(np.log(x * 0.0)))
    with pb.debug_nans(), pytest.raises(pb.errors.PullbackError, match="log"), np.errstate(all="ignore"):
        f(np.ones(3))


def test_array_resized_under_a_tensor_is_not_read_beyond_its_end() -> None:
    values = np.arange(6.0)
    x = pb.tensor(values)
    kept = x * 1.0
    x.value = values  # the very array, as a leaf holds its caller's
    values.resize((2,), refcheck=False)
    assert kept.shape == (6,)
    with pytest.raises(Exception, match=r"shape|broadcast"):
        (x + kept).numpy()


def test_random_programs_give_same_bits_native_and_in_python(outcomes: list[dict[str, Any]]) -> None:
    ours, theirs = (found["random programs"] for found in outcomes)
    parts = ("numbers", "warnings", "errors")
    differences = [
        (seed, part, str(a)[:200], str(b)[:200])
        for seed in range(RANDOM)
        for part, a, b in zip(parts, ours[seed], theirs[seed], strict=True)
        if a != b
    ]
    assert differences == []
    assert sum(type(outcome) is list for outcome, _, _ in ours) > RANDOM / 3  # the others end in an error
    assert any(texts for _, texts, _ in ours)


# ---- Python that runs in between

OTHER = pb.grads(lambda a, b: pb.sum(np.sin(a * b) * a))
SMALL: list[Any] = []


def compute_otherwise(kind: str, flag: int) -> None:
    """Use the memory of temporaries, and take memory of single numbers that was given back."""
    OTHER([np.full(3, 7.0), np.full(3, 9.0)])
    SMALL.extend(np.full(1, 1e9) for _ in range(50))


def test_gradient_computed_by_error_handler_in_backward_pass() -> None:
    w, x = np.full(3, 1e308), np.full(3, 0.25)
    with np.errstate(over="call", call=compute_otherwise):
        dw = pb.grads(lambda x, w: pb.sum(x * w) + pb.sum(x * 1.7e308))([x, w])[1]
    assert dw.tolist() == [0.25] * 3


def test_native_run_holds_memory_while_python_runs() -> None:
    def f(x: Any, w: Any) -> Any:
        return pb.sum(w * 1e200 * 1e200 + x * x) + 1.25 * pb.sum(x)  # whose cotangent is one number, seen by a view

    with np.errstate(over="call", call=compute_otherwise):
        dx, dw = pb.grads(f)([BIG, BIG * 1e-300])
    assert len(SMALL) > 0
    SMALL.clear()
    assert (dx == 1.25 + BIG + BIG).all()
    assert np.isinf(dw).all()


def test_threads_broadcast_first_operands() -> None:
    f = pb.grads(lambda row, x: pb.sum(row * x))
    wrong: list[Any] = []

    def run(n: float) -> None:
        row, x = np.full(5, n), np.full((3, 5), 2.0)
        for _ in range(300):
            if (f([row, x])[1] != n).any():
                wrong.append(n)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    workers = [threading.Thread(target=run, args=(n,)) for n in (1.0, 2.0, 3.0)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    sys.setswitchinterval(before)
    assert not wrong


# ---- what is made is let go


def test_native_ops_leak_no_references() -> None:
    x, w, nothing = np.linspace(0.1, 1, 10), np.linspace(1, 2, 10), np.linspace(0, 0, 3)
    f = pb.value_and_grads(lambda x, w: pb.sum(layers(np, x, w) * 2.0))
    second = pb.grad(lambda x: pb.sum(pb.grad(lambda x: pb.sum(np.sin(x) * x))(x)))

    float64 = np.dtype(float)
    before = sys.getrefcount(float64)
    for _ in range(50):
        np.dot(x, w)
    numpy_leaks = sys.getrefcount(float64) > before + 10  # NumPy 2.5 keeps a reference at every call of np.dot

    def count() -> tuple[int, int, int]:
        gc.collect()
        return len(gc.get_objects()), sys.getrefcount(x), 0 if numpy_leaks else sys.getrefcount(float64)

    def run() -> None:
        for _ in range(50):
            f([x, w])
            f([0.5, 0.25])
            second(x)
            pb.tensor(x) * pb.tensor(w) + 1.0
            with np.errstate(all="ignore"):
                pb.grad(lambda x: pb.sum(np.log(x)))(nothing)

    run()
    growths = []
    for _ in range(3):  # threads of the test runner make objects too: only what happens every time counts
        first = count()
        run()
        growths.append([a - b for a, b in zip(count(), first, strict=True)])
    assert all(min(map(abs, growth)) <= 10 for growth in zip(*growths, strict=True)), growths


def test_threads_share_native_ops() -> None:
    f = pb.grad(lambda x: pb.sum(layers(np, x, x)))
    wanted = [f(X * n).tobytes() for n in range(1, 5)]
    found: list[bool] = []

    def run(n: int) -> None:
        found.extend(f(X * n).tobytes() == wanted[n - 1] for _ in range(50))

    workers = [threading.Thread(target=run, args=(n,)) for n in range(1, 5)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [True] * 200


# ---- when it is used

COUNTED = (
    "import numpy as np, pullback as pb\n"
    "from pullback.core import native\n"
    "native.NODES_TO_COMPILE = 40\n"
    "native._counts['next'] = 40\n"
    "f = pb.grad(lambda x: np.sin(x) * x)\n"
    "for _ in range(60): f(0.5)\n"
    "print(native.machine is not None, f(0.0))\n"
)


@pytest.mark.parametrize(("setting", "used"), [("1", "True"), ("0", "False")])
def test_native_ops_start_after_enough_nodes_unless_switched_off(setting: str, used: str) -> None:
    environment = {**os.environ, "PULLBACK_NATIVE_OPS": setting, "PULLBACK_SAFE": "0"}
    done = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == [used, "0.0"]


def test_nodes_of_gradient_tapes_count_towards_native_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "machine", None)
    monkeypatch.setattr(native, "_counts", {"seen": 0, "next": 40})
    monkeypatch.setattr(native, "NODES_TO_COMPILE", 40)
    x = pb.variable(X)
    for _ in range(30):
        with pb.GradientTape() as tape:
            y = np.sum(np.sin(x) * x)
        tape.gradient(y, x)
    assert native.machine is not None


@pytest.mark.parametrize(
    ("owner", "name", "change", "message"),
    [
        (eager_programs.UFUNC, "name", 64, "the inner loops of a ufunc"),
        (eager_ops, "_find_offset", lambda kind, name: 0, "the slot"),
        (eager_ops.Machine, "has_same_counts", lambda self: False, "as many references"),
        (eager_ops, "write_code", lambda slots: "no code", "could not be made"),
    ],
)
def test_python_runs_ops_and_warns_when_native_start_fails(
    owner: Any, name: str, change: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "_loaded", [])
    monkeypatch.setattr(native, "machine", None)
    (monkeypatch.setitem if isinstance(owner, dict) else monkeypatch.setattr)(owner, name, change)
    with pytest.warns(RuntimeWarning, match=message):
        assert not native.start()
    assert pb.grad(lambda x: x * x)(3.0) == 6.0
