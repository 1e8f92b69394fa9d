"""What can go wrong, as one family.

Every message of the package has one form: what was expected, what came, where, and what to do.

    LabError                    anything below; catch this one
    ├── UsageError              an argument of ours was wrong: unknown name, wrong type, wrong shape
    ├── CourseError             a file of the course is missing, broken or not writable
    ├── NotebookError           a notebook is not one, or lacks a cell it must have
    ├── ModelError              the model given to a collector raised; the model's own error is kept
    ├── LoaderError             a DataLoader given to a collector raised, or a worker of it ended
    └── CheckFailed             an exercise's check found the answer wrong

The command line prints any of them as one sentence and exits with 2.
"""


class LabError(Exception):
    """The root of every error that PyTorch Lab raises on purpose."""


class UsageError(LabError, ValueError):
    """An argument was wrong."""


class CourseError(LabError):
    """A file or folder of the course is missing, broken or not writable."""


class NotebookError(LabError):
    """A notebook could not be read, or lacks a cell that it must have."""


class ModelError(LabError):
    """A model raised while a collector ran it; `__cause__` is the model's own error."""


class LoaderError(LabError):
    """A DataLoader raised while a collector ran it, or a worker of it ended; in words."""


class CheckFailed(LabError):
    """A check of an exercise found the answer wrong; the message names the misconception."""
