"""The progress bar: its figures under a hand-moved clock, in a log and on a terminal."""

import io
import re
import threading

import pytest

from pytorch_lab.grading.pages.meter import Meter


class Clock:
    """Seconds, moved by hand."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock():
    return Clock()


def run(meter, clock, students, seconds):
    for student in students:
        clock.now += seconds
        meter.heard(student)


def test_a_log_gets_how_many_how_fast_and_how_long_still(clock):
    log = io.StringIO()
    with Meter(log, clock) as meter:
        meter.begin(30)
        run(meter, clock, [f"s{n}" for n in range(30)], 2.0)
    lines = log.getvalue().splitlines()
    assert lines[0] == "3 of 30 · 30 a minute · 54 s left"
    assert lines[-1] == "30 of 30 · 30 a minute"
    assert len(lines) == 10


def test_a_slow_run_says_something_every_quarter_of_a_minute(clock):
    log = io.StringIO()
    with Meter(log, clock) as meter:
        meter.begin(5000)
        run(meter, clock, "abcd", 20.0)
    assert len(log.getvalue().splitlines()) == 4
    assert "· 27:45 h left" in log.getvalue()


def test_nothing_to_run_is_nothing_to_say(clock):
    for stream in (io.StringIO(), Terminal()):
        with Meter(stream, clock) as meter:
            meter.begin(0)
        assert stream.getvalue() == ""


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    return Terminal()


def screen(stream):
    """The lines that were drawn, without the terminal's sequences."""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    return [line for line in re.split(r"[\r\n]+", plain) if line.strip()]


def test_a_terminal_gets_one_line_of_at_most_eighty_columns(clock, terminal):
    with Meter(terminal, clock) as meter:
        meter.begin(4)
        run(meter, clock, ["Ada " + "very long " * 20] * 3, 1.0)
        meter._bar.refresh()
    drawn = screen(terminal)
    assert max(map(len, drawn)) <= 80
    assert any("3 of 4 · 60 a minute · 1 s left · Ada very" in line for line in drawn)
    assert drawn[-1].rstrip().endswith("3 of 4 · 60 a minute · 1 s left")


def test_a_terminal_says_what_is_waited_for_before_the_first_is_through(clock, terminal):
    with Meter(terminal, clock) as meter:
        meter.begin(27)
        clock.now += 12.0
        meter._bar.refresh()
    assert any("0 of 27 · starting, the solutions first" in line for line in screen(terminal))


def test_a_name_cannot_steer_the_terminal(clock, terminal):
    with Meter(terminal, clock) as meter:
        meter.begin(2)
        meter.heard("[red]x[/red]\x1b[2J\x1b]0;owned\x07\u202e\nnext")
        meter._bar.refresh()
    assert "\x1b[2J" not in terminal.getvalue()
    assert "\x1b]0;" not in terminal.getvalue()
    assert "\u202e" not in terminal.getvalue()
    assert any("[red]x[/red]" in line for line in screen(terminal))


def test_a_terminal_that_can_do_nothing_gets_lines(clock, terminal, monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    with Meter(terminal, clock) as meter:
        meter.begin(1)
        run(meter, clock, ["ada"], 1.0)
    assert terminal.getvalue() == "1 of 1 · 60 a minute\n"


def interrupted(meter):
    with meter:
        meter.begin(2)
        raise KeyboardInterrupt


def test_an_interrupt_leaves_the_cursor_as_it_was(clock, terminal):
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        interrupted(Meter(terminal, clock))
    assert terminal.getvalue().rstrip("\n").endswith("\x1b[?25h")
    for left in set(threading.enumerate()) - before:
        left.join(10)
    assert set(threading.enumerate()) <= before


def test_workers_may_report_at_the_same_time(clock):
    log = io.StringIO()
    with Meter(log, clock) as meter:
        meter.begin(400)
        clock.now += 60
        report = lambda: [meter.heard("x") for _ in range(100)]  # noqa: E731
        threads = [threading.Thread(target=report) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert log.getvalue().splitlines()[-1] == "400 of 400 · 400 a minute"
