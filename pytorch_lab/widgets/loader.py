"""The picture of a DataLoader at work: a lane for each worker and one for the model.

    lab.show(loader, step)                          # measured now; a slider measures anew
    lab.show(dataloader.time_loader(loader, step))  # what was measured before

A gap in a worker's lane is a worker that waits for the model, a hatched piece in the model's lane
is a model that waits for a worker. With the loader at hand a slider asks for another number of
workers, which is then really run.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pytorch_lab import svg, words
from pytorch_lab.dataloader.timeline import BatchTimes, LoaderTimeline, Trial
from pytorch_lab.dataloader.timeline_text import drawn_from, lanes_of, worker_name
from pytorch_lab.dataloader.verdict import is_fed, percent
from pytorch_lab.errors import LoaderError, UsageError
from pytorch_lab.modules.text import spell_bytes
from pytorch_lab.widgets import prose
from pytorch_lab.widgets.axes import Axis
from pytorch_lab.widgets.piece import LessonPiece

if TYPE_CHECKING:
    import torch
    from torch.utils.data import DataLoader

    from pytorch_lab.dataloader.times import Bench, Step

WIDTH, LEFT, RIGHT = 720, 84, 708
LANE, GAP, TOP, FOOT = 22, 8, 8, 30
BAR = 220  # of the longest trial, in pixels
MOST_DRAWN = 100  # batches
MOST_WORKERS = 8  # of the slider, on a machine with few cores
KINDS = {
    "fetch": ("fetches samples", svg.BLUE),
    "collate": ("collates them", "#8b4a7a"),
    "pin": ("pins the batch", svg.WARN),
    "wait": ("waits", svg.BAD),
    "move": ("moves it to the device", svg.WARN),
    "use": ("works", svg.GOOD),
}


class LoaderPicture(LessonPiece, stem="loader"):
    """The widget of a `LoaderTimeline`.

    Example:
        >>> one = BatchTimes(0, None, (0, 4), (4, 5), None, (0, 5), None, (5, 9))
        >>> seen = LoaderTimeline("DataLoader(...)", 0, 2, True, (one,), 0)
        >>> LoaderPicture(seen).state["lanes"][0]["name"]
        'model'

    Args:
        timeline: what `time_loader` found.
        bench: measures anew with another number of workers; None where the loader is not at hand.
        target: the share of the time, between 0 and 1, that the model should wait at most.
    """

    kind = "Data loading"

    def __init__(
        self,
        timeline: LoaderTimeline,
        bench: "Bench | None" = None,
        target: float | None = None,
    ) -> None:
        self._bench = bench
        if target is not None and not (isinstance(target, int | float) and 0 < target < 1):
            raise UsageError(
                "show(loader, step, target=) expected the share of the time that the model may "
                f"wait, between 0 and 1, got {target!r:.60}."
            )
        self._target = target
        self.timeline = timeline
        super().__init__(self._state())

    def on_measure(self, workers: int) -> None:
        """Run the same batches with another number of workers."""
        if self._bench is None or type(workers) is not int or workers < 0:
            return
        tried = {one.workers: one for one in self.timeline.trials}
        try:
            seen = self._bench.seen(workers)
        except LoaderError as error:
            tried[workers] = Trial(workers, None, None, trouble=str(error))
            self.timeline = replace(self.timeline, trials=_sorted(tried))
            self.update(**self._state() | {"trouble": str(error)})
            return
        tried[workers] = seen.trials[0]
        self.timeline = replace(seen, trials=_sorted(tried))
        self.update(**self._state())

    def _state(self) -> dict[str, Any]:
        seen = self.timeline
        reached = self._target is not None and (seen.wait_share or 0.0) <= self._target
        fed = is_fed(Trial(seen.workers, seen.batch_ms, seen.wait_share))
        return {
            "trouble": None,
            "title": seen.loader,
            "verdict": self._verdict(fed),
            "good": seen.has_step and (fed or reached),
            "waits": percent(seen.wait_share) if seen.has_step else None,
            "share": seen.wait_share if seen.has_step else None,
            **_drawing(seen),
            "trials": _bars(seen),
            "remarks": [[one.level, one.text] for one in seen.remarks],
            "workers": seen.workers,
            "most": max(MOST_WORKERS, seen.cores, seen.workers) if self._bench else None,
            "target": None if self._target is None else percent(self._target),
            "reached": reached,
        }

    def _verdict(self, fed: bool) -> str:
        """The record's, unless nothing was tried yet that the slider can try."""
        seen = self.timeline
        if self._bench is None or fed or not seen.has_step or len(seen.trials) != 1:
            return seen.verdict
        share = percent(seen.wait_share)
        return f"The model waits {share} of the time. Move `num_workers` to try others."

    def to_html(self) -> str:
        """The lanes, the trials, and the remarks."""
        seen = self.timeline
        lines = [seen.verdict, *(one.text for one in seen.remarks)]
        said = "".join(f"<p>{prose.to_html(line)}</p>" for line in lines)
        return self.framed(_still(self.state) + said)

    def __str__(self) -> str:
        return str(self.timeline)


def measured(
    loader: "DataLoader",
    step: "Step | None" = None,
    *,
    batches: int = 32,
    device: "torch.device | str | None" = None,
    target: float | None = None,
) -> LoaderPicture:
    """Run a loader with its own number of workers; the picture can run it with others.

    Example:
        >>> from torch.utils.data import DataLoader
        >>> picture = measured(DataLoader([1.0, 2.0]), batches=2)
        >>> picture.state["workers"], len(picture.state["batches"])
        (0, 2)

    Args:
        loader: any DataLoader.
        step: what is done with a batch; really run at each measurement, its models put back.
        batches: how many of each measurement.
        device: where to move each batch before the step.
        target: the share of the time that the model should wait at most, for the reader to reach.

    Raises:
        UsageError, LoaderError: as `time_loader` does.
    """
    from pytorch_lab.dataloader.times import Bench

    bench = Bench(loader, step, batches, device)
    return LoaderPicture(bench.seen(loader.num_workers), bench, target)


def _sorted(tried: dict[int, Trial]) -> tuple[Trial, ...]:
    return tuple(tried[workers] for workers in sorted(tried))


def _drawing(seen: LoaderTimeline) -> dict[str, Any]:
    """Lanes of pieces in pixels, and what is said of each batch."""
    drawn = replace(seen, batches=seen.batches[:MOST_DRAWN])
    whole = max((one.end for one in drawn.batches), default=1.0)
    begin = drawn_from(drawn.batches)
    x = Axis(begin, whole, LEFT, RIGHT, round_ends=False)
    lanes = [
        {
            "name": name,
            "y": TOP + place * (LANE + GAP),
            "pieces": [[kind, *_span(x, span), batch] for kind, span, batch in pieces],
        }
        for place, (name, pieces) in enumerate(lanes_of(drawn))
    ]
    height = TOP + len(lanes) * (LANE + GAP)
    used = {piece[0] for lane in lanes for piece in lane["pieces"]}
    return {
        "lanes": lanes,
        "size": [WIDTH, height + FOOT],
        "box": [LEFT, TOP, RIGHT, height],
        "ticks": [[x.at(tick), f"{tick:,g}"] for tick in x.ticks()],
        "legend": [[kind, says] for kind, (says, _) in KINDS.items() if kind in used],
        "batches": [_said(one) for one in drawn.batches],
        "links": [[x.at(one.ready), x.at(one.waited[1])] for one in drawn.batches],
        "begin": f"{begin:.0f}" if begin else "",
        "left_out": len(seen.batches) - len(drawn.batches),
    }


def _span(x: Axis, span: tuple[float, float]) -> tuple[float, float]:
    """Where a piece begins, and how wide it is; always enough to be seen."""
    start, end = (max(x.at(one), LEFT) for one in span)
    return start, max(round(end - start, 1), 0.6)


def _said(one: BatchTimes) -> str:
    """One batch in a sentence."""
    maker = "the main process" if one.worker is None else worker_name(one.worker)
    made = one.ready - one.fetched[0]
    parts = [f"batch {one.number}: {maker} made it in {made:.1f} ms"]
    if one.worker is not None:
        early = one.waited[0] - one.ready
        parts.append(
            f"it was ready {early:.1f} ms before the model asked"
            if early >= 0
            else f"the model waited {one.waited[1] - one.waited[0]:.1f} ms for it"
        )
    if one.transferred:
        parts.append(f"moving it took {one.transferred[1] - one.transferred[0]:.1f} ms")
    if one.used:
        parts.append(f"the step took {one.used[1] - one.used[0]:.1f} ms")
    return "; ".join(parts) + "."


def _bars(seen: LoaderTimeline) -> list[dict[str, Any]]:
    """A bar for each number of workers that was tried: the time of a batch, and who has it."""
    longest = max((one.batch_ms or 0.0 for one in seen.trials), default=0.0) or 1.0
    rows = []
    for one in seen.trials:
        whole = BAR * (one.batch_ms or 0.0) / longest
        waits = whole * (one.wait_share or 0.0) if seen.has_step else 0.0
        rows.append(
            {
                "workers": one.workers,
                "name": words.count(one.workers, "worker"),
                "here": one.workers == seen.workers,
                "bar": [round(waits, 1), round(whole - waits, 1)],
                "ms": "failed" if one.batch_ms is None else f"{one.batch_ms:.1f} ms",
                "waits": percent(one.wait_share) if seen.has_step and one.batch_ms else "",
                "memory": _memory(one),
                "trouble": one.trouble,
            }
        )
    return rows


def _memory(trial: Trial) -> str:
    if not trial.memory:
        return ""
    own = sum(one.own_bytes for one in trial.memory)
    return spell_bytes(own)


def _still(state: dict[str, Any]) -> str:
    """The same as an `<img>`."""
    width, height = state["size"]
    below = 18 * (len(state["trials"]) + 1) if len(state["trials"]) > 1 else 0
    picture = svg.Picture(width, height + 22 + below, f"{state['title']}. {state['verdict']}")
    _, _, _, bottom = state["box"]
    for tick, label in state["ticks"]:
        picture.line(tick, TOP, tick, bottom, stroke=svg.LINE)
        picture.text(tick, bottom + 14, label, fill=svg.QUIET, text_anchor="middle")
    picture.text(RIGHT, bottom + 28, "ms", fill=svg.QUIET, text_anchor="end")
    for lane in state["lanes"]:
        picture.text(4, lane["y"] + 15, lane["name"])
        for kind, x, w, _ in lane["pieces"]:
            thin = kind == "wait"
            y, high = (lane["y"] + 8, 6) if thin else (lane["y"], LANE)
            picture.rect(x, y, w, high, fill=KINDS[kind][1])
    x = 4
    for kind, says in state["legend"]:
        picture.rect(x, height + 2, 10, 10, fill=KINDS[kind][1])
        picture.text(x + 15, height + 11, says)
        x += 30 + round(len(says) * 12 * svg.MONO_WIDTH)
    if below:
        _still_bars(picture, state["trials"], height + 24)
    return picture.img()


def _still_bars(picture: svg.Picture, trials: list[dict[str, Any]], top: float) -> None:
    for place, row in enumerate(trials):
        y = top + 18 * (place + 1)
        waits, works = row["bar"]
        picture.text(4, y, row["name"])
        picture.rect(LEFT, y - 7, waits, 6, fill=svg.BAD)
        picture.rect(LEFT + waits, y - 10, works, 12, fill=svg.GOOD)
        said = f"{row['ms']}{', waits ' + row['waits'] if row['waits'] else ''}"
        picture.text(LEFT + BAR + 10, y, said + ("  ← now" if row["here"] else ""))
