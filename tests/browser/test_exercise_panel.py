"""The panel of an exercise in a real browser, with a check that is really run."""

import itertools
import json

import pytest

from pytorch_lab.checks import panel, registry, sources
from pytorch_lab.checks.sources import Source

ANSWERS = {
    "open": "",
    "failed": "def double(x):\n    return x + 2\n",
    "raised": "def double(x):\n    print('got', x)\n    y = x\n    return y * missing\n",
    "passed": "def double(x):\n    return 2 * x\n",
}
HINTS = (
    "What does **double** mean for the number 5?",
    "`x + x` is one way to say it; a factor is another.",
    "Write `return 2 * x`.",
)
SOURCE = Source(
    title="Twice as `much`",
    points=3,
    stub="def double(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()",
    solution="def double(x):\n    return 2 * x",
)
CHECK = '''
def check(expect):
    """The visible check."""
    why = "Adding 2 is doubling only at 2: the result must grow **with** `x`."
    expect.equal(double(2), 4, why, name="double(2)")
    expect.equal(double(5), 10, why, name="double(5)")
'''
_cells = itertools.count()


class Notebook:
    """A namespace that cells are run in, with line numbers as a notebook's cells have them."""

    def __init__(self):
        self.names = {"__name__": "__main__"}

    def cell(self, source):
        import linecache

        name = f"<cell {next(_cells)}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        exec(compile(source, name, "exec"), self.names)


@pytest.fixture()
def notebook(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTORCH_LAB_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.setattr(registry, "_checks", {})
    monkeypatch.setattr(sources, "find", lambda _exercise: SOURCE)
    found = Notebook()
    found.cell(CHECK)
    registry.visible("00.1", hints=HINTS)(found.names["check"])
    return found


def button(view, name):
    return view.page.get_by_role("button", name=name)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("state", ANSWERS)
def test_each_state_is_told_in_words(stage, notebook, state, theme):
    notebook.cell(ANSWERS[state])
    view = stage(panel.exercise("00.1"), theme=theme)
    word = {"open": "open", "failed": "not yet", "raised": "error", "passed": "passed"}[state]
    view.page.get_by_role("region", name=f"Exercise 00.1: {word}").wait_for()
    told = {
        "open": "The check looks for double.",
        "failed": "double(5): expected 10, got 7",
        "raised": "NameError in your line 4",
        "passed": "3 points",
    }[state]
    assert told in view.root.inner_text()
    view.axe()
    assert view.overflow() == 0
    view.picture(f"exercise-{state}-{theme}")
