"""The dynamic graph: recorded as it ran, walked back, and explained.

>>> import torch
>>> from pytorch_lab import graph
>>> rec = graph.record(lambda x: (x * 2).relu().sum(), torch.ones(3, requires_grad=True))
>>> [op.name for op in rec.ops]
['mul', 'relu', 'sum']
"""

from pytorch_lab.graph.comparing.compare import GraphDiff, compare
from pytorch_lab.graph.existing import of
from pytorch_lab.graph.explaining.explanation import Explanation
from pytorch_lab.graph.explaining.why_error import why_error
from pytorch_lab.graph.explaining.why_gradient import why_gradient
from pytorch_lab.graph.explaining.why_none import why_none
from pytorch_lab.graph.graph_record import GraphRecord
from pytorch_lab.graph.recording.capture import record
from pytorch_lab.graph.walking.stepper import Stepper

__all__ = [
    "Explanation",
    "GraphDiff",
    "GraphRecord",
    "Stepper",
    "compare",
    "of",
    "record",
    "why_error",
    "why_gradient",
    "why_none",
]
