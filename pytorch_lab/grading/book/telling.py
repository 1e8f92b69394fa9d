r"""What a student is told of a verdict: where to look, and no value of a hidden check.

    >>> reason = "twice a vector[1]: expected 0.5, got 0.25 (2 of 3 values differ)"
    >>> tell("failed", reason, check='checks.reveal("twice a vector", twice(x))')
    ["A hidden check found another result: the value 'twice a vector' holds other numbers."]

A reason quotes what was expected, what came, and what an error said; a student's own code chooses
the last two, and could carry a hidden input out in them. So sentences are made anew, and quote only
what stands in the instructor's check or in the student's own answer. What was settled without
running any code can tell no secret.
"""

import builtins
import re
from collections.abc import Sequence

STATUS_WORDS = {
    "passed": ("✓", "passed"),
    "partial": ("◐", "in part"),
    "failed": ("✗", "wrong"),
    "raised": ("✗", "error"),
    "timed_out": ("✗", "too slow"),
    "kernel_died": ("✗", "kernel ended"),
    "not_attempted": ("○", "open"),
    "missing": ("○", "missing"),
    "needs_person": ("○", "waits for a person"),
    "refused": ("!", "not judged"),
    "unreadable": ("!", "not readable"),
}
TONES = {"passed": "good"} | dict.fromkeys(
    ("partial", "needs_person", "not_attempted", "missing"), "open"
)  # anything else is bad
# Settled by what stands in the notebook, or by the file: nothing was run.
_QUOTED = ("missing", "refused", "unreadable", "not_attempted")

_FIXED = {
    "partial": "Some of the tests passed.",
    "kernel_died": "The kernel ended while it ran: by `exit`, for want of memory, or in a crash.",
    "needs_person": "Your instructor marks it.",
}

_LABELLED = re.compile(
    r"(?P<name>.+?)(?P<place>\[.*?)?(?:, from character \d+)?: (?P<says>.+)", re.S
)
_LAST_LABEL = re.compile(
    r"the check came to no end: expected the value '(?P<name>[^']*)', got none"
)
_SAYS = (
    (r"expected (shape|dtype|device|layout) ", "{name} has another {0}"),
    (r"expected requires_grad=", "{name} does not have the same `requires_grad`"),
    (r"expected \d+ items?, got \d+ items?", "{name} has another number of items"),
    (r"expected (?:an? |None)", "{name} is of another type"),
    (r"the key .* is missing", "a key is missing in {name}"),
    (r"the key .* was not expected", "{name} has a key too many"),
    (r"expected '", "{name} differs"),
    (r"expected \(?-?[\d.]|expected (?:nan|-?inf|True|False)", "{name} holds other numbers"),
)
_IN_LINE = re.compile(r"(?P<error>\w+) in line (?P<number>\d{1,5}), ")
_SECONDS = re.compile(r"the (?:answer|hidden check|cell) ran longer than (\d{1,6}) s;")
_PATH = re.compile(r"(?<![\w.])(?:[A-Za-z]:)?(?:[/\\][^\s/\\:,;'\"]+)+[/\\]")


def tell(status: str, reason: str, answers: Sequence[str] = (), check: str = "") -> list[str]:
    r"""Sentences for the student about one exercise; `code` in them stands between backticks.

    Args:
        status: the verdict's.
        reason: the verdict's, for the instructor.
        answers: the sources of the student's answer cells, for the line that raised.
        check: the source of the hidden check, for the label that a value has there.

    Example:
        >>> tell("raised", "ZeroDivisionError in line 2, return 1 / 0: division by zero",
        ...      ["def f():\n    return 1 / 0"])
        ['`ZeroDivisionError` in your line 2: `return 1 / 0`']
        >>> tell("timed_out", "the answer ran longer than 60 s; is there a loop that never ends?")
        ['It ran longer than 60 s and was stopped. Is there a loop that never ends?']
    """
    if status == "passed":
        return []
    if status == "failed":
        return [_failed(reason, check)]
    if status == "raised":
        return [_raised(reason, answers)]
    if status == "timed_out":
        found = _SECONDS.match(reason)
        limit = f"It ran longer than {found[1]} s" if found else "It ran too long"
        return [f"{limit} and was stopped. Is there a loop that never ends?"]
    if status in _FIXED:
        return [_FIXED[status]]
    if status in _QUOTED and reason:
        return [_sentence(_PATH.sub("", reason))]
    return ["It was not judged; ask your instructor why."]


def _sentence(reason: str) -> str:
    """A reason with the case and the stop of a sentence."""
    first = reason[0] if re.match(r"\S+[./]\w", reason) else reason[0].upper()  # a file's
    return f"{first}{reason[1:]}{'' if reason.endswith(('.', '?', '!')) else '.'}"


def _failed(reason: str, check: str) -> str:
    unended = _LAST_LABEL.match(reason)
    if unended:
        name = _named(unended["name"], check)
        return f"A hidden check came to no end: it got nothing for {name}."
    opening, found = "A hidden check found another result", _LABELLED.match(reason)
    for says, told in _SAYS if found else ():
        if found and (match := re.match(says, found["says"], re.S)):
            name = _named(found["name"], check)
            return f"{opening}: {told.format(*match.groups(), name=name)}."
    return f"{opening} than the reference."


def _named(label: str, check: str) -> str:
    """A label that the instructor wrote into the check; one with digits in it may tell an input."""
    written = f'"{label}"' in check or f"'{label}'" in check
    return (
        f"the value '{label}'"
        if written and not re.search(r"[\d`]", label)
        else "one of the values"
    )


def _raised(reason: str, answers: Sequence[str]) -> str:
    """Which error, and the student's own line; a class of their own may have any name."""
    kind = re.match(r"\w+", reason)
    known = getattr(builtins, kind[0], None) if kind else None
    named = isinstance(known, type) and issubclass(known, BaseException)
    error = f"`{kind[0]}`" if kind and named else "An error"
    found = _IN_LINE.match(reason)
    number, rest = (int(found["number"]), reason[found.end() :]) if found else (0, "")
    for source in answers:
        lines = source.split("\n")
        line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
        if line and rest.startswith(line):
            return f"{error} in your line {number}" + (f": `{line}`" if "`" not in line else ".")
    return f"{error} while your answer was run or used."
