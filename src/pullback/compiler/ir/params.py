"""Parameters of ops in a form that can be the key of a dict."""

from __future__ import annotations

from typing import Any

from pullback.compiler.ir.graph import fingerprint


class FrozenParams(dict[str, Any]):
    """Parameters of an op as a hashable dict."""

    def __init__(self, params: dict[str, Any]) -> None:
        super().__init__(params)
        self.key = fingerprint(params) if params else ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenParams) and self.key == other.key


NO_PARAMS = FrozenParams({})
