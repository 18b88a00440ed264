"""Tracebacks that end at the user's line: IPython and pytest hide the library's own frames."""

from __future__ import annotations

import os
import sys
from inspect import CO_OPTIMIZED
from os.path import dirname
from types import FrameType, TracebackType
from typing import Any

__all__ = ["hide_calls", "hide_frames", "register_with_ipython"]

LINES_OF_FRAME = {1: 5, 2: 3}  # of the source, by how many frames IPython shows; of more frames it shows one line each
FULL = "PULLBACK_FULL_TRACEBACK"  # set to 1: every frame is shown
MARK = "__tracebackhide__"  # what IPython and pytest look for among the locals of a frame
READERS = {"IPython", "_pytest"}  # without them no frame is touched
LIBRARY = (dirname(__file__), dirname(sys.modules["numpy"].__file__ or "numpy"), "<op ", "<rule ")


def shows_all() -> bool:
    """Return whether every frame is to be shown."""
    return os.environ.get(FULL, "0") not in ("", "0")


def hide_calls(frame: FrameType | None) -> None:
    """Mark a frame and its callers as hidden, up to the first that is neither this library's nor NumPy's."""
    if sys.modules.keys().isdisjoint(READERS) or shows_all():
        return
    while frame is not None and frame.f_code.co_filename.startswith(LIBRARY):
        if frame.f_code.co_flags & CO_OPTIMIZED:  # not the body of a module or a class, whose locals are its names
            found = frame.f_locals
            if (
                type(found) is dict
            ):  # a copy, before Python 3.13: it would keep what the frame holds, the error among it
                found.clear()
            found[MARK] = True
        frame = frame.f_back


def hide_frames(traceback: TracebackType | None) -> None:
    """Mark all frames of this library and of NumPy in a traceback as hidden, and the callers of the first."""
    if traceback is not None:
        hide_calls(traceback.tb_frame.f_back)
    while traceback is not None:
        hide_calls(traceback.tb_frame)
        traceback = traceback.tb_next


def register_with_ipython(errors: type[Exception]) -> None:
    """Make IPython, if it runs, end tracebacks of these errors at the user's line.

    The mark is not enough, as IPython shows the last frame in any case.  Nothing is done where another handler is set.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None and not shell.custom_exceptions and not shows_all():
        shell.set_custom_exc((errors,), _show_error)


def _show_error(shell: Any, kind: type, error: BaseException, traceback: Any, tb_offset: int | None = None) -> None:
    at: BaseException | None = error
    while at is not None:
        inner = at.__cause__ or at.__context__
        if inner is not None and not _end_at_user(inner.__traceback__):
            at.__cause__ = at.__context__ = (
                None  # what the later error says in better words: nothing of it is the user's
            )
            break
        at = inner
    _end_at_user(traceback)
    tracebacks = shell.InteractiveTB
    if tracebacks.mode != "Context":  # which the user has chosen
        shell.showtraceback((kind, error, traceback), tb_offset=tb_offset)
        return
    lines = LINES_OF_FRAME.get(_count_shown(traceback, tb_offset or tracebacks.tb_offset), 1)
    shell._showtraceback(kind, error, tracebacks.structured_traceback(kind, error, traceback, tb_offset, lines))


def _count_shown(traceback: TracebackType | None, skipped: int) -> int:
    """Return how many frames IPython shows after the first ones, which are its own."""
    shown = 0
    while traceback is not None:
        skipped, shown = skipped - 1, shown + (skipped <= 0 and MARK not in traceback.tb_frame.f_locals)
        traceback = traceback.tb_next
    return shown


def _end_at_user(traceback: TracebackType | None) -> bool:
    """Cut a traceback after its last frame that is not hidden; return whether there is one."""
    last = None
    while traceback is not None:
        if MARK not in traceback.tb_frame.f_locals:
            last = traceback
        traceback = traceback.tb_next
    if last is not None:
        last.tb_next = None
    return last is not None
