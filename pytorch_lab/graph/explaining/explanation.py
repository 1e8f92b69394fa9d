"""What is wrong, where, how we know, and what to do: the answer of every `why_...` question."""

import textwrap
from dataclasses import asdict, dataclass
from typing import Any

WIDTH = 80
_INDENT = 10  # of what stands behind "where", "seen", "fix"


@dataclass(frozen=True)
class Explanation:
    """The cause of a trouble with gradients, in words.

    Args:
        cause: a short code that does not change, for tests and graders: "detached", "in_place";
            `CAUSES` in causes.py says what each means.
        says: what happened, for a learner, in one or two sentences.
        where: the line of the reader's own code, `model.py:12`; empty if it can't be known.
        evidence: what was looked at, one fact each; the first proves the cause.
        fix: what to do, as code where it is short; empty if there is nothing to do.

    Example:
        >>> answer = Explanation(
        ...     "detached",
        ...     "h.detach() ends the graph.",
        ...     where="model.py:12",
        ...     evidence=("h has no grad_fn",),
        ...     fix="leave detach() out",
        ... )
        >>> print(answer)
        h.detach() ends the graph.
          where   model.py:12
          seen    h has no grad_fn
          fix     leave detach() out
    """

    cause: str
    says: str
    where: str = ""
    evidence: tuple[str, ...] = ()
    fix: str = ""

    def __str__(self) -> str:
        """A paragraph of at most 80 columns."""
        rows = [("where", self.where)] if self.where else []
        rows += [("seen" if place == 0 else "", fact) for place, fact in enumerate(self.evidence)]
        rows += [("fix", self.fix)] if self.fix else []
        lines = textwrap.wrap(self.says, WIDTH)
        for head, text in rows:
            lines += _row(head, text)
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The five fields as plain values, for a grader or a page.

        Example:
            >>> Explanation("unused", "w is not used.").to_dict()["cause"]
            'unused'
        """
        return {**asdict(self), "evidence": list(self.evidence)}


def _row(head: str, text: str) -> list[str]:
    """One labelled fact; a line of code in it keeps its own line."""
    lines = []
    for part in text.splitlines() or [""]:
        lines += textwrap.wrap(
            part,
            WIDTH - _INDENT,
            subsequent_indent="  " if len(part) > WIDTH - _INDENT else "",
            break_on_hyphens=False,
        ) or [""]
    return [f"  {head if place == 0 else '':8}{line}" for place, line in enumerate(lines)]
