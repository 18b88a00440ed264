"""What each hand-written mechanism buys: times with it switched off, as multiples of those with it on.

    python benchmarks/mechanisms.py                # all rows, some minutes
    python benchmarks/mechanisms.py "native entry"  # the rows of one mechanism

Every time is measured in a process of its own, on and off in turn.  Printed are the median of the ratios, the lowest
and the highest of them, and the lowest time with the mechanism on.  Times are of the processor, so that other
programs disturb them little; those of threads are of the clock.  ``docs/design-notes.md`` has the results.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from statistics import median
from time import perf_counter, process_time
from typing import Any

ROUNDS = 5
Measure = Callable[[], float]


def time_calls(f: Callable[[], Any], calls: int, clock: Callable[[], float] = process_time) -> float:
    """Return the seconds of one call, the best of several runs of so many."""
    f()
    f()
    best = float("inf")
    for _ in range(5):
        begin = clock()
        for _ in range(calls):
            f()
        best = min(best, (clock() - begin) / calls)
    return best


def measure_small_call() -> float:
    import numpy as np

    import pullback as pb

    f, x = pb.compile(lambda x: x * 2.0 + 1.0, threads=1), np.ones(10)
    return time_calls(lambda: f(x), 2000)


def measure_train_step() -> float:
    """Return the time of a gradient of a model of 20 parameters, compiled."""
    import numpy as np

    import pullback as pb

    def loss(params: Any, x: Any) -> Any:
        for w, b in params:
            x = np.tanh(x @ w + b)
        return np.sum(x * x)

    random = np.random.default_rng(0)
    params = [(random.normal(size=(16, 16)), np.zeros(16)) for _ in range(10)]
    f, x = pb.compile(pb.grad(loss, argnums=0), threads=1), random.normal(size=(8, 16))
    return time_calls(lambda: f(params, x), 500)


def measure_first_call(with_imports: bool) -> Measure:
    """Return a measure of the processor time of a first compiled call in a new process."""

    def measure() -> float:
        begin = process_time()
        import numpy as np

        import pullback as pb

        def loss(w: Any, x: Any) -> Any:
            hidden = np.tanh(x @ w)
            return np.sum(np.log(np.sum(np.exp(hidden), -1)))

        begin = begin if with_imports else process_time()
        pb.compile(pb.grad(loss, argnums=0))(np.ones((8, 8)), np.ones((4, 8)))
        return process_time() - begin

    return measure


def measure_many_first_calls() -> float:
    """Return the processor time of the first calls of 40 small programs, after the imports."""
    import numpy as np

    import pullback as pb

    def make(n: int) -> Callable[[Any], Any]:
        return lambda x: np.sum(np.tanh(x * (n + 0.5)) + np.exp(x - n))

    begin, x = process_time(), np.ones(10)
    for n in range(40):
        pb.compile(make(n))(x)
    return process_time() - begin


def measure_compiling() -> float:
    """Return the time of the first call of a gradient with several functions, after another program."""
    import numpy as np

    import pullback as pb

    pb.compile(lambda x: np.sum(x * x))(np.ones(3))
    f = pb.compile(pb.grad(lambda x: np.sum(np.tanh(np.sin(x) * np.exp(-x * x / 2) + np.log(1 + x * x)))))
    begin = process_time()
    f(np.ones(1000))
    return process_time() - begin


def measure_results(n: int) -> Measure:
    """Return a measure of the compiled gradient of a polynomial by four arrays of ``n`` elements."""

    def measure() -> float:
        import numpy as np

        import pullback as pb

        arrays = [np.full(n, 0.1 * i) for i in range(1, 5)]
        f = pb.compile(pb.grads(lambda a, b, c, d: np.sum(a * b + b * c * d + d * d)), threads=1)
        return time_calls(lambda: f(arrays), max(3, 10_000_000 // n))

    return measure


def measure_threads() -> float:
    import numpy as np

    import pullback as pb

    pb.set_num_threads(2)
    f, x = pb.compile(lambda x: np.sum(np.sin(np.exp(np.sin(x))))), np.linspace(0, 1, 1_000_000)
    return time_calls(lambda: f(x), 3, perf_counter)


def measure_product(m: int, k: int, n: int) -> Measure:
    def measure() -> float:
        import numpy as np

        import pullback as pb

        random = np.random.default_rng(0)
        x, w, b = (random.normal(size=s).astype("f4") for s in ((m, k), (k, n), (n,)))
        f = pb.compile(lambda x, w, b: np.maximum(x @ w + b, 0), threads=1)
        return time_calls(lambda: f(x, w, b), max(3, 20_000_000 // (m * k * n)))

    return measure


def measure_attention() -> float:
    """Return the time of the compiled gradients of 32 small attention heads."""
    import numpy as np

    import pullback as pb

    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = np.exp(q @ np.swapaxes(k, -1, -2))
        return np.sum((scores / np.sum(scores, -1, keepdims=True)) @ v)

    random = np.random.default_rng(0)
    qkv = [random.normal(size=(32, 64, 16)).astype("f4") / 4 for _ in range(3)]
    f = pb.compile(pb.grads(attend), threads=1)
    return time_calls(lambda: f(qkv), 20)


def measure_cholesky(gradient: bool) -> Measure:
    """Return a measure of 1000 compiled Cholesky factors of 8 × 8 matrices, or of the gradient of their sum."""

    def measure() -> float:
        import numpy as np

        import pullback as pb

        a = np.random.default_rng(0).normal(size=(1000, 8, 8)).astype("f4")
        a = a @ a.transpose(0, 2, 1) + 8 * np.eye(8, dtype="f4")
        f = pb.compile(pb.grad(lambda a: np.sum(np.linalg.cholesky(a))) if gradient else np.linalg.cholesky, threads=1)
        return time_calls(lambda: f(a), 10)

    return measure


def measure_python_loop(first: bool) -> Measure:
    """Return a measure of the gradient of a recurrent network, a Python loop: its first call, or another one."""

    def measure() -> float:
        import numpy as np

        import pullback as pb

        def loss(w: Any, u: Any, xs: Any) -> Any:
            h = np.zeros((8, 32))
            for x in xs:
                h = np.tanh(x @ w + h @ u)
            return np.sum(h * h)

        random = np.random.default_rng(0)
        args = [random.normal(size=s) / 8 for s in ((32, 32), (32, 32), (400, 8, 32))]
        f = pb.compile(pb.grad(loss, argnums=(0, 1)), threads=1, cache=False)
        begin = process_time()
        f(*args)
        return process_time() - begin if first else time_calls(lambda: f(*args), 20)

    return measure


def measure_dropout() -> float:
    """Return the time of a compiled dropout of a million elements and a sum."""
    import numpy as np

    import pullback as pb

    f, x = pb.compile(lambda x: np.sum(pb.dropout(x, 0.5) * x), threads=1), np.ones((1000, 1000), "f4")
    return time_calls(lambda: f(x), 5)


def measure_fourier(rows: int, n: int) -> Measure:
    """Return a measure of the compiled gradient of a power spectrum."""

    def measure() -> float:
        import numpy as np

        import pullback as pb

        x = np.random.default_rng(0).normal(size=(rows, n))
        f = pb.compile(pb.grad(lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 2)), threads=1)
        return time_calls(lambda: f(x), max(3, 1_000_000 // (rows * n)))

    return measure


def measure_convolution(images: int, size: int, channels: int, k: int, gradient: bool) -> Measure:
    """Return a measure of an eager convolution of images, or of its gradients by images and filter."""

    def measure() -> float:
        import numpy as np

        import pullback as pb

        random = np.random.default_rng(0)
        x = random.normal(size=(images, size, size, channels)).astype("f4")
        w = random.normal(size=(k, k, channels, channels)).astype("f4") / channels
        gradients = pb.grads(lambda x, w: pb.sum(pb.conv2d(x, w, 1, "same")))
        return time_calls((lambda: gradients([x, w])) if gradient else (lambda: pb.conv2d(x, w, 1, "same")), 3)

    return measure


def measure_pooling() -> float:
    import numpy as np

    import pullback as pb

    x = np.random.default_rng(0).normal(size=(16, 28, 28, 16)).astype("f4")
    gradient = pb.grad(lambda x: pb.sum(pb.max_pool(x, 2, 2)))
    return time_calls(lambda: gradient(x), 20)


def measure_gather() -> float:
    import numpy as np

    import pullback as pb

    random = np.random.default_rng(0)
    table, rows = random.normal(size=(10000, 64)).astype("f4"), random.integers(0, 10000, 4096)
    weights = random.normal(size=(4096, 64)).astype("f4")
    gradient = pb.grad(lambda table: pb.sum(pb.gather(table, rows) * weights))
    return time_calls(lambda: gradient(table), 20)


def measure_linear_algebra(name: str, rows: int) -> Measure:
    """Return a measure of the eager gradient of the logarithm of a determinant, or of a Gaussian likelihood."""

    def measure() -> float:
        import numpy as np

        import pullback as pb

        random = np.random.default_rng(0)
        m, y = random.normal(size=(rows, rows)), random.normal(size=(rows, 1))
        programs = {
            "slogdet": lambda a: np.linalg.slogdet(a)[1],
            "solve": lambda a: np.sum(np.linalg.solve(a, y) * y),
            "likelihood": lambda a: pb.sum(pb.linalg.triangular_solve(np.linalg.cholesky(a), y, lower=True) ** 2),
        }
        gradient, a = pb.grad(programs[name]), m @ m.T + rows * np.eye(rows)
        return time_calls(lambda: gradient(a), 20)

    return measure


def measure_large_gradient() -> float:
    import numpy as np

    import pullback as pb

    x = np.linspace(-1, 1, 1_000_000)
    g = pb.grad(lambda x: np.sum(np.tanh(np.sin(x) * x + np.exp(-x * x)) * x))
    return time_calls(lambda: g(x), 2)


def measure_descent() -> float:
    """Return the time of a step of gradient descent on a layer normalization written with NumPy functions."""
    import numpy as np

    import pullback as pb

    def loss(x: Any) -> Any:
        centered = x - np.mean(x, 1, keepdims=True)
        return np.sum((centered / np.sqrt(np.mean(centered**2, 1, keepdims=True) + 1e-5)) ** 3)

    g, state = pb.value_and_grad(loss), [np.linspace(-1, 1, 50_000).reshape(500, 100), np.zeros((500, 100))]

    def step() -> None:
        state[1] = 0.9 * state[1] + 0.1 * g(state[0]).grad
        state[0] = state[0] - 1e-3 * state[1]

    return time_calls(step, 50)


def measure_small_ops(second: bool) -> Measure:
    """Return a measure of the gradient of 100 ops on 10 elements, or of the gradient of a gradient of 10."""

    def measure() -> float:
        import numpy as np

        import pullback as pb

        def chain(x: Any) -> Any:
            y = x
            for _ in range(25):
                y = pb.sin(pb.tanh(y) * x + x)
            return pb.sum(y)

        def tower(x: Any) -> Any:
            for _ in range(10):
                x = pb.tanh(x)
            return pb.sum(x)

        x = np.linspace(0.1, 1, 10)
        g = pb.grad(lambda x: pb.sum(pb.grad(tower)(x))) if second else pb.grad(chain)
        for _ in range(1000):  # until machine code is used
            g(x)
        return time_calls(lambda: g(x), 200)

    return measure


def measure_big_ops() -> float:
    """Return the time of the gradients of 10 products and sums of a million elements."""
    import numpy as np

    import pullback as pb

    def f(x: Any, w: Any) -> Any:
        y = ((x * w + x) * x - w) * w + x
        return pb.sum((y * y - x) * w + w)

    g, xs = pb.grads(f), [np.linspace(0.1, 1, 10**6, dtype="f4"), np.linspace(1, 0.1, 10**6, dtype="f4")]
    for _ in range(2000):  # until native ops are compiled
        g([x[:10] for x in xs])
    for _ in range(20):  # until the run is compiled
        g(xs)
    return time_calls(lambda: g(xs), 5)


def measure_sum(axis: int | None, *shape: int) -> Measure:
    """Return a measure of an eager sum."""

    def measure() -> float:
        import numpy as np

        import pullback as pb

        x = np.linspace(-1, 1, np.prod(shape), dtype="f4").reshape(shape)
        pb.sum(x, axis)
        return time_calls(lambda: pb.sum(x, axis), 50)

    return measure


def measure_import() -> float:
    begin = process_time()
    import pullback  # noqa: F401

    return process_time() - begin


def list_convolutions(*sizes: tuple[int, int, int, int]) -> dict[str, Measure]:
    """Return the rows of convolutions of some numbers of images, sizes, channels and filters."""
    return {
        f"{'gradients of ' * gradient}conv2d {k} × {k}, {images} × {size} × {size} × {channels}":
            measure_convolution(images, size, channels, k, gradient)
        for images, size, channels, k in sizes for gradient in (False, True)
    }  # fmt: skip


ROWS: dict[str, dict[str, Measure]] = {
    "native entry": {"x * 2 + 1, 10 elements": measure_small_call, "gradient of 20 arrays": measure_train_step},
    "memory pool": {
        "gradients by 4 arrays, 1e4 elements": measure_results(10_000),
        "the same, 1e5 elements": measure_results(100_000),
        "the same, 5e6 elements": measure_results(5_000_000),
    },
    "object loader": {
        "first call, from the disk cache, with imports": measure_first_call(True),
        "the same, after the imports": measure_first_call(False),
        "40 programs from the disk cache": measure_many_first_calls,
    },
    "thread pool": {"sin(exp(sin(x))), 1e6 elements, 2 threads, clock": measure_threads},
    "matrix products": {
        "relu(x @ w + b), 8 × 16 × 16": measure_product(8, 16, 16),
        "the same, 32 × 64 × 64": measure_product(32, 64, 64),
        "the same, 128 × 256 × 256": measure_product(128, 256, 256),
        "gradient of 20 arrays, 10 layers, 8 × 16 × 16": measure_train_step,
        "gradient of attention, 32 × 64 × 16": measure_attention,
        "1000 Cholesky factors, 8 × 8": measure_cholesky(False),
        "gradient of 1000 Cholesky factors, 8 × 8": measure_cholesky(True),
    },
    "loop rolling": {
        "gradient of an RNN, 400 steps, first call": measure_python_loop(True),
        "the same, a call": measure_python_loop(False),
    },
    "Winograd convolutions": list_convolutions((8, 56, 64, 3), (4, 14, 256, 3)),
    "deferred slow paths": {"gradient of tanh, sin, exp and log, first call": measure_compiling},
    "compiled draws": {"sum of dropout, 1e6 float32": measure_dropout},
    "Fourier transforms": {
        "gradient of a power spectrum, 1000 × 64": measure_fourier(1000, 64),
        "the same, 4 × 4096": measure_fourier(4, 4096),
    },
    "eager kernels": {
        **list_convolutions((8, 56, 64, 3), (16, 14, 32, 5), (4, 14, 256, 3)),
        "gradient of max_pool, 16 × 28 × 28 × 16": measure_pooling,
        "gradient of gather, 4096 of 10000 × 64": measure_gather,
        "gradient of sin, exp and tanh, 1e6 elements": measure_large_gradient,
        "sum of 1e6 float32": measure_sum(None, 10**6),
        "sum of the columns of 1e5 × 3 float32": measure_sum(0, 10**5, 3),
        "gradient of slogdet, 300 rows": measure_linear_algebra("slogdet", 300),
        "gradient of solve, 300 equations": measure_linear_algebra("solve", 300),
        "gradient of a likelihood by Cholesky, 64 points": measure_linear_algebra("likelihood", 64),
    },
    "native ops": {
        "gradient of 100 ops, 10 elements": measure_small_ops(False),
        "gradient of a gradient of 10 ops, 10 elements": measure_small_ops(True),
        "gradients of 10 ops, 1e6 float32": measure_big_ops,
    },
    "fused runs": {"gradients of 10 ops, 1e6 float32": measure_big_ops},
    "buffer recycling": {"gradient of 8 ops, 1e6 elements": measure_large_gradient},
    "kept memory": {"step of gradient descent, layer normalization of 500 × 100": measure_descent},
    "lazy ops": {"import pullback": measure_import},
    "disk cache": {
        "first call in a new process, with imports": measure_first_call(True),
        "the same, after the imports": measure_first_call(False),
    },
}
KEPT = {"object loader", "disk cache"}  # measured with a disk cache that has the program already


def run_row(mechanism: str, row: str, on: bool, cache: str) -> float:
    """Measure one row in a process of its own, with the mechanism on or off."""
    from pullback.settings import MECHANISMS  # not where pullback's own import is measured

    kept = {"PULLBACK_CACHE_DIR": cache} if mechanism in KEPT else {"PULLBACK_CACHE": "0"}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **kept, MECHANISMS[mechanism]: str(int(on))}
    command = [sys.executable, __file__, "--run", mechanism, row]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def run_pairs(mechanism: str, row: str) -> list[list[float]]:
    """Measure one row on and off in turn, each time in a process of its own."""
    with tempfile.TemporaryDirectory() as cache:
        for on in (True, False):
            run_row(mechanism, row, on, cache)
        return [[run_row(mechanism, row, on, cache) for on in (True, False)] for _ in range(ROUNDS)]


def main() -> None:
    wanted = sys.argv[1:] or [*ROWS]
    print("| mechanism | measured | off / on | on |\n|---|---|---|---|")
    for mechanism in wanted:
        for row in ROWS[mechanism]:
            pairs = run_pairs(mechanism, row)
            ratios = [off / on for on, off in pairs]
            spread = f"{median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"
            print(f"| {mechanism} | {row} | {spread} | {min(on for on, _ in pairs) * 1e3:.4g} ms |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        print(ROWS[sys.argv[2]][sys.argv[3]]())
    else:
        main()
