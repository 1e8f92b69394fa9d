"""The grader's pages in a real browser: nothing on them acts, and everybody can read them.

A page comes from memory; every request beyond it, every dialog and every script of a stranger is
noted. The twin tests show that the notes would be taken: the same vectors in a page without our
cleaning and without a policy do run.
"""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from pytorch_lab.grading.book.gradebook import Verdict
from pytorch_lab.grading.notebooks import write
from pytorch_lab.grading.pages.class_page import class_page
from pytorch_lab.grading.pages.feedback import feedback
from tests.assignments import make_solution, make_submission
from tests.graded import MISTAKEN, graded_class
from tests.hostile import HTML, NAME, hostile_notebook

HOME = "http://localhost/page.html"
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
WRONG = "def twice(x):\n    return x + x + x"

PROVOKE = """() => {
  document.addEventListener("click", (event) => {
    if (/^https?:/.test(event.target.closest("a")?.href ?? "")) event.preventDefault();
  });
  for (const part of document.querySelectorAll("body *")) {
    for (const kind of ["mouseover", "focus", "toggle", "error", "load", "begin"]) {
      part.dispatchEvent(new Event(kind));
    }
    part.click?.();
  }
  window.scrollTo(0, document.body.scrollHeight);
}"""
FIXED = """[...document.querySelectorAll("main *")]
  .filter((part) => getComputedStyle(part).position === "fixed").length"""


class Opened:
    """One page in one browser context, and what happened on it."""

    def __init__(self, browser, html, *, theme="light", zoom=1, width=1200):
        self.asked, self.dialogs, self.said = [], [], []
        self._context = browser.new_context(
            viewport={"width": width // zoom, "height": 900 // zoom},
            device_scale_factor=zoom,
            color_scheme=theme,
        )
        self._context.route("**/*", lambda route: self._route(route, html))
        self.page = self._context.new_page()
        self.page.on("dialog", self._dialog)
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self._context.on("page", lambda page: self.asked.append(page.url))
        self.page.goto(HOME)

    def _route(self, route, html):
        if route.request.url == HOME:
            route.fulfill(body=html, content_type="text/html; charset=utf-8")
        elif route.request.url.endswith("/favicon.ico"):
            route.fulfill(status=204)
        else:
            self.asked.append(route.request.url)
            route.abort()

    def _dialog(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def provoke(self):
        """Hover, focus and click as somebody would who tries everything but plain links."""
        self.page.evaluate(PROVOKE)
        for _ in range(5):
            self.page.keyboard.press("Tab")
        self.page.evaluate("() => new Promise(requestAnimationFrame)")

    @property
    def pwned(self):
        return self.page.evaluate("window.pwned ?? 0")

    def overflow(self):
        return self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )

    def axe(self):
        found = Axe().run(self.page, options={"resultTypes": ["violations", "incomplete"]})
        assert found.violations_count == 0, found.generate_report()

    def close(self):
        self._context.close()


@pytest.fixture
def opened(browser):
    pages = []

    def put(html, **how):
        pages.append(Opened(browser, html, **how))
        return pages[-1]

    yield put
    for page in pages:
        page.close()


@pytest.fixture(scope="module")
def assignment(tmp_path_factory):
    path = tmp_path_factory.mktemp("solutions") / "03_numbers.ipynb"
    write(path, make_solution())
    return path


@pytest.fixture(scope="module")
def hostile(assignment):
    """A class of one, who holds every vector there is: the student's page, and the class's."""
    bad = Verdict("failed", NAME, f"{NAME}: {NAME}", NAME, NAME, 99.0)
    said = {NAME: {"03.1": bad, "03.2": bad._replace(status="refused"), "03.3": bad}}
    graded = graded_class(assignment, said, {NAME: hostile_notebook()}, sandbox=False)
    graded.notes = [NAME, HTML["script"]]
    ((_, page),) = feedback(graded)
    return {"feedback": page, "class": class_page(graded)}


@pytest.fixture(scope="module")
def honest(assignment):
    answers = {"ada": make_submission(e1=WRONG), "bob": make_submission(e1=WRONG)}
    answers["bob"].cells[
        0
    ].source += "\n\nSee [the docs](https://pytorch.org), $x^2$.\n\n|a|\n|-|\n|1|"
    said = {
        "ada": {"03.1": MISTAKEN},
        "bob": {
            "03.1": MISTAKEN,
            "03.2": Verdict("timed_out", "the answer ran longer than 60 s;", seconds=60.0),
            "03.3": Verdict("not_attempted", "the answer is still the stub"),
        },
    }
    graded = graded_class(assignment, said, answers, sandbox=False)
    page = dict(feedback(graded))["bob.html"]
    return {"feedback": page, "class": class_page(graded)}


@pytest.mark.parametrize("kind", ["feedback", "class"])
def test_no_vector_runs_asks_or_draws(opened, hostile, kind):
    view = opened(hostile[kind])
    view.provoke()
    assert view.pwned == 0
    assert view.dialogs == []
    assert view.asked == []
    assert view.page.locator("h1").count() == 1
    assert view.page.evaluate(FIXED) == 0


@pytest.mark.parametrize("kind", ["feedback", "class"])
def test_the_cleaning_alone_is_enough(opened, hostile, kind):
    bare = POLICY.sub("", hostile[kind])
    assert bare != hostile[kind]
    view = opened(bare)
    view.provoke()
    assert (view.pwned, view.dialogs) == (0, [])
    assert view.asked == []


def test_the_policy_alone_is_enough(opened, honest):
    """Vectors that slipped through would still do nothing."""
    raw = "".join(source for name, source in HTML.items() if "link that opens" not in name)
    view = opened(honest["feedback"].replace("<main>", f"<main>{_unbroken(raw)}"))
    assert view.pwned == 0
    assert view.dialogs == []
    assert [url for url in view.asked if "refresh" not in url] == []


def test_the_vectors_run_where_nothing_stops_them(opened):
    raw = "".join(_unbroken(source) for source in HTML.values())
    view = opened(f"<!doctype html><title>x</title><body>{raw}")
    assert view.pwned == 1
    assert view.dialogs
    assert any("evil.example" in url for url in view.asked)


def _unbroken(source):
    """Vectors beside each other: without those that swallow or leave the rest of the page."""
    swallow = ("<noscript", "<template", "<!--", "http-equiv=refresh", "<base", "<math>", "</head>")
    return "" if any(word in source for word in swallow) else source


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["feedback", "class"])
def test_a_page_is_accessible_and_fits_at_200_percent(opened, honest, kind, theme):
    view = opened(honest[kind], theme=theme)
    view.axe()
    assert view.overflow() == 0
    narrow = opened(honest[kind], theme=theme, zoom=2, width=1280)
    assert narrow.overflow() == 0
    assert view.said == narrow.said == []
    assert view.asked == narrow.asked == []


def test_dark_pages_are_dark_and_paper_is_white(opened, honest):
    view = opened(honest["feedback"], theme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert view.page.evaluate(ground) == "rgb(22, 24, 27)"
    view.page.emulate_media(media="print", color_scheme="dark")
    assert view.page.evaluate(ground) == "rgb(255, 255, 255)"


def test_tables_are_sorted_by_a_press_on_a_head(opened, honest):
    view = opened(honest["class"])
    table = view.page.locator("table.students")
    first = table.locator("tbody tr").first
    assert first.inner_text().startswith("ada")
    points = table.get_by_role("button", name="points")
    points.click()
    points.click()
    assert first.inner_text().startswith("bob")
    assert table.locator("th[aria-sort=ascending]").inner_text().startswith("points")
    assert view.said == []


def test_links_of_the_summary_lead_to_the_verdicts(opened, honest):
    view = opened(honest["feedback"])
    view.page.get_by_role("link", name="03.3").click()
    assert view.page.evaluate("document.querySelector(':target').id") == "exercise-03-3"
