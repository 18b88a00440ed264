"""Write the signatures that type checkers read from the registry.  With ``--check``, only say whether they are current.

``src/pullback/__init__.pyi`` has the public names of the package, ``src/pullback/signatures`` the modules of ops and
the methods of ``Tensor``.  An op's inputs are its parameters before ``/``, a composition's those annotated
``TensorLike``; where one of them is a Tensor or a list the result is a Tensor, else an array.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType, ModuleType
from typing import Any

import pullback as pb
from pullback.core.tensor import Tensor
from pullback.names.table import ALIASES

SOURCE = Path(__file__).resolve().parent.parent / "src" / "pullback"
CONFIG = SOURCE.parents[1] / "pyproject.toml"
TRANSFORMS = {  # written by hand, in signatures/transforms.pyi
    node.name if isinstance(node, ast.FunctionDef | ast.ClassDef) else "checkpoint"
    for node in ast.parse((SOURCE / "signatures" / "transforms.pyi").read_text("utf-8")).body
    if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Assign)
}
MODULES = ["fused", "image", "linalg", "losses", "math", "random", "signal", "special", "spectral"]  # those of ops
HEAD = '''"""{what}.

Written by script/write_signatures.py; a test fails when it is out of date.
"""
# ruff: noqa: E402, E501, F401, I001, N802, N816, PIE790, RUF100, UP
# mypy: disable-error-code="overload-overlap"
'''
TENSOR = "from pullback.core.tensor import Tensor"
INPUTS = {  # parameters that take tensors: where no input is a Tensor, and where this one makes the result a Tensor
    "TensorLike": ("ArrayLike", "TensorOrNested"),
    "TensorLike | None": ("ArrayOrNumber | None", "TensorOrNested"),
    "Sequence[TensorLike]": ("Sequence[ArrayOrNumber]", ""),
    "Sequence[TensorLike] | Value": ("Sequence[ArrayOrNumber] | Array", ""),
}


# ---- what the sources say


@cache
def find_imports(module: str) -> dict[str, str]:
    """Return where each name that annotations of a module mention comes from."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {a.asname or a.name: f"from {node.module} import {a.name}" for a in node.names if not a.asname}
        elif isinstance(node, ast.Import):
            found |= {a.asname: f"import {a.name} as {a.asname}" for a in node.names if a.asname}
        elif isinstance(node, ast.ClassDef):
            found[node.name] = f"from {module} import {node.name}"
    return found


class Stub:
    """The text of one file, and the imports that it needs."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.imports = {
            "from typing import Any", "from typing import overload", TENSOR,
            "from pullback.typing import Array", "from pullback.typing import ArrayLike",
            "from pullback.typing import ArrayOrNumber", "from pullback.typing import TensorOrNested",
        }  # fmt: skip
        self.lines: list[str] = []
        self.tuples: dict[str, type] = {}

    def mention(self, annotation: str, module: str) -> str:
        """Return an annotation of a module, whose names are imported."""
        origin = find_imports(module)
        for node in ast.walk(ast.parse(annotation, mode="eval")):
            if isinstance(node, ast.Name) and node.id in origin and node.id not in self.tuples:
                self.imports.add(origin[node.id])
        return annotation

    def text(self) -> str:
        tuples = [line for cls in self.tuples.values() for line in write_tuple(cls)]
        if tuples:
            self.imports |= {
                "from typing import Generic", "from typing import NamedTuple", "from typing import TypeVar",
            }  # fmt: skip
            tuples = ['V = TypeVar("V")', *tuples]
        return "\n".join([HEAD.format(what=self.what), *join_imports(self.imports), "", *tuples, *self.lines, ""])


def join_imports(imports: Iterable[str]) -> Iterator[str]:
    """Import statements, those from one module in one."""
    plain = sorted(i for i in imports if i.startswith("import "))
    by_module: dict[str, set[str]] = {}
    for statement in imports:
        if statement.startswith("from "):
            _, module, _, name = statement.split(" ", 3)
            by_module.setdefault(module, set()).add(name)
    yield from plain
    for module, names in sorted(by_module.items()):
        yield f"from {module} import {', '.join(sorted(names))}"


def write_tuple(cls: type) -> list[str]:
    """Return a named tuple of results, whose fields are all Tensors or all arrays."""
    fields = [f"    {name}: V" for name in getattr(cls, "_fields", ())]
    return [f"class {cls.__name__}(NamedTuple, Generic[V]):", f'    """{read_summary(cls)}"""', *fields]


def read_summary(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ").replace("\\", "\\\\")


# ---- one function


def write_parameter(p: inspect.Parameter, annotation: str) -> str:
    stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    simple = isinstance(p.default, bool | int | float | str | None) and p.default == p.default
    default = "" if p.default is p.empty else f" = {p.default!r}" if simple and is_finite(p.default) else " = ..."
    return f"{stars}{p.name}: {annotation}{default}"


def is_finite(value: Any) -> bool:
    return not isinstance(value, float) or abs(value) != float("inf")


def write_parameters(parameters: list[inspect.Parameter], annotations: dict[str, str], first: str | None = None) -> str:
    """Return the parameters of a signature; ``first`` stands in the place of the first one."""
    parts: list[str] = []
    positional, keyword = False, False
    for i, p in enumerate(parameters):
        if positional and p.kind is not p.POSITIONAL_ONLY:
            parts.append("/")
            positional = False
        if p.kind is p.KEYWORD_ONLY and not keyword and not any(q.kind is q.VAR_POSITIONAL for q in parameters):
            parts.append("*")
        keyword = keyword or p.kind is p.KEYWORD_ONLY
        if first is not None and i == 0:
            parts.append(first)
        else:
            positional = positional or p.kind is p.POSITIONAL_ONLY
            parts.append(write_parameter(p, annotations[p.name]))
    return ", ".join([*parts, "/"] if positional else parts)


def is_tuple(cls: Any) -> bool:
    return isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")


def write_result(stub: Stub, returns: str, value: str, function: FunctionType) -> str:
    """Return the return annotation with ``value``, Tensor or Array, in the place of what depends on the inputs."""
    cls = function.__globals__.get(returns)
    if is_tuple(cls):
        stub.tuples.setdefault(returns, cls)
        return f"{returns}[{value}]"
    return returns.replace("Any", value)


def find_array_annotation(p: inspect.Parameter) -> str:
    """Return the annotation of an input where all inputs are arrays.

    One that comes after the others must not take Tensors.
    """
    late = p.kind is p.VAR_POSITIONAL or (p.default is not p.empty and p.annotation == "TensorLike")
    return "ArrayOrNumber" if late else INPUTS[p.annotation][0]


def write_function(stub: Stub, name: str, function: Any) -> list[str]:
    """Return a public function as the stub has it: with overloads if what it returns depends on its inputs."""
    plain = inspect.unwrap(function)
    parameters = list(inspect.signature(plain).parameters.values())
    annotations = {p.name: stub.mention(p.annotation, plain.__module__) for p in parameters}
    returns = str(inspect.signature(plain).return_annotation)
    doc = f'    """{read_summary(plain)}"""'
    inputs = [p for p in parameters if p.annotation in INPUTS]
    depends = inputs and ("Any" in returns or is_tuple(plain.__globals__.get(returns)))
    if not depends:
        returns = stub.mention(write_result(stub, returns, "Tensor", plain), plain.__module__)
        return [f"def {name}({write_parameters(parameters, annotations)}) -> {returns}:", doc]
    tensor, array = (write_result(stub, returns, value, plain) for value in ("Tensor", "Array"))
    arrays = annotations | {p.name: find_array_annotation(p) for p in inputs}
    lines = []
    needed = [p for p in inputs if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    lists = [p for p in inputs if p.annotation.startswith("Sequence")]
    if not lists:
        for p in needed:
            one = annotations | {p.name: INPUTS[p.annotation][1]}
            lines += ["@overload", f"def {name}({write_parameters(parameters, one)}) -> {tensor}:", doc]
    array_only = [f"def {name}({write_parameters(parameters, arrays)}) -> {array}: ..."]
    general = [f"def {name}({write_parameters(parameters, annotations)}) -> {tensor}: ..."]
    if lists or len(needed) < len(inputs):  # what else there is has a Tensor in it
        if not needed or lists:
            array_only, general = [*array_only], [general[0].removesuffix(" ..."), doc]
        return [*lines, "@overload", *array_only, "@overload", *general]
    return [*lines, "@overload", *array_only]


# ---- the files


def add_ops(stub: Stub, module: Any, names: Iterable[str]) -> None:
    """Definitions of functions that ops are, each under its own name first and then by its other names."""
    first: dict[int, str] = {}
    names = list(names)
    for name in sorted(names, key=lambda n: inspect.unwrap(getattr(module, n)).__name__ != n):
        function = getattr(module, name)
        key = id(inspect.unwrap(function))
        if key in first:
            stub.lines.append(f"{name} = {first[key]}")
        else:
            first[key] = name
            stub.lines += write_function(stub, name, function)


def is_op_function(value: Any) -> bool:
    return isinstance(value, FunctionType) and inspect.unwrap(value).__module__.startswith("pullback.ops")


def write_module(name: str) -> str:
    module = getattr(pb, name)
    stub = Stub(f"The functions of ``pb.{name}``")
    names = [n for n in module.__all__ if is_op_function(getattr(module, n))]
    others = [n for n in module.__all__ if n not in names and not is_tuple(getattr(module, n))]
    for n in others:
        stub.lines.append(f"from {getattr(module, n).__module__} import {n} as {n}")
    add_ops(stub, module, names)
    for n in module.__all__:
        if is_tuple(getattr(module, n)):
            stub.tuples.setdefault(n, getattr(module, n))
    return stub.text()


def write_package() -> str:
    stub = Stub("The public names of the package")
    public = [n for n in dir(pb) if not n.startswith("_")]
    values = {n: getattr(pb, n) for n in public}
    ops = [n for n in public if is_op_function(values[n])]
    for n in public:
        value = values[n]
        if n in ops or n == "Tensor" or (is_tuple(value) and value.__module__.startswith("pullback.ops")):
            continue
        if n in TRANSFORMS:
            stub.lines.append(f"from pullback.signatures.transforms import {n} as {n}")
        elif isinstance(value, ModuleType):
            parent, _, own = value.__name__.rpartition(".")
            parent = "pullback.signatures" if n in MODULES else parent or "pullback"
            stub.lines.append(f"from {parent} import {own} as {n}")
        else:
            target = inspect.unwrap(value) if isinstance(value, FunctionType) else value
            stub.lines.append(f"from {target.__module__} import {target.__name__} as {n}")
    stub.lines += ["", "__version__: str", ""]
    add_ops(stub, pb, ops)
    for n in public:
        if is_tuple(values[n]) and values[n].__module__.startswith("pullback.ops"):
            stub.tuples.setdefault(n, values[n])
    stub.lines += [f"{other} = {name}" for other, name in ALIASES.items()]
    stub.imports -= {TENSOR}
    stub.imports.add(f"{TENSOR} as Tensor")
    return stub.text()


# ---- methods of Tensor


def write_method(stub: Stub, name: str, function: Any) -> list[str]:
    plain = inspect.unwrap(function)
    if plain.__name__ == "<lambda>":  # a ufunc of NumPy without parameters
        return [f"def {name}(self) -> Tensor: ..."]
    signature = inspect.signature(plain)
    parameters = list(signature.parameters.values())
    variadic = parameters[0].annotation.startswith("Sequence")
    annotations = {p.name: stub.mention(p.annotation, plain.__module__) for p in parameters}
    returns = write_result(stub, str(signature.return_annotation), "Tensor", plain)
    if variadic:
        return []
    lines = [f"def {name}({write_parameters(parameters, annotations, 'self')}) -> {returns}:"]
    return [*lines, "    ..." if name.startswith("__") else f'    """{read_summary(plain)}"""']


def write_operator(word: str) -> list[str]:
    """Return an operator of two operands."""
    other = "object" if word in ("__eq__", "__ne__") else "TensorLike"
    ignored = "  # type: ignore[override]" if other == "object" else ""
    return [f"def {word}(self, other: {other}, /) -> Tensor: ...{ignored}"]


def write_methods() -> str:
    stub = Stub("The methods and operators that ops give to ``Tensor``")
    stub.imports = {"from typing import Any", TENSOR}  # fmt: skip
    stub.imports |= {"from pullback.typing import TensorLike", *PROPERTY_IMPORTS}
    lines: list[str] = []
    for name, value in sorted(vars(Tensor).items()):
        if name in DEFINED or type(value).__name__ == "_MissingSlot":
            continue
        if isinstance(value, property):
            lines += ["@property", f"def {name}(self) -> {PROPERTIES[name]}: ..."]
            if value.fset is not None:
                lines += [f"@{name}.setter", f"def {name}(self, value: TensorLike) -> None: ..."]
        elif isinstance(value, FunctionType) and name in BINARY:
            lines += write_operator(name)
        elif isinstance(value, FunctionType):
            lines += write_method(stub, name, value)
    stub.lines = ["class TensorOps:", *(f"    {line}" for line in lines)]
    return stub.text()


PROPERTIES = {
    "real": "Tensor", "imag": "Tensor", "variable": "Callable[..., Variable]", "flat": "Flat", "itemsize": "int",
    "nbytes": "int",
}  # fmt: skip
PROPERTY_IMPORTS = {
    "from collections.abc import Callable",
    "from pullback.core.variable import Variable",
    "from pullback.interop.numpy_methods import Flat",
}
WORDS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
BINARY = {f"__{p}{w}__" for w in WORDS for p in ("", "r", "i")} | {f"__{w}__" for w in COMPARISONS}
DEFINED = {
    node.name
    for cls in ast.parse(inspect.getsource(Tensor)).body
    for node in ast.walk(cls)
    if isinstance(node, ast.FunctionDef)
} | {"__module__", "__doc__", "__slots__", "__hash__", "__dir__"}


def write_files() -> dict[Path, str]:
    texts = {SOURCE / "__init__.pyi": write_package(), SOURCE / "signatures" / "tensor_ops.pyi": write_methods()}
    return texts | {SOURCE / "signatures" / f"{name}.pyi": write_module(name) for name in MODULES}


def format_stubs(texts: dict[Path, str]) -> dict[Path, str]:
    """Return the same files as ruff lays them out."""
    with TemporaryDirectory() as folder:
        drafts = {path: Path(folder) / f"{path.parent.name}_{path.name}" for path in texts}
        for path, text in texts.items():
            drafts[path].write_text(text, "utf-8")
        command = [sys.executable, "-m", "ruff", "format", "--quiet", "--config", str(CONFIG), folder]
        subprocess.run(command, check=True)
        return {path: draft.read_text("utf-8") for path, draft in drafts.items()}


if __name__ == "__main__":
    texts = format_stubs(write_files())
    if "--check" not in sys.argv:
        for path, text in texts.items():
            path.write_text(text, "utf-8")
    else:
        old = [path.name for path, text in texts.items() if not path.exists() or path.read_text("utf-8") != text]
        if old:
            sys.exit(f"{', '.join(old)}: not what the registry says: run python script/write_signatures.py")
