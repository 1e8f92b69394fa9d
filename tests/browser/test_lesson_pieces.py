"""The pieces of a lesson in a real browser: mouse, keyboard, names, themes, and a silent kernel."""

import re

import pytest
from playwright.sync_api import expect

import pytorch_lab as lab
from pytorch_lab.widgets import guesses

SILENT_MS = 4_100  # SILENCE_MS of piece.js, and a little


def predict():
    return lab.predict(
        "03.p1",
        "How many tensors does `tower.parameters()` yield?",
        choices={
            "4: two for each layer": "A list is **not** looked into.",
            "0: none at all": "A plain `list` hides both layers.",
            "an error": "Nothing complains.",
        },
        answer="0: none at all",
    )


def number():
    return lab.predict(
        "03.p2", "How many bytes?", number=12, tolerance=1, unit="MB", why="So it is."
    )


def order():
    return lab.order(
        "07.o1",
        "Count to three",
        lines=[
            "total = 0",
            "for k in range(3):",
            "    total += 1",
            "losses = [3.0, 2.0, total / 3]",
        ],
        measure="total",
        start=[1, 2, 0, 3],
    )


def clinic():
    return lab.clinic(
        "03.c1",
        "The sum is too small",
        code="total = 0\nfor k in range(3):\n    total = k\nlosses = [4.0, 2.0]",
        measure="total",
        healed="total == 3",
        causes={"`=` instead of `+=`": "Each turn forgets.", "`range`": "0, 1, 2 is right."},
        cause="`=` instead of `+=`",
        fix="total = 0\nfor k in range(3):\n    total += k",
    )


def crashing():
    return lab.clinic(
        "03.c2",
        "It stops",
        code="x = [1]\nif len(x) == 1:  # why\n    x.push('two')",
        healed="len(x) == 2",
        causes={"no `push`": "It is `append`.", "`if`": "It is true."},
        cause="no `push`",
        fix="x = [1]\nx.append('two')",
    )


def recall():
    return lab.recall(
        "03.recall",
        [
            {
                "ask": "What is left in `.grad`?",
                "choices": {"the sum": "They add up.", "one": "No."},
                "answer": "the sum",
            },
            {"ask": "How many leaves?", "number": 2, "why": "`w` and `b`."},
        ],
    )  # fmt: skip


def opening():
    return lab.card("Modules", goal="See what is registered.", minutes=50, needs=["lesson 02"],
                    changed=["`nn.Buffer` exists.", "`weight_norm` moved."])  # fmt: skip


def closing():
    for right in (False, True):
        guesses.keep("03.p1", ask="How `many`?", guess="4", right=right, answer="0")
    guesses.keep("03.p2", ask="How much?", guess="4", right=False, answer="0")
    return lab.card("Modules", learned="What is hidden is not trained.", lesson="03")


def button(view, name):
    return view.page.get_by_role("button", name=name, exact=True)


def answer(view, option, lock="Lock in my guess"):
    view.page.get_by_role("radio", name=option).check()
    button(view, lock).click()


def run_code(view, code):
    view.page.get_by_role("textbox", name="Your code").fill(code)
    button(view, "Run").click()


# ------------------------------------------------------------------- all of them, in all conditions

PIECES = {
    "predict": (predict, [lambda view: answer(view, "4: two"),
                          lambda view: view.page.get_by_text("What the others").click()]),
    "number": (number, [lambda view: view.page.get_by_role("textbox").fill("x"),
                        lambda view: button(view, "Lock in my guess").click()]),
    "order": (order, [lambda view: button(view, "Run this order").click()]),
    "clinic": (clinic, [lambda view: answer(view, "instead of", "This is the cause"),
                        lambda view: button(view, "Run").click()]),
    "crashing": (crashing, [lambda view: answer(view, "if", "This is the cause")]),
    "recall": (recall, [lambda view: answer(view, "one", "Answer")]),
    "opening": (opening, []),
    "closing": (closing, []),
}  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PIECES)
def test_axe_finds_nothing(stage, name, theme):
    make, steps = PIECES[name]
    view = stage(make(), theme=theme)
    view.axe()
    for step in steps:
        step(view)
        view.axe()


@pytest.mark.parametrize("name", PIECES)
def test_fits(stage, name):
    make, steps = PIECES[name]
    view = stage(make(), zoom=2)
    for step in [lambda view: None, *steps]:
        step(view)
        for width in (450, 600, 320):
            view.page.set_viewport_size({"width": width, "height": 900})
            assert view.overflow() == 0, width


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("predict", "Predict: How many tensors does tower.parameters() yield?"),
        ("order", "Put in order: Count to three"),
        ("clinic", "Clinic: The sum is too small"),
        ("recall", "Recall: 2 questions"),
        ("opening", "Lesson: Modules"),
        ("closing", "Learned: Modules"),
    ],
)
def test_has_a_name(stage, name, says):
    view = stage(PIECES[name][0]())
    expect(view.page.get_by_role("region", name=says, exact=True)).to_be_visible()


# ------------------------------------------------------------------------------------------ predict


def test_predict_wrong_then_right(stage):
    view = stage(predict())
    button(view, "Lock in my guess").click()
    expect(view.page.get_by_role("alert")).to_have_text("Pick one of the answers first.")
    assert view.sent == []
    answer(view, "4: two for each layer")
    verdict = view.page.locator(".piece-verdict")
    expect(verdict).to_be_focused()
    expect(verdict).to_contain_text("Not quite. A list is not looked into.")
    expect(view.page.get_by_role("radio", name="0: none")).to_be_disabled()
    expect(view.page.get_by_text("A plain list hides both layers.")).to_be_hidden()
    view.page.get_by_text("What the others would mean").click()
    expect(view.page.get_by_role("definition")).to_have_text(
        ["A plain list hides both layers.", "Nothing complains."]
    )
    button(view, "Guess again").click()
    answer(view, "0: none at all")
    expect(verdict).to_contain_text("Right. A plain list hides both layers.")
    expect(button(view, "Guess again")).to_have_count(0)
    assert [message["with"]["guess"] for message in view.sent] == [
        "4: two for each layer", "0: none at all",
    ]  # fmt: skip
    assert view.widget.state["kept"]["right"] is False


def test_predict_by_keyboard(stage):
    view = stage(predict())
    for key in ("Tab", "ArrowDown", "Enter"):
        view.page.keyboard.press(key)
    expect(view.page.locator(".piece-verdict")).to_contain_text("Right.")
    assert view.sent == [{"ask": "guess", "with": {"guess": "0: none at all"}}]
    assert view.keys() == ["Tab"]  # the keys typed in the piece are not the notebook's


def test_predict_shows_the_guess_of_earlier(stage):
    predict().on_guess("an error")
    view = stage(predict())
    expect(view.page.get_by_role("radio", name="an error")).to_be_checked()
    expect(view.page.locator(".piece-verdict")).to_contain_text("Nothing complains.")
    expect(view.page.locator(".piece-verdict")).to_contain_text("your guess the first time")


def test_predict_names_the_first_guess_after_a_second(stage):
    predict().on_guess("an error")
    predict().on_guess("0: none at all")
    view = stage(predict())
    expect(view.page.locator(".piece-verdict")).to_contain_text("Your first guess was: an error")


def test_predict_follows_a_guess_made_in_another_view(stage):
    view = stage(predict())
    view.push(kept={"guess": "an error", "right": False, "last": "an error"})
    expect(view.page.locator(".piece-verdict")).to_contain_text("Nothing complains.")
    assert view.sent == []


def test_two_predictions_on_a_page_do_not_share_their_radios(stage):
    view = stage(predict())
    view.page.get_by_role("radio", name="an error").check()
    view.page.evaluate(
        """() => { const copy = document.querySelector(".lab form").cloneNode(true);
        copy.id = "copy"; document.querySelector("main").append(copy); }"""
    )
    view.page.locator("#copy").get_by_role("radio", name="4: two").check()
    expect(view.root.get_by_role("radio", name="an error")).to_be_checked()
    view.page.evaluate("document.getElementById('copy').remove()")


def test_predict_without_a_kernel_still_explains_and_says_that_nothing_is_kept(stage):
    view = stage(predict(), wired=False)
    view.page.clock.install()
    answer(view, "an error")
    expect(view.page.locator(".piece-verdict")).to_contain_text("Nothing complains.")
    expect(view.root).not_to_contain_text("not kept")
    view.page.clock.fast_forward(SILENT_MS)
    expect(view.root).to_contain_text("Your guess is not kept yet: the kernel has not answered.")
    view.push(kept={"guess": "an error", "right": False, "last": "an error"})
    expect(view.root).not_to_contain_text("not kept")


def test_trouble_is_shown_and_goes(stage):
    view = stage(predict())
    view.push(trouble="expected to write your progress to `x`; make it writable.")
    expect(view.page.get_by_role("alert")).to_contain_text("make it writable")
    view.axe()
    view.push(trouble=None)
    expect(view.root).not_to_contain_text("make it writable")


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("many", "Type a number, such as 12 or 0.5."),
        ("", "Type a number, such as 12 or 0.5."),
        ("3", "Not quite. 3 is 9 MB too low. The answer is 12 MB (± 1). So it is."),
        ("15,5", "Not quite. 15.5 is 3.5 MB too high. The answer is 12 MB (± 1). So it is."),
        ("11.5", "Right. The answer is 12 MB (± 1). So it is."),
    ],
)
def test_number(stage, typed, says):
    view = stage(number())
    field = view.page.get_by_role("textbox", name="How many bytes?")
    field.fill(typed)
    field.press("Enter")
    expect(view.page.get_by_text(says)).to_be_visible()


# -------------------------------------------------------------------------------------------- order


def rows(view):
    return [text.strip() for text in view.page.get_by_role("listitem").all_inner_texts()]


FIRST = ["for k in range(3):", "total += 1", "total = 0", "losses = [3.0, 2.0, total / 3]"]


def test_order_by_keyboard(stage):
    view = stage(order())
    view.page.keyboard.press("Tab")
    line = view.page.get_by_role("listitem")
    expect(line.nth(0)).to_be_focused()
    view.page.keyboard.press("ArrowDown")
    view.page.keyboard.press("ArrowDown")
    expect(line.nth(2)).to_be_focused()
    view.page.keyboard.press("Alt+ArrowUp")
    view.page.keyboard.press("Alt+ArrowUp")
    assert rows(view) == [FIRST[2], FIRST[0], FIRST[1], FIRST[3]]
    expect(line.nth(0)).to_be_focused()
    expect(view.page.locator(".lab-live[aria-live]")).to_have_text("total = 0 is now line 1 of 4.")
    view.page.keyboard.press("Alt+ArrowUp")
    expect(view.page.locator(".lab-live[aria-live]")).to_have_text(
        "total = 0 is already line 1 of 4."
    )
    for _ in range(3):  # up, down, Run
        view.page.keyboard.press("Tab")
    expect(button(view, "Run this order")).to_be_focused()
    view.page.keyboard.press("Enter")
    expect(view.page.locator(".piece-verdict")).to_contain_text("Right. Your order gives")
    assert view.sent == [{"ask": "run", "with": {"order": [0, 1, 2, 3]}}]
    assert set(view.keys()) <= {"Tab", "Alt"}


def test_order_by_buttons(stage):
    view = stage(order())
    button(view, "Move up: total = 0").click()
    assert rows(view) == [FIRST[0], FIRST[2], FIRST[1], FIRST[3]]
    button(view, "Move down: for k in range(3):").click()
    assert rows(view) == [FIRST[2], FIRST[0], FIRST[1], FIRST[3]]
    button(view, "Move up: total = 0").click()
    assert rows(view) == [FIRST[2], FIRST[0], FIRST[1], FIRST[3]]
    button(view, "Shuffle back").click()
    assert rows(view) == FIRST


def test_order_by_pointer(stage):
    view = stage(order())
    line = view.page.get_by_role("listitem")
    from_, to = line.nth(2).bounding_box(), line.nth(0).bounding_box()
    view.page.mouse.move(from_["x"] + 60, from_["y"] + 10)
    view.page.mouse.down()
    view.page.mouse.move(to["x"] + 60, to["y"] + 8, steps=6)
    view.page.mouse.up()
    assert rows(view) == [FIRST[2], FIRST[0], FIRST[1], FIRST[3]]
    expect(view.page.locator(".lab-live[aria-live]")).to_have_text("total = 0 is now line 1 of 4.")


def test_order_shows_the_error_beside_the_right_order(stage):
    view = stage(order())
    button(view, "Run this order").click()
    expect(view.page.locator(".piece-verdict")).to_contain_text("This order ends in an error")
    mine = view.page.get_by_role("region", name="Your order gives")
    expect(mine).to_contain_text("NameError: name 'total' is not defined")
    expect(mine).to_contain_text("line 2: total += 1")
    expect(view.page.get_by_role("region", name="A right order gives")).to_contain_text(
        "total is 3"
    )
    expect(view.page.get_by_role("listitem").nth(1)).to_have_class(re.compile("order-faulty"))
    expect(view.page.get_by_role("img")).to_have_attribute(
        "aria-label", "Right order over 3 steps: from 3 to 1."
    )
    button(view, "Move up: total = 0").click()
    expect(view.page.locator(".order-faulty, .piece-verdict")).to_have_count(0)


def test_order_says_that_it_runs_and_how_to_stop(stage):
    view = stage(order(), wired=False)
    button(view, "Run this order").click()
    expect(view.root).to_contain_text("Asked the kernel …")
    expect(button(view, "Run this order")).to_be_disabled()
    expect(button(view, "Run this order")).to_be_focused()  # a disabled one would lose the focus
    view.push(running=True)
    expect(view.root).to_contain_text("the kernel's interrupt button stops it")
    expect(button(view, "Run this order")).to_be_disabled()
    view.push(running=False)
    expect(button(view, "Run this order")).to_be_enabled()
    expect(view.root).not_to_contain_text("interrupt")


def test_order_says_when_the_kernel_is_silent(stage):
    view = stage(order(), wired=False)
    view.page.clock.install()
    button(view, "Run this order").click()
    view.page.clock.fast_forward(SILENT_MS)
    expect(view.root).to_contain_text("No answer yet: the kernel may be busy with another cell")
    expect(button(view, "Run this order")).to_be_enabled()


def test_order_opens_with_the_order_of_last_time(stage):
    order().on_run([0, 2, 1, 3])
    view = stage(order())
    assert rows(view) == [FIRST[2], FIRST[1], FIRST[0], FIRST[3]]
    expect(view.root).to_contain_text("you ran last time: it was not right yet.")


def test_order_after_a_reload_of_the_page(stage):
    """The front end draws the widget anew: the learner's order beside its result."""
    widget = order()
    widget.on_run([1, 0, 2, 3])
    view = stage(widget)
    assert rows(view) == [FIRST[0], FIRST[2], FIRST[1], FIRST[3]]
    expect(view.page.locator(".piece-verdict")).to_contain_text("Not yet.")


# ------------------------------------------------------------------------------------------- clinic


def test_clinic_from_symptom_to_cure(stage):
    view = stage(clinic())
    expect(view.page.get_by_role("region", name="What happens")).to_contain_text("total is 2")
    expect(view.page.get_by_role("img")).to_have_attribute(
        "aria-label", "Loss over 2 steps: from 4 to 2."
    )
    cure = view.page.get_by_role("region", name="Heal the code")
    answer(view, "range", "This is the cause")
    expect(cure).to_be_hidden()
    button(view, "Look again").click()
    answer(view, "instead of", "This is the cause")
    expect(cure).to_be_visible()
    expect(view.page.get_by_text("Show a fix")).to_be_hidden()
    button(view, "Run").click()
    expect(cure).to_contain_text("Not yet. It runs, but the symptom is not gone.")
    expect(view.page.get_by_text("Show a fix")).to_be_visible()
    run_code(view, "total = sum(range(3")
    expect(cure).to_contain_text("Not yet. It ends in an error.")
    run_code(view, "totals = 3")
    expect(cure).to_contain_text("NameError: name 'total' is not defined")
    run_code(view, "total = sum(range(3))")
    expect(cure).to_contain_text("Healed. The patient does what it should.")
    assert [message["ask"] for message in view.sent] == ["guess", "guess", *["run"] * 4]
    view.axe()
    button(view, "Broken code again").click()
    expect(view.page.get_by_role("textbox")).to_have_value(view.widget.code)


def test_clinic_marks_the_line_of_the_error(stage):
    view = stage(crashing())
    faulty = view.page.locator(".code-faulty")
    expect(faulty).to_have_attribute("data-line", "3")
    expect(faulty).to_contain_text("x.push('two')")
    expect(view.page.get_by_role("region", name="What happens")).to_contain_text(
        "AttributeError: 'list' object has no attribute 'push'"
    )


def test_clinic_keys_in_the_text_area(stage):
    view = stage(clinic())
    answer(view, "instead of", "This is the cause")
    area = view.page.get_by_role("textbox", name="Your code")
    area.fill("for k in x:")
    area.press("End")
    area.press("Enter")
    area.press("d")
    area.press("d")
    area.press("Enter")
    area.press("Tab")
    assert area.input_value() == "for k in x:\n    dd\n        "
    area.press("Control+z")
    assert area.input_value() != "for k in x:\n    dd\n        "
    expect(area).to_be_focused()
    area.press("Escape")
    area.press("Tab")
    expect(button(view, "Run")).to_be_focused()
    area.focus()
    area.press("Shift+Tab")
    expect(area).not_to_be_focused()
    assert view.keys().count("d") == 0
    area.fill("total = 3")
    area.press("Control+Enter")
    expect(view.root).to_contain_text("Healed.")


def test_clinic_says_when_the_kernel_is_silent(stage):
    view = stage(clinic(), wired=False)
    view.page.clock.install()
    answer(view, "instead of", "This is the cause")
    button(view, "Run").click()
    view.page.clock.fast_forward(SILENT_MS)
    expect(view.root).to_contain_text("No answer yet: the kernel may be busy")
    expect(button(view, "Run")).to_be_enabled()


def test_clinic_remembers_that_it_was_healed(stage):
    first = clinic()
    first.on_guess("`=` instead of `+=`")
    first.on_run(first.fix)
    view = stage(clinic())
    expect(view.root).to_contain_text("You healed this one earlier.")
    expect(view.page.get_by_role("textbox", name="Your code")).to_be_visible()


def test_clinic_after_a_reload_of_the_page(stage):
    widget = clinic()
    widget.on_guess("`=` instead of `+=`")
    widget.on_run("total = 5")
    view = stage(widget)
    expect(view.page.get_by_role("textbox", name="Your code")).to_have_value("total = 5")
    expect(view.root).to_contain_text("It runs, but the symptom is not gone.")


# ---------------------------------------------------------------------------------- recall and card


def test_recall_to_the_score(stage):
    view = stage(recall())
    expect(view.root).to_contain_text("Question 1 of 2")
    answer(view, "one", "Answer")
    expect(view.page.get_by_role("definition")).to_have_text(["They add up."])
    button(view, "Next question").click()
    field = view.page.get_by_role("textbox", name="How many leaves?")
    expect(field).to_be_focused()
    field.fill("2")
    field.press("Enter")
    button(view, "See my score").click()
    expect(view.page.locator(".recall-score")).to_have_text("1 of 2 right.")
    expect(view.page.locator(".recall-score")).to_be_focused()
    expect(view.page.get_by_role("listitem")).to_have_text(
        [re.compile("Not right:.*the sum – not one"), re.compile("Right:.*How many leaves")]
    )
    assert [message["with"] for message in view.sent] == [
        {"place": 0, "guess": "one"}, {"place": 1, "guess": 2},
    ]  # fmt: skip
    view.axe()


def test_recall_goes_on_where_it_stopped(stage):
    recall().on_guess(0, "the sum")
    view = stage(recall())
    expect(view.root).to_contain_text("Question 2 of 2")
    recall().on_guess(1, 2)
    done = stage(recall())
    expect(done.page.locator(".recall-score")).to_have_text("All 2 right.")


def test_closing_card_fills_itself(stage):
    view = stage(lab.card("Modules", learned="What is hidden is not trained.", lesson="03"))
    expect(view.root).to_contain_text("Your guesses of this lesson will stand here.")
    view.push(rows=[{"ask": "How `many`?", "guess": "4", "answer": "0", "mark": "not right"}])
    table = view.page.get_by_role("table", name="Your guesses: 0 of 1 right the first time")
    expect(table.get_by_role("row").nth(1)).to_contain_text("not right")
    expect(table.get_by_role("rowheader")).to_have_text("How many?")
    view.axe()
