"""Import contracts, deferred imports, docstrings and examples of public names."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import pullback

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "pullback"
FILES = sorted(PACKAGE.rglob("*.py"))

# Packages that may be absent. Only the files in IMPORTERS may import them.
OPTIONAL = {
    "cupy",
    "cupyx",
    "h5py",
    "jax",
    "llvmlite",
    "scipy",
    "matplotlib",
    "onnx",
    "pyarrow",
    "safetensors",
    "torch",
}

# The only imports inside functions: file (from src/pullback) -> modules.
IMPORTERS: dict[str, set[str]] = {
    "ops/special/lazy_scipy.py": {"scipy.special"},
    "transforms/ravel.py": {"scipy.sparse.linalg"},
    "transforms/sparse.py": {"scipy.sparse"},
    "compiler/backends/cupy.py": {"cupy", "cupyx.scipy.special"},
    "compiler/backends/jax.py": {"jax", "jax.experimental", "jax.numpy", "jax.scipy.special"},
    "compiler/backends/onnx.py": {"onnx"},
    "compiler/backends/torch.py": {"torch"},
    "compiler/pipeline.py": {
        "pullback.compiler.codegen.contents",
        "pullback.compiler.codegen.module",
        "pullback.compiler.passes.legalize",
        "pullback.compiler.passes.narrow_axes",
        "pullback.compiler.passes.roll",
        "pullback.compiler.passes.split_small_arrays",
        "pullback.compiler.schedule.fuse",
        "pullback.compiler.schedule.memory",
        "pullback.compiler.schedule.schedule",
    },
    "compiler/runtime/llvm.py": {"llvmlite", "llvmlite.binding"},
    "scale/engines/dask.py": {"dask", "distributed"},
    "scale/engines/protocol.py": {"cloudpickle"},
    "scale/engines/ray.py": {"ray"},
    "sklearn/estimators.py": {"scipy.optimize"},
    "train/data/files.py": {"pyarrow.parquet"},
    "display/axes.py": {"matplotlib.pyplot"},
    "train/optim/lbfgs.py": {"scipy.optimize"},
    "train/io/hdf5.py": {"h5py"},
    "train/io/saving.py": {"safetensors", "safetensors.numpy"},
}

# The slots of late_binding by the modules that assign them when they are imported.
ASSIGNED_SLOTS: dict[str, set[str]] = {
    "__init__.py": {"load_module", "load_numpy_module", "load_ops"},
    "core/accelerate.py": {"sum_middle"},
    "core/tape.py": {"constant"},
    "core/writes.py": {"get_layout", "link_constant", "make_alias", "mark_as_array", "note_view", "resolve_writes"},
    "interop/sklearn_metrics.py": {"keep_gradients"},
    "ops/gathering.py": {"scatter_add"},
}
# Those that are bound at their first call, by the modules that it imports.
DEFERRED_SLOTS: dict[str, set[str]] = {
    "compiler.eager_kernels.elements": {"compile_function"},
    "compiler.eager_kernels.single_ops": {"compile_formula"},
    "compiler.eager_kernels.sums": {"compile_sum"},
    "compiler.runtime.abi.eager_ops": {"load_native_ops"},
    "compiler.target": {"find_blas"},
    "display.html": {"render_frame"},
    "display.values": {"show_array"},
    "interop.numpy": {"call_function", "call_ufunc"},
    "interop.sparse": {"call_with_sparse"},
    "ops.linalg": {"matrix_norm"},
    "ops.special": {"find_scipy_op", "i0"},
    "ops.special.functions": {"find_special_function"},
    "transforms.backward_loops": {"roll_steps"},
}


def name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def list_imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return ["." * node.level + (node.module or "")]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "import_package":
        return [a.value for a in node.args[:1] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    return []


@cache
def measure_source() -> Any:
    """Return what script/measure_code.py counts in this tree."""
    spec = spec_from_file_location("measure_code", ROOT / "script" / "measure_code.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Source(ROOT)


def walk_modules() -> Iterator[tuple[str, ast.AST]]:
    """Yield every syntax node of the library with the path of its module."""
    return ((m.path, node) for m in measure_source().modules for node in m.nodes)


@cache
def list_deferred_imports() -> list[tuple[str, int, str]]:
    """Return (path, line, module) of every import inside a function."""
    bodies = [(m.path, node) for m in measure_source().modules for f in m.functions if not f.nested for node in f.nodes]
    return [(path, node.lineno, module) for path, node in bodies for module in list_imports(node)]


def test_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_source_has_no_todo_comments() -> None:
    later = re.compile(r"\b(TODO|FIXME|XXX)\b")
    found = [
        f"{name(path)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if later.search(line)
    ]
    assert not found, "\n".join(found)


def test_imports_are_at_module_level() -> None:
    deferred = list_deferred_imports()
    found = {f"{path}:{line}: {module}" for path, line, module in deferred if module not in IMPORTERS.get(path, set())}
    assert not found, "\n".join(sorted(found))


def test_compiler_reads_cpu_features_in_target_module_only() -> None:
    asks = re.compile(r"platform\.(machine|processor)|__cpu_features__|get_host_cpu|/proc/cpuinfo")
    found = [name(path) for path in FILES if asks.search(path.read_text("utf-8"))]
    assert [path for path in found if path.startswith("compiler/")] == ["compiler/target.py"]


def test_variable_held_is_assigned_by_hold_only() -> None:
    """What a log of writes does not know of cannot be undone."""
    found = [
        f"{path}:{node.lineno}"
        for path, node in walk_modules()
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Attribute) and target.attr == "held" and ast.unparse(node.value) != "held"
        if path not in ("core/variable.py", "train/optim/slots.py", "compiler/runtime/llvm.py")
    ]
    assert not found, "assigns to variable.held, say variable.hold(array): " + ", ".join(found)


def test_optional_packages_are_imported_in_one_module() -> None:
    found = {
        f"{path}:{node.lineno}: {module}"
        for path, node in walk_modules()
        for module in list_imports(node)
        if module.split(".")[0] in OPTIONAL and module not in IMPORTERS.get(path, set())
    }
    assert not found, "\n".join(sorted(found))


def test_listed_optional_imports_exist() -> None:
    used = {(path, module) for path, _, module in list_deferred_imports()}
    assert not {(file, module) for file, modules in IMPORTERS.items() for module in modules} - used


@cache
def list_slots() -> dict[str, ast.AnnAssign]:
    """Return the declarations of late_binding by name."""
    tree = ast.parse((PACKAGE / "late_binding.py").read_text("utf-8"))
    return {ast.unparse(node.target): node for node in tree.body if isinstance(node, ast.AnnAssign)}


def test_late_binding_slots_are_assigned_by_listed_modules() -> None:
    modules = {"pullback." + name(path)[:-3].replace("/", ".").removesuffix(".__init__") for path in FILES}
    aliases: dict[str, dict[str, str]] = {}
    for path, node in walk_modules():
        for alias in node.names if isinstance(node, ast.ImportFrom) else ():
            if f"{node.module}.{alias.name}" in modules:
                aliases.setdefault(path, {})[alias.asname or alias.name] = alias.name
    assigned: dict[str, set[str]] = {}
    for path, node in walk_modules():
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Attribute) and (home := aliases.get(path, {}).get(ast.unparse(target.value))):
                assert home == "late_binding", f"{path}:{node.lineno} assigns a name of another module"
                assert target.attr not in assigned.setdefault(path, set())
                assigned[path].add(target.attr)
    assert assigned == ASSIGNED_SLOTS
    assert {slot for slot, node in list_slots().items() if node.value is None} == set().union(*assigned.values())


def test_late_binding_slots_have_signatures_of_their_functions() -> None:
    found: dict[str, set[str]] = {}
    for slot, node in list_slots().items():
        if isinstance(node.value, ast.Call):
            own, module, *function = map(ast.literal_eval, node.value.args)
            assert own == slot
            found.setdefault(module, set()).add(slot)
            bound = getattr(import_module(f"pullback.{module}"), *function or (slot,))
            inspect.signature(bound).bind(*node.annotation.slice.elts[0].elts)  # as many arguments as its type has
    assert found == DEFERRED_SLOTS


def test_late_binding_slots_are_bound_at_import_or_first_call() -> None:
    program = """
import sys
import pullback
from pullback import late_binding
slots = [name for name in late_binding.__annotations__ if not callable(getattr(late_binding, name, None))]
assert not slots, slots
assert "pullback.compiler" not in sys.modules and "pullback.interop.numpy" not in sys.modules
late_binding.find_blas(), late_binding.load_array_api(), late_binding.load_scipy_fft()
assert late_binding.find_blas is sys.modules["pullback.compiler.target"].find_blas
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_late_binding_slots_are_read_at_each_call() -> None:
    """A name that is imported from late_binding would stay what the slot was bound to at that time."""
    assert not [path for path, node in walk_modules() if "pullback.late_binding" in list_imports(node)]


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


def test_public_docstring_examples_are_doctests() -> None:
    lost = [where for where, value in list_public_names(pullback) if callable(value) and not is_doctested(value)]
    assert not lost, "doctest does not see the examples of " + ", ".join(lost)


def test_modules_have_docstrings() -> None:
    silent = [m.path for m in measure_source().modules if not ast.get_docstring(m.tree)]
    assert not silent, "does not begin with a docstring: " + ", ".join(silent)


def list_places(row: str) -> list[str]:
    return [found.where for found in measure_source().places[row]]


def test_share_of_bare_any_parameters_is_below_15_percent() -> None:
    bare, every = len(list_places("any")), measure_source().parameters
    assert bare < 0.15 * every, f"{bare} of {every}: say what a parameter takes, script/measure_code.py --list any"


# Names that other libraries gave, and properties, which are data.
PARTICIPLES = {
    "_searchsorted", "_sliding_window_view", "_squared_difference", "balanced_eq", "built", "fixed_point",
    "fixed_quad", "hamming_window", "learning_rate", "left_shift", "moving_average", "named_variables",
    "padded_batch", "searchsorted", "squared_difference", "squared_hinge", "stopped", "strided_slice",
    "truncated_normal", "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min",
    "unsorted_segment_prod", "unsorted_segment_sum", "watched_variables",
}  # fmt: skip


def test_function_names_do_not_begin_with_participles() -> None:
    found = [place for place in list_places("participle") if place.split()[-1] not in PARTICIPLES]
    assert not found, "a function is a verb, not a participle:\n" + "\n".join(found)


@pytest.mark.parametrize(("row", "files"), [("readers", 2), ("kind", 0), ("code", 0)])
def test_backward_protocol_is_read_in_two_modules(row: str, files: int) -> None:
    """The tape calls the rules of a step, eager_ops compiles them; none compares ``.kind`` or assigns ``__code__``."""
    assert len({place.split(":")[0] for place in list_places(row)}) <= files, "\n".join(list_places(row))


def test_tests_mirror_the_packages() -> None:
    source = ROOT / "src" / "pullback"
    packages = [
        path.parent
        for inside in (source, source / "compiler", source / "train")
        for path in inside.glob("*/__init__.py")
    ]
    assert len(packages) > 25
    missing = [
        str(path.relative_to(source)) for path in packages if not (ROOT / "tests" / path.relative_to(source)).is_dir()
    ]
    assert not missing


def test_only_the_public_package_imports_names_lazily() -> None:
    face = ROOT / "src" / "pullback" / "__init__.py"
    packages = [path for path in face.parent.rglob("__init__.py") if path != face]
    assert len(packages) > 20
    assert not [str(path) for path in packages if "import_module" in path.read_text("utf-8")]


def test_lazily_imported_names_match_their_modules() -> None:
    program = """
import sys
import pullback as pb
from pullback.core.tensor import Tensor
from pullback.late_binding import DeferredMethod
late = {name for name, value in vars(Tensor).items() if isinstance(value, DeferredMethod)}
assert late and "pullback.ops.linalg" not in sys.modules and "numpy.fft" not in sys.modules
pb.train.adam(0.1)
assert "numpy.ma" not in sys.modules
assert not [name for name in sys.modules if name.startswith(("pullback.train.nn", "pullback.compiler"))]
before = dict(vars(Tensor))
import numpy as np
np.fft.fft(pb.tensor([1.0]))
assert "pullback.ops.spectral" in sys.modules and "pullback.ops.image" not in sys.modules
pb.Tensor.conv2d, pb.tensor([1.0]).relu()
for module in (pb, pb.train):
    for name in dir(module):
        getattr(module, name)
from pullback.core.op import list_ops
import pullback.interop.numpy
list_ops()
print(sorted(late ^ {name for name, value in vars(Tensor).items() if value is not before.get(name)}))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout == "[]\n", run.stdout + run.stderr
