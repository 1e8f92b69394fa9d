"""The stage itself: what it must notice, it notices."""

import pytest

from pytorch_lab.widgets.base import LabWidget, asset

ASKS_OUTSIDE = """async function render({ model, el }) {
  await fetch("http://example.org/x").catch(() => null);"""


class Counter(LabWidget):
    """A button that counts in Python."""

    _css = asset("base.css")
    _esm = (
        asset("base.js")
        + """
function render({ model, el }) {
  const { root, close } = frame(el, { name: "Counter", kind: "counter" });
  const onclick = () => ask(model, "count", { by: 2 });
  const button = h("button", { class: "lab-button", onclick });
  root.append(button);
  const stop = follow(model, (state) => { button.textContent = `Count ${state.count}`; });
  return () => { stop(); close(); };
}
export default { render };
"""
    )

    def __init__(self):
        super().__init__({"count": 0})

    def on_count(self, by):
        self.update(count=self.state["count"] + by)

    def to_html(self):
        return "<p>Counter</p>"

    def __str__(self):
        return "Counter"


def broken(**parts):
    """A Counter whose module has `old` replaced by `new`."""
    widget = Counter()
    esm = widget._esm
    assert parts["old"] in esm
    widget._esm = esm.replace(parts["old"], parts["new"])
    return widget


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_directions(stage, theme):
    view = stage(Counter(), theme=theme)
    view.page.get_by_role("button", name="Count 0").click()
    view.page.get_by_role("button", name="Count 2").wait_for()
    assert view.sent == [{"ask": "count", "with": {"by": 2}}]
    assert view.widget.state == {"count": 2}
    view.push(count=40)
    view.page.get_by_role("button", name="Count 40").wait_for()
    view.axe()


def test_not_wired_keeps_state(stage):
    view = stage(Counter(), wired=False)
    view.page.get_by_role("button").click()
    view.page.wait_for_function("window.labListeners() === 1")
    assert view.sent == [{"ask": "count", "with": {"by": 2}}]
    assert view.widget.state == {"count": 0}


def test_zoom_halves_the_room(stage):
    view = stage(Counter(), zoom=2, width=900)
    assert view.page.evaluate("[innerWidth, devicePixelRatio]") == [450, 2]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("root.append(button)", "root.append(button); console.error('oh')", "oh"),
        ("function render({ model, el }) {", ASKS_OUTSIDE, "example.org/x"),
        ("stop(); close();", "close();", "1 listeners"),
        ("stop(); close();", "stop();", "elements are left"),
    ],
)
def test_close_notices(stage, browser, old, new, says):
    view = stage(Counter())
    arguments = {"theme": "light", "zoom": 1, "width": 900, "wired": True, "motion": False}
    bad = type(view)(browser, broken(old=old, new=new), **arguments)
    with pytest.raises(AssertionError, match=says):
        bad.close()


def test_axe_notices_contrast(stage):
    view = stage(broken(old='class: "lab-button"', new="style: 'color:#ccc;background:#fff'"))
    with pytest.raises(AssertionError, match="color-contrast"):
        view.axe()
