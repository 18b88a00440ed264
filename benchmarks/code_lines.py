"""How many lines of code a function has, with everything of its file that it uses."""

from __future__ import annotations

import ast
from pathlib import Path


def count_lines(file: Path, name: str) -> int:
    """Return the lines of a function and of what it uses of its file, without blank lines, comments and docstrings."""
    text = file.read_text("utf-8")
    made = {name: node for node in ast.parse(text).body for name in list_names(node)}
    wanted, found = [name], set[str]()
    while wanted:
        found.add(name := wanted.pop())
        used = {node.id for node in ast.walk(made[name]) if isinstance(node, ast.Name)}
        wanted += (used & made.keys()) - found
    numbers = {number for name in found for number in list_lines(made[name])}
    lines = [text.splitlines()[number - 1].strip() for number in numbers]
    return sum(bool(line) and not line.startswith("#") for line in lines)


def list_names(node: ast.stmt) -> list[str]:
    """Return what a statement of a file defines, without imports."""
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []


def list_lines(node: ast.AST) -> set[int]:
    """Return the numbers of the lines of a definition, without those of docstrings."""
    numbers = get_range(node)
    for part in ast.walk(node):
        if isinstance(part, ast.FunctionDef | ast.ClassDef):
            numbers |= {number for mark in part.decorator_list for number in get_range(mark)}
            if ast.get_docstring(part) is not None:
                numbers -= get_range(part.body[0])
    return numbers


def get_range(node: ast.AST) -> set[int]:
    return {*range(node.lineno, node.end_lineno + 1)}
