"""Import contracts, deferred imports, docstrings and examples of public names."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import pullback

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "pullback"
FILES = sorted(PACKAGE.rglob("*.py"))

# Packages that may be absent. Only the files in IMPORTERS may import them.
OPTIONAL = {"cupy", "cupyx", "jax", "llvmlite", "scipy", "matplotlib", "pyarrow", "safetensors", "torch", "tqdm"}

# The only imports inside functions: file (from src/pullback) -> modules.
IMPORTERS: dict[str, set[str]] = {
    "ops/special/lazy_scipy.py": {"scipy.special"},
    "transforms/ravel.py": {"scipy.sparse.linalg"},
    "transforms/sparse.py": {"scipy.sparse"},
    "compiler/backends/cupy.py": {"cupy", "cupyx.scipy.special"},
    "compiler/backends/jax.py": {"jax", "jax.experimental", "jax.numpy", "jax.scipy.special"},
    "compiler/backends/torch.py": {"torch"},
    "compiler/pipeline.py": {
        "pullback.compiler.codegen.contents",
        "pullback.compiler.codegen.module",
        "pullback.compiler.passes.legalize",
        "pullback.compiler.passes.narrow_axes",
        "pullback.compiler.passes.roll",
        "pullback.compiler.schedule.fuse",
        "pullback.compiler.schedule.memory",
        "pullback.compiler.schedule.schedule",
    },
    "compiler/runtime/llvm.py": {"llvmlite", "llvmlite.binding"},
    "sklearn/estimators.py": {"scipy.optimize"},
    "train/data/files.py": {"pyarrow.parquet"},
    "train/loop/history.py": {"matplotlib.pyplot"},
    "train/optim/lbfgs.py": {"scipy.optimize"},
    "train/loop/progress.py": {"tqdm.auto"},
    "train/io/saving.py": {"safetensors.numpy"},
}


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def list_imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return ["." * node.level + (node.module or "")]
    return []


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def walk_function_bodies(module: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (inner for statement in node.body for inner in ast.walk(statement))


def test_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_no_todo_comments() -> None:
    later = re.compile(r"\b(TODO|FIXME|XXX)\b")
    found = [
        f"{name(path)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if later.search(line)
    ]
    assert not found, "\n".join(found)


def test_imports_are_at_module_level() -> None:
    found = {
        f"{name(path)}:{node.lineno}: {module}"
        for path in FILES
        for node in walk_function_bodies(tree(path))
        for module in list_imports(node)
        if module not in IMPORTERS.get(name(path), set())
    }
    assert not found, "\n".join(sorted(found))


def test_variables_are_assigned_through_hold() -> None:
    """What a log of writes does not know of cannot be undone."""
    found = [
        f"{name(path)}:{node.lineno}"
        for path in FILES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute) and target.attr == "held" and ast.unparse(node.value) != "held"
        if name(path) not in ("core/variable.py", "train/optim/slots.py", "compiler/runtime/llvm.py")
    ]
    assert not found, "assigns to variable.held, say variable.hold(array): " + ", ".join(found)


def test_optional_packages_are_imported_in_one_module() -> None:
    found = {
        f"{name(path)}:{node.lineno}: {module}"
        for path in FILES
        for node in ast.walk(tree(path))
        for module in list_imports(node)
        if module.split(".")[0] in OPTIONAL and module not in IMPORTERS.get(name(path), set())
    }
    assert not found, "\n".join(sorted(found))


def test_listed_optional_imports_exist() -> None:
    used = {
        (name(path), module)
        for path in FILES
        for node in walk_function_bodies(tree(path))
        for module in list_imports(node)
    }
    assert not {(file, module) for file, modules in IMPORTERS.items() for module in modules} - used


def list_public_names(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Yield every name that the package exports; modules are skipped."""
    for attribute in dir(module):
        value = getattr(module, attribute)
        if not attribute.startswith("_") and not isinstance(value, ModuleType):
            yield f"{module.__name__}.{attribute}", value


def lacks_example(value: object) -> bool:
    """Constants and NumPy's own objects have no docstring of ours."""
    own = not (getattr(value, "__module__", None) or "").startswith("numpy")
    return callable(value) and own and ">>>" not in (value.__doc__ or "")


def test_public_docstrings_have_examples() -> None:
    silent = [where for where, value in list_public_names(pullback) if lacks_example(value)]
    assert not silent, "no docstring with a >>> example: " + ", ".join(silent)


def is_doctested(value: object) -> bool:
    """Does doctest find it? Only functions and classes, in the module that they say is theirs."""
    if ">>>" not in (value.__doc__ or ""):
        return True
    home = inspect.getmodule(value)
    kind = inspect.isclass(value) or inspect.isroutine(inspect.unwrap(value))
    checked = getattr(value, "__wrapped__", None)  # what the public function calls, if it checks keywords
    return kind and any(other is value or other is checked for other in vars(home).values() if other is not None)


def test_public_examples_are_doctests() -> None:
    lost = [where for where, value in list_public_names(pullback) if callable(value) and not is_doctested(value)]
    assert not lost, "doctest does not see the examples of " + ", ".join(lost)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_modules_have_docstrings(path: Path) -> None:
    assert ast.get_docstring(tree(path)), f"{name(path)} does not begin with a docstring"
