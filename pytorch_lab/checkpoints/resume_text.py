"""The ways to resume as a table with bars."""

from collections.abc import Iterator

from pytorch_lab import words
from pytorch_lab.checkpoints.resume import ResumeGap, Way

BAR, NAME = 20, 26


def render(gap: ResumeGap) -> str:
    """The whole text, at most 80 columns wide.

    Example:
        >>> way = Way("nothing", (), (2.0,), 0.5, 0)
        >>> gap = ResumeGap((3.0,), (1.0,), (way,), (), 0.0, "model")
        >>> print(render(gap).splitlines()[2].rstrip())
        nothing                         0.5  ████████████████████  differs from step 2
    """
    before, after = len(gap.before), len(gap.uninterrupted)
    lines = [
        f"Interrupted after {words.count(before, 'step')}, resumed for {after:,}",
        f"{words.pad('put back', NAME)} {'distance':>8}",
    ]
    lines += _ways(gap, gap.ways)
    if gap.without:
        lines += ["", f"{words.pad('left out', NAME)} {'distance':>8}"]
        lines += _ways(gap, gap.without)
    sign = "✓" if gap.exact else "✗"
    lines += ["", *words.wrap(gap.verdict, f"{sign} ", "  ")]
    return "\n".join(line.rstrip() for line in lines)


def _ways(gap: ResumeGap, ways: tuple[Way, ...]) -> Iterator[str]:
    top = farthest(gap)
    for way in ways:
        bar = "█" * round(BAR * way.distance / top) if top else ""
        bar = bar or ("▏" if way.distance else "")
        name = words.pad(words.clip(way.name, NAME), NAME)
        yield f"{name} {short(way.distance):>8}  {words.pad(bar, BAR)}  {began(gap, way)}"


def farthest(gap: ResumeGap) -> float:
    """The largest finite distance."""
    found = [way.distance for way in (*gap.ways, *gap.without) if way.distance < float("inf")]
    return max(found, default=0.0)


def began(gap: ResumeGap, way: Way) -> str:
    """Since when the losses differ, counted from the start of the run."""
    if way.first_off is None:
        return "the same losses" if way.distance == 0.0 else ""
    return f"differs from step {len(gap.before) + way.first_off + 1}"


def short(distance: float) -> str:
    """A distance in three digits; exactly 0 is `0.0`.

    Example:
        >>> short(0.0), short(0.12345), short(1e-9)
        ('0.0', '0.123', '1e-09')
    """
    return "0.0" if distance == 0.0 else f"{distance:.3g}"
