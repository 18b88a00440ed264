"""A page that shows the gradient of a function in a script: source, graph, values, cotangents."""

from __future__ import annotations

import argparse
import ast
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pullback.compiler.api import compile as compile_function
from pullback.compiler.profile import Profile
from pullback.diagnostics.nans import diagnose
from pullback.errors import ArgumentError, PullbackError
from pullback.transforms.grad import grad


def run(given: Sequence[str]) -> int:
    """Run ``pullback report script.py:function`` and return the exit status."""
    parser = argparse.ArgumentParser(prog="pullback report", description=__doc__)
    parser.add_argument("function", help="script.py:function; the script is run first, but not as the main program")
    parser.add_argument("--args", default="", metavar="VALUES", help='arguments of the function, such as "2.0, [1, 2]"')
    parser.add_argument("--out", default="report.html", metavar="FILE", help="the page to write (report.html)")
    options = parser.parse_args(given)
    script, _, name = options.function.rpartition(":")
    if not script or not Path(script).is_file():
        parser.error(f"write script.py:function with a script that is there, got {options.function!r}")
    try:
        args = ast.literal_eval(f"[{options.args}]")
    except (SyntaxError, ValueError):
        parser.error(f"--args must be numbers and lists of numbers with commas between, got {options.args!r}")
    sys.path.insert(0, str(Path(script).resolve().parent))  # as python does, for what the script imports
    function = runpy.run_path(script).get(name)
    if not callable(function):
        parser.error(f"{script} has no function {name!r}")
    try:
        report = diagnose(function)(*args)
    except (ArgumentError, TypeError) as error:
        parser.error(f"{name}: {error}")
    print(report)
    print(f"The page is {report.to_html(options.out, _profile_gradient(function, args))}.")
    return 0


def _profile_gradient(function: Callable[..., Any], args: Sequence[Any]) -> Profile | None:
    """Return what the kernels of the compiled gradient take; None for a function that is not compiled."""
    try:
        compiled: Any = compile_function(grad(function, argnums=tuple(range(len(args)))))
        profile: Profile = compiled.profile(*args)
        return profile
    except PullbackError:
        return None
