"""What the README shows is what comes out: each example is run as the script that it is."""

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from pytorch_lab import course

TEXT = (course.root() / "README.md").read_text("utf-8")


class Example(NamedTuple):
    """A program of the README and what it prints, by the README."""

    code: str
    output: str

    @property
    def file(self) -> str:
        """The file that the output speaks of."""
        named = re.search(r"(\w+\.py):\d+", self.output)
        return named[1] if named else "example.py"


EXAMPLES = [
    Example(*found)
    for found in re.findall(r"```python\n(.+?)```\n\n```\n(.+?)```", TEXT, re.DOTALL)
]


def test_every_program_shows_what_it_prints():
    assert len(EXAMPLES) == TEXT.count("```python\n") >= 7


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_it_prints_what_the_readme_says(example: Example, tmp_path: Path):
    (tmp_path / example.file).write_text(example.code, "utf-8")
    done = subprocess.run(
        [sys.executable, example.file], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip() == example.output.rstrip(), done.stderr
    # A call to be copied stays on one line.
    prose = [line for line in done.stdout.splitlines() if not line.startswith("    ")]
    assert max(map(len, prose)) <= 80
