"""Programs as machine code, compared: what compiled.py and larger.py share."""

from __future__ import annotations

import sys

from isa import add_isa_option

if "--threads" not in sys.argv:
    import one_thread  # noqa: F401

# isort: split
import argparse
import inspect
import json
import os
import platform
import signal
import subprocess
import tempfile
import traceback
import warnings
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple

import numpy as np
from libraries import Eager, Jit, Ours, Program, compute_expected
from limits import compute_limit, count_flops
from measure import compute_paired_ratio, geometric_mean, time_interleaved
from recording import record_figures

import pullback as pb

OURS, JAX, TORCH, TORCH_COMPILE = "pullback", "jax", "torch", "torch.compile"
PATIENCE = 400  # seconds for one workload: what takes longer is reported as stuck
QUICK_CALL = 1.1  # µs: a call whose kernel takes next to nothing


class Suite(NamedTuple):
    """The programs of one command, and the bars that they must reach."""

    about: str  # the text of --help
    programs: list[Program]
    peers: tuple[str, ...] = (JAX, TORCH)
    cold: float = 0.4  # of jax.jit's first call
    warm: float = 0.1  # the same with object code on disk


def get_compile() -> Callable[..., Any]:
    found = getattr(pb, "compile", None)
    if found is None:
        from pullback.compiler.api import compile as found
    return found


def bind_compile_options(**options: Any) -> Callable[..., Any]:
    """Return the compiler with these options; refuses those that it does not have."""
    known = inspect.signature(get_compile()).parameters
    missing = [name for name in options if name not in known]
    if missing:
        raise NotImplementedError(f"compile has no {', '.join(missing)}=")
    return lambda f: get_compile()(f, **options)


def make_ours() -> Ours:
    return Ours(get_compile())


# ---- one workload


def find_error(found: Any, expected: list[Any], dtype: Any, tolerance: float) -> str:
    """Return what is wrong with these results, or an empty string."""
    found = list(found)
    if len(found) != len(expected):
        return f"{len(found)} results, not {len(expected)}"
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        a = np.asarray(a.detach() if hasattr(a, "detach") else a.numpy() if isinstance(a, pb.Tensor) else a)
        if a.shape != b.shape or a.dtype != dtype:
            return f"result {i} is {a.dtype}{list(a.shape)}, not {dtype}{list(b.shape)}"
        error = np.abs(a - b).max() / max(np.abs(b).max(), 1e-300) if a.size else 0.0
        if not error <= tolerance:
            return f"result {i} is off by {error:.1e} of its largest element"
    return ""


def count_temporaries(program: Any) -> int:
    """Bytes that a program of ours needs besides arguments, constants and results, between NumPy kernels too."""
    run = program.run
    known = {*getattr(run, "inputs", ()), *getattr(run, "outputs", ()), *getattr(run, "constants", ())}
    return int(program.temporaries) + sum(n.nbytes for i, n in enumerate(getattr(run, "slots", ())) if i not in known)


def list_contestants(given: Any) -> dict[str, Callable[[], Any]]:
    """Return for each library a function that sets it up, so that one that fails is missing only where it fails."""
    found: dict[str, Callable[[], Any]] = {OURS: make_ours, JAX: Jit, TORCH: Eager}
    if given.torch_compile:
        found[TORCH_COMPILE] = lambda: Eager(compiled=True)
    return {name: make for name, make in found.items() if name not in given.without}


def measure_program(p: Program, given: Any) -> dict[str, Any]:
    """Return the times of all libraries with right results, what is wrong with the others, and temporaries."""
    params, data = p.data()
    dtype, tolerance = params[0].dtype, p.tolerance if params[0].dtype == "f4" else 1e-9
    expected = compute_expected(p, params, data)
    calls, failed, libraries = {}, {}, {}
    for name, make in list_contestants(given).items():
        try:
            libraries[name] = make()
            call = libraries[name].call(p, params, data)
            problem = find_error(call(), expected, dtype, tolerance)
        except Exception as error:
            if given.traceback:
                traceback.print_exc()
            failed[name] = f"{type(error).__name__}: {error}".splitlines()[0]
            continue
        if problem:
            failed[name] = f"WRONG: {problem}"
        else:
            calls[name] = call
    found: dict[str, Any] = {"failed": failed, "times": time_interleaved(calls, given.rounds), "bytes": {}}
    if OURS in calls:
        lowered = libraries[OURS].lowered(p, params, data)
        found["bytes"][OURS] = count_temporaries(lowered)
        results = [x.astype(dtype) for x in map(np.asarray, expected)]
        found["limit"] = compute_limit([*params, *data, *results], count_flops(lowered.stages.legalized), dtype)
    if JAX in calls:
        found["bytes"][JAX] = libraries[JAX].temporaries(p, params, data)
    return found


def measure_threads(p: Program, given: Any) -> dict[str, Any]:
    """Return wall times with one thread and with several."""
    params, data = p.data()
    dtype, tolerance = params[0].dtype, p.tolerance if params[0].dtype == "f4" else 1e-9
    libraries = {
        "one": lambda: Ours(bind_compile_options(threads=1)),
        "several": lambda: Ours(bind_compile_options(threads=given.threads)),
        JAX: Jit,
    }
    calls, failed, results = {}, {}, {}
    for name, make in libraries.items():
        try:
            calls[name] = make().call(p, params, data)
            results[name] = calls[name]()
            problem = find_error(results[name], compute_expected(p, params, data), dtype, tolerance)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}".splitlines()[0]
        if problem:
            failed[name] = problem
            calls.pop(name, None)
    if not failed and any(not np.array_equal(a, b) for a, b in zip(results["one"], results["several"], strict=True)):
        failed["several"] = "WRONG: other numbers than with one thread"
    return {"failed": failed, "times": time_interleaved(calls, given.rounds, clock=perf_counter)}


def run_in_process(way: str, p: Program, given: Any, **more: Any) -> dict[str, Any]:
    """Return what ``WAYS[way]`` returns in a new process, whose memory nothing else has touched."""
    child = {"way": way, "key": p.key, "rounds": given.rounds, "without": given.without, "threads": given.threads,
             "traceback": given.traceback, "torch_compile": given.torch_compile, **more}  # fmt: skip
    command = [sys.executable, sys.argv[0], "--child", json.dumps(child)]
    command += ["--threads", str(given.threads)] if given.threads > 1 else []
    shown = None if given.traceback else subprocess.PIPE
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=shown, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return {"failed": {OURS: f"took longer than {PATIENCE} s"}}
    if done.returncode == 0:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    if done.returncode < 0:
        return {"failed": {OURS: f"ended by {signal.Signals(-done.returncode).name}"}}
    return {"failed": {OURS: ((done.stderr or "").strip().splitlines() or ["could not be measured"])[-1]}}


# ---- tables


def format_row(title: str, cells: list[str], note: str = "") -> str:
    return f"{title:<34}" + "".join(f"{cell:>12}" for cell in cells) + (f"   {note}" if note else "")


def format_ratio(x: float | None) -> str:
    return "–" if x is None else f"{x:.2f}" if x < 10 else f"{x:.1f}" if x < 100 else f"{x:.0f}"


def format_kilobytes(x: int | None) -> str:
    return "–" if x is None else f"{x / 1024:.0f}"


def format_failures(failed: dict[str, str]) -> str:
    return "; ".join(f"{name}: {why[:140]}" for name, why in failed.items())


def run_times(chosen: list[Program], given: Any) -> tuple[dict[str, Any], bool]:
    names = [name for name in list_contestants(given) if name not in (OURS, JAX)]
    others = [f"{name} ÷" for name in names]
    head = [f"{JAX} ÷ ours", "bar", "", *others, "ours, µs", "limit, µs", "temp., KB", "XLA's, KB"]
    print(format_row("peer's time ÷ ours; above 1 we win", head))
    found: dict[str, Any] = {}
    good, met, memory = True, 0, 0
    for p in chosen:
        its = run_in_process("times", p, given)
        times, failed, sizes = its.get("times", {}), its["failed"], its.get("bytes", {})
        ours = times.get(OURS)
        ratios = {name: compute_paired_ratio(t, ours) for name, t in times.items() if ours and name != OURS}
        took = median(ours) * 1e6 if ours else None
        verdict = "–" if JAX not in ratios else "pass" if ratios[JAX] >= p.bar else "FAIL"
        if p.key == "call" and took and verdict == "pass" and took > QUICK_CALL:
            verdict = "FAIL"
        if any(why.startswith("WRONG") for why in failed.values()):
            verdict = "WRONG"
        elif OURS in failed:
            verdict = "ERROR"
        good = good and verdict not in ("WRONG", "ERROR")
        met += verdict == "pass"
        less = sizes.get(OURS), sizes.get(JAX)
        memory += None not in less and less[0] <= less[1]
        limit = its["limit"] * 1e6 if "limit" in its else None
        figures = [ratios.get(JAX), p.bar], [*map(ratios.get, names), took, limit]
        cells = [*map(format_ratio, figures[0]), verdict, *map(format_ratio, figures[1]), *map(format_kilobytes, less)]
        print(format_row(p.title, cells, format_failures(failed)), flush=True)
        found[p.key] = {"title": p.title, "ratios": ratios, "bar": p.bar, "verdict": verdict, "us": took,
                        "limit": limit, "bytes": sizes, "failed": failed}  # fmt: skip
    known = [its["ratios"][JAX] for its in found.values() if JAX in its["ratios"]]
    mean = f"; geometric mean of the ratios {format_ratio(geometric_mean(known))}" if known else ""
    print(f"\n{met} of {len(chosen)} reach their bar{mean}; {memory} need no more temporaries than XLA")
    return found, good


def run_threads(chosen: list[Program], given: Any) -> tuple[dict[str, Any], bool]:
    count = given.threads
    print(format_row(f"wall time, {count} threads", [f"one ÷ {count}", "bar", "jax ÷ ours", "bar", "", "ours, µs"]))
    found: dict[str, Any] = {}
    good = True
    for p in chosen:
        its = run_in_process("threads", p, given)
        times, failed = its.get("times", {}), its["failed"]
        ours = times.get("several")
        gain = compute_paired_ratio(times["one"], ours) if ours and "one" in times else None
        lead = compute_paired_ratio(times[JAX], ours) if ours and JAX in times else None
        verdict = "–" if gain is None or lead is None else "pass" if gain >= p.threads and lead >= 1 else "FAIL"
        if any(why.startswith("WRONG") for why in failed.values()):
            verdict, good = "WRONG", False
        cells = [format_ratio(gain), format_ratio(p.threads or None), format_ratio(lead), "1.00", verdict]
        print(
            format_row(p.title, [*cells, format_ratio(median(ours) * 1e6 if ours else None)], format_failures(failed)),
            flush=True,
        )
        found[p.key] = {"gain": gain, "lead": lead, "verdict": verdict, "failed": failed}
    return found, good


# ---- the first call


def time_first_call(p: Program, given: Any) -> dict[str, Any]:
    """CPU time of the first call of one program, in this process, by a library that has compiled another one before."""
    os.environ["PULLBACK_CACHE_DIR"] = given.cache
    params, data = p.data()
    made = Jit() if given.library == JAX else make_ours()
    small = Program("small", "", 0.0, lambda n, x: n.sum(x * x), lambda: ([np.ones(3, "f4")], []))
    made.call(small, *small.data())()
    call = made.call(p, params, data)
    begin = process_time()
    call()
    return {"failed": {}, "seconds": process_time() - begin}


def run_first_calls(chosen: list[Program], given: Any) -> tuple[dict[str, Any], bool]:
    bars = {"cold": given.suite.cold, "warm": given.suite.warm}
    head = [JAX, *(cell for name, bar in bars.items() for cell in (f"ours, {name}", "÷ jax", f"≤ {bar}"))]
    print(format_row("first call, ms of CPU time", head))
    found: dict[str, Any] = {}
    stems: set[str] = set()
    for p in chosen:
        stem = p.key.split("/1e")[0]  # the size of an array changes nothing here
        if stem in stems:
            continue
        stems.add(stem)
        failed: dict[str, str] = {}
        taken: dict[str, list[float]] = {JAX: [], "cold": [], "warm": []}
        with tempfile.TemporaryDirectory() as folder:
            caches = {JAX: folder, "cold": f"{folder}/fill", "warm": f"{folder}/fill"}
            for number in range(-1, given.rounds):  # the first round fills the cache
                for name, cache in caches.items():
                    its = run_in_process("first", p, given, library=JAX if name == JAX else OURS, cache=cache)
                    if its["failed"]:
                        failed[name] = "; ".join(its["failed"].values())
                    elif number >= 0:
                        taken[name].append(its["seconds"])
                caches["cold"] = f"{folder}/{number + 1}"
        times = {name: median(ts) for name, ts in taken.items() if name not in failed}
        cells = [format_ratio(times[JAX] * 1e3) if JAX in times else "–"]
        for name, bar in bars.items():
            ratio = times[name] / times[JAX] if name in times and JAX in times else None
            verdict = "–" if ratio is None else "pass" if ratio <= bar else "FAIL"
            cells += [format_ratio(times[name] * 1e3) if name in times else "–", format_ratio(ratio), verdict]
        print(format_row(p.title.split(", 1e")[0], cells, format_failures(failed)), flush=True)
        found[p.key] = {"title": p.title.split(", 1e")[0], "seconds": times, "failed": failed}
    return found, True


# ---- the command


WAYS = {"times": measure_program, "threads": measure_threads, "first": time_first_call}


def parse_arguments(suite: Suite, argv: list[str] | None) -> Any:
    keys = [p.key for p in suite.programs]
    parser = argparse.ArgumentParser(description=suite.about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, help="rounds per workload (default 15; 3 for first calls)")
    parser.add_argument("--only", metavar="KEYS", help="workloads whose key begins so: " + ",".join(keys))
    parser.add_argument("--without", metavar="NAMES", default="", help=f"leave out peers: {','.join(suite.peers)}")
    parser.add_argument("--torch-compile", action="store_true", help="time torch.compile as well (slow to compile)")
    parser.add_argument("--first-call", action="store_true", help="the time of first calls instead")
    parser.add_argument("--threads", type=int, default=1, help="one thread against so many, in wall time")
    add_isa_option(parser)
    parser.add_argument("--traceback", action="store_true", help="show where a workload failed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    given.suite = suite
    given.without = [*filter(None, given.without.split(",")), *({JAX, TORCH} - {*suite.peers})]
    given.rounds = given.rounds if given.rounds is not None else 3 if given.first_call else 15
    if given.rounds < 1 or given.threads < 1:
        parser.error("--rounds and --threads must be at least 1")
    prefixes = tuple(given.only.split(",")) if given.only else ("",)
    unknown = [prefix for prefix in prefixes if not any(key.startswith(prefix) for key in keys)]
    if unknown:
        parser.error(f"--only: no {', '.join(unknown)} among {', '.join(keys)}")
    given.chosen = [p for p in suite.programs if p.key.startswith(prefixes)]
    return given


def run_child(suite: Suite, text: str) -> None:
    """Measure the program that the parent process names, and print it."""
    wanted = argparse.Namespace(**json.loads(text))
    p = next(p for p in suite.programs if p.key == wanted.key)
    print(json.dumps(WAYS[wanted.way](p, wanted)))


def main(suite: Suite, argv: list[str] | None = None) -> int:
    """Run the command of a suite; return the exit status."""
    given = parse_arguments(suite, argv)
    warnings.simplefilter("ignore")  # the peers'
    if given.child:
        run_child(suite, given.child)
        return 0
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    for name in suite.peers:
        if find_spec(name) is None:
            given.without.append(name)
            print(f"{name} is absent: pip install 'pullback[bench]' brings it")
        elif name not in given.without:
            versions[name] = version(name)
    print(", ".join(f"{name} {its}" for name, its in versions.items()) + f"; {given.rounds} rounds\n")
    way = run_first_calls if given.first_call else run_threads if given.threads > 1 else run_times
    found, good = way(given.chosen, given)
    if given.json:
        record_figures(given.json, versions, given.rounds, found)
    return 0 if good else 1
