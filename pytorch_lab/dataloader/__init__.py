"""Who waits for whom in a DataLoader, and which random numbers its workers draw.

>>> import torch
>>> from pytorch_lab import dataloader
>>> loader = torch.utils.data.DataLoader(torch.arange(6.0), batch_size=2)
>>> seen = dataloader.time_loader(loader, torch.sum, batches=3, workers=())
>>> len(seen.batches)
3
"""

from pytorch_lab.dataloader.acting import as_worker
from pytorch_lab.dataloader.drawn import Draw, WorkerRandomness
from pytorch_lab.dataloader.randomness import worker_randomness
from pytorch_lab.dataloader.timeline import BatchTimes, LoaderTimeline, Remark, Trial, WorkerMemory
from pytorch_lab.dataloader.times import time_loader
from pytorch_lab.dataloader.troubles import explain, unsendable

__all__ = [
    "BatchTimes",
    "Draw",
    "LoaderTimeline",
    "Remark",
    "Trial",
    "WorkerMemory",
    "WorkerRandomness",
    "as_worker",
    "explain",
    "time_loader",
    "unsendable",
    "worker_randomness",
]
