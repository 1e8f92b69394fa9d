"""All widgets of a notebook share one page, and so all their style sheets.

A sheet that comes later must not change a widget that came before: each widget must look the same
alone and with the sheets of all others behind its own.
"""

import pytest
import torch
from torch import nn

import pytorch_lab as lab
from pytorch_lab.checkpoints import ResumeGap, Way
from pytorch_lab.dataloader import BatchTimes, Draw, LoaderTimeline, Trial, WorkerRandomness
from pytorch_lab.widgets.clinic import Clinic
from pytorch_lab.widgets.derivatives import Derivatives
from pytorch_lab.widgets.exercise import ExercisePanel
from pytorch_lab.widgets.gradient_check import GradientPicture
from pytorch_lab.widgets.loader import LoaderPicture
from pytorch_lab.widgets.loop import LoopPicture
from pytorch_lab.widgets.lr_curve import LrPicture
from pytorch_lab.widgets.order import Order
from pytorch_lab.widgets.param_groups import GroupsPicture
from pytorch_lab.widgets.player import Player
from pytorch_lab.widgets.predict import Predict
from pytorch_lab.widgets.race import Race
from pytorch_lab.widgets.randomness import RandomnessPicture
from pytorch_lab.widgets.recall import Recall
from pytorch_lab.widgets.resume import Resume
from pytorch_lab.widgets.xray import Xray


class Hiding(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = [nn.Linear(2, 2)]
        self.head = nn.Linear(2, 2)


ONE = BatchTimes(0, 0, (0, 4), (4, 5), None, (0, 6), None, (6, 9))
TRIED = (Trial(0, 9.0, 0.5), Trial(1, 7.0, 0.3))
TIMELINE = LoaderTimeline("DataLoader(...)", 1, 2, True, (ONE,), 0, trials=TRIED)
TWICE = tuple(Draw("torch", epoch, 0, 0, "fetch", 0.5, True, 0) for epoch in (0, 1))
DRAWN = WorkerRandomness("DataLoader(...)", 1, 2, ("torch",), (), TWICE)

WIDGETS = {
    "card": lambda: lab.card(
        "A title", goal="A goal.", minutes=5, needs=["a need"], changed=["a change"]
    ),
    "predict": lambda: lab.predict(
        "00.p1", "What?", choices={"a": "Why a.", "b": "Why b."}, answer="b"
    ),
    "order": lambda: lab.order(
        "00.o1", "Count", lines=["a = 1", "a = a + 1", "a = a * 5"], measure="a"
    ),
    "clinic": lambda: lab.clinic(
        "00.c1", "It raises", code="a = 1 / 0", measure="a", healed="a == 1", fix="a = 1 / 1",
        causes={"zero": "Yes.", "one": "No."}, cause="zero",
    ),
    "derivatives": lambda: lab.derivatives("00.d1", lambda a, b: a * b + b, a=2.0, b=3.0),
    "recall": lambda: lab.recall(
        "00.r", [{"ask": "What?", "choices": {"a": "Why a.", "b": "Why b."}, "answer": "b"}]
    ),
    "resume": lambda: lab.show(
        ResumeGap((2.0,), (1.0,), (Way("nothing", (), (1.5,), 0.5, 0),), (), 0.0, "model")
    ),
    "xray": lambda: lab.show(Hiding()),
    "loop": lambda: lab.show(lab.loop.run(turns=9)),
    "loader": lambda: LoaderPicture(TIMELINE),
    "randomness": lambda: RandomnessPicture(DRAWN),
    "gradient": lambda: lab.show(lab.customop.check(torch.sin, torch.zeros(2))),
    "groups": lambda: lab.show(torch.optim.SGD(Hiding().parameters()), Hiding()),
    "race": lambda: lab.show(lab.optim.trace_optimizer([torch.optim.Adam], "bowl")),
}  # fmt: skip
KINDS = (
    Predict, Order, Clinic, Recall, Derivatives, ExercisePanel, Player, Resume, Xray,
    GradientPicture, LoopPicture, LrPicture, Race, GroupsPicture, LoaderPicture, RandomnessPicture,
)  # fmt: skip
SHEETS = {kind._css for kind in KINDS}


@pytest.mark.parametrize("name", WIDGETS)
def test_no_sheet_of_another_widget_changes_it(stage, name):
    torch.manual_seed(0)
    view = stage(WIDGETS[name]())
    alone = view.root.screenshot()
    for sheet in sorted(SHEETS - {view.widget._css}):
        view.page.add_style_tag(content=sheet)
    assert view.root.screenshot() == alone
