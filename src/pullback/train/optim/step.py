"""The step of every optimizer: one rule on arrays, for variables, for trees of parameters, and for ``compile``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np

from pullback.core import tree
from pullback.core.convert import as_number
from pullback.core.memory import BLOCK
from pullback.core.rowsparse import RowSparse, make_rows
from pullback.core.tape import constant
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable, by_name, is_logged, only_named, writer
from pullback.errors import ArgumentError, DataError, GradientError, ShapeError, TracedValueError, VariableError
from pullback.names.answers import keyword_error
from pullback.train.optim.clipping import checked, global_norm_within, norms_within, value_of, values_within
from pullback.train.optim.row_steps import RowStep, has_few_rows, is_large
from pullback.train.optim.slots import Kept, Slot
from pullback.train.optim.trees import in_order
from pullback.transforms.grad import ValueAndGrads, given_back, kind_of
from pullback.transforms.variables import NamedGradients, differentiate_by_variables, variable_grads

__all__ = ["Optimizer", "Options"]

COUNTED = "iterations"
RATE = "learning_rate"
CLIPS = {"clip_value": values_within, "clip_norm": norms_within, "clip_global_norm": global_norm_within}


class Common(TypedDict, total=False):
    """What every optimizer takes besides its own arguments, but for ``weight_decay``."""

    clip_value: float  # gradients are clipped before a step: element by element,
    clip_norm: float  # each by its own norm,
    clip_global_norm: float  # or all by their norm together
    lazy: bool  # a row-sparse gradient changes the rows that it names, and nothing is done to the others


class Options(Common, total=False):
    """What every optimizer takes besides its own arguments."""

    weight_decay: float  # every step takes learning_rate * weight_decay of each parameter away


class Optimizer:
    """What ``pb.train.sgd``, ``adam`` and the others make: a rule, and what it keeps from step to step.

    >>> x = pb.variable([1.0, -2.0], name="x")
    >>> optimizer = pb.train.sgd(0.1)
    >>> optimizer.minimize(lambda: (x * x).sum(), return_cost=True)
    Tensor(5., dtype=float32)
    >>> x
    Variable([0.8, -1.6], dtype=float32, name='x')
    """

    def __init__(
        self,
        make: Callable[..., Optimizer],
        config: dict[str, Any],
        rule: Callable[..., tuple[Any, ...]],
        numbers: Callable[[Any, Any], tuple[Any, ...]],
        starts: dict[str, float],
        options: Options,
        row_wise: bool = False,  # where the gradient is zero, the rule leaves everything as it is
    ) -> None:
        name = make.__name__
        unknown = options.keys() - Options.__annotations__.keys()
        if unknown:
            raise keyword_error(name, min(unknown), [*config, *Options.__annotations__])
        self.name, self._make, self._config, self._starts = name, make, {**config, **options}, starts
        self._clips = [(clip, checked(f"{name}: {k}", options[k])) for k, clip in CLIPS.items() if k in options]  # type: ignore[literal-required]
        decay = as_number(name, "weight_decay", options.get("weight_decay", 0.0), 0)
        self._rule: Callable[..., tuple[Any, ...]]
        self._numbers: Callable[[Any, Any], tuple[Any, ...]]
        self._rule, self._numbers = decayed(rule, numbers, decay) if decay else (rule, numbers)
        lazy = options.get("lazy", False)
        if not isinstance(lazy, bool):
            raise ArgumentError(f"{name}: lazy must be True or False, got {lazy!r}.")
        self._lazy, self._row_wise = lazy, row_wise and not decay
        self._kept = Kept(starts)
        self._steps = Slot(np.int64(0), COUNTED)
        rate = config[RATE]
        self._schedule = rate if callable(rate) and not isinstance(rate, Tensor) else None
        self._rate = Slot(np.float64(0 if self._schedule else self._checked_rate(rate)), RATE)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in self.get_config().items())})"

    # ---- variables

    def minimize(
        self, f: Callable[[], Any], var_list: Sequence[Variable] | None = None, return_cost: bool = False
    ) -> Any:
        """One step down: the gradients of ``f()`` by the trainable variables it reads, applied to these.

        ``f`` returns a scalar, which is given back if ``return_cost``.
        """
        value, grads = differentiate_by_variables(f, var_list, self.wants_rows)
        self._step([*grads.items()])
        return value if return_cost else None

    def compute_gradients(
        self, f: Callable[[], Any], var_list: Sequence[Variable] | None = None, *, sparse: Any = False
    ) -> ValueAndGrads:
        """The value of ``f()`` and its gradients by name, as ``variable_grads`` gives them."""
        return variable_grads(f, var_list, sparse=sparse)

    def wants_rows(self, v: Variable) -> bool:
        """Whether a row-sparse gradient of ``v`` is of use: the step is to change only the rows that it names."""
        return self._lazy or (self._row_wise and is_large(v))

    def apply_gradients(self, grads: Any) -> None:
        """One step with these gradients: a dict by name (or variable), a list of ``{"name": …, "tensor": …}``, or of
        ``(gradient, variable)`` pairs.  A gradient of ``None`` leaves its variable as it is.

        A ``RowSparse`` does what the dense gradient does; only the rows that it names are touched where that is enough
        (``sgd`` and ``adagrad`` without ``weight_decay``), or if the optimizer was made with ``lazy=True``.
        """
        pairs = [self._pair(v, g) for v, g in self._listed(grads) if g is not None]
        if not pairs:
            raise GradientError(f"{self.name}.apply_gradients: there is no gradient to apply.")
        if len({id(v) for v, _ in pairs}) < len(pairs):
            raise ArgumentError(f"{self.name}.apply_gradients: a variable has two gradients; add them up first.")
        self._step(pairs)

    @property
    def iterations(self) -> int:
        """How many steps were made."""
        return int(self._steps.held.value)

    @property
    def learning_rate(self) -> float:
        """The learning rate of the next step."""
        return self._rate_now(self.iterations)

    def set_learning_rate(self, rate: float) -> None:
        """Another learning rate from the next step on, in compiled steps too."""
        made = self._checked_rate(rate)
        if self._schedule is not None:
            raise ArgumentError(
                f"{self.name}.set_learning_rate: the rate follows {self._schedule!r}, which compiled steps have taken "
                "in. Make an optimizer with a number as its learning_rate to set it yourself."
            )
        self._rate.assign(np.float64(made))

    # ---- trees of parameters

    def init(self, params: Any) -> dict[str, Any]:
        """The state to begin with: the number of steps, and for each slot a tree like ``params``."""
        values = [self._trained(value_of(x, self.name), where) for x, where in in_order(params, params, "params")]
        state: dict[str, Any] = {COUNTED: np.int64(0)}
        for name, start in self._starts.items():
            state[name] = _like(params, [np.full(x.shape, start, x.dtype)[()] for x in values])
        return state

    def update(self, params: Any, grads: Any, state: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """One step without variables: the next ``(params, state)``; nothing is changed in place.

        Everything is given back as what it was: arrays for arrays, tensors for tensors, numbers for numbers.
        """
        wanted, got = {COUNTED, *self._starts}, set(state)
        if wanted != got:
            raise DataError(f"{self.name}.update: {_differences('the state', wanted - got, got - wanted, [])}")
        xs = in_order(params, params, "params")
        gs = in_order(params, grads, "grads")
        slots = [in_order(params, state[name], f"state['{name}']") for name in self._starts]
        values = [self._trained(value_of(x, self.name), where) for x, where in xs]
        live = [i for i, (g, _) in enumerate(gs) if g is not None]
        grown = [self._gradient(value_of(gs[i][0], self.name), values[i], f"grads{gs[i][1]}") for i in live]
        steps = _counted(state[COUNTED]) + 1
        numbers = self._numbers_of(self._rate_of(steps), steps)
        new = [(x, *(value_of(s[i][0], self.name) for s in slots)) for i, x in enumerate(values)]
        for i, g in zip(live, self._clipped(grown), strict=True):
            new[i] = self._rule(new[i][0], g, *new[i][1:], *_cast(numbers, values[i].dtype))
        params = _like(params, [given_back(row[0], kind_of(x)) for row, (x, _) in zip(new, xs, strict=True)])
        trees = (_like(params, [row[k] for row in new]) for k in range(1, len(slots) + 1))
        return params, {COUNTED: steps, **dict(zip(self._starts, trees, strict=True))}

    # ---- saving

    def get_config(self) -> dict[str, Any]:
        """The arguments it was made with, and the learning rate it has now."""
        return self._config | ({} if self._schedule else {RATE: self.learning_rate})

    def state_dict(self) -> dict[str, Any]:
        """What it keeps, as numbers and arrays of their own: slots are named ``variable/slot``."""
        by_name((v for v, _ in self._kept), f"{self.name}.state_dict")
        state: dict[str, Any] = {COUNTED: self.iterations}
        if self._schedule is None:
            state[RATE] = self.learning_rate
        return state | {s.name: s.numpy() for _, slots in self._kept for s in slots}

    def load_state_dict(self, state: Mapping[str, Any], var_list: Sequence[Variable] | None = None) -> None:
        """Go on from what ``state_dict`` gave, in this process or another one; variables are found by their names.

        Nothing is changed unless all of it fits: the slots of ``var_list`` (or of the variables met so far), neither
        less nor more, of the same shapes and dtypes.
        """
        what = f"{self.name}.load_state_dict"
        known = by_name([*(v for v, _ in self._kept), *(var_list or ())], what)
        for key in state:
            name, _, slot = key.rpartition("/")
            v = only_named(name, what) if var_list is None and slot in self._starts else None
            known |= {} if v is None else {name: v}
        numbers = {COUNTED} | ({RATE} if self._schedule is None else set())
        slots = {f"{name}/{slot}": (v, i) for name, v in known.items() for i, slot in enumerate(self._starts)}
        values = {key: np.asarray(value_of(x, f"load_state_dict: '{key}'")) for key, x in state.items()}
        different = [
            f"'{key}' is {x.dtype} of shape {x.shape}, expected {like.dtype} of shape {like.shape}"
            for key, x in values.items()
            if key in slots and (x.shape != (like := slots[key][0]).shape or x.dtype != like.dtype)
        ]
        different += [f"'{key}' is not one number" for key in numbers & values.keys() if values[key].shape]
        wanted = numbers | slots.keys()
        if wanted != values.keys() or different:
            missing, extra = wanted - values.keys(), values.keys() - wanted
            raise DataError(f"{what}: {_differences('the state', missing, extra, different)}")
        if self._schedule is None:
            self._rate.assign(np.float64(self._checked_rate(values[RATE].item())))
        self._steps.assign(np.int64(values[COUNTED]))
        for key, (v, i) in slots.items():
            self._kept.of(v)[i].assign(values[key])

    def __reduce__(self) -> Any:
        return _remade, (self._make, self.get_config(), self.state_dict())

    @property
    def maker(self) -> Callable[..., Optimizer]:
        """The function that makes one like it of what ``get_config`` gives."""
        return self._make

    def start_of(self, key: str) -> float:
        """What a slot begins with; ``key`` is what ``state_dict`` calls it."""
        return self._starts[key.rpartition("/")[2]]

    def slots(self, variables: Sequence[Variable] = ()) -> list[Variable]:
        """What it keeps, as variables: the number of the step, the learning rate, and the slots of these and others."""
        for v in variables:
            self._kept.of(v)
        return [self._steps, self._rate, *(s for _, slots in self._kept for s in slots)]

    # ---- one step

    def _step(self, pairs: list[tuple[Variable, Any]]) -> None:
        for v, _ in pairs:
            self._trained(v, f"variable '{v.name}'")
        if writer() is not None:
            self._write_down(pairs)
            return
        steps = self.iterations + 1
        numbers = self._numbers(self._rate_now(steps - 1), steps)
        ready = [self._prepare(self._plain(v, g)) for v, g in pairs]
        for (v, _), given, g in zip(pairs, ready, self._clipped(ready), strict=True):
            slots = self._kept.of(v)
            if isinstance(given, RowStep):
                given.update(self._rule, g, (v, *slots), lambda x: x.held.value, numbers)
                continue
            if g.size > BLOCK and _plain(v.held.value, g):
                _in_blocks(self._rule, v, g, slots, numbers)
                continue
            made = self._rule(v.held.value, g, *[s.held.value for s in slots], *numbers)
            for target, new in zip((v, *slots), made, strict=True):
                target.hold(new)
        self._steps.hold(np.int64(steps))

    def _write_down(self, pairs: list[tuple[Variable, Any]]) -> None:
        """The same, while a program is being compiled: what changes from step to step is read and assigned there."""
        steps = self._steps.read() + 1
        numbers = self._numbers_of(self._rate_of(steps), steps)
        ready = [self._prepare(g) for _, g in pairs]
        for (v, _), given, g in zip(pairs, ready, self._clipped(ready), strict=True):
            slots = self._kept.of(v)
            if isinstance(given, RowStep):
                given.update(self._rule, g, (v, *slots), lambda x: x.read(), _cast(numbers, v.dtype))
                continue
            made = self._rule(v.read(), g, *[s.read() for s in slots], *_cast(numbers, v.dtype))
            for target, new in zip((v, *slots), made, strict=True):
                target.assign(new)
        self._steps.assign(steps)

    def _prepare(self, g: Any) -> Any:
        """A gradient as the rule takes it: for the rows that it names, or for all."""
        if not isinstance(g, RowSparse):
            return g
        return RowStep.of(g) if self._lazy or (self._row_wise and has_few_rows(g)) else g.to_dense()

    def _clipped(self, ready: list[Any]) -> list[Any]:
        grads = [g.sums if isinstance(g, RowStep) else g for g in ready]
        for clip, limit in self._clips:
            grads = clip(grads, limit)
        return grads

    # ---- numbers

    def _numbers_of(self, rate: Any, steps: Any) -> tuple[Any, ...]:
        """The numbers of a step, in float64 whatever the parameters are: of a tensor they are tensors."""
        return self._numbers(rate, steps.astype(np.float64) if isinstance(steps, Tensor) else int(steps))

    def _rate_of(self, steps: Any) -> Any:
        """The learning rate of the step with this number, the first being 1."""
        if not isinstance(steps, Tensor) and writer() is None:
            return self._rate_now(int(steps) - 1)
        if self._schedule is None:
            return self._rate.read()
        return self._schedule((steps - 1).astype(np.float64))

    def _rate_now(self, step: int) -> float:
        if self._schedule is None:
            return float(self._rate.held.value)
        return self._checked_rate(self._schedule(step))

    def _checked_rate(self, rate: Any) -> float:
        return float(as_number(self.name, RATE, rate, 0))

    # ---- what is given

    def _listed(self, grads: Any) -> Iterable[tuple[Variable, Any]]:
        if isinstance(grads, Mapping):
            known = grads.variables if isinstance(grads, NamedGradients) else {}
            return [(self._variable(known.get(key, key)), g) for key, g in grads.items()]
        pairs: list[tuple[Variable, Any]] = []
        for item in grads if isinstance(grads, Iterable) and not isinstance(grads, Tensor | np.ndarray) else [grads]:
            if isinstance(item, Mapping) and item.keys() == {"name", "tensor"}:
                pairs.append((self._variable(item["name"]), item["tensor"]))
            elif isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[1], Variable):
                pairs.append((item[1], item[0]))
            else:
                raise ArgumentError(
                    f"{self.name}.apply_gradients: expected a dict of gradients by name, or a list of "
                    f"{{'name': …, 'tensor': …}} or of (gradient, variable); got {type(item).__name__}."
                )
        return pairs

    def _variable(self, key: Any) -> Variable:
        found = key if isinstance(key, Variable) else only_named(key, self.name) if isinstance(key, str) else None
        if found is None:
            raise VariableError(
                f"{self.name}: there is no variable named {key!r}. "
                "Gradients go by the names of live variables; was it let go of?"
            )
        return found

    def _pair(self, v: Variable, g: Any) -> tuple[Variable, Any]:
        g = g if isinstance(g, RowSparse) else value_of(g, f"the gradient of '{v.name}'")
        return v, self._gradient(g, self._trained(v, f"variable '{v.name}'"), f"the gradient of '{v.name}'")

    def _plain(self, v: Variable, g: Any) -> Any:
        """A gradient as an array, refused while a transform follows it."""
        values = g.values if isinstance(g, RowSparse) else g
        t = values.read() if isinstance(values, Tensor) else constant(values)
        if t.level:
            raise TracedValueError(
                f"{self.name}: the gradient of '{v.name}' is followed by a transform (a tape, vmap, …), which ends at "
                "a variable. Make the step outside of it, or use update(params, grads, state), which it can follow."
            )
        return make_rows(g.indices, t.value, g.shape, g._distinct) if isinstance(g, RowSparse) else t.value

    def _gradient(self, g: Any, x: Any, where: str) -> Any:
        """A gradient that fits what it is of."""
        if g.shape != x.shape:
            raise ShapeError(f"{self.name}: {where} has shape {g.shape}, expected {x.shape}.")
        if isinstance(g, RowSparse):
            return g if g.dtype == x.dtype else make_rows(g.indices, g.values.astype(x.dtype), g.shape)
        return g if g.dtype == x.dtype else g.astype(x.dtype)

    def _trained(self, x: Any, where: str) -> Any:
        if x.dtype.kind != "f":
            raise GradientError(f"{self.name}: {where} is {x.dtype}; only floats can be trained. Cast it first.")
        return x


def _remade(make: Callable[..., Optimizer], config: dict[str, Any], state: dict[str, Any]) -> Optimizer:
    made = make(**config)
    made.load_state_dict(state)
    return made


def decayed(rule: Any, numbers: Any, decay: float) -> tuple[Any, Any]:
    """The rule of an optimizer after the parameters were made smaller by ``learning_rate * decay`` of themselves."""

    def with_decay(x: Any, g: Any, *rest: Any) -> Any:
        return rule(x * rest[-1], g, *rest[:-1])

    return with_decay, lambda rate, steps: (*numbers(rate, steps), 1.0 - rate * decay)


def _cast(numbers: tuple[Any, ...], dtype: Any) -> list[Any]:
    """Numbers that do not widen what they are multiplied with: Python's do not anyway."""
    return [n.astype(dtype) if isinstance(n, Tensor | np.generic) else n for n in numbers]


def _counted(steps: Any) -> Any:
    t = steps.read() if isinstance(steps, Tensor) else np.int64(steps)
    return t.value if isinstance(t, Tensor) and not t.level else t


def _like(params: Any, new: list[Any]) -> Any:
    source = iter(new)
    return tree.mapped(lambda _: next(source), params, whole=tree.is_number_list)


def _differences(what: str, missing: Iterable[str], extra: Iterable[str], different: list[str]) -> str:
    parts = [
        f"{', '.join(map(repr, sorted(names)))} {said}"
        for names, said in ((missing, "missing"), (extra, "extra"))
        if names
    ]
    return f"{what} does not fit: {'; '.join([*parts, *sorted(different)])}."


# ---- big arrays: block by block, so that what is computed on the way stays in the cache


def _plain(x: Any, g: Any) -> bool:
    return bool(x.flags.c_contiguous and g.flags.c_contiguous)


def _in_blocks(rule: Any, v: Variable, g: Any, slots: list[Slot], numbers: tuple[Any, ...]) -> None:
    targets: tuple[Variable, ...] = (v, *slots)
    owned = [None if is_logged() else target.own_array() for target in targets]  # what is logged must stay as it is
    given = [np.ascontiguousarray(target.held.value) for target in targets]
    new = [np.empty_like(x) if own is None else own for x, own in zip(given, owned, strict=True)]
    ins, outs, gradient = [x.reshape(-1) for x in given], [x.reshape(-1) for x in new], g.reshape(-1)
    for start in range(0, g.size, BLOCK):
        at = slice(start, start + BLOCK)
        made = rule(ins[0][at], gradient[at], *[x[at] for x in ins[1:]], *numbers)
        for out, part in zip(outs, made, strict=True):
            out[at] = part
    for target, x in zip(targets, new, strict=True):
        target.hold(x)
