"""The students' pages: nbconvert with a template of our own, which loads nothing and runs nothing.

Everything in a template is escaped unless it comes out of `harmless`.
"""

from functools import cache
from typing import Any, cast

from markupsafe import Markup
from nbconvert.exporters.html import HTMLExporter
from nbconvert.exporters.templateexporter import TemplateExporter
from nbformat import NotebookNode

from pytorch_lab.grading.pages import harmless
from pytorch_lab.grading.pages.handed_in import SHOWN
from pytorch_lab.grading.pages.markdown import markdown
from pytorch_lab.grading.pages.shell import FILTERS, TEMPLATES


class Pages(HTMLExporter):
    """nbconvert's HTML exporter with the templates beside this file, and everything escaped.

    Example:
        >>> Pages().environment.autoescape
        True
    """

    def __init__(self) -> None:
        super().__init__(
            template_name="pages",
            extra_template_basedirs=[str(TEMPLATES.parent)],
            default_preprocessors=[],
        )

    def _create_environment(self) -> Any:
        made = super()._create_environment()
        made.autoescape = True
        made.filters |= FILTERS | {"safe_markdown": markdown, "safe_output": output}
        return made

    def from_notebook_node(
        self, nb: NotebookNode, resources: Any = None, **kw: Any
    ) -> tuple[str, Any]:
        """The page of a notebook; nbconvert's own last step reads and writes the HTML once more."""
        made = TemplateExporter.from_notebook_node(self, nb, resources, **kw)
        return cast("tuple[str, Any]", made)


@cache
def exporter() -> Pages:
    """The exporter of this process; making one takes as long as ten pages."""
    return Pages()


def output(shown: NotebookNode) -> Markup:
    """One output, as the best of the forms that it has and that may be shown.

    Example:
        >>> import nbformat
        >>> data = {"text/html": "<script>x()</script>", "text/plain": "<b>"}
        >>> output(nbformat.v4.new_output("display_data", data))
        Markup('<pre class="out">&lt;b&gt;</pre>')
    """
    if shown.output_type == "stream":
        return _pre(shown.text)
    for mime in SHOWN:
        data = shown.data.get(mime, "")
        if mime.startswith("image/") and (source := harmless.picture(mime, data)):
            return Markup('<img class="out" alt="A picture that the code drew" src="{}">').format(
                source
            )
        if mime == "text/html" and data:
            made = harmless.html(data)
            if "<img" in made or made.striptags():
                return Markup(
                    '<div class="out rich" tabindex="0" role="group" aria-label="Output">{}</div>'
                ).format(made)
        if mime in ("text/plain", "text/latex", "text/markdown") and data:
            return _pre(data)
    return Markup("")


def _pre(said: str) -> Markup:
    return Markup('<pre class="out">{}</pre>').format(harmless.text(said).strip("\n"))
