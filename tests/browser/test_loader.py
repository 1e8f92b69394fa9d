"""A DataLoader at work and its random numbers in a real browser: themes, keyboard, measuring."""

from dataclasses import replace

import pytest
from playwright.sync_api import expect

from pytorch_lab.dataloader import (
    BatchTimes,
    Draw,
    LoaderTimeline,
    Remark,
    Trial,
    WorkerMemory,
    WorkerRandomness,
)
from pytorch_lab.errors import LoaderError
from pytorch_lab.widgets.loader import LoaderPicture
from pytorch_lab.widgets.randomness import RandomnessPicture


def timeline(workers=2):
    """Workers that need 14 ms for a batch, a model that needs 4."""
    each = max(workers, 1)
    batches, free, model = [], [5.0] * each, 5.0
    for k in range(18):
        start = max(free[k % each], model if not workers else 0.0)
        made = start + 12.0 + 3 * (k % 3)
        free[k % each] = made
        got = max(model, made)
        batches.append(
            BatchTimes(
                k, k % each if workers else None, (start, made - 2), (made - 2, made), None,
                (model, got), None, (got, got + 6.0),
            )
        )  # fmt: skip
        model = got + 6.0
    memory = tuple(WorkerMemory(k, 8_000_000, 60_000_000) for k in range(workers))
    seen = LoaderTimeline(
        f"DataLoader(Photos of 1,200 samples, batch_size=16, shuffle=True, num_workers={workers})",
        workers, 8, True, tuple(batches), min(2, each), memory,
    )  # fmt: skip
    trial = Trial(workers, seen.batch_ms, seen.wait_share, memory)
    return replace(seen, trials=(trial,))


def tried():
    seen = timeline(1)
    trials = tuple(timeline(k).trials[0] for k in (0, 1, 2, 4))
    remark = Remark("start", "note", "Starting 1 worker takes as long as 9 batches.")
    return replace(seen, trials=trials, remarks=(remark,))


class Bench:
    """Measures by script."""

    def seen(self, workers):
        if workers == 8:
            raise LoaderError("a worker process ended without a word of its own.")
        return timeline(workers)


def draws(equal, samples):
    return tuple(
        Draw(
            stream, epoch, worker, sample, "fetch", (sample * 37 % 100) / 100 + 0.001, True,
            sample if equal and stream == "dataset.rng" else None,
        )
        for stream in ("dataset.rng", "torch")
        for epoch in (0, 1)
        for worker in (0, 1)
        for sample in range(samples)
    )  # fmt: skip


def randomness(equal=True, samples=6):
    text = "`dataset.rng`: both workers draw the same numbers, and the same ones in every epoch."
    remarks = (Remark("duplicated", "problem", text),) if equal else ()
    return WorkerRandomness(
        "DataLoader(Noisy of 48 samples, batch_size=4, num_workers=2)", 2, 2,
        ("dataset.rng", "torch"), ("dataset.other",), draws(equal, samples), remarks,
    )  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("zoom", [1, 2])
def test_they_read_well(stage, theme, zoom):
    for name, widget in (
        ("loader", LoaderPicture(tried())),
        ("randomness", RandomnessPicture(randomness())),
    ):
        view = stage(widget, theme=theme, zoom=zoom)
        expect(view.root).to_contain_text("DataLoader(")
        view.axe()
        assert view.overflow() == 0
        view.picture(f"{name}-{theme}-{zoom}")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_four_samples_and_the_trials_fit_at_twice_the_size(stage, theme):
    """Half of a laptop's window, as at 200 %: what a lesson shows needs no scrolling sideways."""
    for widget, holder in (
        (LoaderPicture(tried()), ".loader-scroll"),
        (RandomnessPicture(randomness(samples=4)), ".rand-holder"),
    ):
        view = stage(widget, theme=theme, zoom=2)
        part = view.page.locator(holder)
        assert part.evaluate("(one) => one.scrollWidth <= one.clientWidth"), holder


def test_another_number_of_workers_is_measured(stage):
    view = stage(LoaderPicture(timeline(0), Bench(), target=0.4), theme="vscode-dark")
    slider = view.page.get_by_role("slider", name="num_workers")
    expect(view.root).to_contain_text("Your target: the model should wait at most 40 % of the time")
    expect(view.root).to_contain_text("Move num_workers to try others.")
    slider.focus()
    for workers in (1, 2, 3):
        view.page.keyboard.press("ArrowRight")
        expect(view.page.locator(".loader-here th")).to_contain_text(str(workers))
    expect(slider).to_be_focused()
    expect(view.root).to_contain_text("Reached: the model should wait at most 40 %")
    assert [one["with"]["workers"] for one in view.sent] == [1, 2, 3]
    assert view.page.locator(".loader-trials tbody tr").count() == 4
    assert view.keys() == []
    view.axe()
    view.picture("loader-measured")


def test_a_measurement_that_fails_is_told(stage):
    view = stage(LoaderPicture(timeline(0), Bench()))
    view.page.get_by_role("slider", name="num_workers").focus()
    view.page.keyboard.press("End")
    expect(view.page.get_by_role("alert")).to_contain_text("ended without a word of its own")
    expect(view.page.get_by_role("slider", name="num_workers")).to_have_value("0")
    view.axe()


def test_the_way_of_a_batch_is_read_by_keyboard_and_by_pointer(stage):
    view = stage(LoaderPicture(timeline(2)))
    view.page.get_by_role("slider", name="Batch").focus()
    view.page.keyboard.press("ArrowRight")
    said = view.page.locator(".loader-said")
    expect(said).to_contain_text("batch 1: worker 1 made it in 15.0 ms")
    assert view.page.locator(".loader-way").get_attribute("d").startswith("M")
    view.page.locator('.loader-use[data-batch="4"]').click()
    expect(said).to_contain_text("batch 4: worker 0")
    assert view.page.get_by_role("slider").count() == 1  # nothing to measure with


def test_a_silent_kernel_is_told(stage):
    view = stage(LoaderPicture(timeline(0), Bench()), wired=False)
    view.page.clock.install()
    view.page.get_by_role("slider", name="num_workers").focus()
    view.page.keyboard.press("ArrowRight")
    view.page.clock.fast_forward(4_100)
    expect(view.root).to_contain_text("The kernel has not answered.")


def test_equal_draws_are_lit_together(stage):
    view = stage(RandomnessPicture(randomness()))
    assert view.page.locator("th.rand-lit").count() == 6
    view.page.get_by_role("button", name="a 0.001").first.focus()
    view.page.keyboard.press("Enter")
    assert view.page.locator('.rand-cell[aria-pressed="true"]').count() == 4
    expect(view.page.locator(".lab-live").last).to_have_text("4 draws are the same as a")
    view.page.get_by_role("button", name="torch").click()
    expect(view.root).to_contain_text("All 24 draws from torch differ.")
    assert view.page.locator("th.rand-lit").count() == 0
    view.axe()
