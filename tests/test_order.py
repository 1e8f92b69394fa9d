"""order: what is a puzzle, that orders are really run, and what is shown of it."""

import pytest

import pytorch_lab as lab
from pytorch_lab.errors import UsageError
from pytorch_lab.widgets.order import _shuffles

SETUP = "import torch\nw = torch.tensor(4.0, requires_grad=True)\nseen = []"
LINES = [
    "loss = w ** 2",
    "loss.backward()",
    "with torch.no_grad():\n    w -= 0.25 * w.grad",
    "seen.append(w.item())",
]


def step(**changes):
    arguments = {"id": "07.o1", "title": "One step", "setup": SETUP, "lines": LINES,
                 "measure": "seen"}  # fmt: skip
    return lab.order(**arguments | changes)


REFUSED = {
    "one line": ({"lines": ["a = 1"]}, "expected `lines` as a list of at least two"),
    "a text": ({"lines": "a = 1\nb = 2"}, "expected `lines` as a list of at least two, got 'a = 1"),
    "empty line": (
        {"lines": ["a = 1", "  "]},
        "order('07.o1') expected each of its lines to hold code, got '  '; leave it out.",
    ),
    "twice": (
        {"lines": ["a = 1", "b = 2", "a = 1"]},
        "order('07.o1') expected lines that differ, got 'a = 1' twice; "
        "nobody could tell which is which.",
    ),
    "no measure": ({"measure": ""}, "expected `measure` as a Python expression, got ''"),
    "measure is a statement": ({"measure": "x = 1"}, "as a Python expression, got 'x = 1'"),
    "does not run": (
        {"lines": ["a = b", "b = 1"], "setup": "", "measure": "a"},
        "order('07.o1') expected `lines` in an order that runs, got NameError: name 'b' is not "
        "defined\n  line 1: a = b; write them in the right order.",
    ),
    "every order works": (
        {"lines": ["a = 1", "b = 2", "c = 3"], "setup": "", "measure": "a + b + c"},
        "order('07.o1') expected a first order that does not already work, got '6' from every one",
    ),
    "start works": (
        {"lines": ["a = 1", "b = 2"], "setup": "", "measure": "a + b", "start": [1, 0]},
        "expected a first order that does not already work, got '3' from every one of 1 tried",
    ),
    "start is no order": (
        {"start": [0, 1, 2, 2]},
        "order('07.o1') expected `start` as an order of the places 0 to 3, got [0, 1, 2, 2]; "
        "name each place once.",
    ),
    "no title": ({"title": ""}, "order('07.o1') expected a title as a sentence, got ''"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name):
    changes, message = REFUSED[name]
    with pytest.raises(UsageError) as caught:
        step(**changes)
    assert message in str(caught.value)


@pytest.mark.parametrize("count", [2, 3, 7])
def test_shuffles_are_the_same_each_time_and_never_right(count):
    right = list(range(count))
    for number in range(50):
        found = _shuffles(f"07.o{number}", right)
        assert found == _shuffles(f"07.o{number}", right)
        assert right not in found
        assert all(sorted(order) == right for order in found)


def test_first_order_does_not_work():
    puzzle = step()
    puzzle.on_run(puzzle.state["start"])
    assert puzzle.state["result"]["right"] is False


def test_right_order():
    puzzle = step()
    puzzle.on_run([0, 1, 2, 3])
    result = puzzle.state["result"]
    assert (result["right"], result["run"]["value"]) == (True, "[2.0]")
    assert puzzle.state["target"]["value"] == "[2.0]"
    assert (puzzle.state["running"], puzzle.state["runs"]) == (False, 1)


def test_another_order_with_the_same_value_is_right():
    """Not the order is compared, but what it does."""
    lines = ["a = 2", "b = 3", "c = a * b"]
    puzzle = lab.order("07.o2", "Product", lines, measure="c")
    puzzle.on_run([1, 0, 2])
    assert puzzle.state["result"]["right"] is True


def test_wrong_order_gives_its_own_value():
    puzzle = step()
    puzzle.on_run([3, 0, 1, 2])
    result = puzzle.state["result"]
    assert (result["right"], result["run"]["value"], result["run"]["fault"]) == (
        False, "[4.0]", None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("order", "type_", "place", "source"),
    [
        ([1, 0, 2, 3], "NameError", 1, "loss.backward()"),
        ([0, 2, 1, 3], "TypeError", 2, "w -= 0.25 * w.grad"),
        ([2, 3, 0, 1], "TypeError", 1, "w -= 0.25 * w.grad"),
        ([0, 3, 2, 1], "TypeError", 3, "w -= 0.25 * w.grad"),
    ],
)
def test_error_is_at_the_place_of_the_line(order, type_, place, source):
    puzzle = step()
    puzzle.on_run(order)
    fault = puzzle.state["result"]["run"]["fault"]
    assert (fault["type"], fault["line"], fault["source"]) == (type_, place, source)


def test_indentation_belongs_to_the_line():
    lines = ["for k in range(3):", "    total += k"]
    puzzle = lab.order("07.o3", "Sum", lines, setup="total = 0", measure="total")
    puzzle.on_run([1, 0])
    assert puzzle.state["result"]["run"]["fault"]["type"] == "IndentationError"


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 2, 2], [0, 1, 2, 3, 4]])
def test_what_is_no_order_is_not_run(order):
    puzzle = step()
    puzzle.on_run(order)
    assert puzzle.state["runs"] == 0


def test_curves_of_both():
    lines = ["for k in range(4):", "    x *= 0.5", "    losses.append(x)"]
    puzzle = lab.order("07.o4", "Halve", lines, setup="x, losses = 8.0, []", measure="losses")
    assert puzzle.state["target_curve"]["alt"] == "Right order over 4 steps: from 4 to 0.5."
    puzzle.on_run([0, 2, 1])
    assert puzzle.state["result"]["curve"]["alt"] == (
        "Right order over 4 steps: from 4 to 0.5. Your order over 4 steps: from 8 to 1."
    )


def test_remembers(progress_file):
    step().on_run([3, 0, 1, 2])
    again = step()
    assert again.state["earlier"] == {"order": [3, 0, 1, 2], "right": False}
    again.on_run([0, 1, 2, 3])
    assert step().state["earlier"] == {"order": [0, 1, 2, 3], "right": True}


def test_an_order_of_other_lines_is_forgotten():
    step().on_run([3, 0, 1, 2])
    fewer = lab.order("07.o1", "One", ["a = 1", "a += 1"], measure="a")
    assert fewer.state["earlier"] is None


def test_text_and_html():
    puzzle = step(start=[1, 0, 2, 3])
    assert str(puzzle) == (
        "Put in order: One step\n"
        "  loss.backward()\n"
        "  loss = w ** 2\n"
        "  with torch.no_grad():\n"
        "      w -= 0.25 * w.grad\n"
        "  seen.append(w.item())"
    )
    page = puzzle.to_html()
    shown, folded = page.split("<details>")
    assert "loss.backward()\nloss = w ** 2\n" in shown
    assert "loss = w ** 2\nloss.backward()\n" in folded
    assert "seen → [2.0]" in folded
    puzzle.on_run([0, 1, 2, 3])
    again = step(start=[1, 0, 2, 3])
    assert (again.to_html(), str(again)) == (page, str(puzzle))
