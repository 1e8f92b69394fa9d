"""Each kind of mistake with gradients is named, at its line, and the healed program is left alone.

The programs are ours (`tests/autograd_mistakes.py`). `benchmarks/autograd_bank.py` asks the same
questions about a folder of cases from elsewhere.
"""

import pytest

from tests.autograd_mistakes import MISTAKES, Mistake

# What a healed program may be told: nothing is wrong with it.
HARMLESS = {"fine", "has_grad", "backward_not_called", "no_error", "out_of_memory"}


@pytest.mark.parametrize("mistake", MISTAKES, ids=[mistake.name for mistake in MISTAKES])
def test_the_cause_is_named_with_its_line(mistake: Mistake) -> None:
    answer = mistake.program(True)
    assert (answer.cause, answer.where) == (mistake.cause, mistake.where or answer.where), answer
    assert answer.fix
    assert all(len(line) <= 80 for line in str(answer).splitlines())


@pytest.mark.parametrize("mistake", MISTAKES, ids=[mistake.name for mistake in MISTAKES])
def test_the_healed_program_is_left_alone(mistake: Mistake) -> None:
    answer = mistake.program(False)
    assert answer.cause in HARMLESS, answer


def test_every_marked_line_is_unique() -> None:
    """A mark that stands in no program would be a test that cannot fail."""
    marked = [mistake.where for mistake in MISTAKES if mistake.where]
    assert len(set(marked)) == len(marked) >= 40
