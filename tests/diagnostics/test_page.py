"""The page of a gradient, in a real browser."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from browser import DESKTOP, PHONE, run_in_page
from matplotlib import image
from matplotlib.colors import to_rgb

import pullback as pb

CLICK = 'document.querySelectorAll("#graph .node")[%d].dispatchEvent(new MouseEvent("click", {bubbles: true}));'
DETAILS = 'document.getElementById("details").textContent'


def model(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    h = np.tanh(x @ w)
    y = np.log(h - np.max(h))
    return np.sum(y) + np.sum(w**2)


def make_page(folder: Path) -> str:
    report = pb.diagnose(model)(np.ones((2, 3)), np.ones((3, 2)))
    return report.to_html(folder / "report.html").read_text("utf-8")


def test_report_page_marks_first_nan_and_its_path(tmp_path: Path) -> None:
    script = f"""
        const marked = [...document.querySelectorAll("#graph .node.first text")].map(t => t.textContent);
        const edges = document.querySelectorAll("#graph path.bad").length;
        const lines = [...document.querySelectorAll("#source .line.bad .code")].map(e => e.textContent.trim());
        return [marked[0], edges > 0, lines.some(l => l.startsWith("y = np.log")), {DETAILS}];
    """
    label, has_path, has_line, details = run_in_page(make_page(tmp_path), script)
    assert (label, has_path, has_line) == ("log", True, True)
    assert "the NaN or infinity of the result began here" in details


def test_report_page_click_shows_values_rule_cotangent_and_line(tmp_path: Path) -> None:
    report = pb.trace(lambda x: np.sum(np.sin(x)))(np.array([0.0, 1.0]))
    page = report.to_html(tmp_path / "page.html").read_text("utf-8")
    details = run_in_page(page, CLICK % 1 + f"return {DETAILS};")
    for text in ("sin", "0, 0.841471", "dx = g * np.cos(x)", "norm 1.414", "test_page.py"):
        assert text in details


def test_report_page_shows_kernels_of_compiled_gradient(tmp_path: Path) -> None:
    def f(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.sum(np.tanh(x @ w) ** 2)

    args = np.ones((2, 3)), np.ones((3, 2))
    profile = pb.compile(pb.grad(f, argnums=(0, 1))).profile(*args, rounds=1)
    page = pb.trace(f)(*args).to_html(tmp_path / "page.html", profile).read_text("utf-8")
    script = f"""
        const rows = [...document.querySelectorAll("#kernels button")];
        const product = rows.find(b => b.textContent.includes("product"));
        product.click();
        const picked = document.querySelectorAll("#graph .node.picked").length, shown = {DETAILS};
        document.querySelectorAll("#graph .node")[2].dispatchEvent(new MouseEvent("click", {{bubbles: true}}));
        return [rows.length, picked, shown, {DETAILS}, document.getElementById("kernels").textContent];
    """
    count, picked, shown, details, table = run_in_page(page, script)
    assert count == len(profile.steps)
    assert picked > 0
    assert "of the time" in shown
    assert "moved" in shown
    assert "its line is in kernel 1" in details
    assert "backward pass" in table


def test_report_page_keyboard_moves_along_edges(tmp_path: Path) -> None:
    page = pb.trace(lambda x: np.exp(np.sin(x)))(1.0).to_html(tmp_path / "page.html").read_text("utf-8")
    script = f"""
        const nodes = document.querySelectorAll("#graph .node"), key = k => new KeyboardEvent("keydown", {{key: k}});
        nodes[0].focus(); nodes[0].dispatchEvent(key("Enter"));
        const before = {DETAILS};
        nodes[0].dispatchEvent(key("ArrowDown"));
        return [before, {DETAILS}, document.activeElement === nodes[1], nodes[1].getAttribute("aria-label")];
    """
    before, after, moved, label = run_in_page(page, script)
    assert before.startswith("x")
    assert after.startswith("sin")
    assert moved
    assert label == "sin, float64[]"


def test_report_page_shows_gradients_as_colours_and_zooms(tmp_path: Path) -> None:
    script = """
        document.getElementById("gradients").click();
        const legend = document.getElementById("legend").textContent, svg = document.querySelector("#graph svg");
        const before = svg.getBoundingClientRect().width; document.getElementById("in").click();
        return [legend, svg.getBoundingClientRect().width > before];
    """
    page = pb.trace(lambda x: np.sum(x * x))(np.ones(3)).to_html(tmp_path / "page.html").read_text("utf-8")
    legend, grew = run_in_page(page, script)
    assert legend.startswith("blue: |g| from 1 to")
    assert grew


def compute_contrast(pixels: np.ndarray) -> float:
    """Return the contrast of the brightest and the darkest pixel, as WCAG defines it: 1 to 21."""
    linear = np.where(pixels <= 0.04045, pixels / 12.92, ((pixels + 0.055) / 1.055) ** 2.4)
    luminance = linear @ [0.2126, 0.7152, 0.0722] + 0.05
    return luminance.max() / luminance.min()


@pytest.mark.parametrize(("scheme", "back", "mark"), [("light", "#ffffff", "#c800a0"), ("dark", "#14161a", "#ff6ad5")])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_report_page_screenshot_shows_marked_nan(
    tmp_path: Path, size: tuple[int, int], scheme: str, back: str, mark: str
) -> None:
    script = """
        const first = document.querySelector("#graph .node.first");
        first.scrollIntoView({ block: "center" });
        const boxes = [first.querySelector("rect"), first.querySelector("text")].map(e => e.getBoundingClientRect());
        return [document.documentElement.scrollWidth, boxes.map(b => [b.left, b.top, b.right, b.bottom])];
    """
    file = tmp_path / "page.png"
    width, boxes = run_in_page(make_page(tmp_path), script, size=size, scheme=scheme, screenshot=file)
    assert width <= size[0]
    pixels = image.imread(file)[..., :3]
    assert pixels.shape == (size[1], size[0], 3)
    is_back = np.all(np.abs(pixels - to_rgb(back)) < 0.01, axis=-1)
    assert 0.3 < is_back.mean() < 0.95
    node, label = (pixels[round(top) : round(bottom), round(left) : round(right)] for left, top, right, bottom in boxes)
    is_mark = np.all(np.abs(node - to_rgb(mark)) < 0.02, axis=-1)
    for side in (is_mark[:4].any(0), is_mark[-4:].any(0), is_mark[:, :4].any(1), is_mark[:, -4:].any(1)):
        assert side.mean() > 0.8
    assert compute_contrast(label) > 4.5


def test_report_page_is_one_small_file_without_network_requests(tmp_path: Path) -> None:
    def deep(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        for _ in range(125):
            x = np.tanh(x @ w) + x * 0.5
        return np.sum(x)

    page = pb.explain(deep)(np.ones((2, 3)), np.eye(3)).to_html(tmp_path / "deep.html").read_text("utf-8")
    assert page.count('class="node"') > 500
    assert len(page.encode()) < 2_000_000
    assert not re.search(r"(src|href)\s*=|@import|url\(", page)
    assert set(re.findall(r"https?://[^\"\s]+", page)) == {"http://www.w3.org/2000/svg"}


def test_report_page_escapes_names_and_source(tmp_path: Path) -> None:
    v = pb.variable(2.0, name="</script><script>alert(1)</script>{{data}}")
    page = pb.diagnose(lambda x: x * v)(1.0).to_html(tmp_path / "page.html").read_text("utf-8")
    names = run_in_page(page, 'return [...document.querySelectorAll("#graph .node text")].map(t => t.textContent);')
    assert v.name in names


def test_report_after_backward_pass_names_function_to_call() -> None:
    with pytest.raises(pb.errors.NanError) as raised, pb.debug_nans():
        pb.grad(lambda x: pb.sqrt(x))(0.0)
    with pytest.raises(pb.errors.ArgumentError, match="diagnose"):
        raised.value.report.to_html("page.html")
