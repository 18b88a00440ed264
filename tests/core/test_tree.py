"""Trees of dicts, lists, tuples and dataclasses: leaves, mapping, and gradients of the same structure."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import pullback as pb
from pullback.core.tree import is_number_list, is_tensor_data, leaves, map_leaves, replace_leaves


class Point(NamedTuple):
    x: Any
    y: Any


@dataclass
class Layer:
    w: Any
    b: Any
    name: str = "layer"


@dataclass(frozen=True)
class Frozen:
    w: Any
    seen: int = field(default=0, init=False)


Pair = namedtuple("Pair", "a b")

TREES = [
    1.0,
    [1.0, {"a": 2.0}],
    (1.0, (2.0, 3.0)),
    {"b": 1.0, "a": [2.0, {"c": 3.0}]},
    Point(1.0, {"k": 2.0}),
    Pair([1.0], 2.0),
    OrderedDict(z=1.0, a=2.0),
    {},
    [],
    (),
    {1: 1.0, (2, 3): 2.0},
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_map_leaves_keeps_structure(tree: Any) -> None:
    made = map_leaves(lambda x: x, tree)
    assert made == tree
    assert type(made) is type(tree)
    assert replace_leaves(tree, leaves(tree)) == tree
    assert leaves(map_leaves(lambda x: x * 2, tree)) == [2 * x for x in leaves(tree)]


def test_order_of_tree_leaves() -> None:
    assert leaves({"b": 1, "a": [2, (3, None)], "c": Point(4, 5)}) == [1, 2, 3, 4, 5]
    assert leaves(Layer(1.0, [2.0], name="n")) == [1.0, 2.0, "n"]


def test_none_is_not_a_leaf() -> None:
    assert leaves([None, 1, {"a": None}]) == [1]
    assert map_leaves(lambda x: x + 1, [None, 1, {"a": None}]) == [None, 2, {"a": None}]


def test_map_leaves_keeps_dict_type() -> None:
    made = map_leaves(lambda x: x + 1, defaultdict(list, a=1))
    assert type(made) is defaultdict
    assert made == {"a": 2}
    assert made["new"] == []
    assert list(map_leaves(lambda x: x, OrderedDict(z=1, a=2))) == ["z", "a"]


def test_map_leaves_of_dataclasses() -> None:
    made = map_leaves(lambda x: x if isinstance(x, str) else x * 2, Layer(1.0, [2.0]))
    assert made == Layer(2.0, [4.0])
    assert map_leaves(lambda x: x * 2, Frozen(3.0)) == Frozen(6.0)


def test_map_leaves_of_several_trees() -> None:
    assert map_leaves(lambda a, b: a + b, {"x": 1, "y": [2]}, {"x": 10, "y": [20]}) == {"x": 11, "y": [22]}
    for other in ({"x": 1}, 3, {"x": 1, "y": 2}):
        with pytest.raises(ValueError, match="trees differ"):
            map_leaves(lambda a, b: a, {"x": 1, "y": [2]}, other)


def test_map_leaves_does_not_change_input() -> None:
    tree = {"a": [1.0, 2.0]}
    map_leaves(lambda x: -x, tree)
    assert tree == {"a": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("data", "want"),
    [
        ([[1, 2], [3, 4]], True),
        ([], True),
        ([1.0, None, True], True),
        (3, True),
        ([{"w": 1.0}], False),
        ([1.0, np.ones(2)], False),
        ((1.0, 2.0), False),
        ([1.0, "a"], False),
        ([pb.tensor(1.0)], False),
    ],
)
def test_is_tensor_data(data: Any, want: bool) -> None:
    assert is_tensor_data(data) is want


X = np.array([1.0, 2.0])


@pytest.mark.parametrize(
    ("f", "tree", "want"),
    [
        (lambda t: np.sum(t["a"] * t["b"]), {"a": X, "b": X + 1}, {"a": X + 1, "b": X}),
        (lambda t: np.sum(t[0] * t[1][0]), [X, [X + 1]], [X + 1, [X]]),
        (lambda t: np.sum(t.x * t.y["k"]), Point(X, {"k": X + 1}), Point(X + 1, {"k": X})),
        (lambda t: t[0] * t[1], (2.0, 3.0), (3.0, 2.0)),
        (lambda t: np.sum(t["a"] * t["a"]), {"a": [[1.0, 2.0], [3.0, 4.0]]}, {"a": np.array([[2, 4], [6, 8]])}),
        (lambda t: np.sum(t[0]) * t[1][0], ([1.0, 2.0], [3.0, {}]), (np.array([3.0, 3.0]), [3.0, {}])),
        (
            lambda t: np.sum(t["a"]) * 2.0,
            {"a": X, "none": None, "empty": []},
            {"a": 2 * X / X, "none": None, "empty": []},
        ),
    ],
)
def test_grad_keeps_tree_structure(f: Any, tree: Any, want: Any) -> None:
    got = pb.grad(f)(tree)
    assert type(got) is type(tree)
    assert map_leaves(lambda _: 0, got, whole=is_number_list) == map_leaves(lambda _: 0, want)
    map_leaves(np.testing.assert_allclose, want, got)


def test_grad_keeps_type_of_each_leaf() -> None:
    got = pb.grad(lambda t: np.sum(t["a"] * t["b"] * t["c"]))({"a": X, "b": 2.0, "c": pb.tensor(X)})
    assert type(got["a"]) is np.ndarray
    assert isinstance(got["c"], pb.Tensor)
    assert isinstance(got["b"], float | np.floating)


def test_grad_of_dataclass() -> None:
    @dataclass
    class Model:
        w: Any
        b: Any

    got = pb.grad(lambda m: np.sum(m.w * 3.0) + m.b * m.b)(Model(X, 4.0))
    assert type(got) is Model
    np.testing.assert_allclose(got.w, [3, 3])
    assert got.b == 8.0


class Stack(list):  # type: ignore[type-arg]
    """A list of a class of its own."""


class Lower(Mapping[str, Any]):
    """A mapping whose keys are not those that it is made of."""

    def __init__(self, items: dict[str, Any]) -> None:
        self.items_ = {f"{k}_": v for k, v in items.items()}

    def __getitem__(self, key: str) -> Any:
        return self.items_[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.items_)

    def __len__(self) -> int:
        return len(self.items_)


def test_grad_of_list_of_own_class() -> None:
    found = pb.grad(lambda s: np.sum(s[0] * s[1]))(Stack([np.ones(2), np.full(2, 3.0)]))
    assert type(found) is Stack
    np.testing.assert_array_equal(found[0], [3.0, 3.0])


def test_tree_of_mapping_that_changes_its_keys_raises() -> None:
    with pytest.raises(pb.errors.PullbackError, match="it has other keys then"):
        pb.grad(lambda m: m["a_"] * 2.0)(Lower({"a": 1.0}))
