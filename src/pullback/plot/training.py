"""Pictures of training: losses over epochs, gradients over steps, weights, filters, and what a classifier confuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pullback.display.axes import get_axes, make_grid
from pullback.errors import ArgumentError, DataError
from pullback.typing import TensorLike

SMALL, LARGE = 1e-7, 1e3  # norms of gradients outside these are marked


def history(result: Any, ax: Any = None) -> Any:
    """Plot the numbers of each epoch, those of the validation dashed, and return the axes.

    result: what ``fit`` returned.
    ax: matplotlib's axes to draw on; without it, those of a new figure.

    >>> import numpy as np, pullback as pb
    >>> model = pb.sequential([pb.layers.dense(1, input_shape=[2])])
    >>> model.compile(optimizer="sgd", loss="mean_squared_error")
    >>> ax = pb.plot.history(model.fit(np.ones((8, 2)), np.ones((8, 1)), epochs=3, verbose=0))
    >>> ax.get_xlabel()
    'epoch'
    """
    if not hasattr(result, "history") or not hasattr(result, "plot"):
        raise ArgumentError(f"plot.history: expected what fit returned, got {type(result).__name__}.")
    return result.plot(get_axes("plot.history", ax))


def gradients(norms: Mapping[str, Sequence[float]] | Sequence[Mapping[str, Any]], ax: Any = None) -> Any:
    """Plot the norm of each gradient over steps, with those that vanish or explode marked, and return the axes.

    norms: for each name its norms, step by step; or for each step the gradients by name, as of ``variable_grads``.
    ax: matplotlib's axes to draw on; without it, those of a new figure.

    >>> import numpy as np, pullback as pb
    >>> w = pb.variable([1.0, 2.0], name="w")
    >>> steps = [pb.variable_grads(lambda: pb.sum(w * w)).grads for _ in range(3)]
    >>> ax = pb.plot.gradients(steps)
    >>> [line.get_label() for line in ax.get_lines()]
    ['w']
    """
    table = _list_norms(norms)
    if not table:
        raise DataError("plot.gradients: there is no gradient to draw.")
    ax = get_axes("plot.gradients", ax)
    for name, values in table.items():
        y = np.asarray(values, np.float64)
        (line,) = ax.plot(np.where(np.isfinite(y) & (y > 0), y, np.nan), label=name)
        for mark, chosen in (("v", y < SMALL), ("^", y > LARGE), ("x", ~np.isfinite(y))):
            at = np.flatnonzero(chosen)
            if at.size:
                height = np.clip(np.nan_to_num(y[at], nan=LARGE), SMALL, None)
                ax.scatter(at, height, marker=mark, color=line.get_color(), zorder=3)
    ax.set_yscale("log")
    ax.set_xlabel("step")
    ax.set_ylabel("norm of the gradient")
    ax.set_title("▼ vanishing  ▲ exploding  × not finite", fontsize="small")
    ax.legend()
    return ax


def _list_norms(norms: Mapping[str, Sequence[float]] | Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return the norms by name; gradients that are missing in some step are NaN there."""
    if isinstance(norms, Mapping):
        return {name: [float(v) for v in values] for name, values in norms.items()}
    names = dict.fromkeys(name for step in norms for name in step)
    return {
        name: [float(np.linalg.norm(np.asarray(s[name]))) if s.get(name) is not None else np.nan for s in norms]
        for name in names
    }


def weights(model: Any, ax: Any = None) -> Any:
    """Plot the distribution of the values of each variable of a model, and return the axes.

    model: a model, or a dict of arrays by name.
    ax: matplotlib's axes to draw on; without it, those of a new figure.

    >>> import pullback as pb
    >>> ax = pb.plot.weights(pb.sequential([pb.layers.dense(4, input_shape=[3], name="first")]))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['first/bias', 'first/kernel']
    """
    arrays = model if isinstance(model, Mapping) else model.named_variables()
    if not arrays:
        raise DataError("plot.weights: there are no weights; build the model first, by calling it or with input_shape.")
    ax = get_axes("plot.weights", ax)
    names = list(arrays)[::-1]
    ax.boxplot(
        [np.asarray(arrays[n], np.float64).ravel() for n in names],
        orientation="horizontal",
        flierprops={"markersize": 2},
    )
    ax.set_yticks(range(1, len(names) + 1), names)
    ax.axvline(0.0, color="gray", linewidth=0.6, zorder=0)
    ax.set_xlabel("values: median, quartiles and range")
    return ax


def filters(kernel: Any, columns: int = 8, ax: Any = None) -> Any:
    """Plot the filters of a convolution, each as a small picture, and return the axes of all of them.

    kernel: an array of shape (height, width, channels, filters), or a layer with such a kernel.
    columns: how many pictures are in a row.
    ax: axes on which all filters are drawn as one picture, and which are returned; without it each has its own.

    >>> import numpy as np, pullback as pb
    >>> len(pb.plot.filters(np.ones((3, 3, 1, 5))))
    5
    """
    values = np.asarray(getattr(kernel, "kernel", kernel), np.float64)
    if values.ndim != 4:
        raise ArgumentError(
            f"plot.filters: expected an array of shape (height, width, channels, filters), got shape {values.shape}."
        )
    pictures = values if values.shape[2] in (1, 3) else values.mean(axis=2, keepdims=True)
    low, high = pictures.min(), pictures.max()
    scaled = [(picture - low) / ((high - low) or 1.0) for picture in np.moveaxis(pictures, -1, 0)]
    if ax is not None:
        ax.imshow(np.squeeze(_tile(scaled, min(columns, len(scaled)))), cmap="gray", vmin=0.0, vmax=1.0)
        ax.set_axis_off()
        return ax
    grid = make_grid("plot.filters", len(scaled), min(columns, len(scaled)))
    for each, picture in zip(grid, scaled, strict=True):
        each.imshow(np.squeeze(picture), cmap="gray", vmin=0.0, vmax=1.0)
    return grid


def _tile(pictures: list[Any], columns: int) -> Any:
    """Return pictures of one shape as one, in rows, with white lines between them."""
    framed = [np.pad(picture, ((0, 1), (0, 1), (0, 0)), constant_values=1.0) for picture in pictures]
    framed += [np.ones_like(framed[0])] * (-len(framed) % columns)
    return np.vstack([np.hstack(framed[i : i + columns]) for i in range(0, len(framed), columns)])


def confusion(labels: TensorLike, predictions: TensorLike, classes: Sequence[str] | None = None, ax: Any = None) -> Any:
    """Plot the confusion matrix of a classifier, with the accuracy of every class, and return the axes.

    labels: the true classes, as integers.
    predictions: the predicted classes as integers, or a row of scores for each example.
    classes: their names.
    ax: matplotlib's axes to draw on; without it, those of a new figure.

    >>> import pullback as pb
    >>> ax = pb.plot.confusion([0, 0, 1], [0, 1, 1], classes=["cat", "dog"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['cat (50 %)', 'dog (100 %)']
    """
    truth, guess = np.asarray(labels), np.asarray(predictions)
    guess = guess.argmax(axis=-1) if guess.ndim == 2 else guess
    if truth.shape != guess.shape or truth.ndim != 1:
        raise ArgumentError(
            f"plot.confusion: labels and predictions must be of one length, got shapes {truth.shape} and {guess.shape}."
        )
    for name, numbers in (("labels", truth), ("predictions", guess)):
        if numbers.size and (np.any(numbers != numbers.astype(int)) or numbers.min() < 0):
            raise ArgumentError(f"plot.confusion: {name} must be whole numbers of 0 or more, the classes.")
    count = len(classes) if classes is not None else int(max(truth.max(initial=0), guess.max(initial=0))) + 1
    if max(truth.max(initial=0), guess.max(initial=0)) >= count:
        raise ArgumentError(f"plot.confusion: there are more classes than the {count} names in classes.")
    table = np.zeros((count, count), int)
    np.add.at(table, (truth.astype(int), guess.astype(int)), 1)
    ax = get_axes("plot.confusion", ax)
    ax.imshow(table, cmap="Blues", vmin=0, vmax=max(table.max(), 1))
    for i, j in np.ndindex(table.shape):
        ax.text(
            j,
            i,
            str(table[i, j]),
            ha="center",
            va="center",
            color="white" if table[i, j] > table.max() / 2 else "black",
        )
    names = list(classes) if classes is not None else [str(i) for i in range(count)]
    share = [f"{name} ({100 * table[i, i] / max(table[i].sum(), 1):.0f} %)" for i, name in enumerate(names)]
    ax.set_xticks(range(count), names)
    ax.set_yticks(range(count), share)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true")
    return ax
