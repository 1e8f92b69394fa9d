"""What the pieces of a lesson have in common: predict, order, clinic, recall, card.

Each is a widget with one look (a small word for its kind above a title), whose JavaScript is put
together from `base.js`, `piece.js` and its own file. A trouble of ours, such as a folder that is
not writable, is said inside the piece: an error in the answer to a click has no other place where
a learner would see it.
"""

from typing import Any, ClassVar

from pytorch_lab.errors import LabError
from pytorch_lab.widgets.base import LabWidget


class LessonPiece(LabWidget):
    """The base class of the pieces; `kind` is the word in the header."""

    shared: ClassVar[tuple[str, ...]] = ("base", "piece")
    kind: ClassVar[str] = ""

    def __init__(self, state: dict[str, Any]) -> None:
        super().__init__({"trouble": None} | state)

    def _answer(self, _widget: Any, content: dict[str, Any], _buffers: Any) -> None:
        try:
            super()._answer(_widget, content, _buffers)
        except LabError as error:
            self.update(trouble=str(error))

    def framed(self, inner_html: str) -> str:
        """The static form: what it is, then the piece."""
        return f"<div><p><em>{self.kind}</em></p>{inner_html}</div>"
