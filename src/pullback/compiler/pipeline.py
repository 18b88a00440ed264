"""The compiler from beginning to end: simplify, legalize, fuse, schedule, plan memory, emit, link.

Each stage is a function from one record to the next, in a package of its own.  The graph that they begin with is traced
by ``frontend``; the disk cache is around all of them.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from pullback.compiler.ir.graph import Graph
from pullback.compiler.passes.simplify import simplify_nodes, simplify_structures
from pullback.compiler.runtime.cache_key import make_cache_key
from pullback.compiler.runtime.disk_cache import NO_CACHE, Cache, NoCache, get_default_cache
from pullback.compiler.runtime.executable import Executable
from pullback.compiler.runtime.link import Linked, link, load, store
from pullback.compiler.runtime.manifest import Contents
from pullback.compiler.target import Options, Target

if TYPE_CHECKING:
    from pullback.compiler.codegen.module import Module
    from pullback.compiler.schedule.fuse import Fused
    from pullback.compiler.schedule.memory import Memory
    from pullback.compiler.schedule.order import ScheduledStep


class Stages(NamedTuple):
    """A program in every form that it has on its way to machine code; ``print`` shows them one after the other."""

    traced: Graph
    simplified: Graph
    legalized: Graph
    fused: Fused
    scheduled: tuple[ScheduledStep, ...]
    memory: Memory
    module: Module
    contents: Contents
    stats: dict[str, float]  # milliseconds

    def __str__(self) -> str:
        return "\n\n".join(f"# {name}\n{_print(form)}" for name, form in self._asdict().items() if name != "stats")


def _print(form: object) -> str:
    return "\n".join(map(str, form)) if type(form) is tuple else str(form)


def lower(traced: Graph, target: Target, options: Options) -> Stages:
    """Return a traced graph in every form, up to LLVM text."""
    # Imported here: a program that the disk cache has needs none of these, and loads in less time than they do.
    from pullback.compiler.codegen.contents import collect_contents
    from pullback.compiler.codegen.module import emit
    from pullback.compiler.passes.legalize import legalize
    from pullback.compiler.passes.narrow_axes import split_narrow_axes
    from pullback.compiler.passes.roll import roll_bodies, roll_steps
    from pullback.compiler.passes.split_small_arrays import split_small_arrays
    from pullback.compiler.schedule.fuse import fuse
    from pullback.compiler.schedule.memory import plan_memory
    from pullback.compiler.schedule.schedule import schedule

    started = perf_counter()
    simplified = simplify_nodes(traced)
    if options.is_enabled("loop rolling"):  # before the loops in the graph are simplified: less is left to rewrite then
        simplified = simplify_structures(roll_steps(simplified, target, options))
        simplified = split_small_arrays(roll_bodies(simplified, target, options))
    else:
        simplified = simplify_structures(simplified)
    rewritten = perf_counter()
    legalized = legalize(split_narrow_axes(simplified), target, options)
    fused = fuse(legalized)
    scheduled = schedule(fused, legalized.outputs, target, options)
    memory = plan_memory(legalized, scheduled, options.guarded)
    module = emit(scheduled, memory, target, options)
    contents = collect_contents(traced, legalized, memory, module)
    stats = {"rewrite": (rewritten - started) * 1e3, "write": (perf_counter() - rewritten) * 1e3}
    return Stages(traced, simplified, legalized, fused, scheduled, memory, module, contents, stats)


def build(traced: Graph, target: Target, options: Options, cache: Cache | NoCache = NO_CACHE) -> Linked:
    """Return the machine code of a traced graph; ``cache`` may have that of the same LLVM text."""
    stages = lower(traced, target, options)
    linked = link(stages.module.text, stages.module.longest_block, stages.contents, target, cache)
    return linked._replace(stats={**stages.stats, **linked.stats})


def compile_graph(traced: Graph, target: Target, options: Options, use_cache: bool = True) -> Executable:
    """Return the executable of a traced graph: loaded from the disk cache, or built and stored there."""
    linked = _load_or_build(traced, target, options, use_cache)
    complete = partial(_load_or_build, traced, target, options._replace(has_slow_paths=True), use_cache)
    for op, _ in linked.contents.host_ops:
        if hasattr(op, "compile_bodies"):  # a loop that calls host ops
            op.compile_bodies(partial(compile_graph, target=target, options=options, use_cache=use_cache))
    return Executable(linked, traced, options.guarded, complete if linked.contents.manifest.flags_rare else None)


def _load_or_build(traced: Graph, target: Target, options: Options, use_cache: bool) -> Linked:
    cache = get_default_cache() if use_cache else NO_CACHE
    key = make_cache_key(cache, traced, target, options)
    linked = load(cache, key, traced, lambda: lower(traced, target, options).legalized)
    if linked is None:
        linked = build(traced, target, options, cache)
        store(cache, key, linked, traced)
    return linked
