"""What runs on this machine, read from /proc; and a way to wait for an end that must come."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path


def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for a condition that must come; the deadline only ends a test that fails."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def _stat(process: int | str) -> list[str]:
    """State, parent, ... of a process; nothing if there is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


def descendants(process: int) -> list[int]:
    """All processes below one."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and _stat(folder.name)[1:2] == [str(process)]:
            found += [int(folder.name), *descendants(int(folder.name))]
    return found


def gone(processes: Iterable[int]) -> bool:
    """Whether none of them runs any more."""
    return all(_stat(process)[:1] in ([], ["Z"]) for process in processes)


def with_argument(word: str) -> list[int]:
    """Processes with `word` among their arguments."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                arguments = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if word.encode() in arguments:
                found.append(int(folder.name))
    return found
