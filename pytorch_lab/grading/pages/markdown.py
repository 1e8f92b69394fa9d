"""Markdown cells of strangers, rendered as nbconvert renders them, and made harmless."""

from contextlib import suppress
from functools import lru_cache

from markupsafe import Markup
from nbconvert.filters.markdown_mistune import InvalidNotebook, IPythonRenderer, MarkdownWithMath
from nbformat import NotebookNode

from pytorch_lab.grading.pages.harmless import KEPT, html, text


def markdown(cell: NotebookNode, longest: int = 20_000) -> Markup:
    r"""A Markdown cell as HTML, its pictures inside; mathematics stays as its author typed it.

    Args:
        cell: with `source`, and `attachments` if it has any.
        longest: in characters; a longer cell is shown as plain text.

    Example:
        >>> import nbformat
        >>> markdown(nbformat.v4.new_markdown_cell("*yes* <script>no</script> $x^2$"))
        Markup('<p><em>yes</em>  $x^2$</p>\n')
    """
    if len(cell.source) <= longest:
        # An attachment may be missing, or be none; Markdown itself never fails.
        with suppress(
            InvalidNotebook, AttributeError, KeyError, TypeError, ValueError, RecursionError
        ):
            if not (attached := cell.get("attachments")):
                return _rendered(cell.source)
            return html(_markdown(cell.source, attached))
    return Markup("<pre>{}</pre>").format(text(cell.source, longest))


@lru_cache(KEPT)
def _rendered(source: str) -> Markup:
    return html(_markdown(source, {}))


def _markdown(source: str, attachments: dict[str, dict[str, str]]) -> str:
    renderer = IPythonRenderer(escape=False, exclude_anchor_links=True, attachments=attachments)
    return MarkdownWithMath(renderer=renderer).render(source)
