"""A blank page for one widget: JupyterLab's colours around it, a model that is not a kernel.

    def test_button(stage):
        view = stage(Xray(tree), theme="dark", zoom=2)
        view.page.get_by_role("button", name="Run").click()
        view.axe()                  # no violation in our root
        view.picture("xray-dark")   # tests/browser/pictures/xray-dark.png
        view.push(result=3)         # Python changes state, the view follows
        assert view.sent == [{"ask": "run", "with": {}}]

The page is served from memory at http://localhost/, so that the widget gets what a notebook gives
it (clipboard, storage), and every other request is refused and makes the test fail, as does an
error on the console.
"""

import json
import re
import shutil
import sys
from pathlib import Path

import anywidget
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
PICTURES = HERE / "pictures"
THEMES = Path(sys.prefix) / "share/jupyter/lab/themes/@jupyterlab"
HOME = "http://localhost/"

# Why axe gives up on a text whose like is in sight: it lies below the edge of a scrolled list, or
# is a single letter.
SCROLLED_AWAY = ("elmPartiallyObscured", "shortTextContent")

PAGE = """<!doctype html>
<html lang="en" %(html)s>
<head><meta charset="utf-8"><title>stage</title><style>
%(variables)s
body { margin: 0; padding: 12px; background: var(--jp-layout-color0);
       color: var(--jp-ui-font-color1); font: 13px/1.3 var(--jp-ui-font-family); }
.jp-OutputArea-output { background: var(--jp-layout-color1); padding: 4px; overflow: auto; }
</style><style>%(css)s</style></head>
<body %(body)s>
<main><h1 style="position:absolute;left:-9999px">Stage</h1>
<div class="jp-OutputArea-output"><div id="stage"></div></div></main>
</body></html>"""

# VS Code and Colab mark and colour their pages in their own way, and load ipywidgets' light
# `--jp-` variables even when they are dark.
ELSEWHERE = {
    "vscode-dark": (
        "",
        'class="vscode-dark" data-vscode-theme-kind="vscode-dark"',
        ":root { --vscode-editor-background: #1f1f1f; --vscode-editor-foreground: #cccccc;"
        " --vscode-editorWidget-background: #202020; --vscode-editorWidget-border: #313131;"
        " --vscode-descriptionForeground: #9d9d9d; --vscode-font-family: sans-serif; }",
    ),
    "colab-dark": (
        'theme="dark"',
        "",
        ":root { --colab-primary-surface-color: #383838; --colab-primary-text-color: #e3e3e3;"
        " --colab-secondary-surface-color: #444746; --colab-border-color: #5f6368; }",
    ),
}


# A stand-in for anywidget's model: get, set, save_changes, on, off, send.
MODEL = """async ([esm, values]) => {
  const listeners = {};
  const fire = (event, ...args) => {
    for (const call of [...(listeners[event] ?? [])]) call(...args);
  };
  const model = {
    get: (name) => values[name],
    set: (name, value) => { values[name] = value; fire("change:" + name); fire("change"); },
    save_changes: () => {},
    on: (event, call) => { (listeners[event] ??= []).push(call); },
    off: (event, call) => {
      listeners[event] = call ? (listeners[event] ?? []).filter((known) => known !== call) : [];
    },
    send: async (content) => {
      const answer = await window.labSend(content);
      for (const [name, value] of Object.entries(answer)) model.set(name, value);
    },
  };
  const url = URL.createObjectURL(new Blob([esm], { type: "text/javascript" }));
  const module = await import(url);
  window.labModel = model;
  window.labKeys = [];
  document.addEventListener("keydown", (event) => window.labKeys.push(event.key));
  window.labCleanup = await module.default.render({
    model, el: document.getElementById("stage"), signal: new AbortController().signal,
  });
  window.labListeners = () => Object.values(listeners).flat().length;
}"""


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.browser)


QUIET = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip


def program() -> str:
    """The system's Chromium; its absence is an error, not a skip."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise RuntimeError(
            f"expected one of {', '.join(names)} on PATH, found none; "
            "install it with `apt-get install chromium`."
        )
    return found


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program(), args=QUIET)
        yield chromium
        chromium.close()


def jupyterlab_variables(theme: str) -> str:
    """The `:root` rules of JupyterLab's own light or dark theme, as installed."""
    file = THEMES / f"theme-{theme}-extension/index.css"
    rules = re.findall(r":root\s*\{[^}]*\}", file.read_text("utf-8"))
    assert rules, f"expected :root rules with JupyterLab's colours in {file}, found none"
    return "\n".join(rules)


def page(theme: str, css: str) -> str:
    """An empty page in the colours of JupyterLab (light, dark) or of one of ELSEWHERE."""
    if theme in ELSEWHERE:
        html, body, own = ELSEWHERE[theme]
        variables = jupyterlab_variables("light") + own
    else:
        light = "true" if theme == "light" else "false"
        html, variables = "", jupyterlab_variables(theme)
        body = f'data-jp-theme-light="{light}" data-jp-theme-name="JupyterLab {theme.title()}"'
    return PAGE % {"html": html, "body": body, "variables": variables, "css": css}


class View:
    """One widget on one page."""

    def __init__(self, browser, widget, *, theme, zoom, width, wired, motion):
        self.widget = widget
        self.sent = []  # messages of the view, in order
        self.refused = []  # requests that left the page
        self.errors = []  # what the console said
        self._wired = wired
        self._context = browser.new_context(
            viewport={"width": width // zoom, "height": 900 // zoom},
            device_scale_factor=zoom,
            color_scheme="light" if theme == "light" else "dark",
            reduced_motion="no-preference" if motion else "reduce",
            permissions=["clipboard-read", "clipboard-write"],
        )
        self._context.set_default_timeout(10_000)
        self._context.route("**/*", self._route)
        self.page = self._context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.expose_function("labSend", self._answer)
        self._html = page(theme, widget._css)
        self.page.goto(HOME)
        self.page.evaluate(MODEL, [widget._esm, self._values()])
        self.root = self.page.locator(".lab").first

    def _route(self, route):
        url = route.request.url
        if url == HOME:
            route.fulfill(body=self._html, content_type="text/html; charset=utf-8")
        elif url == HOME + "favicon.ico":
            route.fulfill(status=204)
        else:
            self.refused.append(url)
            route.abort()

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _traits(self):
        """What the widget shares with its front end: `state`, and what it adds to that."""
        common = anywidget.AnyWidget.class_trait_names()
        names = [name for name in self.widget.trait_names(sync=True) if name not in common]
        return {name: getattr(self.widget, name) for name in names if not name.startswith("_")}

    def _values(self, known=None):
        """What would arrive over the wire of all that is not `known`: JSON, and valid JSON."""
        known = known or {}
        new = {name: one for name, one in self._traits().items() if one is not known.get(name)}
        return json.loads(json.dumps(new, allow_nan=False))

    def _answer(self, content):
        self.sent.append(content)
        if not self._wired:
            return {}
        before = self._traits()
        self.widget._answer(self.widget, content, [])
        return self._values(known=before)

    def push(self, **changes):
        """Change entries of the widget's state from Python, as `update` does in a kernel."""
        self.widget.update(**changes)
        state = self._values()["state"]
        self.page.evaluate("state => window.labModel.set('state', state)", state)

    def keys(self):
        """The keys that a listener of the notebook on `document` would have heard."""
        return self.page.evaluate("window.labKeys")

    def axe(self, *, covered=False):
        """Assert that axe-core finds nothing in our root, contrast included.

        `covered=True` while a menu lies over a part of it, whose contrast axe cannot see then.
        """
        options = {"resultTypes": ["violations", "incomplete"]}
        found = Axe().run(self.page, context={"include": [[".lab"]]}, options=options)
        assert found.violations_count == 0, found.generate_report()
        unsure = [
            f"{node['target']}: {check['message']}"
            for rule in found.response["incomplete"]
            if rule["id"] == "color-contrast"
            for node in rule["nodes"]
            # Behind text in an SVG axe sees an image and gives up; its colours are variables
            # that axe judges in the text beside it.
            if not node["html"].startswith("<text")
            for check in node["any"]
            if check["data"]["messageKey"] not in SCROLLED_AWAY
        ]
        assert covered or not unsure, "axe could not compute a contrast:\n" + "\n".join(unsure)

    def picture(self, name):
        """Save what the page shows as `pictures/<name>.png`; returns the path."""
        PICTURES.mkdir(exist_ok=True)
        file = PICTURES / f"{name}.png"
        self.page.screenshot(path=file, full_page=True)
        return file

    def overflow(self):
        """How many pixels the page is wider than its window; 0 when all fits."""
        return self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
            " + Math.max(0, ...[...document.querySelectorAll('.jp-OutputArea-output')]"
            ".map(e => e.scrollWidth - e.clientWidth))"
        )

    def close(self):
        """End the view, and assert that it left nothing behind and asked nobody."""
        left = self.page.evaluate(
            "() => { window.labCleanup?.(); return [window.labListeners(),"
            " document.getElementById('stage').childElementCount]; }"
        )
        self._context.close()
        assert self.refused == []
        assert self.errors == []
        assert left == [0, 0], f"after clean-up: {left[0]} listeners, {left[1]} elements are left"

    def abandon(self):
        """End the page without judging it."""
        self._context.close()


@pytest.fixture
def stage(browser):
    """`stage(widget, theme="light", zoom=1, width=900, wired=True, motion=False) -> View`.

    `theme` is "light" or "dark" as JupyterLab has them, or "vscode-dark" or "colab-dark".
    `wired=False` keeps messages in `view.sent` without giving them to the Python widget.
    `zoom=2` is the browser's 200 %: half the room, twice the pixels.
    """
    views = []

    def put(widget, *, theme="light", zoom=1, width=900, wired=True, motion=False):
        view = View(
            browser, widget, theme=theme, zoom=zoom, width=width, wired=wired, motion=motion
        )
        views.append(view)
        return view

    yield put
    try:
        while views:
            views.pop().close()
    finally:
        while views:
            views.pop().abandon()
