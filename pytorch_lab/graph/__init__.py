"""The dynamic graph: recorded as it ran, walked back, and explained.

>>> import torch
>>> from pytorch_lab import graph
>>> rec = graph.record(lambda x: (x * 2).relu().sum(), torch.ones(3, requires_grad=True))
>>> [op.name for op in rec.ops]
['mul', 'relu', 'sum']
"""

from pytorch_lab.graph.capture import record
from pytorch_lab.graph.recorded import GraphRecord

__all__ = ["GraphRecord", "record"]
