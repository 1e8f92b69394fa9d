"""derivatives: what is recorded, what is asked, what a wrong number is told, what is kept."""

import json
import math

import pytest
import torch

import pytorch_lab as lab
from pytorch_lab import progress
from pytorch_lab.errors import UsageError
from pytorch_lab.graph.by_hand import work_out
from pytorch_lab.widgets import derivatives_blanks as blanks
from pytorch_lab.widgets import guesses

GRAPHS = {
    "two paths": (lambda a, b: (a * b + b).tanh(), {"a": 2.0, "b": -1.0}),
    "one leaf twice": (lambda a: a * a, {"a": 3.0}),
    "a neuron": (lambda x, w, b: torch.relu(w * x + b) * w, {"x": 1.0, "w": 2.0, "b": 3.0}),
    "constants": (lambda x: (1 / x - 2**x) / torch.tensor(3) - x**2 + 1, {"x": 0.5}),
    "functions": (lambda x: (2 * x).exp() * -x.sin() / (1 - x.sigmoid()), {"x": 0.3}),
    "one step": (lambda x: x.log(), {"x": 2}),
    "in place": (lambda x: (x * 2).add_(1).mul_(x), {"x": 3.0}),
    "by value": (lambda x: x * 3 if x > 0 else x * 5, {"x": 1.0}),
    "max": (lambda a, v1: torch.maximum(a, v1).pow(2).sigmoid(), {"a": 1.0, "v1": 2.0}),
    "softplus": (lambda a: torch.nn.functional.softplus(a) - 3, {"a": 1.0}),
}


def graph(name):
    fn, leaves = GRAPHS[name]
    return work_out(fn, leaves, "here")


def small(**changes):
    return lab.derivatives("02.d1", GRAPHS["two paths"][0], **{"a": 2.0, "b": -1.0} | changes)


# ------------------------------------------------------------------------------ what is worked out


@pytest.mark.parametrize("name", GRAPHS)
def test_the_steps_give_the_function_again(name):
    """Each step's text, run as Python on the values before it, gives its value."""
    names = {"relu": torch.relu, "maximum": torch.maximum,
             "softplus": torch.nn.functional.softplus}  # fmt: skip
    for step in graph(name):
        if step.text:
            known = names | {f: getattr(torch, f) for f in ("tanh", "exp", "sin", "sigmoid", "log")}
            known |= {"reciprocal": torch.reciprocal}
            assert eval(step.text, known).item() == pytest.approx(step.value), step
        names[step.name] = torch.tensor(step.value, dtype=torch.float64)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_local_derivatives_make_the_gradients(name):
    """The chain rule by hand over all edges gives what a numeric derivative of the whole gives."""
    fn, leaves = GRAPHS[name]
    steps = graph(name)
    back = [0.0] * len(steps)
    back[-1] = 1.0
    for at in reversed(range(len(steps))):
        for end, slope in zip(steps[at].inputs, steps[at].slopes, strict=True):
            back[end] += back[at] * slope
    assert [step.gradient for step in steps] == pytest.approx(back)
    for at, leaf in enumerate(leaves):
        high, low = (
            fn(**{k: torch.tensor(v + sign * 1e-6 * (k == leaf), dtype=torch.float64)
                  for k, v in leaves.items()}).item()
            for sign in (1, -1)
        )  # fmt: skip
        assert steps[at].gradient == pytest.approx((high - low) / 2e-6, rel=1e-5)


def test_names_avoid_those_of_the_leaves():
    assert [step.name for step in graph("max")] == ["a", "v1", "u1", "u2", "L"]
    assert work_out(lambda L: L * 2, {"L": 1.0}, "")[-1].name == "out"


def test_the_reader_s_grad_mode_and_tensors_are_left_alone():
    x = torch.ones((), requires_grad=True)
    with torch.no_grad():
        work_out(lambda a: a * 2, {"a": 1.0}, "")
        assert not torch.is_grad_enabled()
    assert x.grad is None


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


REFUSED = {
    "no tensor": (lambda a: 1, {"a": 1.0}, "a function that returns one number, got 1."),
    "many": (lambda a: torch.stack([a, a]), {"a": 1.0}, "one number, got shape (2,)."),
    "raises": (lambda a: a.foo(), {"a": 1.0}, "that runs, got AttributeError: 'Tensor' object has"),
    "wrong names": (lambda b: b, {"a": 1.0}, "a function of a that runs, got TypeError"),
    "detached": (lambda a: a.detach() * 2, {"a": 1.0}, "got one without a graph; compute it from"),
    "unused": (lambda a, b: a * 2, {"a": 1.0, "b": 1.0}, "one that does not depend on 'b'"),
    "from outside": (
        lambda a: a * torch.ones((), requires_grad=True), {"a": 1.0},
        "got a tensor from outside that asks for a gradient; make it an argument.",
    ),
    "infinite": (lambda a: a.log(), {"a": 0.0}, "expected finite values and derivatives, got the"),
    "too long": (lambda a: sum([a * k for k in range(9)]), {"a": 1.0}, "at most 12 steps, got 18"),
    "several numbers": (lambda a: torch.stack([a, a]).sum(), {"a": 1.0}, "got Stack inside of"),
    "several at the end": (lambda a: a.expand(3).sum(), {"a": 1.0}, "got Expand inside of another"),
    "custom": (lambda a: Double.apply(a) + 1, {"a": 1.0}, "got Double inside of another op"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_worked_out_is_refused(case):
    fn, leaves, message = REFUSED[case]
    with pytest.raises(UsageError) as caught:
        lab.derivatives("02.d1", fn, **leaves)
    assert str(caught.value).startswith("derivatives('02.d1') expected ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("0 2", abs), "expected an id without spaces"),
        (("02.d1", 3), "expected a function and its leaves, got 3; write"),
        (("02.d1", abs), "expected a function and its leaves, got no leaves; write"),
    ],
)
def test_arguments_are_checked(arguments, message):
    leaves = {} if arguments[1] is abs else {"a": 1.0}
    with pytest.raises(UsageError, match=r"^derivatives\(") as caught:
        lab.derivatives(*arguments, **leaves)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"a": "2"}, "expected `a` as a finite number, got '2'."),
        ({"a": math.nan}, "expected `a` as a finite number, got nan."),
        ({"a": True}, "expected `a` as a finite number, got True."),
        ({"title": ""}, "expected a title as a sentence"),
        ({"tolerance": 0}, "expected a `tolerance` between 0 and 0.1, got 0;"),
        ({"tolerance": 0.5}, "expected a `tolerance` between 0 and 0.1, got 0.5;"),
    ],
)
def test_options_are_checked(changes, message):
    with pytest.raises(UsageError) as caught:
        small(**changes)
    assert message in str(caught.value)


# ------------------------------------------------------------------- what a wrong number is told

SAID = [
    ("∂v1/∂a 0", 1.0, "The size is right, the sign is not: does v1 grow or shrink when a grows?"),
    ("∂v1/∂a 0", 2.0, "That is ∂v1/∂b, the derivative by the other input."),
    ("∂v1/∂a 0", -2.0, "That is the value of v1, not how fast it moves."),
    ("∂v1/∂a 0", -0.009866, "That is the effect on L, at the end of the graph."),
    ("∂v1/∂a 0", 0.0, "0 would mean that v1 does not move at all when a moves."),
    ("∂v1/∂a 0", -0.92, "Close. Work it out with one digit more."),
    ("∂v1/∂a 0", 77.0, "Not that. Move a up by a little, say 0.001, and keep all else still"),
    ("∂L/∂v2 0", 1 / 0.009866, "That is one over it: L moves, v2 is moved."),
    ("L.grad", -0.99505, "That is the value of L. How fast does L move with itself?"),
    ("v1.grad", 1.0, "That is the local derivative alone: the factor of the chain is missing."),
    ("v1.grad", 1.009866, "The chain rule multiplies along a path; you added."),
    ("v1.grad", -0.009866, "The size is right, the sign is not: look at the signs on the way."),
    ("a.grad", 0.009866, "That is the gradient that arrives at v1. Multiply it by the local"),
    ("b.grad", 0.019732, "That is only what comes back through v1. b is used 2 times"),
    ("b.grad", 0.009866, "That is only what comes back through v2. b is used 2 times"),
    ("b.grad", 3.0, "Those are the local derivatives alone. Multiply each by the gradient"),
    ("b.grad", 0.014799, "That is the mean of the paths. They are added"),
    ("b.grad", 0.00019468, "You multiplied the paths."),
    ("b.grad", 0.0, "0 would mean that L does not move at all when b moves."),
    ("b.grad", -1.0, "That is the value of b, not how fast L moves with it."),
    ("b.grad", 55.0, "Not that. Follow each of the 2 arrows down from b"),
]


@pytest.mark.parametrize(("key", "guess", "says"), SAID)
def test_a_known_slip_is_named(key, guess, says):
    blank = small().blanks[key]
    assert not blank.is_right(guess)
    assert blank.says(guess).startswith(says)


def test_two_arrows_from_one_step_count_one_by_one():
    first, second = blanks.slopes(graph("one leaf twice"), 0.01)
    assert (first.key, second.key) == ("∂L/∂a 0", "∂L/∂a 1")
    assert first.says(6.0).startswith("Both arrows come from a. On this one count a here alone")
    assert "arrow 2 of 2" in second.asks


@pytest.mark.parametrize("name", GRAPHS)
def test_no_sentence_tells_the_answer_and_no_slip_is_right(name):
    steps = graph(name)
    for blank in (*blanks.slopes(steps, 0.01), *blanks.gradients(steps, 0.01)):
        assert blank.is_right(blank.answer)
        for slip in blank.slips[:-1]:
            assert not blank.is_right(slip.value), (blank, slip)
        texts = [slip.says for slip in blank.slips] + [blank.otherwise, blank.rule]
        assert all(text[-1] in ".?" for text in texts)
        if abs(blank.answer) not in (0, 1, 2, 3):  # small numbers are words and constants too
            assert not any(f"{abs(blank.answer):.4g}" in text for text in texts)


RULES = {
    "two paths": ["∂v1/∂a = b", "∂v1/∂b = a", "∂v2/∂v1 = 1", "∂v2/∂b = 1", "∂L/∂v2 = 1 − L²"],
    "a neuron": ["∂v1/∂w = x", "∂v1/∂x = w", "∂v2/∂v1 = 1", "∂v2/∂b = 1", "∂v3/∂v2 = [v3 > 0]",
                 "∂L/∂v3 = w", "∂L/∂w = v3"],
    "constants": ["∂v1/∂x = −v1²", "∂v2/∂v1 = 1", "∂v3/∂x = v3 · ln(2)", "∂v4/∂v2 = 1",
                  "∂v4/∂v3 = −1", "∂v5/∂v4 = 1 / 3", "∂v6/∂x = 2 · x^(2 − 1)", "∂v7/∂v5 = 1",
                  "∂v7/∂v6 = −1", "∂L/∂v7 = 1"],
    "softplus": ["∂v1/∂a = σ(a); σ is the sigmoid", "∂L/∂v1 = 1"],
}  # fmt: skip


@pytest.mark.parametrize("name", RULES)
def test_the_rule_speaks_of_the_learner_s_own_names(name):
    rules = [blank.rule for blank in blanks.slopes(graph(name), 0.01)]
    assert rules == [f"The rule for this op: {rule}." for rule in RULES[name]]


# ---------------------------------------------------------------------------------- what is kept


def fill_in(piece, **wrong):
    for key, blank in piece.blanks.items():
        if key in wrong:
            piece.on_fill(key, wrong[key])
        piece.on_fill(key, blank.answer)


def test_what_was_right_is_kept_and_found_again():
    piece = small()
    piece.on_fill("∂v1/∂a 0", 1.0)
    piece.on_fill("∂v1/∂b 1", 2.0)
    again = small()
    assert again.state["kept"] == {
        "filled": {"∂v1/∂b 1": 2.0},
        "first": {"∂v1/∂a 0": False, "∂v1/∂b 1": True},
    }
    assert guesses.of_lesson("02") == []  # the closing card waits until it is done


def test_when_all_is_right_the_closing_card_hears_of_it():
    fill_in(small(), **{"b.grad": 5.0})
    (known,) = guesses.of_lesson("02")
    assert known["guess"] == "9 of 10 at the first try"
    assert known["answer"] == "10 of 10"
    assert known["right"] is False


def test_the_first_time_counts_after_all_was_emptied():
    piece = small()
    fill_in(piece, **{"b.grad": 5.0})
    piece.on_again()
    assert piece.state["kept"] == {"filled": {}, "first": {}}
    fill_in(piece)
    (known,) = guesses.of_lesson("02")
    assert (known["guess"], known["last"]) == (
        "9 of 10 at the first try", "10 of 10 at the first try"
    )  # fmt: skip


@pytest.mark.parametrize("guess", [math.nan, math.inf, "1", None, [1]])
def test_what_is_no_number_is_not_kept(guess):
    piece = small()
    piece.on_fill("∂v1/∂a 0", guess)
    piece.on_fill("no such blank", 1.0)
    assert piece.state["kept"] == {"filled": {}, "first": {}}


@pytest.mark.parametrize(
    "entry",
    [3, {"filled": 3, "first": []}, {"filled": {"∂v1/∂a 0": "x", "gone": 1, "∂v1/∂b 1": 9}}],
)
def test_a_foreign_or_stale_entry_is_ignored(entry, progress_file):
    progress_file.write_text(json.dumps({"exercises": {}, "guesses": {"02.d1": entry}}))
    assert small().state["kept"] == {"filled": {}, "first": {}}


def test_a_folder_that_is_not_writable_is_said_in_the_piece(monkeypatch, tmp_path):
    piece = small()
    monkeypatch.setenv("PYTORCH_LAB_PROGRESS", str(tmp_path / "gone" / "progress.json"))
    piece._answer(piece, {"ask": "fill", "with": {"key": "∂v1/∂a 0", "guess": -1}}, [])
    assert "expected to write your progress" in piece.state["trouble"]


# --------------------------------------------------------------------------- for other readers


def test_the_text_hides_the_answers():
    text = str(small())
    assert "v2 = v1 + b" in text
    assert "0.0098" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_static_page_has_the_picture_and_folds_the_answers():
    page = small(title="A `tanh` & more").to_html()
    shown, _, folded = page.partition("<details>")
    assert "<code>tanh</code> &amp; more" in shown
    assert "data:image/svg+xml;base64" in shown
    assert "0.0098" not in shown
    assert "<code>b.grad</code> = 0.029598" in folded
    assert page == small(title="A `tanh` & more").to_html()


@pytest.mark.parametrize("name", GRAPHS)
def test_no_box_of_the_plan_lies_on_another(name):
    fn, leaves = GRAPHS[name]
    plan = lab.derivatives("02.d1", fn, **leaves).state["plan"]
    boxes = plan["boxes"]
    for at, one in enumerate(boxes):
        assert one["x"] + one["width"] <= plan["width"]
        assert one["y"] + one["height"] <= plan["height"]
        for other in boxes[:at]:
            apart = (
                one["x"] >= other["x"] + other["width"] or other["x"] >= one["x"] + one["width"]
                or one["y"] >= other["y"] + other["height"]
                or other["y"] >= one["y"] + one["height"]
            )  # fmt: skip
            assert apart, (one, other)


def test_the_state_is_json_and_the_progress_is_read_once_a_cell():
    json.dumps(small().state, allow_nan=False)
    assert progress.read()["guesses"] == {}
