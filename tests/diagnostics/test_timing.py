"""``pb.benchmark``: functions measured in turns, their results compared."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pullback as pb


def test_benchmark_has_a_row_for_each_function_in_order() -> None:
    f = pb.grad(lambda x: np.sum(x * x))
    times = pb.benchmark({"eager": f, "compiled": pb.compile(f)}, np.ones(3), rounds=2)
    assert [timing.name for timing in times.timings] == ["eager", "compiled"]
    assert times["eager"].speedup == 1.0
    assert times["compiled"].seconds > 0
    assert times["compiled"].first_call > times["compiled"].seconds
    assert [line.split()[0] for line in str(times).splitlines()[1:]] == ["eager", "compiled"]


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (lambda x: x * 2, 0.0),
        (lambda x: x * 2.5, 0.25),
        (lambda x: x * np.nan, np.inf),
        (lambda x: (x * 2, x), np.inf),
        (lambda x: pb.tensor(x * 2), 0.0),
    ],
    ids=["same", "other numbers", "NaN", "other structure", "tensor"],
)
def test_benchmark_compares_results_with_those_of_first(
    other: Callable[[np.ndarray], object], difference: float
) -> None:
    times = pb.benchmark({"a": lambda x: x * 2, "b": other}, np.array([1.0, 2.0]), rounds=1)
    assert times["b"].difference == pytest.approx(difference)


def test_benchmark_in_notebook_is_table_with_escaped_names() -> None:
    times = pb.benchmark({"<script>": np.sin}, 1.0, rounds=1)
    assert "&lt;script&gt;" in times._repr_html_()
    assert "<script>" not in times._repr_html_()


def test_benchmark_of_single_function_takes_its_name() -> None:
    assert pb.benchmark(np.sin, 1.0, rounds=1).timings[0].name == "sin"


def test_benchmark_argument_errors() -> None:
    with pytest.raises(pb.errors.ArgumentError, match="a dict of functions"):
        pb.benchmark({"a": 3.0}, 1.0)  # type: ignore[dict-item]
    with pytest.raises(pb.errors.ArgumentError, match="at least 1"):
        pb.benchmark(np.sin, 1.0, rounds=0)
    with pytest.raises(KeyError, match="was not measured"):
        pb.benchmark(np.sin, 1.0, rounds=1)["cos"]
