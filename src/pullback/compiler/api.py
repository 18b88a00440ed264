"""``pb.compile``: compiles a function to programs, one for each signature that it is called with."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import update_wrapper
from inspect import Parameter, signature
from time import perf_counter
from types import AsyncGeneratorType, CoroutineType, GeneratorType, MethodType
from typing import Any, NamedTuple
from warnings import warn

import numpy as np

from pullback.compiler.backends.executor import LIBRARIES, LibraryExecutor, load_library
from pullback.compiler.backends.library import Library
from pullback.compiler.frontend.body import ProgramTrace
from pullback.compiler.frontend.output_kinds import OutputKinds
from pullback.compiler.frontend.random_states import warn_of_draws
from pullback.compiler.frontend.symbol import ARRAY, PYTHON, PYTHON_NUMBERS, TENSOR, close_gaps
from pullback.compiler.frontend.trace import TransformedArgument
from pullback.compiler.ir.graph import Graph, Node, fingerprint
from pullback.compiler.passes.simplify import simplify
from pullback.compiler.pipeline import Stages, compile_graph, lower
from pullback.compiler.profile import Profile, profile_graph
from pullback.compiler.runtime.abi.entry import Leaves
from pullback.compiler.runtime.executable import Executable
from pullback.compiler.runtime.llvm import InvalidCodeError, TranslatorError, llvm_available
from pullback.compiler.runtime.numpy_executor import Executor
from pullback.compiler.runtime.threads import check_thread_count, choose_options
from pullback.compiler.target import Options, Target, get_target
from pullback.core import hooks, tree
from pullback.core.callers import reveal
from pullback.core.conditions import RefusedConditions
from pullback.core.convert import as_array, as_value, get_array_inside, has_tensors, join_array, refuse_matrix
from pullback.core.environment import get_environment, process_environment, word_of
from pullback.core.rowsparse import RowSparse
from pullback.core.tensor import RAW, Tensor
from pullback.core.variable import Variable, flag_changes, hold_results, is_watched, watch_variables
from pullback.core.writes import are_in_order
from pullback.display.html import Markup, render_frame, render_table, render_text
from pullback.errors import ArgumentError, CompileError

BACKENDS = ("auto", "llvm", "numpy", *LIBRARIES)
LAZY = (GeneratorType, CoroutineType, AsyncGeneratorType, map, filter, zip, enumerate, reversed)
MANY_TRACES = 8
LARGE = 2**63  # integers from here on are no arrays
FROZEN_AT_START = 1000  # objects that Python itself may have frozen: 3.12 begins with some 400
Layout = tuple[int, ...] | None  # the strides, in elements, of an array that is not in C order


class Leaf(NamedTuple):
    """The properties of an argument that a program depends on: shape, dtype, and if it is a Python number or list."""

    shape: tuple[int, ...]
    dtype: Any
    weak: Any  # the type of a Python number; of a list of them the dtype that it has as a tensor

    def __str__(self) -> str:
        kind = f"{self.dtype}{list(self.shape)}"
        return kind if self.weak is None else f"list {kind}" if isinstance(self.weak, np.dtype) else self.weak.__name__


class Settings(NamedTuple):
    """The arguments of ``compile`` that say how programs are run."""

    backend: str
    library: Library | None  # that runs them instead of machine code
    threads: int | None
    cache: bool


class Hole:
    """A placeholder for an array in a tree of arguments or results."""


HOLE = Hole()


class CompiledProgram:
    """A function compiled for one signature."""

    def __init__(
        self,
        f: Callable[..., Any],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        leaves: Sequence[Leaf],
        layouts: Sequence[Layout],
        settings: Settings,
    ) -> None:
        library = settings.library
        begin = perf_counter()
        self.function, self.layouts = f, layouts
        self.traced = self._trace(args, kwargs, leaves)
        self.stats = {"trace": (perf_counter() - begin) * 1e3, "rewrite": 0.0}
        self.target = get_target() if settings.backend in ("auto", "llvm") else None
        self.options = choose_options(settings.threads)
        self.known_stages: Stages | None = None
        self.is_on_device = library is not None and library.device is not None
        self.run: Any = (
            _make_runner(self.traced, settings, self.target, self.options)
            if library is None
            else LibraryExecutor(simplify(self.traced), library, self.traced)
        )
        self.stats.update(self.run.stats)

    def _trace(self, args: Sequence[Any], kwargs: dict[str, Any], leaves: Sequence[Leaf]) -> Graph:
        """Return the graph of a call of the function; keep the structure and kinds of its result.

        Variables that it reads and what is made for every run are inputs, too: they come after the leaves of the
        arguments.  The outputs of the graph are those of the function, new values of variables and of rows of
        variables, and whether a check failed.
        """
        trace = ProgramTrace()
        trace.checks = []
        symbols = iter([trace.add_argument(*x, strides) for x, strides in zip(leaves, self.layouts, strict=True)])
        results: list[Any] = []
        outputs: list[Node] = []

        def fill(x: Any) -> Any:
            return next(symbols) if x is HOLE else x

        def take_out(x: Any) -> Any:
            """Return a hole in the place of an array or tensor, which becomes an output."""
            array = _find_array(x)
            if array is None:
                return x
            results.append(join_array(array))
            outputs.append(trace.as_node(results[-1].read() if isinstance(results[-1], Tensor) else results[-1]))
            return HOLE

        with watch_variables(trace), RefusedConditions(), warn_of_draws(self.function):
            result = self.function(*tree.map_leaves(fill, args), **tree.map_leaves(fill, kwargs))
            self.structure = tree.map_leaves(take_out, result)
        self._build_results = tree.make_builder(self.structure, lambda x: x is HOLE)
        self.results = len(outputs)
        self.output_kinds = OutputKinds(trace, leaves, results, outputs)
        self.reads = [v for v, _ in trace.reads.values()]
        self.supplies = trace.supplies
        self.trainable, self.flag_changes = self.list_trainable_flags(), flag_changes()
        self.assigned = [v for v, _ in trace.assigned.values()]
        outputs += [trace.as_node(value) for _, value in trace.assigned.values()]
        self.written_rows = [v for v, _, _ in trace.written_rows.values()]
        outputs += [trace.as_node(part) for _, *parts in trace.written_rows.values() for part in parts]
        outputs += [trace.latest] if trace.keeps_latest else []
        outputs += [trace.join_checks()] if trace.checks else []
        trace.graph.outputs = outputs
        trace.finish()
        self.reads_layout = trace.reads_layout
        return trace.graph

    def __call__(self, values: Sequence[Any], kinds: Sequence[int]) -> Any:
        out = self.run(self.list_inputs(values))
        assigned = out[self.results :]
        if self.is_on_device:  # variables are on the host
            assigned = [self.run.library.leave(x) for x in assigned]
        count = len(self.assigned)
        if isinstance(self.run, Executable):
            hold_results(self.assigned, assigned[:count])
        else:  # other libraries may return narrower numbers
            for v, x in zip(self.assigned, assigned, strict=False):
                v.hold(x)
        for i, v in enumerate(self.written_rows):
            v.write_rows(*assigned[count + 2 * i : count + 2 * i + 2])
        source = iter(
            out
            if self.is_on_device
            else [convert(v) for convert, v in zip(self.output_kinds.find_converters(kinds), out, strict=False)]
        )
        return self._build_results(source)

    def list_inputs(self, values: Sequence[Any]) -> list[Any]:
        """Return all inputs of a run: leaves of the arguments, values of variables, and what is made for each run."""
        inputs = [*values, *[v.held.value for v in self.reads]]
        for place, make in self.supplies:
            inputs.insert(place, make())
        return inputs

    def list_trainable_flags(self) -> tuple[bool, ...]:
        """Return which of the variables that it reads are trainable."""
        return tuple([v.trainable for v in self.reads])

    def fits(self, layouts: Sequence[Layout]) -> bool:
        """Return whether arguments that lie in memory like this would be traced to the same program."""
        return not self.reads_layout or layouts == self.layouts

    def is_current(self) -> bool:
        """Return whether the same variables are trainable as when it was traced."""
        now = flag_changes()
        if now != self.flag_changes:
            if self.list_trainable_flags() != self.trainable:
                return False
            self.flag_changes = now
        return True

    def make_entry(
        self, args: Any, leaves: Sequence[Leaf], otherwise: Callable[..., Any], run: Callable[..., Any], switch: int
    ) -> Callable[..., Any] | None:
        """Return a native function for positional arguments like these; None if there can be none.

        otherwise: is called with any other arguments.
        run: is called with these arguments if the program is not valid any more, as a variable's trainability changed.
        switch: the address of a word that is 0 while the environment is that of the program.
        """
        if not isinstance(self.run, Executable):
            return None
        trees = Leaves(HOLE, args, leaves, self.structure)
        direct = not (self.reads or self.supplies or self.assigned or self.written_rows) and self.output_kinds.are_quick
        found = self.run.make_program_entry(trees, otherwise, self.output_kinds.floats, switch) if direct else None
        kinds = [PYTHON if x.weak else ARRAY for x in leaves]

        def run_leaves(*values: object) -> Any:
            unwatched = not is_watched()
            if unwatched and self.is_current():
                return self(values, kinds)
            arguments = (x.weak(v) if x.weak else v for v, x in zip(values, leaves, strict=True))
            again = run if unwatched else self.function
            return again(*tree.map_leaves(lambda x: next(arguments) if x is HOLE else x, args))

        return found or self.run.make_forwarder(trees, otherwise, run_leaves, switch)

    @property
    def stages(self) -> Stages:
        """The program in each form that the compiler gives it, from the traced graph to LLVM text.

        >>> import numpy as np, pullback as pb
        >>> stages = pb.compile(lambda x: np.tanh(x * 1.0) + 1.0).lower(np.ones(3)).stages
        >>> print(stages.simplified)
        %0 = input 0 : float64[3]
        %1 = constant 1.0 : float64[]
        %2 = tanh(%0) : float64[3]   # ...
        %3 = add(%2, %1) : float64[3]   # ...
        return %3
        >>> print(stages.fused)
        kernel [3]: tanh, add
        """
        if self.known_stages is None:
            self.known_stages = lower(self.traced, self.target or get_target(), self.options)
        return self.known_stages

    @property
    def graph(self) -> Graph:
        """The simplified graph of the program."""
        return simplify(self.traced)

    @property
    def ir(self) -> str:
        """The LLVM text of the program; empty where NumPy runs it."""
        return self.stages.module.text if isinstance(self.run, Executable) else ""

    @property
    def kernels(self) -> list[str]:
        """What is done, step by step: which ops are one loop, which are library calls, which run their NumPy kernel."""
        if isinstance(self.run, LibraryExecutor):
            return [f"{name} by its NumPy kernel" for name in self.run.host_ops]
        return [*self.run.manifest.described] if isinstance(self.run, Executable) else []

    @property
    def temporaries(self) -> int:
        """Bytes of memory for values that are neither arguments nor results."""
        return self.run.manifest.arena if isinstance(self.run, Executable) else 0

    def __dir__(self) -> list[str]:
        return ["graph", "ir", "kernels", "options", "stages", "stats", "target", "temporaries", "traced"]

    def __str__(self) -> str:
        if not self.kernels:
            return str(self.graph)
        head = f"in {len(self.kernels)} step{'s' * (len(self.kernels) > 1)}, {self.temporaries} bytes of temporaries:"
        return "\n".join([str(self.graph), "", head, *(f"  {k}" for k in self.kernels)])

    def __repr__(self) -> str:
        steps = len(self.kernels)
        return f"<program of {self._get_name()}, {steps} step{'s' * (steps != 1)}>"

    def _get_name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    def _repr_html_(self) -> str:
        facts = [f"compiled in {sum(self.stats.values()):.0f} ms", f"{self.temporaries:,} bytes of temporaries"]
        steps = render_table(["step", "what it does"], enumerate(self.kernels, 1), right=[0])
        return render_frame(f"Program of {self._get_name()}", facts, steps, render_text(self.graph, "graph"))


def _find_array(x: Any) -> Any:
    """Return the array or tensor that a result of a traced function is or contains; None if there is none."""
    if isinstance(x, RowSparse):
        return x.to_dense()
    if isinstance(x, LAZY):
        raise ArgumentError(
            f"compile(f): f returned a {type(x).__name__}, which would run after f was traced. "
            "Return a list or a tuple."
        )
    if isinstance(x, Tensor | np.ndarray | np.generic):
        return x
    inside = get_array_inside(x) if hasattr(type(x), "__array__") else x  # such as a Series of pandas
    return inside if has_tensors(inside) else None


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Pause the garbage collector, which would go through the many nodes of a graph again and again."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            _age_imported_modules()
            gc.enable()


_aged: set[bool] = set()  # whether stages that emit code were imported when objects were made old


def _age_imported_modules() -> None:
    """Make all objects old ones of the garbage collector, once without and once with the stages that emit code.

    These stages are imported when a program is first compiled.  Their 40,000 objects stay; the next collection of
    young ones, often in the call of another program, would go through them.
    """
    has_emitter = "pullback.compiler.codegen.module" in sys.modules
    if has_emitter in _aged:
        return
    _aged.add(has_emitter)
    # PyPy has no freeze; what the user has frozen stays so.
    if hasattr(gc, "freeze") and gc.get_freeze_count() <= FROZEN_AT_START:
        gc.freeze()
        gc.unfreeze()


def _make_runner(traced: Graph, settings: Settings, target: Target | None, options: Options) -> Any:
    """Return what runs a graph: machine code, or NumPy where there can be none."""
    if target is None or (settings.backend == "auto" and not llvm_available()):
        return Executor(simplify(traced), traced)
    if not llvm_available():
        raise CompileError("compile: backend='llvm' needs the package llvmlite, which is not installed here.")
    try:
        return compile_graph(traced, target, options, settings.cache)
    except (TranslatorError, InvalidCodeError) as error:
        if settings.backend == "llvm":
            raise
        if isinstance(error, InvalidCodeError):
            warn(f"{error} NumPy runs the program instead. Please report this.", RuntimeWarning, stacklevel=6)
        return Executor(simplify(traced), traced)


class ArgumentLeaves:
    """The arrays and numbers in the arguments of a call: their values, what a program depends on, and their kinds."""

    def __init__(self, library: Library | None) -> None:
        self.library = library  # whose arrays are leaves as they are; None for NumPy
        self.values: list[Any] = []
        self.leaves: list[Leaf] = []
        self.layouts: list[Layout] = []
        self.kinds: list[int] = []

    def take(self, x: Any) -> Any:
        """Return a hole in the place of an array or a number; anything else as it is."""
        if isinstance(x, Tensor):
            if isinstance(x, Variable):
                return x
            x = x.read()
            if x.level:
                raise TransformedArgument
            return self._enter_array(x.value, TENSOR)
        if self.library is not None and self.library.is_own(x):
            return self._enter(x, Leaf(tuple(x.shape), self.library.get_dtype(x), None), ARRAY)
        if isinstance(x, RAW) or hasattr(type(x), "__array__"):
            if has_tensors(x):
                raise TransformedArgument
            refuse_matrix(x, "compile")
            return self._enter_array(x, ARRAY)
        if tree.is_number_list(x):
            narrow = as_value(x)
            wide = as_array(x, np.float64) if narrow.dtype.kind in "iuf" else narrow
            return self._enter(wide, Leaf(wide.shape, wide.dtype, narrow.dtype), PYTHON)
        if type(x) not in PYTHON_NUMBERS or isinstance(x, bool) or (type(x) is int and not -LARGE <= x < LARGE):
            return x
        return self._enter_array(x, PYTHON)

    def _enter_array(self, x: Any, kind: int) -> Any:
        weak = type(x) if type(x) in PYTHON_NUMBERS else None
        v = np.asarray(x, None if weak is not float else np.float64)[()] if weak else as_value(x)
        if not v.dtype.isnative:  # bytes in the other order
            v = v.astype(v.dtype.newbyteorder("="))
        return self._enter(v, Leaf(v.shape, v.dtype, weak), kind)

    def _enter(self, v: Any, leaf: Leaf, kind: int) -> Any:
        self.values.append(v)
        self.leaves.append(leaf)
        self.layouts.append(_find_layout(v) if type(v) is np.ndarray else None)
        self.kinds.append(kind)
        return HOLE


def _find_layout(v: np.ndarray[Any, Any]) -> Layout:
    """Return None for an array with its axes in C order, else strides without gaps in the order of its own.

    NumPy's results have their axes in the order of their arguments; whether a reshaped result is a view depends on it.
    """
    strides = v.strides
    if v.flags.c_contiguous or (0 not in strides and are_in_order(v.shape, strides)):
        return None
    steps = close_gaps(v.shape, strides)
    return tuple([step if is_known else 0 for step, is_known in zip(steps, strides, strict=True)])


class Compiled:
    """The function that ``compile`` returns: it keeps the name and docstring of ``f``."""

    # ``__call__`` is a slot of the instance, which holds the native entry of the newest program: so a call runs no
    # Python frame.  Arguments that do not fit are passed on to the entry of the program before.
    __slots__ = ("__call__", "__dict__", "__weakref__")

    __call__: Callable[..., Any]
    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Any]

    def __init__(
        self,
        f: Callable[..., Any],
        static_argnums: int | Iterable[int],
        static_argnames: str | Iterable[str],
        backend: str,
        device: object,
        threads: int | None,
        cache: bool,
    ) -> None:
        if not callable(f):
            raise ArgumentError(f"compile(f): f must be a function, got {type(f).__name__}.")
        if backend not in BACKENDS:
            cure = " For a GPU: backend='torch' or 'jax', device='cuda'." if backend in ("cuda", "gpu") else ""
            raise ArgumentError(f"compile: backend must be one of {', '.join(BACKENDS)}, got {backend!r}.{cure}")
        self.static, self.static_names = _find_static(f, static_argnums, static_argnames)
        if threads is not None:
            check_thread_count("compile: threads", threads)
        if device is not None and backend not in LIBRARIES:
            raise ArgumentError(
                f"compile: device={device!r} is for the backends {', '.join(LIBRARIES)}, not for backend={backend!r}."
            )
        library = load_library(backend, device) if backend in LIBRARIES else None
        self.backend, self.settings = backend, Settings(backend, library, threads, cache)
        self.programs: dict[Any, CompiledProgram] = {}
        self.__call__ = self._run
        self.__name__ = self.__qualname__ = type(f).__name__
        update_wrapper(self, f)

    def __dir__(self) -> list[str]:
        return ["backend", "lower", "profile", "programs"]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def _run(self, *args: object, **kwargs: object) -> Any:
        if hooks.blocks and (observer := hooks.find("run_call")) is not None:
            return observer.run_call("compiled", Compiled._run, self, *args, **kwargs)
        call = self.find_program(args, kwargs)
        if call is None:  # a transform follows an argument: it sees the function itself
            return self.__wrapped__(*args, **kwargs)
        program, values, kinds = call
        return program(values, kinds)

    def lower(self, *args: object, **kwargs: object) -> CompiledProgram:
        """Return the program for these arguments without running it.

        >>> import numpy as np, pullback as pb
        >>> print(pb.compile(lambda x: x * 2.0 * 1.0).lower(np.ones(3)))
        %0 = input 0 : float64[3]
        %1 = constant 2.0 : float64[]
        %2 = mul(%0, %1) : float64[3]   # ...
        return %2
        <BLANKLINE>
        in 1 step, 0 bytes of temporaries:
          kernel [3]: mul
        """
        call = self.find_program(args, kwargs)
        if call is None:
            raise CompileError("lower: a transform traces an argument, so there is no program. Pass plain arrays.")
        return call[0]

    def profile(self, *args: object, rounds: int = 20, **kwargs: object) -> Profile:
        """Run the program for these arguments step by step, and return what each step moves and how long it takes.

        rounds: how many runs are timed; the times are medians.

        Calling a single step takes about a microsecond, which is part of its time; variables are not assigned.

        >>> import numpy as np, pullback as pb
        >>> profile = pb.compile(lambda x: np.sum(np.exp(x))).profile(np.ones(1000))
        >>> [(step.ops, step.bytes_read, step.bytes_written) for step in profile.steps]
        [(('exp', 'sum'), 8000, 8)]
        """
        if rounds < 1:
            raise ArgumentError(f"profile: rounds must be 1 or more, got {rounds!r}.")
        call = self.find_program(args, kwargs)
        if call is None:
            raise CompileError("profile: a transform traces an argument, so there is no program. Pass plain arrays.")
        program, values, _ = call
        if not isinstance(program.run, Executable) or program.target is None:
            raise CompileError(f"profile: {self.__name__} is not machine code here, so it has no steps to time.")
        inputs = program.list_inputs(values)
        return profile_graph(program.traced, program.target, program.options, inputs, self.__wrapped__, rounds)

    def find_program(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[CompiledProgram, list[Any], list[int]] | None:
        """Return the program for these arguments, their leaves and kinds; None if a transform traces one of them."""
        if is_watched():  # a transform must see what it reads, assigns or draws
            return None
        leaves = ArgumentLeaves(self.settings.library)

        def take_leaves(x: Any, is_static: bool) -> Any:
            return x if is_static else tree.map_leaves(leaves.take, x, whole=tree.is_number_list)

        try:
            positional = [take_leaves(x, i in self.static or i - len(args) in self.static) for i, x in enumerate(args)]
            named = {k: take_leaves(x, k in self.static_names) for k, x in kwargs.items()}
            keys = *self._make_keys(enumerate(positional, 1)), *self._make_keys(named.items())
            key = (*keys, get_environment(), tuple(leaves.leaves))
            program = self.programs.get(key)
            while program is not None and not (program.is_current() and program.fits(leaves.layouts)):
                other = program.list_trainable_flags() if not program.is_current() else tuple(leaves.layouts)
                key = (*key[:-1], other, key[-1])
                program = self.programs.get(key)
            if program is None:
                program = self._compile(key, positional, named, leaves)
        except TransformedArgument:
            return None
        return program, leaves.values, leaves.kinds

    def _make_keys(self, arguments: Iterable[tuple[Any, Any]]) -> list[Any]:
        """Return the parts of a program's key for arguments that are no arrays: their names and fingerprints."""
        keys = []
        for name, x in arguments:
            try:
                keys.append((name, fingerprint(x, None)))
            except TypeError as error:
                raise ArgumentError(
                    f"{self.__name__}: argument {name} has no arrays in it and is not hashable ({error}), so compile "
                    "cannot find the program that belongs to it. Give its class a __hash__, or make it a dataclass."
                ) from None
        return keys

    def _compile(
        self, key: Any, positional: list[Any], named: dict[str, Any], leaves: ArgumentLeaves
    ) -> CompiledProgram:
        try:
            with pause_garbage_collection():
                program = self.programs[key] = CompiledProgram(
                    self.__wrapped__, positional, named, leaves.leaves, leaves.layouts, self.settings
                )
        except Exception as error:
            reveal(error)
            raise
        traced_in = get_environment()
        takes_usual = program.fits([None] * len(leaves.layouts))  # an entry takes arrays in C order
        if takes_usual and not named and traced_in == process_environment():
            # Each entry passes other arguments on to that of the program before; chains of these are kept short.
            before = self.__call__ if len(self.programs) % MANY_TRACES else self._run
            self.__call__ = (
                program.make_entry(positional, leaves.leaves, before, self._run, word_of(traced_in)) or self.__call__
            )
        if len(self.programs) == MANY_TRACES + 1:
            warn(f"{self.__name__} was compiled {MANY_TRACES + 1} times, for {self._describe_change()}.", stacklevel=4)
        return program

    def __repr__(self) -> str:
        n = len(self.programs)
        return f"<compiled {self.__name__}, {n} program{'s' * (n != 1)}>"

    def _repr_html_(self) -> str:
        rows = [
            (
                ", ".join(map(str, key[-1])),
                f"{sum(program.stats.values()):.0f}",
                len(program.kernels),
                program.temporaries,
            )
            for key, program in self.programs.items()
        ]
        programs = render_table(["arguments", "compiled in, ms", "steps", "temporaries, bytes"], rows, right=[1, 2, 3])
        return render_frame(
            f"compiled {self.__name__}", [f"backend {self.backend}"], programs if rows else Markup("not called yet")
        )

    def _describe_change(self) -> str:
        """Return which argument changed from call to call."""
        seen = [key[-1] for key in self.programs]
        for i, column in enumerate(zip(*seen, strict=False)):
            if len({*column}) > 1:
                return f"argument {i + 1} was {', '.join(dict.fromkeys(map(str, column)))}"
        return "the structure of its arguments, or a static one, changes"


def _find_static(
    f: Callable[..., Any], numbers: int | Iterable[int], names: str | Iterable[str]
) -> tuple[set[int], set[str]]:
    """Return the places and the names of static arguments."""
    places = _list_places(numbers)
    words = {names} if isinstance(names, str) else {*names}
    try:
        parameters = list(signature(f).parameters.values()) if places or words else []
    except (TypeError, ValueError):  # a function without a signature
        return places, words
    _check_names(words, parameters)
    ordered = [p.name for p in parameters if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    starred = any(p.kind is Parameter.VAR_POSITIONAL for p in parameters)
    if not starred:
        _check_places(places, len(ordered))
    lowest = 0 if starred else -len(ordered)
    named = words | {ordered[i] for i in places if lowest <= i < len(ordered)}
    return places | {i for i, name in enumerate(ordered) if name in named}, named


def _list_places(numbers: int | Iterable[int]) -> set[int]:
    """Return ``static_argnums``, one integer or several, as a set."""
    places = {numbers} if isinstance(numbers, int) else {*numbers}
    if not all(isinstance(n, int) for n in places):
        raise ArgumentError(
            f"compile: static_argnums must be an integer or a tuple of them, got {numbers!r}. "
            "Names are given in static_argnames."
        )
    return places


def _check_places(places: set[int], count: int) -> None:
    """Raise ArgumentError if the function takes fewer arguments by position."""
    beyond = [i for i in places if not -count <= i < count]
    if beyond:
        taken = f"takes {count} argument{'s' * (count != 1)} by position"
        raise ArgumentError(f"compile: static_argnums has {beyond[0]}, but the function {taken}.")


def _check_names(names: set[str], parameters: list[Parameter]) -> None:
    """Raise ArgumentError if the name of a static argument is no parameter of the function."""
    unknown = names - {p.name for p in parameters}
    if unknown and not any(p.kind is Parameter.VAR_KEYWORD for p in parameters):
        raise ArgumentError(f"compile: static_argnames has {min(unknown)!r}, which is no argument of the function.")


def compile(
    f: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
    backend: str = "auto",
    device: object = None,
    threads: int | None = None,
    cache: bool = True,
) -> Any:
    """Return ``f`` compiled to machine code; it is traced once for each signature of shapes and dtypes.

    f: a function of arrays, tensors, numbers and trees of them; without it, a decorator is returned.
    static_argnums: positions of static arguments: Python values, for each of which a program of its own is compiled.
    static_argnames: the same, by name.
    backend: ``"auto"``, machine code where llvmlite is installed; ``"llvm"``, an error where it is not; ``"numpy"``;
        ``"jax"``, ``"torch"`` or ``"cupy"``, which run the program with their arrays.
    device: a device of such a library (``"cpu"``, ``"gpu"``, ``"cuda:0"``); results then stay there.
    threads: the largest number of threads of this program.
    cache: whether machine code is kept on disk.

    >>> import numpy as np, pullback as pb
    >>> step = pb.compile(pb.value_and_grad(lambda x: pb.sum(np.sin(x) * x)))
    >>> step(np.array([0.0, 1.0])).grad
    array([0.        , 1.38177329])
    """
    if f is None:
        return lambda f: Compiled(f, static_argnums, static_argnames, backend, device, threads, cache)
    return Compiled(f, static_argnums, static_argnames, backend, device, threads, cache)
