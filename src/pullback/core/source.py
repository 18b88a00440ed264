"""Where in the user's code we are: for messages only."""

from __future__ import annotations

import sys
from os.path import basename, dirname
from types import FrameType

_OURS = dirname(dirname(__file__))
NUMPY_FILES = dirname(sys.modules["numpy"].__file__ or "numpy")
NOT_THE_USER = (_OURS, NUMPY_FILES, "<op ", "<rule ")


_users: dict[str, str] = {}  # the last part of a path if it is the user's, for those that were asked about


def user_place() -> tuple[str, int]:
    """File and number of the innermost line that is neither ours nor NumPy's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        its = _users.get(name)
        if its is None:
            its = _users[name] = "" if name.startswith(NOT_THE_USER) else basename(name)
        if its:
            return name, frame.f_lineno
        frame = frame.f_back
    return "an unknown file", 0


def user_line() -> str:
    """The same as ``file.py:12``."""
    name, line = user_place()
    return f"{_users.get(name, name)}:{line}"
