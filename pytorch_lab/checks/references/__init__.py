"""What the course's exercises ask for, written slowly: the visible checks compare answers with it.

It lies here and not in a check's cell, where a learner would read the answer before trying. Most
functions take what the learner was given and say what should have come out; lesson 05 has stand-ins
for a loader, a worker and a GPU instead. A file is called as its lesson; what lessons 01 to 03 need
is here as well, where their notebooks import it.
"""

from pytorch_lab.checks.references.autograd import learned, output_gradients
from pytorch_lab.checks.references.dynamic_graphs import settle, smoother, tree_net
from pytorch_lab.checks.references.modules import reader, tower

__all__ = ["learned", "output_gradients", "reader", "settle", "smoother", "tower", "tree_net"]
