"""What strangers wrote, made fit for a page that others open: text, HTML, pictures, code.

Nothing of theirs reaches a page but through here, Markdown too (`markdown`), and a page's policy
(`POLICY`) forbids once more what these functions take away: scripts, frames, forms, requests,
styles.

HTML is cleaned by nh3, a browser's parser with lists of what may stay; whatever is done to the text
itself is done before, so that no change of ours can undo the cleaning.
"""

import base64
import re
from functools import cache, lru_cache

import nh3
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

# No script, no request, no form, no style but the page's own, which is named by its hash.
POLICY = (
    "default-src 'none'; style-src {style}; script-src {script}; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)

# A parser's work grows with the depth and number of tags.
MAX_HTML, MAX_TAGS = 1_000_000, 5_000
KEPT = 200  # cells made ready and kept, since most of a notebook is the same for all

_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml")
_PICTURE = re.compile(rf"data:({'|'.join(map(re.escape, _PICTURES))});base64,[A-Za-z0-9+/=\s]+")
_LINK = re.compile(r"(?:https?://|mailto:)\S+", re.IGNORECASE)
_SIZE = re.compile(r"\d{1,4}")
_SPAN = re.compile(r"\d{1,2}")

_TAGS = {
    "a", "b", "blockquote", "br", "caption", "code", "col", "colgroup", "dd", "del", "details",
    "div", "dl", "dt", "em", "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr",
    "i", "img", "ins", "kbd", "li", "mark", "ol", "p", "pre", "q", "s", "samp", "small", "span",
    "strong", "sub", "summary", "sup", "table", "tbody", "td", "tfoot", "th", "thead", "tr",
    "u", "ul", "var",
}  # fmt: skip
_WITH_THEIR_TEXT = {
    "applet", "audio", "button", "canvas", "embed", "frame", "frameset", "head", "iframe",
    "input", "link", "math", "meta", "noembed", "noframes", "noscript", "object", "option",
    "script", "select", "style", "svg", "template", "textarea", "title", "video", "xmp",
}  # fmt: skip
_ATTRIBUTES: dict[str, set[str]] = {
    "*": set(),  # without this entry `title` and `lang` stay
    "a": {"href"},
    "img": {"src", "alt", "width", "height"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
}
_RULES = {
    "href": _LINK,
    "src": _PICTURE,
    "width": _SIZE,
    "height": _SIZE,
    "colspan": _SPAN,
    "rowspan": _SPAN,
    "scope": re.compile("row|col"),
}

# Terminal sequences: colours and other CSI, window titles and links (OSC), single letters.
_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
# Controls, and characters that turn the direction of what follows.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ufffe\uffff]"
)
_NO_ALT = re.compile(r"<img\b(?![^<>]*\balt\s*=)", re.IGNORECASE)
_HEADING = re.compile(r"<(/?)h([1-6])\b", re.IGNORECASE)


def text(said: str, longest: int = 20_000) -> str:
    r"""A text that shows what is in it: no terminal sequences, no hidden or turned characters.

    Args:
        said: any text.
        longest: where it is cut, in characters; the cut is said.

    Example:
        >>> text("\x1b[31mred\x1b[0m 10%\r100%")
        '100%'
        >>> text("user\u202enimda")
        'user⟨U+202E⟩nimda'
    """
    cut = len(said) > longest
    said = said[:longest].encode("utf-8", "backslashreplace").decode()
    said = _TERMINAL.sub("", said).replace("\r\n", "\n")
    # A carriage return writes the line anew, as progress bars do.
    said = "\n".join(_rewritten(line) for line in said.split("\n"))
    return _visible(said) + (f"\n… cut after {longest:,} characters" if cut else "")


def _rewritten(line: str) -> str:
    return next((part for part in reversed(line.split("\r")) if part), "")


def _visible(said: str) -> str:
    return _UNSEEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", said)


def html(said: str, below: int = 2) -> Markup:
    """HTML without anything that acts: scripts, handlers, styles, frames, forms, foreign pictures.

    Args:
        said: any HTML.
        below: how many levels its headings are moved down, to stand below the page's own.

    Returns:
        What may stand in a page; HTML of an unreasonable size comes back as text, cut.

    Example:
        >>> html('<b onclick="x()">5</b><script>y()</script><a href="javascript:z()">z</a>')
        Markup('<b>5</b><a rel="noopener noreferrer nofollow">z</a>')
    """
    if len(said) > MAX_HTML or said.count("<") > MAX_TAGS:
        return Markup("<pre>{}</pre>").format(text(said))
    said = said.encode("utf-8", "backslashreplace").decode()
    said = _NO_ALT.sub('<img alt="a picture without a description"', said)
    said = _HEADING.sub(lambda h: f"<{h[1]}h{min(int(h[2]) + below, 6)}", said)
    # What becomes a hidden character only when an entity is read is seen after the cleaning.
    return Markup(_visible(_cleaner().clean(said)))


@cache
def _cleaner() -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=_TAGS,
        clean_content_tags=_WITH_THEIR_TEXT,
        attributes=_ATTRIBUTES,
        attribute_filter=_kept,
        url_schemes={"http", "https", "mailto", "data"},
        link_rel="noopener noreferrer nofollow",
    )


def _kept(_tag: str, attribute: str, value: str) -> str | None:
    """An attribute's value if it is of the form that it should have."""
    rule = _RULES.get(attribute)
    return value if rule is None or rule.fullmatch(value) else None


def picture(mime: str, data: str) -> str:
    r"""The `src` of an image that comes as base64, or as SVG text; "" for anything else.

    In an `<img>` an SVG runs no script and loads nothing.

    Example:
        >>> picture("image/png", "iVBORw0K\n")
        'data:image/png;base64,iVBORw0K'
        >>> picture("text/html", "<script>"), picture("image/png", '"><script>')
        ('', '')
    """
    if mime == "image/svg+xml":
        data = base64.b64encode(data.encode("utf-8", "replace")).decode()
    source = f"data:{mime};base64,{''.join(data.split())}"
    return source if _PICTURE.fullmatch(source) else ""


def code(source: str, longest: int = 40_000) -> list[Markup]:
    """The lines of a Python cell, coloured by classes of Pygments.

    Example:
        >>> code("x = 1  # one")
        [Markup('<span class="n">x</span> <span class="o">=</span> ...')]
    """
    shown = text(source, longest).rstrip("\n")
    if len(shown) > longest:  # it was cut: colours of half a cell would mislead
        return [Markup.escape(line) for line in shown.split("\n")]
    return [Markup(line) for line in _coloured(shown).split("\n")]


@lru_cache(KEPT)
def _coloured(source: str) -> str:
    return highlight(source, *_painters()).removesuffix("\n")


@cache
def _painters() -> tuple[PythonLexer, HtmlFormatter[str]]:
    return PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)
