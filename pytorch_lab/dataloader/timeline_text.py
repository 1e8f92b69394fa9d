"""A timeline as text that reads well at 80 columns.

One line for each lane: when a worker fetched and collated, and when the model used and waited. Then
the numbers of workers that were tried, the verdict, and the remarks.
"""

from collections.abc import Iterator

from pytorch_lab import words
from pytorch_lab.dataloader.timeline import BatchTimes, LoaderTimeline, Span, Trial
from pytorch_lab.dataloader.verdict import percent
from pytorch_lab.modules.text import spell_bytes

NAME, LANE = 10, 69
LONG_START = 0.1  # of the time that is drawn
FETCH, COLLATE, PIN, WAIT, MOVE, USE, IDLE = "▒", "▓", "┿", "·", "→", "█", " "


def render(timeline: LoaderTimeline) -> str:
    """The text.

    Example:
        >>> one = BatchTimes(0, 0, (0, 4), (4, 5), None, (0, 6), None, (6, 10))
        >>> seen = LoaderTimeline("DataLoader(...)", 1, 2, True, (one,), 0)
        >>> print(render(seen).splitlines()[3])
        model     ·········································████████████████████████████
    """
    lines = [*words.wrap(timeline.loader, indent="  "), "─" * words.WIDTH]
    if timeline.batches:
        lines.extend(_lanes(timeline))
        lines.extend(_numbers(timeline))
    lines.extend(_trials(timeline))
    lines.extend(words.wrap(timeline.verdict, head="Verdict   ", indent=" " * NAME))
    for remark in timeline.remarks:
        sign = "✗ " if remark.level == "problem" else "  "
        lines.extend(words.wrap(remark.text, head=f"{sign}", indent="  "))
    return "\n".join(line.rstrip() for line in lines)


def lanes_of(timeline: LoaderTimeline) -> list[tuple[str, list[tuple[str, Span, int]]]]:
    """Each lane's name and its pieces: (kind, span, batch), in order of time.

    Example:
        >>> one = BatchTimes(0, None, (0, 4), (4, 5), None, (0, 5), None, (5, 9))
        >>> for name, pieces in lanes_of(LoaderTimeline("", 0, 2, True, (one,), 0)):
        ...     print(name, pieces)
        model [('fetch', (0, 4), 0), ('collate', (4, 5), 0), ('use', (5, 9), 0)]
    """
    rows: dict[str, list[tuple[str, Span, int]]] = {
        worker_name(one): [] for one in sorted({b.worker for b in timeline.batches}, key=_order)
    }
    rows.setdefault("model", [])
    if len(rows) > 1:
        rows["model"] = rows.pop("model")  # below its workers
    for batch in timeline.batches:
        own, model = rows[worker_name(batch.worker)], rows["model"]
        if batch.worker is not None:
            model.append(("wait", batch.waited, batch.number))
        own.append(("fetch", batch.fetched, batch.number))
        own.append(("collate", batch.collated, batch.number))
        if batch.pinned:
            own.append(("pin", batch.pinned, batch.number))
        if batch.transferred:
            model.append(("move", batch.transferred, batch.number))
        if batch.used:
            model.append(("use", batch.used, batch.number))
    return list(rows.items())


def worker_name(worker: int | None) -> str:
    """What a lane is called."""
    return "model" if worker is None else f"worker {worker}"


def _order(worker: int | None) -> int:
    return -1 if worker is None else worker


SIGNS = {
    "fetch": FETCH, "collate": COLLATE, "pin": PIN, "wait": WAIT, "move": MOVE, "use": USE,
}  # fmt: skip


def drawn_from(batches: tuple[BatchTimes, ...]) -> float:
    """Where the lanes begin: a long start of the workers, in which nothing happens, is left out.

    Example:
        >>> one = BatchTimes(0, 0, (80, 90), (90, 91), None, (0, 92), None, (92, 100))
        >>> drawn_from((one,))
        80
    """
    first = min((one.fetched[0] for one in batches), default=0.0)
    whole = max((one.end for one in batches), default=0.0)
    return first if first > LONG_START * whole else 0.0


def _lanes(timeline: LoaderTimeline) -> Iterator[str]:
    begin = drawn_from(timeline.batches)
    whole = max(one.end for one in timeline.batches) - begin or 1.0
    used = set()
    for name, pieces in lanes_of(timeline):
        cells: list[str] = []
        for k in range(LANE):
            middle = begin + whole * (k + 0.5) / LANE
            kind = next((kind for kind, (a, b), _ in pieces if a <= middle < b), "")
            used.add(kind)
            cells.append(SIGNS.get(kind, IDLE))
        yield f"{words.pad(name, NAME)}{''.join(cells)}"
    yield f"{'':<{NAME}}{begin:<8.0f}{f'{begin + whole:.0f} ms':>{LANE - 8}}"
    names = {"fetch": "fetches", "collate": "collates", "pin": "pins", "wait": "waits",
             "move": "moves to the device", "use": "uses"}  # fmt: skip
    yield " " * NAME + "   ".join(f"{SIGNS[k]} {names[k]}" for k in SIGNS if k in used)


def _numbers(timeline: LoaderTimeline) -> Iterator[str]:
    def middle(spans: list[Span]) -> str:
        lengths = sorted(end - start for start, end in spans)
        return f"{lengths[len(lengths) // 2]:.2f} ms" if lengths else ""

    steady: tuple[BatchTimes, ...] = timeline.batches[timeline.steady_from :]
    parts = [
        ("fetch", middle([one.fetched for one in steady])),
        ("collate", middle([one.collated for one in steady])),
        ("pin", middle([one.pinned for one in steady if one.pinned])),
        ("move", middle([one.transferred for one in steady if one.transferred])),
        ("step", middle([one.used for one in steady if one.used])),
    ]
    said = ", ".join(f"{name} {value}" for name, value in parts if value)
    count = words.count(len(timeline.batches), "batch", "batches")
    yield from words.wrap(
        f"{count}; the first came after {timeline.start_ms:.0f} ms. Each (median): {said}.",
        head="Times     ", indent=" " * NAME,
    )  # fmt: skip


def _trials(timeline: LoaderTimeline) -> Iterator[str]:
    if not timeline.trials:
        return
    yield ""
    yield "workers   ms per batch   model waits   memory of a worker: its own, with shared"
    for trial in timeline.trials:
        here = " ← now" if trial.workers == timeline.workers else ""
        if trial.batch_ms is None:
            yield from words.wrap(trial.trouble, head=f"{trial.workers:>7}   ", indent=" " * NAME)
            continue
        waits = percent(trial.wait_share) if timeline.has_step else "–"
        yield f"{trial.workers:>7}   {trial.batch_ms:>12.2f}   {waits:>11}   {_memory(trial)}{here}"
    yield ""


def _memory(trial: Trial) -> str:
    if not trial.memory:
        return f"{'–':>22}"
    own = max(one.own_bytes for one in trial.memory)
    share = max(one.share_bytes for one in trial.memory)
    return f"{spell_bytes(own):>10}, {spell_bytes(share):>10}"
