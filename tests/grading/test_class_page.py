"""The instructor's page: its figures against numpy's, who resembles whom, and hostile names."""

import hashlib
import os
import re
import subprocess
import sys
from base64 import b64encode

import bs4
import numpy as np
import pytest

from pytorch_lab.checks import sources
from pytorch_lab.cli import main
from pytorch_lab.grading.book.gradebook import Verdict
from pytorch_lab.grading.pages import similar
from pytorch_lab.grading.pages.class_page import class_page
from pytorch_lab.grading.pages.figures import bins, figures
from pytorch_lab.grading.pages.renewing import write_pages
from pytorch_lab.grading.pages.similar import alike, tokens
from tests.assignments import make_submission
from tests.graded import MISTAKEN, graded_class
from tests.hostile import NAME, hostile_notebook

FAILED = Verdict("failed", "n: expected 1, got 2", seconds=0.1)


def text_of(page):
    return " ".join(bs4.BeautifulSoup(page, "html.parser").get_text(" ").split())


def test_the_page_alone_is_made_without_nbconvert():
    """To import that takes as long as to grade two submissions."""
    code = "import sys, pytorch_lab.grading.pages.class_page; print('nbconvert' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.fixture(scope="module")
def marked(assignment):
    """Forty students, of whom the strong pass more, and two without a notebook."""
    rng = np.random.default_rng(7)
    said = {}
    for number in range(40):
        strength = rng.random()
        hard = {"03.1": 0.1, "03.2": 0.5, "03.3": 0.8}
        fails = {e for e, bar in hard.items() if strength + 0.3 * rng.standard_normal() < bar}
        said[f"student {number:02}"] = dict.fromkeys(fails, FAILED)
    said |= {f"late {n}": dict.fromkeys(hard, Verdict("unreadable", "no JSON")) for n in range(2)}
    notebooks = {student: make_submission() for student in said if student.startswith("student")}
    return graded_class(assignment, said, notebooks)


def table_of(graded):
    """Points by student and exercise, as an array, of those who have a notebook."""
    ids = [exercise.id for exercise in graded.exercises]
    points = {(row.student, row.exercise): row.points for row in graded.rows}
    return np.array([[points[student, each] for each in ids] for student in graded.notebooks])


# Figures


def test_the_discrimination_is_the_point_biserial_correlation_with_the_other_exercises(marked):
    points = table_of(marked)
    for at, item in enumerate(figures(marked).items):
        passed, rest = points[:, at] > 0, points.sum(1) - points[:, at]
        share = passed.mean()
        between = rest[passed].mean() - rest[~passed].mean()
        by_hand = between / rest.std() * np.sqrt(share * (1 - share))
        assert item.discrimination == pytest.approx(by_hand)
        assert item.discrimination == pytest.approx(np.corrcoef(points[:, at], rest)[0, 1])


def test_rates_means_and_totals_are_of_those_whose_notebook_was_read(marked):
    points, found = table_of(marked), figures(marked)
    assert (found.students, found.read) == (42, 40)
    assert [item.pass_rate for item in found.items] == pytest.approx((points > 0).mean(0))
    assert [item.mean_points for item in found.items] == pytest.approx(points.mean(0))
    assert found.mean == pytest.approx(points.sum(1).mean())
    assert found.median == pytest.approx(np.median(points.sum(1)))


def test_where_all_got_the_same_there_is_no_discrimination(assignment):
    graded = graded_class(
        assignment, {"ada": {}, "bob": {}}, dict.fromkeys(("ada", "bob"), make_submission())
    )
    assert [item.discrimination for item in figures(graded).items] == [None] * 3
    assert text_of(class_page(graded)).count("all got the same") == 3


@pytest.mark.parametrize("top", [1, 5, 5.5, 10, 20, 100, 97.5])
def test_every_total_is_in_one_step_of_the_histogram(top):
    totals = [*np.random.default_rng(1).uniform(0, top, 200).tolist(), 0, top]
    counted = bins(totals, top)
    assert sum(count for _, count in counted) == 202
    assert len(counted) <= 11


def test_the_commonest_misconception_comes_first_with_who_has_it(assignment):
    rare = Verdict("failed", "", "zeros: nothing is enough", "why?")
    said = {"ada": {"03.1": MISTAKEN}, "bob": {"03.1": MISTAKEN}, "eve": {"03.1": rare}}
    page = text_of(class_page(graded_class(assignment, said, {})))
    first = page.index("2 03.1 three is as good as two (triples) ada , bob")
    assert first < page.index("1 03.1 nothing is enough (zeros) eve")


def test_runs_that_a_person_should_look_at_are_listed_the_worst_first(assignment):
    said = {f"fast {n}": {"03.1": Verdict("passed", "", seconds=0.1)} for n in range(5)}
    said |= {
        "slow": {"03.1": Verdict("passed", "", seconds=9.0)},
        "loud": {"03.1": Verdict("failed", "the output was cut after 1 MB")},
        "dead": {"03.1": Verdict("kernel_died", "the kernel ended while the answer ran")},
        "sly": {"03.1": Verdict("refused", "it holds the tag nbval-skip")},
        "stuck": {"03.1": Verdict("timed_out", "the answer ran longer than 60 s", seconds=60.0)},
        "torn": dict.fromkeys(("03.1", "03.2", "03.3"), Verdict("unreadable", "broken JSON")),
    }
    notebooks = {student: make_submission() for student in said if student != "torn"}
    runs = figures(graded_class(assignment, said, notebooks)).odd_runs
    assert [(run.student, run.why) for run in runs] == [
        ("sly", "refused"),
        ("dead", "kernel ended"),
        ("stuck", "timed out"),
        ("loud", "output cut"),
        ("slow", "slow"),
        ("torn", "not readable"),
    ]


# Answers alike

OWN = """\
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, 2 * width)
        self.second = nn.Linear(2 * width, 1)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        return self.second(hidden).squeeze(-1)
"""
OTHER = """\
def build(width):
    layers = []
    for size in (width, 2 * width):
        layers.append(nn.Linear(size, 2 * size))
        layers.append(nn.Tanh())
    return nn.Sequential(*layers, nn.Flatten(0))
"""
DISGUISED = {
    "renamed": OWN.replace("hidden", "h").replace("width", "w").replace("Net", "Model"),
    "commented": OWN.replace("\n", "  # my own idea\n"),
    "spaced": OWN.replace("    ", "  ").replace("(", "( ").replace("\n", "\n\n"),
    "docstring": OWN.replace(":\n", ':\n        """A net."""\n', 1),
    "text": OWN,
}


def who(answers, stub="", solution=""):
    found = alike({"03.1": answers}, {"03.1": stub}, {"03.1": solution})
    return [(one.students, one.exercises[0][1]) for one in found]


@pytest.mark.parametrize("how", DISGUISED)
def test_a_disguise_hides_no_copy(how):
    assert who({"ada": OWN, "bob": DISGUISED[how], "eve": OTHER}) == [(("ada", "bob"), 1.0)]


def test_a_change_of_a_few_words_leaves_a_high_share():
    changed = OWN.replace("relu", "tanh").replace("2 * width, 1", "2 * width, 1, bias=False")
    ((pair, share),) = who({"ada": OWN, "bob": changed})
    assert pair == ("ada", "bob")
    assert similar.ALIKE <= share < 1


def test_right_answers_stubs_and_short_answers_are_no_hint():
    assert who({"ada": OWN, "bob": OWN}, solution=OWN.replace("hidden", "z")) == []
    assert who({"ada": OWN, "bob": OWN}, stub=OWN) == []
    assert who({"ada": "x = 1\n" * 3, "bob": "x = 1\n" * 3}) == []
    assert who({"ada": OWN, "bob": OTHER}) == []


def test_what_many_wrote_is_one_group_and_no_pairs():
    students = [f"s{n}" for n in range(6)]
    assert who(dict.fromkeys(students, OWN)) == [(tuple(students), 1.0)]


def test_who_is_alike_in_more_exercises_comes_first():
    same = {"ada": OWN, "bob": OWN}
    found = alike({"03.1": {**same, "eve": OWN}, "03.2": same}, {}, {})
    assert found[0].students == ("ada", "bob")
    assert [one.students for one in found[1:]] == [("ada", "bob", "eve")]
    assert [len(one.exercises) for one in found] == [2, 1]


@pytest.mark.parametrize(
    "broken", ["def f(:\n  'x", "%%bash\nrm -rf /", '"""', "\x00\ud800", "é" * 9]
)
def test_broken_code_has_tokens_too(broken):
    assert isinstance(tokens(broken), tuple)


def test_the_page_says_that_it_is_a_hint_only(assignment):
    notebooks = {name: make_submission(e1=OWN) for name in ("ada", "bob")}
    page = text_of(class_page(graded_class(assignment, {"ada": {}, "bob": {}}, notebooks)))
    assert "A hint only" in page
    assert "1 ada , bob 03.1 100 %" in page


# The page


def test_only_our_own_script_may_run_and_it_is_named_by_its_hash(marked):
    soup = bs4.BeautifulSoup(class_page(marked), "html.parser")
    (script,) = soup.find_all("script")
    policy = soup.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]
    digest = b64encode(hashlib.sha256(script.string.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert "unsafe" not in policy
    assert list(soup.find_all(src=True)) == []


def test_names_and_reasons_are_text(assignment):
    said = {e: Verdict("refused", NAME, NAME, NAME, NAME, 99.0) for e in ("03.1", "03.2", "03.3")}
    graded = graded_class(assignment, {NAME: said}, {NAME: hostile_notebook()}, sandbox=False)
    graded.notes = [NAME]
    soup = bs4.BeautifulSoup(class_page(graded), "html.parser")
    assert len(soup.find_all("script")) == 1
    assert soup.find_all("img") == []
    assert [a for tag in soup.find_all() for a in tag.attrs if a.startswith("on")] == []
    assert "49" not in soup.get_text()
    assert "\u202e" not in soup.get_text()
    assert all(re.fullmatch(r"feedback/[\w.%-]+\.html", a) for a in _links(soup))


def _links(page):
    """Where links lead to, but for those within the page."""
    soup = page if isinstance(page, bs4.BeautifulSoup) else bs4.BeautifulSoup(page, "html.parser")
    found = [a["href"] for a in soup.find_all("a")]
    assert all(soup.find(id=link[1:]) for link in found if link.startswith("#"))
    return {link for link in found if not link.startswith("#")}


def test_links_lead_to_the_pages_that_are_there(marked, tmp_path):
    page = write_pages(marked, tmp_path)
    links = _links(page.read_text())
    assert len(links) == 42
    assert all((tmp_path / link).is_file() for link in links)


def test_without_feedback_the_page_stands_alone(marked, tmp_path):
    page = write_pages(marked, tmp_path, feedback=False)
    assert [path.name for path in tmp_path.iterdir()] == ["class.html"]
    assert not _links(page.read_text())


def test_pages_are_made_anew_where_they_would_show_something_else_only(marked, tmp_path):
    def written():
        """Which pages another run replaces: those that are no longer old."""
        for path in tmp_path.rglob("*.html"):
            os.utime(path, (1, 1))
        write_pages(marked, tmp_path)
        return {path.name for path in tmp_path.rglob("*.html") if path.stat().st_mtime > 1}

    page = write_pages(marked, tmp_path)
    theirs = next((tmp_path / "feedback").iterdir())
    assert written() == set()
    theirs.unlink()
    assert {theirs.name, page.name} <= written()
    page.write_text(page.read_text().replace("</body>", "x</body>"))
    assert page.name in written()
    marked.notes.append("something new")
    try:
        assert page.name in written()
    finally:
        marked.notes.pop()


def test_without_a_sandbox_the_page_says_so(marked, assignment):
    assert "without a sandbox" not in text_of(class_page(marked))
    graded = graded_class(assignment, {"ada": {}}, {}, sandbox=False)
    assert "Graded without a sandbox" in text_of(class_page(graded))


def test_titles_come_from_the_assignment(marked, assignment):
    titles = [sources.read(assignment, e.id).title for e in marked.exercises]
    assert all(title in text_of(class_page(marked)) for title in titles)


def test_what_waits_for_a_person_and_what_was_judged_twice_differently_is_said(assignment):
    manual = Verdict("needs_person", "marked by a person")
    sly = Verdict("needs_person", "cell 4 uses `exec`, …; look at it, and give the points by hand")
    said = {"ada": {"03.1": manual}, "bob": {"03.1": sly}}
    graded = graded_class(assignment, said, dict.fromkeys(said, make_submission()))
    graded.unstable = ["ada 03.2: passed, then failed"]
    page = text_of(class_page(graded))
    assert "2 answers to 03.1 wait for a person." in page
    assert "suspicious bob 03.1" in page
    assert "suspicious ada" not in page
    assert "Judged otherwise the second time ada 03.2: passed, then failed" in page


@pytest.mark.parametrize("wanted", [True, False])
def test_the_command_writes_the_pages(marked, tmp_path, monkeypatch, capsys, wanted):
    monkeypatch.setattr("pytorch_lab.grading.grade", lambda *args, **kwargs: marked)
    monkeypatch.setattr("signal.signal", lambda *args: None)
    command = ["grade", "sub", "--assignment", "x.ipynb", "--out", str(tmp_path)]
    with pytest.raises(SystemExit) as ended:
        main(command if wanted else [*command, "--no-feedback"])
    assert ended.value.code in (0, None)
    assert str(tmp_path / "class.html") in capsys.readouterr().out
    assert (tmp_path / "class.html").exists()
    assert (tmp_path / "feedback").exists() == wanted
