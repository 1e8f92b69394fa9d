"""The checkpoints room in a page: the tree of a file, and the ways to resume."""

import numpy as np
import pytest
import torch
from playwright.sync_api import expect
from torch import nn

import pytorch_lab as lab
from pytorch_lab.checkpoints import ResumeGap, Way


def net(head=2):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, head))


@pytest.fixture(scope="module")
def widget(tmp_path_factory):
    """A file with a prefix, a view, a numpy number, another head and moments in another order."""
    file = tmp_path_factory.mktemp("checkpoint") / "best.pt"
    model = net()
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    table = torch.zeros(5000, 8)
    checkpoint = {
        "model": nn.DataParallel(model).state_dict(), "optimizer": optimizer.state_dict(),
        "best": np.float64(0.5), "rows": table[:3], "epoch": 7,
    }  # fmt: skip
    torch.save(checkpoint, file)
    other = net(head=3)
    return lab.show(file, other, torch.optim.Adam(list(other.parameters())[::-1]))


def row(view, name):
    exact = view.page.locator(".lab-xray-id").get_by_text(name, exact=True)
    return view.page.locator(".lab-tree-body [role=row]", has=exact).first


@pytest.mark.parametrize(("theme", "zoom"), [("light", 1), ("dark", 2)])
def test_a_file_reads_well(stage, widget, theme, zoom):
    view = stage(widget, theme=theme, zoom=zoom, width=1000)
    region = view.page.get_by_role("region", name="X-ray of best.pt: torch.load opens it if")
    expect(region.get_by_role("treegrid", name="Contents of best.pt")).to_have_count(1)
    view.axe()
    assert view.overflow() == 0
    view.picture(f"checkpoint-{theme}-{zoom}")


def test_a_file_in_little_room(stage, widget):
    assert stage(widget, width=340).overflow() == 0


def test_the_lenses_ask_of_the_model_and_of_the_optimizer(stage, widget):
    view = stage(widget, width=1000)
    status = row(view, "module.2.weight").locator(".lab-xray-status")
    expect(status).to_have_text("whole")
    view.page.get_by_role("radio", name="Into the model").check()
    expect(status).to_have_text("other shape")
    expect(view.root).to_contain_text("Sequential would not load as it stands: 7 of 9 tensors fit")
    view.page.get_by_role("radio", name="Into the optimizer").check()
    expect(view.root).to_contain_text("0 of 6 positions fit Adam")
    expect(row(view, "[1]").locator(".lab-xray-status")).to_have_text("other shape")


def test_a_sound_dict_whose_names_do_not_fit_opens_on_the_model(stage):
    widget = lab.show(nn.DataParallel(net()).state_dict(), net())
    view = stage(widget, width=1000)
    expect(view.page.get_by_role("radio", name="Into the model")).to_be_checked()
    expect(view.root).to_contain_text("9 of 9 tensors fit once module. is removed")
    expect(row(view, "module.0.weight").locator(".lab-xray-status")).to_have_text("loads")
    assert "would not load as it stands" in widget.to_html()
    view.page.get_by_role("radio", name="The file").check()
    expect(view.root).to_contain_text("nothing needs to be opened")


def test_a_single_lens_is_no_choice(stage):
    view = stage(lab.show({"w": torch.zeros(2)}), width=1000)
    expect(view.page.get_by_role("searchbox")).to_be_visible()
    expect(view.page.get_by_role("radio")).to_have_count(0)


def test_a_finding_gives_its_code_whole(stage, widget):
    view = stage(widget, width=1000)
    row(view, "a prefix").click()
    details = view.page.get_by_role("region", name="Details")
    expect(details).to_contain_text("What to know")
    expect(details).to_contain_text("9 names of the file have module.")
    details.get_by_role("button", name="Copy code").click()
    copied = view.page.evaluate("navigator.clipboard.readText()")
    finding = widget.checkpoint.finding("prefix")
    assert copied == finding.fix
    assert copied.count("\n") == 2


def test_a_row_says_what_it_is(stage, widget):
    view = stage(widget, width=1000)
    view.page.get_by_role("searchbox").fill("rows")
    row(view, "rows").click()
    details = view.page.get_by_role("region", name="Details")
    expect(details).to_contain_text("checkpoint['rows']")
    expect(details).to_contain_text("the whole 156.2 KiB of the storage are saved")


@pytest.fixture(scope="module")
def gap():
    """Losses by hand: the page computes nothing."""
    before, after = (4.0, 3.0, 2.0), (1.5, 1.2, 1.0)
    ways = (
        Way("nothing", (), (4.5, 3.0, 2.5), 2.0, 0),
        Way("+ model", ("model",), (1.5, 1.9, 1.6), 0.5, 1),
        Way("+ RNG", ("model", "torch RNG"), after, 0.0, None),
    )
    without = (
        Way("all but model", ("torch RNG",), (4.0, 3.0, float("nan")), float("nan"), 0),
        Way("all but torch RNG", ("model",), (1.5, 1.9, 1.6), 0.5, 1),
    )
    return lab.show(ResumeGap(before, after, ways, without, 0.0, "model"))


@pytest.mark.parametrize(("theme", "zoom"), [("light", 1), ("dark", 2)])
def test_the_ways_read_well(stage, gap, theme, zoom):
    view = stage(gap, theme=theme, zoom=zoom)
    expect(view.root).to_contain_text("Exactly 0.0 with every piece put back")
    view.axe()
    assert view.overflow() == 0
    view.picture(f"resume-{theme}-{zoom}")


def test_a_way_is_chosen_by_key(stage, gap):
    view = stage(gap)
    chosen = view.page.get_by_role("radio", name="+ model")
    expect(chosen).to_be_checked()
    before = view.page.locator(".resume-chart .resume-way").get_attribute("d")
    chosen.focus()
    view.page.keyboard.press("ArrowDown")
    expect(view.page.get_by_role("radio", name="+ RNG")).to_be_checked()
    way = view.page.locator(".resume-chart .resume-way").get_attribute("d")
    assert way != before
    truth = view.page.locator(".resume-chart .resume-truth").get_attribute("d")
    assert truth.endswith(way.removeprefix("M"))  # the exact way lies on the uninterrupted run
    expect(view.page.get_by_role("status")).to_have_text("+ RNG: distance 0.0. the same losses")
    assert view.keys() == []


def test_the_ways_in_little_room(stage, gap):
    view = stage(gap, width=340)
    assert view.overflow() == 0
    for began in view.page.locator(".resume-began").all():  # the step is what a learner looks for
        expect(began).to_be_visible()
    view.picture("resume-narrow")
