"""Vector spaces of values: their zeros, ones, random elements, sums and inner products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pullback.autograd.containers import align, children, flatten, rebuild
from pullback.core.tensor import Tensor

if TYPE_CHECKING:
    from pullback.typing import Tree

__all__: list[str] = []


class VSpace:
    """The vector space that a value is an element of."""

    mappings: ClassVar[dict[type, Callable[[Any], Any]]] = {}
    iscomplex = False
    shape: Any
    size: int

    def __init__(self, value: Any) -> None:
        pass

    def zeros(self) -> Any:
        """Return the zero of this space."""
        raise NotImplementedError(repr(self))

    def ones(self) -> Any:
        """Return the element whose every component is one."""
        raise NotImplementedError(repr(self))

    def randn(self) -> Any:
        """Return an element of normally distributed components."""
        raise NotImplementedError(repr(self))

    def standard_basis(self) -> Iterator[Any]:
        """Yield the elements with one component that is one."""
        raise NotImplementedError(repr(self))

    def add(self, x: Tree, y: Tree) -> Any:
        """Return the sum of two elements; None is zero."""
        return y if x is None else self._add(x, y)

    mut_add = add  # nothing is changed in place here

    def scalar_mul(self, x: Tree, a: complex) -> Any:
        """Return an element times a number."""
        return self._scalar_mul(x, a)

    def inner_prod(self, x: Tree, y: Tree) -> Any:
        """Return the inner product of two elements."""
        return self._inner_prod(x, y)

    def covector(self, x: Tree) -> Any:
        """Return the cotangent that stands for an element."""
        return self._covector(x)

    def _add(self, x: Any, y: Any) -> Any:
        return x + y

    def _scalar_mul(self, x: Any, a: complex) -> Any:
        return x * a

    def _inner_prod(self, x: Any, y: Any) -> Any:
        raise NotImplementedError(repr(self))

    def _covector(self, x: Any) -> Any:
        return x

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}_{vars(self)}"

    @classmethod
    def register(cls, value_type: type, vspace_maker: Callable[[Any], Any] | None = None) -> None:
        """Let the values of a type be elements of this space."""
        VSpace.mappings[value_type] = vspace_maker or cls


class ArrayVSpace(VSpace):
    """Real arrays of one shape."""

    def __init__(self, value: Any) -> None:
        self.shape, self.dtype = np.shape(value), np.result_type(value)

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of real components."""
        return int(np.prod(self.shape))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def zeros(self) -> Any:
        return np.zeros(self.shape, self.dtype)

    def ones(self) -> Any:
        return np.ones(self.shape, self.dtype)

    def randn(self) -> Any:
        return np.asarray(np.random.standard_normal(self.shape)).astype(self.dtype)  # noqa: NPY002  # as autograd draws

    units: ClassVar[tuple[complex, ...]] = (1.0,)

    def standard_basis(self) -> Iterator[Any]:
        for index in np.ndindex(*self.shape):
            for unit in self.units:
                element = self.zeros()
                element[index] = unit
                yield element

    def _inner_prod(self, x: Any, y: Any) -> Any:
        return np.dot(np.ravel(x), np.ravel(y))


class ComplexArrayVSpace(ArrayVSpace):
    """Complex arrays of one shape, as a real vector space of twice as many components."""

    iscomplex = True
    units = (1.0, 1.0j)

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of real components."""
        return 2 * int(np.prod(self.shape))

    def ones(self) -> Any:
        return np.full(self.shape, 1.0 + 1.0j, self.dtype)

    def randn(self) -> Any:
        return super().randn() + (1.0j * super().randn()).astype(self.dtype)

    def _inner_prod(self, x: Any, y: Any) -> Any:
        return np.real(np.dot(np.conj(np.ravel(x)), np.ravel(y)))

    def _covector(self, x: Any) -> Any:
        return np.conj(x)


class ContainerVSpace(VSpace):
    """Lists, tuples and dicts built alike: the product of the spaces of their leaves."""

    def __init__(self, value: Any) -> None:
        parts = children(value)
        self.kind = type(value)
        self.shape = parts[1]([vspace(part) for part in parts[0]]) if parts is not None else value

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of real components."""
        return sum(space.size for space in flatten(self.shape))

    def _map(self, f: Callable[..., Any], *others: object) -> Any:
        rows = zip(flatten(self.shape), *(align(self.shape, other) for other in others), strict=True)
        return rebuild(self.shape, iter([f(*row) for row in rows]))

    def zeros(self) -> Any:
        return self._map(lambda space: space.zeros())

    def ones(self) -> Any:
        return self._map(lambda space: space.ones())

    def randn(self) -> Any:
        return self._map(lambda space: space.randn())

    def standard_basis(self) -> Iterator[Any]:
        spaces = flatten(self.shape)
        zeros = [space.zeros() for space in spaces]
        for i, space in enumerate(spaces):
            for one in space.standard_basis():
                yield rebuild(self.shape, iter([*zeros[:i], one, *zeros[i + 1 :]]))

    def _add(self, x: Any, y: Any) -> Any:
        return self._map(lambda space, a, b: space.add(a, b), x, y)

    def _scalar_mul(self, x: Any, a: complex) -> Any:
        return self._map(lambda space, part: space.scalar_mul(part, a), x)

    def _inner_prod(self, x: Any, y: Any) -> Any:
        return sum(flatten(self._map(lambda space, a, b: space.inner_prod(a, b), x, y)))

    def _covector(self, x: Any) -> Any:
        return self._map(lambda space, part: space.covector(part), x)


def vspace(value: Tree) -> Any:
    """Return the vector space that a value is an element of.

    value: a number, an array, a tensor, a list, tuple or dict of them, or a value of a registered type.

    >>> vspace([1.0, 2.0]).ones()
    [array(1.), array(1.)]
    """
    maker = VSpace.mappings.get(type(value))
    if maker is not None:
        return maker(value)
    if isinstance(value, Tensor | np.ndarray | np.number | float | complex) and not isinstance(value, bool):
        return ComplexArrayVSpace(value) if np.iscomplexobj(value) else ArrayVSpace(value)
    if children(value) is not None:
        return ContainerVSpace(value)
    raise TypeError(f"Can't find vector space for value {value} of type {type(value)}.")
