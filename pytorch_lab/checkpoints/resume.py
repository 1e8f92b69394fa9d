"""How far is a resumed run from the one that was never interrupted, and which missing piece is it?

A run is what `make_run()` returns: a function that does one step and gives its loss, and a dict of
the live pieces that a checkpoint could hold.

    def make_run():
        model, optimizer = ...
        def step():
            ...
            return loss
        return step, {"model": model, "optimizer": optimizer, "scheduler": scheduler}

A piece is anything with `state_dict()` and `load_state_dict()`, a generator of torch, numpy or
Python, or a pair of functions (save, load). The global random numbers belong to every run, so they
are always there, under the name of RNG. Each way to resume is really run: in a run that is made
anew, as a new process would make it, with some of the pieces put back.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from pytorch_lab import surroundings, words
from pytorch_lab.checkpoints.pieces import RNG, is_piece, load, save
from pytorch_lab.errors import ModelError, UsageError


@dataclass(frozen=True, slots=True)
class Way:
    """One way to resume: which pieces were put back, and what became of the run."""

    name: str  # "nothing", "+ optimizer", "all but scheduler"
    restored: tuple[str, ...]
    losses: tuple[float, ...]  # of each step after the interruption
    distance: float  # of the weights at the end, from those of the uninterrupted run
    first_off: int | None  # the first step whose loss differs; None if none does


@dataclass(frozen=True, slots=True)
class ResumeGap:
    """What each way to resume costs."""

    before: tuple[float, ...]  # losses up to the interruption
    uninterrupted: tuple[float, ...]  # losses afterwards, of the run that went on
    ways: tuple[Way, ...]  # one piece more each time; the last has all
    without: tuple[Way, ...]  # everything but one piece
    repeats: float  # how far two uninterrupted runs are from each other: 0.0, or nothing holds
    weights: str  # the piece whose distance is measured

    @property
    def exact(self) -> bool:
        """Whether the run with everything put back is the uninterrupted one, to the last bit."""
        return self.repeats == 0.0 and self.ways[-1].distance == 0.0

    @property
    def matters(self) -> tuple[str, ...]:
        """The pieces without which the run becomes another one."""
        everything = set(self.ways[-1].restored)
        return tuple(
            missing
            for way in self.without
            for missing in everything - set(way.restored)
            if way.distance != 0.0
        )

    @property
    def verdict(self) -> str:
        """What was found, in one sentence."""
        if self.repeats != 0.0:
            return (
                f"Two uninterrupted runs already differ by {self.repeats:.3g}: make_run is not "
                "repeatable, so nothing can be said; seed everything in it."
            )
        if not self.exact:
            return (
                f"With every piece put back the run still differs by {self.ways[-1].distance:.3g}: "
                "something is not among the pieces, such as the position in the data, a "
                "generator of its own, or a counter."
            )
        if not self.matters:
            return "Exactly 0.0, whatever is left out: in these steps no piece was needed."
        needed = words.listed(self.matters)
        return f"Exactly 0.0 with every piece put back; it takes {needed}."

    def to_dict(self) -> dict[str, Any]:
        """The record as plain dicts, lists, numbers and strings."""
        return asdict(self)

    def __str__(self) -> str:
        from pytorch_lab.checkpoints.resume_text import render

        return render(self)


def resume_gap(
    make_run: Callable[[], tuple[Callable[[], Any], Mapping[str, Any]]],
    *,
    before: int = 10,
    after: int = 10,
    weights: str = "model",
    seed: int = 0,
) -> ResumeGap:
    """Interrupt a run and resume it in every way that forgets something.

    Example:
        >>> import torch
        >>> from pytorch_lab import checkpoints
        >>> def make_run():
        ...     model = torch.nn.Linear(2, 1)
        ...     optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        ...     def step():
        ...         loss = model(torch.randn(8, 2)).square().mean()
        ...         optimizer.zero_grad()
        ...         loss.backward()
        ...         optimizer.step()
        ...         return loss
        ...     return step, {"model": model, "optimizer": optimizer}
        >>> gap = checkpoints.resume_gap(make_run, before=3, after=3)
        >>> gap.exact, gap.matters
        (True, ('model', 'optimizer', 'torch RNG'))

    Args:
        make_run: builds the run anew and returns its step and its pieces. Called once for each way,
            2 × pieces + 7 times in all, so the steps should be few and the problem small.
        before: steps until the interruption.
        after: steps that are compared.
        weights: the piece whose weights are compared: something with `state_dict()`. The distance
            is the Euclidean norm of the difference of all its floating-point tensors.
        seed: what the global random numbers start from.

    Raises:
        UsageError: `make_run` returns something else, or a piece can't be saved.
        ModelError: a step raised; `__cause__` is its own error.
    """
    _check(make_run, before, after)
    with surroundings.kept(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lab = _Lab(make_run, before, after, weights, seed)
        names = list(lab.checkpoint)
        ways = [lab.resume("nothing", ())]
        own = [name for name in names if name not in RNG]
        for i, name in enumerate(own):
            ways.append(lab.resume(f"+ {name}", tuple(own[: i + 1])))
        ways.append(lab.resume("+ RNG", tuple(names)))
        without = [lab.resume(f"all but {n}", tuple(o for o in names if o != n)) for n in names]
        repeats = lab.repeats()
    return ResumeGap(
        lab.before, lab.uninterrupted, tuple(ways), tuple(without), repeats, weights
    )  # fmt: skip


def _check(make_run: Any, before: Any, after: Any) -> None:
    if not callable(make_run):
        raise UsageError(
            f"resume_gap(make_run) expected a function that builds a run, got "
            f"{type(make_run).__name__!r}; give the function itself."
        )
    for name, given, least in (("before", before, 0), ("after", after, 1)):
        if not isinstance(given, int) or isinstance(given, bool) or given < least:
            raise UsageError(
                f"resume_gap(…, {name}=…) expected a number of steps from {least} on, got "
                f"{given!r}."
            )


class _Lab:
    """The uninterrupted run, the checkpoint taken on its way, and the runs resumed from it."""

    def __init__(
        self, make_run: Callable[[], Any], before: int, after: int, weights: str, seed: int
    ) -> None:
        self.make_run, self.seed, self.weights = make_run, seed, weights
        self.n_before, self.n_after = before, after
        step, pieces = self._made(seed)
        self.before = self._steps(step, before)
        self.checkpoint = {name: save(name, piece) for name, piece in pieces.items()}
        self.uninterrupted = self._steps(step, after)
        self.end = _weights(pieces[weights])

    def _made(self, seed: int) -> tuple[Callable[[], Any], dict[str, Any]]:
        """A run made anew, with the global random numbers as another piece."""
        surroundings.seed(seed)
        try:
            run = self.make_run()
        except Exception as error:  # the learner's own code
            raise ModelError(
                f"resume_gap(make_run): make_run() raised {type(error).__name__}: "
                f"{words.shortened(words.message_of(error))}"
            ) from error
        step, pieces = _taken(run)
        taken = [name for name in RNG if name in pieces]
        if taken:
            raise UsageError(
                f"resume_gap(make_run) expected a piece of another name than {taken[0]!r}, under "
                "which the global random numbers are kept; rename it."
            )
        if self.weights not in pieces:
            raise UsageError(
                f"resume_gap(…, weights={self.weights!r}) expected the name of a piece, got none "
                f"of {', '.join(map(repr, pieces))}; name the piece that holds the weights."
            )
        return step, {**pieces, **{name: name for name in RNG}}

    def _steps(self, step: Callable[[], Any], count: int) -> tuple[float, ...]:
        losses = []
        for number in range(count):
            try:
                loss = step()
                losses.append(float(loss.detach() if isinstance(loss, torch.Tensor) else loss))
            except Exception as error:  # the learner's own code
                raise ModelError(
                    f"resume_gap(make_run): step {number} raised {type(error).__name__}: "
                    f"{words.shortened(words.message_of(error))}"
                ) from error
        return tuple(losses)

    def resume(self, name: str, restored: tuple[str, ...]) -> Way:
        """A run as a new process makes it: other random numbers, and of the pieces these alone."""
        step, pieces = self._made(self.seed + 1)
        if pieces.keys() != self.checkpoint.keys():
            raise UsageError(
                "resume_gap(make_run) expected make_run() to return pieces of the same names each "
                f"time, got first {', '.join(self.checkpoint)}, then {', '.join(pieces)}."
            )
        for piece in restored:
            try:
                load(pieces[piece], self.checkpoint[piece])
            except Exception as error:  # the learner's own code
                raise ModelError(
                    f"resume_gap(make_run): putting back {piece!r} raised {type(error).__name__}: "
                    f"{words.shortened(words.message_of(error))}"
                ) from error
        losses = self._steps(step, self.n_after)
        off = [k for k, loss in enumerate(losses) if not _same(loss, self.uninterrupted[k])]
        distance = _distance(_weights(pieces[self.weights]), self.end)
        return Way(name, restored, losses, distance, off[0] if off else None)

    def repeats(self) -> float:
        """The distance of another uninterrupted run."""
        step, pieces = self._made(self.seed)
        self._steps(step, self.n_before + self.n_after)
        return _distance(_weights(pieces[self.weights]), self.end)


def _taken(run: Any) -> tuple[Callable[[], Any], dict[str, Any]]:
    if isinstance(run, tuple) and len(run) == 2 and callable(run[0]):
        step, pieces = run
        if isinstance(pieces, Mapping) and pieces and all(isinstance(n, str) for n in pieces):
            _check_pieces(pieces)
            return step, dict(pieces)
    raise UsageError(
        "resume_gap(make_run) expected make_run() to return (step, pieces), a function and a dict "
        f"of names to live objects, got {type(run).__name__!r}: {run!r:.60}"
    )


def _check_pieces(pieces: Mapping[str, Any]) -> None:
    for name, piece in pieces.items():
        if not is_piece(piece):
            raise UsageError(
                f"resume_gap(make_run) expected the piece {name!r} to have state_dict() and "
                "load_state_dict(), to be a generator, or a pair of functions (save, load); got "
                f"{type(piece).__name__!r}."
            )


def _same(one: float, other: float) -> bool:
    return one == other or (one != one and other != other)  # NaN is NaN here


def _weights(piece: Any) -> dict[str, torch.Tensor]:
    """Copies of all floating-point tensors of a piece."""
    state = piece.state_dict() if hasattr(piece, "state_dict") else {}
    found = {
        name: one.detach().to("cpu", torch.float64, copy=True)
        for name, one in state.items()
        if isinstance(one, torch.Tensor) and one.is_floating_point() and _has_numbers(one)
    }
    if not found:
        raise UsageError(
            "resume_gap(…, weights=…) expected a piece whose state_dict() holds floating-point "
            f"tensors, got {type(piece).__name__!r} without any; name the model."
        )
    return found


def _has_numbers(tensor: torch.Tensor) -> bool:
    return not (torch.nn.parameter.is_lazy(tensor) or tensor.is_meta)


def _distance(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    """The Euclidean norm of the difference; NaN at the same place is no difference."""
    total = 0.0
    for name, tensor in one.items():
        off = torch.where(tensor.isnan() & other[name].isnan(), 0.0, tensor - other[name])
        total += float(off.square().sum())
    return total**0.5
