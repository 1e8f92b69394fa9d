"""Answers that several questions come to. Each is built here, so that its words are the same."""

from collections.abc import Iterable

from pytorch_lab.graph.explaining.explanation import Explanation
from pytorch_lab.graph.explaining.spots import capital


def old_copy(name: str, facts: Iterable[str]) -> Explanation:
    """Somebody holds a tensor that the computation does not use.

    Args:
        name: what a sentence calls it.
        facts: where it was looked for, and what was found instead.

    Example:
        >>> print(old_copy("`w`", ["no op reads `w`"]))
        `w` is not the tensor that is used: you probably hold a copy from before the
        model was copied, moved or rebuilt, or the parameter of a like layer.
          seen    no op reads `w`
          fix     take the parameter from the model that computes the loss, each time
                    you need it; make the optimizer after the model is final
    """
    return Explanation(
        "old_copy",
        f"{capital(name)} is not the tensor that is used: you probably hold a copy from before "
        "the model was copied, moved or rebuilt, or the parameter of a like layer.",
        evidence=tuple(facts),
        fix="take the parameter from the model that computes the loss, each time you need it; "
        "make the optimizer after the model is final",
    )


def leads_to(name: str) -> str:
    """The fact that the next three begin with."""
    return f"the graph of this loss leads to {name}"


def backward_not_called(name: str, facts: Iterable[str]) -> Explanation:
    """The graph is whole, and nobody has gone back through it.

    Args:
        name: of the parameter.
        facts: how it is known that backward did not run.
    """
    return Explanation(
        "backward_not_called",
        f"Nothing is wrong with the graph: it leads to {name}. backward() did not run on this "
        "loss, or zero_grad() took away what it brought.",
        evidence=(leads_to(name), *facts),
        fix="call loss.backward(), and read `.grad` before zero_grad()",
    )


def custom_backward(name: str, functions: Iterable[str], facts: Iterable[str]) -> Explanation:
    """An autograd.Function of somebody's returned None.

    Args:
        name: of the parameter.
        functions: the nodes of the custom Functions on its way.
        facts: how it is known that backward ran.
    """
    return Explanation(
        "custom_backward",
        f"backward() ran and brought nothing to {name}: the custom Function on its way returned "
        "None for it.",
        evidence=(leads_to(name), *facts, f"on the way: {', '.join(functions)}"),
        fix="return a gradient for each input of forward that should be learned",
    )


def cleared(name: str, facts: Iterable[str]) -> Explanation:
    """A gradient came and is gone.

    Args:
        name: of the parameter.
        facts: how it is known that backward ran.
    """
    return Explanation(
        "cleared",
        f"backward() has run on this loss and brought a gradient to {name}; it was set to None "
        "since, as zero_grad() does, or went elsewhere (autograd.grad, backward(inputs=...)).",
        evidence=(leads_to(name), *facts),
        fix="read `.grad` between backward() and zero_grad(); zero_grad(set_to_none=False) keeps "
        "zeros",
    )


def stepped_between(name: str, where: str, facts: Iterable[str], *, by: str) -> Explanation:
    """The weights were updated between a forward and its backward.

    Args:
        name: of the weight.
        where: the line that changed it, else the backward that failed.
        facts: the versions.
        by: who did it: "by optimizer.step()".
    """
    return Explanation(
        "stepped_between",
        f"{capital(name)} was changed between forward and backward, {by}: the gradient would "
        "belong to weights that are gone.",
        where=where,
        evidence=tuple(facts),
        fix="call all backward() before the first optimizer.step(), or compute the second loss "
        "again after it",
    )
