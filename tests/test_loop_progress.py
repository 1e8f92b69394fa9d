"""What a progress bar says, where, and how seldom; the clock is moved by hand."""

import io
import math
import re
import threading

import pytest
import torch

from pytorch_lab import loop
from pytorch_lab.errors import UsageError
from pytorch_lab.loop.progress_text import Bar, line, page
from pytorch_lab.loop.series import Series


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Tty(io.StringIO):
    def isatty(self):
        return True


def ran(items, file, *, seconds=1.0, log=lambda number: {"loss": number}, **options):
    """A loop whose every turn takes so many seconds; the bar."""
    clock = Clock()
    bar = loop.progress(items, file=file, clock=clock, **options)
    for number in bar:
        clock.now += seconds
        bar.log(**log(number))
    return bar


def test_it_hands_out_what_it_was_given():
    items = [object() for _ in range(5)]
    bar = loop.progress(items, file=io.StringIO())
    assert list(bar) == items
    assert (bar.done, bar.total, len(bar), bar.stopped) == (5, 5, 5, False)
    assert list(bar) == items  # and again, from the beginning
    assert bar.done == 5


def test_a_file_gets_a_line_at_the_end_and_one_in_half_a_minute():
    file = io.StringIO()
    ran([3.0, 2.5, 2.0], file, label="epoch 1")
    assert file.getvalue() == "epoch 1 3/3 100% loss 2 (3 s)\n"
    file = io.StringIO()
    ran([1.0] * 100, file)
    assert file.getvalue().splitlines() == [
        "30/100 ███        30% loss 1 (30 s, 1 min 10 s left)",
        "60/100 ██████     60% loss 1 (1 min 0 s, 40 s left)",
        "90/100 █████████  90% loss 1 (1 min 30 s, 10 s left)",
        "100/100 100% loss 1 (1 min 40 s)",
    ]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", file.getvalue())


def test_a_terminal_keeps_one_line_of_at_most_80_columns():
    file = Tty()
    ran([0.123456] * 20, file, seconds=0.3, label="网络" * 20)
    text = file.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert len(text.split("\r")) > 10
    widths = {
        sum(2 if letter in "网络" else 1 for letter in part) for part in text[1:-1].split("\r")
    }
    assert widths == {79}


def test_it_is_drawn_ten_times_a_second_and_no_more():
    file = Tty()
    ran([1.0] * 1000, file, seconds=0.001)
    assert 8 <= file.getvalue().count("\r") <= 13


def test_a_slow_screen_is_drawn_less_often():
    """Drawing takes one second here: at most a twentieth of the time goes to it."""
    clock = Clock()

    class Slow(Tty):
        def write(self, text):
            clock.now += 1.0
            return super().write(text)

    file = Slow()
    for _ in loop.progress(range(100), file=file, clock=clock):
        clock.now += 1.0
    assert file.getvalue().count("\r") <= 2 + 100 // 20


def test_what_has_no_length():
    file = io.StringIO()
    bar = ran((number for number in [2.0, 1.0]), file, label="stream")
    assert file.getvalue() == "stream 2 loss 1 (2 s)\n"
    with pytest.raises(TypeError, match="has no length"):
        len(bar)
    file = io.StringIO()
    ran((number for number in [2.0, 1.0]), file, total=4)
    assert file.getvalue() == "2/4 50% loss 1 (2 s)\n"


def test_nested_loops_share_a_line_and_a_curve():
    file, clock = io.StringIO(), Clock()
    inner = []
    for epoch in (outer := loop.progress(range(3), "epoch", file=file, clock=clock)):
        for batch in (bar := loop.progress(range(4), "batch", clock=clock)):
            clock.now += 1
            bar.log(loss=1 / (1 + 4 * epoch + batch), accuracy=epoch)
        inner.append(bar)
    assert file.getvalue() == "epoch 3/3  batch 4/4 100% loss 0.08333 accuracy 2 (12 s)\n"
    assert [bar.history["loss"] for bar in inner] == [
        [1 / (1 + 4 * epoch + batch) for batch in range(4)] for epoch in range(3)
    ]
    assert outer.history == {}
    assert len(outer._trail["loss"].settled()) == 12


def test_a_loop_that_is_left_is_closed():
    file = io.StringIO()
    for number in (bar := loop.progress(range(9), file=file)):
        if number == 3:
            break
    assert (bar.done, bar.stopped) == (3, False)
    assert file.getvalue().startswith("3/9 33%")
    with pytest.raises(ZeroDivisionError):
        [1 / (number - 2) for number in loop.progress(range(9), file=file)]
    for _ in loop.progress(range(2), "alone", file=file):
        pass
    assert file.getvalue().splitlines()[-1].startswith("alone 2/2 100%")


def test_another_thread_has_a_bar_of_its_own():
    ours, theirs = io.StringIO(), io.StringIO()
    for _ in loop.progress(range(1), "ours", file=ours):
        work = lambda: list(loop.progress(range(2), "theirs", file=theirs))  # noqa: E731
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert theirs.getvalue().startswith("theirs 2/2")
    assert ours.getvalue().startswith("ours 1/1")


def test_a_terminal_without_blocks_gets_letters():
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, "ascii", write_through=True)
    ran([1.0] * 100, file, label="épreuve")
    first, *_, last = raw.getvalue().decode("ascii").splitlines()
    assert first == "?preuve 30/100 ###        30% loss 1 (30 s, 1 min 10 s left)"
    assert last == "?preuve 100/100 100% loss 1 (1 min 40 s)"


def test_a_file_that_is_closed_does_not_end_the_training():
    file, seen = io.StringIO(), []
    for number in (bar := loop.progress(range(3), file=file)):
        file.close()
        seen.append(number)
    assert (seen, bar.done) == ([0, 1, 2], 3)


def test_an_error_of_the_items_is_theirs():
    def broken():
        yield 1
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        list(loop.progress(broken(), file=io.StringIO()))


def test_another_thread_may_use_it():
    found = []
    thread = threading.Thread(
        target=lambda: found.extend(loop.progress(range(3), file=io.StringIO()))
    )
    thread.start()
    thread.join()
    assert found == [0, 1, 2]


# ----------------------------------------------------------------------------------- numbers


def test_tensors_are_logged_without_their_graph():
    weight = torch.ones(2, requires_grad=True)
    bar = loop.progress([1], file=io.StringIO())
    for _ in bar:
        loss = (weight * 3).sum()
        bar.log(loss=loss, accuracy=torch.tensor([0.5]), count=3)
    assert bar.history == {"loss": [6.0], "accuracy": [0.5], "count": [3.0]}


@pytest.mark.parametrize("broken", [float("nan"), float("inf"), torch.tensor(float("nan"))])
def test_a_loss_that_is_no_number_is_said_at_once_and_once(broken):
    file = io.StringIO()
    bar = loop.progress(range(6), "epoch", file=file)
    for turn in bar:
        bar.log(loss=broken if turn >= 2 else 1.0)
        if turn == 2:
            (now,) = file.getvalue().splitlines()
            assert f"loss was {float(broken)} in turn 3!" in now
    assert len(file.getvalue().splitlines()) == 2


def test_a_tensor_elsewhere_is_read_when_the_bar_is_drawn():
    """On an accelerator reading waits; the meta device would raise if it were read."""
    series = Series("loss")
    series.add(torch.empty((), device="meta"), turn=1)
    with pytest.raises((RuntimeError, NotImplementedError)):
        series.settled()


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (torch.ones(3), "a single number, got a tensor of shape (3,); log its .mean()."),
        ("low", "a number or a tensor of one, got 'low'."),
        (None, "got None"),
    ],
)
def test_what_is_no_number_is_a_sentence(number, says):
    bar = loop.progress([1], file=io.StringIO())
    with pytest.raises(UsageError) as caught:
        bar.log(loss=number)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: loop.progress(7), "such as a DataLoader, got 7"),
        (lambda: loop.progress([1], total="many"), "`total` as a whole number, got 'many'"),
        (lambda: loop.progress([1], total=-1), "got -1"),
    ],
)
def test_bad_input_is_a_sentence(call, says):
    with pytest.raises(UsageError) as caught:
        call()
    assert says in str(caught.value)


# -------------------------------------------------------------------------------- the picture


def test_the_page_is_html_without_script_or_style():
    bars = [Bar("<b>epoch</b>", 1, 3, 8.0), Bar("batch", 20, 40, 4.0, {"loss": [2.0, 1.0]})]
    text = page(bars, {"loss": [2.0, 1.0]})
    assert "<b>" not in text
    assert "&lt;b&gt;epoch" in text
    assert not re.search(r"<(script|style|link|iframe)|\bon\w+=|\bid=", text)
    assert text.count("<progress") == 2
    assert 'aria-label="loss over 2 turns: 2 to 1"' in text


def test_the_curve_keeps_its_peaks_and_breaks_at_what_is_no_number():
    numbers = [1.0] * 10_000
    numbers[7_777], numbers[5_000] = 9.0, math.nan
    text = page([Bar("", 1, 1, 1.0)], {"loss": numbers})
    (path,) = re.findall(r'<path d="(M[^"]*)" fill="none" stroke="#1f8fd6"', text)
    points = re.findall(r"([ML])([\d.]+) ([\d.]+)", path)
    assert len(points) <= 260
    assert min(float(y) for _, _, y in points) == 6.0  # the top of the picture: the highest
    assert len(text) < 8_000
    assert [pen for pen, *_ in points].count("M") == 2


@pytest.mark.parametrize("trail", [{}, {"loss": []}, {"loss": [1.0]}, {"loss": [math.nan] * 3}])
def test_no_curve_of_nothing(trail):
    assert "<svg" not in page([Bar("", 1, 1, 1.0)], trail)


def test_a_stopped_loop_says_so():
    bars = [Bar("epoch", 1, 3, 9.0, stopped=True), Bar("batch", 7, 40, 2.0, stopped=True)]
    assert line(bars, last=True) == "epoch 1/3  batch 7/40 18% stopped after turn 7 (9 s)"
    assert "stopped after turn 7" in page(bars, {})


@pytest.mark.parametrize("number", [torch.tensor(1 + 2j), 10**400, 1j, None, {}])
def test_what_is_no_number_is_refused_in_words(number):
    with pytest.raises(UsageError, match=r"expected a (real )?number"):
        ran([1], io.StringIO(), log=lambda _: {"loss": number})


class Sized:
    """Its length is an error of its own."""

    def __init__(self, error):
        self.error = error

    def __len__(self):
        raise self.error

    def __iter__(self):
        return iter([1, 2])


@pytest.mark.parametrize("error", [NotImplementedError(), ValueError("x"), AttributeError("y")])
def test_items_whose_length_is_an_error_have_none(error):
    assert ran(Sized(error), io.StringIO()).done == 2


@pytest.mark.parametrize("file", ["log.txt", 3])
def test_a_file_that_is_none_is_refused_before_the_loop(file):
    with pytest.raises(UsageError, match="expected `file` as an open file"):
        loop.progress([1], file=file)


def test_a_closed_file_or_none_ends_no_training(monkeypatch):
    closed = io.StringIO()
    closed.close()
    assert ran([1, 2], closed).done == 2
    monkeypatch.setattr("sys.stderr", None)
    assert ran([1, 2], None).done == 2


def test_a_bar_gone_through_inside_itself_comes_to_an_end():
    bar = loop.progress([1, 2], file=io.StringIO())
    assert [(a, b) for a in bar for b in bar] == [(1, 1), (1, 2), (2, 1), (2, 2)]
