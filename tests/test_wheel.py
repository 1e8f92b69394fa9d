"""The wheel carries the course: installed into an empty venv far from the checkout, it opens.

Torch and JupyterLab take minutes to install, so the empty venv borrows the packages of the one that
runs the tests: a `.pth` file puts that folder behind its own. A `.pth` found in a folder that was
itself added by one is not read, so the checkout, which the tests' venv has as an editable install,
stays out of reach; the first test of the installed package proves it.
"""

import json
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from pytorch_lab import course

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.heavy


def build(kind, source, out):
    """What hatchling makes of a source tree."""
    words = ["-m", "hatchling", "build", "--target", kind, "--directory", str(out)]
    subprocess.run([sys.executable, *words], cwd=source, check=True, capture_output=True)
    return next(out.iterdir())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from the unpacked sdist and from nothing else."""
    sdist = build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    return build("wheel", next(unpacked.iterdir()), tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The Python of a venv that has our wheel, and borrows the rest."""
    venv = tmp_path_factory.mktemp("elsewhere") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    python = venv / "bin/python"
    install = ["install", "--quiet", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", python, *install], check=True)
    inside = ask(python, "import sysconfig; print(sysconfig.get_path('purelib'))")
    Path(inside, "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def ask(python, code):
    ran = subprocess.run([python, "-c", code], cwd="/", capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def test_what_is_in_the_wheel(wheel, tmp_path):
    names = set(zipfile.ZipFile(wheel).namelist())
    solutions = [path.name for path in (ROOT / "exercises/solutions").glob("*.ipynb")]
    mutants = [path.name for path in (ROOT / "exercises/mutants").glob("*.py")]
    carried = {
        *course.files(),
        *(f"exercises/solutions/{name}" for name in solutions),
        *(f"exercises/mutants/{name}" for name in mutants),
    }
    assert {f"pytorch_lab/course_files/{name}" for name in carried} <= names

    package = ROOT / "pytorch_lab"
    ours = {
        path.relative_to(ROOT).as_posix()
        for path in package.rglob("*")
        if path.suffix in {".py", ".js", ".css", ".json"} or path.name == "py.typed"
    }
    assert ours <= names

    for unwanted in (
        "progress.json",
        "ipynb_checkpoint",
        "__pycache__",
        "tests/",
        "DS_Store",
    ):
        assert not [name for name in names if unwanted in name], unwanted
    assert {name.split("/")[0].split("-")[0] for name in names} == {"pytorch_lab"}
    # A wheel of the checkout is the same as one by way of the sdist.
    assert set(zipfile.ZipFile(build("wheel", ROOT, tmp_path)).namelist()) == names


def test_the_installed_package_knows_nothing_of_the_checkout(python):
    code = "import sys, pytorch_lab; print(pytorch_lab.__file__); print(*sys.path, sep='\\n')"
    file, *path = ask(python, code).splitlines()
    assert Path(file).is_relative_to(python.parent.parent)
    assert str(ROOT) not in path


def test_the_installed_course_opens(wheel, python, open_lab, tmp_path):
    share = Path(sys.prefix) / "share/jupyter"  # data files, which a .pth doesn't lend
    lab = open_lab(
        home=tmp_path,
        program=(str(python.with_name("pytorch-lab")),),
        environment={"JUPYTERLAB_DIR": str(share / "lab"), "JUPYTER_PATH": str(share)},
    )
    assert lab.get("/lab/tree/START_HERE.md")[0] == 200
    for name in course.files():
        carried = zipfile.ZipFile(wheel).read(f"pytorch_lab/course_files/{name}")
        assert (lab.folder / name).read_bytes() == carried
    assert not (lab.folder / "exercises/solutions").exists()
    themes = lab.ask("/lab/api/settings/@jupyterlab/apputils-extension:themes")
    assert themes["schema"]["properties"]["adaptive-theme"]["default"] is True
    assert lab.stop() == 0


def test_the_installed_package_makes_up_a_class(python, tmp_path):
    ran = subprocess.run(
        [python.with_name("pytorch-lab"), "sample-class", "class"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout == "class/handed_in\n"
    assert len(list((tmp_path / "class" / "handed_in").iterdir())) == 30


def test_the_installed_package_finds_its_solutions(python):
    code = "from pytorch_lab import course; print(course.solution_notebook('03.2'))"
    found = Path(ask(python, code))
    assert found.parts[-4:] == ("course_files", "exercises", "solutions", "03_modules.ipynb")
    assert json.loads(found.read_text())["nbformat"] == 4
