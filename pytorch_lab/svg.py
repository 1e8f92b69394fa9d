"""A still picture for viewers without a kernel: an `<img>` that carries its own SVG.

GitHub, nbconvert and an untrusted JupyterLab strip scripts and styles, and some inline SVG into a
page that knows nothing of it. So: presentation attributes only, a white ground, an explicit size,
a title, and base64 around it. The same calls give the same bytes; what UTF-8 cannot hold, a lone
surrogate, becomes a question mark.
"""

from base64 import b64encode
from html import escape

MONO = "DejaVu Sans Mono, Menlo, Consolas, monospace"
SANS = "system-ui, Segoe UI, Helvetica, Arial, sans-serif"
MONO_WIDTH = 0.602  # of one letter, in units of the font's size; the same in all fonts of MONO

INK, QUIET, LINE = "#1c1e21", "#4a4f55", "#d5d8dc"
GOOD, BAD, WARN, BLUE = "#007a58", "#b84a00", "#8a6400", "#00659e"
BAD_WASH = "#fbece4"


class Picture:
    """Collects shapes; `img` wraps them.

    Example:
        >>> picture = Picture(100, 40, "A dot")
        >>> picture.rect(10, 10, 20, 20, fill="#009e73")
        >>> picture.img().startswith('<img alt="A dot" width="100" height="40" src="data:image/svg')
        True
    """

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.parts: list[str] = []

    def rect(self, x: float, y: float, width: float, height: float, **paint: str | float) -> None:
        """A rectangle; `paint` are attributes such as `fill`, `stroke`, `rx`."""
        self._element("rect", {"x": x, "y": y, "width": width, "height": height} | paint)

    def line(self, x1: float, y1: float, x2: float, y2: float, **paint: str | float) -> None:
        """A straight line."""
        self._element("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2} | paint)

    def path(self, d: str, **paint: str | float) -> None:
        """Any outline."""
        self._element("path", {"d": d} | paint)

    def text(
        self, x: float, y: float, words: str, *, size: float = 12, **paint: str | float
    ) -> None:
        """A line of text whose baseline is at `y`; nothing for no words."""
        if not words:
            return
        given = {"x": x, "y": y, "font-size": size} | {"font-family": MONO, "fill": INK} | paint
        self._element("text", given, words)

    def svg(self) -> str:
        """The whole picture as SVG."""
        size = f'width="{_short(self.width)}" height="{_short(self.height)}"'
        box = f'viewBox="0 0 {_short(self.width)} {_short(self.height)}"'
        ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} role="img">'
            f"<title>{escape(self.title)}</title>{ground}{''.join(self.parts)}</svg>"
        )

    def img(self, alt: str | None = None) -> str:
        """The picture as an `<img>` with everything inside."""
        data = b64encode(self.svg().encode(errors="replace")).decode()
        says = (alt or self.title).encode(errors="replace").decode()
        return (
            f'<img alt="{escape(says)}" width="{_short(self.width)}" '
            f'height="{_short(self.height)}" src="data:image/svg+xml;base64,{data}">'
        )

    def _element(self, tag: str, given: dict[str, str | float], words: str | None = None) -> None:
        written = " ".join(
            f'{name.replace("_", "-")}="{escape(_short(value))}"' for name, value in given.items()
        )
        end = "/>" if words is None else f' xml:space="preserve">{escape(words)}</text>'
        self.parts.append(f"<{tag} {written}{end}")


def clip(words: str, width: float, size: float) -> str:
    """`words` in a monospaced font of `size`, cut with an ellipsis where they pass `width`."""
    room = int(width / (size * MONO_WIDTH))
    return words if len(words) <= room else words[: max(room - 1, 0)] + "…"


def _short(value: str | float) -> str:
    if isinstance(value, str):
        return value
    return f"{round(value, 1):g}"
