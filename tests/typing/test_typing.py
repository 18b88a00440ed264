"""What type checkers see: mypy and pyright judge user code as expected."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import pullback as pb

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SIGNATURES = ROOT / "src" / "pullback" / "signatures"
CHECKED = ("ordinary.py", "mistakes.py")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def run_pyright(project: Path) -> set[tuple[str, int]]:
    """Return the file and line of every error that pyright reports."""
    settings = {
        "include": [str(HERE / name) for name in CHECKED],
        "extraPaths": [str(ROOT / "src")],
        "typeCheckingMode": "standard",
        "enableTypeIgnoreComments": False,  # those of mypy
        "reportUnusedExpression": "none",
        "pythonVersion": "3.11",
    }
    path = project / "pyrightconfig.json"
    path.write_text(json.dumps(settings), "utf-8")
    done = run(sys.executable, "-m", "basedpyright", "-p", str(path), "--outputjson", "--pythonpath", sys.executable)
    found = json.loads(done.stdout)["generalDiagnostics"]
    return {(Path(d["file"]).name, d["range"]["start"]["line"] + 1) for d in found if d["severity"] == "error"}


def list_marked_lines(name: str) -> set[tuple[str, int]]:
    lines = (HERE / name).read_text("utf-8").splitlines()
    return {(name, number) for number, line in enumerate(lines, 1) if "# type: ignore[" in line}


def test_mypy_checks_user_code() -> None:
    files = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]["files"]
    assert {ROOT / file for file in files} == {ROOT / "src" / "pullback", *(HERE / name for name in CHECKED)}


def test_pyright_reports_marked_lines(tmp_path: Path) -> None:
    found = run_pyright(tmp_path)
    expected = list_marked_lines("mistakes.py")
    assert not found - expected, f"errors that are none: {sorted(found - expected)}"
    assert not expected - found, f"mistakes that were not reported: {sorted(expected - found)}"


def test_ordinary_code_runs() -> None:
    done = run(sys.executable, str(HERE / "ordinary.py"))
    assert done.returncode == 0, done.stderr


def names_of(function: ast.FunctionDef) -> set[str]:
    a = function.args
    return {p.arg for p in (*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg) if p is not None}


def list_handwritten_stubs() -> list[ast.FunctionDef]:
    body = ast.parse((SIGNATURES / "transforms.pyi").read_text("utf-8")).body
    return [node for node in body if isinstance(node, ast.FunctionDef)]


@pytest.mark.parametrize("stub", list_handwritten_stubs(), ids=lambda stub: stub.name)
def test_transform_stub_parameters(stub: ast.FunctionDef) -> None:
    assert names_of(stub) == {*inspect.signature(getattr(pb, stub.name)).parameters}


def test_gradient_tape_stub_methods() -> None:
    body = ast.parse((SIGNATURES / "transforms.pyi").read_text("utf-8")).body
    stub = next(node for node in body if isinstance(node, ast.ClassDef) and node.name == "GradientTape")
    methods = [node for node in stub.body if isinstance(node, ast.FunctionDef)]
    assert {m.name for m in methods if m.name[0] != "_"} == {*dir(pb.GradientTape())}
    for method in methods:
        assert names_of(method) == {*inspect.signature(getattr(pb.GradientTape, method.name)).parameters}, method.name


# ---- dir()


def test_dir_of_package_lists_public_names() -> None:
    listed = dir(pb)
    assert {"Tensor", "exp", "grad", "compile", "train", "linalg", "typing"} <= {*listed}
    assert not [name for name in listed if name.startswith("_")]
    assert not {"core", "ops", "annotations", "TYPE_CHECKING"} & {*listed}
    assert all(hasattr(pb, name) for name in listed)


def list_public_modules(module: ModuleType = pb, name: str = "pb") -> Iterator[tuple[str, ModuleType]]:
    """Give every module that ``dir`` leads to, with its name for users."""
    yield name, module
    for n in dir(module):
        value = getattr(module, n)
        if isinstance(value, ModuleType) and value is not np.lib:  # which the namespace of the Array API has for xarray
            yield from list_public_modules(value, f"{name}.{n}")


@pytest.mark.parametrize("module", [pytest.param(m, id=name) for name, m in list_public_modules()])
def test_dir_of_module_lists_public_names(module: ModuleType) -> None:
    listed = dir(module)
    assert listed
    assert not [name for name in listed if name.startswith("_")]
    assert not {"annotations", "Any", "TYPE_CHECKING", "np", "op", "method", "os", "partial"} & {*listed}
    for name in listed:
        value = getattr(module, name)
        is_other = isinstance(value, ModuleType) and not value.__name__.startswith("pullback.")
        assert not is_other or value is np.lib, name


def square(x: pb.Tensor) -> pb.Tensor:
    return x * x


DERIVATIVE = {"argnames", "argnums"}
TRANSFORMED = {
    "grad": (pb.grad(square), DERIVATIVE | {"has_aux", "unconnected"}),
    "value_and_grads": (pb.value_and_grads(square), DERIVATIVE | {"has_aux", "unconnected"}),
    "jacobian": (pb.jacobian(square), DERIVATIVE | {"has_aux", "mode"}),
    "hessian": (pb.hessian(square), DERIVATIVE | {"has_aux"}),
    "sparse_jacobian": (pb.sparse_jacobian(square), DERIVATIVE),
    "vmap": (pb.vmap(square), {"in_axes", "out_axes"}),
    "compile": (pb.compile(square), {"backend", "lower", "profile", "programs"}),
    "compiled gradient": (pb.compile(pb.grad(square)), {"backend", "lower", "profile", "programs"}),
    "custom_jvp": (pb.custom_jvp(square), {"defjvp", "defjvps"}),
    "recompute_grad": (pb.recompute_grad(square), set()),
    "custom_root": (pb.custom_root(square, square), {"f", "solve"}),
}


@pytest.mark.parametrize(("transformed", "public"), TRANSFORMED.values(), ids=TRANSFORMED)
def test_dir_of_transformed_function_lists_public_names(transformed: object, public: set[str]) -> None:
    assert {*dir(transformed)} == public
    assert all(hasattr(transformed, name) for name in public)


def make_objects() -> Iterator[object]:
    """Give an object of every kind that users are given."""
    x = pb.tensor([1.0, 2.0])
    model = pb.sequential([pb.layers.dense(units=1, input_shape=[2])])
    model.compile("adam", "mean_squared_error")
    yield from (x, pb.variable([1.0]), pb.GradientTape(), pb.compile(square).lower(x), pb.compile(square).profile(x))
    yield from (model, model.layers[0], model.optimizer, model.fit(np.ones((2, 2)), np.ones((2, 1)), verbose=0))
    yield from (pb.data.array([1.0, 2.0]), pb.train.lbfgs(), pb.train.exponential_decay(0.1, 1, 0.9))
    yield from (pb.metrics.AUC(), pb.callbacks.EarlyStopping(), pb.regularizers.l2(), pb.initializers.zeros())
    yield pb.RowSparse(np.array([0]), np.ones((1, 2)), (3, 2))


def test_dir_of_objects_lists_public_names() -> None:
    for thing in make_objects():
        listed = dir(thing)
        assert listed, type(thing)
        assert not [name for name in listed if name.startswith("_")], type(thing)
        assert all(hasattr(type(thing), name) or name in vars(thing) for name in listed), type(thing)


def test_dir_of_tensor_lists_methods_without_engine_names() -> None:
    listed = dir(pb.tensor([1.0]))
    assert {"tanh", "sum", "shape", "numpy", "T"} <= {*listed}
    assert not {"meta", "via", "links", "beneath", "interpret", "detach", "argMax"} & {*listed}
    assert not [name for name in listed if name.startswith("_")]


def test_dir_of_variable_adds_assignments() -> None:
    extra = {*dir(pb.variable(1.0))} - {*dir(pb.tensor(1.0))}
    assert extra == {"assign", "assign_add", "assign_rows", "assign_sub", "constraint", "name", "trainable"}


def test_dir_of_model_lists_methods_without_internal_names() -> None:
    listed = dir(pb.sequential([pb.layers.dense(units=2, input_shape=[3])]))
    assert {"fit", "predict", "summary", "layers", "variables", "save"} <= {*listed}
    assert not {"registry", "parts", "penalties", "iterate_layers"} & {*listed}
    assert not [name for name in listed if name.startswith("_")]


def test_internal_ops_are_not_tensor_methods() -> None:
    assert not hasattr(pb.Tensor, "_scatter_add")
    assert not hasattr(pb.Tensor, "scatter_add")
