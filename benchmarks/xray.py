"""How long is a frame of the X-ray of a thousand modules? Beside nested `<details>` of equal rows.

Each figure is the CPU time of the page's main thread (script, style, layout, paint; Chromium's own
count in thread ticks) from an action to the second frame after it, the median of ROUNDS. The bar:
folding, unfolding and searching 1,000 modules take less than 50 ms. The peer is what a page without
a widget would do; it only folds. What is sent is listed without a bar.
"""

import importlib.util
import json
import statistics
import sys
import zlib
from pathlib import Path

from playwright.sync_api import sync_playwright
from torch import nn

from pytorch_lab import modules
from pytorch_lab.widgets.xray import Xray

ROUNDS = 9
BAR_MS = 50

# What is set up, unmeasured; then what is done and undone, each measured.
ACTIONS = {
    "unfold all, fold all": ("", "click('Unfold all')", "click('Fold all')"),
    "unfold 100, fold 100": ("", "fold(1)", "fold(1)"),
    "unfold one of 100 blocks": ("fold(1)", "fold(2)", "fold(2)"),
    "search 'weight', clear": ("", "type('weight')", "type('')"),
    "scroll to the end, back": ("click('Unfold all')", "scroll(1e6)", "scroll(0)"),
}
HANDS = """
const grid = document.querySelector('[role=treegrid]');
const box = document.querySelector('[type=search]');
const fold = (i) => grid.querySelector(`[data-row="${i}"] [data-fold]`)
  .dispatchEvent(new MouseEvent('click', { bubbles: true }));
const click = (text) => [...document.querySelectorAll('button')]
  .find((button) => button.textContent === text)?.click();
const type = (text) => { box.value = text; box.dispatchEvent(new Event('input')); };
const scroll = (top) => { grid.scrollTop = top; };
"""
FRAMES = "await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));"
PEER = """
const build = (at, level) => {
  const nest = document.createElement('div');
  while (at.i < rows.length && rows[at.i].level === level) {
    const row = rows[at.i]; at.i += 1;
    const line = document.createElement('span');
    line.innerHTML = `<b>${row.name}</b> <i>registered</i> <span>${row.cell}</span>`;
    if (at.i < rows.length && rows[at.i].level > level) {
      const details = document.createElement('details');
      const summary = document.createElement('summary');
      summary.append(line);
      details.append(summary, build(at, level + 1));
      nest.append(details);
    } else { const leaf = document.createElement('div'); leaf.append(line); nest.append(leaf); }
  }
  return nest;
};
document.body.replaceChildren(build({ i: 0 }, 1));
"""
SET_ALL = "for (const each of document.querySelectorAll('details')) each.open = %s;"


def stage():
    """The tests' blank page, whose folder is not a package."""
    file = Path(__file__).parents[1] / "tests/browser/conftest.py"
    spec = importlib.util.spec_from_file_location("stage", file)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


class Clock:
    """CPU milliseconds of the page's main thread."""

    def __init__(self, page) -> None:
        self.page = page
        self.session = page.context.new_cdp_session(page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def now(self) -> float:
        """Milliseconds used so far."""
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return 1000 * next(m["value"] for m in metrics if m["name"] == "TaskDuration")

    def time(self, script: str) -> float:
        """The CPU time of a script and the frames it causes."""
        before = self.now()
        self.page.evaluate(f"async () => {{ {script}; {FRAMES} }}")
        return self.now() - before


def measure(widget: Xray, browser, tools) -> dict[str, list[float]]:
    """Every action and its undoing, ROUNDS times, ours and the peer's in turn."""
    options = {"theme": "light", "zoom": 1, "width": 1000, "wired": False, "motion": False}
    view = tools.View(browser, widget, **options)
    bare = tools.View(browser, widget, **options)
    words, bodies, flat = (widget.state[key] for key in ("words", "bodies", "rows"))
    rows = [
        {"level": flat[i], "name": words[flat[i + 1]], "cell": words[bodies[flat[i + 2]][8]]}
        for i in range(0, len(flat), 3)
    ]
    bare.page.evaluate(f"(rows) => {{ {PEER} }}", rows)
    ours, peer = Clock(view.page), Clock(bare.page)
    taken: dict[str, list[float]] = {name: [] for name in ACTIONS}
    taken["peer: open all, close all"] = []
    for _ in range(ROUNDS + 1):  # the first is for the engine to warm up
        for name, (before, *scripts) in ACTIONS.items():
            ours.time(f"{HANDS} click('Unfold all'); click('Fold all'); {before}")
            taken[name].extend(ours.time(HANDS + script) for script in scripts)
        for is_open in ("true", "false"):
            taken["peer: open all, close all"].append(peer.time(SET_ALL % is_open))
    view.abandon()
    bare.abandon()
    return {name: times[2:] for name, times in taken.items()}


def main() -> int:
    """Print the table; 1 when the bar is missed."""
    blocks = (nn.Sequential(*(nn.Linear(4, 4) for _ in range(9))) for _ in range(100))
    widget = Xray(modules.describe(nn.ModuleList(blocks)))
    tools = stage()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=tools.program(), args=tools.QUIET)
        taken = measure(widget, browser, tools)
        browser.close()

    n_rows = len(widget.state["rows"]) // 3
    print(f"{len(widget.tree.modules):,} modules, {n_rows:,} rows")
    print(f"{'CPU ms of a frame, median':28} {'':>7} {'range':>14}")
    for name, times in taken.items():
        spread = f"{min(times):.1f} to {max(times):.1f}"
        print(f"{name:28} {statistics.median(times):7.1f} {spread:>14}")
    sent = json.dumps(widget.state, separators=(",", ":")).encode()
    print(f"state sent: {len(sent) / 1000:.1f} kB, {len(zlib.compress(sent)) / 1000:.1f} kB packed")
    worst = max(statistics.median(taken[name]) for name in ACTIONS)
    print(f"slowest action {worst:.1f} ms (bar: under {BAR_MS} ms)")
    return 0 if worst < BAR_MS else 1


if __name__ == "__main__":
    sys.exit(main())
