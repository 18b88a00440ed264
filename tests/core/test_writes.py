"""Views and in-place writes: the same results as in NumPy, under every transform."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from core.view_programs import SIZE, load, program
from differences import gradient
from exhaustive import ALL

import pullback as pb
from pullback.errors import ArgumentError, GradientError, PullbackError, ShapeError, VariableError

X = np.array([0.3, -0.7, 0.9, 0.55, -0.25, 0.8])
DIRECTION = np.arange(1.0, SIZE + 1)
PROGRAMS = 5000 if ALL else 100
BLOCK = 50


def slopes(f: Callable[[Any], Any]) -> Any:
    """Return the gradient of a NumPy program at ``X``, by central differences."""
    return np.array([(f(X + 1e-6 * e) - f(X - 1e-6 * e)) / 2e-6 for e in np.eye(SIZE)])


def by_plain_ops(f: Any) -> Any:
    return f(pb.tensor(X)).numpy(), None


def by_grad(f: Any) -> Any:
    return pb.value_and_grad(f)(X)


def by_jvp(f: Any) -> Any:
    return pb.jvp(f, [X], [DIRECTION])


def by_vmap(f: Any) -> Any:
    return pb.vmap(f)(np.stack([X * 0.5, X]))[1], None


def by_vmap_of_grad(f: Any) -> Any:
    value, slope = pb.vmap(pb.value_and_grad(f))(np.stack([X * 0.5, X]))
    return value[1], slope[1]


def by_grad_of_vmap(f: Any) -> Any:
    slope = pb.grad(lambda x: pb.sum(pb.vmap(f)(x)))(np.stack([X * 0.5, X]))
    return None, slope[1]


def by_tape(f: Any) -> Any:
    x = pb.tensor(X)
    with pb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), tape.gradient(y, x).numpy())
    return y.numpy(), tape.gradient(y, x).numpy()


def by_jacobian(f: Any) -> Any:
    return None, pb.jacobian(f)(X)


def by_compile(f: Any) -> Any:
    return pb.compile(pb.value_and_grad(f))(X)


WAYS = [by_plain_ops, by_grad, by_jvp, by_vmap, by_vmap_of_grad, by_grad_of_vmap, by_tape, by_jacobian]


def take_like(slope: Any, gradient: Any) -> Any:
    """Return a gradient, or the derivative in ``DIRECTION`` where ``slope`` is a number."""
    return gradient if np.ndim(slope) else gradient @ DIRECTION


@cache
def run_by_numpy(seed: int) -> tuple[str, Any, Any]:
    """Return the text of a program, its value at ``X`` by NumPy and its gradient there."""
    text = program(seed)
    f = load(text, np.zeros)
    with np.errstate(all="ignore"):
        return text, f(X.copy()), slopes(f)


def check_program(seed: int, way: Any) -> None:
    text, expected, expected_slopes = run_by_numpy(seed)
    if not np.isfinite(expected) or np.max(np.abs(expected_slopes)) > 1e6:
        return
    value, slope = way(load(text, lambda shape: pb.zeros(shape, "float64")))
    scale = max(1.0, float(np.max(np.abs(expected_slopes))))
    if value is not None:
        np.testing.assert_allclose(value, expected, rtol=1e-8, atol=1e-8, err_msg=f"{seed}\n{text}")
    if slope is not None:
        np.testing.assert_allclose(
            slope, take_like(slope, expected_slopes), rtol=3e-4, atol=3e-4 * scale, err_msg=f"{seed}\n{text}"
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", range(0, PROGRAMS, BLOCK))
@pytest.mark.parametrize("way", WAYS)
def test_random_programs_with_views_and_writes_match_numpy(way: Any, first: int) -> None:
    for seed in range(first, first + BLOCK):
        check_program(seed, way)


@pytest.mark.parametrize("first", range(0, PROGRAMS // 10, 10))
def test_random_programs_with_views_and_writes_compiled_match_numpy(first: int) -> None:
    for seed in range(first, first + 10):
        check_program(seed, by_compile)


@pytest.mark.parametrize("first", range(0, PROGRAMS // 5, BLOCK))
def test_second_derivatives_of_random_programs_with_writes(first: int) -> None:
    for seed in range(first, first + BLOCK):
        f = load(program(seed), lambda shape: pb.zeros(shape, "float64"))
        forward = pb.jvp(pb.grad(f), [X], [DIRECTION])[1]
        reverse = pb.grad(lambda x, f=f: pb.sum(pb.grad(f)(x) * DIRECTION))(X)
        np.testing.assert_allclose(forward, reverse, rtol=1e-7, atol=1e-7 * max(1.0, np.max(np.abs(forward))))


# ---- programs as people write them


def write_through_slice(x: Any) -> Any:
    y = x * 1.0
    z = y[:2]
    z[0] = 100.0
    return (y * y).sum()


def normalize_rows(x: Any) -> Any:
    m = np.reshape(x * 1.0, (2, 3))
    for row in m:
        row /= row.sum()
    return (m * m * np.arange(6.0).reshape(2, 3)).sum()


def write_element_of_row(x: Any) -> Any:
    m = np.reshape(x * 1.0, (2, 3))
    m[1][2] = 0
    return (m**3).sum()


def write_to_transpose(x: Any) -> Any:
    m = np.reshape(x * 1.0, (2, 3))
    m.T[0] = 0
    return (m**3).sum()


def write_diagonal(x: Any) -> Any:
    m = np.outer(x[:3], x[3:]) * 1.0
    d = m.ravel()[::4]
    d[...] = 0
    return (m * m).sum()


def subtract_rows(x: Any) -> Any:
    m = np.reshape(x * x, (2, 3))
    r = m[0, :]
    r -= m[1, :]
    return (m**3).sum()


def bump_in_helper(x: Any) -> Any:
    def bump(a: Any) -> None:
        a += x * x

    y = x * 2.0
    bump(y)
    return (y * y).sum()


def change_second_name(x: Any) -> Any:
    y = x * x
    best = y
    y += 10
    return (best * x).sum()


def eliminate(x: Any) -> Any:
    """Gauss elimination with views of rows."""
    a = np.outer(x, x) * 0.1 + np.eye(6) * 2.0
    b = x * 1.0
    for i in range(6):
        pivot = a[i]
        b[i] /= pivot[i]
        pivot /= pivot[i].copy()
        for j in range(6):
            if j != i:
                row = a[j]
                b[j] -= row[i] * b[i]
                row -= row[i] * pivot
    return (b * b).sum()


def fill_buffer(x: Any) -> Any:
    out = zeros_like_argument(x)
    for i in range(len(out)):
        out[i] = x[i] * x[-i]
    return (out * out).sum()


def zeros_like_argument(x: Any) -> Any:
    return x * 0.0


def write_views_of_views(x: Any) -> Any:
    m = np.reshape(x * 1.0, (2, 3))
    v = m[:, ::-1][1]
    w = v[1:]
    w *= v[:2]
    m[0] += w.sum()
    return (m * v).sum()


def shift_in_place(x: Any) -> Any:
    y = x * 1.0
    y[1:] += y[:-1]
    y[:-1] = y[1:]
    y[::-1] -= y * 0.5
    return (y**2).sum()


def cumulate(x: Any) -> Any:
    y = x * 1.0
    for i in range(1, len(y)):
        y[i] += y[i - 1] * x[i]
    return (y * y).sum()


def write_into_zero_axes(x: Any) -> Any:
    y = x * 1.0
    v = y[0, ...]
    v[...] = x[1] * 3.0
    v += 1.0
    return (y * y).sum()


def scalars_are_numbers(x: Any) -> Any:
    y = x * 1.0
    s = y[0]
    t = s
    s += 5.0
    return (y * t).sum() + s


def change_second_names_of_arrays_without_axes(x: Any) -> Any:
    known = x[0] > -9.0
    made = [
        np.where(known, x[0], x[1]), np.select([known], [x[0]]), np.tensordot(x, x, 1), np.roll(x[0] * 1.0, 1),
        x[1:2].reshape(()).copy(), np.squeeze(x[2:3]).astype(float), np.i0(x[3]), np.zeros_like(x[0]), np.copy(x[4]),
    ]  # fmt: skip
    total = 0.0
    for a in made:
        second = a
        a *= x[3] + 2.0
        a.reshape(1)[0] += x[4]
        a -= 0.1
        total = total + second * second
    return total


def change_second_names_of_numbers(x: Any) -> Any:
    matrix = np.outer(x[:2], x[:2]) + np.eye(2) * 9.0
    made = [
        x.sum(), np.mean(x), x @ x, np.dot(x, x), np.max(x), np.linalg.norm(x), np.nan_to_num(x[0] * 1.0),
        np.clip(x[1], -9.0, 9.0), np.interp(2.5, np.arange(6.0), x), np.median(x), np.take(x, 2),
        x[0].copy(), x[1].astype(float), *np.linalg.slogdet(matrix), np.subtract.reduce(x[2:3].reshape(())),
        np.einsum("i,i->", x, x), np.cumsum(x)[2], np.linalg.det(matrix), np.sinc(x[3]), np.fmax(x[0], x[1]),
        x[4:5].reshape(()) * 1.0,
    ]  # fmt: skip
    total = 0.0
    for a in made:
        second = a
        a *= x[3] + 2.0
        total = total + second * a
    return total


def accumulate_without_views(x: Any) -> Any:
    acc = x * x + 2.0
    before = acc * x
    name = acc
    for _ in range(3):
        acc += x * 0.5
        acc *= acc
        acc -= name * 0.5
        acc /= np.exp(x) + np.arange(6.0)
        acc **= 2
        acc *= 0.1
        acc += np.arange(6.0)
    unused = x * 1.0
    unused += acc
    return (acc * before).sum() + (name * x).sum()


def accumulate_matrix(x: Any) -> Any:
    acc = np.outer(x, x) + 3.0
    for row in np.outer(x, x):
        acc += row
        acc *= np.sin(acc) * 0.1 + 0.5
    acc @= acc * 0.1
    return (acc * x).sum()


def write_to_copies_of_transposes(x: Any) -> Any:
    m = np.reshape(x * 1.5, (2, 3))
    by_rows, as_it_lies, by_columns = m.T.copy(), np.copy(m.T), np.copy(m, order="F")
    for made in (by_rows, as_it_lies, by_columns):
        part = np.ravel(made)  # a view of the first one only
        part += part
    return (by_rows * as_it_lies * by_columns.T * as_it_lies).sum()


def write_with_mask(x: Any) -> Any:
    y = x * 1.0
    y[y < 0] *= -2.0
    c = y[[0, 1, 1]]
    c += 7.0
    return (y * y).sum() + (c * c).sum()


def numbers_have_no_views(x: Any) -> Any:
    s = (x * x).sum()
    for made in (s.squeeze(), s.T, s[...], s[None], np.expand_dims(s, 0), s.reshape(1), np.ravel(s), np.reshape(s, ())):
        changed = made
        changed += 1.0
        x = x + 0.1 * changed
    return s * x.sum()


def arrays_without_axes_have_views(x: Any) -> Any:
    y = np.sin(x) * 2.0
    for i, part in enumerate((y[0, ...], y[1:2].squeeze(), y[2, ...], y[3:4].reshape(()))):
        made = (part.reshape(1), part[None], np.ravel(part), part.T)[i]
        made *= y[4] + 3.0
    copied = np.copy(y[5])
    copied.reshape(1)[0] = y[4]
    return (y * y).sum() * copied


def write_to_row_at_computed_position(x: Any) -> Any:
    m = np.reshape(x * 1.5, (3, 2))
    row, column = m[np.argmax(x[:3])], m[:, np.argmin(x[:2])]
    row *= x[0] + 2.0
    m[0] = 0.5
    column[1:] += row[0]
    m[np.argmax(x[:3])] += x[:2]
    return (m * m).sum() + (row * column[:2]).sum()


def read_view_of_zeros_after_write(x: Any) -> Any:
    y = np.zeros_like(x)
    part = y[1:4]
    part += 1.0
    part[0] = x[0] * x[1]
    return (y * x).sum() + (part * part).sum()


def change_copies_that_move_nothing(x: Any) -> Any:
    m = np.reshape(x * 1.5, (6, 1))
    made = [np.roll(m, 0), np.roll(m, 1, 1), np.tile(m, 1), np.fft.fftshift(m, 1), m[np.array(0)], m[:, np.array(0)]]
    m *= 2.0
    for copied in made:
        copied += 1.0
    return (m * m).sum() + sum((copied * copied).sum() for copied in made)


def write_to_flat_views_of_results(x: Any) -> Any:
    m = np.reshape(x * 1.5, (3, 2))
    made = [np.quantile(m, [0.2, 0.7], 0), np.meshgrid(m[0], m[:, 0])[0], np.roll(m, 1, 0), np.tile(m, (1, 2))]
    made += [np.sort(m, 0), np.take_along_axis(m, np.array([[1, 0]]), 0)]
    for result in made:
        flat = result.reshape(-1)
        flat[1:] *= x[0] + 2.0
    return sum((result * result).sum() for result in made)


def read_views_of_views_after_second_write(x: Any) -> Any:
    grid = np.zeros_like(np.reshape(x, (2, 3)))
    line = grid.diagonal()
    grid -= np.reshape(x, (2, 3))
    last = line[..., -1:]
    grid *= x[0] + 2.0
    y = x * 1.0
    windows = np.lib.stride_tricks.sliding_window_view(y, 2)
    flat = windows.ravel()  # a copy
    y *= 3.0
    return (last * last).sum() + (flat * windows.ravel()).sum()


WRITTEN = [
    write_through_slice, normalize_rows, write_element_of_row, write_to_transpose, write_diagonal, subtract_rows,
    bump_in_helper, change_second_name, eliminate, fill_buffer, write_views_of_views, shift_in_place, cumulate,
    write_into_zero_axes, scalars_are_numbers, accumulate_without_views, accumulate_matrix,
    change_second_names_of_arrays_without_axes, change_second_names_of_numbers,
    write_to_copies_of_transposes, write_with_mask, numbers_have_no_views, arrays_without_axes_have_views,
    write_to_row_at_computed_position, read_view_of_zeros_after_write, change_copies_that_move_nothing,
    write_to_flat_views_of_results, read_views_of_views_after_second_write,
]  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("f", WRITTEN)
@pytest.mark.parametrize("way", [*WAYS, by_compile])
def test_handwritten_programs_with_writes_match_numpy(f: Any, way: Any) -> None:
    value, slope = way(f)
    if value is not None:
        np.testing.assert_allclose(value, f(X.copy()), rtol=1e-9)
    if slope is not None:
        np.testing.assert_allclose(slope, take_like(slope, slopes(f)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("f", [write_through_slice, normalize_rows, shift_in_place])
def test_writes_to_large_arrays_match_numpy(f: Any) -> None:
    x = np.linspace(-1.0, 1.0, 160_000)

    def whole(x: Any) -> Any:
        m = np.reshape(x * 2.0, (2, 80_000))
        before = (m * m).sum()
        row, part = m[0], m[:, 10:20]
        row[:6] += x[:6] * row[6:12]
        part *= 3.0
        return before + (m * m).sum() + f(row[12:18] * 1.0) + (part * row[:10]).sum()

    value, slope = pb.value_and_grad(whole)(x)
    np.testing.assert_allclose(value, whole(x.copy()), rtol=1e-9)
    for i in (0, 3, 7, 12, 15, 90_000, 80_015):
        e = np.zeros_like(x)
        e[i] = 1e-5
        np.testing.assert_allclose(slope[i], (whole(x + e) - whole(x - e)) / 2e-5, rtol=1e-3, atol=1e-3)


# ---- which results share memory

ALIASING: list[Callable[[Any], Any]] = [
    lambda m: m[0], lambda m: m[:, 1], lambda m: m[..., None], lambda m: m[[0, 1]], lambda m: m[:, [0, 1]],
    lambda m: m[m > -9], lambda m: m.T, lambda m: m.mT, lambda m: m.reshape(3, 2), lambda m: m.reshape(-1),
    lambda m: m.T.reshape(-1), lambda m: m.ravel(), lambda m: m.T.ravel(), lambda m: m[:, ::2].ravel(),
    lambda m: m.flatten(), lambda m: m.copy(), np.ravel, np.transpose, np.copy, np.squeeze,
    lambda m: np.swapaxes(m, 0, 1), lambda m: np.moveaxis(m, 0, 1), lambda m: np.rollaxis(m, 1), np.flip, np.flipud,
    np.fliplr, np.rot90, lambda m: np.expand_dims(m, 1), np.atleast_2d, np.atleast_3d, np.matrix_transpose,
    lambda m: np.split(m, 3, axis=1)[1], lambda m: np.array_split(m, 2)[1], lambda m: np.hsplit(m, 3)[0],
    lambda m: np.vsplit(m, 2)[1], lambda m: np.unstack(m)[1], lambda m: np.roll(m, 1), lambda m: np.tile(m, 1),
    lambda m: np.repeat(m, 1), lambda m: np.concatenate([m]), lambda m: np.stack([m])[0], lambda m: np.take(m, 0, 0),
    lambda m: np.where(True, m, m), np.positive, lambda m: m + 0, lambda m: np.sum(m, axis=()), np.conj,
    lambda m: np.einsum("ij->ji", m), lambda m: m.astype(m.dtype), lambda m: np.pad(m, 0), lambda m: np.round(m, 12),
    np.diagonal, lambda m: np.diag(m), np.asarray, np.real,
    lambda m: np.take_along_axis(m, np.zeros((1, 3), int), 0), lambda m: np.max(m, axis=()), np.sort, np.nan_to_num,
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ALIASING)))
@pytest.mark.parametrize("traced", [False, True])
def test_results_share_memory_as_in_numpy(number: int, traced: bool) -> None:
    f = ALIASING[number]

    def write_result(m: Any) -> Any:
        r = f(m)
        try:
            r[...] = 7.0
        except (ValueError, TypeError):
            return None
        return m

    def write_base(m: Any) -> Any:
        r = f(m)
        m[...] = 7.0
        return r

    for write in (write_result, write_base):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy's own, for views of broadcast arrays
            expected = write(X.reshape(2, 3) * 1.0)
        if traced:

            def run(x: Any, write: Any = write) -> Any:
                found = write(np.reshape(x, (2, 3)) * 1.0)
                return (pb.sum(x * 0.0), found)

            try:
                _, found = pb.grad(run, has_aux=True)(X)
            except PullbackError:  # np.asarray of a traced tensor
                assert f is np.asarray
                continue
        else:
            found = write(pb.tensor(X.reshape(2, 3)))
        if expected is None:
            assert found is None
        elif f is not np.asarray:  # which gives a read-only array of the values
            np.testing.assert_array_equal(np.asarray(found), expected)


def test_real_and_imaginary_parts_are_views() -> None:
    def f(x: Any) -> Any:
        z = x * (1.0 + 2.0j)
        z.real[:3] = x[3:] * x[:3]
        z.imag[...] *= 2.0
        return (z.real * z.real + z.imag).sum()

    np.testing.assert_allclose(pb.grad(f)(X), slopes(f), rtol=1e-4)


@pytest.mark.parametrize(
    "view",
    [
        lambda y: np.lib.stride_tricks.sliding_window_view(y, 2),
        lambda y: y.astype(y.dtype, copy=False),
        lambda y: np.astype(y, y.dtype, copy=False),
        lambda y: y.conj(),
        lambda y: np.diff(y, 0),
        lambda y: np.meshgrid(y, y, copy=False)[0],
        np.copy,  # and what NumPy copies does not
        lambda y: np.reshape(y, (2, 3), copy=True),
        lambda y: np.meshgrid(y, y)[0],
        lambda y: np.meshgrid(y, y, sparse=True)[0],
        np.block,
    ],
)
def test_views_see_later_writes(view: Any) -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        v = view(y)
        y[1] = 3.0 * x[0]
        return (v * v).sum()

    np.testing.assert_allclose(pb.grad(f)(X), slopes(f), rtol=1e-4)


def test_diagonal_by_einsum_is_a_view() -> None:
    def f(x: Any) -> Any:
        m = np.reshape(x[:4] * 1.0, (2, 2))
        np.einsum("ii->i", m)[:] = x[4:] ** 2
        return (m * m).sum() + x.sum()

    np.testing.assert_allclose(pb.grad(f)(X), slopes(f), rtol=1e-4)


# ---- casting and broadcasting in x += y


def test_in_place_result_is_cast_to_dtype_of_target() -> None:
    t = u = pb.tensor([1.0, 2.0])
    t += np.array([0.5, 0.5])
    assert u.dtype == np.float32
    assert u.tolist() == [1.5, 2.5]


@pytest.mark.parametrize("change", [lambda t: t.__iadd__(np.ones((2, 2))), lambda t: t.__iadd__(np.ones((3, 1)))])
def test_in_place_rejects_result_of_larger_shape(change: Any) -> None:
    with pytest.raises(ShapeError, match=r"x \+= value: the result has shape .* does not fit into x of shape \(2,\)"):
        change(pb.tensor([1.0, 2.0]))


def test_in_place_rejects_float_result_in_int_tensor() -> None:
    t = pb.tensor([1, 2], dtype="int32")
    with pytest.raises(ArgumentError, match=r"x /= value: the result has dtype .* x of dtype int32 cannot hold"):
        t /= 2
    assert t.tolist() == [1, 2]


def test_ufunc_out_with_where_writes_chosen_elements() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        given = np.add(y, x * x, out=y, where=np.arange(6) % 2 == 0)
        assert given is y
        return (y * y).sum()

    np.testing.assert_allclose(pb.grad(f)(X), slopes(f), rtol=1e-4)


def test_function_out_writes_into_tensor() -> None:
    out = view = pb.zeros(3, "float64")
    assert np.sum(pb.tensor(X.reshape(2, 3)), axis=0, out=out) is out
    np.testing.assert_allclose(view.numpy(), X.reshape(2, 3).sum(0))


# ---- what must not be written to

REFUSED = {
    "input": (lambda x: x.__iadd__(1.0), "is an input of the function"),
    "element of input": (lambda x: x.__setitem__(0, 1.0), "is an input of the function"),
    "view of input": (lambda x: x[1:].__setitem__(0, 1.0), "is an input of the function"),
    "transposed view of input": (lambda x: x.reshape(2, 3).T.__imul__(2.0), "is an input of the function"),
    "broadcast": (lambda x: np.broadcast_to(x * 1.0, (2, 6)).__setitem__(0, 1.0), "read-only view"),
}
TRANSFORMS: list[Any] = [
    lambda f: pb.grad(f)(X), lambda f: pb.jvp(f, [X], [X]), lambda f: pb.vmap(f)(np.stack([X, X])),
    lambda f: pb.compile(f)(X), lambda f: pb.jacobian(f)(X), lambda f: pb.grad(f)(np.zeros(120_000)[:6]),
]  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_writes_to_inputs_raise(name: str, transform: Any) -> None:
    write, message = REFUSED[name]

    def f(x: Any) -> Any:
        write(x)
        return x.sum()

    with pytest.raises(ArgumentError, match=message):
        transform(f)


def test_augmented_assignment_of_scalar_rebinds_name() -> None:
    def f(x: Any) -> Any:
        y = x
        y += 1.0
        return x * y

    assert pb.grad(f)(3.0) == 7.0


def test_writes_to_views_of_variables_raise() -> None:
    w = pb.variable([1.0, 2.0], name="w of a view")
    with pytest.raises(VariableError, match="use assign"):
        w[:1][0] = 5.0
    with pytest.raises(ArgumentError, match="input of the function"):
        pb.variable_grads(lambda: w[:1].__iadd__(1.0).sum())


def test_gradient_tape_rejects_write_after_recording() -> None:
    x = pb.tensor(X)
    with pb.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        v = y[:2]
        y *= 2.0
        z = (y * v.sum()).sum()
    with pytest.raises(ArgumentError, match=r"on a GradientTape .* x\.copy"):
        y += 1.0
    assert v.numpy() == pytest.approx(2 * X[:2] ** 2)

    def f(x: Any) -> Any:
        y = x * x * 2.0
        return (y * y[:2].sum()).sum()

    np.testing.assert_allclose(tape.gradient(z, x).numpy(), pb.grad(f)(X))


# ---- transforms inside others


def test_write_inside_inner_gradient_to_outer_tensor() -> None:
    def outer(x: Any) -> Any:
        y = x * x

        def inner(z: Any) -> Any:
            a = (z * y).sum()
            y[0] = 5.0
            return a * a + (z * z * y).sum()

        return (pb.grad(inner)(x * 2.0) * x).sum() + (y * y).sum()

    def without_writes(x: Any) -> Any:
        y = x * x
        w = np.concatenate([np.array([5.0]), y[1:]])
        return ((2 * (2 * x * y).sum() * y + 4 * x * w) * x).sum() + (w * w).sum()

    np.testing.assert_allclose(pb.grad(outer)(X), pb.grad(without_writes)(X), rtol=1e-9)
    np.testing.assert_allclose(pb.jvp(outer, [X], [X])[1], pb.grad(without_writes)(X) @ X, rtol=1e-9)


def test_outer_tensor_read_after_write_in_inner_gradient() -> None:
    def outer(x: Any) -> Any:
        y = x * x
        v = y[1:]

        def inner(z: Any) -> Any:
            y[0] = z * z
            return (y * y).sum()

        slope = pb.grad(inner)(x[1])
        return slope + (y * y).sum() + v.sum()

    def without_writes(x: Any) -> Any:
        y = np.concatenate([x[1:2] ** 2, x[1:] ** 2])
        return 4 * x[1] ** 3 + (y * y).sum() + y[1:].sum()

    np.testing.assert_allclose(pb.grad(outer)(X), gradient(without_writes, X), rtol=1e-5)


# ---- arrays of the user's


def test_small_captured_array_is_copied_before_later_changes() -> None:
    a = np.ones(6)

    def f(x: Any) -> Any:
        y = x * a + a @ x
        a[:] = 7.0
        return (y * y).sum()

    expected = pb.grad(lambda x: ((x + x.sum()) ** 2).sum())(X)
    np.testing.assert_allclose(pb.grad(f)(X), expected)


def set_at(x: Any, at: Any) -> Any:
    y = x * 1.0
    y[at] = x[:2] ** 2
    return y


PARAMETERS: list[tuple[Callable[[Any, Any], Any], Any]] = [  # with what the caller changes after the call
    (lambda x, p: x[p], np.array([0, 5])), (lambda x, p: x[p], [0, 5]), (lambda x, p: x[p], np.arange(6) < 2),
    (set_at, np.array([0, 5])), (set_at, np.arange(6) < 2), (pb.boolean_mask, np.arange(6) < 2),
    (lambda x, p: np.transpose(x.reshape(2, 3), p), [1, 0]), (lambda x, p: pb.sum(x.reshape(2, 3), p), [1]),
    (np.tile, [2]), (np.roll, np.array([1])), (lambda x, p: np.pad(x, p), [[1, 0]]),
]  # fmt: skip


@pytest.mark.parametrize(("use", "parameter"), PARAMETERS)
def test_op_parameters_are_copied_before_later_changes(use: Any, parameter: Any) -> None:
    def f(x: Any, change: bool) -> Any:
        p = copy.deepcopy(parameter)
        y = use(x, p)
        if change:
            p[:] = p[:][::-1] if len(p) > 1 else [0]
        return (y * y * np.arange(1.0, 1.0 + y.size).reshape(y.shape)).sum()

    np.testing.assert_array_equal(pb.grad(lambda x: f(x, True))(X), pb.grad(lambda x: f(x, False))(X))


@pytest.mark.parametrize("use", [lambda x, a: x * a, lambda x, a: a @ x, lambda x, a: np.where(a > 0, x * a, x)])
def test_large_captured_array_that_changes_raises(use: Any) -> None:
    x, a = np.ones(100), np.ones((100, 100))

    def f(x: Any) -> Any:
        y = use(x, a)
        a[:] *= 2.0
        return (y * y).sum()

    with pytest.raises(GradientError, match=r"shape \(100, 100\) was changed in place after it was used .*a\.copy"):
        pb.grad(f)(x)


def test_captured_array_is_checked_at_every_vjp_call() -> None:
    a = np.ones(50_000)
    _, pull = pb.vjp(lambda x: x * a, np.ones(50_000))
    pull(np.ones(50_000))
    a[:] = 3.0
    with pytest.raises(GradientError, match="changed in place"):
        pull(np.ones(50_000))


@pytest.mark.parametrize("write", [lambda y, v: y.__setitem__(slice(None), v), np.copyto])
def test_overwritten_value_gives_no_nan_gradient(write: Any) -> None:
    def f(x: Any) -> Any:
        y = np.log(x)
        write(y, x * 2.0)
        return np.sum(y)

    with np.errstate(divide="ignore"):
        for g in (pb.grad(f), pb.compile(pb.grad(f))):
            np.testing.assert_array_equal(g(np.array([0.0, 1.0])), [2.0, 2.0])


def test_ravel_of_real_part_is_a_copy() -> None:
    def f(z: Any) -> Any:
        w = z * 1.0
        r = np.real(w)
        r.ravel()[0] = 100.0
        r[1] = 50.0
        return w

    z = np.array([1 + 2j, 3 + 4j, 5j])
    for g in (f, lambda z: f(pb.tensor(z)), pb.compile(f), lambda z: pb.vmap(f)(z[None])[0]):
        np.testing.assert_array_equal(g(z), [1 + 2j, 50 + 4j, 5j])


def test_arrays_without_axes_are_changed_for_every_name() -> None:
    def add(out: Any, value: Any) -> None:
        out += value

    def f(x: Any) -> Any:
        total, factor = np.zeros_like(x[0]), np.full_like(x[0], 2.0)
        for v in x:
            add(total, v * v)
        np.multiply(factor, total, out=factor)
        factor.reshape(1)[0] += np.ones_like(x[0])
        return total * factor

    x = np.array([1.0, 2.0, 3.0])
    value, slope = f(x), 4 * 14 * 2 * x + 2 * x
    for found, found_slope in (pb.value_and_grad(f)(x), pb.compile(pb.value_and_grad(f))(x)):
        np.testing.assert_allclose(found, value)
        np.testing.assert_allclose(found_slope, slope)
    np.testing.assert_allclose(f(pb.tensor(x)), value)
    np.testing.assert_allclose(pb.jvp(f, [x], [np.ones(3)]), (value, np.sum(slope)))
    np.testing.assert_allclose(pb.vmap(pb.grad(f))(np.stack([x, x])), [slope, slope])


@pytest.mark.parametrize(
    "make", [pb.zeros, pb.ones, lambda shape, dtype: pb.fill(shape, 2.0, dtype), lambda _, dtype: pb.array(2.0, dtype)]
)
def test_new_tensors_without_axes_are_arrays(make: Any) -> None:
    def f(x: Any) -> Any:
        made = make((), "float64")
        second = made
        made += x
        return second * 3.0

    start = float(make((), "float64"))
    assert pb.value_and_grad(f)(2.0) == ((start + 2.0) * 3.0, 3.0)
    assert pb.compile(f)(2.0) == (start + 2.0) * 3.0


WITHOUT_AXES: dict[str, Callable[[Any, Any], Any]] = {  # of a vector and a number, or an array without axes
    "broadcast_arrays": lambda x, s: np.broadcast_arrays(s, 1.0)[0], "ellipsis": lambda x, s: s[...],
    "constant": lambda x, s: np.broadcast_arrays(s, 1.0)[1], "real_if_close": lambda x, s: np.real_if_close(s),
    "tile": lambda x, s: np.tile(s, ()), "resize": lambda x, s: np.resize(x, ()), "flip": lambda x, s: np.flip(s),
    "view": lambda x, s: s.view(), "choose": lambda x, s: np.choose(0, [s, s]),
    "einsum": lambda x, s: np.einsum("->", s), "einsum_path": lambda x, s: np.einsum("i,i,i", x, x, x, optimize=True),
    "multi_dot": lambda x, s: np.linalg.multi_dot([x, np.outer(x, x), x]),
    "nan_to_num": lambda x, s: np.nan_to_num(np.copy(s), copy=False),
}  # fmt: skip


@pytest.mark.parametrize("name", WITHOUT_AXES)
@pytest.mark.parametrize("number", [True, False])
def test_results_without_axes_are_arrays_or_numbers_as_in_numpy(name: str, number: bool) -> None:
    def f(x: Any) -> Any:
        x = x * 1.0
        s = x[0] if number else x[0, ...]
        made = WITHOUT_AXES[name](x, s)
        second = made
        made += 0.5
        return np.stack([made, second, s * 1.0, x[0]])

    x = np.array([0.3, 0.7, 0.9])
    value = f(x)
    for found in (f(pb.tensor(x)), pb.jvp(f, [x], [x])[0], pb.vmap(f)(x[None])[0], pb.compile(f)(x)):
        np.testing.assert_allclose(found, value)
    slope = gradient(lambda x: np.sum(f(x) * [1.0, 2.0, 3.0, 4.0]), x)
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(f(x) * [1.0, 2.0, 3.0, 4.0]))(x), slope, atol=1e-7)


def test_broadcast_arrays_of_same_shape_is_seen_by_other_names() -> None:
    def f(x: Any) -> Any:
        a = x * 2.0
        b, _ = np.broadcast_arrays(a, 1.0)
        b[0] = 5.0
        return np.sum(a * a)

    x = np.array([1.0, 2.0])
    assert f(x) == 41.0
    for found, slope in (pb.value_and_grad(f)(x), pb.compile(pb.value_and_grad(f))(x)):
        assert found == 41.0
        np.testing.assert_array_equal(slope, [0.0, 16.0])


def test_copy_takes_the_order_of_numpy() -> None:
    def f(x: Any) -> Any:
        parts = []
        for order in "CFAK":
            copy = (x * 2.0).T.copy(order)
            copy.ravel()[1] = 5.0  # a view or a copy: it depends on the order
            copy.T.ravel()[2] = 7.0
            parts.append(copy)
        return np.stack(parts)

    x = np.arange(6.0).reshape(2, 3)
    for found in (f(pb.tensor(x)), pb.compile(f)(x), pb.vmap(f)(x[None])[0], pb.jvp(f, [x], [x])[0]):
        np.testing.assert_array_equal(found, f(x))


@pytest.mark.parametrize(
    "pick", [lambda x: x[:, [2, 0]], lambda x: x.T[:, [1, 0]], lambda x: (x[..., None] * np.ones(2))[:, [0, 1], 0]]
)
def test_positions_after_slice_have_the_order_of_numpy(pick: Any) -> None:
    def f(x: Any) -> Any:
        part = pick(x * 1.0)
        part.ravel()[1] = 5.0
        part.T.ravel()[2] = 7.0
        return part

    x = np.arange(6.0).reshape(2, 3)
    for found in (f(pb.tensor(x)), pb.compile(f)(x), pb.vmap(f)(x[None])[0], pb.jvp(f, [x], [x])[0]):
        np.testing.assert_array_equal(found, f(x))


@pytest.mark.parametrize("generator", [np.random.default_rng, np.random.RandomState])
@pytest.mark.filterwarnings("ignore:you are shuffling")
def test_shuffle_of_rows_raises_and_of_numbers_is_that_of_numpy(generator: Any) -> None:
    def shuffle(x: Any) -> Any:
        y = x * 1.0
        y[0], y[1] = y[1], y[0]
        generator(3).shuffle(y)
        return y

    x = np.arange(6.0)
    matrix = x.reshape(3, 2)
    for call in (lambda f, x: f(pb.tensor(x)), lambda f, x: pb.jvp(f, [x], [x])[0], lambda f, x: pb.compile(f)(x)):
        np.testing.assert_array_equal(call(shuffle, x), shuffle(x))
        with pytest.raises(ArgumentError, match=r"shuffle\(x\) of a tensor with several axes"):
            call(shuffle, matrix)


def test_swap_of_rows_in_function_that_shuffles_is_that_of_numpy() -> None:
    def f(x: Any) -> Any:
        order = np.arange(3)
        np.random.default_rng(3).shuffle(order)
        y = x[order]
        y[0], y[1] = y[1], y[0]
        return y

    x = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(f(pb.tensor(x)), f(x))


def test_reduction_of_one_element_is_no_view() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        total = np.subtract.reduce(y[None])
        total += 5.0
        return y + total

    x = np.arange(3.0)
    for found in (f(pb.tensor(x)), pb.compile(f)(x), pb.vmap(f)(x[None])[0], pb.jvp(f, [x], [x])[0]):
        np.testing.assert_array_equal(found, f(x))


def test_flat_takes_numbers_and_arrays() -> None:
    def f(x: Any) -> Any:
        y, z = np.outer(x, x), np.outer(x, x)
        y.flat = x
        z.flat = 2.0
        return y * 3.0 + z

    x = np.arange(1.0, 4.0)
    for found in (f(pb.tensor(x)), pb.compile(f)(x), pb.vmap(f)(x[None])[0]):
        np.testing.assert_array_equal(found, f(x))
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(f(x)))(x), [9.0, 9.0, 9.0])


def test_fill_of_number_raises() -> None:
    with pytest.raises(ArgumentError, match="x is a number, which NumPy leaves as it is"):
        pb.grad(lambda x: (x * 1.0)[0].fill(2.0))(np.ones(2))
    made = pb.zeros(())
    second = made
    made.fill(2.0)
    assert second == 2.0


def test_where_inside_of_functions_gives_numbers() -> None:
    def f(x: Any) -> Any:
        made = pb.scipy.special.xlog1py(x, x)
        second = made
        made += 1.0
        return second

    assert pb.value_and_grad(f)(2.0)[0] == pytest.approx(2.0 * np.log1p(2.0))
    with pb.debug_nans():
        assert pb.grad(lambda x: in_second_name(np.where(x > 0, x, 0.0)))(2.0) == 3.0


def in_second_name(x: Any) -> Any:
    second = x
    x *= 3.0
    return second
