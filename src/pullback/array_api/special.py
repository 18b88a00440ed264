"""Special functions under SciPy's names: ``xp.special``, where SciPy looks for them."""

from __future__ import annotations

from typing import Any

from pullback.names.scipy import FUNCTIONS
from pullback.scipy import special


def __getattr__(name: str) -> Any:
    if name not in FUNCTIONS["special"]:
        raise AttributeError(f"pullback.array_api.special has no {name!r}.")
    return getattr(special, name)


def __dir__() -> list[str]:
    return [*FUNCTIONS["special"]]
