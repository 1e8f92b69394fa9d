"""What a node of the graph does to a gradient, in the notation of a school book.

    MulBackward0        y = a · b        dL/da = dL/dy · b        dL/db = dL/dy · a

The formulas are ours; that they are true is tested by computing each one as it is written here and
comparing it with what torch hands back. Notation:

- y is what the op computed, dL/dy the gradient that arrives there; · multiplies element by element,
  @ is the matrix product, Σ sums up, [condition] is 1 where it holds and 0 elsewhere.
- put(g, i) is zeros with g added at the places i, the way back of x[i]; `conv_transpose`, `gather`,
  `scatter_add`, `cat`, `outer`, ... are what torch calls so.
- What follows a semicolon explains a letter ("h = w · dL/dy") or says something in words.
- An input that was broadcast gets the sum over the places where it was repeated: `BROADCAST`.
"""

from typing import NamedTuple

from pytorch_lab.graph import formulas_arrays, formulas_pointwise

BROADCAST = "Where an input was broadcast, its gradient is summed over the repeated places."

_TABLE = formulas_pointwise.TABLE | formulas_arrays.TABLE


class Formula(NamedTuple):
    """What an op computes, and the gradients that its node hands on."""

    name: str  # "Mul", or "Max:1" if the digit behind "Backward" tells two ops apart
    says: str  # "y = a · b"
    gradients: tuple[str, ...]  # "dL/da = dL/dy · b", one for each input that can have one
    needs: tuple[str, ...]  # what it saves for that, as torch calls it; absent inputs are left out


def formula(node_name: str) -> Formula | None:
    """The formula of an autograd node, or None where there is none in the book.

    Example:
        >>> found = formula("MulBackward0")
        >>> found.says
        'y = a · b'
        >>> found.gradients
        ('dL/da = dL/dy · b', 'dL/db = dL/dy · a')
        >>> found.needs
        ('self', 'other')
        >>> formula("MyOwnFunctionBackward") is None
        True

    Args:
        node_name: what `node.name()` says: "AddmmBackward0"; the digit may be missing.
    """
    name = node_name.rpartition("::")[2]  # torch::autograd::AccumulateGrad
    stem = name.rstrip("0123456789")
    digits = name[len(stem) :]
    short = stem.removesuffix("Backward")
    plain = stem in ("AccumulateGrad", "CopySlices", "CopyBackwards")
    if not plain and short == stem:
        return None
    for key in (f"{short}:{digits}", short):
        if key in _TABLE:
            says, needs, gradients = _TABLE[key]
            lines = tuple(f"dL/d{letter} = {line}" for letter, line in gradients.items())
            return Formula(key, says, lines, tuple(needs.split()))
    return None


def known() -> tuple[str, ...]:
    """The names in the book, "Mul" for MulBackward0, "Max:1" for MaxBackward1.

    Example:
        >>> {"Mul", "Addmm", "Max:1", "CopySlices"} <= set(known())
        True
    """
    return tuple(_TABLE)
