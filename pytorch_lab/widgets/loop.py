"""The picture of a training loop: its loss, the gradients it used, and the order that made them.

    lab.show(loop.run(["forward", "loss", "backward", "step"]))
    lab.show(loop.compare({"right": loop.RIGHT, "no zero_grad": loop.RIGHT[1:]}))

Move along the turns to read the numbers. Beside the curve of each order stand its lines, the one
that failed marked, and what was measured of it.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from pytorch_lab import svg, words
from pytorch_lab.errors import UsageError
from pytorch_lab.loop.record import LoopRun, LoopRuns
from pytorch_lab.loop.wording import short
from pytorch_lab.widgets import listing, prose
from pytorch_lab.widgets.axes import Axis
from pytorch_lab.widgets.piece import LessonPiece

WIDTH, HEIGHT = 640, 230
LEFT, RIGHT, TOP, BOTTOM = 64, 628, 12, 192
STRIP_WIDTH, STRIP_HEIGHT = 300, 40
MOST_RUNS, MOST_BARS, MOST_STOPS = 6, 150, 400
WIDE = 50  # from here on a strip is logarithmic
LOOKS = [
    ("#0072b2", "none"), ("#a34700", "7 4"), ("#007a58", "2 3"),
    ("#8a6400", "9 3 2 3"), ("#8b4a7a", "4 2"), ("#1c1e21", "1 2"),
]  # fmt: skip
STRIPS = (("gradient norm", "grad_norms"), ("motion", "motions"))

Numbers = Sequence[float | None]


class LoopPicture(LessonPiece, stem="loop"):
    """The widget of a `LoopRun`, or of several beside each other.

    Example:
        >>> from pytorch_lab import loop
        >>> picture = LoopPicture(loop.compare({"right": loop.RIGHT, "late": ["step"]}, turns=2))
        >>> picture.state["runs"][1]["code"]
        [[['', 'optimizer.step()']]]

    Args:
        record: what `loop.run` or `loop.compare` found.

    Raises:
        UsageError: there are too many runs to tell apart.
    """

    kind = "Training loop"

    def __init__(self, record: LoopRun | LoopRuns) -> None:
        self.record = record
        runs = record.runs if isinstance(record, LoopRuns) else (("", record),)
        if len(runs) > MOST_RUNS:
            raise UsageError(
                f"show(runs) expected at most {MOST_RUNS} orders in one picture, got {len(runs)}; "
                "show fewer at a time."
            )
        super().__init__(_state(runs))

    def to_html(self) -> str:
        """The curves, and for each order its lines and remarks."""
        parts = "".join(_said_html(run) for run in self.state["runs"])
        return self.framed(_picture(self.state) + parts)

    def __str__(self) -> str:
        return str(self.record)


def _state(runs: Sequence[tuple[str, LoopRun]]) -> dict[str, Any]:
    losses = [run.losses for _, run in runs]
    longest = max((len(one) for one in losses), default=1)
    x = Axis(1, max(longest, 2), LEFT, RIGHT, round_ends=False)
    stops = _thinned(max(longest, 1))
    return {
        "title": _title(runs),
        "size": [WIDTH, HEIGHT],
        "box": [LEFT, TOP, RIGHT, BOTTOM],
        "x_ticks": [[x.at(turn), f"{turn:,.0f}"] for turn in _whole(x.ticks(), longest)],
        "scales": _scales(losses, x),
        "stops": stops,
        "places": [x.at(stop) for stop in stops],
        "strip": [STRIP_WIDTH, STRIP_HEIGHT],
        "runs": [_run_state(name, run, [other for _, other in runs], stops) for name, run in runs],
    }


def _title(runs: Sequence[tuple[str, LoopRun]]) -> str:
    if len(runs) == 1:
        return runs[0][1].summary
    ends = [f"{name} {short(run.losses[-1])}" for name, run in runs if run.losses]
    return f"the last loss of {words.count(len(runs), 'order')}: {', '.join(ends) or 'none'}"


def _whole(ticks: list[float], longest: int) -> list[float]:
    """Turns are counted from 1 and have no halves."""
    whole = [tick for tick in ticks if tick == int(tick) and tick > 1]
    return [1.0, *whole] if longest > 1 else [1.0]


def _scales(losses: list[tuple[float, ...]], x: Axis) -> dict[str, Any]:
    finite = [loss for one in losses for loss in one if math.isfinite(loss)] or [0.0, 1.0]
    scales = {"linear": Axis(min(0.0, *finite, 0.0), max(0.0, *finite, 0.0), BOTTOM, TOP)}
    positive = [loss for loss in finite if loss > 0]
    if len(positive) == len(finite):
        scales["log"] = Axis(min(positive), max(positive), BOTTOM, TOP, log=True)
    wide = max(finite) > 1000 * (sorted(finite)[len(finite) // 2] or 1)
    return {
        name: {
            "first": (name == "log") == (wide and "log" in scales),
            "ticks": [[y.at(value), short(value)] for value in y.ticks()],
            "paths": [_path(one, x, y) for one in losses],
        }
        for name, y in scales.items()
    }


def _path(losses: Sequence[float], x: Axis, y: Axis) -> str:
    """A line that breaks where a loss is no number."""
    said, pen = [], "M"
    stride = max(1, math.ceil(len(losses) / 600))
    for k in sorted({*range(0, len(losses), stride), len(losses) - 1} - {-1}):
        if math.isfinite(losses[k]):
            said.append(f"{pen}{x.at(k + 1):g} {y.at(losses[k]):g}")
            pen = "L"
        else:
            pen = "M"
    if len(said) == 1:
        said.append("h3")
    return "".join(said)


def _run_state(
    name: str, run: LoopRun, runs: Sequence[LoopRun], stops: Sequence[int]
) -> dict[str, Any]:
    failure = run.failure
    problems = len(run.problems) + (failure is not None)
    grows = any(sum(one.nodes) for one in runs)
    return {
        "name": name,
        "good": not problems,
        "finding": f"{words.count(problems, 'thing')} to look at" if problems else "nothing odd",
        "code": listing.listing("\n".join(run.lines)),
        "faulty": failure and failure.place,
        "failure": failure and f"Stopped in {failure}",
        "remarks": [[one.level, one.text] for one in run.remarks],
        "strips": [
            _strip(label, getattr(run, field), [getattr(one, field) for one in runs], run.turns)
            for label, field in STRIPS
        ],
        "values": {label: _values(numbers, stops) for label, numbers in _columns(run, grows)},
    }


def _columns(run: LoopRun, grows: bool) -> Iterable[tuple[str, Numbers]]:
    yield "loss", run.losses
    yield "gradient norm", run.grad_norms
    yield "motion", run.motions
    yield "lr", run.rates
    if grows:
        yield "graph on total", run.nodes


def _values(numbers: Numbers, stops: Sequence[int]) -> list[str]:
    """What is read at each stop; a dash where the run did not come."""
    return [_number(numbers[stop - 1]) if stop <= len(numbers) else "–" for stop in stops]


def _number(number: float | None) -> str:
    if number is None:
        return "none"
    return f"{number:,}" if isinstance(number, int) else short(number)


def _strip(
    label: str, numbers: Numbers, all_numbers: Sequence[Numbers], turns: int
) -> dict[str, Any]:
    """Bars on one scale for all runs; `bad` are turns whose number is none."""
    finite = [n for one in all_numbers for n in one if n and math.isfinite(n)]
    high = max(finite, default=1.0)
    log = bool(finite) and high > WIDE * _median(finite)
    low = min(finite) / 2 if log else 0.0
    y = Axis(low, high, STRIP_HEIGHT, 3, log=log, round_ends=False)
    stride = max(1, math.ceil(turns / MOST_BARS))
    wide = STRIP_WIDTH / max(math.ceil(turns / stride), 1)
    bars, bad = [], []
    for place, k in enumerate(range(0, len(numbers), stride)):
        number = numbers[k]
        at = f"M{place * wide:.1f} {STRIP_HEIGHT}"
        if number is not None and not math.isfinite(number):
            bad.append(f"{at}V3h{wide * 0.8:.1f}V{STRIP_HEIGHT}z")
        elif number:
            bars.append(f"{at}V{y.at(number):g}h{wide * 0.8:.1f}V{STRIP_HEIGHT}z")
    return {"label": label, "says": _ends(numbers, log), "bars": "".join(bars), "bad": "".join(bad)}


def _median(numbers: list[float]) -> float:
    return sorted(numbers)[len(numbers) // 2]


def _ends(numbers: Numbers, log: bool) -> str:
    there = [number for number in numbers if number is not None]
    if not there:
        return "none"
    if not any(there):
        return "0"
    return f"{short(there[0])} to {short(there[-1])}{' (log scale)' if log else ''}"


def _thinned(turns: int) -> list[int]:
    """At most so many of the turns, evenly, with the first and the last."""
    if turns <= MOST_STOPS:
        return list(range(1, turns + 1))
    return [1 + round(k * (turns - 1) / (MOST_STOPS - 1)) for k in range(MOST_STOPS)]


# -------------------------------------------------------------------------------- without a kernel


def _picture(state: dict[str, Any]) -> str:
    scale = next(scale for scale in state["scales"].values() if scale["first"])
    drawing = svg.Picture(WIDTH, HEIGHT + 18 * len(state["runs"]), state["title"])
    for y, label in scale["ticks"]:
        drawing.line(LEFT, y, RIGHT, y, stroke=svg.LINE)
        drawing.text(LEFT - 8, y + 4, label, text_anchor="end")
    for x, label in state["x_ticks"]:
        drawing.text(x, BOTTOM + 18, label, text_anchor="middle")
    drawing.text((LEFT + RIGHT) / 2, HEIGHT - 4, "turn", fill=svg.QUIET, text_anchor="middle")
    drawing.text(0, TOP, "loss", fill=svg.QUIET)
    drawing.path(f"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}", fill="none", stroke=svg.QUIET)
    for place, (path, run) in enumerate(zip(scale["paths"], state["runs"], strict=True)):
        colour, dash = LOOKS[place]
        paint = {"fill": "none", "stroke": colour, "stroke-width": 2, "stroke-dasharray": dash}
        if path:
            drawing.path(path, **paint)
        y = HEIGHT + 18 * place + 8
        drawing.line(LEFT, y, LEFT + 28, y, **paint)
        drawing.text(LEFT + 36, y + 4, run["name"] or "loss")
    return drawing.img()


def _said_html(run: dict[str, Any]) -> str:
    code = "\n".join("".join(text for _, text in line) for line in run["code"])
    name = f"<p><strong>{prose.to_html(run['name'])}</strong></p>" if run["name"] else ""
    said = [run["failure"]] if run["failure"] else []
    said += [text for _, text in run["remarks"]]
    items = "".join(f"<li>{prose.to_html(text)}</li>" for text in said)
    return f"{name}{listing.to_html(code)}" + (f"<ul>{items}</ul>" if items else "")
