"""``scipy.spatial.transform``: rotations in space, differentiable by their parameters and the rotated vectors."""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tensor import all_values, call_unfollowed
from pullback.errors import ArgumentError
from pullback.scipy.arguments import as_float, list_functions, make_fallback

if TYPE_CHECKING:
    from pullback.typing import TensorLike, Value

NAMES = ("Rotation",)
SMALL = 1e-6  # squares of sines below which a series has all digits


__getattr__ = partial(make_fallback, "spatial.transform")
__dir__ = partial(list_functions, "spatial.transform")


def _split(q: Value) -> tuple[Any, Any, Any, Any]:
    return q[..., 0], q[..., 1], q[..., 2], q[..., 3]


def _multiply(p: Value, q: Value) -> Any:
    """Return the product of quaternions: the rotation by ``q``, then by ``p``."""
    (a, b, c, d), (x, y, z, w) = _split(p), _split(q)
    return np.stack(
        [
            d * x + a * w + b * z - c * y, d * y - a * z + b * w + c * x, d * z + a * y - b * x + c * w,
            d * w - a * x - b * y - c * z,
        ], -1,
    )  # fmt: skip


def _join(vector: Value, scalar: Value) -> Any:
    return np.concatenate([vector, np.expand_dims(scalar, -1)], -1)


class Rotation:
    """Rotations in space, as ``scipy.spatial.transform.Rotation``: one, or several along the first axes.

    >>> turn = Rotation.from_rotvec([0.0, 0.0, np.pi / 2])
    >>> turn.apply([1.0, 0.0, 0.0]).round(6) + 0.0
    array([0., 1., 0.])
    >>> pb.grad(lambda a: Rotation.from_euler("z", a).apply([1.0, 0.0, 0.0])[1])(0.0)
    1.0
    """

    def __init__(self, quat: TensorLike, normalize: bool = True, scalar_first: bool = False) -> None:
        q = as_float(quat)
        if q.ndim < 1 or q.shape[-1] != 4:
            raise ArgumentError(f"Rotation: expected quaternions of four numbers, got shape {q.shape}.")
        q = np.roll(q, -1, -1) if scalar_first else q
        self._quat: Any = q / np.linalg.norm(q, axis=-1, keepdims=True) if normalize else q

    # ---- from other forms

    @classmethod
    def from_quat(cls, quat: TensorLike, *, scalar_first: bool = False) -> Rotation:
        """Return the rotations of quaternions, which are normalized; the scalar is the last number, or the first."""
        return cls(quat, True, scalar_first)

    @classmethod
    def from_rotvec(cls, rotvec: TensorLike, degrees: bool = False) -> Rotation:
        """Return the rotations about vectors, by angles that are their lengths."""
        v = _check_vectors("from_rotvec", rotvec)
        v = v * (math.pi / 180) if degrees else v
        square = np.sum(v * v, -1)
        small = square < SMALL
        half = np.sqrt(np.where(small, 1.0, square)) / 2
        share = np.where(small, 0.5 - square / 48 + square**2 / 3840, np.sin(half) / (2 * half))
        scalar = np.where(small, 1 - square / 8 + square**2 / 384, np.cos(half))
        return cls(_join(v * np.expand_dims(share, -1), scalar), False)

    @classmethod
    def from_mrp(cls, mrp: TensorLike) -> Rotation:
        """Return the rotations of modified Rodrigues parameters: axes times the tangent of a quarter of the angle."""
        v = _check_vectors("from_mrp", mrp)
        square = np.sum(v * v, -1)
        return cls(_join(2 * v, 1 - square) / np.expand_dims(1 + square, -1), False)

    @classmethod
    def from_matrix(cls, matrix: TensorLike) -> Rotation:
        """Return the rotations of orthogonal matrices."""
        m = as_float(matrix)
        if m.ndim < 2 or m.shape[-2:] != (3, 3):
            raise ArgumentError(f"Rotation.from_matrix: expected 3 × 3 matrices, got shape {m.shape}.")
        _check_orthogonal(all_values(m))
        for _ in range(2):  # Newton's steps to the nearest orthogonal matrix, which SciPy takes: gradients are its own
            m = m @ (1.5 * np.eye(3) - 0.5 * (np.swapaxes(m, -1, -2) @ m))
        d = [m[..., i, i] for i in range(3)]
        rows = [
            [1 + d[i] - d[(i + 1) % 3] - d[(i + 2) % 3] if i == j else m[..., j, i] + m[..., i, j] for j in range(3)]
            + [m[..., (i + 2) % 3, (i + 1) % 3] - m[..., (i + 1) % 3, (i + 2) % 3]]
            for i in range(3)
        ]
        rows.append([*(row[3] for row in rows), 1 + d[0] + d[1] + d[2]])
        every = np.stack([np.stack(row, -1) for row in rows], -2)  # the same quaternion four times, but for its length
        longest = call_unfollowed(lambda e: np.argmax(np.einsum("...ii->...i", e), -1)[..., None, None], every)
        return cls(np.squeeze(np.take_along_axis(every, longest, -2), -2))

    @classmethod
    def from_euler(cls, seq: str, angles: TensorLike, degrees: bool = False) -> Rotation:
        """Return the rotations by angles about axes in turn: fixed ones (``"xyz"``) or turned ones (``"XYZ"``)."""
        axes, is_fixed = _read_axes(seq)
        a = as_float(angles)
        a = a * (math.pi / 180) if degrees else a
        a = a if a.ndim else np.expand_dims(a, -1)
        if a.shape[-1] != len(axes):
            raise ArgumentError(f"Rotation.from_euler: {seq!r} needs {len(axes)} angles, got shape {a.shape}.")
        rotation: Any = None
        for n, axis in enumerate(axes):
            half = a[..., n, None] / 2
            turn = np.concatenate([np.sin(half) * np.eye(3)[axis], np.cos(half)], -1)
            rotation = (
                turn if rotation is None else _multiply(turn, rotation) if is_fixed else _multiply(rotation, turn)
            )
        return cls(rotation, False)

    @classmethod
    def identity(cls, num: int | None = None) -> Rotation:
        """Return the rotation that turns nothing, or several."""
        return cls(np.broadcast_to(np.eye(4)[3], (4,) if num is None else (num, 4)), False)

    # ---- to other forms

    def as_quat(self, canonical: bool = False, *, scalar_first: bool = False) -> Any:
        """Return the quaternions, with the scalar last or first; with the scalar not negative where ``canonical``."""
        q = self._canonical() if canonical else self._quat
        return np.roll(q, 1, -1) if scalar_first else q

    def _canonical(self) -> Any:
        """Return the quaternions with a scalar that is not negative."""
        return self._quat * np.where(self._quat[..., 3:] < 0, -1.0, 1.0)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Return vectors along the axes, as long as the angles."""
        q = self._canonical()
        v, w = q[..., :3], q[..., 3]
        square = np.sum(v * v, -1)
        small = square < SMALL
        sine = np.sqrt(np.where(small, 1.0, square))
        share = np.where(small, 2 + square / 3 + square**2 * (3 / 20), 2 * np.arctan2(sine, w) / sine)
        rotvec = v * np.expand_dims(share, -1)
        return rotvec * (180 / math.pi) if degrees else rotvec

    def as_mrp(self) -> Any:
        """Return modified Rodrigues parameters: the axes times the tangent of a quarter of the angle."""
        q = self._canonical()
        return q[..., :3] / (1 + q[..., 3:])

    def as_matrix(self) -> Any:
        """Return the matrices."""
        x, y, z, w = _split(self._quat)
        rows = [
            [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w],
        ]
        return np.stack([np.stack(row, -1) for row in rows], -2)

    def as_euler(self, seq: str, degrees: bool = False) -> Any:
        """Return three angles about axes one after the other: fixed ones (``"xyz"``) or turned ones (``"XYZ"``)."""
        axes, is_fixed = _read_axes(seq)
        if len(axes) != 3:
            raise ArgumentError(f"Rotation.as_euler: expected three axes, got {seq!r}.")
        i, j, k = axes if is_fixed else axes[::-1]
        is_symmetric = i == k
        k = 3 - i - j if is_symmetric else k
        sign = (i - j) * (j - k) * (k - i) // 2
        q = self._quat
        w, x, y, z = q[..., 3], q[..., i], q[..., j], q[..., k] * sign
        a, b, c, d = (w, x, y, z) if is_symmetric else (w - y, x + z, y + w, z - x)
        middle = 2 * np.arctan2(np.sqrt(c * c + d * d), np.sqrt(a * a + b * b))
        if np.any(np.abs(all_values(middle) - math.pi / 2) > math.pi / 2 - 1e-7):
            raise ArgumentError(
                f"Rotation.as_euler({seq!r}): the first and the third axis coincide (gimbal lock), so the angles have "
                "no derivative. Use other axes, or as_rotvec."
            )
        half_sum, half_difference = np.arctan2(b, a), np.arctan2(d, c)
        first, third = half_sum - half_difference, half_sum + half_difference
        if not is_symmetric:
            third, middle = third * sign, middle - math.pi / 2
        angles = np.stack([first, middle, third] if is_fixed else [third, middle, first], -1)
        angles = angles - 2 * math.pi * np.round(angles / (2 * math.pi))
        return angles * (180 / math.pi) if degrees else angles

    def magnitude(self) -> Any:
        """Return the angles, between 0 and π."""
        q = self._canonical()
        return 2 * np.arctan2(np.linalg.norm(q[..., :3], axis=-1), q[..., 3])

    # ---- turning and combining

    def apply(self, vectors: TensorLike, inverse: bool = False) -> Any:
        """Return vectors turned by the rotations, or turned back."""
        v = _check_vectors("apply", vectors)
        m = self.as_matrix()
        return np.sum((np.swapaxes(m, -1, -2) if inverse else m) * np.expand_dims(v, -2), -1)

    def inv(self) -> Rotation:
        """Return the rotations in the other direction."""
        return Rotation(self._quat * np.array([-1.0, -1.0, -1.0, 1.0]), False)

    def __mul__(self, other: Rotation) -> Rotation:
        if not isinstance(other, Rotation):
            other = Rotation(other.as_quat(), False)  # SciPy's
        return Rotation(_multiply(self._quat, other._quat), False)

    def __rmul__(self, other: Any) -> Rotation:
        return Rotation(other.as_quat(), False) * self

    def __pow__(self, n: float) -> Rotation:
        return Rotation.from_rotvec(self.as_rotvec() * n)

    def __getitem__(self, index: Any) -> Rotation:
        return Rotation(self._quat[index], False)

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return int(self._quat.shape[0])

    @property
    def single(self) -> bool:
        """Whether this is one rotation, not several."""
        return bool(self._quat.ndim == 1)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise ArgumentError(f"pb.scipy.spatial.transform.Rotation: {name} is not known here; see docs/scipy.md.")


def _check_vectors(name: str, vectors: TensorLike) -> Any:
    v = as_float(vectors)
    if v.ndim < 1 or v.shape[-1] != 3:
        raise ArgumentError(f"Rotation.{name}: expected vectors of three numbers, got shape {v.shape}.")
    return v


def _check_orthogonal(m: Any) -> None:
    if not m.size:  # a program is being compiled
        return
    apart = np.abs(np.swapaxes(m, -1, -2) @ m - np.eye(3)).max(initial=0.0)
    if apart > 1e-4 or np.any(np.linalg.det(m) < 0):
        raise ArgumentError(
            f"Rotation.from_matrix: a matrix is not orthogonal with determinant 1 (columns are off by {apart:.1e}). "
            "Take the nearest first: u @ vh of np.linalg.svd."
        )


def _read_axes(seq: str) -> tuple[list[int], bool]:
    """Return the numbers of the axes, and whether they are fixed."""
    if not 1 <= len(seq) <= 3 or not (set(seq) <= set("xyz") or set(seq) <= set("XYZ")):
        raise ArgumentError(f"Rotation: axes are one to three of 'xyz', or of 'XYZ', got {seq!r}.")
    axes = ["xyz".index(c) for c in seq.lower()]
    if any(a == b for a, b in pairwise(axes)):
        raise ArgumentError(f"Rotation: axes that follow each other must differ, got {seq!r}.")
    return axes, seq.islower()
