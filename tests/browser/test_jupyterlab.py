"""The course as a learner meets it: `pytorch-lab open`, a real JupyterLab, a real kernel.

One server and one page for the whole file; the tests follow a learner from top to bottom. Nothing
waits by the clock: JupyterLab is asked when it is done (`app.restored`, `sessionContext.ready`, the
promise of Run All), and the page is polled for what must appear.
"""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

LESSON = "notebooks/03_modules.ipynb"
GRAPHS = "notebooks/01_dynamic_graphs.ipynb"
RACES = "notebooks/06_optimizers_and_schedulers.ipynb"
EXERCISES = "exercises/03_modules.ipynb"
PATIENCE_MS = 90_000  # a kernel that imports torch on a busy machine
expect.set_options(timeout=PATIENCE_MS)

# The classic wrong answer of 03.1, and a right one.
WRONG = """def trainable(model):
    return {name: p.numel() for name, p in model.state_dict().items()}"""
RIGHT = """def trainable(model):
    return {name: p.numel() for name, p in model.named_parameters() if p.requires_grad}"""


@pytest.fixture(scope="module")
def course(open_lab, tmp_path_factory):
    """The course, opened as the README says, with JupyterLab's own handle for tests."""
    config = tmp_path_factory.mktemp("config")
    (config / "jupyter_lab_config.json").write_text('{"LabApp": {"expose_app_in_browser": true}}')
    return open_lab(environment={"JUPYTER_CONFIG_PATH": str(config)})


class Screen:
    """A browser page with JupyterLab in it."""

    def __init__(self, browser, course):
        self.server, _, rest = course.url.partition("/lab")
        self.token = f"?{rest.partition('?')[2]}"
        self.context = browser.new_context(viewport={"width": 1360, "height": 950})
        self.context.set_default_timeout(PATIENCE_MS)
        self.page = self.context.new_page()
        self.errors, self.elsewhere = [], []
        self.page.on("pageerror", lambda error: self.errors.append(error.stack or str(error)))
        self.page.on(
            "console",
            lambda message: self.errors.append(message.text) if message.type == "error" else None,
        )
        self.page.on("request", self._request)

    def _request(self, request):
        loopback = (r"https?|wss?", r"127\.0\.0\.1|localhost")
        if not re.match(rf"(({loopback[0]})://({loopback[1]})[:/]|data:|blob:)", request.url):
            self.elsewhere.append(request.url)

    def visit(self, path):
        """Open a file of the course, with its kernel ready."""
        self.page.goto(f"{self.server}/lab/tree/{path}{self.token}")
        self.page.wait_for_function("() => window.jupyterapp?.restored")
        self.page.evaluate(
            """async (path) => {
                const app = window.jupyterapp;
                await app.restored;
                const panel = await app.commands.execute("docmanager:open", { path });
                await panel.context.ready;
                if (path.endsWith(".ipynb")) await panel.context.sessionContext.ready;
                window.panel = panel;
            }""",
            path,
        )

    def command(self, name, **arguments):
        return self.page.evaluate(
            "async ([name, arguments_]) => {"
            " await window.jupyterapp.commands.execute(name, arguments_); }",
            [name, arguments],
        )

    def run_all(self):
        self.command("notebook:run-all-cells")

    def answer(self, needle, source):
        """Put `source` into the first code cell after the one that holds `needle`, and run it."""
        self.page.evaluate(
            """async ([needle, source]) => {
                const cells = [...window.panel.content.widgets];
                const at = cells.findIndex(
                    (cell) => cell.model.sharedModel.source.includes(needle));
                if (at < 0) throw new Error(`no cell holds ${needle}`);
                const code = cells.slice(at).find((cell) => cell.model.type === "code");
                code.model.sharedModel.setSource(source);
                window.panel.content.activeCellIndex = cells.indexOf(code);
                await window.jupyterapp.commands.execute("notebook:run-cell");
            }""",
            [needle, source],
        )

    def run_up_to(self, needle):
        """Run the cells above the first code cell that holds `needle`, and that one."""
        self.page.evaluate(
            """async (needle) => {
                const cells = [...window.panel.content.widgets];
                const at = cells.findIndex((cell) => cell.model.type === "code"
                    && cell.model.sharedModel.source.includes(needle));
                if (at < 0) throw new Error(`no code cell holds ${needle}`);
                window.panel.content.activeCellIndex = at;
                await window.jupyterapp.commands.execute("notebook:run-all-above");
                window.panel.content.activeCellIndex = at;
                await window.jupyterapp.commands.execute("notebook:run-cell");
            }""",
            needle,
        )

    def settle(self):
        """Wait until the kernel has answered all that was asked of it before."""
        self.page.evaluate(
            "() => window.panel.context.sessionContext.session.kernel.requestKernelInfo()"
        )

    def cells(self):
        return self.page.evaluate(
            "() => window.panel.content.widgets.map((cell) => ({"
            " type: cell.model.type, source: cell.model.sharedModel.source,"
            " count: cell.model.executionCount ?? null,"
            " errors: cell.model.outputs"
            "   ? cell.model.outputs.toJSON().filter((o) => o.output_type === 'error') : [],"
            "}))"
        )

    def widget(self, kind, number=0):
        """The `number`-th widget of a kind, scrolled to so that JupyterLab draws it."""
        found = self.page.locator(f"section.lab-{kind}").nth(number)
        found.scroll_into_view_if_needed()
        return found

    def picture(self, name, part=None):
        """Keep what is seen, or a part of it; `make pictures` takes the README's from here."""
        pictures = Path(__file__).parent / "pictures"
        pictures.mkdir(exist_ok=True)
        (part or self.page).screenshot(path=pictures / f"{name}.png")

    def theme(self, name):
        """What the computer says of dark mode; our settings make JupyterLab follow it."""
        self.page.emulate_media(color_scheme=name.lower())
        light = json.dumps(name == "Light")
        expect(self.page.locator("body")).to_have_attribute("data-jp-theme-light", light)


@pytest.fixture(scope="module")
def lab(browser, course):
    lab = Screen(browser, course)
    yield lab
    lab.context.close()


@pytest.fixture(scope="module")
def lesson(lab):
    """Lesson 03, run from top to bottom."""
    lab.visit(LESSON)
    lab.run_all()
    return lab


def test_the_server_opens_on_the_landing_page(lab):
    lab.page.goto(f"{lab.server}/{lab.token}")
    expect(lab.page.get_by_role("heading", name="PyTorch Lab", exact=True)).to_be_visible()
    expect(lab.page.get_by_role("link", name=re.compile("Modules"))).to_be_visible()


def test_run_all_runs_every_cell_of_the_lesson(lesson):
    code = [cell for cell in lesson.cells() if cell["type"] == "code"]
    assert [cell["count"] for cell in code] == list(range(1, len(code) + 1))
    assert [cell["errors"] for cell in code] == [[] for _ in code]


def test_the_xray_folds_and_searches(lesson):
    xray = lesson.widget("xray")
    rows = xray.get_by_role("row")
    unfolded = rows.count()
    root = rows.filter(has_text="Net").first
    root.click()
    lesson.page.keyboard.press("ArrowLeft")
    expect(rows).not_to_have_count(unfolded)
    lesson.page.keyboard.press("ArrowRight")
    expect(rows).to_have_count(unfolded)
    search = xray.get_by_role("searchbox")
    search.fill("hidden")
    expect(rows.filter(has_text="head")).to_have_count(0)
    expect(rows.filter(has_text="hidden").first).to_be_visible()
    search.press("Escape")
    expect(rows).to_have_count(unfolded)
    rows.filter(has_text="[1]").click()
    expect(xray).to_contain_text("nn.ModuleList")


def test_a_prediction_is_marked_and_kept(lesson, course):
    predict = lesson.page.get_by_role("region", name=re.compile("^Predict: A validation loop"))
    predict.scroll_into_view_if_needed()
    predict.get_by_label("No: under", exact=False).check()
    predict.get_by_role("button", name="Lock in my guess").click()
    expect(predict).to_contain_text("What isn't recorded is the graph")
    lesson.settle()
    guess = json.loads((course.folder / "notebooks/progress.json").read_text())["guesses"]["03.p3"]
    assert guess["right"] is False
    assert guess["guess"].startswith("No: under")


def test_keys_typed_in_a_widget_stay_there(lesson):
    """`d d` deletes a cell in command mode: never when a control of ours has the focus."""
    lesson.command("notebook:enter-command-mode")
    before = len(lesson.cells())
    predict = lesson.page.get_by_role("region", name=re.compile("^Predict: A validation loop"))
    searchbox = lesson.widget("xray").get_by_role("searchbox")
    for control in (
        predict.get_by_role("radio").first,
        searchbox,
        lesson.widget("xray").get_by_role("button").first,
    ):
        control.focus()
        for key in "ddxb":
            lesson.page.keyboard.press(key)
        assert len(lesson.cells()) == before
    searchbox.press("Escape")
    # The twin: the same keys on a cell do delete it, so the test above can fail.
    lesson.page.locator(".jp-Cell .jp-InputPrompt").last.click()
    lesson.page.keyboard.press("d")
    lesson.page.keyboard.press("d")
    assert len(lesson.cells()) == before - 1
    lesson.command("notebook:undo-cell-action")
    assert len(lesson.cells()) == before


@pytest.mark.parametrize("theme", ["Dark", "Light"])
def test_widgets_follow_the_theme(lesson, theme):
    lesson.theme(theme)
    paper, ink = lesson.widget("xray").evaluate(
        "(e) => [getComputedStyle(e).backgroundColor, getComputedStyle(e).color]"
        ".map((rgb) => Math.max(...rgb.match(/[\\d.]+/g).slice(0, 3).map(Number)))"
    )
    assert paper < ink if theme == "Dark" else paper > ink
    lesson.picture(f"lesson-{theme.lower()}")
    lesson.picture(f"readme-xray-{theme.lower()}", lesson.widget("xray"))


def test_the_player_steps_through_a_lesson_by_keyboard(lab):
    """Lesson 01's first record: `h = torch.sin(h * w)` three times, then the return line."""
    lab.visit(GRAPHS)
    lab.run_up_to("lab.show(lab.graph.record(")
    player = lab.widget("player")
    line = player.locator(".lab-player-now")
    values = player.locator(".lab-player-values")
    press = lab.page.keyboard.press
    player.get_by_role("listbox", name="Source").focus()
    before = lab.cells()
    press("Home")
    expect(line).to_have_count(0)
    press("ArrowRight")
    expect(line.locator("mark")).to_have_text("h * w")
    expect(values).to_have_text("→ scalar 9")
    press("ArrowRight")
    expect(line.locator("mark")).to_have_text("torch.sin(h * w)")
    expect(values).to_have_text("→ scalar 0.412")
    press("End")
    expect(line.locator("mark")).to_have_text("h.relu()")
    assert lab.cells() == before  # the notebook heard none of these keys
    lab.picture("player-in-jupyterlab", player)


def test_check_says_what_is_wrong_and_what_is_right(lab, course):
    lab.visit(EXERCISES)
    lab.run_all()
    panel = lab.page.get_by_role("region", name=re.compile("03.1"))
    panel.scroll_into_view_if_needed()
    check = panel.get_by_role("button", name=re.compile("^Check"))

    lab.answer("03.1 · What will be trained?", WRONG)
    check.click()
    expect(panel).to_contain_text("no optimizer changes a buffer")

    panel.get_by_role("button", name=re.compile("^Hint")).click()
    expect(panel).to_contain_text("walks through the whole model")
    lab.picture("readme-exercise-light", panel)

    lab.answer("03.1 · What will be trained?", RIGHT)
    check.click()
    expect(panel).to_contain_text("✓ passed")
    lab.settle()
    kept = json.loads((course.folder / "exercises/progress.json").read_text())["exercises"]["03.1"]
    assert kept["state"] == "passed"


def test_a_saved_notebook_keeps_its_pictures_without_a_kernel(lab, course):
    """JupyterLab shows a dead widget as an error; what our settings save shows its picture."""
    lab.visit(LESSON)
    lab.run_all()
    lab.command("docmanager:save")
    assert lab.widget("predict").is_visible()
    saved = json.loads((course.folder / LESSON).read_text())
    outputs = [o for cell in saved["cells"] for o in cell.get("outputs", [])]
    html = [o for o in outputs if "text/html" in o.get("data", {})]
    assert len(html) > 5
    assert not [o for o in html if "application/vnd.jupyter.widget-view+json" in o["data"]]
    assert "widgets" not in saved["metadata"]


def test_nothing_was_asked_of_the_outside_and_the_console_is_clean(lab):
    assert lab.elsewhere == []
    assert lab.errors == []


def test_the_sliders_of_a_race_are_answered_by_the_kernel(lab):
    """The target of lesson 06: a rate that SGD bears, on a valley that is less steep."""
    lab.visit(RACES)
    lab.run_up_to('lab.show(path, target="SGD")')
    race = lab.widget("race")
    expect(race).to_contain_text("ravine with conditioning 50")
    expect(race).not_to_contain_text("Reached.")
    for slider, key, times in (("every lr ×", "ArrowRight", 2), ("conditioning", "ArrowLeft", 1)):
        race.get_by_role("slider", name=slider).focus()
        for _ in range(times):
            lab.page.keyboard.press(key)
    expect(race).to_contain_text("ravine with conditioning 30")
    expect(race).to_contain_text("Reached.")
    lab.picture("jupyterlab-race", race)
    assert lab.errors == []


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_the_bar_of_a_loop_draws_its_loss_and_ends_full(lab, theme):
    lab.visit("notebooks/07_training_loop.ipynb")
    lab.theme(theme)
    lab.run_up_to("lab.loop.progress(loader")
    lab.settle()
    bar = lab.page.locator(".jp-OutputArea-output", has_text="one epoch").last
    bar.wait_for()
    bar.scroll_into_view_if_needed()
    assert "64/64" in bar.inner_text()
    assert bar.locator("svg path").count() >= 1
    lab.picture(f"progress-{theme.lower()}", bar)
