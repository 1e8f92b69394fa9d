"""At which instruction did two runs part, and what did each do there?"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pytorch_lab.graph.comparing.alignment import Hunk
from pytorch_lab.graph.comparing.deciders import decider_at, truth_of
from pytorch_lab.graph.comparing.trail import Step, Trail, ends_loop, is_loop
from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.recording.sites import decode
from pytorch_lab.graph.schema import Site
from pytorch_lab.words import count


@dataclass(frozen=True)
class Branch:
    """A place at which the two runs went different ways.

    Attributes:
        kind: "if", "elif", "while", "for", "ternary", "comprehension", "and", "or", "assert",
            "case", "except", "raise" (one run raised here), "call" (one and the same call went to
            different functions), "inside" (the ops differ inside of a call of torch's), "branch"
            (there is no source to look into).
        site: its line and columns: from the keyword to the end of the condition.
        condition: the words that were decided upon: `x.sum() > 0`.
        says: what each run did: "true in A, false in B".
        only_a: the ops that run A has because of it; places in `diff.a.ops`.
        only_b: the same for run B.
    """

    kind: str
    site: Site
    condition: str
    says: str
    only_a: tuple[int, ...]
    only_b: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "kind": self.kind,
            "site": self.site._asdict(),
            "condition": self.condition,
            "says": self.says,
            "only_a": list(self.only_a),
            "only_b": list(self.only_b),
        }


@dataclass
class Side:
    """One run: its record, and its ops and decisions as one row of things to compare."""

    record: GraphRecord
    trail: Trail
    keys: list[Any] = field(default_factory=list)
    ops: list[int | None] = field(default_factory=list)  # which op each entry is
    steps: list[Step | None] = field(default_factory=list)  # or which step

    def lay_out(self) -> None:
        """Put the ops between the steps."""
        turns = self._turns_of_ops()
        done = 0
        for step, before in zip(self.trail.steps, self.trail.ops_before, strict=True):
            done = self._ops(done, min(before, len(self.record.ops)), turns)
            if step.kind == "branch":  # the place is in common even where the way is not
                self._entry(("at", id(step.code), step.offset, step.turns), None, None)
            self._entry(step.key, None, step)
        self._ops(done, len(self.record.ops), turns)

    def _turns_of_ops(self) -> list[int]:
        """For each op the turns in which it ran."""
        changes = [*self.trail.turns, (len(self.record.ops), 0)]
        turns: list[int] = []
        for (_, number), (end, _) in itertools.pairwise(changes):
            turns += [number] * (end - len(turns))
        return turns

    def _ops(self, start: int, end: int, turns: list[int]) -> int:
        for place in range(start, end):
            op = self.record.ops[place]
            self._entry((op.name, op.site, op.module, turns[place]), place, None)
        return max(start, end)

    def _entry(self, key: Any, op: int | None, step: Step | None) -> None:
        self.keys.append(key)
        self.ops.append(op)
        self.steps.append(step)

    def ops_in(self, start: int, end: int) -> tuple[int, ...]:
        """The ops among some entries."""
        return tuple(op for op in self.ops[start:end] if op is not None)


def parting(a: Side, b: Side, hunk: Hunk) -> Branch | None:
    """What the runs decided where they part; None if nothing can be said and no op differs."""
    only_a = a.ops_in(hunk.a_start, hunk.a_end)
    only_b = b.ops_in(hunk.b_start, hunk.b_end)
    one = a.steps[hunk.a_start] if hunk.a_start < len(a.steps) else None
    two = b.steps[hunk.b_start] if hunk.b_start < len(b.steps) else None
    told = _parting(a, b, hunk, one, two)
    if told is not None:
        return Branch(*told, only_a, only_b)
    if not only_a and not only_b:
        return None
    place = (a.record.ops[only_a[0]] if only_a else b.record.ops[only_b[0]]).site
    return Branch("inside", place, "", "the ops differ inside of this call", only_a, only_b)


def _parting(
    a: Side, b: Side, hunk: Hunk, one: Step | None, two: Step | None
) -> tuple[str, Site, str, str] | None:
    """Kind, site, condition and words, from what each run did next."""
    for step, name, other in ((one, "A", "B"), (two, "B", "A")):
        if step is not None and step.kind == "raise":
            site = decode(step.code, step.offset)
            return "raise", site, step.outcome, f"raised {step.outcome} in {name}, not in {other}"
    call = _calls(a, b, hunk, one, two)
    if call is not None:
        return call
    if one is None or two is None or one.kind != two.kind:
        return None
    if one.kind != "branch" or (one.code, one.offset) != (two.code, two.offset):
        return None
    decider = decider_at(one.code, one.offset)
    truth = truth_of(one.code, one.offset, one.outcome, decider)
    if decider.kind == "for" or (decider.kind == "comprehension" and is_loop(one.code, one.offset)):
        turns = [_turns(side, start) for side, start in ((a, hunk.a_start), (b, hunk.b_start))]
        says = " in A, ".join(count(n, "turn") for n in turns) + " in B"
    elif truth is None:
        says = _ways(*(decode(step.code, step.outcome).line for step in (one, two)))
    else:
        says = "true in A, false in B" if truth else "false in A, true in B"
    return decider.kind, decider.site, decider.condition, says


def _ways(a: int, b: int) -> str:
    """Where they went on, where it is not known which words were true."""
    if a == b:
        return f"went different ways within line {a}"
    return f"went on at line {a} in A, at line {b} in B"


def _calls(
    a: Side, b: Side, hunk: Hunk, one: Step | None, two: Step | None
) -> tuple[str, Site, str, str] | None:
    """One and the same call, which went to different functions."""
    sites, names = [], []
    for side, place, step in ((a, hunk.a_start, one), (b, hunk.b_start, two)):
        op = side.ops[place] if place < len(side.ops) else None
        if step is not None and step.kind == "enter":
            sites.append(decode(step.outcome, step.offset))
            names.append(f"`{_name(step)}`")
        elif op is not None:
            sites.append(side.record.ops[op].site)
            names.append(f"torch's {side.record.ops[op].name}")
    if len(sites) != 2 or sites[0] != sites[1] or not any("`" in name for name in names):
        return None
    return "call", sites[0], "", f"called {names[0]} in A, {names[1]} in B"


def _name(step: Step) -> str:
    name = step.code.co_qualname.split("<locals>.")[-1]
    return f"{name} of line {step.code.co_firstlineno}" if "<" in name else name


def _turns(side: Side, place: int) -> int:
    """How many turns the loop takes that is being decided upon at `place`."""
    here = side.steps[place]
    return _until_the_end(here, reversed(side.steps[:place])) + _until_the_end(
        here, side.steps[place:]
    )


def _until_the_end(here: Step | None, steps: Iterable[Step | None]) -> int:
    taken = 0
    for step in steps:
        if step is None or here is None or step[:3] != here[:3]:
            continue
        if ends_loop(step):
            break
        taken += 1
    return taken
