"""The dtype that an argument names."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pullback.typing import DType

# np.dtype itself, with one signature: of its overloads type checkers try all for each member of a DType.
make_dtype: Callable[[DType], np.dtype[Any]] = np.dtype
