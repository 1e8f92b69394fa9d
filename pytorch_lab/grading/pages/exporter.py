"""How pages are made: nbconvert with templates of our own, which load nothing and run nothing.

Everything in a template is escaped unless it comes out of `harmless`. A page is
one file; its policy allows the style sheet inside it, named by its hash, pictures inside it, and
nothing else.
"""

import base64
import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, cast

from markupsafe import Markup
from nbconvert.exporters.html import HTMLExporter
from nbconvert.exporters.templateexporter import TemplateExporter
from nbformat import NotebookNode

from pytorch_lab.grading.pages import harmless
from pytorch_lab.grading.pages.handed_in import SHOWN

TEMPLATES = Path(__file__).with_name("templates")
SHARED = TEMPLATES.parents[2] / "widgets/base.css"
UNSAFE = "Graded without a sandbox: the students' code ran as the person who graded it."


class Pages(HTMLExporter):
    """nbconvert's HTML exporter with the templates beside this file, and everything escaped.

    Example:
        >>> Pages().text("head.html.j2", page={"title": "<i>", "policy": "", "style": ""})[:15]
        '<!doctype html>'
    """

    def __init__(self) -> None:
        super().__init__(
            template_name="pages",
            extra_template_basedirs=[str(TEMPLATES)],
            default_preprocessors=[],
        )

    def _create_environment(self) -> Any:
        made = super()._create_environment()
        made.autoescape = True
        made.filters |= {
            "safe_text": harmless.text,
            "safe_code": harmless.code,
            "safe_markdown": harmless.markdown,
            "safe_output": output,
            "prose": prose,
            "pictures": pictures,
        }
        return made

    def from_notebook_node(
        self, nb: NotebookNode, resources: Any = None, **kw: Any
    ) -> tuple[str, Any]:
        """The page of a notebook; nbconvert's own last step reads and writes the HTML once more."""
        made = TemplateExporter.from_notebook_node(self, nb, resources, **kw)
        return cast("tuple[str, Any]", made)

    def text(self, template: str, **given: Any) -> str:
        """The text that a template makes of what it is given."""
        return self.environment.get_template(template).render(**given)


@cache
def exporter() -> Pages:
    """The exporter of this process; making one takes as long as ten pages."""
    return Pages()


def shell(style: str, script: str = "") -> dict[str, Any]:
    """What the head of a page needs.

    Args:
        style: the style sheet, after those that all pages share.
        script: our own script, which alone may run; "" for a page without one.
    """
    sheets = [SHARED, *(TEMPLATES / "pages" / name for name in ("page.css", style))]
    css = "\n".join(sheet.read_text("utf-8") for sheet in sheets)
    code = (TEMPLATES / "pages" / script).read_text("utf-8") if script else ""
    return {
        "style": Markup(css),
        "script": Markup(code),
        "policy": harmless.POLICY.format(
            style=_hash(css), script=_hash(code) if code else "'none'"
        ),
    }


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


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


def prose(sentence: str) -> Markup:
    """A sentence with `code` between backticks, as HTML.

    Example:
        >>> prose("your line 2: `a < b`")
        Markup('your line 2: <code>a &lt; b</code>')
    """
    escaped = str(Markup.escape(harmless.text(sentence, 2_000)))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", escaped))


def pictures(svg: str) -> Markup:
    """A drawing of `pytorch_lab.svg`, to stand in the page itself, in the page's colours."""
    return Markup(svg)


def file_names(students: Iterable[str]) -> dict[str, str]:
    """A file name for each student's page: plain letters, never two alike, whatever the names.

    Example:
        >>> list(file_names(["Ada K.", "../../etc/passwd", "CON"]).values())
        ['Ada_K.html', 'etc_passwd.html', 'student.html']
        >>> list(file_names(["ada k", "Ada k"]).values())
        ['ada_k-a02b23e3.html', 'Ada_k-7eba6251.html']
    """
    plain = {name: _plain(name) for name in students}
    # A file system may take two of them for one, and one may be made to look like another's mark.
    folded = Counter(each.casefold() for each in plain.values())
    unsure = {
        each for each in plain.values() if folded[each.casefold()] > 1 or _MARKED.search(each)
    }
    return {
        name: f"{each}{_mark(name) if each in unsure else ''}.html" for name, each in plain.items()
    }


_MARKED = re.compile(r"-[0-9a-f]{8}$", re.IGNORECASE)


def _mark(name: str) -> str:
    return f"-{hashlib.sha256(name.encode('utf-8', 'backslashreplace')).hexdigest()[:8]}"


# What Windows takes for devices, whatever follows the dot.
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)


def _plain(name: str) -> str:
    ascii_ = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9.-]+", "_", ascii_).strip("._-")[:80]
    return "student" if not plain or _DEVICES.fullmatch(plain) else plain
