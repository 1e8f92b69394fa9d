"""The students' pages: what they say, what they must not say, and that nothing on them acts."""

import re
from dataclasses import replace

import bs4
import nbformat
import pytest

from pytorch_lab.checks.compare import difference
from pytorch_lab.checks.encode import encode
from pytorch_lab.grading.book.gradebook import Override, Verdict, now
from pytorch_lab.grading.book.marks import Row
from pytorch_lab.grading.book.telling import tell
from pytorch_lab.grading.pages import harmless, shell
from pytorch_lab.grading.pages.feedback import feedback, write_feedback
from pytorch_lab.grading.pages.handed_in import handed_in
from pytorch_lab.grading.pages.markdown import markdown
from tests.assignments import HIDDEN, make_submission
from tests.graded import DIFFERS, MISTAKEN, graded_class
from tests.hostile import HTML, MARKDOWN, NAME, TEXTS, hostile_notebook

WRONG = "def twice(x):\n    return x + x + x"


def page_of(graded):
    ((_, page),) = feedback(graded)
    return page


def text_of(page):
    return " ".join(bs4.BeautifulSoup(page, "html.parser").get_text(" ").split())


@pytest.fixture(scope="module")
def mistaken(assignment):
    notebook = make_submission(e1=WRONG)
    return page_of(graded_class(assignment, {"ada": {"03.1": MISTAKEN}}, {"ada": notebook}))


# What is on a page


def test_a_page_has_the_total_and_each_verdict_below_the_answer_that_it_is_about(mistaken):
    told = text_of(mistaken)
    assert "ada 4.5 of 5.5 points · 2 of 3 exercises passed" in told
    order = ["def twice", "03.1 wrong 0 of 1 points", "def closest", "03.2 passed 2 of 2 points"]
    places = [told.index(words) for words in order]
    assert places == sorted(places)


def test_a_verdict_brings_what_the_visible_check_shows_and_the_hint(mistaken):
    told = text_of(mistaken)
    assert "The visible check says 03.1 ✗ not yet: it must be twice as much." in told
    assert "Hint Does your answer take for granted that three is as good as two ?" in told
    assert "<code>two</code>" in mistaken


def test_a_page_needs_nothing_but_itself(mistaken):
    soup = bs4.BeautifulSoup(mistaken, "html.parser")
    assert not soup.find_all(["script", "link", "iframe", "object", "base", "form"])
    assert [tag for tag in soup.find_all(src=True) if not tag["src"].startswith("data:")] == []
    assert all(tag["href"].startswith("#") for tag in soup.find_all(href=True))
    assert not re.search(r"url\(|@import", mistaken)
    policy = soup.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src 'none'" in policy
    assert "unsafe" not in policy


def test_without_a_sandbox_every_page_says_so(assignment):
    graded = graded_class(assignment, {"ada": {}, "bob": {}}, {"ada": make_submission()})
    assert all(shell.UNSAFE not in text_of(page) for _, page in feedback(graded))
    graded.sandbox = False
    assert all(shell.UNSAFE in text_of(page) for _, page in feedback(graded))


def test_whose_file_could_not_be_read_is_told_why_without_the_graders_folders(assignment):
    why = "expected a Jupyter notebook in /home/prof/sub/ada.ipynb, got broken JSON; save it again."
    said = dict.fromkeys(("03.1", "03.2", "03.3"), Verdict("unreadable", why))
    told = text_of(page_of(graded_class(assignment, {"ada": said}, {})))
    assert told.count("Expected a Jupyter notebook in ada.ipynb, got broken JSON;") == 1
    assert "prof" not in told


def test_an_answer_that_is_not_in_the_notebook_has_its_verdict_all_the_same(assignment):
    notebook = make_submission()
    notebook.cells = [cell for cell in notebook.cells if "def twice" not in cell.source]
    missing = Verdict("missing", "the answer cell 03-1 is not in the notebook")
    graded = graded_class(assignment, {"ada": {"03.1": missing}}, {"ada": notebook})
    told = text_of(page_of(graded))
    assert "Not in your notebook ○ 03.1 missing 0 of 1 points The answer cell 03-1 is not" in told


def test_where_no_answer_belongs_to_a_test_the_verdict_stands_below_the_test(assignment):
    """As in an assignment made for nbgrader, whose tests are cells of any name."""
    graded = graded_class(assignment, {"ada": {"03.1": MISTAKEN}}, {"ada": make_submission()})
    graded.exercises = [replace(exercise, answers=()) for exercise in graded.exercises]
    told = text_of(page_of(graded))
    assert "Not in your notebook" not in told
    order = ["def twice", "Hidden check of exercise 03.1", "03.1 wrong 0 of 1", "def closest"]
    places = [told.index(words) for words in order]
    assert places == sorted(places)


def test_points_by_hand_and_lateness_are_explained(assignment):
    graded = graded_class(assignment, {"ada": {}}, {"ada": make_submission()})
    by_hand = Override(0.5, "a `good` idea", "prof", now())
    first, second, third = graded.rows
    graded.rows = [
        Row("ada", "03.1", 0.5, 1.0, "passed", "", 0.0, by_hand),
        Row("ada", "03.2", 1.5, 2.0, "passed", "", 0.5),
        third,
    ]
    told = text_of(page_of(graded))
    assert "Your instructor gave the points: a good idea" in told
    assert "03.1 by hand 0.5 of 1 points" in told
    assert "It was handed in late, which took 0.5 points." in told
    assert "0.5 points lost for lateness" in told
    assert (first.points, second.points) == (1.0, 2.0)


def test_pages_are_written_under_names_that_stay_in_their_folder(assignment, tmp_path):
    graded = graded_class(assignment, {NAME: {}, "../up": {}, "ada": {}, "Ada": {}}, {})
    written = write_feedback(graded, tmp_path)
    assert {path.parent for path in written} == {tmp_path / "feedback"}
    assert len({path.name.casefold() for path in written}) == 4
    assert sorted(written) == sorted((tmp_path / "feedback").iterdir())


@pytest.mark.parametrize("device", ["CON", "nul.txt", "..", ".", "", "…", "/", "-", "\udcff"])
def test_no_name_is_a_device_hidden_or_empty(device):
    assert re.fullmatch(r"student\.html", shell.file_names([device])[device])


def test_nobody_can_take_a_name_that_another_pages_name_is_made_of():
    taken = shell.file_names(["a b", "a_b"])["a b"].removesuffix(".html")
    assert len(set(shell.file_names(["a b", "a_b", taken]).values())) == 3


# What a page must not say

SECRET, OWN = 48.213, 17.654
PAIRS = {
    "number": ([OWN], [SECRET]),
    "scalar": (OWN, SECRET),
    "text": ("17654", "48213"),
    "long text": ("a" * 70 + "17654", "a" * 70 + "48213"),
    "length": ([1.0] * 17, [1.0] * 48),
    "type": ("17654", [SECRET]),
    "key": ({"17654": 1}, {"48213": 1}),
    "deep": ({"k": [1, OWN]}, {"k": [1, SECRET]}),
    "too many keys": ({"a": 1, "17654": 2}, {"a": 1}),
    "unreadable": (None, [SECRET]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_no_difference_tells_a_value(name):
    got, want = (encode(value) for value in PAIRS[name])
    reason = difference(got, want, "twice a vector")
    (told,) = tell("failed", reason, [WRONG], HIDDEN["03.1"])
    assert "'twice a vector'" in told
    assert not re.search(r"\d", told)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("twice a vector: expected shape (4, 8), got (8, 4)", "has another shape."),
        ("twice a vector: expected dtype float64, got float32", "has another dtype."),
        (
            "twice a vector: expected requires_grad=True, got False",
            "does not have the same `requires_grad`.",
        ),
        ("twice a vector: expected 3 items, got 2 items", "has another number of items."),
        ("twice a vector[4][2]: expected nan, got -inf", "holds other numbers."),
        (
            "the check came to no end: expected the value 'twice a vector', got none",
            "A hidden check came to no end: it got nothing for the value 'twice a vector'.",
        ),
    ],
)
def test_a_difference_is_told_in_kind(reason, told):
    (said,) = tell("failed", reason, [], HIDDEN["03.1"])
    assert said.endswith(told)


# A student's code chooses what came, what an error says, even which error it is.
FORGED = [
    ("failed", "expected the value 'twice a vector', got 'kdhbac: expected 4, got 8'"),
    ("failed", "kdhbac: expected 48.213, got 4"),  # a UsageError of their own
    ("failed", "twice 48213 vectors: expected 1, got 2"),
    ("failed", "the check came to no end: expected the value 'kdhbac', got none"),
    ("failed", "expected None, bool or int, got kdhbac48213"),
    ("raised", "kdhbac48213 in line 1, def twice(x):: 48.213"),
    ("raised", "ValueError in line 48213, kdhbac: kdhbac"),
    ("raised", "ValueError in line 1, kdhbac: 48213"),
    ("raised", "ValueError: kdhbac 48.213"),
    ("raised", "kdhbac48213"),
    ("kernel_died", "no kernel could be started for it: kdhbac 48213"),
    ("timed_out", "the kdhbac ran longer than 48213 s; "),
    ("kdhbac", "kdhbac 48213"),
]


@pytest.mark.parametrize(("status", "reason"), FORGED)
def test_nothing_that_a_students_code_says_gets_through(status, reason):
    for told in tell(status, reason, [WRONG], HIDDEN["03.1"]):
        assert not re.search(r"kdhbac|48[.]?213", told)


def test_a_students_own_line_is_quoted():
    reason = "ValueError in line 2, return x + x + x: 48.213"
    assert tell("raised", reason, [WRONG]) == ["`ValueError` in your line 2: `return x + x + x`"]


def test_the_page_of_a_wrong_answer_tells_no_value_of_the_hidden_check(mistaken):
    assert DIFFERS not in text_of(mistaken)
    assert not re.search(r"48[.]?213|17[.]?654", text_of(mistaken))
    assert "seed" not in text_of(mistaken)


# What a page does with what strangers wrote

ALLOWED = {"href", "src", "alt", "width", "height", "colspan", "rowspan", "scope", "rel"}


@pytest.mark.parametrize("name", [*HTML, *MARKDOWN])
def test_nothing_that_acts_is_left_of_a_vector(name):
    """Read by another parser than the one that cleaned it."""
    if name in HTML:
        made = [harmless.html(HTML[name])]
    else:
        made = [markdown(nbformat.v4.new_markdown_cell(MARKDOWN[name]))]
    made.append(markdown(nbformat.v4.new_markdown_cell({**MARKDOWN, **HTML}[name])))
    for said in made:
        for tag in bs4.BeautifulSoup(said, "html.parser").find_all():
            assert tag.name in harmless._TAGS
            assert set(tag.attrs) <= ALLOWED
            assert tag.get("href", "https://").startswith(("https://", "mailto:"))
            assert tag.get("src", "data:image/").startswith("data:image/")


def test_what_is_harmless_stays():
    table = "<table><thead><tr><th scope='col'>loss</th></tr></thead></table>"
    assert harmless.html(table) == table.replace("'", '"')
    image = f'<img alt="a" src="{harmless.picture("image/png", "iVBORw0K")}">'
    assert harmless.html(image) == image
    assert "<em>yes</em>" in markdown(nbformat.v4.new_markdown_cell("*yes*"))


def test_the_hidden_is_made_visible():
    assert harmless.text(TEXTS["bidi"]) == "points⟨U+202E⟩ 02 ⟨U+2066⟩seven⟨U+2069⟩"
    assert harmless.text(TEXTS["window title"]) == "⟨U+0000⟩⟨U+0007⟩⟨U+0008⟩"
    assert "⟨U+202E⟩" in harmless.html("a &#x202e; b")
    assert harmless.text("\udcff") == "\\udcff"


def test_a_notebook_of_every_vector_makes_a_page_without_one(assignment):
    shown = {e: Verdict("failed", NAME, NAME, NAME, NAME) for e in ("03.1", "03.2", "03.3")}
    page = page_of(graded_class(assignment, {NAME: shown}, {NAME: hostile_notebook()}))
    soup = bs4.BeautifulSoup(page, "html.parser")
    assert not soup.find_all(["script", "iframe", "object", "form", "input", "button", "svg"])
    assert [a for tag in soup.find_all() for a in tag.attrs if a.startswith("on")] == []
    assert soup.find_all(style=True) == []
    assert len(soup.find_all("main")) == len(soup.find_all("h1")) == 1
    assert len(soup.find_all(id="exercise-03-1")) == 1


ODD = [
    None, 7, [7], [None], [{}], [{"output_type": "stream"}], [{"output_type": "stream", "text": 7}],
    [{"output_type": "error", "traceback": 7}], [{"output_type": "error", "traceback": [7, "x"]}],
    [{"output_type": "display_data", "data": 7}], [{"output_type": "display_data"}],
    [{"output_type": "execute_result", "data": {"text/html": 7, "text/plain": ["a", 7]}}],
    [{"output_type": ["stream"], "text": "x"}],
]  # fmt: skip


@pytest.mark.parametrize("outputs", ODD)
def test_outputs_of_no_known_form_spoil_no_page(assignment, outputs):
    notebook = make_submission()
    notebook.cells[1]["outputs"] = nbformat.from_dict(outputs)
    notebook.cells[0]["attachments"] = nbformat.from_dict(outputs)
    assert "3 of 3 exercises" in text_of(
        page_of(graded_class(assignment, {"ada": {}}, {"ada": notebook}))
    )


def test_a_notebook_of_any_size_makes_a_page_of_a_size_to_read(assignment):
    notebook = make_submission()
    long = nbformat.v4.new_output("stream", text="x" * 1_000_000)
    image = nbformat.v4.new_output("display_data", {"image/png": "iVBO" * 1_000_000})
    more = [nbformat.v4.new_code_cell("1") for _ in range(500)]
    for cell in more:
        cell.outputs = [long, image]
    notebook.cells[:0] = more
    graded = graded_class(assignment, {"ada": {}}, {"ada": notebook})
    page = page_of(graded)
    assert len(page) < 10_000_000
    for said in (
        "… cut after 20,000 characters",
        "… more output is left out: it is too large for a page.",
        "more cells are not shown",
        "03.3 passed",
    ):
        assert said in text_of(page)
    assert len(handed_in(notebook, graded.exercises).cells) < 420


@pytest.mark.parametrize("source", ["<div>" * 200_000, "<img " * 200_000, "<b><p>" * 4_000])
def test_html_made_to_take_long_is_shown_as_text(source):
    """At full length the parser takes minutes for the first two; the limit is what saves it."""
    assert harmless.html(source).startswith("<pre>&lt;")
