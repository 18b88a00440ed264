"""Random numbers in compiled programs: those of NumPy's Philox, computed where they are used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exhaustive import sample

import pullback as pb
from pullback.compiler.runtime.llvm import llvm_available
from pullback.errors import TracedDrawWarning
from pullback.ops.draws import draw_below, draw_uniform

SHAPES = [(), (1,), (7,), (64,), (5, 3), (33, 65), (3, 1, 50), (2, 0)]
DRAWS: dict[str, Any] = {
    "uniform": lambda shape, dtype: pb.random.uniform(shape, -1, 3, dtype),
    "normal": lambda shape, dtype: pb.random.normal(shape, dtype=dtype),
    "bernoulli": lambda shape, dtype: pb.random.bernoulli(shape, 0.3, dtype),
    "dropout": lambda shape, dtype: pb.dropout(np.ones(shape, dtype), 0.4),
    "dropout of rows": lambda shape, dtype: pb.dropout(np.ones((6, *shape), dtype), 0.4, (6, *(1 for _ in shape))),
}


def repeat(f: Any, *args: Any) -> list[Any]:
    pb.random.seed(11)
    made = [np.asarray(f(*args)) for _ in range(3)]
    return [*made, np.asarray(pb.random.uniform((3,), dtype="f8"))]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_compiled_draws_equal_eager_draws(name: str, dtype: str) -> None:
    for shape in sample(SHAPES, 2, first=["f4", "f8"].index(dtype)):
        compiled = pb.compile(lambda shape=shape: DRAWS[name](shape, dtype))
        for found, expected in zip(
            repeat(compiled), repeat(lambda shape=shape: DRAWS[name](shape, dtype)), strict=True
        ):
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            if name == "normal":
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(found, expected)


def test_compiled_draws_keep_their_order_among_draws_of_numpy() -> None:
    def draw() -> Any:
        first, _, by_numpy = pb.random.uniform((5,)), pb.random.uniform((3,)), pb.random.gamma((4,), 2.0)
        steps = pb.map(lambda x: x + pb.random.uniform((2,)), np.zeros(3, "f4"))
        return np.concatenate([first, by_numpy, np.ravel(steps), pb.random.uniform((2,))])

    for found, expected in zip(repeat(pb.compile(draw)), repeat(draw), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_compiled_draws_of_any_position_and_key(dtype: str) -> None:
    random = np.random.default_rng(3)
    place, key = random.integers(0, 500, 70).astype(np.int32), random.integers(-9, 9, 70)
    given = np.int64(2**40 + 3), place, key, np.int64(5)
    np.testing.assert_array_equal(
        pb.compile(lambda *xs: draw_uniform(*xs, dtype=dtype))(*given), draw_uniform(*given, dtype=dtype)
    )
    columns = (
        np.arange(60)[:, None] * 90,
        np.arange(90, dtype=np.int32),
        np.int64(1),
        np.int64(-1),
        np.dtype(dtype).type(0.5),
    )
    transposed = pb.compile(lambda x, *xs: x.T + draw_below(*xs, dtype=dtype).T)
    np.testing.assert_array_equal(transposed(np.ones((60, 90)), *columns), 1.0 + draw_below(*columns, dtype=dtype).T)


def test_philox_matches_published_vectors() -> None:
    """The words of Philox4x64-10 for a counter and a key of zeros: its first block, which NumPy skips, is block -1."""
    expected = [0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B]
    found = pb.compile(lambda at, key: draw_uniform(at, np.arange(4, dtype=np.int32), key, key))(
        np.int64(-4), np.int64(0)
    )
    np.testing.assert_array_equal(found, [(word >> 11) / 2**53 for word in expected])


def test_dropout_mask_is_not_stored() -> None:
    x = np.ones((64, 96), np.float32)
    if not llvm_available():
        pytest.skip("there is no machine code")
    program = pb.compile(lambda x: pb.relu(pb.dropout(x * 2, 0.5)) + x).lower(x)
    full = [step for step in program.stages.fused.steps if "draw_below" in getattr(step, "name", "")]
    assert len(full) == 1
    assert {"mul", "draw_below", "add"} <= {n.name for n in full[0].nodes}
    stored = [n for n in full[0].nodes if n.number in program.stages.fused.stored]
    assert [n.name for n in stored] == ["add"]


def test_dropout_gradient_uses_mask_of_forward_pass() -> None:
    x = np.ones((50, 40))
    value, slope = pb.compile(pb.value_and_grad(lambda x: np.sum(pb.dropout(x, 0.5) ** 2)))(x)
    assert value == np.sum(slope) / 2
    assert sorted({*slope.ravel().tolist()}) == [0.0, 8.0]


def test_compiled_draws_have_right_moments_and_histogram() -> None:
    draw = pb.compile(lambda: (pb.random.uniform((200, 500), dtype="f4"), pb.random.normal((100000,), dtype="f8")))
    pb.random.seed(1)
    u, z = (np.asarray(x) for x in draw())
    counts = np.histogram(u, 100, (0, 1))[0]
    assert abs(np.sum((counts - 1000) ** 2 / 1000) - 99) < 5 * np.sqrt(2 * 99)
    assert abs(z.mean()) < 5 / np.sqrt(z.size)
    assert abs(z.var() - 1) < 5 * np.sqrt(2 / z.size)
    assert abs(np.mean(z**4) - 3) < 5 * np.sqrt(96 / z.size)
    assert abs(np.mean(z[1:] * z[:-1])) < 5 / np.sqrt(z.size)


GENERATOR = np.random.default_rng(0)


def test_numpy_draws_while_tracing_warn() -> None:
    generator = np.random.default_rng(0)

    def add_noise(x: Any) -> Any:
        return x + generator.normal(size=3)

    functions: list[Any] = [
        lambda x: x + np.random.normal(size=3),  # noqa: NPY002
        lambda x: x + generator.normal(size=3),
        lambda x: add_noise(x),
        lambda x: pb.scan(lambda c, v: (c + v * generator.normal(), None), 0.0, x)[0],
        lambda x: pb.map(lambda v: v * GENERATOR.normal(), x),
    ]
    for f in functions:
        with pytest.warns(TracedDrawWarning, match="pb.random") as caught:
            pb.compile(f)(np.zeros(3))
        assert caught[0].filename == __file__
    pb.compile(lambda x: x + pb.random.normal(x.shape))(np.zeros(3))  # warnings are errors in tests


def test_draws_of_replaced_global_generator_while_tracing_warn() -> None:
    before = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(3))
    try:
        with pytest.warns(TracedDrawWarning, match="pb.random"):
            pb.compile(lambda x: x + np.random.random())(np.zeros(3))  # noqa: NPY002
        pb.compile(lambda x: x + 1.0)(np.zeros(3))  # warnings are errors in tests
    finally:
        np.random.set_bit_generator(before)
