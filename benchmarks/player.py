"""Does the player stay fluent? What is sent, how fast a graph opens, steps, pans and zooms.

Times are CPU milliseconds of the page's main thread (Chromium's own count in thread ticks: script,
style, layout, paint), so that a busy machine does not change them; medians of ROUNDS. What is sent
is compressed as a notebook server does. Each figure stands beside its bar; 1 when one is missed.

    mlp blocks   a chain of blocks with about 1,000 nodes
    gpt2         GPT-2 small: 12 layers, 12 heads; narrow, since widths do not change a graph
    rnn          a gated recurrent net written by hand, 1,333 steps, a branch on a value
"""

import importlib.util
import json
import statistics
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import sync_playwright
from torch import nn

from pytorch_lab import graph
from pytorch_lab.widgets.base import asset
from pytorch_lab.widgets.player import Player

ROUNDS = 15
FRAMES = "await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));"
WHEEL = """
const graph = document.querySelector('.lab-player-graph');
const wheel = (extra) => graph.dispatchEvent(
  new WheelEvent('wheel', { bubbles: true, cancelable: true, clientX: 500, clientY: 300,
    ...extra }));
const slider = document.querySelector('.lab-player-slider');
const go = (place) => { slider.value = place; slider.dispatchEvent(new Event('input')); };
const item = (text) => [...document.querySelectorAll('.lab-player-item')]
  .find((each) => each.textContent === text).click();
"""


def blocks() -> Any:
    """About 1,000 autograd nodes in 90 equal blocks."""
    torch.manual_seed(0)
    net = nn.Sequential(
        *(
            nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 8))
            for _ in range(90)
        )
    )
    return graph.record(lambda x: net(x).square().mean(), torch.randn(4, 8), backward=True)


def gpt2() -> Any:
    """GPT-2 small's graph with a loss."""
    from transformers import GPT2Config, GPT2LMHeadModel
    from transformers.utils import logging

    logging.set_verbosity_error()
    torch.manual_seed(0)
    config = GPT2Config(n_embd=96, vocab_size=500, n_positions=64, bos_token_id=0, eos_token_id=0)
    model = GPT2LMHeadModel(config)
    ids = torch.randint(0, 500, (1, 64))
    return graph.record(model, input_ids=ids, labels=ids, backward=True)


def rnn() -> Any:
    """1,333 steps that branch on a value."""
    torch.manual_seed(0)
    wx, wh, head = nn.Linear(8, 16), nn.Linear(16, 16), nn.Linear(16, 1)

    def run(xs: torch.Tensor) -> torch.Tensor:
        h = torch.zeros(1, 16)
        for x in xs:
            z = torch.sigmoid(wx(x) + wh(h))
            r = torch.tanh(wh(h * z) + wx(x))
            if r.mean() > 0:
                h = z * r + (1 - z) * h
            else:
                h = (1 - z) * r
                h = h + z * h
        return head(h).sum()

    return graph.record(run, torch.randn(1333, 1, 8), backward=True)


def tools_of(path: str) -> Any:
    """A file beside this one that is in no package."""
    file = Path(__file__).parents[1] / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def packed(things: Any) -> float:
    """Kilobytes of JSON, compressed."""
    text = things if isinstance(things, str) else json.dumps(things, separators=(",", ":"))
    return len(zlib.compress(text.encode(), 6)) / 1000


class Page:
    """One player on one page, with a clock."""

    def __init__(self, tools: Any, clock: Callable[..., Any], browser: Any, player: Player) -> None:
        options = {"theme": "light", "zoom": 1, "width": 1200, "motion": False, "wired": True}
        self.view = tools.View(browser, player, **options)
        self.clock = clock(self.view.page)
        self.player = player

    def open_ms(self) -> float:
        """Drawing it anew from what is sent: the cost of opening."""
        state = self.view._values()["state"]
        self.view.page.evaluate("state => { window.state = state; }", state)
        return statistics.median(
            self.clock.time("window.labModel.set('state', structuredClone(window.state))")
            for _ in range(3)
        )

    def each(self, *scripts: str) -> float:
        """The median over all scripts, each done ROUNDS times."""
        taken = [self.clock.time(WHEEL + script) for _ in range(ROUNDS) for script in scripts]
        return statistics.median(taken[len(scripts) :])


def rows(
    tools: Any, clock: Callable[..., Any], browser: Any
) -> list[tuple[str, float, float, str]]:
    """Name, figure, bar, unit."""
    stems = (*Player.shared, "player")
    code = "".join(asset(f"{stem}.{kind}") for stem in stems for kind in ("js", "css"))
    found = [("scripts and styles, compressed", packed(code), 60.0, "kB")]

    big, small, middle = Player(rnn()), Player(blocks()), Player(gpt2())
    for name, player, bar in (("GPT-2", middle, 10.0), ("20,000 nodes", big, 100.0)):
        found.append((f"payload of {name}, compressed", packed(player.state), bar, "kB"))

    page = Page(tools, clock, browser, small)
    nodes = len(small.record.nodes)
    found.append((f"open {nodes:,} nodes", page.open_ms(), 1000.0, "ms"))
    page.view.page.evaluate(f"() => {{ {WHEEL} item('Unfold all'); go(40); }}")
    page.view.page.wait_for_timeout(100)
    steps = [f"go({place})" for place in (41, 42, 43, 44, 400, 401, 402)]
    found.append((f"step at {nodes:,} nodes, all unfolded", page.each(*steps), 1000 / 30, "ms"))
    page.view.abandon()

    page = Page(tools, clock, browser, big)
    nodes = len(big.record.nodes)
    found.append((f"open {nodes:,} nodes, folded", page.open_ms(), 3000.0, "ms"))
    found.append(
        (f"step at {nodes:,} nodes, folded", page.each("go(41)", "go(42)"), 1000 / 30, "ms")
    )
    unfolding = page.clock.time(f"{WHEEL} item('Unfold all')")
    found.append((f"unfold all {nodes:,} nodes, once", unfolding, 3000.0, "ms"))
    page.view.page.evaluate("document.querySelector('.lab-player-cursor').focus()")
    moves = ("wheel({ deltaY: 60 })", "wheel({ deltaY: -60 })")
    found.append((f"pan, {nodes:,} nodes unfolded", page.each(*moves), 16.0, "ms"))
    zooms = ("wheel({ deltaY: 60, ctrlKey: true })", "wheel({ deltaY: -60, ctrlKey: true })")
    found.append((f"zoom, {nodes:,} nodes unfolded", page.each(*zooms), 16.0, "ms"))
    page.clock.time("document.querySelector('[aria-label=\"Show all\"]').click()")
    found.append((f"pan, all {nodes:,} in sight", page.each(*moves), 16.0, "ms"))
    found.append((f"zoom, all {nodes:,} in sight", page.each(*zooms), 16.0, "ms"))
    page.view.abandon()
    return found


def main() -> int:
    """Print the table; 1 when a bar is missed."""
    tools, clock = tools_of("tests/browser/conftest.py"), tools_of("benchmarks/xray.py").Clock
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=tools.program(), args=tools.QUIET)
        found = rows(tools, clock, browser)
        browser.close()
    print(f"{'':42}{'here':>9}{'bar':>12}")
    for name, figure, bar, unit in found:
        missed = "" if figure <= bar else "   MISSED"
        print(f"{name:42}{figure:9.1f}   ≤ {bar:6.0f} {unit}{missed}")
    return 1 if any(figure > bar for _, figure, bar, _ in found) else 0


if __name__ == "__main__":
    sys.exit(main())
