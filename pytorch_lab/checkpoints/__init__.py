"""Checkpoints: what is in a file without running it, what would load, and what resuming needs.

>>> import torch
>>> from pytorch_lab import checkpoints
>>> saved = {"module.weight": torch.zeros(2, 3), "module.bias": torch.zeros(2)}
>>> checkpoints.inspect(saved, torch.nn.Linear(3, 2)).model.prefix
'module.'
"""

from pytorch_lab.checkpoints.inspecting import inspect
from pytorch_lab.checkpoints.record import (
    CheckpointTree,
    Entry,
    Finding,
    KeyMatch,
    ModelMatch,
    Moment,
    Needed,
    OptimizerMatch,
    Storage,
)
from pytorch_lab.checkpoints.resume import ResumeGap, Way, resume_gap

__all__ = [
    "CheckpointTree",
    "Entry",
    "Finding",
    "KeyMatch",
    "ModelMatch",
    "Moment",
    "Needed",
    "OptimizerMatch",
    "ResumeGap",
    "Storage",
    "Way",
    "inspect",
    "resume_gap",
]
