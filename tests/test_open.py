"""`pytorch-lab open`: the course delivered without loss, and a JupyterLab with our settings."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from pytorch_lab import cli, course, launch, writing
from pytorch_lab.errors import CourseError

LESSON = "notebooks/03_modules.ipynb"
BESIDE = "notebooks/03_modules.new.ipynb"


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """A course to deliver whose files a test can change: `shelf.release(name=text)`."""
    root = tmp_path / "shelf"
    for name in (
        course.LANDING_PAGE,
        LESSON,
        "notebooks/.ipynb_checkpoints/03_modules-checkpoint.ipynb",
        "notebooks/progress.json",
        "exercises/03_modules.ipynb",
        "exercises/solutions/03_modules.ipynb",
        "exercises/mutants/03_modules.py",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"first {name}")
    monkeypatch.setattr(course, "root", lambda: root)
    return root


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "learner" / "course"


def texts(folder):
    """Every file of a learner's folder that is not hidden."""
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and course.OURS not in path.parts
    }


# ------------------------------------------------------------------------------------- delivery


def test_a_learner_gets_lessons_and_exercises_but_no_answers(shelf, folder):
    done = course.deliver(folder)
    assert sorted(texts(folder)) == [
        course.LANDING_PAGE,
        "exercises/03_modules.ipynb",
        LESSON,
    ]
    assert sorted(done.written) == sorted(texts(folder))


def test_an_untouched_file_follows_the_course(shelf, folder):
    course.deliver(folder)
    (shelf / LESSON).write_text("second")
    done = course.deliver(folder)
    assert texts(folder)[LESSON] == "second"
    assert done == course.Delivery(written=[LESSON], kept=[], beside=[])


def test_the_learners_work_is_kept_and_the_newer_one_put_beside_it_once(shelf, folder):
    course.deliver(folder)
    (folder / LESSON).write_text("my work")
    assert course.deliver(folder) == course.Delivery([], [LESSON], [])
    assert BESIDE not in texts(folder)

    (shelf / LESSON).write_text("second")
    assert course.deliver(folder) == course.Delivery([], [LESSON], [BESIDE])
    assert texts(folder)[LESSON] == "my work"
    assert texts(folder)[BESIDE] == "second"

    (folder / BESIDE).unlink()  # read and thrown away: it does not come back
    assert course.deliver(folder) == course.Delivery([], [LESSON], [])
    assert BESIDE not in texts(folder)


def test_work_done_in_the_newer_one_is_kept_too(shelf, folder):
    course.deliver(folder)
    (folder / LESSON).write_text("my work")
    (shelf / LESSON).write_text("second")
    course.deliver(folder)
    (folder / BESIDE).write_text("my work in the second")
    (shelf / LESSON).write_text("third")
    course.deliver(folder)
    assert texts(folder)[LESSON] == "my work"
    assert texts(folder)[BESIDE] == "my work in the second"


def test_files_that_were_there_before_the_course_are_the_learners(shelf, folder):
    (folder / "notebooks").mkdir(parents=True)
    (folder / LESSON).write_text("mine, and of the same name")
    done = course.deliver(folder)
    assert texts(folder)[LESSON] == "mine, and of the same name"
    assert (done.kept, done.beside) == ([LESSON], [BESIDE])


@pytest.mark.parametrize("broken", ["", "{", "[]", "\xff"])
def test_without_a_readable_record_every_changed_file_is_the_learners(shelf, folder, broken):
    course.deliver(folder)
    (folder / course.OURS / "delivered.json").write_text(broken, "latin-1")
    (shelf / LESSON).write_text("second")
    course.deliver(folder)
    assert texts(folder)[LESSON] == f"first {LESSON}"
    assert texts(folder)[BESIDE] == "second"


def test_a_deleted_lesson_comes_back_fresh(shelf, folder):
    course.deliver(folder)
    (folder / LESSON).write_text("beyond repair")
    course.deliver(folder)
    (folder / LESSON).unlink()
    assert course.deliver(folder).written == [LESSON]
    assert texts(folder)[LESSON] == f"first {LESSON}"


def test_a_checkout_can_be_opened_as_it_is(shelf):
    before = texts(shelf)
    assert course.deliver(shelf) == course.Delivery([], [], [])
    assert texts(shelf) == before
    assert not (shelf / course.OURS).exists()


def test_a_write_that_breaks_off_leaves_the_old_file_and_no_scraps(shelf, folder, monkeypatch):
    course.deliver(folder)
    before = texts(folder)
    (shelf / LESSON).write_text("second")

    def full(scratch, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing.os, "replace", full)
    with pytest.raises(CourseError, match=r"expected to write the course to .* 'No space left"):
        course.deliver(folder)
    assert texts(folder) == before


# ------------------------------------------------------------------------------------ bad folders


def test_a_file_where_the_course_should_go(shelf, folder, capsys):
    folder.parent.mkdir()
    folder.write_text("a file")
    with pytest.raises(SystemExit) as end:
        cli.main(["open", str(folder)])
    said = capsys.readouterr()
    assert end.value.code == 2
    assert said.out == ""
    assert said.err == (
        f"pytorch-lab: expected to write the course to {folder}, got 'File exists' at {folder}; "
        "choose another folder: pytorch-lab open DIR.\n"
    )
    assert folder.read_text() == "a file"


def test_a_file_where_a_folder_of_the_course_should_go_stops_all_of_it(shelf, folder):
    folder.mkdir(parents=True)
    (folder / "notebooks").write_text("a file")
    with pytest.raises(CourseError, match=r"'File exists' at .*notebooks; choose another folder"):
        course.deliver(folder)
    assert texts(folder) == {"notebooks": "a file"}
    assert [path.name for path in folder.iterdir()] == ["notebooks"]  # no empty folder either


@pytest.mark.parametrize("dangling", [False, True])
def test_a_file_where_the_record_goes_stops_all_of_it(shelf, folder, dangling):
    folder.mkdir(parents=True)
    ours = folder / course.OURS
    if dangling:
        ours.symlink_to("nowhere")
    else:
        ours.write_text("a file")
    with pytest.raises(CourseError, match=r"'File exists' at .*\.pytorch-lab; choose another"):
        course.deliver(folder)
    assert list(folder.iterdir()) == [ours]


def test_a_folder_where_a_file_of_the_course_should_go_stops_all_of_it(shelf, folder):
    (folder / LESSON).mkdir(parents=True)
    with pytest.raises(CourseError, match=r"'Is a directory' at .*03_modules.ipynb"):
        course.deliver(folder)
    assert texts(folder) == {}


def test_an_unwritable_folder(shelf, folder, monkeypatch):
    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)  # root may write everywhere, so modes can't tell
    with pytest.raises(CourseError, match=r"got 'Permission denied' at .*; choose another folder"):
        course.deliver(folder)


def test_a_package_without_its_course(tmp_path, monkeypatch):
    monkeypatch.setattr(course, "_PACKAGE", tmp_path / "site-packages" / "pytorch_lab")
    with pytest.raises(
        CourseError, match=r"notebooks beside or inside .*; install pytorch-lab again"
    ):
        course.root()


# --------------------------------------------------------------------------------------- settings


def test_every_setting_of_ours_exists_in_jupyterlab():
    """An override of a name that JupyterLab doesn't know is silently of no use."""
    share = Path(sys.prefix) / "share/jupyter"
    overrides = json.loads(
        (launch.SETTINGS / "labconfig/default_setting_overrides.json").read_text()
    )
    for plugin, settings in overrides.items():
        extension, name = plugin.split(":")
        homes = (
            share / "lab/schemas" / extension / f"{name}.json",
            share / "labextensions" / extension / "schemas" / extension / f"{name}.json",
        )
        schema = json.loads(next(home for home in homes if home.exists()).read_text())
        assert settings.keys() <= schema["properties"].keys(), plugin


def test_the_learners_own_config_folder_comes_first():
    theirs = launch.config_path({"JUPYTER_CONFIG_PATH": "/theirs"})
    assert theirs.split(":") == ["/theirs", str(launch.SETTINGS)]


@pytest.mark.parametrize(
    ("browser", "environment", "opens"),
    [
        (True, {"DISPLAY": ":0"}, True),
        (True, {"WAYLAND_DISPLAY": "wayland-0"}, True),
        (True, {}, False),
        (False, {"DISPLAY": ":0"}, False),
    ],
)
def test_a_browser_opens_only_where_it_can_be_seen(browser, environment, opens, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(launch.sys, "platform", "linux")
    told = launch.arguments(Path("course"), browser=browser)
    assert ("--no-browser" not in told) == opens


def test_a_port_that_is_asked_for_is_not_swapped_for_another():
    told = launch.arguments(Path("course"), port=9123)
    assert "--ServerApp.port=9123" in told
    assert "--ServerApp.port_retries=0" in told


def test_jupyter_would_refuse_to_run_as_root_in_a_container(monkeypatch):
    monkeypatch.setattr(launch.os, "geteuid", lambda: 0, raising=False)
    assert "--allow-root" in launch.arguments(Path("course"))
    monkeypatch.setattr(launch.os, "geteuid", lambda: 1000)
    assert "--allow-root" not in launch.arguments(Path("course"))


def test_a_terminal_of_the_lab_knows_our_command(tmp_path, monkeypatch):
    """Nobody activates the environment in whose folder `pytorch-lab` lies."""
    monkeypatch.setattr(launch, "find", lambda: lambda arguments: None)
    monkeypatch.setattr(launch.signal, "signal", lambda *_: None)
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    launch.serve(tmp_path)
    assert shutil.which("pytorch-lab") == str(Path(sys.executable).parent / "pytorch-lab")


def test_without_jupyterlab_nothing_is_written(folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "jupyterlab.labapp", None)
    with pytest.raises(SystemExit) as end:
        cli.main(["open", str(folder)])
    assert end.value.code == 2
    assert "expected JupyterLab beside PyTorch Lab" in capsys.readouterr().err
    assert not folder.exists()


# ------------------------------------------------------------------------------ the real server


@pytest.fixture(scope="module")
def server(open_lab, tmp_path_factory):
    """Opened by somebody who has settings of their own."""
    home = tmp_path_factory.mktemp("home")
    theirs = home / ".jupyter/lab/user-settings/@jupyterlab/notebook-extension"
    theirs.mkdir(parents=True)
    (theirs / "tracker.jupyterlab-settings").write_text(
        '{"codeCellConfig": {"lineNumbers": false}}'
    )
    return open_lab(home=home)


def setting(server, plugin, name):
    """A default as the server merges it, and what the learner has set instead."""
    answer = server.ask(f"/lab/api/settings/{plugin}")
    return answer["schema"]["properties"][name]["default"], answer["settings"].get(name)


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("plugin", "name", "ours"),
    [
        ("@jupyterlab/apputils-extension:notification", "fetchNews", "false"),
        ("@jupyterlab/apputils-extension:notification", "checkForUpdates", False),
        ("@jupyterlab/apputils-extension:themes", "adaptive-theme", True),
        (
            "@jupyterlab/docmanager-extension:plugin",
            "defaultViewers",
            {"markdown": "Markdown Preview"},
        ),
    ],
)
def test_the_server_has_our_defaults(server, plugin, name, ours):
    assert setting(server, plugin, name) == (ours, None)


@pytest.mark.heavy
def test_what_the_learner_has_set_wins(server):
    default, theirs = setting(server, "@jupyterlab/notebook-extension:tracker", "codeCellConfig")
    assert default["lineNumbers"] is True
    assert theirs == {"lineNumbers": False}


@pytest.mark.heavy
def test_the_landing_page_opens(server):
    assert server.url.partition("?")[0].endswith("/lab/tree/START_HERE.md")
    assert server.get("/lab/tree/START_HERE.md")[0] == 200
    page = server.ask("/api/contents/START_HERE.md")
    assert page["content"].startswith("# PyTorch Lab")
    assert not server.ask("/api/status")["connections"]


@pytest.mark.heavy
def test_no_news_are_looked_up(server):
    _, page = server.get("/lab")
    config = page.partition('id="jupyter-config-data" type="application/json">')[2]
    config = json.loads(config.partition("</script>")[0])
    assert config["news"] == {"disabled": True}


@pytest.mark.heavy
def test_ctrl_c_ends_it_cleanly_and_nothing_else_of_theirs_was_touched(open_lab, tmp_path):
    lab = open_lab(home=tmp_path)
    lab.get("/lab/tree/START_HERE.md")
    lab.ask("/lab/api/workspaces")
    runtime = tmp_path / ".local/share/jupyter/runtime"
    assert list(runtime.glob("jpserver-*.json"))
    assert lab.stop() == 0
    assert not list(runtime.glob("jpserver-*.json"))  # it had the time to tidy up
    assert not [path for path in (tmp_path / ".jupyter").rglob("*") if path.is_file()]
