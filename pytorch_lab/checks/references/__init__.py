"""What the course's exercises ask for, written slowly: the visible checks compare answers with it.

It lies here and not in a check's cell, where a learner would read the answer before trying. Each
function takes the learner's module, or its tensors, and says what should have come out. There is a
file for each lesson, of the lesson's name.
"""

from pytorch_lab.checks.references.autograd import learned, output_gradients
from pytorch_lab.checks.references.dynamic_graphs import settle, smoother, tree_net
from pytorch_lab.checks.references.modules import reader, tower

__all__ = ["learned", "output_gradients", "reader", "settle", "smoother", "tower", "tree_net"]
