"""The still picture: what GitHub keeps of an SVG, small, byte-stable, said in words."""

import re
from xml.etree import ElementTree

import pytest
import torch
from torch import nn

from pytorch_lab import graph
from pytorch_lab.errors import UsageError
from pytorch_lab.graph.drawing.picture import to_svg
from tests import drawn

NAMESPACE = "{http://www.w3.org/2000/svg}"
KEPT = {"svg", "title", "rect", "path", "text"}  # what survives in an untrusting viewer


def words(svg):
    return [each.text for each in ElementTree.fromstring(svg).iter(f"{NAMESPACE}text")]


@pytest.fixture(scope="module")
def gpt2_record():
    model, args = drawn.gpt2()
    return graph.record(model, *args)


@pytest.mark.parametrize("view", ["ops", "autograd"])
def test_gpt2_stays_below_sixty_kilobytes(gpt2_record, view):
    assert len(to_svg(gpt2_record, view=view).encode()) < 60_000


@pytest.mark.parametrize("view", ["ops", "autograd"])
def test_only_what_untrusting_viewers_keep(gpt2_record, view):
    """Presentation attributes alone: no style, class, id, reference, marker, script."""
    root = ElementTree.fromstring(to_svg(gpt2_record, view=view))
    for element in root.iter():
        assert element.tag.removeprefix(NAMESPACE) in KEPT
        for name, value in element.attrib.items():
            assert name not in ("style", "class", "id")
            assert "url(" not in value
            assert "href" not in name
    assert root[0].tag == f"{NAMESPACE}title"
    assert root[1].get("fill") == "#ffffff", "a white ground, whatever the page's theme is"


def test_everything_lies_on_the_sheet(gpt2_record):
    root = ElementTree.fromstring(to_svg(gpt2_record))
    wide, high = float(root.get("width")), float(root.get("height"))
    for rect in list(root.iter(f"{NAMESPACE}rect"))[1:]:
        x, y, width, height = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
        assert x >= 0
        assert y >= 0
        assert x + width <= wide
        assert y + height <= high
    for d in (path.get("d") for path in root.iter(f"{NAMESPACE}path")):
        starts = re.findall(r"M([-\d.]+) ([-\d.]+)", d)
        assert all(0 <= float(x) <= wide and 0 <= float(y) <= high for x, y in starts)


def test_the_same_record_gives_the_same_bytes_and_so_does_another_run():
    def draw():
        model, args = drawn.gpt2(3)
        return to_svg(graph.record(model, *args))

    assert draw() == draw()


def test_boxes_say_op_shape_module_and_parameters():
    rec = graph.record(nn.Sequential(nn.Linear(2, 5), nn.ReLU()), torch.ones(3, 2))
    said = words(to_svg(rec))
    for expected in ("Sequential", "input", "(3, 2)", "Linear", "0", "(3, 5)", "weight", "bias"):
        assert expected in said
    assert "linear" not in said


def test_modules_are_unfolded_by_their_paths(gpt2_record):
    assert "up" in words(to_svg(gpt2_record, open=["h.3.mlp"]))
    assert "up" not in words(to_svg(gpt2_record, open=["h.3"]))
    rec = graph.record(nn.Sequential(nn.Sequential(nn.Tanh()), nn.ReLU()), torch.ones(2))
    said = words(to_svg(rec, open=["0.0"]))
    assert "tanh" in said
    assert "relu" not in said
    assert "tanh" not in words(to_svg(rec, open=["0"]))


def test_a_path_that_no_module_has_is_named():
    rec = graph.record(nn.Sequential(nn.Tanh()), torch.ones(2))
    with pytest.raises(UsageError, match=r"got 'tanh'; see the paths in `record.calls`"):
        to_svg(rec, open=["tanh"])
    rec = graph.record(nn.Sequential(nn.Sequential(nn.Tanh())), torch.ones(2))
    with pytest.raises(UsageError, match=r"got '0.1'; did you mean '0.0'\?"):
        to_svg(rec, open=["0.1"])


def test_the_title_is_the_readers_or_the_functions():
    rec = graph.record(nn.Linear(2, 1), torch.ones(1, 2))
    assert "<title>Linear</title>" in to_svg(rec)
    assert "<title>a &lt; b</title>" in to_svg(rec, title="a < b")


def test_no_grad_is_dashed_and_said():
    def fn(x):
        with torch.no_grad():
            return x * 2

    svg = to_svg(graph.record(fn, torch.ones(2, requires_grad=True)))
    assert svg.count('stroke-dasharray="5 3"') == 2, "the box, and its like in the legend"
    assert "not recorded by autograd" in words(svg)
    assert "dasharray" not in to_svg(graph.record(lambda x: x * 2, torch.ones(2)))


def test_an_error_is_marked_by_colour_sign_and_words():
    rec = graph.record(nn.Sequential(nn.Linear(2, 3), nn.Linear(4, 1)), torch.ones(1, 2))
    svg = to_svg(rec)
    assert any(text.startswith("RuntimeError: mat1 and mat2") for text in words(svg))
    assert "l8 8m0 -8l-8 8" in svg, "the cross"
    assert "error" in words(svg)
    assert "l8 8m0 -8l-8 8" not in to_svg(graph.record(nn.Linear(2, 3), torch.ones(1, 2)))


def test_odd_names_are_escaped_and_clipped():
    class Odd(nn.Module):
        def forward(self, x):
            return x + 1

    Odd.__name__ = Odd.__qualname__ = "<b>&" + "x" * 300
    rec = graph.record(nn.Sequential(Odd(), Odd()), torch.ones(2))
    root = ElementTree.fromstring(to_svg(rec))
    assert float(root.get("width")) < 700


def test_nothing_recorded_is_still_a_picture():
    assert "0 nodes" in "".join(words(to_svg(graph.record(lambda: 3))))
