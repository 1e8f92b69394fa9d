"""The panel of an exercise: its state, the check's sentence, hints, and four buttons.

The widget knows no check. It is given what to show and a function per button; each returns the
changes of `state` that its press brings.
"""

import html
from collections.abc import Callable, Mapping
from typing import Any

from pytorch_lab.widgets import prose
from pytorch_lab.widgets.base import LabWidget

VERDICT_MIME = "application/vnd.pytorch-lab.verdict+json"

Button = Callable[[], dict[str, Any]]


class ExercisePanel(LabWidget, stem="exercise"):
    """What `lab.exercise` returns.

    Args:
        state: what to show; `checks.panel` says what is in it.
        buttons: the functions behind "check", "hint", "reset" and "solution".
    """

    def __init__(self, state: dict[str, Any], buttons: Mapping[str, Button]) -> None:
        super().__init__(state)
        self._buttons = dict(buttons)

    def on_press(self, button: str) -> None:
        """Do what a button says and show the outcome; each press is a new turn."""
        if button in self._buttons:
            self.update(**self._buttons[button](), pressed=button, turn=self.state["turn"] + 1)

    def to_html(self) -> str:
        """Title, state and message."""
        s = self.state
        points = f" · {_points(s['points'])}" if s["points"] is not None else ""
        title = f"Exercise {s['exercise']}" + (f" · {s['title']}" if s["title"] else "")
        parts = [
            f"<p><strong>{prose.to_html(title)}</strong>{points}</p>",
            f"<p><strong>{s['icon']} {s['word']}</strong></p>",
        ]
        if s["why"]:
            parts.append(f"<p>{prose.to_html(s['why'])}</p>")
        if s["line"] and s["line"]["source"]:
            line = f"{s['line']['number']}  {s['line']['source']}"
            parts.append(f"<pre>{html.escape(line)}</pre>")
        if s["evidence"]:
            parts.append(f"<p><code>{html.escape(s['evidence'], quote=False)}</code></p>")
        return f"<section>{''.join(parts)}</section>"

    def __str__(self) -> str:
        s = self.state
        text = f"{s['exercise']} {s['icon']} {s['word']}"
        return prose.to_text(
            f"{text}: {s['message']}" if s["message"] else text, indent="  ", first=""
        )

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle
        verdict = {key: self.state[key] for key in ("exercise", "state", "message")}
        return data | {VERDICT_MIME: verdict}, metadata


def _points(points: float) -> str:
    return f"{points:g} point{'' if points == 1 else 's'}"
