"""The optimizer: applies an update rule to variables, to trees of parameters, and in compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, overload

import numpy as np

from pullback.core.convert import as_number
from pullback.core.rowsparse import RowSparse, make_rows
from pullback.core.tape import constant
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable, find_only_variable, get_trace, index_by_name, is_logged
from pullback.errors import ArgumentError, DataError, GradientError, ShapeError, TracedValueError, VariableError
from pullback.names.answers import make_keyword_error
from pullback.train.arguments import as_whole_number
from pullback.train.optim.clipping import as_value, check_limit, clip_each_norm, clip_each_value, clip_joint_norm
from pullback.train.optim.loss_scale import FINITE_STEPS, LOSS_SCALE, LossScale, are_finite
from pullback.train.optim.row_steps import RowUpdate, Rule, has_few_rows, is_large
from pullback.train.optim.schedules import Number
from pullback.train.optim.slots import Slot, SlotShape, SlotTable
from pullback.train.optim.trees import match_leaves, rebuild_tree
from pullback.transforms.grad import ValueAndGrads, convert_back, kind_of
from pullback.transforms.variables import NamedGradients, differentiate_by_variables, variable_grads
from pullback.typing import Array, Tree, Value

ITERATIONS = "iterations"
AVERAGE, ACCUMULATOR = "average", "gradient_accumulator"  # slots
RATE = "learning_rate"
GRADIENT_TYPES = (Tensor, np.ndarray, RowSparse)
BLOCK = 24576  # elements that are updated at a time, so that what a rule computes in between stays in the cache
CLIPS = {"clip_value": clip_each_value, "clip_norm": clip_each_norm, "clip_global_norm": clip_joint_norm}

P = TypeVar("P")  # a tree of parameters
R = TypeVar("R")
Gradient: TypeAlias = "Value | RowSparse"
Gradients = Mapping[Any, Any] | Iterable[Any]  # by name or variable, or (gradient, variable) pairs
StepNumbers = Callable[[Any, Any], tuple[Any, ...]]  # from the learning rate and the step number


class Common(TypedDict, total=False):
    """The options of every optimizer, except ``weight_decay``."""

    clip_value: float  # gradients are clipped before a step: element by element,
    clip_norm: float  # each by its own norm,
    clip_global_norm: float  # or all by their norm together
    lazy: bool  # a row-sparse gradient changes only its rows; other rows and their slots stay
    use_ema: bool  # keep a moving average of each variable, which fit assigns to it at the end
    ema_momentum: float  # how much of the average stays in each step
    ema_overwrite_frequency: int | None  # assign the averages after every so many steps
    gradient_accumulation_steps: int | None  # one update for so many steps, with the mean of their gradients
    loss_scale_factor: float | None  # gradients are those of the loss times this
    dynamic_growth_steps: int | None  # the scale is dynamic and doubled after so many steps with finite gradients


class OptimizerOptions(Common, total=False):
    """The options of every optimizer, besides its own arguments."""

    weight_decay: float  # every step subtracts learning_rate * weight_decay of each parameter


class CurrentRate(float):
    """The learning rate of an optimizer: a number that can be assigned, as in Keras."""

    _optimizer: Optimizer

    def assign(self, rate: float) -> None:
        """Set the learning rate of the following steps.

        rate: the number.
        """
        self._optimizer.set_learning_rate(rate)

    def numpy(self) -> np.float64:
        """Return the number as NumPy's."""
        return np.float64(self)

    def __reduce__(self) -> Any:
        return float, (float(self),)


class Optimizer:
    """An optimizer, made by ``pb.train.sgd``, ``adam`` and others: an update rule and its state.

    >>> x = pb.variable([1.0, -2.0], name="x")
    >>> optimizer = pb.train.sgd(0.1)
    >>> optimizer.minimize(lambda: (x * x).sum(), return_cost=True)
    Tensor(5., dtype=float32)
    >>> x
    Variable([0.8, -1.6], dtype=float32, name='x')
    """

    _internal = (  # what dir() of an optimizer does not list
        "get_initial_value", "is_compilable", "keeps_average", "loss_scale", "maker", "slots", "swap_averages",
        "wants_rows",
    )  # fmt: skip

    def __init__(
        self,
        make: Callable[..., Optimizer],
        config: dict[str, Any],
        rule: Rule,
        numbers: StepNumbers,
        initial_values: dict[str, float],
        options: OptimizerOptions,
        row_wise: bool = False,  # whether the rule changes nothing where the gradient is zero
        whole: bool = False,  # whether the rule needs all elements of a variable at once
        slot_shapes: Mapping[str, SlotShape] = MappingProxyType({}),  # of slots unlike their variables
    ) -> None:
        name = make.__name__
        options = {key: x for key, x in options.items() if x is not None}  # type: ignore[assignment]
        unknown = options.keys() - OptimizerOptions.__annotations__.keys()
        if unknown:
            raise make_keyword_error(name, min(unknown), [*config, *OptimizerOptions.__annotations__])
        self.name, self._make, self._config = name, make, {**config, **options}
        self._clips = [(clip, check_limit(f"{name}: {k}", options[k])) for k, clip in CLIPS.items() if k in options]  # type: ignore[literal-required]
        self._rule, self._numbers = _extend_rule(name, rule, numbers, options)
        self.loss_scale = _make_loss_scale(name, options)
        self.keeps_average = bool(options.get("use_ema", False))
        self._is_swapped = False  # whether variables and their averages are exchanged
        self._accumulated = _read_count(name, options, "gradient_accumulation_steps") or 1
        further = [AVERAGE] * self.keeps_average + [ACCUMULATOR] * (self._accumulated > 1)
        self._initial_values = initial_values | dict.fromkeys(further, 0.0)
        lazy = options.get("lazy", False)
        if not isinstance(lazy, bool):
            raise ArgumentError(f"{name}: lazy must be True or False, got {lazy!r}.")
        simple = not (self.keeps_average or whole or self._accumulated > 1)
        if lazy and not simple:
            raise ArgumentError(f"{name}: lazy=True cannot be combined with use_ema or gradient_accumulation_steps.")
        self._lazy, self._whole = lazy, whole
        self._row_wise = row_wise and simple and not options.get("weight_decay")
        self._slots = SlotTable(self._initial_values, slot_shapes)
        self._steps = Slot(np.int64(0), ITERATIONS)
        rate = config[RATE]
        self._schedule = rate if callable(rate) and not isinstance(rate, Tensor) else None
        self._rate = Slot(np.float64(0 if self._schedule else self._check_rate(rate)), RATE)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in self.get_config().items())})"

    # ---- variables

    @overload
    def minimize(self, f: Callable[[], R], var_list: Sequence[Variable] | None, return_cost: Literal[True]) -> R: ...
    @overload
    def minimize(
        self, f: Callable[[], R], var_list: Sequence[Variable] | None = None, *, return_cost: Literal[True]
    ) -> R: ...
    @overload
    def minimize(
        self, f: Callable[[], Any], var_list: Sequence[Variable] | None = None, return_cost: Literal[False] = False
    ) -> None: ...
    @overload
    def minimize(
        self, f: Callable[[], Any], var_list: Sequence[Variable] | None = None, return_cost: bool = ...
    ) -> Any: ...
    def minimize(
        self, f: Callable[[], Any], var_list: Sequence[Variable] | None = None, return_cost: bool = False
    ) -> Any:
        """Make one step: compute the gradients of ``f()`` by the trainable variables it reads, and apply them.

        ``f`` returns a scalar, which is returned if ``return_cost``.

        var_list: the variables to change; those that ``f`` reads without it.
        """
        value, grads = self.differentiate(f, var_list, self.wants_rows)
        self._step([self._check_pair(v, g) for v, g in grads.items()] if self.loss_scale.is_used else [*grads.items()])
        return value if return_cost else None

    def differentiate(
        self,
        f: Callable[[], Any],
        var_list: Sequence[Variable] | None,
        wants_rows: Callable[[Variable], bool] | bool,
    ) -> tuple[Any, Any]:
        """Return the value of ``f()``, and its gradients times the loss scale, as ``apply_gradients`` takes them."""
        if not self.loss_scale.is_used:
            return differentiate_by_variables(f, var_list, wants_rows, face="minimize")

        def compute_scaled() -> Any:
            loss = f()
            return self.loss_scale.scale(loss), loss

        with np.errstate(over="ignore", invalid="ignore"):  # a gradient that overflows is not used
            (_, loss), grads = differentiate_by_variables(
                compute_scaled, var_list, wants_rows, has_aux=True, face="minimize"
            )
        return loss, grads

    def compute_gradients(
        self,
        f: Callable[[], Any],
        var_list: Sequence[Variable] | None = None,
        *,
        sparse: bool | Callable[[Variable], bool] = False,
    ) -> ValueAndGrads:
        """Return the value of ``f()`` and its gradients by name, as ``variable_grads`` does.

        f: a function without arguments that returns a scalar.
        var_list: the variables to differentiate by; those that ``f`` reads without it.
        sparse: whether gradients of tables of which few rows are read are ``RowSparse``.
        """
        return variable_grads(f, var_list, sparse=sparse)

    def wants_rows(self, v: Variable) -> bool:
        """Return whether a row-sparse gradient of ``v`` is useful: the step would change only its rows."""
        return not self.loss_scale.is_dynamic and (self._lazy or (self._row_wise and is_large(v)))

    def apply_gradients(self, grads: Gradients) -> None:
        """Make one step with gradients: a dict by name (or variable), a list of ``{"name": …, "tensor": …}``, or of
        ``(gradient, variable)`` pairs.  A gradient of ``None`` leaves its variable unchanged.

        A ``RowSparse`` has the same effect as the dense gradient; only its rows are touched where that is enough
        (``sgd`` and ``adagrad`` without ``weight_decay``), or if the optimizer was made with ``lazy=True``.

        grads: the gradients.
        """
        pairs = [self._check_pair(v, g) for v, g in self._list_pairs(grads) if g is not None]
        if not pairs:
            raise GradientError(f"{self.name}.apply_gradients: there is no gradient to apply.")
        if len({id(v) for v, _ in pairs}) < len(pairs):
            raise ArgumentError(f"{self.name}.apply_gradients: a variable has two gradients; add them up first.")
        self._step(pairs)
        for v, _ in pairs:
            if v.constraint is not None:
                v.assign(v.constraint(v.read()))

    def apply(self, grads: Sequence[Any], variables: Sequence[Variable]) -> None:
        """Make one step with a gradient for each variable, as in Keras.

        grads: the gradients.
        variables: the variables, in the same order.
        """
        if len(grads) != len(variables):
            raise ArgumentError(f"{self.name}.apply: got {len(grads)} gradients for {len(variables)} variables.")
        self.apply_gradients(zip(grads, variables, strict=True))

    @property
    def iterations(self) -> int:
        """The number of steps made so far."""
        return int(self._steps.held.value)

    @property
    def learning_rate(self) -> CurrentRate:
        """The learning rate of the next step; ``optimizer.learning_rate = 0.01`` or ``.assign(0.01)`` sets it.

        >>> optimizer = pb.train.sgd(0.1)
        >>> optimizer.learning_rate.assign(0.05)
        >>> optimizer.learning_rate
        0.05
        """
        rate = CurrentRate(self._get_rate(self.iterations))
        rate._optimizer = self
        return rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self.set_learning_rate(rate)

    def set_learning_rate(self, rate: float) -> None:
        """Set the learning rate of the following steps, compiled ones too.

        rate: the number.
        """
        checked = self._check_rate(rate)
        if self._schedule is not None:
            raise ArgumentError(
                f"{self.name}.set_learning_rate: the rate follows {self._schedule!r}, which is compiled into "
                "steps. Make an optimizer with a number as its learning_rate to set it yourself."
            )
        self._rate.assign(np.float64(checked))

    # ---- trees of parameters

    def init(self, params: Tree) -> dict[str, Any]:
        """Return the initial state: the number of steps, and for each slot a tree like ``params``."""
        values = [
            self._check_trainable(as_value(x, self.name), where) for x, where in match_leaves(params, params, "params")
        ]
        state: dict[str, Any] = {ITERATIONS: np.int64(0)}
        for name, start in self._initial_values.items():
            shapes = [self._slots.find_shape(name, x.shape) for x in values]
            arrays = [np.full(shape, start, x.dtype)[()] for shape, x in zip(shapes, values, strict=True)]
            state[name] = rebuild_tree(params, arrays)
        return state

    def update(self, params: P, grads: Tree, state: Mapping[str, Any]) -> tuple[P, dict[str, Any]]:
        """Return the next ``(params, state)`` after one step; nothing is changed in place.

        Leaves keep their kind: arrays stay arrays, tensors tensors, numbers numbers.

        params: a tree of arrays.
        grads: their gradients, in the same structure.
        state: what ``init`` or the last ``update`` returned.
        """
        wanted, got = {ITERATIONS, *self._initial_values}, set(state)
        if wanted != got:
            raise DataError(f"{self.name}.update: {_describe_differences(wanted - got, got - wanted, [])}")
        xs = match_leaves(params, params, "params")
        gs = match_leaves(params, grads, "grads")
        slots = [match_leaves(params, state[name], f"state['{name}']") for name in self._initial_values]
        values = [self._check_trainable(as_value(x, self.name), where) for x, where in xs]
        present = [i for i, (g, _) in enumerate(gs) if g is not None]
        checked = [self._check_gradient(as_value(gs[i][0], self.name), values[i], f"grads{gs[i][1]}") for i in present]
        if self._accumulated > 1:
            raise ArgumentError(
                f"{self.name}.update: gradient_accumulation_steps is for variables; add up the gradients before update."
            )
        steps = _as_step_count(state[ITERATIONS]) + 1
        numbers = self._compute_numbers(self._compute_rate(steps), steps)
        new = [(x, *(as_value(s[i][0], self.name) for s in slots)) for i, x in enumerate(values)]
        for i, g in zip(present, self._clip(checked), strict=True):
            new[i] = self._rule(new[i][0], g, *new[i][1:], *_cast_numbers(numbers, values[i].dtype))
        params = rebuild_tree(params, [convert_back(row[0], kind_of(x)) for row, (x, _) in zip(new, xs, strict=True)])
        trees = (rebuild_tree(params, [row[k] for row in new]) for k in range(1, len(slots) + 1))
        return params, {ITERATIONS: steps, **dict(zip(self._initial_values, trees, strict=True))}

    # ---- saving

    def get_config(self) -> dict[str, Any]:
        """Return the arguments it was made with, with the current learning rate."""
        return self._config | ({} if self._schedule else {RATE: self._get_rate(0)})

    def from_config(self, config: Mapping[str, Any]) -> Optimizer:
        """Return a new optimizer of the same kind with these arguments.

        config: arguments by name, as ``get_config`` returns them.

        >>> optimizer = pb.train.adam(0.01)
        >>> optimizer.from_config(optimizer.get_config() | {"learning_rate": 0.1}).learning_rate
        0.1
        """
        return self._make(**config)

    @property
    def variables(self) -> list[Variable]:
        """Its state as variables: the step number, the learning rate, and the slots of every variable so far.

        >>> v = pb.variable([1.0, 2.0], name="v")
        >>> optimizer = pb.train.momentum(0.1, 0.9)
        >>> optimizer.apply_gradients([([1.0, 1.0], v)])
        >>> [one.name for one in optimizer.variables]
        ['iterations', 'learning_rate', 'v/momentum']
        """
        scale = [self.loss_scale.current, self.loss_scale.finite_steps] if self.loss_scale.is_dynamic else []
        return [self._steps, self._rate, *scale, *(s for _, slots in self._slots for s in slots)]

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of its state as numbers and arrays; slots are named ``variable/slot``."""
        index_by_name((v for v, _ in self._slots), f"{self.name}.state_dict")
        state: dict[str, Any] = {ITERATIONS: self.iterations}
        if self._schedule is None:
            state[RATE] = self._get_rate(0)
        if self.loss_scale.is_dynamic:
            state[LOSS_SCALE] = float(self.loss_scale.current.held.value)
            state[FINITE_STEPS] = int(self.loss_scale.finite_steps.held.value)
        return state | {s.name: s.numpy() for _, slots in self._slots for s in slots}

    def load_state_dict(self, state: Mapping[str, Any], var_list: Sequence[Variable] | None = None) -> None:
        """Load what ``state_dict`` returned, in this process or another; variables are found by their names.

        Nothing is changed unless everything matches: exactly the slots of ``var_list`` (or of the variables used so
        far), with the same shapes and dtypes.

        state: the dict.
        """
        subject = f"{self.name}.load_state_dict"
        slots = self._list_slots(state, var_list, subject)
        values = {key: np.asarray(as_value(x, f"load_state_dict: '{key}'")) for key, x in state.items()}
        self._check_state(values, slots, subject)
        if self._schedule is None:
            self._rate.assign(np.float64(self._check_rate(values[RATE].item())))
        self._steps.assign(np.int64(values[ITERATIONS]))
        if self.loss_scale.is_dynamic:
            self.loss_scale.current.assign(np.float64(values[LOSS_SCALE]))
            self.loss_scale.finite_steps.assign(np.int64(values[FINITE_STEPS]))
        for key, (v, i) in slots.items():
            self._slots.get(v)[i].assign(values[key])

    def _list_slots(
        self, state: Mapping[str, Any], var_list: Sequence[Variable] | None, subject: str
    ) -> dict[str, tuple[Variable, int]]:
        """Return the slots that a state must have, by name: each the variable and the number of the slot."""
        variables = index_by_name([*(v for v, _ in self._slots), *(var_list or ())], subject)
        for key in state:
            name, _, slot = key.rpartition("/")
            v = find_only_variable(name, subject) if var_list is None and slot in self._initial_values else None
            variables |= {} if v is None else {name: v}
        return {
            f"{name}/{slot}": (v, i) for name, v in variables.items() for i, slot in enumerate(self._initial_values)
        }

    def _check_state(
        self, values: Mapping[str, Array], slots: Mapping[str, tuple[Variable, int]], subject: str
    ) -> None:
        """Raise an error unless a state has exactly these slots and numbers, with their shapes and dtypes."""
        numbers = {ITERATIONS} | ({RATE} if self._schedule is None else set())
        numbers |= {LOSS_SCALE, FINITE_STEPS} if self.loss_scale.is_dynamic else set()
        different = [
            f"'{key}' is {x.dtype} of shape {x.shape}, expected {like.dtype} of shape {like.shape}"
            for key, x in values.items()
            if key in slots and (x.shape != (like := self._get_slot(slots[key])).shape or x.dtype != like.dtype)
        ]
        different += [f"'{key}' is not one number" for key in numbers & values.keys() if values[key].shape]
        wanted = numbers | slots.keys()
        if wanted != values.keys() or different:
            missing, extra = wanted - values.keys(), values.keys() - wanted
            raise DataError(f"{subject}: {_describe_differences(missing, extra, different)}")

    def _get_slot(self, place: tuple[Variable, int]) -> Slot:
        return self._slots.get(place[0])[place[1]]

    def use_averages(self, variables: Sequence[Variable]) -> None:
        """Assign the moving averages to these variables, as ``fit`` does at its end.

        variables: the variables.
        """
        for v, average in self._list_averages(variables):
            if self._is_swapped:
                average.assign(v.numpy())
            else:
                v.assign(average.numpy())
        self._is_swapped = False

    def swap_averages(self, variables: Sequence[Variable], is_swapped: bool) -> None:
        """Exchange these variables with their moving averages, or back, unless they are already."""
        if is_swapped is not self._is_swapped:
            for v, average in self._list_averages(variables):
                before = np.array(v.numpy())
                v.assign(average.numpy())
                average.assign(before)
            self._is_swapped = is_swapped

    def _list_averages(self, variables: Sequence[Variable]) -> list[tuple[Variable, Slot]]:
        """Return those of the variables that have a moving average, each with it."""
        number = [*self._initial_values].index(AVERAGE)
        return [(v, self._slots.get(v)[number]) for v in variables if v in self._slots]

    def __reduce__(self) -> Any:
        return _remake, (self._make, self.get_config(), self.state_dict())

    @property
    def maker(self) -> Callable[..., Optimizer]:
        """The function that makes the same optimizer from what ``get_config`` returns."""
        return self._make

    def get_initial_value(self, key: str) -> float:
        """Return the initial value of a slot; ``key`` is its name in ``state_dict``."""
        return self._initial_values[key.rpartition("/")[2]]

    def slots(self, variables: Sequence[Variable] = ()) -> list[Variable]:
        """Return its state as variables, with the slots of these variables, which are made if they are missing."""
        for v in variables:
            self._slots.get(v)
        return self.variables

    # ---- one step

    def _step(self, pairs: list[tuple[Variable, Any]]) -> None:
        for v, _ in pairs:
            if v.dtype.kind != "f":
                self._check_trainable(v, f"variable '{v.name}'")
        if get_trace() is not None:
            self._trace_step(pairs)
            return
        if self.loss_scale.is_dynamic:
            finite = self._update_loss_scale(pairs)
            if finite is None:
                return
            pairs = finite
        steps = self.iterations + 1
        exact = self._numbers(self._get_rate(steps - 1), -(-steps // self._accumulated))
        numbers = tuple([float(x) for x in exact])  # NumPy's float64 would widen parameters of float32
        if self._accumulated > 1:
            means = self._accumulate(pairs, steps, numbers)
            if means is None:
                return
            pairs = means
        ready = [self._prepare(self._as_array(v, g)) for v, g in pairs]
        for (v, _), gradient, g in zip(pairs, ready, self._clip(ready), strict=True):
            self._update(v, gradient, g, numbers)
        self._steps.hold(np.int64(steps))

    def _update(self, v: Variable, gradient: Any, g: Any, numbers: tuple[float, ...]) -> None:
        """Apply the rule to a variable and its slots; ``g`` is the clipped ``gradient``."""
        slots = self._get_rule_slots(v)
        if isinstance(gradient, RowUpdate):
            gradient.update(self._rule, g, (v, *slots), lambda x: x.held.value, numbers)
        elif g.size > BLOCK and not self._whole and _are_contiguous(v.held.value, g):
            _update_in_blocks(self._rule, v, g, slots, numbers)
        else:
            results = self._rule(v.held.value, g, *[s.held.value for s in slots], *numbers)
            for target, new in zip((v, *slots), results, strict=True):
                target.hold(new)

    def _update_loss_scale(self, pairs: list[tuple[Variable, Any]]) -> list[tuple[Variable, Any]] | None:
        """Adapt the loss scale to the gradients, and return these; None if one of them is not finite."""
        arrays = [(v, self._as_array(v, g)) for v, g in pairs]
        is_finite = are_finite([g for _, g in arrays])
        self.loss_scale.update(is_finite)
        return arrays if is_finite else None

    def _trace_step(self, pairs: list[tuple[Variable, Any]]) -> None:
        """Make a step in a program that is being traced: variables and slots are read and assigned by the program."""
        if self._accumulated > 1:
            raise ArgumentError(
                f"{self.name}: gradient_accumulation_steps skips updates, which a compiled step cannot; compile the "
                "gradients alone, or the model with eager=True."
            )
        before = self._steps.read()
        steps = before + 1
        numbers = self._compute_numbers(self._compute_rate(steps), steps)
        ready = [self._prepare(g) for _, g in pairs]
        finite = are_finite(ready) if self.loss_scale.is_dynamic else None
        for (v, _), gradient, g in zip(pairs, ready, self._clip(ready), strict=True):
            slots = self._slots.get(v)
            if isinstance(gradient, RowUpdate):
                gradient.update(self._rule, g, (v, *slots), lambda x: x.read(), _cast_numbers(numbers, v.dtype))
                continue
            results = self._rule(v.read(), g, *[s.read() for s in slots], *_cast_numbers(numbers, v.dtype))
            for target, new in zip((v, *slots), results, strict=True):
                target.assign(new if finite is None else np.where(finite, new, target.read()))
        self._steps.assign(steps if finite is None else np.where(finite, steps, before))
        if finite is not None:
            self.loss_scale.update(finite)

    @property
    def is_compilable(self) -> bool:
        """Whether a step can be part of a compiled program: not if updates are skipped."""
        return self._accumulated == 1

    def _accumulate(
        self, pairs: list[tuple[Variable, Any]], steps: int, numbers: tuple[float, ...]
    ) -> list[tuple[Variable, Any]] | None:
        """Add gradients to those of the steps before; return their means, or None if this step makes no update."""
        sums = []
        for v, gradient in pairs:
            slot, g = self._slots.get(v)[-1], self._as_array(v, gradient)
            sums.append((v, slot, slot.held.value + (g.to_dense() if isinstance(g, RowSparse) else g)))
        if steps % self._accumulated:
            for _, slot, total in sums:
                slot.hold(total)
            if self.keeps_average:
                self._average([v for v, _ in pairs], *numbers[-2:])
            self._steps.hold(np.int64(steps))
            return None
        for _, slot, total in sums:
            slot.hold(np.zeros_like(total))
        return [(v, (total / self._accumulated).astype(total.dtype)) for v, _, total in sums]

    def _average(self, variables: Iterable[Variable], kept: float, overwrites: float) -> None:
        """Add variables to their averages in a step without an update, as ``add_average`` does in one with it."""
        for v in variables:
            slot = self._get_rule_slots(v)[-1]
            slot.hold((kept * slot.held.value + (1.0 - kept) * v.held.value).astype(v.dtype))
            if overwrites:
                v.hold(slot.held.value)

    def _get_rule_slots(self, v: Variable) -> list[Slot]:
        """Return the slots of a variable that the rule takes: not that of accumulated gradients."""
        slots = self._slots.get(v)
        return slots[:-1] if self._accumulated > 1 else slots

    def _prepare(self, g: Gradient) -> Any:
        """Return a gradient as the rule takes it: a row update, or a dense array."""
        if not isinstance(g, RowSparse):
            return g
        if self.loss_scale.is_dynamic:  # a skipped step must not write rows
            return g.to_dense()
        return RowUpdate.from_gradient(g) if self._lazy or (self._row_wise and has_few_rows(g)) else g.to_dense()

    def _clip(self, ready: list[Any]) -> list[Any]:
        grads = [g.sums if isinstance(g, RowUpdate) else g for g in ready]
        for clip, limit in self._clips:
            grads = clip(grads, limit)
        return grads

    # ---- numbers

    def _compute_numbers(self, rate: Number, steps: Number) -> tuple[Any, ...]:
        """Return the numbers of a step in float64; tensors if the step number is one."""
        return self._numbers(rate, steps.astype(np.float64) if isinstance(steps, Tensor) else int(steps))

    def _compute_rate(self, steps: Any) -> Any:
        """Return the learning rate of the step with this number; the first is 1."""
        if not isinstance(steps, Tensor) and get_trace() is None:
            return self._get_rate(int(steps) - 1)
        if self._schedule is None:
            return self._rate.read()
        return self._schedule((steps - 1).astype(np.float64))

    def _get_rate(self, step: int) -> float:
        if self._schedule is None:
            return float(self._rate.held.value)
        return self._check_rate(self._schedule(step))

    def _check_rate(self, rate: float) -> float:
        return float(as_number(self.name, RATE, rate, 0))

    # ---- arguments

    def _list_pairs(self, grads: object) -> Iterable[tuple[Variable, Any]]:
        if isinstance(grads, Mapping):
            variables = grads.variables if isinstance(grads, NamedGradients) else {}
            return [(self._find_variable(variables.get(key, key)), g) for key, g in grads.items()]
        pairs: list[tuple[Variable, Any]] = []
        for item in grads if isinstance(grads, Iterable) and not isinstance(grads, Tensor | np.ndarray) else [grads]:
            if isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[1], Variable):
                pairs.append((item[1], item[0]))
            elif isinstance(item, Mapping) and item.keys() == {"name", "tensor"}:
                pairs.append((self._find_variable(item["name"]), item["tensor"]))
            else:
                raise ArgumentError(
                    f"{self.name}.apply_gradients: expected a dict of gradients by name, or a list of "
                    f"{{'name': …, 'tensor': …}} or of (gradient, variable); got {type(item).__name__}."
                )
        return pairs

    def _find_variable(self, key: object) -> Variable:
        found = (
            key if isinstance(key, Variable) else find_only_variable(key, self.name) if isinstance(key, str) else None
        )
        if found is None:
            raise VariableError(
                f"{self.name}: there is no variable named {key!r}. "
                "Gradients are matched to live variables by name; was it deleted? Parameters that are arrays are "
                "updated by optimizer.update(params, gradients, state)."
            )
        return found

    def _check_pair(self, v: Variable, g: Any) -> tuple[Variable, Any]:
        fits = isinstance(g, GRADIENT_TYPES) and g.shape == v.shape and g.dtype == v.dtype and v.dtype.kind == "f"
        if fits and not self.loss_scale.is_used:
            return v, g
        g = g if isinstance(g, RowSparse) else as_value(g, f"the gradient of '{v.name}'")
        return v, self._check_gradient(
            g, self._check_trainable(v, f"variable '{v.name}'"), f"the gradient of '{v.name}'"
        )

    def _as_array(self, v: Variable, g: Gradient) -> Any:
        """Return a gradient as an array; raise an error if a transform traces it."""
        if type(g) is np.ndarray:  # of the variable's dtype, so not of tensors
            return g
        values = g.values if isinstance(g, RowSparse) else g
        t = values.read() if isinstance(values, Tensor) else constant(values)
        if t.level:
            raise TracedValueError(
                f"{self.name}: the gradient of '{v.name}' is traced by a transform (a tape, vmap, …), which ends at a "
                "variable. Make the step outside of it, or use update(params, grads, state), which it can trace."
            )
        return g.with_values(t.value) if isinstance(g, RowSparse) else t.value

    def _check_gradient(self, g: Gradient, x: Value, where: str) -> Any:
        """Return a gradient in the dtype of its parameter; raise an error if the shapes differ."""
        if g.shape != x.shape:
            raise ShapeError(f"{self.name}: {where} has shape {g.shape}, expected {x.shape}.")
        if self.loss_scale.is_used:
            g = self.loss_scale.unscale(g)
        if isinstance(g, RowSparse):
            return g if g.dtype == x.dtype else make_rows(g.indices, g.values.astype(x.dtype), g.shape)
        return g if g.dtype == x.dtype else g.astype(x.dtype)

    def _check_trainable(self, x: Value, where: str) -> Any:
        if x.dtype.kind != "f":
            raise GradientError(f"{self.name}: {where} is {x.dtype}; only floats can be trained. Cast it first.")
        return x


def _read_count(name: str, options: Mapping[str, Any], key: str) -> int | None:
    """Return an option that is a positive whole number; None if it is not given."""
    return as_whole_number(name, key, options[key], 1) if key in options else None


def _extend_rule(name: str, rule: Rule, numbers: StepNumbers, options: OptimizerOptions) -> tuple[Rule, StepNumbers]:
    """Return a rule and its numbers with weight decay and moving averages, as the options say."""
    if decay := as_number(name, "weight_decay", options.get("weight_decay", 0.0), 0):
        rule, numbers = add_weight_decay(rule, numbers, decay)
    if options.get("use_ema", False):
        momentum = as_number(name, "ema_momentum", options.get("ema_momentum", 0.99), 0, 1)
        rule, numbers = add_average(rule, numbers, momentum, _read_count(name, options, "ema_overwrite_frequency"))
    return rule, numbers


def _make_loss_scale(name: str, options: OptimizerOptions) -> LossScale:
    factor = as_number(name, "loss_scale_factor", options.get("loss_scale_factor", 1.0), 0)
    if not factor:
        raise ArgumentError(f"{name}: loss_scale_factor must be more than 0, got {factor!r}.")
    return LossScale(float(factor), _read_count(name, options, "dynamic_growth_steps"))


def _remake(make: Callable[..., Optimizer], config: dict[str, Any], state: dict[str, Any]) -> Optimizer:
    optimizer = make(**config)
    optimizer.load_state_dict(state)
    return optimizer


def add_weight_decay(rule: Rule, numbers: StepNumbers, decay: float) -> tuple[Rule, StepNumbers]:
    """Return a rule and its numbers that first scale the parameters by ``1 - learning_rate * decay``."""

    def decay_and_apply(x: Value, g: Value, *rest: Any) -> tuple[Any, ...]:
        return rule(x * rest[-1], g, *rest[:-1])

    return decay_and_apply, lambda rate, steps: (*numbers(rate, steps), 1.0 - rate * decay)


def add_average(rule: Rule, numbers: StepNumbers, momentum: float, every: int | None) -> tuple[Rule, StepNumbers]:
    """Return a rule and its numbers that keep a moving average of the parameters in a last slot.

    After every ``every`` steps the parameters become their averages.
    """

    count = len(numbers(1.0, 1))

    def average(x: Value, g: Value, *rest: Any) -> tuple[Any, ...]:
        at = len(rest) - count - 2  # of the rule's first number
        slots, mean, own, (kept, overwrites) = rest[: at - 1], rest[at - 1], rest[at : at + count], rest[at + count :]
        new, *values = rule(x, g, *slots, *own)
        mean = kept * mean + (1.0 - kept) * new
        return np.where(overwrites != 0, mean, new), *values, mean

    def compute(rate: Number, steps: Number) -> tuple[Any, ...]:
        kept = np.where(steps > 1, momentum, 0.0)[()]
        due = np.where(steps - every * np.floor(steps / every) == 0, 1.0, 0.0)[()] if every else 0.0
        return (*numbers(rate, steps), kept, due)

    return average, compute


def _cast_numbers(numbers: tuple[Any, ...], dtype: np.dtype[Any]) -> list[Any]:
    """Return numbers in this dtype, so that they do not widen parameters; Python numbers do not anyway."""
    return [n.astype(dtype) if isinstance(n, Tensor | np.generic) else n for n in numbers]


def _as_step_count(steps: Number) -> Any:
    t = steps.read() if isinstance(steps, Tensor) else np.int64(steps)
    return t.value if isinstance(t, Tensor) and not t.level else t


def _describe_differences(missing: Iterable[str], extra: Iterable[str], different: list[str]) -> str:
    parts = [
        f"{', '.join(map(repr, sorted(names)))} {difference}"
        for names, difference in ((missing, "missing"), (extra, "extra"))
        if names
    ]
    return f"the state does not fit: {'; '.join([*parts, *sorted(different)])}."


# ---- large arrays are updated in blocks, so that intermediate results stay in the cache


def _are_contiguous(x: Array, g: Array) -> bool:
    return bool(x.flags.c_contiguous and g.flags.c_contiguous)


def _update_in_blocks(rule: Rule, v: Variable, g: Array, slots: list[Slot], numbers: tuple[Any, ...]) -> None:
    targets: tuple[Variable, ...] = (v, *slots)
    owned = [None if is_logged() else target.own_array() for target in targets]  # logged arrays must not change
    arrays = [np.ascontiguousarray(target.held.value) for target in targets]
    new = [np.empty_like(x) if buffer is None else buffer for x, buffer in zip(arrays, owned, strict=True)]
    ins, outs, gradient = [x.reshape(-1) for x in arrays], [x.reshape(-1) for x in new], g.reshape(-1)
    for start in range(0, g.size, BLOCK):
        at = slice(start, start + BLOCK)
        results = rule(ins[0][at], gradient[at], *[x[at] for x in ins[1:]], *numbers)
        for out, part in zip(outs, results, strict=True):
            out[at] = part
    for target, x in zip(targets, new, strict=True):
        target.hold(x)
