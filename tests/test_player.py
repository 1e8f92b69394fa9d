"""What the player is sent: columns that lose nothing, details, source, a page that asks nobody."""

import json
import math
import re
import zlib

import pytest
import torch

import pytorch_lab as lab
from pytorch_lab import graph
from pytorch_lab.errors import UsageError
from pytorch_lab.graph.schema import KINDS, Stats
from pytorch_lab.widgets import player_source, player_state
from pytorch_lab.widgets.base import asset
from pytorch_lab.widgets.player import Player
from tests.player_runs import trained_step


@pytest.fixture(scope="module")
def trained():
    return trained_step()


def sums(distances):
    total, found = 0, []
    for distance in distances:
        total += distance
        found.append(total)
    return found


def lists(flat):
    """[2, a, b, 0, 1, c] is [[a, b], [], [c]]."""
    found, at = [], 0
    while at < len(flat):
        found.append(flat[at + 1 : at + 1 + flat[at]])
        at += 1 + flat[at]
    return found


def left(x):
    s = (x * 2).sum()
    if s.item() > 0:  # an op without an output
        s = s + 1
    return s * 3


@pytest.mark.parametrize("case", ["trained", "left"])
def test_ops_come_back_from_their_columns(trained, case):
    if case == "left":
        trained = graph.record(left, torch.ones(2, requires_grad=True))
        assert any(not op.outputs for op in trained.ops)
    film = player_state.film(trained)
    ops, words = film["ops"], film["words"]
    assert [words[place] for place in ops["name"]] == [op.name for op in trained.ops]
    assert [tuple(KINDS)[place] for place in ops["kind"]] == [op.kind for op in trained.ops]
    sites = film["sites"]
    lines = sums(sites["line"])
    assert [lines[place] for place in sums(ops["site"])] == [op.line for op in trained.ops]
    last = 0
    for op, reads, makes in zip(
        trained.ops, lists(ops["inputs"]), lists(ops["outputs"]), strict=True
    ):
        assert tuple(last - back if back >= 0 else -1 - back for back in reads) == op.inputs
        assert tuple(last + on for on in makes) == op.outputs
        last = max((last, *op.outputs))
    assert [mode >> 1 for mode in ops["mode"]].count(1) == sum(
        op.grad_mode == "no_grad" for op in trained.ops
    )


def test_nodes_come_back_from_their_columns(trained):
    film = player_state.film(trained)
    nodes, words = film["nodes"], film["words"]
    order = player_state.node_order(trained)
    assert sorted(order) == list(range(len(trained.nodes)))
    assert [words[place] for place in nodes["name"]] == [trained.nodes[i].name for i in order]
    for place, ways in enumerate(lists(nodes["next"])):
        found = [order[-1 - way if way < 0 else place - way] for way in ways]
        assert tuple(found) == trained.nodes[order[place]].next
    assert [words[place] for place in nodes["parameter"]] == [
        trained.nodes[i].parameter for i in order[: nodes["leaves"]]
    ]
    assert tuple(order[place] for place in sums(film["order"])) == trained.backward_order
    assert sums(film["held"]) == [held for *_, held in trained.memory()]


def test_a_shade_is_within_a_fifth_of_what_it_stands_for():
    for number in (1e-9, 3.7e-4, 0.5, 1.0, 1234.0, 8e9):
        back = 2 ** ((player_state.shade(number) - 40 * player_state.OCTAVE) / player_state.OCTAVE)
        assert abs(math.log2(back / number)) <= 0.26
    assert player_state.shade(0.0) == 0
    assert player_state.shade(math.inf) == -2


def test_a_gradient_with_nan_or_inf_is_told_apart(trained):
    node = trained.nodes[trained.backward_order[0]]
    stats = Stats(0, 1, 0.5, 2.0, 0, 0, 0)
    assert player_state.gradient(node._replace(grads=(stats,))) == player_state.shade(2.0)
    assert player_state.gradient(node._replace(grads=(stats._replace(nan=1),))) == -1
    assert player_state.gradient(node._replace(grads=(stats._replace(inf=1),))) == -2
    assert player_state.gradient(node._replace(grads=(None,))) == -3


def test_source_has_the_functions_that_ran_and_nothing_else(trained):
    stretches = player_source.source(trained)
    text = "\n".join("\n".join(stretch["lines"]) for stretch in stretches)
    assert "def forward(self, x):" in text
    assert "return nn.functional.cross_entropy(net(x), y)" in text
    assert "def __init__" not in text
    assert "def trained" not in text
    for stretch in stretches:
        whole = trained.source(stretch["file"])
        first = stretch["first"] - 1
        assert whole[first : first + len(stretch["lines"])] == stretch["lines"]


def test_every_line_that_ran_is_in_the_source(trained):
    lines = {
        (stretch["file"], stretch["first"] + i)
        for stretch in player_source.source(trained)
        for i in range(len(stretch["lines"]))
    }
    assert {(op.file, op.line) for op in trained.ops} <= lines


def test_details_of_a_stretch_are_those_of_its_steps(trained):
    told = player_state.details(trained, 0, 1)
    op = trained.ops[0]
    assert set(told["values"]) == {str(value) for value in (*op.inputs, *op.outputs)}
    stats = trained.values[op.outputs[0]].stats
    assert told["values"][str(op.outputs[0])]["stats"][:2] == [
        float(f"{stats.min:.4g}"),
        float(f"{stats.max:.4g}"),
    ]
    last = player_state.n_steps(trained)
    back = player_state.details(trained, len(trained.ops), last)
    places = player_state.node_places(trained)
    assert {str(places[node]) for node in trained.backward_order} <= set(back["nodes"])


def test_details_know_the_formulas_of_their_nodes(trained):
    told = player_state.details(trained, 0, player_state.n_steps(trained))
    assert told["formulas"]["ReluBackward0"]["says"].startswith("y = ")


def test_saved_tensors_are_named_with_bytes_and_version(trained):
    node = next(node for node in trained.nodes if node.name == "ReluBackward0")
    place = player_state.node_places(trained)[node.index]
    saved = player_state.pick(trained, (), (node.index,))["nodes"][str(place)]["saved"]
    assert [each[:4] for each in saved] == [["result", [3, 8], "float32", 96]]


def test_a_node_brings_the_numbers_of_its_gradient(trained):
    places = player_state.node_places(trained)
    told = player_state.pick(trained, (), places)["nodes"]
    for node, place in places.items():
        (wanted,) = trained.nodes[node].numbers
        assert told[str(place)]["numbers"] == [[float(f"{n:.4g}") for n in wanted]]
    summary = graph.record(torch.exp, torch.ones(2, requires_grad=True), backward=True)
    told = player_state.pick(summary, (), range(2))["nodes"]
    assert not any("numbers" in node for node in told.values())


def test_numbers_that_json_does_not_have_are_sent_as_words():
    record = graph.record(lambda x: x.log(), torch.tensor([-1.0, 0.0, 1.0]), values="full")
    text = json.dumps(Player(record).state, allow_nan=False)
    assert '"nan"' in text
    assert '"-inf"' in text


def test_a_long_run_is_asked_for_details(trained, monkeypatch):
    monkeypatch.setattr("pytorch_lab.widgets.player.SENT_STEPS", 3)
    monkeypatch.setattr("pytorch_lab.widgets.player.SENT_LINES", 3)
    player = Player(trained)
    assert player.state["details"] is None
    assert player.state["source"] is None
    before = player.state
    player.on_details(film=0, first=0)
    assert set(player.answer) == {"film", "details"}
    player.on_node(film=0, node=0)
    assert list(player.answer["details"]["nodes"]) == ["0"]
    player.on_source()
    assert player.answer["source"] == [player_source.source(trained)]
    player.on_scene(view="autograd")
    assert player.answer["scenes"][0]["view"] == "autograd"
    assert player.state is before  # the film is sent once


def test_the_page_holds_everything_and_asks_nobody(trained, tmp_path):
    file = Player(trained).save(tmp_path / "run.html")
    page = file.read_text("utf-8")
    assert not re.search(r"https?://(?!www\.w3\.org/)", page)
    assert not re.search(r"\bsrc=|\bhref=\"http|@import|url\(", page)
    state = json.loads(re.search(r'id="state">(.*?)</script>', page, re.DOTALL)[1])
    assert set(state["scenes"]) == {"ops", "autograd"}
    assert len(state["details"][0]["values"]) == len(trained.values)
    assert all(node["numbers"] for node in state["details"][0]["nodes"].values())
    assert state["source"] == [player_source.source(trained)]


def test_a_page_keeps_a_closing_tag_in_the_source_as_text(tmp_path):
    def tricky(x):
        return x * len("</script><b>")

    page = Player(graph.record(tricky, torch.ones(2))).to_page()
    assert page.count("</script>") == 2
    assert "</script><b>" not in page


def test_the_same_record_gives_the_same_bytes(trained):
    assert json.dumps(Player(trained).state) == json.dumps(Player(trained).state)
    assert Player(trained).to_html() == Player(trained).to_html()


def test_without_a_kernel_there_is_a_picture_and_the_text(trained):
    player = Player(trained)
    assert player.to_html().startswith("<img ")
    assert "data:image/svg+xml;base64," in player.to_html()
    assert str(player) == str(trained)


def test_the_error_that_ended_a_run_is_said():
    def broken(x):
        h = x * 2
        return h @ torch.ones(7)

    state = Player(graph.record(broken, torch.ones(3))).state
    assert "RuntimeError" in state["error"]


def test_show_plays_records_and_tensors(trained):
    assert isinstance(lab.show(trained), Player)
    loss = (torch.ones(3, requires_grad=True) * 2).sum()
    player = lab.show(loss)
    assert player.state["views"] == ["autograd"]
    assert player.state["totals"].startswith("3 nodes")


def test_show_says_what_a_tensor_without_a_past_lacks():
    with pytest.raises(UsageError, match="expected a tensor with a grad_fn, got one without"):
        lab.show(torch.ones(3))
    with pytest.raises(UsageError, match="expected the record alone, got more beside it"):
        lab.show(graph.record(torch.relu, torch.ones(3)), 1)


def test_two_records_side_by_side():
    def branch(x):
        if x.sum() > 0:
            return (x * 2).relu()
        return x.sigmoid()

    diff = graph.compare(branch, torch.ones(3), -torch.ones(3))
    state = Player(diff).state
    assert state["labels"] == ["A", "B"]
    assert len(state["films"]) == 2
    assert state["diff"]["only"] == [list(diff.only_a), list(diff.only_b)]
    assert "1 only in B" in state["totals"]
    where = diff.branch.site.where
    assert state["totals"].endswith(f"if x.sum() > 0 at {where}: true in A, false in B")
    assert state["diff"]["lines"] == [[diff.branch.site.file, diff.branch.site.line]]


def test_scripts_and_styles_fit_in_sixty_kilobytes():
    stems = (*Player.shared, "player")
    sent = "".join(asset(f"{stem}.{kind}") for stem in stems for kind in ("js", "css"))
    assert len(zlib.compress(sent.encode(), 9)) < 60_000
