"""Where the boxes and arrows of a graph to be filled in by hand go, and its still picture.

The blank of a local derivative is laid out as a box of its own on its arrow, so that it never lies
on anything else.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pytorch_lab.graph.by_hand import Step
from pytorch_lab.graph.drawing.layout import Diagram, Layout, layout
from pytorch_lab.svg import INK, LINE, MONO_WIDTH, QUIET, Picture
from pytorch_lab.widgets.derivatives_blanks import Blank

FONT = 13.0
LETTER = FONT * MONO_WIDTH
FIELD, PAD = 108.0, 9.0  # a field with the sign that says right or wrong; around a box's text
STEP_HEIGHT, SLOPE_HEIGHT = 86.0, 38.0
SHADE = "#f3f4f5"  # behind what is known


def short(value: float) -> str:
    """A number as the graph shows it.

    Example:
        >>> short(2.0), short(-0.99505475)
        ('2', '-0.99505')
    """
    return f"{value:.5g}"


def plan(
    steps: Sequence[Step], slopes: Sequence[Blank], gradients: Sequence[Blank]
) -> dict[str, Any]:
    """What JavaScript draws: boxes with their corners, and the arrows as paths.

    Example:
        >>> from pytorch_lab.graph.by_hand import work_out
        >>> steps = work_out(lambda a: a.exp(), {"a": 1.0}, "here")
        >>> from pytorch_lab.widgets import derivatives_blanks as blanks
        >>> found = plan(steps, blanks.slopes(steps, 0.01), blanks.gradients(steps, 0.01))
        >>> [box["label"] for box in found["boxes"]]
        ['a', '∂L/∂a', 'L = exp(a)']
    """
    items = list(_items(steps, slopes, gradients))
    laid = _laid_out(steps, items)
    boxes = [
        items[box.item - 1]._asdict()
        | {"x": box.x, "y": box.y, "width": box.width, "height": box.height}
        for box in sorted(laid.boxes)
    ]
    tips = {place for place, item in enumerate(items, 1) if item.value is not None}
    arrows = [
        {
            "path": "M" + "L".join(f"{x:g} {y:g}" for x, y in route.points),
            "tip": route.points[-1] if route.target in tips else None,
        }
        for route in laid.routes
    ]
    return {"width": laid.width, "height": laid.height, "boxes": boxes, "arrows": arrows}


def image(
    title: str, steps: Sequence[Step], slopes: Sequence[Blank], gradients: Sequence[Blank]
) -> str:
    """The graph with empty blanks, as an `<img>`.

    Example:
        >>> from pytorch_lab.graph.by_hand import work_out
        >>> steps = work_out(lambda a: a.exp(), {"a": 1.0}, "here")
        >>> from pytorch_lab.widgets import derivatives_blanks as blanks
        >>> image("Exp", steps, blanks.slopes(steps, 0.01), blanks.gradients(steps, 0.01))[:14]
        '<img alt="Exp:'
    """
    drawn = plan(steps, slopes, gradients)
    names = {blank.key: blank.label for blank in (*slopes, *gradients)}
    picture = Picture(drawn["width"], drawn["height"], title)
    for arrow in drawn["arrows"]:
        picture.path(arrow["path"], fill="none", stroke=QUIET)
        if arrow["tip"]:
            x, y = arrow["tip"]
            picture.path(f"M{x - 4:g} {y - 7:g}L{x:g} {y:g}L{x + 4:g} {y - 7:g}Z", fill=QUIET)
    for box in drawn["boxes"]:
        _draw(picture, box, names[box["blank"]])
    code = "; ".join(box["label"] for box in drawn["boxes"] if box["value"] is not None)
    return picture.img(f"{title}: {code}")


def _draw(picture: Picture, box: dict[str, Any], name: str) -> None:
    x, y, width, height = box["x"], box["y"], box["width"], box["height"]
    is_step = box["value"] is not None
    picture.rect(x, y, width, height, rx=5, fill=SHADE if is_step else "#ffffff", stroke=LINE)
    if is_step:
        picture.text(x + PAD, y + 20, box["label"], size=FONT, fill=INK)
        picture.text(x + PAD, y + 40, box["value"], size=FONT, fill=INK, font_weight="bold")
    line = y + height - 14
    picture.text(x + PAD, line, name, size=FONT, fill=QUIET)
    start = x + PAD + LETTER * (len(name) + 1)
    picture.line(start, line + 3, x + width - PAD, line + 3, stroke=QUIET)


class _Item(NamedTuple):
    """A box: a step, or the blank on an arrow to it."""

    label: str
    value: str | None  # None for a blank
    blank: str  # the key of what is to be filled in here
    width: float
    height: float


def _items(
    steps: Sequence[Step], slopes: Sequence[Blank], gradients: Sequence[Blank]
) -> Iterator[_Item]:
    """Every box behind all whose arrows lead to it, as the layout wants them."""
    blanks = iter(slopes)
    for step, asked in zip(steps, reversed(gradients), strict=True):
        for _ in step.inputs:
            blank = next(blanks)
            width = LETTER * (len(blank.label) + 1) + FIELD + 2 * PAD
            yield _Item(blank.label, None, blank.key, width, SLOPE_HEIGHT)
        label = f"{step.name} = {step.text}" if step.text else step.name
        widest = max(LETTER * len(label), LETTER * (len(asked.label) + 1) + FIELD)
        yield _Item(label, short(step.value), asked.key, widest + 2 * PAD, STEP_HEIGHT)


def _laid_out(steps: Sequence[Step], items: Sequence[_Item]) -> Layout:
    places = [place for place, item in enumerate(items, 1) if item.value is not None]
    edges = []
    for step, place in zip(steps, places, strict=True):
        for back, end in enumerate(reversed(step.inputs), 1):
            edges += [(places[end], place - back), (place - back, place)]
    sizes = [(0.0, 0.0), *((item.width, item.height) for item in items)]
    return layout(Diagram(ends=[len(sizes), *range(2, len(sizes) + 1)], sizes=sizes, edges=edges))
