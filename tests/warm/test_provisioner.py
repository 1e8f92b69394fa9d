"""Any client that starts a kernel by name can have a warm one in the sandbox."""

import os
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

CELLS = (
    "import os, sys; print('torch' in sys.modules, os.getuid() != 0, os.listdir('/lab/run'))",
    "import torch; x = torch.tensor(2.0, requires_grad=True); (x * x).backward(); print(x.grad)",
)
SHOWN = ["True True []\n", "tensor(4.)\n"]


def notebook(*outputs):
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS]
    for cell, text in zip(cells, outputs, strict=False):
        cell.execution_count = 1
        cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)]
    return nbformat.v4.new_notebook(cells=cells)


@pytest.mark.heavy
def test_nbclient_by_name():
    made = notebook()
    NotebookClient(made, kernel_name="pytorch-lab-grader", timeout=120).execute()
    assert [cell.outputs[0].text for cell in made.cells] == SHOWN


@pytest.mark.heavy
@pytest.mark.parametrize(("second", "code"), [(SHOWN[1], 0), ("tensor(5.)\n", 1)])
def test_nbval_by_name(tmp_path, second, code):
    nbformat.write(notebook(SHOWN[0], second), tmp_path / "a.ipynb")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "--nbval", "-p", "no:cacheprovider"]
    command += ["--nbval-kernel-name", "pytorch-lab-grader", "-c", "pytest.ini", "a.ipynb"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout
    assert f"{2 - code} passed" in done.stdout


def test_started_as_a_plain_command_it_says_what_it_is():
    done = subprocess.run(
        [sys.executable, "-m", "pytorch_lab.warm"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert done.returncode == 1
    assert "through its provisioner 'pytorch-lab-warm'" in done.stderr
