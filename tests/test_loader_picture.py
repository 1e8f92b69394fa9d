"""The picture of a loader: what is drawn is what was measured, and the slider really measures."""

import re
from base64 import b64decode

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

import pytorch_lab as lab
from pytorch_lab.dataloader import BatchTimes, LoaderTimeline, Trial, time_loader
from pytorch_lab.errors import UsageError
from pytorch_lab.widgets.loader import LEFT, RIGHT, LoaderPicture


class Rows(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return torch.full((2,), float(index))


class NotInWorkers(Rows):
    def __getitem__(self, index):
        if get_worker_info() is not None:
            raise ValueError("not here")
        return index


def batch(number, worker, start, made, asked, got, done):
    return BatchTimes(
        number, worker, (start, made - 1), (made - 1, made), None, (asked, got), None, (got, done)
    )


# Two workers; the model waits for batch 0 and 1, and batch 2 lies ready.
SEEN = LoaderTimeline(
    "DataLoader(...)", 2, 4, True,
    (batch(0, 0, 2, 20, 0, 22, 40), batch(1, 1, 2, 50, 40, 52, 70),
     batch(2, 0, 21, 40, 70, 71, 90)), 1,
    trials=(Trial(0, 60.0, 0.7), Trial(2, 25.0, 0.26), Trial(4, None, None, trouble="It broke.")),
)  # fmt: skip


def pieces(state, lane):
    found = next(one for one in state["lanes"] if one["name"] == lane)
    return {(kind, number): (x, x + width) for kind, x, width, number in found["pieces"]}


def test_a_piece_lies_where_its_time_is():
    state = LoaderPicture(SEEN).state
    assert [lane["name"] for lane in state["lanes"]] == ["worker 0", "worker 1", "model"]

    def at(ms):
        return pytest.approx(LEFT + (RIGHT - LEFT) * ms / 90, abs=0.11)

    own, model = pieces(state, "worker 0"), pieces(state, "model")
    assert own["fetch", 0] == (at(2), at(19))
    assert own["collate", 2] == (at(39), at(40))
    assert model["wait", 1] == (at(40), at(52))
    assert model["use", 2] == (at(71), at(90))
    assert state["links"][2] == [at(40), at(71)]
    for lane in state["lanes"]:
        assert all(x >= LEFT and x + width <= RIGHT + 0.6 for _, x, width, _ in lane["pieces"])


def test_who_waited_for_whom_is_said():
    said = LoaderPicture(SEEN).state["batches"]
    assert said[1] == (
        "batch 1: worker 1 made it in 48.0 ms; the model waited 12.0 ms for it; "
        "the step took 18.0 ms."
    )
    assert "it was ready 30.0 ms before the model asked" in said[2]


def test_a_long_start_is_left_out():
    late = LoaderTimeline("", 1, 2, True, (batch(0, 0, 80, 90, 0, 91, 100),), 0)
    state = LoaderPicture(late).state
    assert state["begin"] == "80"
    assert pieces(state, "worker 0")["fetch", 0][0] == LEFT
    assert pieces(state, "model")["wait", 0][0] == LEFT
    assert LoaderPicture(SEEN).state["begin"] == ""


def test_bars_tell_time_and_share():
    first, own, broken = LoaderPicture(SEEN).state["trials"]
    assert sum(first["bar"]) == 220  # the longest
    assert first["bar"][0] == pytest.approx(0.7 * 220)
    assert sum(own["bar"]) == pytest.approx(220 * 25 / 60, abs=0.1)
    assert (own["here"], own["waits"], first["here"]) == (True, "26 %", False)
    assert (broken["ms"], broken["bar"], broken["trouble"]) == ("failed", [0.0, 0.0], "It broke.")


def test_many_batches_are_counted_but_not_all_drawn():
    many = tuple(
        batch(k, 0, 10 * k, 10 * k + 5, 10 * k, 10 * k + 6, 10 * k + 9) for k in range(150)
    )
    state = LoaderPicture(LoaderTimeline("", 1, 2, True, many, 1)).state
    assert (len(state["batches"]), state["left_out"]) == (100, 50)


def test_without_a_step_nobody_waits():
    seen = time_loader(DataLoader(Rows()), batches=2, workers=())
    state = lab.show(seen).state
    assert (state["waits"], state["share"], state["good"]) == (None, None, False)
    assert state["trials"][0]["waits"] == ""


def test_an_empty_loader_is_drawn_too():
    widget = lab.show(DataLoader([]))
    assert widget.state["batches"] == []
    assert "Too few batches came" in str(widget)
    assert "<img alt=" in widget.to_html()


def test_the_still_picture_is_stable_and_says_the_same():
    html = LoaderPicture(SEEN).to_html()
    assert html == LoaderPicture(SEEN).to_html()
    drawn = b64decode(re.search(r"base64,([^\"]+)", html)[1]).decode()
    for words in ("worker 1", "model", "fetches samples", "25.0 ms, waits 26 %", "failed"):
        assert words in drawn
    assert str(LoaderPicture(SEEN)) == str(SEEN)


# ------------------------------------------------------------------------------- measuring


def ask(widget, workers):
    widget._answer(widget, {"ask": "measure", "with": {"workers": workers}}, [])


def test_the_slider_measures_anew():
    steps = []
    widget = lab.show(DataLoader(Rows(), batch_size=3), steps.append, batches=3)
    assert len(steps) == 3
    assert (widget.state["workers"], len(widget.state["lanes"])) == (0, 1)
    assert widget.state["verdict"].endswith("of the time. Move `num_workers` to try others.")
    assert "try others" not in str(widget)
    ask(widget, 2)
    assert len(steps) == 6
    assert (widget.state["workers"], len(widget.state["lanes"])) == (2, 3)
    assert [row["workers"] for row in widget.state["trials"]] == [0, 2]
    assert "num_workers=2" in widget.state["title"]
    assert not re.search("was tried|try others", widget.state["verdict"])
    ask(widget, 0)
    assert [row["here"] for row in widget.state["trials"]] == [True, False]
    before = widget.state
    for strange in ("x", 1.5, -1, None, True):
        ask(widget, strange)
    assert widget.state == before


def test_a_measurement_that_fails_is_said_in_the_picture():
    widget = lab.show(DataLoader(NotInWorkers()), batches=2)
    ask(widget, 1)
    assert "ValueError in worker 0" in widget.state["trouble"]
    assert [row["ms"] == "failed" for row in widget.state["trials"]] == [False, True]
    assert widget.state["workers"] == 0
    ask(widget, 0)
    assert widget.state["trouble"] is None


def test_a_record_alone_has_no_slider_and_a_target_wants_to_be_reached():
    assert lab.show(SEEN).state["most"] is None
    ask(lab.show(SEEN), 1)
    reached = [LoaderPicture(SEEN, target=share).state["reached"] for share in (0.2, 0.4)]
    assert reached == [False, True]
    # A target that is reached is no trouble, though the model is not quite fed.
    assert [LoaderPicture(SEEN, target=t).state["good"] for t in (0.2, 0.4)] == [False, True]
    for target in (0, 1, "much", 40):
        with pytest.raises(UsageError, match="between 0 and 1, got"):
            LoaderPicture(SEEN, target=target)
    with pytest.raises(UsageError, match="expected the LoaderTimeline alone"):
        lab.show(SEEN, print)
