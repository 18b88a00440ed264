"""One call of a function with a custom gradient: runs its body and gradient function, and checks their results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from pullback.core import tree
from pullback.core.convert import float_of, unwrap_constant
from pullback.core.tape import as_tensor
from pullback.core.tensor import ARRAYS, Tensor
from pullback.core.variable import Recorder, Variable
from pullback.errors import ArgumentError, CustomGradientError
from pullback.transforms.arguments import Arguments
from pullback.transforms.captured import line_of, make_capture_error, make_variable_error
from pullback.transforms.custom_op import (
    Back,
    BodyRun,
    CustomOp,
    find_fitting,
    gradient_for,
    is_python_number,
    like,
    tangent_for,
)
from pullback.transforms.enclosing import Scope
from pullback.transforms.leaf_names import name_all_leaves
from pullback.transforms.leaves import pair_branches
from pullback.transforms.signatures import BY_KEYWORD, BY_POSITION, accepts, find_passing, takes_separately

if TYPE_CHECKING:
    from pullback.typing import TensorLike

GRAD_FUNC = ("grad_func", "gradFunc", "grad_fn")  # names of the gradient function in a dict or an object


class Owner(Protocol):
    """The attributes that a call reads of its function."""

    face: str
    rule: Callable[..., Any] | None
    save_passing: dict[Any, str]  # how ``f`` takes ``save``, by what it is called with
    __name__: str
    __wrapped__: Callable[..., Any]


class CustomCall(CustomOp):
    """One call of a function with a custom gradient."""

    follows = True
    structure: Any  # of the results
    grad_func: Any

    def __init__(self, owner: Owner, arguments: Arguments, kwargs: dict[str, Any]) -> None:
        super().__init__(f"{owner.face}({owner.__name__})")
        self.owner, self.f, self.arguments, self.kwargs = owner, owner.__wrapped__, arguments, kwargs
        self.states_jvp = owner.rule is not None

    def run(self, values: Sequence[Any]) -> BodyRun:
        scope = Scope(values) if [v for v in values if isinstance(v, Tensor)] else None
        with Recorder() as recorder:
            if scope is None:
                out = self.body(values)
            else:
                with scope.open():
                    out = self.body(values)
        read = [v for v in recorder.read.values() if v.trainable] if recorder.read else []
        self.structure, self.grad_func = self.split(out)
        zs = self.results_in(self.structure)
        run = self.gradient(values, zs, self.grad_func, read)
        return run if scope is None or not scope.is_needed else run._replace(back=_keep_scope(scope, run.back))

    def body(self, values: Sequence[Any]) -> Any:
        return self.f(*self.arguments.fill(values), **self.kwargs)

    def split(self, out: TensorLike) -> tuple[Any, Any]:
        """Return the value and the gradient function from what the body returned."""
        found = _find_named(out) if type(out) is not tuple else None
        if found is None and isinstance(out, tuple | list) and len(out) == 2:
            found = out[0], out[1]
        if found is None or not callable(found[1]):
            raise CustomGradientError(
                f"{self.name}: f must return (value, grad_func), got {_describe(out)} ({line_of(self.f)})."
            )
        return found

    def results_in(self, value: object) -> tuple[Any, ...]:
        """Return the leaves of ``value`` as the engine takes them; Python numbers get the precision of the inputs."""
        if isinstance(value, ARRAYS):
            return (unwrap_constant(value),)
        return tuple(self._result(z) for z in tree.leaves(value)) if value is not None else (self._result(None),)

    def _result(self, z: object) -> Any:
        if isinstance(z, ARRAYS):
            return unwrap_constant(z)
        if is_python_number(z):
            return np.asarray(z, self.arguments.float_width() if isinstance(z, int | float) else None)[()]
        raise CustomGradientError(
            f"{self.name}: the value must be a tensor, got {type(z).__name__} ({line_of(self.f)})."
        )

    def gradient(
        self, values: Sequence[Any], zs: tuple[Any, ...], grad_func: Callable[..., Any], read: list[Variable]
    ) -> BodyRun:
        """Return the record of the run, with ``grad_func`` as its backward rule."""
        raise NotImplementedError

    # ---- what the gradient function returned

    def gradients(
        self,
        out: object,
        likes: Sequence[Any],
        read: list[Variable],
        grad_func: Callable[..., Any],
        dys: Sequence[Any],
        missing: bool,
    ) -> list[Any]:
        """Return one gradient for each input and variable, checked.

        ``None`` only where ``missing`` ones are allowed.
        """
        out, more = self._split_gradients(out, read, grad_func) if read else (out, [])
        count, found = len(likes) - len(read), [*self._match_gradients(out, grad_func), *more]
        fitting = [*map(find_fitting, found, likes)] if len(found) == len(likes) else ()
        if fitting and all(d is not None for d in fitting):  # the usual case, without a function for each message
            return [*fitting]
        line = partial(line_of, grad_func)
        names = [*(partial(self.name_input, i) for i in range(count)), *(partial(str, v.name) for v in read)]
        return [
            None if d is None and (missing or i >= count) else gradient_for(d, x, self.name, name, line, dys)
            for i, (d, x, name) in enumerate(zip(found, likes, names, strict=True))
        ]

    def _split_gradients(
        self, out: Any, read: list[Variable], grad_func: Callable[..., Any]
    ) -> tuple[Any, Sequence[Any]]:
        """Return the gradients of the inputs and those of the variables."""
        names = ", ".join(v.name for v in read)
        if not isinstance(out, tuple | list) or len(out) != 2:
            raise CustomGradientError(
                f"{self.name}: f reads variables ({names}), so the gradient function must return "
                f"(input_grads, variable_grads); got {type(out).__name__} ({line_of(grad_func)})."
            )
        more = [out[1]] if isinstance(out[1], ARRAYS) or is_python_number(out[1]) else out[1]
        if isinstance(more, dict):  # by name, as variable_grads gives them
            more = [more.get(v.name) for v in read]
        if not isinstance(more, list | tuple) or len(more) != len(read):
            got = len(more) if isinstance(more, list | tuple) else type(more).__name__
            raise CustomGradientError(
                f"{self.name}: variable_grads must be a list with one gradient for each of {len(read)} variables "
                f"({names}); got {got} ({line_of(grad_func)})."
            )
        return out[0], more

    def _match_gradients(self, out: object, grad_func: Callable[..., Any]) -> list[Any]:
        """Return the gradients in the order of the inputs: in the structure of the arguments, or in a flat list."""
        count = len(self.arguments.flat)
        if isinstance(out, ARRAYS) and count == 1:
            return [out]
        args = [a for a in self.arguments.tree if any(isinstance(x, ARRAYS) for x in tree.leaves(a))]
        found = _align(args, out)
        if found is None and len(args) == 1:
            found = _align(args[0], out)
        if found is None and isinstance(out, list | tuple) and len(out) == count:
            found = list(out)
        if found is None:
            raise self._wrong_count(out, grad_func)
        return found

    def _wrong_count(self, out: Any, grad_func: Callable[..., Any]) -> Exception:
        names, count = self.arguments.names(self.f), len([*name_all_leaves("", out)])
        got = f"a {type(out).__name__} of other structure" if count == len(names) else str(count)
        expected = f"{len(names)} gradient{'s' * (len(names) != 1)}, one for each input ({', '.join(names)})"
        return CustomGradientError(
            f"{self.name}: the gradient function must return {expected}; got {got} ({line_of(grad_func)})."
        )

    def name_input(self, i: int) -> str:
        return self.arguments.names(self.f)[i]

    # ---- what was captured

    def make_lost_error(self, ds: Sequence[Any], level: int) -> Exception:
        return make_capture_error(self.name, "the gradient function", [self.grad_func], level - 1, {}, ())

    def make_body_error(self, highest: int, read: Sequence[Variable]) -> Exception:
        return make_capture_error(self.name, "the body", [self.f], highest, self.kwargs, read)

    # ---- forward mode

    def advise(self) -> str:
        name = self.owner.__name__ if self.owner.__name__.isidentifier() else "f"
        return f"State the tangent: {self.owner.face}(f, jvp=rule), or @{name}.defjvp above the rule."

    def jvp(
        self, z: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        rule = self.owner.rule
        if rule is None:
            return super().jvp(z, primals, tangents, params)
        moved = [
            np.zeros(p.shape, float_of(p.dtype)) if t is None else t for p, t in zip(primals, tangents, strict=True)
        ]
        values, along = (tuple(self.arguments.fill([unwrap_constant(v) for v in vs])) for vs in (primals, moved))
        scope = Scope(primals)
        with scope.open():
            out = rule(values, tuple(tree.map_leaves(_keep_array, t) for t in along), **self.kwargs)
        if not isinstance(out, tuple | list) or len(out) != 2:
            raise CustomGradientError(
                f"{self.name}: the rule of the tangent must return (value, tangent), got {_describe(out)} "
                f"({line_of(rule)})."
            )
        ts = [out[1]] if isinstance(out[1], ARRAYS) or out[1] is None else _list_all_leaves(out[1])
        if len(ts) != len(z):
            raise CustomGradientError(
                f"{self.name}: the rule of the tangent must return {len(z)} tangent{'s' * (len(z) != 1)}, one for each "
                f"result; got {len(ts)} ({line_of(rule)})."
            )
        line = partial(line_of, rule)
        return [None if t is None else tangent_for(t, y, self.name, line) for t, y in zip(ts, z, strict=True)]


class SavingCall(CustomCall):
    """A call as in TensorFlow.js: ``f(*inputs, save)`` with ``grad_func(dy, saved)``."""

    saved: Any
    accepting = True  # whether the gradient function takes ``variables``

    def body(self, values: Sequence[Any]) -> Any:
        saved: list[Any] = [[]]

        def save(kept: object) -> None:
            if not isinstance(kept, list | tuple | dict):
                got = type(kept).__name__
                raise ArgumentError(
                    f"{self.name}: save takes a list, tuple or dict of tensors, got {got}. Write save([x])."
                )
            flat = type(kept) is list and all(isinstance(t, Tensor) for t in kept)
            saved[0] = [*kept] if flat else tree.map_leaves(lambda t: t, kept)  # a copy: the user may change the list

        self.saved = saved
        args = self.arguments.fill(values)
        key = len(args), *self.kwargs
        passing = self.owner.save_passing.get(key)
        if passing is None:
            passing = self.owner.save_passing[key] = find_passing(self.f, "save", len(args), self.kwargs)
        if passing == BY_POSITION:
            return self.f(*args, save, **self.kwargs)
        return self.f(*args, **self.kwargs, **{"save": save} if passing == BY_KEYWORD else {})

    def gradient(
        self, values: Sequence[Any], zs: tuple[Any, ...], grad_func: Callable[..., Any], read: list[Variable]
    ) -> BodyRun:
        saved, count = self.saved, len(zs)
        form = tree.map_leaves(lambda _: 0, self.structure) if count > 1 else None
        self.accepting = accepting = not read or accepts(grad_func, "variables")
        followed = read if accepting else []
        likes = [like(v) for v in [*values, *followed]]

        def back(dys: list[Any]) -> list[Any]:
            cotangents = list(map(as_tensor, dys))
            if count > 1 and not takes_separately(grad_func, count, ("saved", "variables")):
                cotangents = [tree.replace_leaves(form, cotangents)]
            passing = find_passing(grad_func, "saved", len(cotangents), ("variables",))
            named = {"variables": followed} if followed else {}
            if passing == BY_KEYWORD:
                named["saved"] = saved[0]
            elif passing == BY_POSITION:
                cotangents.append(saved[0])
            ds = self.gradients(grad_func(*cotangents, **named), likes, followed, grad_func, dys, missing=False)
            return ds if accepting else [*ds, *(None for _ in read)]

        return BodyRun(zs, back, read)

    def check_variables(self, variables: Sequence[Variable]) -> None:
        if variables and not self.accepting:
            raise make_variable_error(self.name, variables, self.f)


class NestedCall(CustomCall):
    """A call as in TensorFlow: trees in and out, with ``grad_fn(*dys, variables=...)``."""

    def gradient(
        self, values: Sequence[Any], zs: tuple[Any, ...], grad_func: Callable[..., Any], read: list[Variable]
    ) -> BodyRun:
        if read and not accepts(grad_func, "variables"):
            names = " and ".join(f"'{v.name}'" for v in read)
            raise ArgumentError(
                f"{self.name}: f reads the trainable variable{'s' * (len(read) > 1)} {names}, so grad_fn must accept "
                "the keyword 'variables' and return (input_grads, variable_grads). "
                f"Add variables=None to it, pass them as inputs, or use stop_gradient ({line_of(grad_func)})."
            )
        likes = [like(v) for v in [*values, *read]]

        def back(dys: list[Any]) -> list[Any]:
            out = grad_func(*map(as_tensor, dys), **{"variables": read} if read else {})
            return self.gradients(out, likes, read, grad_func, dys, missing=True)

        return BodyRun(zs, back, read)


def _keep_scope(scope: Scope, back: Back) -> Back:
    """Return a backward rule that runs in ``scope``, so that what it records counts as made by this run."""

    def back_in_scope(dys: list[Any]) -> Sequence[Any]:
        with scope.open():
            return back(dys)

    return back_in_scope


def _find_named(out: Any) -> tuple[Any, Any] | None:
    """Return the value and gradient function of a dict or an object that has them by name, or None."""
    if isinstance(out, dict):
        found = [out[k] for k in GRAD_FUNC if k in out]
        return (out["value"], found[0]) if found and "value" in out else None
    if isinstance(out, ARRAYS) or not hasattr(out, "value"):
        return None
    found = [getattr(out, k) for k in GRAD_FUNC if hasattr(out, k)]
    return (out.value, found[0]) if found else None


def _describe(out: object) -> str:
    kind = type(out).__name__
    if isinstance(out, dict):
        return f"{kind} with {', '.join(map(repr, out)) or 'no keys'}"
    return f"{kind} of ({', '.join(type(part).__name__ for part in out)})" if isinstance(out, tuple | list) else kind


def _keep_array(x: object) -> Any:
    return x if isinstance(x, ARRAYS) else None


def _list_all_leaves(x: object) -> list[Any]:
    """Return the leaves of a tree, ``None`` included."""
    return [leaf for _, leaf in name_all_leaves("", x)]


def _align(arg: Any, d: Any) -> list[Any] | None:
    """Return, for each input in a tree, its counterpart in another tree; None if their structures differ."""
    parts = None if arg is None else tree.get_branches(arg)
    if parts is None:
        single = tree.get_branches(d) is None
        return ([d] if single else None) if isinstance(arg, ARRAYS) else []
    if d is None:  # no gradient for any input in this branch
        return [None for x in tree.leaves(arg) if isinstance(x, ARRAYS)]
    rows = pair_branches(arg, d)
    found = None if rows is None else [_align(a, b) for a, b in rows]
    return None if found is None or None in found else [x for f in found for x in f or ()]
