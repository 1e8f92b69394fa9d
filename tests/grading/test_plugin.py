"""What the plugin makes of outputs and tracebacks. No kernel runs here."""

import os
import subprocess
import sys

import nbformat
import pytest

from pytorch_lab.checks.compare import encode
from pytorch_lab.grading.running.kernel import (
    OUTPUT_BYTES,
    OUTPUT_MESSAGES,
    TimedOut,
    WatchedKernel,
)
from pytorch_lab.grading.running.overlay import MIME
from pytorch_lab.grading.running.values import bounded, judge, reveals, text
from pytorch_lab.grading.trouble import one_line, trouble


def value(label, x):
    return {"label": label, "value": encode(x)}


A, B = value("a", 1), value("b", [2.0])


def shown(data):
    return nbformat.v4.new_output("display_data", data)


@pytest.mark.parametrize(
    ("got", "says"),
    [
        ([A, B], ""),
        ([A], "the check came to no end: expected the value 'b', got none"),
        ([], "the check came to no end: expected the value 'a', got none"),
        ([A, B, B], "expected 2 values, got 3: something else revealed a value"),
        ([B, A], "expected the value 'a', got 'b'"),
        ([value("a", 2), B], "a: expected 1, got 2"),
        ([value("a", 1.0), B], "a: expected an int, got a float"),
        ([A, value("b", [2.0000001])], ""),
        ([A, value("b", [2.001])], "b[0]: expected 2, got 2.001"),
        ([A, {"label": "b"}], "b: expected a list of 1 item, got something unreadable"),
        ([7, B], "expected the value 'a', got 'None'"),
        ([{"label": ["a"]}, B], "expected the value 'a', got \"['a']\""),
    ],
)
def test_values_are_judged_in_their_order(got, says):
    found = judge(got, [A, B])
    assert found.startswith(says)
    assert bool(found) == bool(says)


def test_only_our_mime_type_counts():
    outputs = [
        nbformat.v4.new_output("stream", name="stderr", text="warning"),
        shown({"text/plain": "a"}),
        shown({MIME: A, "text/plain": "a: int"}),
        nbformat.v4.new_output("execute_result", {MIME: B}),
        nbformat.v4.new_output("error", ename="E", evalue="", traceback=[]),
    ]
    assert reveals(outputs) == [A, B]
    assert type(reveals(outputs)[0]) is dict


def test_what_is_carried_along_is_bounded():
    assert bounded([A, B]) == [A, B]
    assert bounded([value("a", "x" * 9_000)] * 9) == []
    assert len(text([nbformat.v4.new_output("stream", text="x" * 5_000)])) == 4_000


def error(name, said, *traceback):
    return {"ename": name, "evalue": said, "traceback": list(traceback)}


ANSWER = "def f(x):\n    y = x\n    return y.nope"


@pytest.mark.parametrize(
    ("raised", "says"),
    [
        (error("KeyError", "'a'"), ("raised", "KeyError: 'a'")),
        (error("KeyError", ""), ("raised", "KeyError")),
        (
            error("E", "x", "----> 3 f(1)", "\x1b[32m----> 3\x1b[39m     return y.nope"),
            ("raised", "E in line 3, return y.nope: x"),
        ),
        (
            error("E", "x", "----> 3     return y.nope", "--> 134 inner()"),
            ("raised", "E in line 3, return y.nope: x"),
        ),
        (error("E", "x", "----> 2     return y.nope"), ("raised", "E: x")),
        (
            error("SyntaxError", "bad (12.py, line 2)"),
            ("raised", "SyntaxError in line 2, y = x: bad"),
        ),
        (error("SyntaxError", "bad (12.py, line 9)"), ("raised", "SyntaxError in line 9: bad")),
        (error("UsageError", "reveal(...) got x"), ("failed", "reveal(...) got x")),
        (
            error("E\n=1", "\x1b[31ma\x07\tb\n" + "c" * 900),
            ("raised", "E =1: a b " + "c" * 389 + "…"),
        ),
    ],
)
def test_an_error_is_told_with_the_students_line(raised, says):
    assert trouble(raised, ["x = 1", ANSWER]) == says


def test_one_line_is_one_printable_line():
    assert one_line("a\r\nb\u2028c\x00\u202ed") == "a b cd"


@pytest.mark.parametrize(
    ("load", "built"), [("pytorch_lab.grading.running.plugin", "False"), ("nbformat", "True")]
)
def test_no_grammar_of_web_addresses_is_built(load, built):
    code = f"import sys, {load}; print('lark' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == built


def message(kind, parent="now", **content):
    return {"msg_type": kind, "content": content, "parent_header": {"msg_id": parent}}


def listening(seconds=60):
    kernel = WatchedKernel.__new__(WatchedKernel)
    kernel.expect("now", seconds)
    return kernel


def kinds(kernel):
    return [m["msg_type"] for m in kernel.shown]


def test_output_is_bounded_and_the_end_still_seen():
    kernel = listening()
    kernel._keep(message("stream", text="kept"))
    kernel._keep(message("stream", parent="earlier", text="x" * OUTPUT_BYTES))
    assert not kernel.was_cut
    kernel._keep(message("stream", text="x" * OUTPUT_BYTES))
    kernel._keep(message("display_data", data={"text/plain": "cut"}))
    kernel._keep(message("comm_msg", data={}))
    kernel._keep(message("error", ename="E"))
    kernel._keep(message("status", execution_state="idle"))
    assert kernel.was_cut
    assert kinds(kernel) == ["stream", "error", "status"]


@pytest.mark.parametrize(
    ("flood", "times", "kept"),
    [
        (message("status", execution_state="busy"), 10_001, []),
        (message("status", execution_state="idle"), 10_001, ["status"]),
        (message("error", ename="E", traceback=["x" * 2_000]), 600, ["error"]),
        (message("comm_msg", data={"a": "x" * 2_000}), 600, []),
        (message("display_data", data={}), 20_000, ["display_data"] * OUTPUT_MESSAGES),
    ],
    ids=["busy", "idle", "errors", "comms", "displays"],
)
def test_every_message_counts_whatever_its_kind(flood, times, kept):
    kernel = listening()
    for _ in range(times):
        kernel._keep(flood)
    assert kinds(kernel) == kept
    assert kernel.was_cut


def test_one_clock_for_the_reply_and_what_is_shown(monkeypatch):
    """A kernel that never says "idle" is given up when the cell's time is over."""
    kernel = listening(seconds=0)
    monkeypatch.setattr(kernel, "is_alive", lambda: True)
    monkeypatch.setattr(kernel, "_read_iopub", lambda: None)
    with pytest.raises(TimedOut):
        kernel.get_message("iopub", timeout=60)
