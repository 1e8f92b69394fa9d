"""What a visible check may ask of an answer.

    >>> expect = Expect()
    >>> expect.equal(4, 4, "Each layer brings a weight and a bias.", name="number of parameters")

Each question carries `why`: one sentence that names the misconception. When the answer is wrong,
the sentence comes first and the smallest difference after it, never the whole answer.
"""

from collections.abc import Callable
from typing import Any

from pytorch_lab.checks.compare import difference, encode
from pytorch_lab.errors import CheckFailed, UsageError


class WrongAnswer(CheckFailed):
    """A question was answered wrongly: `why`, and `evidence` where there is some."""

    def __init__(self, why: str, evidence: str = "") -> None:
        super().__init__(f"{why} ({evidence})" if evidence else why)
        self.why = why
        self.evidence = evidence


class Expect:
    """The questions; a check function gets one as its only argument."""

    def equal(self, got: Any, want: Any, why: str, *, name: str) -> None:
        """The two values are equal: type, shape, dtype, device, requires_grad, numbers.

        Args:
            got: what the learner's code gave.
            want: what it should have given.
            why: the misconception behind a wrong value, one sentence.
            name: what the value is called.

        Raises:
            CheckFailed: they differ; the message ends with the smallest difference.
            UsageError: `want` is nothing that can be compared.
        """
        expected = encode(want)
        try:
            given = encode(got)
        except UsageError as error:
            raise WrongAnswer(why, f"{name}: {str(error).rstrip('.')}") from None
        evidence = difference(given, expected, name)
        if evidence:
            raise WrongAnswer(why, evidence)

    def true(self, condition: Any, why: str) -> None:
        """The condition is True, or a boolean tensor of one element that is.

        Nothing else counts as true: the learner's own object may claim of itself what it likes.

        Raises:
            CheckFailed: it is not.
        """
        if condition is not True and not _is_true_tensor(condition):
            raise WrongAnswer(why)

    def raises(
        self, kind: type[BaseException], function: Callable[[], Any], why: str
    ) -> BaseException:
        """Calling `function()` raises an error of this kind, which is returned.

        Example:
            >>> error = Expect().raises(ZeroDivisionError, lambda: 1 / 0, "Division needs a check.")
            >>> str(error)
            'division by zero'

        Raises:
            CheckFailed: it raises nothing, or an error of another kind.
        """
        try:
            function()
        except kind as error:
            return error
        except Exception as error:
            if isinstance(error, NotImplementedError) or _lacks_a_name(error):
                raise  # the answer is not there yet, which is not a wrong one
            got = f"{type(error).__name__}: {error}"
            raise WrongAnswer(why, f"expected {kind.__name__}, got {got}") from error
        raise WrongAnswer(why, f"expected {kind.__name__}, got no error")


def _lacks_a_name(error: Exception) -> bool:
    """Whether the check's own `lambda`, and nothing that it called, missed a name."""
    inside = error.__traceback__ and error.__traceback__.tb_next
    return type(error) is NameError and inside is not None and inside.tb_next is None


def _is_true_tensor(condition: Any) -> bool:
    kind = type(condition)
    if kind.__module__ != "torch" or kind.__name__ != "Tensor":
        return False
    node = encode(condition) if condition.numel() == 1 else {}
    return node.get("dtype") == "bool" and node["values"] == [True]
