"""The player: a recorded run, op by op, forward and backward, tied to the lines that called it.

    lab.show(graph.record(model, x, backward=True))     # play, step, scrub; click for everything
    lab.show(graph.compare(f, x1, x2))                  # two runs side by side, the difference lit
    lab.show(loss)                                      # the graph behind a tensor

The left side shows the source with the line that runs, the right side the graph; below lies one
timeline, forward then backward, with the bytes that are kept. Folding, searching, paths and colours
need no kernel; figures of a long run are asked for as the reader gets to them. `save("run.html")`
writes a page that holds everything and works offline.
"""

import json
import re
from base64 import b64encode
from html import escape
from pathlib import Path
from typing import Any

import traitlets

from pytorch_lab.graph.drawing.picture import to_svg
from pytorch_lab.modules.text import spell_bytes
from pytorch_lab.widgets import player_source, player_state
from pytorch_lab.widgets.base import LabWidget

SENT_STEPS = 160  # a run of at most so many steps brings its details along; a longer one is asked
SENT_LINES = 150  # a source of at most so many lines comes along

PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>%(title)s</title>
<style>
body { margin: 0; padding: 12px; background: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --jp-layout-color1: #1b1c1e; --jp-layout-color2: #26282b; --jp-border-color2: #3c4045;
          --jp-ui-font-color0: #eceef0; --jp-ui-font-color1: #b4b9bf; }
  body { background: #121314; }
}
%(css)s
</style></head>
<body><main id="player"></main>
<script type="application/json" id="state">%(state)s</script>
<script type="module">
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
if (dark) document.documentElement.setAttribute("theme", "dark");
%(esm)s
const values = { state: JSON.parse(document.getElementById("state").textContent) };
const model = { get: (name) => values[name], on() {}, off() {}, send() {} };
render({ model, el: document.getElementById("player") });
</script></body></html>
"""


class Player(LabWidget, stem="player"):
    """A `GraphRecord` that can be played; or two of them, aligned.

    Example:
        >>> import torch
        >>> from pytorch_lab import graph
        >>> player = Player(graph.record(torch.nn.Linear(4, 2), torch.ones(3, 4)))
        >>> player.state["totals"]
        '1 operation · 4 nodes · keeps 48 B for backward'

    Args:
        record: what `graph.record`, `graph.of` or `graph.compare` gave.
    """

    shared = (
        "base", "graph_scene", "graph_layout", "graph_layers", "graph_columns", "graph_routes",
        "player_film", "player_items", "player_pieces", "player_sight", "player_hands",
        "player_canvas", "player_paint", "player_svg", "player_map", "player_source",
        "player_details", "player_timeline", "player_play", "player_choice", "player_colours",
        "player_tools",
    )  # fmt: skip

    answer = traitlets.Dict().tag(sync=True)

    def __init__(self, record: Any) -> None:
        self.record = record
        self.records = [record.a, record.b] if hasattr(record, "only_a") else [record]
        super().__init__(_state(record, self.records))

    def on_details(self, film: int, first: int) -> None:
        """Answer with the details of a stretch of steps."""
        record = self.records[film]
        end = first + player_state.STRETCH
        self.answer = {"film": film, "details": player_state.details(record, first, end)}

    def on_node(self, film: int, node: int) -> None:
        """Answer with the details of one autograd node."""
        record = self.records[film]
        found = player_state.pick(record, (), (player_state.node_order(record)[node],))
        self.answer = {"film": film, "details": found}

    def on_source(self) -> None:
        """Answer with the lines of all functions that ran."""
        self.answer = {"source": [player_source.source(record) for record in self.records]}

    def on_scene(self, view: str) -> None:
        """Answer with the boxes of another view."""
        self.answer = {"view": view, "scenes": _scenes(self.records, view)}

    def on_page(self) -> None:
        """Answer with the page that works offline, for the reader's browser to save."""
        self.answer = {"page": self.to_page()}

    def to_page(self) -> str:
        """One HTML page with all scripts, styles and details in it; it asks nobody for anything.

        Example:
            >>> import torch
            >>> from pytorch_lab import graph
            >>> page = Player(graph.record(torch.relu, torch.ones(3))).to_page()
            >>> page.startswith("<!doctype html>"), "https://" in page
            (True, False)
        """
        state = self.state | {
            "details": [_whole(record) for record in self.records],
            "offline": True,
            "source": [player_source.source(record) for record in self.records],
            "scenes": {view: _scenes(self.records, view) for view in self.state["views"]},
        }
        text = json.dumps(state, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
        sheets = "".join(_assets("css", type(self)))
        script = "".join(_assets("js", type(self))).replace("export default { render };", "")
        title = escape(state["title"])
        return PAGE % {"title": title, "css": sheets, "esm": script, "state": text}

    def save(self, path: str | Path) -> Path:
        """Write `to_page()` to a file; returns its path."""
        file = Path(path)
        file.write_text(self.to_page(), "utf-8", errors="replace")
        return file

    def to_html(self) -> str:
        """The default view as a picture, for viewers without a kernel."""
        return "".join(_image(record) for record in self.records)

    def __str__(self) -> str:
        return str(self.record)


def _assets(kind: str, widget: type[LabWidget]) -> list[str]:
    from pytorch_lab.widgets.base import asset

    return [asset(f"{stem}.{kind}") for stem in (*widget.shared, widget.stem)]


def _state(record: Any, records: list[Any]) -> dict[str, Any]:
    error = next((each.error for each in records if each.error), None)
    notes = [note for each in [*records, record] for note in each.notes]
    two = len(records) > 1
    source = [player_source.source(each) for each in records]
    lines = sum(len(stretch["lines"]) for each in source for stretch in each)
    views = player_state.views(records[0])
    steps = max(player_state.n_steps(each) for each in records)
    return {
        "title": records[0].function,
        "totals": _difference(record) if two else _totals(record),
        "error": error,
        "notes": list(dict.fromkeys(notes)),
        "labels": ["A", "B"] if two else [""],
        "films": [player_state.film(each) for each in records],
        "views": views,
        "scenes": {views[0]: _scenes(records, views[0])} if views else {},
        "source": source if lines <= SENT_LINES else None,
        "details": [_whole(each) for each in records] if steps <= SENT_STEPS else None,
        "stretch": player_state.STRETCH,
        "diff": _diff(record) if two else None,
    }


def _scenes(records: list[Any], view: str) -> list[dict[str, Any]]:
    return [player_state.scene(record, view) for record in records]


def _image(record: Any) -> str:
    """The still picture as an `<img>` that carries its own SVG, so that no page can restyle it."""
    text = to_svg(record)
    data = b64encode(text.encode(errors="replace")).decode()
    width, height = re.findall(r'(?:width|height)="([\d.]+)"', text)[:2]
    says = escape(f"Graph of {record.function}: {_totals(record)}")
    size = f'width="{width}" height="{height}"'
    return f'<img alt="{says}" {size} src="data:image/svg+xml;base64,{data}">'


def _whole(record: Any) -> dict[str, Any]:
    return player_state.pick(record, range(len(record.values)), range(len(record.nodes)))


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _totals(record: Any) -> str:
    kept = max((held for _, _, held in record.memory()), default=0)
    parts = [
        _count(len(record.ops), "operation") if record.ops else "",
        _count(len(record.nodes), "node") if record.nodes else "",
        f"keeps {spell_bytes(kept)} for backward" if kept else "",
    ]
    return " · ".join(part for part in parts if part)


def _difference(diff: Any) -> str:
    branch = diff.branch
    counts = f"{_count(len(diff.ops), 'operation')} in common, {len(diff.only_a):,} only in A, "
    counts += f"{len(diff.only_b):,} only in B"
    if branch is None:
        return counts
    decision = " ".join(word for word in (branch.kind, branch.condition) if word)
    return f"{counts} · {decision} at {branch.site.where}: {branch.says}"


def _diff(diff: Any) -> dict[str, Any]:
    a, b = (player_state.node_places(record) for record in (diff.a, diff.b))
    return {
        "ops": [list(pair) for pair in diff.ops],
        "nodes": [[a[one], b[other]] for one, other in diff.nodes],
        "only": [list(diff.only_a), list(diff.only_b)],
        "nodesOnly": [
            [a[node] for node in diff.nodes_only_a],
            [b[node] for node in diff.nodes_only_b],
        ],
        "lines": [[branch.site.file, branch.site.line] for branch in diff.branches],
    }
