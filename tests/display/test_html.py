"""What objects show in a notebook: HTML that is well formed, escaped, and of a size that fits a screen."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import pullback as pb

VOID = {"rect", "path"}


class Elements(HTMLParser):
    """Collects the names of elements and their text; raises where one is not closed by its own end."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(page)
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        assert tag in VOID
        self.names.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def show(x: object) -> Elements:
    page = x._repr_html_()  # type: ignore[attr-defined]
    assert "http" not in page
    assert "@import" not in page
    assert "src=" not in page
    return Elements(page)


@pytest.mark.parametrize(
    "x",
    [
        np.arange(6.0).reshape(2, 3), np.array([1, 2]), np.array([True, False]), np.array(3.0), np.zeros((0, 3)),
        np.array([1.0, np.nan, np.inf]), np.ones((300, 2, 5)), np.array([1 + 2j]), np.full((2, 2), np.nan),
    ],
    ids=lambda x: f"{x.dtype}{list(x.shape)}",
)  # fmt: skip
def test_html_of_tensor_shows_dtype_shape_and_limited_rows(x: np.ndarray) -> None:
    page = show(pb.tensor(x))
    assert f"{x.dtype}{list(x.shape)}" in page.text
    assert page.text.count("\n") < 15
    assert page.names.count("rect") <= 8 * 64


def test_tensor_html_counts_nonfinite_elements() -> None:
    assert "2 NaN" in show(pb.tensor([np.nan, np.nan, 1.0])).text
    assert "1 infinite" in show(pb.tensor([np.inf, 1.0])).text


def test_html_of_large_array_shows_means_of_blocks() -> None:
    page = show(pb.tensor(np.ones((1000, 1000))))
    assert page.names.count("rect") == 8 * 64


def test_html_escapes_names() -> None:
    v = pb.variable(1.0, name="<script>alert(1)</script>", trainable=False)
    page = show(v)
    assert "script" not in page.names
    assert "<script>alert(1)</script>" in page.text
    assert "not trainable" in page.text


def test_tensor_under_vmap_has_no_html() -> None:
    seen = []
    pb.vmap(lambda x: (seen.append(x._repr_html_()), x)[1])(np.ones((2, 3)))
    assert seen == [None]


def test_html_of_traced_tensor_shows_its_value() -> None:
    seen = []
    pb.grad(lambda x: (seen.append(show(x).text), x * x)[1])(3.0)
    assert "3.0" in seen[0]


def test_html_of_compiled_function_lists_its_programs() -> None:
    f = pb.compile(lambda x: np.sum(np.tanh(x)))
    assert "not called yet" in show(f).text
    assert repr(f) == "<compiled <lambda>, 0 programs>"
    f(np.ones(3))
    f(np.ones((2, 2)))
    page = show(f)
    assert "float64[3]" in page.text
    assert "float64[2, 2]" in page.text
    assert "graph" in show(f.lower(np.ones(3))).text


def test_html_of_gradient_function_shows_signature_and_settings() -> None:
    def loss(w, x, y=1.0):
        return w * x + y

    text = show(pb.grad(loss, argnums=(0, 1))).text
    assert text.startswith("grad of loss(w, x, y=1.0)")
    assert text.endswith("y=1.0) argnums=(0, 1)")
    assert "jacobian of sin(x1, /)" in show(pb.jacobian(np.sin)).text


def test_html_of_program_shows_function_and_steps() -> None:
    program = pb.compile(np.sin).lower(np.ones(3))
    assert repr(program) == "<program of sin, 1 step>"
    assert "Program of sin" in show(program).text


def test_html_of_reports_shows_ops_and_lines() -> None:
    assert "exp" in show(pb.trace(lambda x: pb.exp(x))(1.0)).text
    assert "log" in show(pb.diagnose(lambda x: np.log(x - 1.0))(1.0)).text
    assert "No NaN" in show(pb.diagnose(lambda x: x)(1.0)).text
    assert "rounding" in show(pb.explain(lambda x: pb.floor(x))(1.5)).text


def test_html_of_model_and_history() -> None:
    model = pb.sequential([pb.layers.dense(1, input_shape=[2], name="<b>")])
    assert "<b> (dense)" in show(model).text
    model.compile(optimizer="sgd", loss="mean_squared_error", metrics=["mae"])
    history = model.fit(np.ones((8, 2)), np.ones((8, 1)), epochs=3, validation_split=0.25, verbose=0)
    page = show(history)
    assert page.names.count("svg") == 2
    assert "val_loss" in page.text


@pytest.mark.parametrize(("scale", "curves"), [(1.0, 2), (np.nan, 1)])
def test_html_of_history_of_one_epoch(scale: float, curves: int) -> None:
    model = pb.sequential([pb.layers.dense(1, input_shape=[2])])
    model.compile(optimizer="sgd", loss="mean_squared_error", metrics=[lambda y, p: np.mean(p) * scale])
    history = model.fit(np.ones((8, 2)), np.ones((8, 1)), epochs=1, verbose=0)
    assert show(history).names.count("svg") == curves
    assert len(re.findall(r'd="M[\d.]+ [\d.]+h6"', history._repr_html_())) == curves
