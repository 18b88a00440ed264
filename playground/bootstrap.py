"""What the playground runs first: pictures for the page, and the code of the editor, with errors at its lines."""

import ast
import linecache
import sys
import traceback
import warnings

sys.path[:0] = ["/numpy/lib/python3.11/site-packages", "/pullback"]

import numpy as np  # noqa: E402

import pullback as pb  # noqa: E402
from pullback.diagnostics.page import make_page  # noqa: E402
from pullback.display.pictures import draw_curves  # noqa: E402

FILE = "editor"


def describe():
    """Return what is loaded."""
    versions = f"Python {sys.version.split()[0]}, NumPy {np.__version__}, pullback {pb.__version__}."
    return f"{versions} There is no llvmlite here: NumPy runs compiled programs."


def show(thing):
    """Show an object as a notebook would."""
    for method, kind in (("_repr_svg_", "picture"), ("_repr_html_", "table")):
        text = getattr(thing, method, lambda: None)()
        if text is not None:
            send(kind, text)  # noqa: F821  # given by the page
            return
    print(repr(thing))


def plot(f, low, high, derivatives=1):
    """Draw a function of one number and its derivatives."""
    x, curves, primes = np.linspace(low, high, 300), {}, ""
    for _ in range(derivatives + 1):
        with np.errstate(all="ignore"):
            curves[f"f{primes}"] = dict(zip(x.tolist(), np.asarray(pb.vmap(f)(x), float).tolist(), strict=True))
        f, primes = pb.grad(f, unconnected="zero"), primes + "′"
    send("picture", draw_curves(curves, "x ="))  # noqa: F821


def graph(f, *args):
    """Draw the program of a function with the norms of its gradients."""
    show(pb.plot.graph(f, *args))


def report(f, *args):
    """Show where a NaN came from, with the source, the graph, values and gradients."""
    found = pb.diagnose(f)(*args)
    send("page", make_page(found.record, str(found)))  # noqa: F821


def run_code(code):
    """Run the code of the editor; the value of a last expression is shown."""
    linecache.cache[FILE] = len(code), None, code.splitlines(keepends=True), FILE
    names = {"__name__": "__main__", "np": np, "pb": pb, "plot": plot, "graph": graph, "report": report, "show": show}
    try:
        tree = ast.parse(code, FILE)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            exec(compile(tree, FILE, "exec"), names)
            value = None if last is None else eval(compile(ast.Expression(last.value), FILE, "eval"), names)
        if value is not None:
            show(value)
    except BaseException as error:
        sys.stdout.flush()
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
        where = "".join(f"line {frame.lineno}: {frame.line}\n" for frame in own)
        message = "".join(traceback.format_exception_only(error)).replace(f'  File "{FILE}", ', "  ")
        print(f"{where}{message}", end="", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
