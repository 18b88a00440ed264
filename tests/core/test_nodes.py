"""Trees of other classes: mappings, namespaces, attrs, pydantic, registered classes; text in trees."""

from __future__ import annotations

from collections import ChainMap, OrderedDict, UserDict, defaultdict
from collections.abc import Iterator, Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError

X = np.array([1.0, 2.0])


class OwnDict(dict[str, Any]):
    def __init__(self, *, w: Any) -> None:
        super().__init__(w=w)


class Strange(Mapping[str, Any]):
    def __init__(self, one: Any, two: Any) -> None:
        self.items_ = {"w": one, "b": two}

    def __getitem__(self, key: str) -> Any:
        return self.items_[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_)

    def __len__(self) -> int:
        return 2


MAPPINGS = [
    OrderedDict(w=X), defaultdict(list, w=X), OwnDict(w=X), MappingProxyType({"w": X}), UserDict({"w": X}),
    ChainMap({"w": X}),
]  # fmt: skip


def loss(p: Any) -> Any:
    return np.sum(p["w"] ** 2)


@pytest.mark.parametrize("tree", MAPPINGS, ids=lambda tree: type(tree).__name__)
@pytest.mark.parametrize("via", ["grad", "vjp", "jvp", "compile"])
def test_gradients_of_mappings_keep_mapping_type(tree: Any, via: str) -> None:
    if via == "jvp":
        assert pb.jvp(loss, [tree], [tree])[1] == 10.0
        return
    f = {"grad": pb.grad(loss), "vjp": lambda p: pb.vjp(loss, p)[1](1.0)[0], "compile": pb.compile(pb.grad(loss))}[via]
    found: Any = f(tree)
    assert type(found) is type(tree)
    assert np.array_equal(found["w"], 2 * X)
    assert np.array_equal(tree["w"], X)  # nothing is written into the argument
    if isinstance(tree, defaultdict):
        assert found.default_factory is list


def test_tree_of_mapping_without_constructor_raises() -> None:
    with pytest.raises(ArgumentError, match="register_node"):
        pb.grad(loss)(Strange(X, 1.0))


def test_simple_namespace_is_a_tree() -> None:
    found = pb.grad(lambda p: np.sum(p.w**2) * p.b)(SimpleNamespace(w=X, b=3.0))
    assert np.array_equal(found.w, 6 * X)
    assert found.b == 5.0
    with pytest.raises(pb.errors.UnconnectedError, match=r"p\.b"):
        pb.grad(lambda p: np.sum(p.w))(SimpleNamespace(w=X, b=3.0))


def test_strings_and_none_in_trees_are_unchanged() -> None:
    tree = {"w": X, "name": "adam", "raw": b"x", "nothing": None}

    def f(p: Any) -> Any:
        assert (p["name"], p["raw"], p["nothing"]) == ("adam", b"x", None)
        return np.sum(p["w"] ** 2)

    for found in (
        pb.grad(f)(tree),
        pb.value_and_grad(f)(tree).grad,
        pb.vjp(f, tree)[1](1.0)[0],
        pb.compile(pb.grad(f))(tree),
    ):
        assert np.array_equal(found["w"], 2 * X)
        assert (found["name"], found["raw"], found["nothing"]) == ("adam", b"x", None)
    assert pb.jvp(f, [tree], [{**tree, "name": ""}])[1] == 10.0
    assert pb.jacobian(lambda p: p["w"] ** 2)(tree)["w"].shape == (2, 2)
    assert pb.vjp(lambda x: {"y": x, "says": "text"}, X)[0]["says"] == "text"


def test_compiled_programs_depend_on_text_and_aux() -> None:
    f = pb.compile(lambda p: p["w"] * (2.0 if p["how"] == "double" else 3.0))
    assert np.array_equal(f({"w": X, "how": "double"}), 2 * X)
    assert np.array_equal(f({"w": X, "how": "triple"}), 3 * X)
    g = pb.compile(lambda line: line.slope * (2.0 if line.name == "double" else 3.0))
    assert np.array_equal(g(Line(X, "double")), 2 * X)
    assert np.array_equal(g(Line(X, "triple")), 3 * X)


class Line:
    def __init__(self, slope: Any, name: str) -> None:
        self.slope, self.name = slope, name


pb.register_node(Line, lambda x: ([x.slope], x.name), lambda name, children: Line(*children, name))


def test_register_node_makes_class_a_tree() -> None:
    found = pb.grad(lambda p: np.sum(p["line"].slope ** 2))({"line": Line(X, "a")})["line"]
    assert np.array_equal(found.slope, 2 * X)
    assert found.name == "a"
    batched = pb.vmap(lambda line: line.slope * 2)(Line(X, "a"))
    assert np.array_equal(batched, 2 * X)
    assert pb.jvp(lambda line: line.slope[0], [Line(X, "a")], [Line(X, "a")])[1] == 1.0


def test_register_node_argument_errors() -> None:
    with pytest.raises(ArgumentError, match="must be a class"):
        pb.register_node(dict, lambda x: ([], None), lambda aux, children: {})
    with pytest.raises(ArgumentError, match="flatten must be a function"):
        pb.register_node(Strange, None, lambda aux, children: None)

    class Bad:
        pass

    pb.register_node(Bad, lambda x: [1.0], lambda aux, children: Bad())  # type: ignore[arg-type, return-value]
    with pytest.raises(ArgumentError, match="children, aux"):
        pb.grad(lambda x: 1.0)(Bad())


def test_attrs_classes_are_trees() -> None:
    attrs = pytest.importorskip("attrs")

    @attrs.frozen
    class Model:
        w: Any = attrs.field(validator=attrs.validators.instance_of(np.ndarray))
        _b: float = 1.0
        name: str = "model"

    for f in (pb.grad, lambda f: pb.compile(pb.grad(f))):
        found = f(lambda m: np.sum(m.w**2) * m._b)(Model(X, 2.0))
        assert np.array_equal(found.w, 4 * X)
        assert (found._b, found.name) == (5.0, "model")


def test_pydantic_models_are_trees() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Model(pydantic.BaseModel, frozen=True, arbitrary_types_allowed=True):
        w: np.ndarray
        b: float
        name: str = "model"

    for f in (pb.grad, lambda f: pb.compile(pb.grad(f))):
        found = f(lambda m: np.sum(m.w**2) * m.b)(Model(w=X, b=2.0))
        assert np.array_equal(found.w, 4 * X)
        assert (found.b, found.name) == (5.0, "model")
