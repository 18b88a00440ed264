"""Whether calls leave objects behind."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any


def leaves_objects(call: Callable[[], Any], times: int, limit: int) -> bool:
    """Tell whether so many calls, whose results are kept, add ``limit`` or more objects.

    Threads of the test runner make objects too, so that only what happens three times counts.
    """
    call()
    for _ in range(3):
        gc.collect()
        before = len(gc.get_objects())
        kept = [call() for _ in range(times)]
        gc.collect()
        if len(gc.get_objects()) - before < limit:
            return False
        del kept
    return True
