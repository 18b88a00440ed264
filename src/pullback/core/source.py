"""Lines of the user's code, for error messages; compilation of generated source text."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from functools import partial
from os.path import basename, dirname, exists, join
from types import CodeType, FrameType
from typing import Any

OURS = dirname(dirname(__file__))
NUMPY_FILES = dirname(sys.modules["numpy"].__file__ or "numpy")
NOT_THE_USER = (OURS, NUMPY_FILES, "<op ", "<rule ")
_NOT_THEIR_LINE = (*NOT_THE_USER, join(dirname(NUMPY_FILES), "scipy", ""))  # a line of SciPy helps nobody


LOOPS: set[int] = set()  # ids of the code of loops of this library that perform many ops for one line of the user's
_users: dict[str, str] = {}  # by file that was looked up: what stands before a line's number if it is the user's


def find_user_place() -> tuple[str, int]:
    """Return the file and the line number of the innermost frame that is not in this library, NumPy or SciPy."""
    frame, _ = _find_user_frame(sys._getframe(1))
    return (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("an unknown file", 0)


def find_user_line() -> str:
    """Return the innermost line of the user's code, as ``file.py:12``, or ``cell 3, line 12`` in a notebook."""
    frame, before = _find_user_frame(sys._getframe(1))
    return f"{before}{frame.f_lineno}" if frame is not None else "an unknown file:0"


def _find_user_frame(frame: FrameType | None) -> tuple[FrameType | None, str]:
    """Return the innermost frame of the user's from this one on, and what stands before its line number."""
    while frame is not None:
        prefix = _users.get(frame.f_code.co_filename)
        if prefix is None:
            prefix = _look_up(frame.f_code.co_filename)
        if prefix:
            return frame, prefix
        frame = frame.f_back
    return None, ""


def _look_up(file: str) -> str:
    """Return what stands before a line's number if the file is the user's, else an empty string; remember it."""
    _users[file] = prefix = "" if file.startswith(_NOT_THEIR_LINE) else _name_file(file)
    return prefix


class LineFinder:
    """Finds the user's lines of many ops; the line around a loop of this library (``LOOPS``) is looked up once.

    Python makes an object of each frame that is looked at: looking at all frames for each op is a tenth of tracing.
    """

    __slots__ = ("line", "loop")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop the frame of the loop, which refers to all its variables."""
        self.loop: FrameType | None = None  # the frame of the loop that was seen last
        self.line = ""  # the user's line around it

    def find(self, depth: int) -> str:
        """Return the innermost line of the user's code outside the innermost ``depth`` frames."""
        frame: FrameType | None = sys._getframe(depth)
        loop = None
        while frame is not None:
            code = frame.f_code
            prefix = _users.get(code.co_filename)
            if prefix is None:
                prefix = _look_up(code.co_filename)
            if prefix:
                line = f"{prefix}{frame.f_lineno}"
                if loop is not None:
                    self.loop, self.line = loop, line
                return line
            if id(code) in LOOPS:
                if frame is self.loop:
                    return self.line
                loop = loop or frame
            frame = frame.f_back
        return "an unknown file:0"


def format_place(file: str, line: int) -> str:
    """Return a line of a file in words: ``file.py:12``, or ``cell 3, line 12`` in a notebook.

    >>> format_place("/home/me/model.py", 12)
    'model.py:12'
    """
    before = _users.get(file) or _name_file(file)
    return f"{before}{line}"


def name_file(file: str) -> str:
    """Return how a file is called in reports: ``model.py``, or ``cell 3`` in a notebook.

    >>> name_file("/home/me/model.py")
    'model.py'
    """
    return _name_file(file).removesuffix(":").removesuffix(", line ")


def _name_file(file: str) -> str:
    """Return the text before the line number in messages about this file."""
    shell = sys.modules.get("IPython")
    shell = shell and shell.get_ipython()
    label = shell and shell.compile.format_code_name(file)  # ("Cell", "In[3]") for the code of a cell
    number = "".join(filter(str.isdigit, label[1])) if label else ""
    return f"cell {number}, line " if number else f"{basename(file)}:"


def compile_text(text: str, name: str, mode: str) -> CodeType:
    """Compile generated source text, which tracebacks and debuggers then show under the file name ``name``."""
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    return compile(text, name, mode)


def is_defined_again(new: Callable[..., Any], old: Callable[..., Any]) -> bool:
    """Return whether a function redefines ``old``: a notebook cell run twice, a reloaded module, the same line."""
    new, old = _plain_function(new), _plain_function(old)
    code, before = getattr(new, "__code__", None), getattr(old, "__code__", None)
    if new is old or code is None or before is None or new.__module__ != old.__module__:
        return new is old
    if not exists(code.co_filename) and not exists(before.co_filename):
        return True  # cells of a notebook, or lines typed in
    if new.__qualname__ != old.__qualname__:
        return False
    at_top = "<" not in new.__qualname__  # neither within a function nor a lambda: the name shows which it is
    return at_top or (code.co_filename, code.co_firstlineno) == (before.co_filename, before.co_firstlineno)


def _plain_function(f: Callable[..., Any]) -> Any:
    while isinstance(f, partial):
        f = f.func
    return f if hasattr(f, "__code__") else vars(type(f)).get("__call__", f)
