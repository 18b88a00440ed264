"""Functions and models as ONNX files, node by node from the program that the compiler traces."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pullback import __version__
from pullback.compiler.api import compile as compile_function
from pullback.compiler.backends.onnx import encode_graph
from pullback.compiler.passes.simplify import simplify
from pullback.errors import CompileError
from pullback.train.io.saving import StrPath, write_atomically
from pullback.typing import TensorLike


def save_onnx(f: Callable[..., Any], path: StrPath, *examples: TensorLike) -> None:
    """Write a model or function as an ONNX file that computes the same, for arguments of the examples' shapes.

    The variables that it reads become constants.  Inputs are called ``input_0``, ``input_1``…, outputs ``output_0``…;
    the shapes, the batch too, are fixed.  Needs onnx: ``pip install 'pullback[onnx]'``.

    f: a model, a layer, or a function of arrays that returns an array or a tree of them.
    path: the file.
    examples: arguments like those that the file will be used with; their values do not matter.

    >>> import os, tempfile
    >>> model = pb.sequential([pb.layers.dense(3, activation="relu", input_shape=[2])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pb.save_onnx(model, os.path.join(folder, "model.onnx"), np.zeros((1, 2), np.float32))
    ...     os.listdir(folder)
    ['model.onnx']
    """
    program = compile_function(lambda *xs: f(*xs), backend="numpy").lower(*examples)
    if program.assigned or program.written_rows:
        changed = ", ".join(v.name for v in [*program.assigned, *program.written_rows])
        raise CompileError(
            f"save_onnx: the function assigns {changed}, which a file cannot do. Write an inference step."
        )
    if program.supplies:
        raise CompileError(
            "save_onnx: the function draws random numbers, which a file cannot do. Write an inference step."
        )
    traced = program.traced
    traced.outputs = traced.outputs[: program.results]
    names = [(v.name, v.numpy()) for v in program.reads]
    name = getattr(f, "name", None) or getattr(f, "__name__", "function")
    content = encode_graph(simplify(traced), names, str(name), f"pullback {__version__}")
    write_atomically(Path(os.fspath(path)), content)
