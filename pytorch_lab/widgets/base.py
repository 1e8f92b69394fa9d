"""What every picture of this package has in common.

A widget is three files of one stem: `xray.py` says what is shown, `xray.js` draws it, `xray.css`
dresses it where it needs dress of its own. Python computes `state` once and sends it whole;
JavaScript draws it and owns the view (folding, selection, what is typed), so that a saved page
works without a kernel. What only torch or Python can know is asked for by name: JavaScript's
`ask(model, "run", {...})` calls `on_run(...)` here, and the answer is a new `state`.

The output carries a picture for viewers without a kernel (`text/html`) and a text that nbval can
compare (`text/plain`). The front end cannot import a sibling file, so `base.js` and `base.css` are
put in front of each widget's own when its class is made.

All widgets of a notebook share one page, where the sheet that comes last wins a tie. So selectors
grow with the distance from the base: `.lab` in `base.css`, `.lab.lab-piece` in what pieces share,
`.lab.lab-piece.lab-order` in a widget's own.
"""

from pathlib import Path
from typing import Any, ClassVar

import anywidget
import traitlets

_HERE = Path(__file__).parent


def asset(name: str) -> str:
    """The text of one of our `.js` or `.css` files; "" for a style sheet that a stem has not."""
    file = _HERE / name
    return "" if file.suffix == ".css" and not file.exists() else file.read_text("utf-8")


class LabWidget(anywidget.AnyWidget):
    """The base class: `class Xray(LabWidget, stem="xray")` with `to_html` and `__str__`.

    Args of the class statement:
        stem: the common name of the `.js` and, if there is one, the `.css` beside the `.py`.
    """

    state = traitlets.Dict().tag(sync=True)

    stem: ClassVar[str] = ""
    shared: ClassVar[tuple[str, ...]] = ("base",)  # stems put in front of the widget's own

    def __init_subclass__(cls, stem: str = "", **kwargs: Any) -> None:
        if stem:
            cls.stem = stem
            cls._esm = "".join(asset(f"{part}.js") for part in (*cls.shared, stem))
            cls._css = "".join(asset(f"{part}.css") for part in (*cls.shared, stem))
        super().__init_subclass__(**kwargs)

    def __init__(self, state: dict[str, Any]) -> None:
        super().__init__(state=state)
        self.on_msg(self._answer)

    def _answer(self, _widget: Any, content: dict[str, Any], _buffers: Any) -> None:
        """Call `on_<ask>` for a question of the front end."""
        handler = getattr(self, f"on_{content.get('ask')}", None)
        if handler is not None:
            handler(**content.get("with", {}))

    def update(self, **changes: Any) -> None:
        """Send `state` anew with these entries changed."""
        self.state = self.state | changes

    def to_html(self) -> str:
        """The picture or page that shows where no kernel runs. No script, no id, byte-stable."""
        raise NotImplementedError

    def __str__(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle
        # anywidget shortens text/plain; ours is the whole text.
        return data | {"text/plain": str(self), "text/html": self.to_html()}, metadata
