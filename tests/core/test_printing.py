"""Printed tensors: rounding, JavaScript's notation, hidden rows, empty shapes, and the one-line repr."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pullback.core.printing import tensor_repr, tensor_text


def body(values: Any, dtype: Any = np.float32) -> str:
    """Return the printed values without the first line and its indentation."""
    first, *lines = tensor_text(np.array(values, dtype)).split("\n")
    assert first == "Tensor"
    return "\n".join(line.removeprefix("    ") for line in lines)


# ------------------------------------------------------------------ numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2**-8, "0.0039063"),  # 0.00390625 is a tie: away from zero, not to the even digit
        (-(2**-8), "-0.0039063"),
        (3 * 2**-8, "0.0117188"),
        (2**-24, "1e-7"),  # 5.96e-8
        (2**-25, "0"),
        (-(2**-25), "0"),  # no minus before a zero
        (8.5e-7, "8e-7"),  # this float32 lies below the tie,
        (9.5e-7, "0.000001"),  # this one above
        (9.9999999e-1, "1"),
        (0.99999994, "0.9999999"),
        (8388607.5, "8388607.5"),
        (-1e20, "-100000002004087730000"),
        (1e21, "1.0000000200408773e+21"),
    ],
)
def test_print_rounds_elements_to_seven_decimals(value: float, text: str) -> None:
    assert body([value]) == f"[{text}]"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2**-8, "0.00390625"),
        (2**-20, "9.5367431640625e-7"),
        (-1e-6, "-9.999999974752427e-7"),
        (-0.0, "0"),
        (-np.inf, "-Infinity"),
    ],
)
def test_print_of_scalar_is_not_rounded(value: float, text: str) -> None:
    assert body(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (1e-6, "0.000001"),
        (-1.25e-6, "-0.00000125"),
        (1e-7, "1e-7"),
        (5e-324, "5e-324"),
        (1e16, "10000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (1e21, "1e+21"),
        (-1.5e300, "-1.5e+300"),
    ],
)
def test_print_of_float64_scalar_shows_all_digits(value: float, text: str) -> None:
    assert body(value, np.float64) == text


def test_print_rounds_float64_elements_like_float32() -> None:
    assert body([0.1 + 0.2, 2**-8, 1e-8, 123456789.123456789], np.float64) == "[0.3, 0.0039063, 0, 123456789.1234568]"


def test_print_of_int64_keeps_every_digit() -> None:
    largest = np.iinfo(np.int64).max
    assert body(largest, np.int64) == str(largest)
    assert body([[largest, 1], [-largest - 1, -10]], np.int64) == (
        "[[9223372036854775807 , 1  ],\n [-9223372036854775808, -10]]"
    )


def test_print_rounds_complex_parts() -> None:
    assert body(complex(2**-8, -np.inf), np.complex64) == "0.0039063 + -Infinityj"
    assert body([[complex(np.nan, -0.0)], [1e-7 + 10j]], np.complex64) == "[[NaN + 0j  ],\n [1e-7 + 10j]]"


# ------------------------------------------------------------------ layout


def test_print_of_single_row_has_trailing_comma() -> None:
    assert body([[1, 2]]) == " [[1, 2],]"
    assert body([[[1]], [[22]]]) == "[ [[1 ],],\n\n  [[22],]]"


def test_print_pads_columns_but_not_vectors() -> None:
    assert body([1, -22, 0.5]) == "[1, -22, 0.5]"
    assert body([[1], [-22], [0.5]]) == "[[1  ],\n [-22],\n [0.5]]"


def test_print_column_width_is_shared_by_all_matrices() -> None:
    assert body([[[1, 2], [3, 4]], [[5, -66], [7, 8]]]) == "[[[1, 2  ],\n  [3, 4  ]],\n\n [[5, -66],\n  [7, 8  ]]]"


def test_print_abbreviates_more_than_20_items() -> None:
    assert body(np.arange(20)) == f"[{', '.join(map(str, range(20)))}]"
    assert body(np.arange(21)) == "[0, 1, 2, ..., 18, 19, 20]"


def test_print_column_width_includes_hidden_rows() -> None:
    values = np.zeros((21, 21), np.float32)
    values[10, 20] = 2**-8  # a tie, which cannot be measured by plain arithmetic
    values[0, 10] = 1e30
    row = "[0, 0, 0, ..., 0, 0, 0        ]"
    assert body(values) == f"[{row},\n {row},\n {row},\n ...,\n {row},\n {row},\n {row}]"


def test_print_of_hidden_matrices_is_ellipsis() -> None:
    lines = body(np.arange(21).reshape(21, 1, 1)).split("\n")
    assert [line for line in lines if line.strip()] == (
        ["[ [[0 ],],", "  [[1 ],],", "  [[2 ],],", " ...", "  [[18],],", "  [[19],],", "  [[20],]]"]
    )


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        ((0, 21), " []"),
        ((21, 0), "[[],\n [],\n [],\n ...,\n [],\n [],\n []]"),
        ((0, 0, 0), " []"),
        ((1, 0, 2), " [ []]"),
    ],
)
def test_print_of_empty_shapes(shape: tuple[int, ...], text: str) -> None:
    assert body(np.zeros(shape)) == text


def test_print_verbose_has_dtype_and_shape() -> None:
    header = "Tensor\n  dtype: {}\n  rank: 2\n  shape: [1,0]\n  values:\n     [[],]"
    for dtype, name in ((np.float64, "float64"), (np.bool_, "bool"), (np.str_, "string"), (np.complex64, "complex64")):
        assert tensor_text(np.zeros((1, 0), dtype), verbose=True) == header.format(name)


def test_print_of_strings_has_quotes_and_utf16_width() -> None:
    assert body("it's", np.str_) == "it's"
    assert body(["it's", ""], np.str_) == "['it's', '']"
    assert body([["é", "x"], ["😀", "y"]], np.str_) == "[['é' , 'x'],\n ['😀', 'y']]"


def test_print_is_independent_of_memory_layout() -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4) / 7
    assert tensor_text(values.T) == tensor_text(values.T.copy())
    assert tensor_text(values[::-1, ::2]) == tensor_text(values[::-1, ::2].copy())
    assert tensor_text(values.astype(">f4")) == tensor_text(values)


def test_print_column_width_of_200_000_rows() -> None:
    values = np.zeros((200_000, 2), np.float32)
    values[150_000] = [-1234.5, np.nan]
    assert body(values).startswith("[[0      , 0  ],\n")


# ------------------------------------------------------------------ repr


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (np.array(3, np.float32), "Tensor(3., dtype=float32)"),
        (np.array([1, 2, 3], np.float32), "Tensor([1., 2., 3.], dtype=float32)"),
        (np.array([[1, 2], [3, 40]], np.int32), "Tensor([[1, 2], [3, 40]], dtype=int32)"),
        (np.array([0.1, 1e-7, -0.0, np.nan], np.float32), "Tensor([0.1, 1.e-07, -0., nan], dtype=float32)"),
        (np.array([1e8, -np.inf, 1 / 3]), "Tensor([1.e+08, -inf, 0.33333333], dtype=float64)"),
        (np.array([1 + 2j, -0.5j], np.complex64), "Tensor([1.+2.j, -0.-0.5j], dtype=complex64)"),
        (np.array([[True], [False]]), "Tensor([[True], [False]], dtype=bool)"),
        (np.array(["a  b\n", "it's"]), "Tensor(['a  b\\n', \"it's\"], dtype=str)"),
        (np.zeros(0, np.float32), "Tensor([], dtype=float32)"),
        (np.zeros((10**6, 0), np.float32), "Tensor([], shape=(1000000, 0), dtype=float32)"),
    ],
)
def test_tensor_repr(values: np.ndarray[Any, Any], text: str) -> None:
    assert tensor_repr(values) == text


def test_long_repr_is_abbreviated_with_shape() -> None:
    values = np.arange(1000, dtype=np.float32)
    assert tensor_repr(values) == "Tensor([0., 1., 2., ..., 997., 998., 999.], shape=(1000,), dtype=float32)"
    assert tensor_repr(np.arange(100).reshape(2, 50), kind="Variable") == (
        "Variable([[0, 1, ..., 48, 49], [50, 51, ..., 98, 99]], shape=(2, 50), dtype=int64)"
    )


def test_repr_is_one_short_line_at_every_rank() -> None:
    for rank in range(1, 7):
        text = tensor_repr(np.full((9,) * rank, 1 / 3, np.float32))
        assert "\n" not in text
        assert len(text) < 1500


def test_repr_uses_numpy_print_precision() -> None:
    with np.printoptions(precision=3):
        assert tensor_repr(np.array([1 / 3, 2 / 3])) == "Tensor([0.333, 0.667], dtype=float64)"


def test_repr_of_float16_gives_no_warning() -> None:
    assert tensor_repr(np.array([1.5, 6e4, 1e-7], np.float16)) == "Tensor([1.5, 60000., 1.e-07], dtype=float16)"
