"""What all pages share: the head, the templates and what they may call, the names of the files.

A page is one file; its policy allows the style sheet inside it, named by its hash, pictures inside
it, and nothing else. Everything in a template is escaped unless it comes out of `harmless`.
"""

import base64
import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from pytorch_lab.grading.pages import harmless

TEMPLATES = Path(__file__).with_name("templates") / "pages"
SHARED = TEMPLATES.parents[3] / "widgets/base.css"
UNSAFE = "Graded without a sandbox: the students' code ran as the person who graded it."


def render(template: str, **given: Any) -> str:
    """The text that a template makes of what it is given.

    Example:
        >>> render("head.html.j2", page={"title": "<i>", "policy": "", "style": ""})[:15]
        '<!doctype html>'
    """
    return _environment().get_template(template).render(**given)


@cache
def _environment() -> Environment:
    made = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True)
    made.filters |= FILTERS
    return made


def shell(style: str, script: str = "") -> dict[str, Any]:
    """What the head of a page needs.

    Args:
        style: the style sheet, after those that all pages share.
        script: our own script, which alone may run; "" for a page without one.
    """
    sheets = [SHARED, *(TEMPLATES / name for name in ("page.css", style))]
    css = "\n".join(sheet.read_text("utf-8") for sheet in sheets)
    code = (TEMPLATES / script).read_text("utf-8") if script else ""
    return {
        "style": Markup(css),
        "script": Markup(code),
        "policy": harmless.POLICY.format(
            style=_hash(css), script=_hash(code) if code else "'none'"
        ),
    }


def _hash(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


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


FILTERS: dict[str, Callable[..., Any]] = {
    "safe_text": harmless.text,
    "safe_code": harmless.code,
    "prose": prose,
    "pictures": pictures,
}


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
