"""Write the tables of docs/coming-from.md from the names.  With ``--check``, only say whether they are up to date."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from pullback.names.table import ALIASES, FUNCTIONS, INSTANCES, KEYWORDS, METHODS, UNNEEDED_KEYWORDS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "coming-from.md"
MODULES = {  # where names of other modules than the main one are, in each library
    "PyTorch": {"layers": "torch.nn", "losses": "torch.nn", "train": "torch.optim"},
    "JAX": {"random": "jax.random"},
    "TensorFlow and Keras": {"random": "tf.random", "train": "tf.train", "data": "tf.data.Dataset"},
}
SPELT = {  # names that belong to a module or a class there
    "torch.requires_grad": "x.requires_grad",
    "torch.backward": "y.backward()",
    "torch.Function": "torch.autograd.Function",
    "torch.gradcheck": "torch.autograd.gradcheck",
    "torch.gradgradcheck": "torch.autograd.gradgradcheck",
    "torch.Parameter": "torch.nn.Parameter",
    "torch.Module": "torch.nn.Module",
    "torch.nn.mse_loss": "torch.nn.functional.mse_loss",
    "torch.nn.cross_entropy": "torch.nn.functional.cross_entropy",
    "torch.optim.zero_grad": "optimizer.zero_grad()",
    "torch.DataLoader": "torch.utils.data.DataLoader",
    "jax.associative_scan": "jax.lax.associative_scan",
}
PREFIX = {"TensorFlow.js": "tf.", "TensorFlow and Keras": "tf.", "PyTorch": "torch.", "JAX": "jax.", "autograd": ""}
OURS = "pb|np|x|model|optimizer|tape|dataset"
CODE = re.compile(rf"(?<![\w'`.])((?:{OURS})\.[\w.]*\w(?:\([^()]*\))*(?:\[[^]]*\])?)")


def spell_name(library: str, name: str) -> str:
    """Return a name as it is written in its library."""
    module, _, rest = name.rpartition(".")
    spelt = f"{MODULES[library][module]}.{rest}" if module else PREFIX[library] + name
    return SPELT.get(spelt, spelt)


def mark_code(text: str) -> str:
    """Return the names in an answer as code."""
    return CODE.sub(r"`\1`", text).replace("|", "\\|")


def make_table(head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    """Return names and what they are here; those that are the same share a row."""
    same: dict[str, list[str]] = {}
    for name, here in rows:
        same.setdefault(here, []).append(f"`{name}`")
    lines = [f"| {', '.join(names)} | {here} |" for here, names in same.items()]
    return "\n".join([f"| {head[0]} | {head[1]} |", "|---|---|", *lines])


def make_tables() -> dict[str, str]:
    """Return the tables of the page by the names of their markers."""
    head = "there", "here"
    tables = {
        library: make_table(head, ((spell_name(library, n), mark_code(a)) for n, a in names.items()))
        for library, names in FUNCTIONS.items()
    }
    methods = [
        make_table((f"`{kind}`", "here"), ((f"{INSTANCES[kind]}.{n}", mark_code(a)) for n, a in names.items()))
        for kind, names in METHODS.items()
    ]
    keywords = [(f"{n}=", ", ".join(f"`{a}=`" for a in here)) for n, here in KEYWORDS.items()]
    keywords += [(f"{n}=", mark_code(a)) for n, a in UNNEEDED_KEYWORDS.items()]
    aliases = make_table(head, ((name, f"`pb.{here}`") for name, here in ALIASES.items()))
    return {**tables, "methods": "\n\n".join(methods), "keywords": make_table(head, keywords), "aliases": aliases}


def write_page() -> str:
    """Return docs/coming-from.md with the tables between its markers."""
    text = PAGE.read_text("utf-8")
    for name, made in make_tables().items():
        begin, end = f"<!-- {name}: written by script/names_table.py -->\n", "<!-- end -->"
        before, rest = text.split(begin, 1)
        text = f"{before}{begin}\n{made}\n\n{end}{rest.split(end, 1)[1]}"
    return text


if __name__ == "__main__":
    text = write_page()
    if "--check" not in sys.argv:
        PAGE.write_text(text, "utf-8")
    elif PAGE.read_text("utf-8") != text:
        sys.exit("docs/coming-from.md is not what the table of names says: run python script/names_table.py")
