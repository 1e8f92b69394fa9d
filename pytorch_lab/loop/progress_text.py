"""What a progress bar says: one line of at most 80 columns, and the same as a piece of HTML."""

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pytorch_lab import words

LINE = 79  # columns; the last one stays free, where some terminals break the line
BLOCKS = " ▏▎▍▌▋▊▉█"
WIDTH, HEIGHT, LEFT = 420, 96, 52
MOST_POINTS = 240


Trail = Mapping[str, Sequence[float]]  # what was logged, by name


@dataclass(frozen=True, slots=True)
class Bar:
    """How far one loop is."""

    label: str
    done: int
    total: int | None
    elapsed_s: float
    series: Trail = field(default_factory=dict)
    broken: Mapping[str, tuple[int, float]] = field(default_factory=dict)  # (first turn, number)
    stopped: bool = False

    @property
    def share(self) -> float | None:
        """The part that is done, from 0 to 1."""
        return min(self.done / self.total, 1.0) if self.total else None


def line(bars: Sequence[Bar], *, last: bool = False) -> str:
    """The outermost bar first.

    Example:
        >>> line([Bar("epoch", 1, 3, 8.0), Bar("batch", 20, 40, 4.0, {"loss": [0.5, 0.25]})])
        'epoch 1/3  batch 20/40 █████     50% loss 0.25 (8 s, 8 s left)'
    """
    *outer, inner = bars
    parts = [f"{words.clip(bar.label, 20)} {_count(bar)}".strip() for bar in outer]
    parts.append(
        " ".join([words.clip(inner.label, 24), _count(inner), *_gauge(bars, last)]).strip()
    )
    notes = [*_notes(bars), *_numbers(bars), f"({_times(bars, last)})"]
    return words.clip("  ".join(parts) + " " + " ".join(notes), LINE)


def page(bars: Sequence[Bar], trail: Trail, *, last: bool = False) -> str:
    """For a notebook: a bar for each loop, the numbers, and the curve of the first of them."""
    rows = "".join(_row(bar) for bar in bars)
    said = " · ".join([*_numbers(bars), _times(bars, last)])
    notes = "".join(f"<div><strong>⚠ {html.escape(note)}</strong></div>" for note in _notes(bars))
    return f"<div>{rows}<div>{html.escape(said)}</div>{notes}{_curve(trail)}</div>"


def _count(bar: Bar) -> str:
    return f"{bar.done:,}/{bar.total:,}" if bar.total is not None else f"{bar.done:,}"


def _gauge(bars: Sequence[Bar], last: bool) -> Iterator[str]:
    share = bars[-1].share
    if share is None:
        return
    if not last:
        full, part = divmod(round(share * 80), 8)
        yield words.pad("█" * full + (BLOCKS[part] if part else ""), 10)
    yield f"{share:.0%}"


def _numbers(bars: Sequence[Bar]) -> Iterator[str]:
    """The latest of each series."""
    for bar in reversed(bars):
        for name, numbers in bar.series.items():
            if numbers:
                yield f"{name} {numbers[-1]:.4g}"


def _notes(bars: Sequence[Bar]) -> Iterator[str]:
    for bar in bars:
        for name, (turn, number) in bar.broken.items():
            yield f"{name} was {number} in turn {turn:,}!"
    if any(bar.stopped for bar in bars):
        inner = next(bar for bar in reversed(bars) if bar.stopped)
        yield f"stopped after turn {inner.done:,}"


def _times(bars: Sequence[Bar], last: bool) -> str:
    root, inner = bars[0], bars[-1]
    said = _time(root.elapsed_s)
    done = (root.done + (inner.share or 0.0) * (inner is not root)) if root.total else 0
    if last or not done or not root.total or done >= root.total:
        return said
    return f"{said}, {_time(root.elapsed_s * (root.total - done) / done)} left"


def _time(seconds: float) -> str:
    """In the units people use.

    Example:
        >>> _time(7.4), _time(75), _time(7260)
        ('7 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _row(bar: Bar) -> str:
    value = f' value="{bar.done}" max="{max(bar.total, 1)}"' if bar.total is not None else ""
    name = html.escape(bar.label or "progress")
    share = f" {bar.share:.0%}" if bar.share is not None else ""
    return (
        f'<div><progress{value} aria-label="{name}"></progress> '
        f"{html.escape(bar.label)} {_count(bar)}{share}</div>"
    )


def _curve(trail: Trail) -> str:
    """What was logged first, in the colours of the page."""
    nothing: tuple[str, Sequence[float]] = ("", [])
    name, numbers = next(iter(trail.items()), nothing)
    finite = [number for number in numbers if math.isfinite(number)]
    if len(finite) < 2:
        return ""
    low, high = min(finite), max(finite)
    text = 'fill="currentColor" font-size="11" font-family="monospace"'
    bottom = HEIGHT - 16
    alt = html.escape(f"{name} over {len(numbers)} turns: {numbers[0]:.4g} to {numbers[-1]:.4g}")
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{alt}"><path d="M{LEFT} 4V{bottom}H{WIDTH - 4}" fill="none" '
        f'stroke="currentColor" stroke-opacity="0.5"/>'
        f'<text x="{LEFT - 6}" y="13" text-anchor="end" {text}>{high:.3g}</text>'
        f'<text x="{LEFT - 6}" y="{bottom}" text-anchor="end" {text}>{low:.3g}</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 3}" {text}>{html.escape(name)}</text>'
        f'<text x="{WIDTH - 4}" y="{HEIGHT - 3}" text-anchor="end" {text}>{len(numbers):,}</text>'
        f'<path d="{_path(numbers, low, high)}" fill="none" stroke="#1f8fd6" stroke-width="2" '
        'stroke-linejoin="round"/></svg>'
    )


def _path(numbers: Sequence[float], low: float, high: float) -> str:
    """The line; of each stretch its lowest and highest, broken where a number is none."""
    stretch = max(1, math.ceil(2 * len(numbers) / MOST_POINTS))
    across = (WIDTH - 4 - LEFT) / max(len(numbers) - 1, 1)
    down = (HEIGHT - 24) / ((high - low) or 1.0)
    said, pen = [], "M"
    for k in _kept(numbers, stretch):
        if not math.isfinite(numbers[k]):
            pen = "M"
            continue
        said.append(f"{pen}{LEFT + k * across:.1f} {6 + (high - numbers[k]) * down:.1f}")
        pen = "L"
    return "".join(said)


def _kept(numbers: Sequence[float], stretch: int) -> list[int]:
    if stretch == 1:
        return list(range(len(numbers)))
    kept = {len(numbers) - 1}
    for start in range(0, len(numbers), stretch):
        part = range(start, min(start + stretch, len(numbers)))
        kept |= {min(part, key=numbers.__getitem__), max(part, key=numbers.__getitem__)}
        kept |= {k for k in part if not math.isfinite(numbers[k])}
    return sorted(kept)
