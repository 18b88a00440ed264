"""Errors for bad input, modules that an import loads, and generated source text in tracebacks."""

from __future__ import annotations

import linecache
import subprocess
import sys
import traceback
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback import errors
from pullback.errors import ArgumentError, DataError, PullbackError, ShapeError

X = np.array([0.3, 0.7, 1.1, 1.3, 1.7])
T = pb.tensor(X)
A = np.ones((2, 3))
BIG = np.ones((200, 300))


def trace(f: Any, x: Any = X) -> Any:
    """Return a call of ``f`` with a traced tensor."""
    return lambda: pb.grad(lambda x: np.sum(f(x)))(x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pb.add(X, np.ones(3)), r"add: shapes \(5,\) and \(3,\) do not broadcast\. Axes are compared"),
        (lambda: pb.mul(T, np.ones(3)), r"mul: shapes \(5,\) and \(3,\) do not broadcast"),
        (lambda: np.ones((3, 1, 4)) - T, r"sub: shapes \(3, 1, 4\) and \(5,\) do not broadcast"),
        (lambda: np.divide(T, np.ones(2)), r"div: shapes \(5,\) and \(2,\) do not broadcast"),
        (lambda: T**[1.0, 2.0], r"pow: shapes \(5,\) and \(2,\) do not broadcast"),
        (trace(lambda x: x + np.ones(3)), r"add: shapes \(5,\) and \(3,\) do not broadcast"),
        (trace(lambda x: np.ones(3) * x), r"mul: shapes \(3,\) and \(5,\) do not broadcast"),
        (trace(lambda x: x * x[:3]), r"mul: shapes \(5,\) and \(3,\) do not broadcast"),
        (trace(lambda x: x * pb.tensor(A)), r"mul: shapes \(5,\) and \(2, 3\) do not broadcast"),
        (trace(lambda x: x + np.ones(7), BIG), r"add: shapes \(200, 300\) and \(7,\) do not broadcast"),
        (trace(lambda x: x - x[:, :7], BIG), r"sub: shapes \(200, 300\) and \(200, 7\) do not broadcast"),
        (lambda: pb.jvp(lambda x: x + np.ones(3), [X], [X]), r"add: shapes \(5,\) and \(3,\) do not broadcast"),
        (lambda: A @ pb.tensor(A), r"got shapes \(2, 3\) and \(2, 3\); axis 'k' of .* is 3 in one and 2 in another"),
        (trace(lambda x: x @ x, BIG), r"got shapes \(200, 300\) and \(200, 300\); axis 'k'"),
        (lambda: pb.sum(X, axis=3), "sum: axis 3 is out of range for rank 1; use -1 to 0"),
        (lambda: np.sum(T, axis=3), "sum: axis 3 is out of range for rank 1; use -1 to 0"),
        (lambda: pb.sum(A, (0, 0)), r"sum: an axis is named twice in \(0, 0\)"),
        (lambda: pb.sum(pb.tensor(A), [1, -1]), r"sum: an axis is named twice in \[1, -1\]"),
        (trace(lambda x: np.mean(x, axis=-2)), "mean: axis -2 is out of range for rank 1; use -1 to 0"),
        (trace(lambda x: np.max(x, axis=2), BIG), "max: axis 2 is out of range for rank 2; use -2 to 1"),
        (lambda: pb.reshape(T, (2, 2)), r"reshape: .*\(5,\).*\(2, 2\)"),
        (lambda: T[7], r"getitem: .*\(5,\).*7"),
        (lambda: T[0, 0], r"getitem: .*\(5,\).*\(0, 0\)"),
        (trace(lambda x: x[9]), r"getitem: .*\(5,\).*9"),
    ],
)  # fmt: skip
def test_shape_error_messages(call: Any, message: str) -> None:
    with pytest.raises(ShapeError, match=message) as caught:
        call()
    assert isinstance(caught.value, ValueError)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: T * "a", DataError, "mul: expected numbers.*got text"),
        (lambda: "a" + T, DataError, "add: expected numbers.*got text"),
        (lambda: T * object(), DataError, "mul: expected numbers or nested lists of numbers, got object"),
        (lambda: T * {"a": 1}, DataError, "mul: expected numbers or nested lists of numbers, got dict"),
        (lambda: T + None, DataError, "add: expected numbers or nested lists of numbers, got NoneType"),
        (lambda: pb.sin("a"), DataError, "sin: expected numbers.*got text"),
        (lambda: pb.add([[1.0, 2.0], [3.0]], 1.0), DataError, "add: the nested lists are ragged: .* 2 and 1"),
        (lambda: T * [1.0, [2.0]], DataError, "mul: the nested lists are ragged"),
        (lambda: T * np.array(["a"]), (ArgumentError, DataError), "mul: .*<U1"),
        (lambda: pb.sin(np.array([object()])), (ArgumentError, DataError), "sin: .*object"),
        (lambda: T * np.array([object()] * 5), (ArgumentError, DataError), "mul: .*object"),
        (lambda: pb.sum(X, axis="a"), ArgumentError, "sum: axis must be an integer or a tuple of them, got 'a'"),
        (lambda: pb.sum(T, axis=0.5), ArgumentError, "sum: axis must be an integer or a tuple of them, got 0.5"),
        (lambda: pb.tensor("text"), DataError, "tensor: expected numbers, got text"),
        (lambda: pb.tensor([1.0, "b"]), DataError, "tensor: expected numbers, got text"),
        (lambda: pb.tensor([[1, 2], [3]]), DataError, "tensor: the nested lists are ragged: .* 2 and 1 at depth 1"),
        (lambda: pb.tensor([[[1], [2]], [[3], [4, 5]]]), DataError, "ragged: found lengths 1 and 2 at depth 2"),
        (lambda: pb.tensor([1, [2]]), DataError, "ragged: found lengths a number and 1"),
        (lambda: pb.tensor(object()), DataError, "tensor: expected numbers or nested lists of numbers, got object"),
        (lambda: pb.tensor([len]), DataError, "got builtin_function_or_method"),
        (lambda: pb.tensor({"a": 1}), DataError, "got dict"),
        (lambda: pb.tensor(None), DataError, "got NoneType"),
        (lambda: pb.tensor(np.array([object()])), DataError, "tensor: .* got an array of dtype object"),
        (lambda: pb.tensor(np.array(["2020-01-01"], "M8[D]")), DataError, r"dtype datetime64\[D\]"),
        (lambda: len(pb.tensor(1.0)), ArgumentError, r"len\(\) of a tensor of rank 0"),
        (lambda: [1, 2, 3][pb.tensor(1.0)], ArgumentError, r"tensor can be an index, got float32 of shape \(\)"),
        (lambda: pb.set_default_dtype("int32"), ArgumentError, "dtype must be a float, such as 'float64', got"),
        (lambda: pb.grad(np.sum)("text"), DataError, "grad: argument a: expected numbers, got text"),
        (lambda: pb.grad(np.sum)([[1.0], [2.0, 3.0]]), DataError, "grad: argument a: the nested lists are ragged"),
        (lambda: pb.grad(np.sum)(object()), DataError, "grad: .*: expected numbers or nested lists of .*, got object"),
    ],
)  # fmt: skip
def test_argument_and_data_error_messages(call: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        call()
    assert isinstance(caught.value, PullbackError)


@pytest.mark.parametrize("name", errors.__all__)
def test_errors_have_builtin_base_class_and_docstring(name: str) -> None:
    error = getattr(errors, name)
    assert issubclass(error, PullbackError)
    kinds = ValueError | TypeError | RuntimeError | ImportError | AttributeError | UserWarning
    assert name == "PullbackError" or issubclass(error, kinds)
    assert len(error.__doc__) > 40


def test_exception_of_user_function_is_unchanged() -> None:
    def f(x: Any) -> Any:
        raise ValueError("mine")

    with pytest.raises(ValueError, match=r"^mine$") as caught:
        pb.grad(f)(1.0)
    assert type(caught.value) is ValueError


def test_import_does_not_load_llvmlite_or_scipy() -> None:
    """They are imported when something first uses them."""
    code = "import sys, pullback; print(sorted({m.split('.')[0] for m in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(eval(run.stdout))
    assert {"numpy", "pullback"} <= modules
    assert not modules & {"llvmlite", "scipy", "ray", "dask", "matplotlib", "hypothesis", "pytest", "torch", "jax"}


# ---- generated source text


def test_traceback_shows_generated_text_of_op_function():
    x = pb.tensor(np.ones((2, 3)))
    with pytest.raises(ShapeError) as caught:
        x + np.ones((4, 5))
    with pytest.raises(ShapeError) as caught:  # now it is built
        pb.grad(lambda x: (x + np.ones((4, 5))).sum())(np.ones((2, 3)))
    text = "".join(traceback.format_exception(caught.value))
    assert 'File "<op add>"' in text
    assert "except CAUGHT as error: raise" in text


def test_linecache_has_text_of_op_functions_and_rules():
    assert pb.grad(pb.tanh)(0.0) == 1.0
    linecache.checkcache()
    code = pb.tanh.__code__
    assert linecache.getline(code.co_filename, code.co_firstlineno) == "def tanh(x):\n"
    rule = pb.tanh.op.one.dx.__code__
    assert linecache.getline(rule.co_filename, 1).startswith("lambda g, z, x, p: ")


def test_pdb_lists_generated_text_of_op_function():
    program = "import pullback as pb; pb.tanh(0.5); x = pb.tensor([1.0]); import pdb; pdb.runcall(pb.tanh, x)"
    run = subprocess.run(
        [sys.executable, "-c", program], input="list\nquit\n", capture_output=True, text=True, check=False
    )
    assert "def tanh(x):" in run.stdout
    assert "if type(x) is Tensor:" in run.stdout
