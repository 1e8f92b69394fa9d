"""Show a value to the grader, which compares it outside the kernel with the reference's.

    >>> reveal("number of parameters", 4)
    number of parameters: int

The output carries the encoded value in a type of its own; people see the label and what kind of
thing it is, nothing of what is in it.
"""

from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from pytorch_lab.checks.encode import encode
from pytorch_lab.errors import UsageError

VALUE_MIME = "application/vnd.pytorch-lab.value+json"


def reveal(label: str, value: Any) -> None:
    """Display `value` for the grader under `label`.

    Example:
        >>> import torch
        >>> reveal("the weight", torch.zeros(3, 2))
        the weight: Tensor of shape (3, 2), float32

    Args:
        label: what the value is called; the grader's message uses it.
        value: a tensor, number, string, bool, None, dtype, or a list, tuple or dict of them.

    Raises:
        UsageError: `label` is no text, or `value` is nothing that can be compared.
    """
    if type(label) is not str or not label:
        raise UsageError(
            f"reveal(label, value) expected a label such as 'loss', got {label!r:.40}."
        )
    try:
        node = encode(value)
    except UsageError as error:
        raise UsageError(f"reveal({label!r}, value): {error}") from None
    text = f"{label}: {_kind(node)}"
    if InteractiveShell.initialized():
        display(
            {VALUE_MIME: {"label": label, "value": node}, "text/plain": text},
            raw=True,
        )
    else:
        print(text)


def _kind(node: dict[str, Any]) -> str:
    if node["is"] == "tensor":
        return f"{node['class']} of shape {tuple(node['shape'])}, {node['dtype']}"
    if "items" in node:
        return f"{node['is']} of {len(node['items'])}"
    return node["is"]
