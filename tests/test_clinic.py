"""clinic: that the patient is ill, that the fix heals, and what a learner's code is told."""

import base64
import json
import re
from xml.etree import ElementTree

import pytest

import pytorch_lab as lab
from pytorch_lab.errors import UsageError

BROKEN = "from torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n" \
         "        self.layer = nn.Linear(2, 1)\n\nnet = Net()"  # fmt: skip
FIX = BROKEN.replace("        self.layer", "        super().__init__()\n        self.layer")
CAUSES = {"no `super().__init__()`": "The registries are made there.", "too few": "It is fine."}
DESCENT = (
    "x, losses = 4.0, []\nfor step in range(5):\n    losses.append(x * x)\n    x += 0.25 * x\n"
)


def patient(**changes):
    arguments = {
        "id": "03.c1", "title": "It cannot be built", "code": BROKEN, "fix": FIX,
        "healed": "len(list(net.parameters())) == 2", "causes": CAUSES,
        "cause": "no `super().__init__()`",
    }  # fmt: skip
    return lab.clinic(**arguments | changes)


def climber(**changes):
    arguments = {
        "id": "12.c1", "title": "The loss climbs", "code": DESCENT, "measure": "losses[-1]",
        "fix": DESCENT.replace("x +=", "x -="), "healed": "losses[-1] < losses[0]",
        "causes": {"sign": "It goes uphill.", "rate": "It is small."}, "cause": "sign",
    }  # fmt: skip
    return lab.clinic(**arguments | changes)


REFUSED = {
    "not broken": (
        {"code": FIX},
        "clinic('03.c1') expected `code` that is broken, got one for which "
        "`len(list(net.parameters())) == 2` is already true; break it, or ask for more in "
        "`healed`.",
    ),
    "fix raises": (
        {"fix": BROKEN},
        "clinic('03.c1') expected `len(list(net.parameters())) == 2` to be true for `fix`, but "
        "AttributeError: cannot assign module before Module.__init__() call\n  line 5: "
        "self.layer = nn.Linear(2, 1); heal the fix, or correct `healed`.",
    ),
    "fix does not heal": (
        {"healed": "len(list(net.parameters())) == 3", "measure": "net.layer.in_features"},
        "but it is false; `net.layer.in_features` is 2; heal the fix",
    ),
    "healed cannot be evaluated": (
        {"healed": "nett == 2"},
        "but NameError: name 'nett' is not defined; heal the fix",
    ),
    "healed is a statement": ({"healed": "x = 1"}, "`healed` as a Python expression, got 'x = 1'"),
    "measure is a statement": ({"measure": "x = 1"}, "`measure` as a Python expression"),
    "no code": ({"code": " "}, "clinic('03.c1') expected `code` as Python code, got ' '."),
    "no fix": ({"fix": None}, "clinic('03.c1') expected `fix` as Python code, got None."),
    "cause is none of them": ({"cause": "x"}, "expected `answer` to be one of its choices"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refuses(name):
    changes, message = REFUSED[name]
    with pytest.raises(UsageError) as caught:
        patient(**changes)
    assert message in str(caught.value)


def test_symptom_is_the_real_error():
    symptom = patient().state["symptom"]
    assert symptom["fault"] == {
        "type": "AttributeError",
        "message": "cannot assign module before Module.__init__() call",
        "line": 5,
        "source": "self.layer = nn.Linear(2, 1)",
    }


def test_symptom_is_the_real_curve():
    widget = climber()
    losses = [16.0 * 1.25 ** (2 * k) for k in range(5)]
    assert widget.symptom.losses == pytest.approx(losses)
    assert widget.state["symptom"]["value"] == f"{losses[-1]:.6g}"
    assert widget.state["curve"]["alt"] == "Loss over 5 steps: from 16 to 95.37."


@pytest.mark.parametrize(
    ("code", "healed", "doubt", "fault"),
    [
        (FIX, True, None, None),
        (BROKEN, False, None, "AttributeError"),
        ("net = 1", False, "AttributeError: 'int' object has no attribute 'parameters'", None),
        ("net = (", False, None, "SyntaxError"),
        ("", False, "NameError: name 'net' is not defined", None),
    ],
)
def test_runs_the_learners_code(code, healed, doubt, fault):
    widget = patient()
    widget.on_run(code)
    result = widget.state["result"]
    assert (result["healed"], result["doubt"]) == (healed, doubt)
    assert (result["run"]["fault"] or {}).get("type") == fault
    assert (widget.state["running"], widget.state["runs"]) == (False, 1)


def test_curve_beside_the_symptom():
    widget = climber()
    widget.on_run(widget.fix)
    assert [series["name"] for series in widget.state["result"]["curve"]["series"]] == [
        "before", "now",
    ]  # fmt: skip


def test_remembers(progress_file):
    widget = patient()
    widget.on_guess("too few")
    widget.on_guess("no `super().__init__()`")
    widget.on_run(FIX)
    known = json.loads(progress_file.read_text())["guesses"]["03.c1"]
    assert known == {
        "ask": "It cannot be built", "guess": "too few", "right": False,
        "answer": "no `super().__init__()`", "last": "no `super().__init__()`",
        "last_right": True, "tries": 2, "healed": True,
    }  # fmt: skip
    again = patient().state
    assert again["was_healed"] is True
    assert again["kept"]["last"] == "no `super().__init__()`"


def test_text():
    assert str(climber()) == (
        "Clinic: The loss climbs\n"
        "    x, losses = 4.0, []\n"
        "    for step in range(5):\n"
        "        losses.append(x * x)\n"
        "        x += 0.25 * x\n"
        "What happens:\n"
        "    losses[-1] → 95.3674\n"
        "What is the cause?\n"
        "  ( ) sign\n"
        "  ( ) rate"
    )


def test_html_shows_the_symptom_and_folds_the_cause():
    page = patient().to_html()
    shown, answer, fix = page.split("<details>")
    assert "cannot assign module before Module.__init__() call\n  line 5: self.layer" in shown
    assert "super().__init__()\n" not in shown
    assert "✓ Right:" in answer
    assert "super().__init__()\n" in fix
    assert patient().to_html() == page


def test_html_holds_the_curve_as_an_image():
    page = climber().to_html()
    found = re.findall(r'<img alt="([^"]+)" .*?base64,([^"]+)">', page)
    assert [alt for alt, _ in found] == ["Loss over 5 steps: from 16 to 95.37."]
    svg = ElementTree.fromstring(base64.b64decode(found[0][1]))
    assert svg.find("{*}title").text == found[0][0]
    assert not [e for e in svg.iter() if "style" in e.attrib or "class" in e.attrib]
