"""What a class handed in, as folders and platforms deliver it."""

import io
import json
import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytorch_lab.errors import CourseError, LabError, NotebookError, UsageError
from pytorch_lab.grading.intake.names import key
from pytorch_lab.grading.intake.taking_in import Submission, intake
from pytorch_lab.grading.notebooks import MAX_BYTES

ASSIGNMENT = Path("03_numbers.ipynb")
NOW = (2026, 3, 1, 12, 0, 0)


def notebook(mark=""):
    """A notebook whose only cell says which it is."""
    cells = [{"cell_type": "markdown", "source": mark}]
    return json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}).encode()


def packed(files, at=NOW):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, at), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def lay(folder: Path, files):
    """These files in a folder, or in a zip if it is to be one."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def marks(given: Path, assignment=ASSIGNMENT):
    """By student: what the notebook that counts says, or the status."""
    return {s.student: said(s) for s in intake(given, assignment)}


def said(submission: Submission):
    return submission.status or submission.read().cells[0].source


def one(given: Path, assignment=ASSIGNMENT):
    [submission] = intake(given, assignment)
    return submission


@pytest.fixture(params=["folder", "zip", "zip with a folder around"])
def arrive(request, tmp_path):
    """The same files as a folder, as a zip, and as a zip in which a folder is around all."""

    def make(files, at=NOW):
        if request.param == "folder":
            return lay(tmp_path / "in", files)
        around = "export/" if "around" in request.param else ""
        path = tmp_path / "in.zip"
        path.write_bytes(packed({around + name: what for name, what in files.items()}, at))
        return path

    return make


def test_a_notebook_for_each_student(arrive):
    given = arrive({"ada.ipynb": notebook("a"), "Zoë Ek.IPYNB": notebook("z"), "note.pdf": b"%"})
    assert marks(given) == {"Zoë Ek": "z", "ada": "a", "note.pdf": "unreadable"}


def test_a_class_in_a_class_is_not_taken_for_a_student(tmp_path):
    """Whoever gives the folder above gets no marks of one student under another's name."""
    files = {"in/ada.ipynb": notebook("a"), "in/bob.zip": packed({"b.ipynb": notebook("b")})}
    given = lay(tmp_path / "up", files | {"in/cy/03_numbers.ipynb": notebook("c")})
    [found] = intake(given, ASSIGNMENT)
    assert (found.student, found.status) == ("in", "refused")
    assert "give 'grade' the folder in, else name the right one 03_numbers" in found.reason
    alone = lay(
        tmp_path / "one", {"ada/work/03_numbers.ipynb": notebook("a"), "ada/x.ipynb": b"{}"}
    )
    assert marks(alone) == {"ada": "a"}


def test_the_assignment_itself_is_nobodys_submission(tmp_path):
    given = lay(tmp_path, {"03_numbers.ipynb": notebook("s"), "handed in/ada.ipynb": notebook("a")})
    with pytest.raises(UsageError, match=r"found the assignment 03_numbers.* as .*/handed in\."):
        intake(given, given / "03_numbers.ipynb")
    course = {"source/03_numbers/03_numbers.ipynb": notebook("s")}
    course |= {"submitted/ada/03_numbers/03_numbers.ipynb": notebook("a")}
    given = lay(tmp_path / "course", course)
    assert marks(given, given / "source/03_numbers/03_numbers.ipynb") == {"ada": "a"}


def test_nbgraders_layout_with_several_assignments(arrive):
    given = arrive(
        {
            "ada/03_numbers/03_numbers.ipynb": notebook("a3"),
            "ada/03_numbers/timestamp.txt": b"2026-03-01 15:58:23.948203 UTC",
            "ada/03_numbers/scratch.ipynb": notebook("no"),
            "ada/04_letters/04_letters.ipynb": notebook("no"),
            "bob/04_letters/04_letters.ipynb": notebook("no"),
            "cleo/03_numbers/my work.ipynb": notebook("c3"),
            "cleo/03_numbers/timestamp.txt": b"soon",
            "dan/03_numbers/.ipynb_checkpoints/03_numbers.ipynb": notebook("no"),
            "dan/03_numbers/data.csv": b"1",
            "eve.ipynb": notebook("by hand"),
        }
    )
    assert list(marks(given).values()) == ["a3", "missing", "c3", "unreadable", "by hand"]
    ada, bob, cleo, dan, _ = intake(given, ASSIGNMENT)
    assert ada.submitted_at == datetime(2026, 3, 1, 15, 58, 23, tzinfo=UTC)
    assert cleo.submitted_at is None
    assert bob.reason == "no notebook for 03_numbers; found 04_letters.ipynb"
    assert dan.reason == "data.csv is not a notebook"


def test_a_whole_course_of_nbgraders(tmp_path: Path):
    lay(
        tmp_path,
        {
            "source/03_numbers/03_numbers.ipynb": notebook("no"),
            "gradebook.db": b"",
            "submitted/ada/03_numbers/03_numbers.ipynb": notebook("a"),
        },
    )
    assert marks(tmp_path) == {"ada": "a"}


CANVAS = {
    "lovelaceada_1042_88123_03_numbers-2.ipynb": notebook("ada"),
    "turingalan_LATE_1043_88200_03_numbers.ipynb": notebook("alan"),
    "turingalan_LATE_1043_88201_my notes.ipynb": notebook("no"),
    "smith_j_1044_88300_03_numbers.ipynb": notebook("old"),
    "smith_j_1044_88301_03_numbers-1.ipynb": notebook("new"),
    "smith_j_1045_88302_03_numbers.ipynb": notebook("other"),
    "李小龙_1046_88303_作业.ipynb": notebook("li"),
    "roegrace_1047_text.html": b"<p>hello</p>",
    "anon_x7Kp2_88400_03_numbers.ipynb": notebook("nobody"),
    "LATE_anon_y8Lq3_88401_03_numbers.ipynb": notebook("late"),
    "youngkim_1048_88402_two.ipynb": notebook("no"),
    "youngkim_1048_88403_three.ipynb": notebook("nor this"),
    "packer_1049_88404_work.zip": packed({"03_numbers.ipynb": notebook("packed"), "x.png": b""}),
}


def test_canvas(arrive):
    given = arrive(CANVAS)
    assert marks(given) == {
        "anonymous x7Kp2": "nobody",
        "anonymous y8Lq3": "late",
        "lovelaceada": "ada",
        "packer": "packed",
        "roegrace": "unreadable",
        "smith_j (1044)": "new",
        "smith_j (1045)": "other",
        "turingalan": "alan",
        "youngkim": "refused",
        "李小龙": "li",
    }
    found = {s.student: s for s in intake(given, ASSIGNMENT)}
    assert [found[s].lms_id for s in ("lovelaceada", "smith_j (1044)", "anonymous x7Kp2")] == [
        "1042",
        "1044",
        "anon_x7Kp2",
    ]
    late = {student for student, submission in found.items() if submission.late}
    assert late == {"turingalan", "anonymous y8Lq3"}
    assert found["lovelaceada"].late is False
    assert {s.submitted_at for s in found.values()} == {None}  # a download's time is not theirs
    assert found["smith_j (1044)"].notes == (
        "2 files: 03_numbers-1.ipynb counts (uploaded last), not 03_numbers.ipynb",
        "2 students are called smith_j",
    )
    assert found["packer"].notes == ("taken out of work.zip",)
    assert found["roegrace"].reason == "roegrace_1047_text.html is not a notebook"
    assert found["youngkim"].reason == "2 notebooks could be meant: two.ipynb, three.ipynb"


def test_moodle(arrive):
    given = arrive(
        {
            "Ada Lovelace_7_assignsubmission_file/03_numbers.ipynb": notebook("ada"),
            "Ada Lovelace_7_assignsubmission_onlinetext/onlinetext.html": b"hello",
            "Alan Turing_8_assignsubmission_file_/sub/folder/work.ipynb": notebook("alan"),
            "Grace Hopper_9_assignsubmission_file_03_numbers.ipynb": notebook("grace"),
            "Ada Lovelace_10_assignsubmission_file/03_numbers.ipynb": notebook("other"),
            "Participant_11_assignsubmission_file/w.zip": packed({"a/b.ipynb": notebook("zip")}),
            "Group A_assignsubmission_file/03_numbers.ipynb": notebook("group"),
            "Kim Young_12_assignsubmission_onlinetext/onlinetext.html": b"hello",
        }
    )
    assert marks(given) == {
        "Ada Lovelace (10)": "other",
        "Ada Lovelace (7)": "ada",
        "Alan Turing": "alan",
        "Grace Hopper": "grace",
        "Group A": "group",
        "Kim Young": "unreadable",
        "Participant": "zip",
    }
    assert {s.student: s.lms_id for s in intake(given, ASSIGNMENT)}["Alan Turing"] == "8"


GRADESCOPE = """\
submission_1:
  :submitters:
  - :name: Ada Lovelace
    :sid: '100'
    :email: ada@example.org
  :created_at: 2026-03-01 21:03:57.297916000 Z
  :score: 10.0
submission_2:
  :submitters:
  - {":name": Alan Turing, ":sid": '200'}
  - {":name": Grace Hopper, ":email": grace@example.org}
old_form.ipynb:
  :submitters:
  - :name: ../../Kim
    :sid: '300'
  :original_filename: 03_numbers.ipynb
"""


def test_gradescope(arrive):
    given = arrive(
        {
            "submission_metadata.yml": GRADESCOPE.encode(),
            "submission_1/03_numbers.ipynb": notebook("ada"),
            "submission_2/work.ipynb": notebook("pair"),
            "old_form.ipynb": notebook("kim"),
            "submission_4/03_numbers.ipynb": notebook("nobody knows"),
        }
    )
    found = {s.student: (said(s), s.lms_id) for s in intake(given, ASSIGNMENT)}
    assert found == {
        ".._.._Kim": ("kim", "300"),
        "Ada Lovelace": ("ada", "100"),
        "Alan Turing": ("pair", "200"),
        "Grace Hopper": ("pair", "grace@example.org"),
        "submission_4": ("nobody knows", ""),
    }
    [ada] = [s for s in intake(given, ASSIGNMENT) if s.student == "Ada Lovelace"]
    assert ada.submitted_at is not None
    assert ada.submitted_at.isoformat()[:19] == "2026-03-01T21:03:57"


@pytest.mark.parametrize(
    "text", ["", "[", "a: !!python/object:os.system {}", "a: 2026-99-99", "&a [*a]"]
)
def test_a_file_that_only_has_the_name_of_gradescopes(tmp_path: Path, text):
    lay(tmp_path, {"submission_metadata.yml": text.encode(), "ada.ipynb": notebook("a")})
    assert marks(tmp_path) == {"ada": "a", "submission_metadata.yml": "unreadable"}


def test_gradescopes_file_may_hold_lists_that_hold_each_other(tmp_path: Path):
    laughs = "".join(f"- &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 40))
    said = f"laughs:\n- &l0 [x]\n{laughs}submission_1: {{':submitters': [{{':name': *l39}}]}}\n"
    lay(
        tmp_path,
        {"submission_metadata.yml": said.encode(), "submission_1/work.ipynb": notebook("a")},
    )
    assert marks(tmp_path) == {"(no name)": "a"}


def test_several_zips_of_one_class_in_a_folder(tmp_path: Path):
    first = {
        "ada_1_10_03_numbers.ipynb": notebook("ada 1"),
        "bob_2_11_03_numbers.ipynb": notebook("bob"),
    }
    second = {
        "ada_1_15_03_numbers-1.ipynb": notebook("ada 2"),
        "cleo_3_16_x.ipynb": notebook("cleo"),
    }
    lay(tmp_path, {"a.zip": packed(second), "b.zip": packed(first), "c.zip": b"PK"})
    assert marks(tmp_path) == {"ada": "ada 2", "bob": "bob", "c": "unreadable", "cleo": "cleo"}


def test_moodles_later_download_counts(tmp_path: Path):
    name = "Ada_7_assignsubmission_file/03_numbers.ipynb"
    other = {"Bob_8_assignsubmission_file/03_numbers.ipynb": notebook("bob")}
    older = packed({name: notebook("old"), **other}, at=(2026, 3, 1, 12, 0, 0))
    newer = packed({name: notebook("new"), **other}, at=(2026, 3, 2, 12, 0, 0))
    lay(tmp_path, {"a.zip": newer, "b.zip": older})
    ada, bob = intake(tmp_path, ASSIGNMENT)
    assert (said(ada), said(bob)) == ("new", "bob")
    assert ada.notes == (
        "2 files: 03_numbers.ipynb counts (downloaded last), not 03_numbers.ipynb",
    )
    assert bob.notes == ("2 files with the same content",)


def test_no_student_packs_a_zip_that_speaks_for_others(tmp_path: Path):
    forged = packed({"ada_1_99999_03_numbers.ipynb": notebook("worse"), "eve_2_1_x.ipynb": b""})
    honest = {"ada_1_10_x.ipynb": notebook("ada"), "bob_3_11_x.ipynb": notebook("bob")}
    lay(tmp_path, {**honest, "eve.zip": forged})
    assert marks(tmp_path) == {"ada": "ada", "bob": "bob", "eve": "refused"}
    lay(tmp_path / "zips", {"ada.zip": packed({"w.ipynb": notebook("ada")}), "eve.zip": forged})
    assert marks(tmp_path / "zips") == {"ada": "ada", "eve": "refused"}


def test_a_student_may_hand_in_a_zip_but_no_zip_in_it(tmp_path: Path):
    inner = packed({"03_numbers.ipynb": notebook("deep")})
    lay(
        tmp_path,
        {
            "ada.zip": packed({"project/03_numbers.ipynb": notebook("a"), "project/x.csv": b""}),
            "bob.zip": packed({"again.zip": inner}),
            "cleo.zip": b"PK but no zip",
            "dan/03_numbers/work.zip": packed({"03_numbers.ipynb": notebook("d")}),
            "eve.zip": packed({"../../03_numbers.ipynb": notebook("e")}),
            "fay.zip": packed({"03_numbers.ipynb": b"0" * 20_000_000}),
            "gus.zip": packed({"03_numbers.ipynb": notebook("g"), "../x.py": b""}),
        },
    )
    assert marks(tmp_path) == {
        "ada": "a",
        "bob": "unreadable",
        "cleo": "unreadable",
        "dan": "d",
        "eve": "refused",
        "fay": "refused",
        "gus": "g",
    }
    reasons = {s.student: s.reason for s in intake(tmp_path, ASSIGNMENT) if s.status}
    assert reasons["bob"] == "again.zip is not a notebook"
    assert reasons["cleo"] == "cleo.zip is not a zip that can be read: File is not a zip file"
    assert "leads out of the zip" in reasons["eve"]
    assert "times its size" in reasons["fay"]


def test_nothing_is_written(tmp_path: Path, monkeypatch):
    lay(
        tmp_path / "in",
        {"ada.zip": packed({"../../../03_numbers.ipynb": b"", "a.ipynb": notebook()})},
    )
    (tmp_path / "in.zip").write_bytes(packed(CANVAS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = sorted(tmp_path.rglob("*"))
    for place in ("in", "in.zip"):
        for submission in intake(tmp_path / place, ASSIGNMENT):
            if not submission.status:
                submission.read()
    assert sorted(tmp_path.rglob("*")) == before


def test_traps_in_the_folder_are_rows_with_a_reason(tmp_path: Path):
    lay(tmp_path, {"good.ipynb": notebook("good"), "old.ipynb": b'{"nbformat": 5}'})
    (tmp_path / "link.ipynb").symlink_to("/etc/hostname")
    (tmp_path / "ada").symlink_to("/etc")
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / "03_numbers.ipynb").symlink_to("/etc/hostname")
    os.mkfifo(tmp_path / "pipe.ipynb")
    with (tmp_path / "huge.ipynb").open("wb") as huge:
        huge.truncate(200_000_000)
    found = {s.student: s for s in intake(tmp_path, ASSIGNMENT)}
    told = {student: s.reason for student, s in found.items() if s.status == "refused"}
    assert told == {
        "ada": "ada is a link, not a file",
        "bob": "03_numbers.ipynb is a link, not a file",
        "link": "link.ipynb is a link, not a file",
        "pipe": "pipe.ipynb is a device or a pipe, not a file",
    }
    for student, says in (("huge", "expected up to 50 MB, got 200 MB"), ("old", "got format 5")):
        with pytest.raises(NotebookError, match=says):
            found[student].read()
    assert said(found["good"]) == "good"


def test_names_that_are_one_are_not_two_rows(tmp_path: Path):
    lay(
        tmp_path,
        {
            "Ada.ipynb": notebook("1"),
            "ada.ipynb": notebook("2"),
            "Zo\u00eb.ipynb": notebook("same"),
            "Zoe\u0308.ipynb": notebook("same"),
            "x\u202ey.ipynb": notebook("x"),
            "\u200b.ipynb": notebook("nobody"),
            f"{'long' * 50}.ipynb": notebook("long"),
            f"{'long' * 51}.ipynb": notebook("longer"),
            "kim.ipynb": notebook("kim"),
            "kim-1.ipynb": notebook("kim 1"),
        },
    )
    assert marks(tmp_path) == {
        "(no name)": "nobody",
        "Ada": "refused",
        "Zoë": "same",
        "kim": "kim",
        "kim-1": "kim 1",
        "xy": "x",
        f"{'long' * 50}"[:79] + "…": "long",
        f"{'long' * 50}"[:76] + " (2)": "longer",
    }
    found = {s.student: s for s in intake(tmp_path, ASSIGNMENT)}
    assert found["Ada"].reason == "2 submissions carry this name, Ada.ipynb, ada.ipynb; keep one"
    assert found["Zoë"].notes == ("2 files with the same content",)
    assert found["xy"].notes == ("what cannot be shown of the name was left out",)
    assert found["kim-1"].notes == ("perhaps a second file of kim",)


def test_a_name_of_bytes_that_are_no_text(tmp_path: Path):
    (tmp_path / os.fsdecode(b"Zo\xeb.ipynb")).write_bytes(notebook("z"))
    submission = one(tmp_path)
    assert said(submission) == "z"
    submission.student.encode()


def test_the_folder_of_the_marks_may_lie_among_them(tmp_path: Path):
    lay(tmp_path, {"ada.ipynb": notebook("a"), "marks/grades.csv": b""})
    assert [s.student for s in intake(tmp_path, ASSIGNMENT, tmp_path / "marks")] == ["ada"]


def test_what_cannot_be_graded_at_all_is_one_sentence(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.zip").write_text("text")
    (tmp_path / "empty.zip").write_bytes(packed({}))
    os.mkfifo(tmp_path / "pipe")
    for name, says in (
        ("no", r"expected a folder or a zip of submissions at .*no, found nothing; check the name"),
        ("pipe", "found a device or a pipe; check the name"),
        ("empty", r"expected <student>\.ipynb, .* found nothing; give the folder that holds"),
        ("empty.zip", "found nothing; give the folder"),
        (
            "text.zip",
            r"but text\.zip is not a zip that can be read: .*; give the folder, or export",
        ),
    ):
        with pytest.raises(CourseError, match=says) as caught:
            intake(tmp_path / name, ASSIGNMENT)
        assert "\n" not in str(caught.value)


def test_a_zip_is_opened_once_however_large_the_class(tmp_path: Path, monkeypatch):
    files = {f"s{n}_{n}_{n}_03_numbers.ipynb": notebook(str(n)) for n in range(500)}
    (tmp_path / "in.zip").write_bytes(packed(files))
    opened = []
    real = zipfile.ZipFile
    monkeypatch.setattr(zipfile, "ZipFile", lambda given: opened.append(given) or real(given))
    found = intake(tmp_path / "in.zip", ASSIGNMENT)
    assert {said(one) for one in found} == {str(n) for n in range(500)}
    assert len(opened) == 1


NAMES = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["03_numbers.ipynb", "ada.ipynb", "ADA.ipynb", "ada_1_2_03_numbers.ipynb", "../x.ipynb",
         "ada_LATE_1_3_w.zip", "A B_1_assignsubmission_file", "ada", "submission_metadata.yml",
         "03_numbers", "timestamp.txt", "", "/", "C:\\x.ipynb", "a\0.ipynb", "submission_1"]
    ),
)  # fmt: skip
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENT = st.one_of(
    st.binary(max_size=30),
    st.sampled_from(
        [notebook("x"), GRADESCOPE.encode(), b'{"nbformat": 3}', b"\xff\xfe{", b"[" * 5000]
    ),
)


@st.composite
def zips(draw, inner):
    """A zip of anything, in which a few bytes may be anything."""
    files = draw(st.lists(st.tuples(PATHS, inner), max_size=5))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", draw(st.sampled_from([0, 8]))) as archive:
        for name, content in files:
            info = zipfile.ZipInfo(name.encode("utf-8", "replace").decode() or "x")
            info.external_attr = draw(st.sampled_from([0, 0o120777 << 16, 0o010644 << 16, 16]))
            archive.writestr(info, content)
    made = bytearray(stream.getvalue())
    for at, byte in draw(
        st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=2)
    ):
        made[at % len(made)] = byte
    return bytes(made)


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(PATHS, st.one_of(CONTENT, zips(st.one_of(CONTENT, zips(CONTENT)))), max_size=4)
)
def test_whatever_arrives_is_a_row_or_one_sentence(tmp_path_factory, files):
    folder = tmp_path_factory.mktemp("in")
    for name, content in files.items():
        path = Path(os.path.normpath(f"{folder}/" + name.replace("\0", "").replace("..", "")))
        if path.is_relative_to(folder) and path != folder and len(os.fsencode(path.name)) < 200:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            except OSError:
                continue
    messages = []
    for place in (folder, *folder.glob("*")):
        try:
            found = intake(place, ASSIGNMENT)
        except LabError as error:
            messages.append(str(error))
            continue
        assert len({key(s.student) for s in found}) == len(found)
        for submission in found:
            submission.student.encode()
            assert submission.student.isprintable()
            assert bool(submission.status) == bool(submission.reason)
            messages += [submission.reason, *submission.notes]
            try:
                assert len(json.dumps(submission.read())) < MAX_BYTES
            except NotebookError as error:
                messages.append(str(error))
    assert max(map(len, messages), default=0) < 1000
