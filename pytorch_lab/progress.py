"""What a learner has done so far: one readable JSON file beside the notebooks.

    {
      "exercises": {"03.2": {"state": "passed", "tries": 3, "hints": 1}},
      "guesses":   {"03.p1": {"guess": "4", "right": false}}
    }

The file is `progress.json` in the kernel's folder, which is the notebook's; the environment
variable `PYTORCH_LAB_PROGRESS` names another one. A broken file is set aside, never overwritten.
"""

import json
import os
from pathlib import Path
from typing import Any

from pytorch_lab.errors import CourseError

SECTIONS = ("exercises", "guesses")


def path() -> Path:
    """The file that this kernel reads and writes."""
    return Path(os.environ.get("PYTORCH_LAB_PROGRESS") or Path.cwd() / "progress.json")


def read() -> dict[str, dict[str, Any]]:
    """All that is known, with every section present."""
    file = path()
    empty: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    try:
        found = json.loads(file.read_text("utf-8"))
        if not isinstance(found, dict):
            raise ValueError
    except FileNotFoundError:
        return empty
    except ValueError:
        file.replace(file.with_suffix(".broken.json"))
        return empty
    return empty | {k: v for k, v in found.items() if isinstance(v, dict)}


def remember(section: str, key: str, **facts: Any) -> None:
    """Merge `facts` into one entry, and replace the file in one step."""
    known = read()
    known[section][key] = known[section].get(key, {}) | facts
    file = path()
    scratch = file.with_suffix(".json.new")
    try:
        scratch.write_text(json.dumps(known, indent=2, ensure_ascii=False) + "\n", "utf-8")
        scratch.replace(file)
    except OSError as error:
        raise CourseError(
            f"expected to write your progress to {file}, but got {error.strerror!r}; "
            "make the folder writable, or set PYTORCH_LAB_PROGRESS to a file that is."
        ) from error
