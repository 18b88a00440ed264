"""Special functions of SciPy by name: one op for each number of arguments, with a table of derivatives by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import Sample, broadcast
from pullback.core.calculus import partials
from pullback.core.op import REGISTRY, op
from pullback.errors import NoRuleError
from pullback.ops.special.lazy_scipy import Through

if TYPE_CHECKING:
    from pullback.typing import TensorLike, Value

__all__: list[str] = []

Slope = Callable[..., Any]  # of the result and the inputs: the partial derivative
SHARE = (0.1, 0.9)
SLOPES: dict[str, tuple[Slope | None, ...]] = {}  # filled by ``slopes``, which says each in terms of others


class Named(broadcast):
    """How a special function acts: its inputs broadcast; the first ones may be orders, which are whole numbers."""

    def __init__(self, inputs: int, name: str, orders: int = 0) -> None:
        super().__init__(",".join(["()"] * inputs) + "->()")
        self.name, self.orders = name, orders

    def samples(self) -> list[Sample]:
        return [
            ((*(np.ones(s, int) for s in shapes[: self.orders]), *shapes[self.orders :]), {"name": self.name})
            for shapes, _ in super().samples()
        ]


def _differentiate(i: int, name: str, g: Value, z: Value, *inputs: object) -> Any:
    slope = SLOPES[name][i]
    if slope is None:
        raise NoRuleError(
            f"scipy.special.{name} has no derivative in its argument number {i + 1} here. "
            "If no gradient is wanted, pass pb.stop_gradient of it."
        )
    return g * slope(z, *inputs)


@op(
    lambda x, name: Through(name)(x),
    acts=Named(1, "dawsn"),
    d=partials(lambda g, z, x, name: _differentiate(0, name, g, z, x)),
    domain=SHARE,
)
def special_function1(x: TensorLike, /, name: str) -> Any:
    """The function of ``scipy.special`` with this name.

    >>> special_function1(0.0, "dawsn")
    np.float64(0.0)
    """


@op(
    lambda x, y, name: Through(name)(x, y),
    acts=Named(2, "powm1"),
    d=partials(
        lambda g, z, x, y, name: _differentiate(0, name, g, z, x, y),
        lambda g, z, x, y, name: _differentiate(1, name, g, z, x, y),
    ),
    domain=SHARE,
)
def special_function2(x: TensorLike, y: TensorLike, /, name: str) -> Any:
    """The function of two arguments of ``scipy.special`` with this name.

    >>> special_function2(1.0, 0.0, "gammainc")
    np.float64(0.0)
    """


@op(
    lambda x, y, w, name: Through(name)(x, y, w),
    acts=Named(3, "hyp1f1", orders=2),
    d=partials(
        lambda g, z, x, y, w, name: _differentiate(0, name, g, z, x, y, w),
        lambda g, z, x, y, w, name: _differentiate(1, name, g, z, x, y, w),
        lambda g, z, x, y, w, name: _differentiate(2, name, g, z, x, y, w),
    ),
    domain=SHARE,
)
def special_function3(x: TensorLike, y: TensorLike, w: TensorLike, /, name: str) -> Any:
    """The function of three arguments of ``scipy.special`` with this name.

    >>> special_function3(1.0, 1.0, 0.5, "betainc")
    np.float64(0.5)
    """


@op(
    lambda x, y, v, w, name: Through(name)(x, y, v, w),
    acts=Named(4, "hyp2f1", orders=3),
    d=partials(
        lambda g, z, x, y, v, w, name: _differentiate(0, name, g, z, x, y, v, w),
        lambda g, z, x, y, v, w, name: _differentiate(1, name, g, z, x, y, v, w),
        lambda g, z, x, y, v, w, name: _differentiate(2, name, g, z, x, y, v, w),
        lambda g, z, x, y, v, w, name: _differentiate(3, name, g, z, x, y, v, w),
    ),
    domain=SHARE,
)
def special_function4(x: TensorLike, y: TensorLike, v: TensorLike, w: TensorLike, /, name: str) -> Any:
    """The function of four arguments of ``scipy.special`` with this name.

    >>> special_function4(1.0, 1.0, 1.0, 0.0, "hyp2f1")
    np.float64(1.0)
    """


FUNCTIONS: dict[int, Any] = {1: special_function1, 2: special_function2, 3: special_function3, 4: special_function4}


def call_function(name: str, *args: object) -> Any:
    """Return a special function, given by its name in SciPy, of arrays or tensors.

    >>> call_function("gammaln", np.array(3.0)), call_function("erfi", 0.0)
    (np.float64(0.693147180559945...), np.float64(0.0))
    """
    if name in SLOPES:
        return FUNCTIONS[len(args)](*args, name)
    return REGISTRY[name].function(*args)
