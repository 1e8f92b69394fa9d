"""The panel of an exercise in a real browser, with a check that is really run."""

import pytest
from playwright.sync_api import expect

from pytorch_lab.checks import panel, registry, sources
from pytorch_lab.checks.sources import Source
from tests.cells import Notebook

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


@pytest.fixture
def notebook(monkeypatch):
    monkeypatch.setattr(registry, "_checks", {})
    monkeypatch.setattr(sources, "find", lambda _exercise: SOURCE)
    found = Notebook()
    found.check(CHECK, hints=HINTS)
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


def heard(view):
    """What a screen reader was told last."""
    return view.page.get_by_role("status")


def test_check_again_until_it_is_right(stage, notebook):
    notebook.cell(ANSWERS["failed"])
    view = stage(panel.exercise("00.1"))
    button(view, "Check").click()
    view.page.get_by_text("2 tries").wait_for()
    expect(heard(view)).to_contain_text("not yet. Adding 2 is doubling only at 2")
    notebook.cell(ANSWERS["passed"])
    button(view, "Check").click()
    view.page.get_by_role("region", name="Exercise 00.1: passed, 2 tries so far").wait_for()
    expect(heard(view)).to_have_text("passed.")
    assert view.sent == [{"ask": "press", "with": {"button": "check"}}] * 2


def test_everything_by_keyboard(stage, notebook):
    """Tab to each button; the focus stays on what was pressed; the notebook hears no key."""
    notebook.cell(ANSWERS["failed"])
    view = stage(panel.exercise("00.1"))
    for name in ("Check", "Hint 1 of 3", "Solution", "Reset"):
        view.page.keyboard.press("Tab")
        expect(button(view, name)).to_be_focused()
    view.page.keyboard.press("Shift+Tab")
    view.page.keyboard.press("Enter")
    expect(heard(view)).to_have_text("The solution opens when you pass, or after 4 more tries.")
    assert view.sent == []
    view.page.keyboard.press("Shift+Tab")
    for number in (1, 2, 3):
        view.page.keyboard.press("Space")
        view.page.get_by_text(f"Hint {number}", exact=True).wait_for()
    expect(button(view, "No more hints")).to_be_focused()
    expect(heard(view)).to_have_text("Hint 3: Write `return 2 * x`.")
    view.page.keyboard.press("d")
    view.page.keyboard.press("d")
    assert view.keys() == ["Tab"], "only the key that entered the panel"


def test_hints_unfold_one_by_one(stage, notebook):
    view = stage(panel.exercise("00.1"))
    hints = view.page.get_by_role("list", name="Hints").get_by_role("listitem")
    for number in (1, 2, 3):
        button(view, f"Hint {number} of 3").click()
        expect(hints).to_have_count(number)
    assert "What does double mean for the number 5?" in hints.first.inner_text()
    assert view.root.locator("li code").count() == 2
    view.axe()
    button(view, "No more hints").click(force=True)
    expect(heard(view)).to_have_text("All hints are shown.")
    assert len(view.sent) == 3


def test_the_solution_opens_folds_and_is_copied(stage, notebook):
    notebook.cell(ANSWERS["passed"])
    view = stage(panel.exercise("00.1"))
    solution = button(view, "Solution")
    expect(solution).to_have_attribute("aria-expanded", "false")
    solution.click()
    figure = view.page.get_by_role("figure", name="A solution")
    expect(figure).to_contain_text("return 2 * x")
    view.axe()
    button(view, "Copy").click()
    button(view, "Copied").wait_for()
    assert view.page.evaluate("navigator.clipboard.readText()") == SOURCE.solution
    button(view, "Hide solution").click()
    expect(figure).to_have_count(0)
    solution.click()
    expect(figure).to_have_count(1)
    button(view, "Check").click()
    view.page.wait_for_function("!document.querySelector('[aria-busy]')")
    expect(figure).to_have_count(1)


def test_copying_without_a_clipboard_selects(stage, notebook):
    notebook.cell(ANSWERS["passed"])
    view = stage(panel.exercise("00.1"))
    button(view, "Solution").click()
    view.page.evaluate(
        "() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }"
    )
    button(view, "Copy").click()
    button(view, "Selected").wait_for()
    assert view.page.evaluate("getSelection().toString()") == SOURCE.solution


def test_reset_shows_the_cell_as_it_was_given(stage, notebook):
    notebook.cell(ANSWERS["failed"])
    view = stage(panel.exercise("00.1"))
    button(view, "Hint 1 of 3").click()
    button(view, "Hint 2 of 3").wait_for()
    button(view, "Reset").click()
    view.page.get_by_role("figure", name="The cell as it was given").wait_for()
    button(view, "Hint 1 of 3").wait_for()
    assert view.page.get_by_text("1 try").count() == 0
    button(view, "Copy").click()
    button(view, "Copied").wait_for()
    assert view.page.evaluate("navigator.clipboard.readText()") == SOURCE.stub
    view.axe()


CATCH_TIMER = """() => {
  const real = window.setTimeout;
  window.setTimeout = (ring, ms, ...rest) => {
    if (ms !== 5000) return real(ring, ms, ...rest);
    window.labRing = ring;
    return 0;
  };
}"""


def test_a_kernel_that_does_not_answer(stage, notebook):
    """The panel's timer of five seconds is caught and rung by hand."""
    view = stage(panel.exercise("00.1"), wired=False)
    view.page.evaluate(CATCH_TIMER)
    button(view, "Check").click()
    button(view, "Checking…").wait_for()
    told = "No answer from the kernel yet. If it is not busy, run this cell again."
    assert view.root.get_by_text(told).count() == 0
    view.page.evaluate("labRing()")
    expect(view.root.get_by_text(told)).to_have_count(1)
    expect(heard(view)).to_have_text(told)
    view.axe()
    view.push(turn=1, word="passed", state="passed")
    expect(view.root.get_by_text(told)).to_have_count(0)
    button(view, "Check").wait_for()


def test_progress_that_cannot_be_kept_is_said(stage, notebook, monkeypatch, tmp_path):
    (tmp_path / "plain").write_text("")
    monkeypatch.setenv("PYTORCH_LAB_PROGRESS", str(tmp_path / "plain" / "progress.json"))
    notebook.cell(ANSWERS["failed"])
    view = stage(panel.exercise("00.1"))
    view.root.get_by_text("expected to write your progress to").wait_for()
    assert view.overflow() == 0
    view.axe()


def test_what_the_answer_says_is_text(stage, notebook):
    notebook.cell(
        "def double(x):\n    print('<img src=x onerror=alert(1)>')\n"
        "    raise ValueError('<b>bold</b> `code`')\n"
    )
    view = stage(panel.exercise("00.1"))
    assert "<b>bold</b> `code`" in view.root.inner_text()
    assert view.root.locator("img, b").count() == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("zoom", "width"), [(1, 900), (2, 900), (1, 360)])
def test_all_of_it_fits_everywhere(stage, notebook, theme, zoom, width):
    notebook.cell(
        "def double(x):\n    print('x is', x, 'and ' * 60)\n"
        f"    return undefined_name + {'x + ' * 40}x\n"
    )
    view = stage(panel.exercise("00.1"), theme=theme, zoom=zoom, width=width)
    for number in (1, 2, 3):
        button(view, f"Hint {number} of 3").click()
    for tries in (2, 3, 4, 5):
        button(view, "Check").click()
        view.page.get_by_text(f"{tries} tries").wait_for()
    button(view, "Solution").click()
    button(view, "Hide solution").wait_for()
    view.page.get_by_text("Printed while checking").click()
    view.axe()
    assert view.overflow() == 0
    view.picture(f"exercise-all-{theme}-{zoom}-{width}")
