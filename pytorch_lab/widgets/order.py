"""`order(...)`: put the lines in order; the order is really run.

The lines are shown shuffled, always in the same way for the same id and never in an order that
already works. What the learner puts together is run in the kernel, and the value it gives, or the
real error, stands beside what the right order gave.
"""

import random
from collections.abc import Callable
from typing import Any

from pytorch_lab.errors import UsageError
from pytorch_lab.widgets import curve, guesses, listing, prose, question, running
from pytorch_lab.widgets.piece import LessonPiece

Measure = str | Callable[[list[str]], Any]

SHUFFLES = 8  # how many shuffled orders are tried before the puzzle is called pointless


class Order(LessonPiece, stem="order"):
    """The widget of one puzzle."""

    kind = "Put in order"

    def __init__(
        self, id: str, title: str, lines: list[str], setup: str, measure: Measure, start: list[int]
    ) -> None:
        self.id, self.title, self.lines = id, title, lines
        self.setup, self.measure, self.start = setup, measure, start
        self.measured = measure if isinstance(measure, str) else ""  # what the value is called
        self.target = self.run(range(len(lines)))
        kept = guesses.earlier(id)
        order = kept.get("order")
        earlier = order if isinstance(order, list) and sorted(order) == sorted(start) else None
        super().__init__(
            {
                "title": title,
                "setup": listing.listing(setup) if setup else None,
                "lines": [listing.listing(line) for line in lines],
                "texts": [line.strip() for line in lines],
                "measure": self.measured,
                "start": start,
                "earlier": earlier and {"order": earlier, "right": kept["last_right"]},
                "target": self.target.state(),
                "target_curve": curve.plan({"right order": self.target.losses}),
                "running": False,
                "runs": 0,
                "result": None,
            }
        )

    def run(self, order: Any) -> running.Run:
        """Run the set-up and the lines in this order, or let `measure` run the lines."""
        if not isinstance(self.measure, str):
            return running.called(self.measure, [self.lines[k] for k in order])
        code = "\n".join([*([self.setup] if self.setup else []), *(self.lines[k] for k in order)])
        return running.run(code, measure=self.measure)

    def on_run(self, order: list[int]) -> None:
        """Run the learner's order, and keep it."""
        if sorted(order) != sorted(self.start):
            return
        self.update(running=True, trouble=None)
        run = self.run(order)
        right = run.worked and running.same(run.value, self.target.value)
        self.update(
            running=False, runs=self.state["runs"] + 1, result=self._result(order, run, right)
        )
        if not run.interrupted:
            guesses.keep(
                self.id,
                ask=self.title,
                guess=_in_a_word(run),
                right=right,
                answer=_in_a_word(self.target),
                order=order,
            )

    def _result(self, order: list[int], run: running.Run, right: bool) -> dict[str, Any]:
        state = run.state()
        if run.fault and run.fault.line:
            state["fault"]["line"] = self._place(order, run.fault.line)
        curves = {"right order": self.target.losses, "your order": run.losses}
        plan = curve.plan(curves) if run.losses else None
        return {"order": order, "right": right, "run": state, "curve": plan}

    def _place(self, order: list[int], line: int) -> int | None:
        """At which place of the order, from 1, this line of the program stands; None: before."""
        if not isinstance(self.measure, str):  # it was given the lines alone
            return line
        end = self.setup.count("\n") + 1 if self.setup else 0
        for place, index in enumerate(order, 1):
            begin, end = end, end + self.lines[index].count("\n") + 1
            if begin < line <= end:
                return place
        return None

    def to_html(self) -> str:
        """The shuffled lines; the right order and what it gives folded."""
        setup = f"<p>First runs:</p>{listing.to_html(self.setup)}" if self.setup else ""
        shuffled = listing.to_html("\n".join(self.lines[k] for k in self.start))
        answer = listing.to_html("\n".join(self.lines))
        output = listing.to_html(self.target.to_text(self.measured))
        plan = curve.plan({"loss": self.target.losses})
        image = f"<p>{curve.to_image(plan)}</p>" if plan else ""
        return self.framed(
            f"<p><strong>{prose.to_html(self.title)}</strong></p>{setup}"
            f"<p>Put these lines in order:</p>{shuffled}"
            f"<details><summary>A right order, and what it gives</summary>{answer}{output}{image}"
            "</details>"
        )

    def __str__(self) -> str:
        lines = "\n".join(f"  {line}" for k in self.start for line in self.lines[k].splitlines())
        return f"{prose.to_text(f'{self.kind}: {self.title}')}\n{lines}"


def _in_a_word(run: running.Run) -> str:
    return run.fault.type if run.fault else str(run.shown)


def order(
    id: str,
    title: str,
    lines: list[str],
    setup: str = "",
    measure: Measure = "",
    *,
    start: list[int] | None = None,
) -> Order:
    """Lines to be put in order, and really run.

    Example:
        >>> import pytorch_lab as lab
        >>> puzzle = lab.order(
        ...     "07.o1",
        ...     "One step of gradient descent",
        ...     setup="x, gradient = 4.0, 0.0",
        ...     lines=["gradient = 2 * x", "x -= 0.25 * gradient"],
        ...     measure="x",
        ... )
        >>> print(puzzle)
        Put in order: One step of gradient descent
          x -= 0.25 * gradient
          gradient = 2 * x
        >>> puzzle.on_run([0, 1])
        >>> puzzle.state["result"]["right"], puzzle.state["result"]["run"]["value"]
        (True, '2')

    Lines of a training loop are run by `loop.run`, which draws the real curve of a wrong order:

        >>> loop = lab.loop
        >>> lines = loop.lines(loop.RIGHT)
        >>> puzzle = lab.order("07.o2", "One turn", lines=lines, measure=loop.run)
        >>> puzzle.on_run([1, 2, 3, 0, 4])
        >>> print(puzzle.state["result"]["run"]["warnings"][0][:56])
        Nothing moves: zero_grad clears what backward has comput

    Args:
        id: its name in the learner's progress: the lesson, a dot, a word.
        title: what the lines should do.
        lines: the lines in a right order; indentation belongs to a line.
        setup: code that runs before them and is shown above them.
        measure: an expression, evaluated after them; an order is right when it gives the same
            value as `lines`. A list called `losses` is drawn as a curve. Or a function that runs
            the lines itself, such as `loop.run`, whose losses are drawn; it takes no `setup`.
        start: the order shown first, as places in `lines`; by default shuffled by `id`.

    Raises:
        UsageError: the lines are no puzzle, or the right order does not run.
    """
    where = question.call("order", id)
    title = prose.sentence(where, "a title", title)
    _check_lines(where, lines)
    if callable(measure) and setup:
        raise UsageError(
            f"{where} expected no `setup` beside a `measure` that runs the lines itself, got "
            f"{setup!r:.60}; write it into that function."
        )
    if not callable(measure) and not running.is_expression(measure):
        raise UsageError(
            f"{where} expected `measure` as a Python expression, got {measure!r}; "
            "its value decides whether an order is right."
        )
    right = list(range(len(lines)))
    candidates = _shuffles(id, right) if start is None else [_checked(where, start, right)]
    puzzle = Order(id, title, lines, setup.strip("\n"), measure, candidates[0])
    if not puzzle.target.worked:
        if puzzle.target.interrupted:
            raise KeyboardInterrupt
        raise UsageError(
            f"{where} expected `lines` in an order that runs, got {puzzle.target.fault}; "
            "write them in the right order."
        )
    return _started(where, puzzle, candidates)


def _started(where: str, puzzle: Order, candidates: list[list[int]]) -> Order:
    """The puzzle, shown in the first of these orders that does not already work."""
    for start in candidates:
        run = puzzle.run(start)
        if run.interrupted:
            raise KeyboardInterrupt
        if not (run.worked and running.same(run.value, puzzle.target.value)):
            puzzle.start = start
            puzzle.update(start=start)
            return puzzle
    raise UsageError(
        f"{where} expected a first order that does not already work, got {puzzle.target.shown!r} "
        f"from every one of {len(candidates)} tried; let `measure` depend on the order."
    )


def _check_lines(where: str, lines: Any) -> None:
    if not isinstance(lines, list) or len(lines) < 2:
        raise UsageError(
            f"{where} expected `lines` as a list of at least two, got {lines!r:.60}; "
            "write them in a right order."
        )
    for line in lines:
        if not isinstance(line, str) or not line.strip():
            raise UsageError(
                f"{where} expected each of its lines to hold code, got {line!r}; leave it out."
            )
    twice = [line for line in lines if lines.count(line) > 1]
    if twice:
        raise UsageError(
            f"{where} expected lines that differ, got {twice[0]!r} twice; "
            "nobody could tell which is which."
        )


def _checked(where: str, start: Any, right: list[int]) -> list[int]:
    if not isinstance(start, list) or sorted(start) != right:
        raise UsageError(
            f"{where} expected `start` as an order of the places 0 to {len(right) - 1}, "
            f"got {start!r}; name each place once."
        )
    return start


def _shuffles(id: str, right: list[int]) -> list[list[int]]:
    """Some shuffled orders, the same for the same id, none of them the right one."""
    dice = random.Random(id)
    found: list[list[int]] = []
    for _ in range(SHUFFLES):
        mixed = dice.sample(right, len(right))
        if mixed == right:
            mixed = right[::-1]
        if mixed not in found:
            found.append(mixed)
    return found
