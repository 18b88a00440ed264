"""Low-rank adaptation (LoRA): a frozen matrix, and a trained product of two narrow ones that is added to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from pullback.core.variable import Variable
from pullback.errors import ArgumentError
from pullback.train.arguments import check_count
from pullback.train.nn.initializers import InitializerLike
from pullback.train.nn.layers.base import Layer


@dataclass(eq=False)
class AdaptableLayer(Layer):
    """A layer with a matrix to which ``enable_lora`` adds a product of low rank.

    - lora_rank: the rank of what is added to the matrix; None for nothing.
    - lora_alpha: the product is multiplied by ``lora_alpha / lora_rank``; the rank unless it is given.
    """

    lora_rank: int | None = field(default=None, kw_only=True)
    lora_alpha: float | None = field(default=None, kw_only=True)

    adapted: ClassVar[str] = "kernel"  # the attribute that has the matrix

    def enable_lora(
        self,
        rank: int,
        a_initializer: InitializerLike = "he_uniform",
        b_initializer: InitializerLike = "zeros",
        lora_alpha: float | None = None,
    ) -> None:
        """Freeze the matrix of a layer that has its variables, and train a product of low rank that is added to it.

        rank: the rank of the product.
        a_initializer: the initial values of its first factor.
        b_initializer: the initial values of its second factor.
        lora_alpha: the product is multiplied by this, divided by the rank; the rank unless it is given.

        >>> layer = pb.layers.dense(8)
        >>> y = layer(np.ones((1, 6)))
        >>> layer.enable_lora(2)
        >>> [v.shape for v in layer.trainable_variables], bool(np.all(layer(np.ones((1, 6))) == y))
        ([(8,), (6, 2), (2, 8)], True)
        """
        if not self.built:
            raise ArgumentError(f"{self.name}.enable_lora: the layer has no variables yet: build it, or call it once.")
        if self.lora_rank is not None:
            raise ArgumentError(f"{self.name}.enable_lora: it is enabled already, with rank {self.lora_rank}.")
        check_count(f"{self.name}.enable_lora", "rank", rank)
        self.lora_rank, self.lora_alpha = rank, lora_alpha
        self.build_lora(a_initializer, b_initializer)

    def build_lora(
        self, a_initializer: InitializerLike = "he_uniform", b_initializer: InitializerLike = "zeros"
    ) -> None:
        """Make the two factors and freeze the matrix, if there is a rank."""
        if self.lora_rank is None:
            return
        matrix: Variable = getattr(self, self.adapted)
        self.lora_a = self.weight(f"lora_{self.adapted}_a", (*matrix.shape[:-1], self.lora_rank), a_initializer)
        self.lora_b = self.weight(f"lora_{self.adapted}_b", (self.lora_rank, matrix.shape[-1]), b_initializer)
        self.__dict__.setdefault("_fixed", []).append(matrix)
        matrix.trainable = False

    def merge_lora(self) -> None:
        """Add the product to the matrix and go on with that alone, which is trained again; for files of Keras.

        >>> layer = pb.layers.dense(2, lora_rank=1)
        >>> y = layer(np.ones((1, 3)))
        >>> layer.merge_lora()
        >>> len(layer.trainable_variables)
        2
        """
        if self.lora_rank is not None:
            matrix: Variable = getattr(self, self.adapted)
            matrix.assign(self.adapt(matrix))
            self.__dict__["_fixed"] = [v for v in self.__dict__["_fixed"] if v is not matrix]
            matrix.trainable = self.trainable
            self.lora_rank = self.lora_alpha = None
            del self.lora_a, self.lora_b

    def adapt(self, matrix: Any) -> Any:
        """Return the matrix with the product added to it, if there is one."""
        return matrix if self.lora_rank is None else matrix.read() + self.compute_update(self.lora_a)

    def compute_update(self, rows: Any) -> Any:
        """Return the product of rows of the first factor and the second one, scaled."""
        rank: Any = self.lora_rank
        scale = (rank if self.lora_alpha is None else self.lora_alpha) / rank
        update = rows @ self.lora_b.read()
        return update if scale == 1.0 else update * scale
