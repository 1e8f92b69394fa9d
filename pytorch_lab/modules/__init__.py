"""What is registered, shared, frozen, in which mode — and what is invisible.

>>> import torch
>>> from pytorch_lab import modules
>>> net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
>>> modules.describe(net).n_parameters
15
"""

from pytorch_lab.modules.describe import describe
from pytorch_lab.modules.record import Invisible, ModuleInfo, ModuleTree, TensorInfo

__all__ = ["Invisible", "ModuleInfo", "ModuleTree", "TensorInfo", "describe"]
