"""Every exception the library raises on purpose.

Each is a :class:`PullbackError` and also a ``ValueError``, ``TypeError``, ``IndexError``, ``ImportError``,
``AttributeError`` or a warning, so that code written for NumPy catches it too.
Each entry has what happened, a call that fails, and one that works.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from numpy.exceptions import AxisError
from numpy.linalg import LinAlgError

from pullback.tracebacks import hide_calls

__all__ = [
    "ArgumentError",
    "AxisRangeError",
    "BatchedValueError",
    "CapturedError",
    "CheckpointError",
    "ConvergenceError",
    "CompileError",
    "CustomGradientError",
    "DataError",
    "DefinitionError",
    "GradientError",
    "GradientMismatchError",
    "IndexRangeError",
    "IntegerRangeError",
    "MatrixError",
    "MissingNameError",
    "MissingImportError",
    "MissingPackageError",
    "NanError",
    "NoRuleError",
    "PrecisionWarning",
    "PullbackError",
    "ShapeError",
    "SymbolValueError",
    "TracedDrawWarning",
    "TracedValueError",
    "UnconnectedError",
    "UnrecordedGradientWarning",
    "VariableError",
    "WorkerError",
]


class PullbackError(Exception):
    """Base class of all exceptions of the library: ``except PullbackError`` catches every one.

    >>> issubclass(ShapeError, PullbackError) and issubclass(ShapeError, ValueError)
    True
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        hide_calls(sys._getframe(1))


class DefinitionError(PullbackError, TypeError):
    """An op was declared in a way that cannot work, raised while it is being defined.

    The rule's parameter names must be the op's inputs, its parameters, ``g``, ``z`` or ``x_shape``.
    """


class ArgumentError(PullbackError, TypeError, ValueError):
    """An argument is of the wrong kind or has a value that is not allowed.  A ``TypeError`` and a ``ValueError``.

    >>> import pullback as pb
    >>> pb.grad(5)
    Traceback (most recent call last):
    ...
    pullback.errors.ArgumentError: grad(f): f must be a function, got int.
    >>> pb.grad(lambda x: 5.0 * x)(1.0)
    5.0
    """


class DataError(PullbackError, ValueError):
    """The data is not numbers: text, objects, or nested lists of unequal length.

    >>> import pullback as pb
    >>> pb.tensor([[1, 2], [3]])
    Traceback (most recent call last):
    ...
    pullback.errors.DataError: tensor: the nested lists are ragged: found lengths 2 and 1 at depth 1. ...
    >>> pb.tensor([[1, 2], [3, 0]]).shape
    (2, 2)
    """


class ShapeError(PullbackError, ValueError):
    """The shapes of the operands do not fit the op.  The message names the op and both shapes.

    >>> import numpy as np, pullback as pb
    >>> pb.add(np.ones(2), np.ones(3))
    Traceback (most recent call last):
    ...
    pullback.errors.ShapeError: add: shapes (2,) and (3,) do not broadcast. ...
    >>> pb.add(np.ones(2), np.ones((3, 1))).shape
    (3, 2)
    """


class IndexRangeError(ShapeError, IndexError):
    """An index is none of those that the array has.  Also an ``IndexError``, as NumPy's is.

    >>> import pullback as pb
    >>> pb.tensor([1.0, 2.0])[2]
    Traceback (most recent call last):
    ...
    pullback.errors.IndexRangeError: getitem: index 2 is out of bounds for axis 0 with size 2 ...
    >>> pb.tensor([1.0, 2.0])[-1].numpy()
    array(2., dtype=float32)
    """


class AxisRangeError(IndexRangeError, AxisError):
    """An axis is none of those that the array has.  Also an ``AxisError``, as NumPy's is.

    >>> import numpy as np, pullback as pb
    >>> np.sum(pb.tensor([1.0, 2.0]), axis=1)
    Traceback (most recent call last):
    ...
    pullback.errors.AxisRangeError: sum: axis 1 is out of range for rank 1; use -1 to 0.
    >>> np.sum(pb.tensor([1.0, 2.0]), axis=-1).numpy()
    array(3., dtype=float32)
    """


class IntegerRangeError(PullbackError, OverflowError, ValueError):
    """A Python integer does not fit the dtype of the array that it is computed with.  Also an ``OverflowError``.

    >>> import numpy as np, pullback as pb
    >>> pb.tensor(np.array([7, 8], np.uint8)) // -3
    Traceback (most recent call last):
    ...
    pullback.errors.IntegerRangeError: floor_div: Python integer -3 out of bounds for uint8. ...
    >>> (pb.tensor(np.array([7, 8], np.int16)) // -3).numpy()
    array([-3, -3], dtype=int16)
    """

    @classmethod
    def of(cls, name: str, error: OverflowError) -> IntegerRangeError:
        """Return the error with NumPy's message, the name of the op and what to do."""
        return cls(
            f"{name}: {error}. Python's numbers take the dtype of the array: cast that first, as in "
            "x.astype('int64'), or give the number a dtype of its own, as in np.int64(-3)."
        )


class MatrixError(PullbackError, LinAlgError):
    """A matrix is not what the op needs: it is singular, or not positive definite.  Also NumPy's ``LinAlgError``.

    >>> import numpy as np, pullback as pb
    >>> pb.linalg.inv(np.zeros((2, 2)))
    Traceback (most recent call last):
    ...
    pullback.errors.MatrixError: inv: a matrix is singular, so it has no inverse; ...
    >>> pb.linalg.pinv(np.zeros((2, 2)))
    array([[0., 0.],
           [0., 0.]])
    """


class ConvergenceError(PullbackError, ValueError):
    """A solver did not converge: it reports so itself, or its steps did not become small.

    >>> import pullback as pb
    >>> pb.custom_fixed_point(lambda x: x + 1)(0.0)
    Traceback (most recent call last):
    ...
    pullback.errors.ConvergenceError: custom_fixed_point: after 1000 steps x still moves by 1. ...
    >>> round(pb.custom_fixed_point(lambda x: 0.5 * x + 1)(0.0), 6)
    2.0
    """


class MissingNameError(PullbackError, AttributeError):
    """A name does not exist: the message says what it is called here, or which names are similar.

    >>> import pullback as pb
    >>> pb.jit
    Traceback (most recent call last):
    ...
    pullback.errors.MissingNameError: module 'pullback' has no attribute 'jit'. pb.jit is pb.compile.
    >>> hasattr(pb, "jit")
    False
    """

    def __init__(self, message: str, answer: Callable[[], str] | None = None) -> None:
        super().__init__(message, name="")  # a name that is set keeps Python from adding a proposal of its own
        self.answer = answer

    def __str__(self) -> str:
        message = super().__str__()
        return message if self.answer is None else f"{message}. {self.answer()}"


class MissingImportError(PullbackError, ImportError):
    """``from pullback import jit``: a name that there is not, with what it is called here.

    >>> from pullback import jit
    Traceback (most recent call last):
    ...
    pullback.errors.MissingImportError: cannot import name 'jit' from 'pullback'. pb.jit is pb.compile.
    >>> from pullback import compile
    """


class MissingPackageError(PullbackError, ImportError):
    """A function needs a package that is not installed; the message says which extra installs it.

    >>> issubclass(MissingPackageError, ImportError)
    True
    """


class GradientError(PullbackError, ValueError):
    """A gradient cannot be computed for these arguments: ``f`` returns no tensor, ``dy`` has another shape.

    >>> import pullback as pb
    >>> pb.grad(lambda x: (x, x))(1.0)
    Traceback (most recent call last):
    ...
    pullback.errors.GradientError: grad(f): f must return one tensor, got tuple. ...
    >>> pb.grad(lambda x: (x, x), has_aux=True)(1.0)
    (1.0, 1.0)
    """


class BatchedValueError(PullbackError, TypeError):
    """One value is needed (in an ``if``, as a number, as a shape) where ``vmap`` has one for each example.

    >>> import numpy as np, pullback as pb
    >>> pb.vmap(lambda x: x if x > 0 else -x)(np.ones(3))
    Traceback (most recent call last):
    ...
    pullback.errors.BatchedValueError: bool() of a value that is different for each of 3 examples of vmap. ...

    ``where`` chooses for each example:

    >>> pb.vmap(lambda x: pb.where(x > 0, x, -x))(np.array([1.0, -2.0]))
    array([1., 2.])
    """


class UnconnectedError(GradientError):
    """The result does not depend on an input in a way that could be differentiated.

    The message says where the path was cut.  ``unconnected="zero"`` or ``"none"`` gives a result instead.

    >>> import pullback as pb
    >>> pb.grads(lambda x, y: x * x, unconnected="zero")([3.0, 5.0])
    [6.0, 0.0]
    >>> pb.grads(lambda x, y: x * x)([3.0, 5.0])
    Traceback (most recent call last):
    ...
    pullback.errors.UnconnectedError: ...
    """


class CustomGradientError(GradientError):
    """A gradient or tangent written by the user has the wrong number, shape or kind, or cannot be transposed.

    Forward mode transposes a gradient function, for which it must be linear in ``dy``; else state the tangent.

    >>> import pullback as pb
    >>> f = pb.custom_grad(lambda x: (x * 2, lambda dy: pb.abs(dy)))
    >>> pb.jvp(f, [1.0], [1.0])
    Traceback (most recent call last):
    ...
    pullback.errors.CustomGradientError: custom_grad(<lambda>): the gradient function is not linear in dy: ...
    >>> _ = f.defjvp(lambda primals, tangents: (primals[0] * 2, tangents[0] * 2))
    >>> pb.jvp(f, [1.0], [1.0])
    (2.0, 2.0)
    """


class PrecisionWarning(PullbackError, UserWarning):  # noqa: N818
    """A gradient written by the user is narrower than its input, such as float32 for float64: digits are lost.

    The gradient is cast to the dtype of the input.  Compute it in that dtype: Python's numbers and ``dy`` are as wide
    as the input, a NumPy array made with ``dtype="float32"`` is not.

    >>> import warnings, numpy as np, pullback as pb
    >>> f = pb.custom_grad(lambda x: (x * 2, lambda dy: np.array(2.0, "float32")))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = pb.grad(f)(np.float64(1.0))
    >>> caught[0].category.__name__
    'PrecisionWarning'
    >>> pb.grad(pb.custom_grad(lambda x: (x * 2, lambda dy: dy * 2)))(np.float64(1.0))
    np.float64(2.0)
    """


class TracedDrawWarning(PullbackError, UserWarning):  # noqa: N818
    """NumPy's random numbers were drawn while a function was traced: they are constants of the compiled program.

    Draw them by ``pb.random``, which draws anew in every call, or give them to the function as an argument.

    >>> import warnings, numpy as np, pullback as pb
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     _ = pb.compile(lambda x: x + np.random.normal(size=3))(np.zeros(3))
    >>> caught[0].category.__name__
    'TracedDrawWarning'
    >>> noisy = pb.compile(lambda x: x + pb.random.normal(x.shape))
    >>> bool(np.all(noisy(np.zeros(3)) == noisy(np.zeros(3))))
    False
    """


class UnrecordedGradientWarning(PullbackError, UserWarning):  # noqa: N818
    """A gradient of a persistent tape was computed inside its own block, and does not record how that is computed.

    To this tape the gradient is a constant, so what is computed with it in the block has no derivative through it.
    Nest a second tape to differentiate a gradient.

    >>> import pullback as pb
    >>> x = pb.variable(3.0)
    >>> with pb.GradientTape() as outer:
    ...     with pb.GradientTape() as inner:
    ...         y = x * x * x
    ...     slope = inner.gradient(y, x)
    >>> outer.gradient(slope, x).numpy()
    array(18., dtype=float32)
    """


class GradientMismatchError(CustomGradientError):
    """A gradient is not what finite differences say.  The message names the worst element of each argument.

    >>> import pullback as pb
    >>> wrong = pb.custom_grad(lambda x, save: (x * x, lambda dy, saved: dy))
    >>> pb.check_grads(wrong, [3.0])
    Traceback (most recent call last):
    ...
    pullback.errors.GradientMismatchError: check_grads(...): ...
    >>> right = pb.custom_grad(lambda x, save: (save([x]) or x * x, lambda dy, saved: dy * 2 * saved[0]))
    >>> pb.check_grads(right, [3.0])
    check_grads(...): ... derivatives agree with finite differences; ...
    """


class NanError(GradientError):
    """A gradient or value is NaN or infinite, under ``debug_nans``.  The message is the report of where that came from.

    ``report`` is the same with fields, as of ``diagnose``.

    >>> import pullback as pb
    >>> with pb.debug_nans():
    ...     pb.grad(lambda x: pb.log(x))(0.0)
    Traceback (most recent call last):
    ...
    pullback.errors.NanError: Not finite: ...
    """

    def __init__(self, report: object) -> None:
        super().__init__(str(report))
        self.report = report


class CapturedError(GradientError):
    """The body of a custom gradient uses a traced tensor or variable that is not one of its inputs.

    Its gradient would be lost.  Pass it as an input, or use ``stop_gradient`` on it.  A variable may also be
    given its gradient, by a gradient function with a parameter ``variables``.

    >>> import pullback as pb
    >>> pb.grad(lambda w: pb.custom_grad(lambda x: (x * w, lambda dy: dy * w))(2.0))(3.0)
    Traceback (most recent call last):
    ...
    pullback.errors.CapturedError: custom_grad(<lambda>): the body uses the traced tensor 'w', ...
    >>> pb.grad(lambda w: pb.custom_grad(lambda x, w: (x * w, lambda dy: [dy * w, dy * x]))(2.0, w))(3.0)
    2.0
    """


class TracedValueError(PullbackError, TypeError):
    """A traced tensor was turned into a plain number or array, which would lose its gradient.

    >>> import numpy as np, pullback as pb
    >>> pb.grad(lambda x: x * float(x))(2.0)
    Traceback (most recent call last):
    ...
    pullback.errors.TracedValueError: float() of a traced tensor of shape () would lose its gradient. ...
    >>> pb.grad(lambda x: x * x)(2.0)
    4.0
    """


class CompileError(PullbackError, ValueError):
    """A function cannot be compiled as it is: the message says which line and what to use instead.

    >>> import numpy as np, pullback as pb
    >>> pb.compile(np.sum, backend="numpy").profile(np.ones(3))
    Traceback (most recent call last):
    ...
    pullback.errors.CompileError: profile: sum is not machine code here, so it has no steps to time.
    >>> len(pb.compile(np.sum).profile(np.ones(3)).steps)
    1
    """


class SymbolValueError(CompileError, TypeError):
    """A value is needed while ``compile`` traces a function, when only shapes and dtypes are known.

    ``where`` chooses by value; an argument that decides what the program is belongs in ``static_argnums``.

    >>> import pullback as pb
    >>> pb.compile(lambda x: x if x > 0 else -x)(2.0)
    Traceback (most recent call last):
    ...
    pullback.errors.SymbolValueError: ...
    >>> float(pb.compile(lambda x: pb.where(x > 0, x, -x))(-2.0))
    2.0
    """


class NoRuleError(PullbackError, TypeError):
    """A NumPy function without a rule of differentiation was called on a traced tensor.

    The message says what to use in its place; ``stop_gradient`` gives the value without a gradient.

    >>> import numpy as np, pullback as pb
    >>> pb.grad(lambda x: x + np.spacing(x))(2.0)
    Traceback (most recent call last):
    ...
    pullback.errors.NoRuleError: np.spacing has no rule of differentiation in pullback, ...
    >>> pb.grad(lambda x: x + np.spacing(pb.stop_gradient(x).numpy()))(2.0)
    1.0
    """


class VariableError(PullbackError, ValueError):
    """A value of another shape or dtype was assigned, or two variables have one name where it must tell them apart.

    >>> import pullback as pb
    >>> pb.variable([1.0, 2.0], name="w").assign([1.0])
    Traceback (most recent call last):
    ...
    pullback.errors.VariableError: w.assign: expected shape (2,), got shape (1,).
    """


class CheckpointError(PullbackError, ValueError):
    """A saved file is damaged, or is not of this model: the message lists what is missing, extra or different.

    >>> import numpy as np, pullback as pb
    >>> pb.train.load_weights({"w": np.zeros(2), "b": np.zeros(1)}, {"w": np.ones(3), "c": np.ones(1)})
    Traceback (most recent call last):
    ...
    pullback.errors.CheckpointError: load_weights does not fit, ... missing: b; extra: c; different: w (shape (3,), ...
    """


class WorkerError(PullbackError, RuntimeError):
    """A worker of a pool failed, or could not be reached; the message names the shard and has the worker's traceback.

    >>> import numpy as np, pullback as pb
    >>> with pb.scale.Pool("serial") as pool:
    ...     pool.map(lambda item: 1 / item, [1, 0])
    Traceback (most recent call last):
    ...
    pullback.errors.WorkerError: pool.map: item 0: ZeroDivisionError: division by zero
    ...
    """
