"""The panel of an exercise: what the course says, what is remembered, in a real kernel too."""

import json
import subprocess
import sys

import pytest

from pytorch_lab import course, progress
from pytorch_lab.checks import panel, registry, reveals, sources
from tests.cells import HINTS, Notebook

# ---------------------------------------------------------------- the course's notebooks


def make_notebook(file, answer, **more):
    def cell(kind, source, grade_id=None, **metadata):
        about = {"nbgrader": {"grade_id": grade_id, **metadata}} if grade_id else {}
        return {"cell_type": kind, "metadata": about, "source": source}

    cells = [
        cell("markdown", "# Title"),
        cell("markdown", "## 03.2 · A tower of `any` height\n\ntask", "03-2-task"),
        cell("code", answer.splitlines(keepends=True), "03-2"),
        cell("code", "", "03-2-hidden", points=4),
    ]
    file.write_text(json.dumps({"cells": cells} | more))
    return file


ANSWER = '''class Tower:
    """A tower."""

    def __init__(self):
        ### BEGIN SOLUTION
        self.a = 1
        self.b = 2
        ### END SOLUTION

    def forward(self):
        ### BEGIN SOLUTION
        return self.a
        ### END SOLUTION
'''


def test_what_the_course_says_about_an_exercise(tmp_path):
    found = sources.read(make_notebook(tmp_path / "a.ipynb", ANSWER), "03.2")
    assert found.title == "A tower of `any` height"
    assert found.points == 4
    assert found.solution == (
        'class Tower:\n    """A tower."""\n\n    def __init__(self):\n        self.a = 1\n'
        "        self.b = 2\n\n    def forward(self):\n        return self.a"
    )
    assert found.stub == (
        'class Tower:\n    """A tower."""\n\n    def __init__(self):\n        # YOUR CODE HERE\n'
        "        raise NotImplementedError()\n\n    def forward(self):\n        # YOUR CODE HERE\n"
        "        raise NotImplementedError()"
    )


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 3}', '{"cells": [{}, 4]}', "\x00"])
def test_a_broken_notebook_says_nothing(tmp_path, text):
    file = tmp_path / "a.ipynb"
    file.write_text(text)
    assert sources.read(file, "03.2") == sources.Source()
    assert sources.read(tmp_path / "none.ipynb", "03.2") == sources.Source()


def test_an_answer_without_marks_is_no_solution(tmp_path):
    found = sources.read(make_notebook(tmp_path / "a.ipynb", "x = 1"), "03.2")
    assert (found.solution, found.stub, found.points) == (None, None, 4)


def test_an_exercise_that_the_course_does_not_have(monkeypatch):
    assert sources.find("99.1") == sources.Source()
    monkeypatch.setattr(course, "_PACKAGE", course._PACKAGE / "nowhere" / "at" / "all")
    assert sources.find("03.2") == sources.Source()


# ---------------------------------------------------------------- the panel

SOURCE = sources.Source("Twice as much", 3, "the stub", "the solution")
WRONG, RIGHT = "def double(x):\n    return x\n", "def double(x):\n    return 2 * x\n"


@pytest.fixture
def book(monkeypatch):
    monkeypatch.setattr(registry, "_checks", {})
    notebook = Notebook()
    monkeypatch.setattr(sources, "find", lambda _exercise: SOURCE)
    notebook.check()
    return notebook


def press(widget, button):
    widget._answer(widget, {"ask": "press", "with": {"button": button}}, [])
    return widget.state


def remembered():
    return progress.read()["exercises"].get("00.1")


def test_the_panel_tells_the_verdict_in_every_form(book):
    book.cell(WRONG)
    widget = panel.exercise("00.1")
    assert str(widget) == (
        "00.1 ✗ not yet: Adding is not doubling. (double(5): expected 10, got 5)"
    )
    html = widget.to_html()
    for part in ("Exercise 00.1 · Twice as much", "3 points", "✗ not yet", "expected 10, got 5"):
        assert part in html
    data, _ = widget._repr_mimebundle_()
    assert data["application/vnd.pytorch-lab.verdict+json"] == {
        "exercise": "00.1",
        "state": "failed",
        "message": "Adding is not doubling. (double(5): expected 10, got 5)",
    }
    assert data["text/plain"] == str(widget)
    assert data["text/html"] == html
    assert "application/vnd.jupyter.widget-view+json" in data


def test_the_static_form_escapes_what_the_answer_says(book):
    book.cell("def double(x):\n    raise ValueError('<script>alert(1)</script> **b**')\n")
    html = panel.exercise("00.1").to_html()
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt; **b**" in html


def test_long_messages_are_wrapped_for_a_terminal(book):
    book.cell(f"def double(x):\n    raise ValueError({'many words ' * 20!r})\n")
    assert max(map(len, str(panel.exercise("00.1")).splitlines())) <= 80


def test_a_stub_is_no_try(book):
    widget = panel.exercise("00.1")
    assert press(widget, "check")["tries"] == 0
    assert remembered() is None


def test_tries_count_wrong_answers_and_open_the_solution(book):
    book.cell(WRONG)
    widget = panel.exercise("00.1")
    assert widget.state["tries"] == 1
    assert panel.exercise("00.1").state["tries"] == 1, "running the same cell again is no new try"
    for tries in (2, 3):
        assert press(widget, "check")["tries"] == tries
    assert widget.state["solution"] == {
        "enabled": False,
        "reason": "The solution opens when you pass, or after 2 more tries.",
        "text": None,
    }
    assert press(widget, "solution")["solution"]["text"] is None
    press(widget, "check")
    assert widget.state["solution"]["reason"].endswith("after 1 more try.")
    press(widget, "check")
    assert widget.state["solution"] == {"enabled": True, "reason": "", "text": None}
    assert press(widget, "solution")["solution"]["text"] == "the solution"
    assert press(widget, "check")["solution"]["text"] == "the solution", "it stays open"
    assert remembered()["tries"] == 6


def test_another_error_in_the_same_cell_is_a_new_try(book):
    book.cell(WRONG)
    panel.exercise("00.1")
    book.cell("def double(x):\n    return x + 1\n")
    assert panel.exercise("00.1").state["tries"] == 2


def test_a_pass_opens_the_solution_and_is_kept(book):
    book.cell(RIGHT)
    widget = panel.exercise("00.1")
    assert widget.state["tries"] == 0
    assert widget.state["why"] == (
        "Everything that the check asks holds. Compare your way with the solution's."
    )
    assert press(widget, "solution")["solution"]["text"] == "the solution"
    book.cell(WRONG)
    assert press(widget, "check")["solution"]["enabled"]
    assert remembered()["state"] == "failed"
    assert remembered()["passed"]
    del book.names["double"]
    fresh = panel.exercise("00.1").state
    assert fresh["why"].endswith("defines it. You have passed this exercise before.")


def test_hints_come_one_by_one_and_are_remembered(book):
    widget = panel.exercise("00.1")
    assert widget.state["hints"] == []
    assert press(widget, "hint")["hints"] == ["Look."]
    assert press(widget, "hint")["hints"] == ["Look.", "Look at `x`."]
    assert panel.exercise("00.1").state["hints"] == ["Look.", "Look at `x`."]
    for _ in range(3):
        press(widget, "hint")
    assert widget.state["hints"] == list(HINTS)
    assert remembered()["hints"] == 3


def test_reset_forgets_and_shows_the_stub(book):
    book.cell(WRONG)
    widget = panel.exercise("00.1")
    for button in ("check", "check", "check", "check", "hint", "solution"):
        press(widget, button)
    state = press(widget, "reset")
    assert (state["state"], state["tries"], state["hints"]) == ("open", 0, [])
    assert state["stub"] == "the stub"
    assert state["solution"]["text"] is None
    assert not state["solution"]["enabled"]
    assert remembered() == {"state": "open", "tries": 0, "hints": 0, "passed": False, "said": ""}
    assert book.names["double"](5) == 5, "the learner's own answer is as it was"
    assert press(widget, "check")["stub"] is None
    assert widget.state["tries"] == 1


def test_a_course_without_solutions(book, monkeypatch):
    monkeypatch.setattr(sources, "find", lambda _exercise: sources.Source())
    book.cell(RIGHT)
    widget = panel.exercise("00.1")
    reason = "This copy of the course carries no solution."
    assert widget.state["solution"] == {"enabled": False, "reason": reason, "text": None}
    assert press(widget, "solution")["solution"]["text"] is None
    assert widget.state["why"] == "Everything that the check asks holds."
    assert press(widget, "reset")["stub"] is None


def test_the_panel_works_where_nothing_can_be_written(book, monkeypatch, tmp_path):
    (tmp_path / "plain").write_text("")
    monkeypatch.setenv("PYTORCH_LAB_PROGRESS", str(tmp_path / "plain" / "progress.json"))
    book.cell(WRONG)
    widget = panel.exercise("00.1")
    assert widget.state["note"].startswith("expected to write your progress to ")
    for tries in (2, 3, 4, 5):
        assert press(widget, "check")["tries"] == tries
    assert press(widget, "hint")["hints"] == ["Look."]
    assert press(widget, "solution")["solution"]["text"] == "the solution"
    monkeypatch.setenv("PYTORCH_LAB_PROGRESS", str(tmp_path / "progress.json"))
    assert press(widget, "hint")["note"] == "", "it says so no longer when it works again"


def test_the_panel_works_where_nothing_can_be_read(book, monkeypatch, tmp_path):
    monkeypatch.setenv("PYTORCH_LAB_PROGRESS", str(tmp_path))
    book.cell(WRONG)
    widget = panel.exercise("00.1")
    assert widget.state["note"].startswith("expected to read your progress from ")
    assert press(widget, "check")["tries"] == 2


def test_two_panels_of_one_exercise_share_their_tries(book):
    book.cell(WRONG)
    one = panel.exercise("00.1")
    other = panel.exercise("00.1")
    press(one, "check")
    assert press(other, "check")["tries"] == 3


@pytest.mark.parametrize("entry", [{"tries": "many", "hints": None, "passed": 1}, {"x": 1}])
def test_a_file_edited_by_hand(book, entry):
    progress.remember("exercises", "00.1", **entry)
    book.cell(WRONG)
    assert panel.exercise("00.1").state["tries"] == 1


def test_hints_beyond_the_last(book):
    progress.remember("exercises", "00.1", hints=99, tries=-3)
    state = panel.exercise("00.1").state
    assert state["hints"] == list(HINTS)


def test_unknown_buttons_do_nothing(book):
    widget = panel.exercise("00.1")
    before = widget.state
    assert press(widget, "explode") == before


# ---------------------------------------------------------------- a real shell and a real kernel

SHELL = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
from pytorch_lab import progress
from pytorch_lab.checks import sources
shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
shell.run_cell("import pytorch_lab as lab\\nfrom pytorch_lab import checks\\nimport torch")
shell.run_cell('''
@checks.visible("03.2", hints=("a", "b", "c"))
def check(expect):
    expect.equal(double(5), 10, "Adding is not doubling.", name="double(5)")
''')
said = []
for body in ("raise NotImplementedError()", "return x + '?'", "return x", "return 2 * x"):
    shell.run_cell("# my answer\\n\\ndef double(x):\\n    " + body)
    shell.run_cell("panel = lab.exercise('03.2')")
    panel = shell.user_ns["panel"]
    data, _ = panel._repr_mimebundle_()
    said.append([data["application/vnd.pytorch-lab.verdict+json"], str(panel)])
shell.run_cell('''
import torch
from torch import nn

@checks.visible("01.4", hints=("a", "b", "c"))
def check(expect):
    expect.true(Smoother(2).gate.shape == (1,), "The gate has another shape.")
''')
stub = sources.find("01.4").stub
for answer in ("# later\\n" + stub + "\\n", stub.replace("item()", "detach()"), stub):
    shell.run_cell(answer, store_history=True)
    shell.run_cell("panel = lab.exercise('01.4')")
    panel = shell.user_ns["panel"]
    said.append([panel.on_press("check") or panel.state["state"], str(panel)])
sys.stdout = sys.__stdout__
print("RESULT" + json.dumps([said, progress.read()["exercises"]]))
"""


def test_stub_wrong_and_right_in_a_real_shell():
    done = subprocess.run([sys.executable, "-c", SHELL], capture_output=True, text=True, check=True)
    said, known = json.loads(done.stdout.split("RESULT")[1])
    said, repaired = said[:4], said[4:]
    assert [state for state, _ in repaired] == ["open", "failed", "open"]
    assert repaired[0][1].startswith("01.4 ○ open: Untouched: the answer is as it was given.")
    assert known["01.4"]["tries"] == 2, "one at the new panel, one with Check; none of the stub"
    verdicts = [verdict for verdict, _ in said]
    assert [v["state"] for v in verdicts] == ["open", "raised", "failed", "passed"]
    assert verdicts[0]["message"].startswith("Your turn: line 4 of the answer")
    assert verdicts[1]["message"].startswith("TypeError in your line 4, `return x + '?'`: ")
    assert said[3][1] == "03.2 ✓ passed"
    assert known["03.2"]["state"] == "passed"
    assert known["03.2"]["tries"] == 2


class Kernel:
    """A real kernel; `run` gives the messages that one request caused."""

    def __init__(self, folder):
        from jupyter_client.manager import start_new_kernel

        self.manager, self.client = start_new_kernel(cwd=str(folder))

    def messages(self, id, until=None):
        found = []
        while True:
            message = self.client.get_iopub_msg(timeout=60)
            if message["parent_header"].get("msg_id") != id:
                continue
            found.append(message)
            state = message["content"].get("execution_state")
            if state == "idle" or (until and until(message)):
                return found

    def run(self, code):
        return self.messages(self.client.execute(code))

    def send(self, comm, content, until=None):
        session = self.client.session
        data = {"method": "custom", "content": content}
        message = session.msg("comm_msg", {"comm_id": comm, "data": data})
        self.client.shell_channel.send(message)
        return self.messages(message["header"]["msg_id"], until)

    def close(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(tmp_path):
    found = Kernel(tmp_path)
    yield found
    found.close()


SETUP = """
import pytorch_lab as lab
from pytorch_lab import checks

@checks.visible("03.2", hints=("a", "b", "c"))
def check(expect):
    expect.equal(double(5), 10, "Adding is not doubling.", name="double(5)")
"""
ENDLESS = """
def double(x):
    lab.checks.reveal("started", 1)
    while True:
        x = x + 1
"""


@pytest.mark.heavy
def test_a_real_kernel_shows_reveals_and_survives_an_endless_loop(kernel, tmp_path):
    kernel.run(SETUP)
    [shown] = [m for m in kernel.run("checks.reveal('n', 3)") if m["msg_type"] == "display_data"]
    assert shown["content"]["data"] == {
        reveals.VALUE_MIME: {"label": "n", "value": {"is": "int", "value": 3}},
        "text/plain": "n: int",
    }
    [out] = [m for m in kernel.run("lab.exercise('03.2')") if m["msg_type"] == "execute_result"]
    data = out["content"]["data"]
    assert data["application/vnd.pytorch-lab.verdict+json"]["state"] == "open"
    comm = data["application/vnd.jupyter.widget-view+json"]["model_id"]

    kernel.run(ENDLESS)
    ask = {"ask": "press", "with": {"button": "check"}}
    kernel.send(comm, ask, until=lambda m: m["msg_type"] == "display_data")
    kernel.manager.interrupt_kernel()
    update = kernel.client.get_iopub_msg(timeout=60)
    while update["msg_type"] != "comm_msg":
        update = kernel.client.get_iopub_msg(timeout=60)
    state = update["content"]["data"]["state"]["state"]
    assert state["state"] == "raised"
    assert state["message"].startswith("Interrupted in your line ")
    assert state["evidence"] == "is there a loop that never ends?"

    kernel.run("def double(x):\n    return 2 * x")
    [update] = [m for m in kernel.send(comm, ask) if m["msg_type"] == "comm_msg"]
    assert update["content"]["data"]["state"]["state"]["state"] == "passed"
    known = json.loads((tmp_path / "progress.json").read_text())["exercises"]["03.2"]
    assert (known["state"], known["tries"]) == ("passed", 1)
