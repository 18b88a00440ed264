"""Random tensors, differentiable in their parameters where the draw can be reparameterized.

Numbers are drawn by NumPy's generators.  ``seed`` is ``None`` for the generator of the process (see ``seed``), an
integer for the same numbers every time, or a ``numpy.random.Generator``.

The generator of the process is a ``Philox``, whose numbers are functions of their positions in the stream: a compiled
program advances the stream on the host, in every call, and computes the numbers of ``uniform``, ``normal``,
``bernoulli`` and ``dropout`` where they are used; they are the same as without compilation.

Under ``vmap`` every example with a seed of its own gets the numbers of that seed, as in a loop.  With a seed that is
the same for all, or none, there is one draw for each call of the function, shared by all examples; unless a parameter
that differs between examples enters the draw itself (``alpha`` of ``gamma``, ``p``, ``lam``, ``logits``, ``rate``, the
bounds of ``uniform_int``): then it is made for each of them.  ``mean``, ``std_dev``, ``minval``, ``maxval``, ``scale``
and ``beta`` only move what was drawn.

>>> pb.vmap(lambda seed: pb.random.normal([2], seed=seed))(np.arange(3)).shape
(3, 2)
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.composition import check_numbers, pick
from pullback.core.convert import as_dtype, as_number, as_shape, get_default_dtype
from pullback.core.op import REGISTRY, find_op, method
from pullback.core.tape import TAPED, constant
from pullback.core.tensor import Tensor, all_values, call_unfollowed, concrete, may_hold, strip
from pullback.core.variable import get_trace
from pullback.errors import ArgumentError, ShapeError
from pullback.names.answers import install_answers
from pullback.numerics.axis_arguments import resolve_axis

if TYPE_CHECKING:
    from pullback.typing import Array, DType, Lengths, Seed, ShapeLike, TensorLike, Value

__all__ = [
    "bernoulli", "categorical", "dropout", "exponential", "gamma", "get_state", "multinomial", "normal", "permutation",
    "poisson", "rand", "random_gamma", "random_normal", "random_standard_normal", "random_uniform",
    "random_uniform_int", "seed", "set_state", "shuffle", "standard_normal", "truncated_normal", "uniform",
    "uniform_int",
]  # fmt: skip

Shape = tuple[int, ...]
MOST_OFTEN = 9e18  # what NumPy's Poisson numbers, 64-bit integers, can count
PART = 2**14  # numbers that are drawn at a time where they are only compared
FURTHEST = 2**60  # blocks of the generator of the process: places are 64-bit integers
_process: np.random.Generator | None = None  # created at first use: importing NumPy's generators takes time
_lock = threading.RLock()  # while the generator of the process moves on


# ---- what the functions share


def seed(seed: Seed = None) -> None:
    """Seed the generator of the process.

    seed: an integer, None for a random seed, or a generator from which the seed is drawn.

    >>> pb.random.seed(7)
    >>> x = pb.random.normal([3])
    >>> pb.random.seed(7)
    >>> bool(pb.all(pb.random.normal([3]) == x))
    True
    """
    global _process
    if isinstance(seed, np.random.Generator):
        _process = _make_keyed(seed)
    else:
        _process = None if seed is None else _make_seeded(_check_seed("seed", seed))


def get_state() -> dict[str, Any]:
    """Return the state of the generator of the process, as numbers and text, for ``set_state``.

    >>> state = pb.random.get_state()
    >>> x = pb.random.normal([3])
    >>> pb.random.set_state(state)
    >>> bool(pb.all(pb.random.normal([3]) == x))
    True
    """
    state: Any = _get_process_generator().bit_generator.state
    numbers = {name: words.tolist() for name, words in state["state"].items()}
    return {**state, "state": numbers, "buffer": state["buffer"].tolist()}


def set_state(state: Mapping[str, Any]) -> None:
    """Set the state of the generator to one from ``get_state``.

    state: what ``get_state`` returned.

    >>> pb.random.set_state(pb.random.get_state())
    """
    global _process
    kind = state.get("bit_generator") if isinstance(state, dict) else None
    if kind not in ("Philox", "PCG64"):
        raise ArgumentError(f"set_state: expected what get_state gave, a state of Philox, got {kind or state!r}.")
    bits = getattr(np.random, kind)()
    if kind == "PCG64":  # which the generator of the process was
        bits.state = state
        _process = _make_keyed(np.random.Generator(bits))
        return
    words = {name: np.array(word, np.uint64) for name, word in state["state"].items()}
    low, *high = words["counter"].tolist()
    if any(high) or low > FURTHEST or state["has_uint32"]:
        raise ArgumentError(f"set_state: expected what get_state gave, got {state!r}.")
    bits.state = {**state, "state": words, "buffer": np.array(state["buffer"], np.uint64)}
    _process = np.random.Generator(bits)


def _make_seeded(seed: int | None) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed if seed is None or seed >= 0 else [-seed, 1]))


def _make_keyed(source: np.random.Generator) -> np.random.Generator:
    """Return a generator whose key is drawn from another."""
    return np.random.Generator(np.random.Philox(key=source.integers(0, 2**64, 2, np.uint64)))


def _get_process_generator() -> np.random.Generator:
    global _process
    if _process is None:
        _process = _make_seeded(None)
    return _process


def _choose_generator(name: str, seed: Any) -> np.random.Generator:
    if seed is None:
        return _get_process_generator()
    if isinstance(seed, np.random.Generator):
        return seed
    n = _check_seed(name, seed)
    return np.random.default_rng(n if n >= 0 else [-n, 1])  # NumPy's seeds have no sign


def _check_seed(name: str, seed: Any) -> int:
    number = concrete(seed)
    whole = isinstance(number, int | np.integer) or (isinstance(number, float | np.floating) and number.is_integer())
    if isinstance(number, bool) or not whole:
        raise ArgumentError(f"{name}: seed must be None, an integer or a numpy.random.Generator, got {seed!r}.")
    return int(number)


def _draw(name: str, seed: object, draw: Callable[..., Any], *parameters: object, takes_words: bool = False) -> Any:
    """Return ``draw(generator, *parameters)`` of plain values; once per example if one is batched.

    After a draw that does not take whole words of 64 bits the generator of the process begins a new block.
    """

    def run(generator: np.random.Generator, *values: object) -> Any:
        if generator is not _process:
            return draw(generator, *values)
        with _lock:
            drawn = draw(generator, *values)
            if not takes_words:
                _process.bit_generator.advance(0)  # type: ignore[attr-defined]
        return drawn

    if isinstance(seed, Tensor):
        return call_unfollowed(lambda seed, *values: run(_choose_generator(name, seed), *values), seed, *parameters)
    if (program := get_trace()) is None or not (seed is None or isinstance(seed, np.random.Generator)):
        return call_unfollowed(lambda *values: run(_choose_generator(name, seed), *values), *parameters)

    def run_later(_: Any, *values: object) -> Any:  # while a function is traced only shape and dtype are needed
        return run(_choose_generator(name, seed) if get_trace() is None else np.random.default_rng(0), *values)

    return call_unfollowed(run_later, program.get_order_symbol(), *parameters)


# ---- uniform numbers from 0 to 1


def _draw_uniform(name: str, seed: object, shape: Shape, precision: Any) -> Any:
    """Return uniform numbers between 0 and 1 of a shape, in float32 or float64."""
    program = get_trace()
    if program is None or seed is not None:
        return _draw(name, seed, lambda random: _list_next(random, shape, precision), takes_words=True)
    return REGISTRY["draw_uniform"].function(
        *_take_places(program, shape, precision), dtype=np.dtype(precision).str[1:]
    )


def _draw_below(name: str, seed: object, shape: Shape, precision: Any, bound: Any) -> Any:
    """Return where uniform numbers between 0 and 1 are below a bound."""
    program = get_trace()
    if program is None or seed is not None or (isinstance(bound, Tensor) and bound.level):
        return _draw(
            name, seed, lambda random, bound: _compare_next(random, shape, precision, bound), bound, takes_words=True
        )
    at = _take_places(program, shape, precision)
    return REGISTRY["draw_below"].function(*at, precision(bound), dtype=np.dtype(precision).str[1:])


def _list_next(random: np.random.Generator, shape: Shape, precision: Any) -> Any:
    """Return the next numbers of a generator; the process's own draws float32 in pairs, of which one may be dropped."""
    count = math.prod(shape)
    if precision is np.float64 or random is not _process or count % 2 == 0:
        return np.asarray(random.random(shape, precision))
    return random.random(count + 1, precision)[:count].reshape(shape)


def _compare_next(random: np.random.Generator, shape: Shape, precision: Any, bound: Any) -> Any:
    """Return where the next numbers are below a bound; many are drawn in parts, which stay in the cache."""
    count = math.prod(shape)
    if count < 2 * PART or np.ndim(bound):
        return _list_next(random, shape, precision) < bound
    results, buffer = np.empty(count, bool), np.empty(PART, precision)
    for i in range(0, count, PART):
        part = results[i : i + PART]
        odd = part.size % 2 if random is _process and precision is np.float32 else 0
        np.less(random.random(dtype=precision, out=buffer[: part.size + odd])[: part.size], bound, out=part)
    return results.reshape(shape)


def _take_places(program: Any, shape: Shape, precision: Any) -> tuple[Any, ...]:
    """Return the places of the next numbers of the process, and the key, in every call of a compiled program."""
    words = -(-math.prod(shape) // 2) if precision is np.float32 else math.prod(shape)
    each = 2 if precision is np.float32 else 1

    def take(*_: Any) -> Any:
        return np.zeros(3, np.int64) if get_trace() is not None else _take_words(words, each)

    taken = program.add_supply(take, (3,), np.dtype(np.int64))
    if taken is None:
        taken = call_unfollowed(take, program.get_order_symbol())
    before, within = _split_places(shape)
    return taken[0] + before, within, taken[1], taken[2]


def _take_words(words: int, each: int) -> Any:
    """Reserve ``words`` words of the process's stream; return the first place, of ``each`` in a word, and the key."""
    bits: Any = _get_process_generator().bit_generator
    with _lock:
        state = bits.state
        block = int(state["state"]["counter"][0])
        place = 4 * block + state["buffer_pos"] - 4
        blocks, more = divmod(place + words, 4)
        if blocks >= block:
            bits.advance(blocks - block)
            bits.random_raw(more, output=False)
        else:
            bits.random_raw(words, output=False)
    return np.array([each * place, *state["state"]["key"].view(np.int64)])


def _split_places(shape: Shape) -> tuple[Any, Any]:
    """Return two arrays of places whose sum counts the elements of a shape, as small as they can be."""
    sizes = [(math.prod(shape[:i]) + math.prod(shape[i:]), i) for i in range(len(shape) + 1)]
    split = min(sizes)[1]
    within = math.prod(shape[split:])
    before = np.arange(math.prod(shape[:split])) * within
    after = np.arange(within, dtype=np.int32 if within < 2**31 else np.int64)
    return before.reshape(shape[:split] + (1,) * (len(shape) - split)), after.reshape(shape[split:])


def _as_tensor(x: Value) -> Tensor:
    return x if isinstance(x, Tensor) else constant(x)


def _read_parameters(name: str, shape: object, dtype: Any, **parameters: Any) -> tuple[Any, ...]:
    """Return the shape of the result, its dtype, and the parameters; the default is their broadcast shape."""
    numbers = {n: check_numbers(name, n, x) for n, x in parameters.items()}
    wanted = None if shape is None else as_shape(name, shape)
    try:
        whole = np.broadcast_shapes(*[x.shape for x in numbers.values()])
        wanted = whole if wanted is None else wanted
        fits = np.broadcast_shapes(whole, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        listed = ", ".join(f"{n} of shape {x.shape}" for n, x in numbers.items())
        into = "one shape" if wanted is None else f"the shape {wanted} of the result"
        raise ShapeError(f"{name}: {listed} must broadcast to {into}.")
    floats = [x.dtype for n, x in numbers.items() if _has_dtype(parameters[n]) and x.dtype.kind == "f"]
    kind = as_dtype(dtype, name) if dtype is not None else np.result_type(*floats) if floats else get_default_dtype()
    return (wanted, kind, *numbers.values())


def _has_dtype(x: Value) -> bool:
    """Return whether a parameter has a dtype of its own; a Python number, or a symbol for one, has none."""
    return hasattr(x, "dtype") and not getattr(x, "weak", None)


def _stop_parameter(name: str, argument: str, x: Any) -> Any:
    """Return the values of a parameter in which the draw has no derivative."""
    x = check_numbers(name, argument, x)
    if type(x) in TAPED and x.level:
        x.meta.tape.cut(name)
    return strip(x)


def _scale_and_shift(noise: Value, scale: Any, shift: Any, kind: np.dtype[Any]) -> Tensor:
    """Return ``noise * scale + shift`` as a tensor, differentiable in scale and shift."""
    float_kind = kind if kind.kind == "f" else np.dtype(np.float64)
    z: Tensor = _as_tensor(_narrow(noise, float_kind))
    if not (_is_plain(scale, 1) and _is_plain(shift, 0)):
        z = z * _narrow(scale, float_kind) + _narrow(shift, float_kind)
    if kind.kind != "f":
        return _as_tensor(np.rint(_stop_parameter("astype", "x", z)).astype(kind))
    return z if z.dtype == kind else z.astype(kind)


def _is_plain(x: Any, number: float) -> bool:
    return not isinstance(x, Tensor) and x.ndim == 0 and x == number


def _narrow(x: Any, kind: np.dtype[Any]) -> Any:
    """Return a parameter in the dtype of the result."""
    return x if x.dtype == kind else x.astype(kind)


def _check_bounds(name: str, subject: str, x: Any, low: float, high: float = math.inf, strict: bool = False) -> Any:
    """Return the values of a parameter, checked to be within bounds."""
    values = np.asarray(all_values(x))
    bad = ~((values > low if strict else values >= low) & (values <= high))
    if bad.any():
        bounds = f"between {low:g} and {high:g}" if high < math.inf else f"{'above' if strict else 'at least'} {low:g}"
        raise ArgumentError(f"{name}: {subject} must be {bounds}, got {values[bad].flat[0]:g}.")
    return strip(x)


# ---- continuous, and differentiable in their parameters


def _refuse_bools(name: str, kind: np.dtype[Any]) -> None:
    if kind.kind not in "fiu":
        raise ArgumentError(f"{name}: dtype must be of numbers, got {kind}; bernoulli draws truth values.")


def _draw_normal(generator: np.random.Generator, shape: Lengths, kind: np.dtype[Any]) -> Any:
    return np.asarray(generator.standard_normal(shape, np.float32 if kind == np.float32 else np.float64))


def _draw_standard_normal(name: str, seed: object, shape: Shape, kind: np.dtype[Any]) -> Any:
    """Return normally distributed numbers, two from each pair of uniform ones: an angle, and a radius (Box and Muller).

    Only the uniform numbers are drawn on the host; the rest is computed as any other function of arrays is.
    """
    half = -(-math.prod(shape) // 2)
    precision: Any = np.float32 if kind == np.float32 else np.float64
    share = _draw_uniform(name, seed, (2, half), precision)
    radius = np.sqrt(np.log1p(-share[0]) * -2)
    angle = share[1] * precision(2 * math.pi)
    both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
    return np.reshape(both[: math.prod(shape)], shape)


def normal(
    shape: ShapeLike | None = None,
    mean: TensorLike = 0.0,
    std_dev: TensorLike = 1.0,
    dtype: DType = None,
    seed: Seed = None,
) -> Tensor:
    """Return normally distributed numbers, differentiable in ``mean`` and ``std_dev``, which may be tensors.

    Without ``shape`` there is one number for each element of the parameters.

    shape: the shape of the result.
    mean: the mean.
    std_dev: the standard deviation.
    dtype: the dtype of the result.
    seed: a number that makes the draw repeatable; without it, that of ``pb.random.seed``.

    >>> pb.random.normal([2, 3], seed=1).shape
    (2, 3)
    >>> pb.grad(lambda mean: pb.sum(pb.random.normal([4], mean)))(0.0)
    4.0
    """
    wanted, kind, mean, std_dev = _read_parameters("normal", shape, dtype, mean=mean, std_dev=std_dev)
    _refuse_bools("normal", kind)
    return _scale_and_shift(_draw_standard_normal("normal", seed, wanted, kind), std_dev, mean, kind)


def standard_normal(shape: ShapeLike, dtype: DType = None, seed: Seed = None) -> Tensor:
    """Return normally distributed numbers of mean 0 and standard deviation 1.

    shape: the shape of the result.
    dtype: the dtype of the result.
    seed: a number that makes the draw repeatable; without it, that of ``pb.random.seed``.

    >>> pb.random.standard_normal([2], seed=1).shape
    (2,)
    """
    return normal(shape, dtype=dtype, seed=seed)


def truncated_normal(
    shape: ShapeLike | None = None,
    mean: TensorLike = 0.0,
    std_dev: TensorLike = 1.0,
    dtype: DType = None,
    seed: Seed = None,
) -> Tensor:
    """Return normally distributed numbers within two standard deviations of the mean; others are drawn again.

    shape: the shape of the result.
    mean: the mean.
    std_dev: the standard deviation.
    dtype: the dtype of the result.
    seed: a number that makes the draw repeatable; without it, that of ``pb.random.seed``.

    >>> bool(pb.all(pb.abs(pb.random.truncated_normal([1000], seed=1)) <= 2))
    True
    """
    wanted, kind, mean, std_dev = _read_parameters("truncated_normal", shape, dtype, mean=mean, std_dev=std_dev)
    _refuse_bools("truncated_normal", kind)

    def draw(random: np.random.Generator) -> Any:
        noise = _draw_normal(random, wanted, kind)
        while (far := np.abs(noise) > 2).any():
            noise[far] = _draw_normal(random, int(far.sum()), kind)
        return noise

    return _scale_and_shift(_draw("truncated_normal", seed, draw), std_dev, mean, kind)


def uniform(
    shape: ShapeLike | None = None,
    minval: TensorLike = 0.0,
    maxval: TensorLike = 1.0,
    dtype: DType = None,
    seed: Seed = None,
) -> Tensor:
    """Return numbers uniformly distributed between ``minval`` and ``maxval``, differentiable in both.

    shape: the shape of the result.
    minval: the least number.
    maxval: the end of the range.
    dtype: the dtype of the result.
    seed: a number that makes the draw repeatable; without it, that of ``pb.random.seed``.

    >>> pb.random.uniform([2], 3, 4, seed=1) >= 3
    Tensor([True, True], dtype=bool)
    """
    wanted, kind, low, high = _read_parameters("uniform", shape, dtype, minval=minval, maxval=maxval)
    if kind.kind in "iu":
        return uniform_int(wanted, low, high, kind, seed)
    precision: Any = np.float32 if kind == np.float32 else np.float64
    noise = _draw_uniform("uniform", seed, wanted, precision)
    return _scale_and_shift(noise, high - low, low, kind)


def exponential(
    shape: ShapeLike | None = None, scale: TensorLike = 1.0, dtype: DType = None, seed: Seed = None
) -> Tensor:
    """Return exponentially distributed numbers of mean ``scale``, differentiable in it.

    shape: the shape of the result.
    scale: the mean.
    dtype: the dtype of the result.
    seed: a number that makes the draw repeatable; without it, that of ``pb.random.seed``.

    >>> bool(pb.all(pb.random.exponential([5], seed=1) >= 0))
    True
    """
    wanted, kind, scale = _read_parameters("exponential", shape, dtype, scale=scale)
    _check_bounds("exponential", "scale", scale, 0)
    noise = _draw("exponential", seed, lambda random: np.asarray(random.standard_exponential(wanted)))
    return _scale_and_shift(noise, scale, np.zeros(()), kind)


# ---- gamma: implicit differentiation


def gamma(
    shape: ShapeLike | None = None,
    alpha: TensorLike = 1.0,
    beta: TensorLike = 1.0,
    dtype: DType = None,
    seed: Seed = None,
) -> Tensor:
    """Return gamma distributed numbers of shape ``alpha`` and rate ``beta``, differentiable in both, to any order.

    shape: the shape of the result.
    alpha: the shape of the distribution.
    beta: its rate: the inverse of the scale.
    dtype: the dtype of the result.
    seed: a number that makes the draw repeatable; without it, that of ``pb.random.seed``.

    >>> pb.random.gamma([3], 2.0, seed=1).shape
    (3,)
    >>> alpha = np.array([0.5, 2.0, 30.0])
    >>> pb.grad(lambda alpha: pb.random.gamma(None, alpha, seed=1))(alpha)  # on average 1, as the mean is alpha
    array([...])
    """
    wanted, kind, alpha, beta = _read_parameters("gamma", shape, dtype, alpha=alpha, beta=beta)
    origin = np.broadcast_to(_check_bounds("gamma", "alpha", alpha, 0, strict=True), wanted)
    _check_bounds("gamma", "beta", beta, 0, strict=True)
    if kind.kind != "f":
        raise ArgumentError(f"gamma: dtype must be a float, got {kind}.")
    origin = origin.astype(kind)
    least = np.finfo(kind).tiny  # a shape parameter near 0 gives less than the least number
    draw = _draw(
        "gamma", seed, lambda random, origin: np.maximum(np.asarray(random.standard_gamma(origin), kind), least)[()],
        origin,
    )  # fmt: skip
    if isinstance(alpha, Tensor):
        draw_gamma: Any = find_op("gamma_draw")
        whole: Any = np.broadcast_to(_narrow(alpha, kind), wanted)
        z: Tensor = draw_gamma.function(whole, draw, origin[()])
    else:
        z = _as_tensor(draw)
    return z / _narrow(beta, kind) if isinstance(beta, Tensor) or not np.all(beta == 1) else z


# ---- integers: no derivative


def uniform_int(
    shape: ShapeLike, minval: TensorLike, maxval: TensorLike, dtype: DType = "int32", seed: Seed = None
) -> Tensor:
    """Return integers uniformly distributed from ``minval`` to ``maxval - 1``.

    shape: the shape of the result.
    minval: the least number.
    maxval: the end of the range; not included.
    dtype: the dtype of the result.
    seed: a number that makes the draw repeatable; without it, that of ``pb.random.seed``.

    >>> bool(pb.all(pb.random.uniform_int([100], 3, 5, seed=1) < 5))
    True
    """
    low, high = (
        _stop_parameter("uniform_int", argument, x) for argument, x in (("minval", minval), ("maxval", maxval))
    )
    if not np.all(all_values((low < high) & np.isfinite(high - low))):
        raise ArgumentError(f"uniform_int: minval must be less than maxval, got {minval} and {maxval}.")
    kind = as_dtype(dtype, "uniform_int")
    if kind.kind in "iu" and low.size and high.size:
        held = np.iinfo(kind)
        if all_values(low).min(initial=0) < held.min or all_values(high).max(initial=0) > held.max + 1:
            raise ArgumentError(f"uniform_int: {kind} does not hold all from minval {minval} to maxval {maxval}.")
    wanted = _read_parameters("uniform_int", shape, None, minval=low, maxval=high)[0]

    def draw(random: np.random.Generator, low: Array, high: Array) -> Any:
        low, high = (np.ceil(x).astype(np.int64) for x in (low, high))
        return np.asarray(random.integers(low, high, wanted)).astype(kind)

    return _as_tensor(_draw("uniform_int", seed, draw, low, high))


def bernoulli(shape: ShapeLike | None = None, p: TensorLike = 0.5, dtype: DType = None, seed: Seed = None) -> Tensor:
    """Return 1 with probability ``p``, else 0.

    shape: the shape of the result.
    p: the probability of 1.
    dtype: the dtype of the result.
    seed: a number that makes the draw repeatable; without it, that of ``pb.random.seed``.

    >>> pb.random.bernoulli([4], 1.0)
    Tensor([1., 1., 1., 1.], dtype=float32)
    """
    wanted, kind, p = _read_parameters("bernoulli", shape, dtype, p=p)
    p = _check_bounds("bernoulli", "p", _stop_parameter("bernoulli", "p", p), 0, 1)
    return _as_tensor(_draw_below("bernoulli", seed, wanted, np.float64, p).astype(kind))


def poisson(shape: ShapeLike | None = None, lam: TensorLike = 1.0, dtype: DType = None, seed: Seed = None) -> Tensor:
    """Return Poisson distributed integers of mean ``lam``.

    shape: the shape of the result.
    lam: the mean.
    dtype: the dtype of the result.
    seed: a number that makes the draw repeatable; without it, that of ``pb.random.seed``.

    >>> pb.random.poisson([3], 0.0)
    Tensor([0., 0., 0.], dtype=float32)
    """
    wanted, kind, lam = _read_parameters("poisson", shape, dtype, lam=lam)
    lam = _check_bounds("poisson", "lam", _stop_parameter("poisson", "lam", lam), 0)
    if (most := np.asarray(all_values(lam)).max(initial=0)) > MOST_OFTEN:
        raise ArgumentError(f"poisson: lam must be at most {MOST_OFTEN:g}, got {most:g}.")
    return _as_tensor(_draw("poisson", seed, lambda random, x: np.asarray(random.poisson(x, wanted)).astype(kind), lam))


def categorical(logits: TensorLike, num_samples: int, dtype: DType = "int32", seed: Seed = None) -> Tensor:
    """Return classes drawn with the probabilities ``softmax(logits)`` over the last axis, ``num_samples`` per row.

    logits: scores, whose exponentials are proportional to probabilities.
    num_samples: how many numbers are drawn for each row.
    dtype: the dtype of the result.
    seed: a number that makes the draw repeatable; without it, that of ``pb.random.seed``.

    >>> pb.random.categorical(np.array([[0.0, 100.0], [100.0, 0.0]]), 3)
    Tensor([[1, 1, 1], [0, 0, 0]], dtype=int32)
    """
    x = _stop_parameter("categorical", "logits", logits)
    _check_classes("categorical", "logits", x)

    def likely(x: Array) -> Any:
        x = np.asarray(x, np.float64)
        top = np.max(x, axis=-1, keepdims=True)
        if not np.isfinite(top).all():
            raise ArgumentError("categorical: every row of logits must have a largest one that is finite.")
        return np.exp(x - top)

    return _pick_positions("categorical", x, likely, num_samples, dtype, seed)


def multinomial(logits: TensorLike, num_samples: int, seed: Seed = None, normalized: bool = False) -> Tensor:
    """Return ``categorical`` by its name in TensorFlow.js; with ``normalized`` the logits are probabilities.

    logits: scores, whose exponentials are proportional to probabilities.
    num_samples: how many numbers are drawn for each row.
    seed: a number that makes the draw repeatable; without it, that of ``pb.random.seed``.
    normalized: whether ``logits`` are probabilities already.

    >>> pb.multinomial([0.0, 1.0], 4, normalized=True)
    Tensor([1, 1, 1, 1], dtype=int32)
    """
    if not normalized:
        return categorical(logits, num_samples, seed=seed)
    p = _check_bounds("multinomial", "a probability", _stop_parameter("multinomial", "logits", logits), 0)
    _check_classes("multinomial", "logits", p)
    return _pick_positions("multinomial", p, lambda p: np.asarray(p, np.float64), num_samples, "int32", seed)


def _check_classes(name: str, subject: str, x: Value) -> None:
    if not x.ndim or not x.shape[-1]:
        raise ShapeError(f"{name}: {subject} must have a last axis of at least one class, got shape {x.shape}.")


def _pick_positions(
    name: str, x: Any, likely: Callable[[Any], Any], num_samples: int, dtype: DType, seed: Any
) -> Tensor:
    """Draw positions along the last axis with the weights ``likely(x)``."""
    (n,) = as_shape(f"{name}: num_samples", [num_samples])
    (*lead, classes), kind = x.shape, as_dtype(dtype, name)
    rows = math.prod(lead)

    def draw(random: np.random.Generator, x: Array) -> Any:
        below = np.cumsum(likely(x).reshape(rows, classes), axis=1)
        if not np.all(below[:, -1] > 0):
            raise ArgumentError(f"{name}: the probabilities of a row must not all be 0.")
        below /= below[:, -1:]
        share = random.random((rows, n))
        positions = np.empty((rows, n), np.int64)
        for i in range(rows):
            positions[i] = np.searchsorted(below[i], share[i], side="right")
        return positions.reshape(*lead, n).astype(kind)

    return _as_tensor(_draw(name, seed, draw, x))


# ---- of given tensors


def permutation(n: int, seed: Seed = None) -> Tensor:
    """Return the integers from 0 to ``n - 1`` in random order.

    n: how many.
    seed: a number that makes the draw repeatable; without it, that of ``pb.random.seed``.

    >>> pb.sum(pb.random.permutation(5)).item()
    10
    """
    (n,) = as_shape("permutation: n", [n])
    return _as_tensor(_draw("permutation", seed, lambda random: random.permutation(n).astype(np.int32)))


def shuffle(x: TensorLike, axis: int = 0, seed: Seed = None) -> Any:
    """Return ``x`` with its slices along ``axis`` in random order, differentiable in ``x``.

    x: a tensor, an array or a number.
    axis: the axis; a negative one counts from the last.
    seed: a number that makes the draw repeatable; without it, that of ``pb.random.seed``.

    >>> float(np.sum(pb.random.shuffle(np.array([1.0, 2.0, 3.0]))))
    6.0
    """
    x = check_numbers("shuffle", "x", x)
    at = resolve_axis(len(x.shape), axis, "shuffle")
    return pick(x, _draw("shuffle", seed, lambda random: random.permutation(x.shape[at])), at)


@method
def dropout(x: TensorLike, rate: float, noise_shape: ShapeLike | None = None, seed: Seed = None) -> Any:
    """Return ``x`` with a fraction ``rate`` of its elements set to 0, and the others scaled by ``1 / (1 - rate)``.

    ``noise_shape`` has length 1 (and ``None`` for the length of ``x``) along the axes that are dropped together.
    Under ``vmap`` all examples lose the same elements, unless each has a seed of its own.

    x: a tensor, an array or a number.
    rate: the fraction of the elements that become 0.
    noise_shape: the shape in which zeros are drawn, broadcast against ``x``.
    seed: a number that makes the draw repeatable; without it, that of ``pb.random.seed``.

    >>> pb.dropout(np.array([1.0, 2.0]), 0)
    array([1., 2.])
    >>> y = pb.dropout(np.ones(1000), 0.5, seed=1)
    >>> sorted({*y.tolist()})
    [0.0, 2.0]
    """
    x = check_numbers("dropout", "x", x)
    if x.dtype.kind != "f":
        raise ArgumentError(f"dropout: x must be of a float dtype, got {x.dtype}.")
    share: Any = strip(rate)
    rates = all_values(share) if isinstance(share, Tensor) else as_number("dropout", "rate", rate)
    if not np.all((rates >= 0) & (rates < 1)):
        raise ArgumentError(f"dropout: rate must be at least 0 and less than 1, got {rate}.")
    shape = x.shape
    if noise_shape is not None:
        if not isinstance(noise_shape, list | tuple):
            raise ArgumentError(f"dropout: noise_shape must be a list of lengths or None, got {noise_shape!r}.")
        lengths = list(noise_shape)
        if len(lengths) == len(shape):
            lengths = [n if m is None else m for m, n in zip(lengths, shape, strict=True)]
        if len(lengths) > len(shape) or any(m not in (1, n) for m, n in zip(lengths[::-1], shape[::-1], strict=False)):
            raise ShapeError(f"dropout: noise_shape {noise_shape} must broadcast to the shape {shape} of x.")
        shape = tuple(lengths)
    if not may_hold(np.asarray(rates) if not isinstance(share, Tensor) else share):
        return x
    keep: Any = 1 - share
    stays = _draw_below("dropout", seed, shape, np.float32, keep)
    return x * (stays / (keep.astype(x.dtype) if isinstance(share, Tensor) else np.array(1 - rate, x.dtype)))


def rand(shape: ShapeLike, rand_function: Callable[[], float], dtype: DType = None) -> Tensor:
    """Return a tensor of numbers from calls of a function.

    shape: the shape of the result.
    rand_function: a function without arguments that returns a number.
    dtype: the dtype of the result.

    >>> pb.rand([2, 2], lambda: 0.5)
    Tensor([[0.5, 0.5], [0.5, 0.5]], dtype=float32)
    """
    wanted = as_shape("rand", shape)
    kind = get_default_dtype() if dtype is None else as_dtype(dtype, "rand")
    if not callable(rand_function):
        raise ArgumentError(f"rand: rand_function must be a function without arguments, got {rand_function!r}.")

    def fill(random: np.random.Generator) -> Any:
        numbers = [as_number("rand", "rand_function()", rand_function()) for _ in range(math.prod(wanted))]
        return np.array(numbers, np.float64).reshape(wanted).astype(kind)

    return _as_tensor(_draw("rand", None, fill))


# ---- TensorFlow.js's names

random_normal = normal
random_standard_normal = standard_normal
random_uniform = uniform
random_uniform_int = uniform_int
random_gamma = gamma


install_answers("pb.random")
