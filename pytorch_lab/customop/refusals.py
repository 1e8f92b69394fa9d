"""What torch says when a backward can't be run, in words of the learner's own function."""

import re

from pytorch_lab.customop.record import Remark
from pytorch_lab.words import shortened


def refusal(said: str, arguments: tuple[str, ...]) -> Remark:
    """The problem behind an error of backward.

    Args:
        said: by torch, or by the backward itself.
        arguments: the names of all that a Function's forward takes, where they are known.
    """
    many = re.search(r"incorrect number of gradients \(expected (\d+), got (\d+)\)", said)
    if many:
        return Remark(
            "number", "problem",
            f"Backward returns {many[2]} gradient{'' if many[2] == '1' else 's'}, but forward has "
            f"{many[1]} arguments: return one for each, in their order, and `None` for those "
            "without a gradient.",
        )  # fmt: skip
    shape = re.search(
        r"invalid gradient at index (\d+) - got (\[.*?\]) but .* with (\[.*?\])", said
    )
    if shape:
        return _shape(int(shape[1]), shape[2], shape[3], arguments)
    if "modified by an inplace operation" in said:
        return Remark(
            "saved_changed", "problem",
            "A tensor that was saved for backward has been changed in place since: save a copy, or "
            "compute the result into a new tensor.",
        )  # fmt: skip
    return Remark("raised", "problem", f"Backward raised {shortened(said)}")


def _shape(index: int, got: str, want: str, arguments: tuple[str, ...]) -> Remark:
    name = f"`{arguments[index]}`" if index < len(arguments) else f"argument {index}"
    advice = ""
    mine, theirs = (re.findall(r"\d+", one) for one in (got, want))
    if len(mine) == 2 and mine == theirs[::-1]:
        advice = " It is transposed."
    elif len(mine) < len(theirs):
        advice = " It was summed or averaged over too much."
    return Remark(
        "shape", "problem",
        f"Backward returns a gradient of shape {got} for {name}, which has shape {want}.{advice}",
    )  # fmt: skip
