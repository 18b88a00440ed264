"""Pages of the documentation site that are made from what is elsewhere: docstrings, examples, README, changelog.

A hook of MkDocs (see mkdocs.yml): ``on_config`` writes the reference into the navigation, ``on_files`` adds the pages.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import linecache
import re
import tempfile
import textwrap
from collections.abc import Iterator
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

BEFORE_EXAMPLES = "The examples need `import numpy as np` and `import pullback as pb`."
OF_EVERY_LAYER = " What every layer takes (`name`, `trainable`, `input_shape`, …) is described [here](../layers.md)."
WITH_METHODS = {  # classes whose methods are described too
    "pb.GradientTape", "pb.Model", "pb.RowSparse", "pb.Tensor", "pb.Variable", "pb.callbacks.Callback",
    "pb.data.Dataset", "pb.metrics.Metric", "pb.scale.Pool", "pb.scale.Shards", "pb.train.Optimizer",
}  # fmt: skip
NOT_FOR_USERS = {  # methods that other packages of the library call
    "add_up", "call_each", "begin_training", "collect", "differentiate", "is_symbolic", "send_model", "wants_rows",
}  # fmt: skip
TITLES = {  # of examples whose names are not words
    "cartpole": "Cart-pole",
    "char_rnn": "Letters by a recurrent network",
    "log1pexp": "A numerically stable gradient",
    "scipy_minimize": "SciPy's minimize",
}
CELLS = [  # of a notebook, whose results are shown on the page of pictures
    "x = pb.tensor(np.sin(np.linspace(0.0, 20.0, 640)).reshape(10, 64))\nx",
    "f = pb.compile(pb.grad(lambda w: np.sum(np.tanh(w) ** 2)))\nslope = f(np.ones(100))\nf",
    """
hidden = pb.layers.dense(16, activation="tanh", input_shape=[2])
model = pb.sequential([hidden, pb.layers.dense(2)])
model.compile(pb.train.adam(0.03), "sparse_softmax_cross_entropy", metrics=["accuracy"])
model
""",
    """
points = np.random.default_rng(0).normal(size=(500, 2))
labels = (points[:, 0] * points[:, 1] > 0).astype(int)
model.fit(points, labels, epochs=30, validation_split=0.2, verbose=0)
""",
    """
def entropy(p):
    return -np.sum(p * np.log(p))

pb.diagnose(entropy)(np.array([0.5, 0.5, 0.0]))
""",
]
SIGNATURE_WIDTH = 88  # columns of code that fit a page
ROOT = Path(__file__).resolve().parent.parent
REPOSITORY_ONLY = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#)[^)]*\)")  # links to files that the site does not have
ARGUMENTS = re.compile(r"^Args:\n((?: {4}.*\n?)+)", re.MULTILINE)
TRACEBACK = re.compile(r'(<span class="gt">.*?)(?=\n<span class="gp">&gt;|\n</code>)', re.DOTALL)
DOCTEST = re.compile(r"<doctest [^>]*>")
SEARCHED_LAST = {
    "modules.md",
    "how-it-works.md",
    "design-notes.md",
    "measured-decisions.md",
    "changelog.md",
    "benchmarks.md",
    "layers.md",
    "ops.md",
}
SEARCHED_FIRST = {"index.md", "how-to.md", "faq.md", "gradients.md", "custom-gradients.md", "nan.md", "compile.md"}
SUBJECTS = {  # pages of the reference for names of pb itself, by the package that they are from
    "transforms": ("gradients", "Gradients and other transformations"),
    "core": ("tensors", "Tensors and variables"),
    "compiler": ("compiling", "Compiling"),
    "diagnostics": ("checks", "Checks and reports"),
    "ops": ("ops", "Ops"),
    "train": ("models", "Models"),
    "interop": ("interop", "Other libraries"),
}


def on_config(config: Any) -> Any:
    """Put the pages of the reference into the navigation."""

    def replace(entry: Any) -> Any:
        if isinstance(entry, list):
            return [replace(e) for e in entry]
        if isinstance(entry, dict):
            return {k: list_reference() if v == "REFERENCE" else replace(v) for k, v in entry.items()}
        return entry

    config.nav = replace(config.nav)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made here."""
    structure = import_module("mkdocs.structure.files")
    for path, text in make_pages().items():
        files.append(structure.File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Mark sessions as such, so that prompts and results are not copied with the code; rank pages for search.

    Places in examples, which tests run, are written as those of a program are.
    """
    markdown = DOCTEST.sub("model.py", markdown)
    if page.file.src_path in SEARCHED_LAST:
        page.meta["search"] = {"boost": 0.2}
    elif page.file.src_path in SEARCHED_FIRST:
        page.meta["search"] = {"boost": 2}
    if page.file.src_path == "pictures.md":
        markdown = markdown.replace("<!-- notebook -->", "\n".join(cell for cell, _ in run_cells()))
        frame = '<iframe class="report" src="report.html" title="the page of a gradient"></iframe>'
        markdown = markdown.replace("<!-- report -->", f"{frame}\n\n[Open it alone](report.html).")
    return markdown.replace("```python\n>>>", "```pycon\n>>>")


def on_page_content(html: str, **_: Any) -> str:
    """Mark the whole text of an error in a session as a result."""
    return TRACEBACK.sub(r'<span class="go">\1</span>', html)


def make_pages() -> dict[str, str]:
    """Return every page that is made here, by its path in the site."""
    readme = (ROOT / "README.md").read_text("utf-8")
    return {
        "index.md": move_links(readme),
        "changelog.md": unlink((ROOT / "CHANGELOG.md").read_text("utf-8")),
        "benchmarks.md": unlink((ROOT / "benchmarks" / "README.md").read_text("utf-8")).replace("](../docs/", "]("),
        "tour.md": make_tour(),
        "errors.md": make_errors(),
        "gallery.md": make_gallery(),
        "report.html": make_report(),
        **{f"reference/{name}.md": text for name, text in make_reference().items()},
    }


def move_links(text: str) -> str:
    """Return the README as a page of the site: links into docs/ are links beside it."""
    text = text.replace("](docs/", "](").replace("](benchmarks/README.md", "](benchmarks.md")
    text = text.replace("](CHANGELOG.md", "](changelog.md")
    return re.sub(r"\[([^\]]+)\]\((CONTRIBUTING\.md|LICENSE)[^)]*\)", r"\1", text)


def unlink(text: str) -> str:
    """Return text in which links to files of the repository are plain words."""
    return REPOSITORY_ONLY.sub(r"\1", text)


def make_tour() -> str:
    """Return the tour as a page: each example with what it prints."""
    tour = import_module("pullback.command.tour")
    parts = ["# Tour\n\nWhat `pullback tour` shows: worked examples of TensorFlow.js's documentation, run here.\n"]
    for title, text in tour.EXAMPLES.items():
        code = inspect.cleandoc(text) + "\n"
        names: dict[str, Any] = {"np": np, "pb": import_module("pullback")}
        with contextlib.redirect_stdout(io.StringIO()) as printed, np.errstate(all="ignore"):
            exec(compile(code, "<tour>", "exec"), names)
        parts.append(f"## {title}\n\n```python\n{code}```\n\n```text\n{printed.getvalue()}```\n")
    return "\n".join(parts)


@cache
def run_cells() -> list[tuple[str, Any]]:
    """Return each cell of the notebook as code with what it shows, and its result."""
    names: dict[str, Any] = {"np": np, "pb": import_module("pullback")}
    shown = []
    for number, cell in enumerate(CELLS, 1):
        code = ast.parse(cell.strip())
        place = f"cell {number}"
        linecache.cache[place] = (len(cell), None, cell.strip().splitlines(keepends=True), place)
        last = ast.Expression(code.body.pop().value)  # type: ignore[attr-defined]
        exec(compile(code, place, "exec"), names)
        with np.errstate(all="ignore"):
            result = eval(compile(last, place, "eval"), names)
        html = result._repr_html_().replace("\n", "&#10;")  # a blank line would end the block
        shown.append((f"```python\n{cell.strip()}\n```\n\n{html}\n", result))
    return shown


def make_report() -> str:
    """Return the page of a gradient that the notebook's last cell can write."""
    _, report = run_cells()[-1]
    with tempfile.TemporaryDirectory() as folder:
        text: str = report.to_html(Path(folder, "report.html")).read_text("utf-8")
    return text


def make_gallery() -> str:
    """Return the examples as a page, each with what it is about, its picture and its source."""
    parts = ["# Gallery\n\nThe programs of `examples/`, with what they draw; open a box to read the code.\n"]
    pictures = {path.stem: f"images/examples/{path.name}" for path in (ROOT / "docs/images/examples").iterdir()}
    for path in sorted((ROOT / "examples").glob("*.py")):
        text = path.read_text("utf-8")
        about = ast.get_docstring(ast.parse(text)) or ""
        title = TITLES.get(path.stem) or path.stem.replace("_", " ").capitalize()
        parts.append(f'## {title}\n\n{about}\n\n![{title}]({pictures[path.stem]})\n\n??? example "{path.name}"\n\n')
        parts.append(textwrap.indent(f"```python\n{text}```\n", "    "))
    return "\n".join(parts)


def make_errors() -> str:
    """Return a page with an entry for each error class."""
    errors = import_module("pullback.errors")
    parts = [f"# Errors\n\n{format_docstring(errors.__doc__ or '')}\n"]
    for name in errors.__all__:
        cls = getattr(errors, name)
        bases = " and ".join(f"`{base.__name__}`" for base in cls.__bases__)
        parts.append(f"## {name}\n\n*Subclass of {bases}.*\n\n{format_docstring(inspect.getdoc(cls) or '')}\n")
    return "\n".join(parts)


def list_reference() -> list[str]:
    """Return the paths of the pages of the reference, in order."""
    return [f"reference/{name}.md" for name in list_subjects()]


def list_subjects() -> dict[str, tuple[str, dict[str, Any]]]:
    """Return for each page of the reference its title and what is on it, by name."""
    pb = import_module("pullback")
    table = import_module("pullback.names.table")
    pages: dict[str, tuple[str, dict[str, Any]]] = {key: (title, {}) for key, title in SUBJECTS.values()}
    for name in dir(pb):
        thing = getattr(pb, name)
        where = (getattr(inspect.unwrap(thing), "__module__", None) or "").split(".")
        if where[0] == "pullback" and len(where) > 1 and not inspect.ismodule(thing):
            key, _ = SUBJECTS.get(where[1], SUBJECTS["core"])
            pages[key][1][f"pb.{name}"] = thing
    for name, path in table.MODULES.items():
        if name not in ("pb", "pb.errors", "pb.typing"):
            module = import_module(path)
            found = {f"{name}.{n}": getattr(module, n) for n in dir(module)}
            own = {n: thing for n, thing in found.items() if callable(thing) and not inspect.ismodule(thing)}
            pages[name.removeprefix("pb.").replace(".", "-")] = (f"`{name}`", own)
    for name in ("plot", "scale"):
        module = import_module(f"pullback.{name}")
        pages[name] = f"`pb.{name}`", {f"pb.{name}.{n}": getattr(module, n) for n in module.__all__}
    return {key: page for key, page in pages.items() if page[1]}


def make_reference() -> dict[str, str]:
    """Return the pages of the reference by name."""
    return {
        key: "\n".join(
            [
                f"# {title}\n\n{BEFORE_EXAMPLES}{OF_EVERY_LAYER * (key == 'layers')}\n",
                *(format_entry(*entry) for entry in join_aliases(entries)),
            ]
        )
        for key, (title, entries) in list_subjects().items()
    }


def join_aliases(entries: dict[str, Any]) -> list[tuple[list[str], Any]]:
    """Return each thing with its names, in the order of the first; names without capitals come first."""
    things = {id(thing): thing for thing in entries.values()}
    names: dict[int, list[str]] = {}
    for name in sorted(entries, key=lambda name: (name != name.lower(), name.lower())):
        names.setdefault(id(entries[name]), []).append(name)
    return sorted(((its, things[key]) for key, its in names.items()), key=lambda entry: entry[0][0].lower())


def format_entry(names: list[str], thing: Any) -> str:
    """Return the entry of a function or class: its signature, its other names and its docstring."""
    name, *others = names
    try:
        signature = str(inspect.signature(thing))
    except (TypeError, ValueError):
        signature = ""
    signature = re.sub(r"<([\w.]+) object at 0x[0-9a-f]+>", r"\1", signature)
    signature = re.sub(r"ForwardRef\('([^']+)'\)", r"\1", signature)
    signature = re.sub(r"(: |-> )'([^']+)'", r"\1\2", signature)  # annotations are text
    if inspect.isclass(thing) and issubclass(thing, Enum):
        signature = ""  # its members are chosen, it is not called
    elif inspect.isclass(thing):
        signature = signature.removesuffix(" -> None")
    text = format_docstring(inspect.getdoc(thing) or "")
    if name in WITH_METHODS:
        text += "\n" + "\n".join(format_method(name, *method) for method in list_methods(thing).items())
    also = f"Also {', '.join(f'`{other}`' for other in others)}.\n\n" if others else ""
    return f"## {name}\n\n```python\n{format_call(name, signature)}\n```\n\n{also}{text}\n"


def list_methods(cls: type) -> dict[str, Any]:
    """Return the public methods and properties that a class or its bases define, by name; not the ops among them."""
    hidden = NOT_FOR_USERS | {name for part in cls.__mro__ for name in vars(part).get("_internal", ())}
    homes = {part.__module__ for part in cls.__mro__ if part.__module__.startswith("pullback.")}
    found = {name: inspect.getattr_static(cls, name) for name in dir(cls) if name[0] != "_" and name not in hidden}
    above = import_module("pullback").Tensor  # whose methods are not described again for variables
    return {
        name: value
        for name, value in found.items()
        if getattr(get_function(value), "__module__", "") in homes
        and (cls is above or inspect.getattr_static(above, name, None) is not value)
    }


def get_function(value: Any) -> Any:
    """Return the function of a method or property; None of anything else."""
    value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
    return value if inspect.isfunction(value) and value.__doc__ else None


def format_method(owner: str, name: str, value: Any) -> str:
    """Return the entry of a method or property of a class."""
    signature = "" if isinstance(value, property) else str(inspect.signature(get_function(value)))
    signature = re.sub(r"(: |-> )'([^']+)'", r"\1\2", signature)
    signature = re.sub(r"^\((self|cls)(, /)?(, )?", "(", signature)
    code = format_call(name, signature)
    text = format_docstring(inspect.getdoc(get_function(value)) or "")
    return f"### {owner.rpartition('.')[2]}.{name}\n\n```python\n{code}\n```\n\n{text}\n"


def format_call(name: str, signature: str) -> str:
    """Return a signature as code: in one line if it fits, else with a line for each parameter.

    >>> format_call("f", "(x, y=(1, 2))")
    'f(x, y=(1, 2))'
    """
    call = f"{name}{signature}"
    if len(call) <= SIGNATURE_WIDTH or not signature.startswith("("):
        return call
    parameters, rest, depth, line = [], "", 1, ""
    for i, letter in enumerate(signature[1:], 1):
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0:
            rest = signature[i:]
            break
        if letter == "," and depth == 1:
            parameters.append(line.strip())
            line = ""
        else:
            line += letter
    return "\n".join([f"{name}(", *(f"    {p}," for p in [*parameters, line.strip()] if p), rest])


def format_docstring(text: str) -> str:
    """Return a docstring as Markdown: lines of arguments as a list, examples as code."""
    text = ARGUMENTS.sub(lambda found: textwrap.dedent(found[1]), inspect.cleandoc(text))
    return "\n".join(_format_lines(text.splitlines()))


def _format_lines(lines: list[str]) -> Iterator[str]:
    inside = False  # an example
    argument = re.compile(r"^(?:- )?(\*{0,2}\w+(?:, \*{0,2}\w+)*): (.*)$")
    listed = False
    for line in lines:
        if not inside and line.startswith(">>>"):
            inside = True
            yield "\n```pycon"
        elif inside and not line.strip():
            inside = False
            yield "```\n"
            continue
        if inside:
            yield line
            continue
        found = argument.match(line)
        if found:
            yield ("" if listed else "\n") + f"- **{found[1]}**: {_mark_code(found[2])}"
        else:
            yield _mark_code(line)
        listed = bool(found) or (listed and line.startswith("    "))
    if inside:
        yield "```"


def _mark_code(line: str) -> str:
    line = re.sub(r":(?:class|func|mod):`([^`]+)`", r"`\1`", line)
    return re.sub(r"``([^`]+)``", r"`\1`", line).replace("<", "&lt;") if "`" not in line else _mark_quoted(line)


def _mark_quoted(line: str) -> str:
    """Return a line with double backquotes as single ones; what is outside them is escaped."""
    parts = re.split(r"(``[^`]+``|`[^`]+`)", line)
    return "".join(f"`{p.strip('`')}`" if p.startswith("`") else p.replace("<", "&lt;") for p in parts)
