r"""Which answers are alike beyond what chance and a short exercise explain. A hint, never a proof.

Compared are the tokens of the code, without comments, spaces and docstrings, and with a student's
own names numbered in the order in which they come: renaming does not hide a copy. What the stub
gives and what is nearly the solution is left out, since right answers to one question resemble each
other. Where many wrote the same they are one group: a lesson may have said it.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import itemgetter

from pygments.lexers import PythonLexer
from pygments.token import Token
from rapidfuzz.distance import Indel
from rapidfuzz.process import extract_iter

ALIKE = 0.85  # share of the tokens that stand in both, in the same order
SHORTEST = 30  # tokens beyond the stub; shorter answers are alike by chance
MANY = 4  # so many students with the same text are a group, not pairs
MOST_PAIRS = 300  # of one exercise, the nearest ones
MOST = 1500  # different answers to one exercise; more take too long to compare
_LONGEST = 20_000  # characters of an answer that are looked at


@dataclass(frozen=True)
class Alike:
    """Students whose answers to some exercises resemble each other."""

    students: tuple[str, ...]
    exercises: tuple[tuple[str, float], ...]  # and how alike they are, from 0 to 1


def alike(
    answers: dict[str, dict[str, str]], stubs: dict[str, str], solutions: dict[str, str]
) -> list[Alike]:
    r"""The students with answers alike; those alike in most exercises come first.

    Args:
        answers: the sources of the answers, by exercise and student.
        stubs: what the students were given, by exercise.
        solutions: the instructor's answers, by exercise.

    Example:
        >>> long = "\n".join(f"value_{n} = compute({n}) + {n} * scale" for n in range(9))
        >>> told = {"03.1": {"ada": long, "bob": long.replace("value", "v"), "eve": "x = 1"}}
        >>> alike(told, {}, {})
        [Alike(students=('ada', 'bob'), exercises=(('03.1', 1.0),))]
    """
    found: dict[tuple[str, ...], list[tuple[str, float]]] = defaultdict(list)
    for exercise, theirs in answers.items():
        stub, solution = tokens(stubs.get(exercise, "")), tokens(solutions.get(exercise, ""))
        for who, share in _groups(theirs, stub, solution):
            found[who].append((exercise, share))
    made = _merged(Alike(who, tuple(told)) for who, told in found.items())
    return sorted(made, key=lambda one: (-len(one.exercises), -_sum(one), one.students))


def _merged(made: Iterable[Alike]) -> list[Alike]:
    """Pairs that share a student and have the same exercises, as one group."""
    groups: dict[tuple[str, ...], list[Alike]] = defaultdict(list)
    for one in made:
        among = groups[tuple(exercise for exercise, _ in one.exercises)]
        near = [other for other in among if {*other.students} & {*one.students}]
        for other in near:
            among.remove(other)
        students = sorted({name for each in (one, *near) for name in each.students})
        shares = zip(*(each.exercises for each in (one, *near)), strict=True)
        among.append(Alike(tuple(students), tuple(min(share) for share in shares)))
    return [one for among in groups.values() for one in among]


def _sum(one: Alike) -> float:
    return sum(share for _, share in one.exercises)


def _groups(
    theirs: dict[str, str], stub: Sequence[str], solution: Sequence[str]
) -> Iterable[tuple[tuple[str, ...], float]]:
    """The students whose answers to one exercise are alike, and how much."""
    writers: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for student, source in theirs.items():
        said = tokens(source)
        if _own(said, stub) < SHORTEST:
            continue
        if solution and Indel.normalized_similarity(said, solution) >= ALIKE:
            continue
        writers[said].append(student)
    texts = list(writers)[:MOST]
    for who in (sorted(writers[said]) for said in texts):
        yield from [(tuple(who), 1.0)] if len(who) >= MANY else _each_pair(who, who, 1.0)
    near = heapq.nlargest(MOST_PAIRS, _near(texts), key=itemgetter(2))
    for i, j, share in near:
        one, other = writers[texts[i]], writers[texts[j]]
        if len(one) < MANY and len(other) < MANY:
            yield from _each_pair(one, other, round(share, 2))


def _near(texts: Sequence[tuple[str, ...]]) -> Iterable[tuple[int, int, float]]:
    """The places of two texts that are alike, and how much."""
    for i, text in enumerate(texts):
        later, scorer = texts[i + 1 :], Indel.normalized_similarity
        for _, share, after in extract_iter(text, later, scorer=scorer, score_cutoff=ALIKE):
            yield i, i + 1 + after, share


def _each_pair(
    some: Sequence[str], others: Sequence[str], share: float
) -> Iterable[tuple[tuple[str, ...], float]]:
    pairs = {tuple(sorted((a, b))) for a in some for b in others if a != b}
    yield from ((pair, share) for pair in sorted(pairs))


def _own(said: Sequence[str], stub: Sequence[str]) -> int:
    """How many tokens an answer has beyond those of the stub."""
    return (Counter(said) - Counter(stub)).total()


@lru_cache(5000)
def tokens(source: str) -> tuple[str, ...]:
    """The tokens of some Python that tell its form from others; it may be broken Python.

    Example:
        >>> tokens("total = x.sum()  # all") == tokens("s=y.sum()")
        True
        >>> tokens("total = x.sum()")
        ('name 0', '=', 'name 1', '.', 'sum', '(', ')')
    """
    made: list[str] = []
    names: dict[str, str] = {}
    before = ""
    for kind, text in _lexer().get_tokens(source[:_LONGEST]):
        if kind in Token.Comment or kind in Token.Literal.String.Doc or not text.strip():
            continue
        own = kind in Token.Name and kind not in Token.Name.Builtin and before != "."
        if kind in Token.Literal.String:
            text = "text"
        elif own:
            text = names.setdefault(text, f"name {len(names)}")
        made.append(text)
        before = text
    return tuple(made)


@cache
def _lexer() -> PythonLexer:
    return PythonLexer()
