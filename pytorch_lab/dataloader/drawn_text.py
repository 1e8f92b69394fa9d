"""The matrix of random numbers as text that reads well at 80 columns.

One block for each generator, one line for each epoch and worker, one column for each sample. Equal
draws carry the same letter.
"""

from collections.abc import Iterator
from string import ascii_letters

from pytorch_lab import words
from pytorch_lab.dataloader.drawn import Draw, WorkerRandomness
from pytorch_lab.dataloader.timeline_text import worker_name

NAME, CELL = 20, 9
MOST_SHOWN = (words.WIDTH - NAME) // CELL


def render(seen: WorkerRandomness) -> str:
    """The text.

    Example:
        >>> draws = tuple(
        ...     Draw("dataset.rng", 0, worker, 0, "fetch", 0.637, True, 0) for worker in (0, 1)
        ... )
        >>> print(render(WorkerRandomness("DataLoader(...)", 2, 1, ("dataset.rng",), (), draws)))
        DataLoader(...)
        ────────────────────────────────────────────────────────────────────────────────
        dataset.rng         sample 0
          epoch 0, worker 0  a 0.637
          epoch 0, worker 1  a 0.637
        Verdict   No two samples were given the same random numbers.
    """
    lines = [*words.wrap(seen.loader, indent="  "), "─" * words.WIDTH]
    letters = letters_of(seen)
    for stream in seen.streams:
        for part in ("fetch", "collate"):
            of_both = [one for one in seen.draws if (one.stream, one.part) == (stream, part)]
            lines.extend(_block(stream, part, of_both, letters))
    lines.extend(words.wrap(seen.verdict, head="Verdict   ", indent=" " * 10))
    for remark in seen.remarks:
        if remark.text != seen.verdict:
            sign = "✗ " if remark.level == "problem" else "  "
            lines.extend(words.wrap(remark.text, head=sign, indent="  "))
    if seen.unused:
        lines.extend(words.wrap(f"Not drawn from: {', '.join(seen.unused)}.", indent="  "))
    return "\n".join(line.rstrip() for line in lines)


def letters_of(seen: WorkerRandomness) -> dict[int, str]:
    """A letter for each group of equal draws, in the order in which they are read."""
    groups = dict.fromkeys(one.same for one in seen.draws if one.same is not None)
    return {group: ascii_letters[k % len(ascii_letters)] for k, group in enumerate(groups)}


def _block(stream: str, part: str, draws: list[Draw], letters: dict[int, str]) -> Iterator[str]:
    if not draws:
        return
    title = stream if part == "fetch" else f"{stream} in collate_fn"
    shown = sorted({one.sample for one in draws})[:MOST_SHOWN]
    first, *others = (f"{sample:>{CELL}}" for sample in shown)
    head = words.pad(words.clip(title, NAME), NAME)
    yield f"{head}sample{first[6:]}" + "".join(others)
    rows: dict[tuple[int, int | None], dict[int, Draw]] = {}
    for one in draws:
        rows.setdefault((one.epoch, one.worker), {})[one.sample] = one
    for epoch, worker in sorted(rows, key=lambda row: (row[0], row[1] or 0)):
        name = "main" if worker is None else worker_name(worker)
        cells = (_cell(rows[epoch, worker].get(sample), letters) for sample in shown)
        yield words.pad(f"  epoch {epoch}, {name}", NAME) + "".join(cells)


def _cell(draw: Draw | None, letters: dict[int, str]) -> str:
    if draw is None or not draw.drew:
        return f"{'·':>{CELL}}"
    letter = letters[draw.same] if draw.same is not None else " "
    return f"{letter} {draw.value:.3f}".rjust(CELL)
