"""`pytorch-lab doctor` on machines that are broken in the usual ways."""

import json
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from pytorch_lab import cli, course, doctor
from pytorch_lab.errors import CourseError

REINSTALL = "python -m pip install --force-reinstall --no-deps"


def found(finder):
    """What one finder says, by name and state."""
    return [(each.name, each.state, each.found) for each in doctor._ask(finder)]


@pytest.fixture
def without(monkeypatch):
    """`without("nbval")`: as if a package were not installed."""

    def remove(*names):
        real = metadata.version

        def version(name):
            if name in names:
                raise metadata.PackageNotFoundError(name)
            return real(name)

        monkeypatch.setattr(doctor.metadata, "version", version)

    return remove


@pytest.fixture
def versions(monkeypatch):
    """`versions(torch="2.1")`: as if another version were installed."""

    def pretend(**changed):
        real = metadata.version
        monkeypatch.setattr(
            doctor.metadata, "version", lambda name: changed.get(name) or real(name)
        )

    return pretend


@pytest.mark.parametrize(
    ("why", "state", "says"),
    [
        ("", "fine", ""),
        ("expected bubblewrap, found no 'bwrap'", "absent", "Expected bubblewrap, "),
    ],
)
def test_whether_students_code_can_be_shut_in(monkeypatch, why, state, says):
    monkeypatch.setattr("pytorch_lab.warm.sandbox.why_not", lambda: why)
    (finding,) = doctor._ask(doctor._sandbox)
    assert (finding.state, finding.advice[: len(says)]) == (state, says)
    assert doctor._sandbox in doctor.FINDERS


# ---------------------------------------------------------------------------------- the report


def test_the_course_can_run_where_its_tests_run():
    report = doctor.examine()
    assert [finding for finding in report.findings if finding.state == "wrong"] == []
    assert report.can_run
    assert str(report).endswith("\n\nThe course can run here.")


def test_every_package_is_named_with_its_version():
    report = str(doctor.examine())
    for name in ("torch", "numpy", "ipywidgets", "anywidget", "jupyterlab", "ipykernel", "nbval"):
        assert f"\n✓ {name:12} {metadata.version(name)}\n" in report


def test_the_report_fits_a_terminal_and_says_what_to_do():
    report = doctor.Report(
        (
            doctor.Finding("Python", "fine", "3.12.1"),
            doctor.Finding("GPU", "absent", "none"),
            doctor.Finding("widgets", "wrong", "word " * 20, "advice " * 20),
        )
    )
    text = str(report)
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith("✓ Python       3.12.1\n– GPU          none\n✗ widgets      word word")
    assert "\n               → advice advice" in text
    assert text.endswith("\n\nThe course can't run here yet: see the 1 marked ✗.")


def test_a_finder_that_crashes_is_a_line_and_the_others_still_speak(monkeypatch):
    def _broken_finder():
        raise RuntimeError("no such bus")
        yield

    monkeypatch.setattr(doctor, "FINDERS", [_broken_finder, doctor._python])
    report = doctor.examine()
    assert [each.name for each in report.findings] == ["broken finder", "Python"]
    assert report.findings[0].found == "looking raised RuntimeError: no such bus"
    assert not report.can_run


@pytest.mark.parametrize(("state", "code"), [("fine", 0), ("absent", 0), ("wrong", 1)])
def test_the_exit_code_says_whether_the_course_can_run(state, code, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "FINDERS", [lambda: iter([doctor.Finding("x", state, "y")])])
    with pytest.raises(SystemExit) as end:
        cli.main(["doctor", "--json"])
    assert (end.value.code or 0) == code
    assert json.loads(capsys.readouterr().out) == {
        "can_run": code == 0,
        "findings": [{"name": "x", "state": state, "found": "y", "advice": ""}],
    }


# -------------------------------------------------------------------------------------- versions


def test_an_old_python(monkeypatch):
    monkeypatch.setattr(doctor.sys, "version_info", (3, 10, 4))
    (finding,) = doctor._python()
    assert finding.state == "wrong"
    assert finding.advice == "The course needs Python 3.11 or newer."


def test_torch_is_missing(without, monkeypatch):
    without("torch")
    monkeypatch.setitem(sys.modules, "torch", None)
    torch, *_ = doctor._packages()
    assert (torch.state, torch.found) == ("wrong", "not installed")
    assert torch.advice == 'python -m pip install "pytorch-lab[lab]"'
    assert found(doctor._gpu) == []
    assert found(doctor._threads) == []


def test_only_those_who_grade_need_nbval(without):
    without("nbval")
    finding = list(doctor._packages())[-1]
    assert (finding.name, finding.state) == ("nbval", "absent")
    assert finding.advice == 'To grade: python -m pip install "pytorch-lab[grade]"'


@pytest.mark.parametrize(
    ("version", "state"),
    [("2.8.1", "wrong"), ("2.9.0", "fine"), ("2.13.0+cpu", "fine"), ("2.10.0a1+cu130", "fine")],
)
def test_the_oldest_torch_is_the_one_in_our_metadata(versions, version, state):
    versions(torch=version)
    torch, *_ = doctor._packages()
    assert torch.state == state
    if state == "wrong":
        assert torch.found == "2.8.1, but 2.9 or newer is needed"


# ------------------------------------------------------------------------------------------- GPU


def fake_torch(*, devices=(), arches=(), mps=False):
    return SimpleNamespace(
        cuda=SimpleNamespace(
            is_available=lambda: bool(devices),
            device_count=lambda: len(devices),
            get_device_properties=lambda index: devices[index],
            get_arch_list=lambda: list(arches),
        ),
        backends=SimpleNamespace(mps=SimpleNamespace(is_available=lambda: mps)),
    )


T4 = SimpleNamespace(name="Tesla T4", major=7, minor=5, total_memory=15 * 2**30)


@pytest.mark.parametrize(
    ("torch", "state", "says"),
    [
        (fake_torch(), "absent", "none that torch can use; every lesson runs on the CPU"),
        (fake_torch(mps=True), "fine", "Apple's, as device 'mps'"),
        (
            fake_torch(devices=[T4], arches=["sm_75", "sm_90a"]),
            "fine",
            "Tesla T4, capability 7.5, 15 GiB, as device 'cuda:0'",
        ),
    ],
)
def test_the_gpu_and_what_it_can_do(torch, state, says, monkeypatch):
    monkeypatch.setattr(doctor, "_torch", lambda: torch)
    assert found(doctor._gpu) == [("GPU", state, says)]


def test_a_gpu_that_this_torch_was_not_built_for(monkeypatch):
    torch = fake_torch(devices=[T4], arches=["sm_80", "sm_90", "compute_120"])
    monkeypatch.setattr(doctor, "_torch", lambda: torch)
    (finding,) = doctor._gpu()
    assert finding.state == "absent"
    assert finding.advice.startswith("This torch has code for sm_80, sm_90, compute_120 only")


@pytest.mark.parametrize(
    ("arch", "capability", "runs"),
    [
        ("sm_75", (7, 5), True),
        ("sm_70", (7, 5), True),  # same major version, older minor
        ("sm_80", (7, 5), False),
        ("sm_86", (8, 0), False),
        ("sm_80", (9, 0), False),  # machine code of an older major version
        ("compute_80", (9, 0), True),  # the intermediate form is compiled on the spot
        ("compute_120", (9, 0), False),
        ("sm_90a", (9, 0), True),
        ("sm_120", (12, 0), True),
    ],
)
def test_which_code_runs_on_which_device(arch, capability, runs):
    assert doctor._runs_on(arch, *capability) == runs


# --------------------------------------------------------------------- widgets, kernel and server


@pytest.fixture
def extensions(tmp_path, monkeypatch):
    """`extensions(anywidget="0.9.0")`: folders of extensions that come before the real ones."""
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))

    def put(**served):
        for name, version in served.items():
            folder = tmp_path / "labextensions" / name
            folder.mkdir(parents=True)
            (folder / "package.json").write_text(json.dumps({"version": version}))
        return tmp_path / "labextensions"

    return put


def test_both_halves_of_a_widget_are_there():
    assert found(doctor._widgets) == [
        ("widgets", "fine", "anywidget: JupyterLab serves the extension it needs"),
        ("widgets", "fine", "jupyterlab-widgets: JupyterLab serves the extension it needs"),
    ]


def test_an_older_extension_hides_the_one_that_is_needed(extensions):
    folder = extensions(anywidget="0.9.0")
    finding = next(iter(doctor._widgets()))
    installed = metadata.version("anywidget")
    assert finding.state == "wrong"
    assert finding.found == f"anywidget: JupyterLab serves 0.9.0, this Python needs {installed}"
    assert finding.advice == f"Remove the older one: {folder / 'anywidget'}"


def test_the_server_has_no_extension(monkeypatch, tmp_path):
    monkeypatch.setattr("jupyter_core.paths.jupyter_path", lambda *parts: [str(tmp_path)])
    assert [each.found for each in doctor._widgets()] == [
        "anywidget: this JupyterLab has no extension anywidget",
        "jupyterlab-widgets: this JupyterLab has no extension @jupyter-widgets/jupyterlab-manager",
    ]
    assert [each.advice for each in doctor._widgets()] == [
        f"{REINSTALL} anywidget, then restart",
        f"{REINSTALL} jupyterlab-widgets, then restart",
    ]


def test_the_kernel_has_no_python_half(monkeypatch):
    monkeypatch.setattr(doctor, "_brought", lambda package, extension: None)
    assert {each.found for each in doctor._widgets()} == {
        "anywidget: this Python has none, so widgets show as text",
        "jupyterlab-widgets: this Python has none, so widgets show as text",
    }


def kernel(tmp_path, monkeypatch, program):
    """As if the kernel named python3 started this program."""
    folder = tmp_path / "kernels" / "python3"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text(
        json.dumps(
            {"argv": [program, "-m", "ipykernel"], "display_name": "x", "language": "python"}
        )
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))


@pytest.mark.parametrize("program", ["python", "python3", "python3.12", sys.executable])
def test_the_kernel_is_this_python(tmp_path, monkeypatch, program):
    kernel(tmp_path, monkeypatch, program)
    assert found(doctor._kernel) == [("kernel", "fine", "notebooks run in this Python")]


def test_the_kernel_is_another_environments_python(tmp_path, monkeypatch):
    kernel(tmp_path, monkeypatch, "/opt/conda/bin/python")
    (finding,) = doctor._kernel()
    assert (finding.state, finding.found) == (
        "wrong",
        "notebooks would run in /opt/conda/bin/python",
    )
    assert "-m ipykernel install --sys-prefix" in finding.advice


def test_a_link_to_the_same_python_is_another_environment(tmp_path, monkeypatch):
    """Every venv's python is a link to one and the same program."""
    (tmp_path / "python").symlink_to(sys.executable)
    kernel(tmp_path, monkeypatch, str(tmp_path / "python"))
    (finding,) = doctor._kernel()
    assert finding.state == "wrong"


def test_jupyter_lab_on_the_path_is_another_environments(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor.shutil, "which", lambda name: str(tmp_path / "jupyter-lab"))
    (finding,) = doctor._other_jupyter()
    assert finding.state == "absent"
    assert finding.advice == "Start with `pytorch-lab open`, which takes the right one."


def test_jupyter_lab_on_the_path_is_ours(monkeypatch):
    ours = str(Path(sys.executable).parent / "jupyter-lab")
    monkeypatch.setattr(doctor.shutil, "which", lambda name: ours)
    assert found(doctor._other_jupyter) == []


# ---------------------------------------------------------------------------------- course, disk


def test_the_course_is_missing(monkeypatch):
    def missing():
        raise CourseError("expected notebooks, found none; install again.")

    monkeypatch.setattr(course, "root", missing)
    assert found(doctor._course) == [
        ("course", "wrong", "expected notebooks, found none; install again.")
    ]


@pytest.mark.parametrize(("free", "state"), [(400_000_000, "wrong"), (600_000_000, "fine")])
def test_room_on_the_disk(free, state, monkeypatch):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    assert found(doctor._disk) == [("disk", state, f"{free / 1e9:.1f} GB free here")]
