"""Build the playground into a folder: the page, Python and NumPy for browsers from npm, and this library's wheel."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from inspect import cleandoc
from pathlib import Path

from pullback.command.tour import EXAMPLES

HERE = Path(__file__).resolve().parent
PAGE = ("index.html", "style.css", "main.js", "worker.js", "bootstrap.py")
PYODIDE = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
FURTHER = {
    "f, f′ and f″": "plot(lambda x: np.sin(x) * np.exp(-x / 5), 0, 12, derivatives=2)",
    "The program as a graph": """
        def loss(w, x):
            return np.sum(np.tanh(x @ w) ** 2) + 0.1 * np.sum(w**2)

        graph(loss, np.ones((3, 2)), np.ones((4, 3)))
    """,
    "Where a NaN came from": """
        def loss(x):
            y = np.exp(x)
            return np.sum(np.log(1.0 + y) / y)

        report(loss, np.array([0.0, 1000.0]))
    """,
    "A tensor": "pb.tensor(np.random.default_rng(0).normal(size=(6, 40)))",
}


def build(folder: Path) -> None:
    """Write the playground into a folder, which is made anew."""
    subprocess.run(["npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--silent"], cwd=HERE, check=True)
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "pyodide").mkdir(parents=True)
    for name in PAGE:
        shutil.copy(HERE / name, folder)
    for name in PYODIDE:
        shutil.copy(HERE / "node_modules" / "pyodide" / name, folder / "pyodide")
    (numpy,) = (HERE / "node_modules" / "@emscripten-forge" / "numpy" / "pkg").glob("*.tar.gz")
    shutil.copy(numpy, folder / "numpy.tar.gz")
    wheel = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(HERE.parent)]
    subprocess.run(wheel, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (made,) = folder.glob("pullback-*.whl")
    made.rename(folder / "pullback.whl")
    code = {title: cleandoc(text) + "\n" for title, text in (EXAMPLES | FURTHER).items()}
    (folder / "examples.js").write_text(f"export const examples = {json.dumps(code, indent=1)};\n", "utf-8")


def serve(folder: Path, port: int) -> None:
    """Serve the folder on this machine alone."""
    server = ThreadingHTTPServer(("127.0.0.1", port), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    print(f"http://127.0.0.1:{server.server_port}/")
    server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE.parent / "site" / "playground", help="the folder to build")
    parser.add_argument("--build-only", action="store_true", help="build, but do not serve")
    parser.add_argument("--port", type=int, default=8001)
    options = parser.parse_args()
    build(options.out)
    if not options.build_only:
        serve(options.out, options.port)


if __name__ == "__main__":
    main()
