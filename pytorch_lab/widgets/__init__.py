"""The pictures: `show(x)` for records and live objects, and the pieces that lessons are made of."""

from pytorch_lab.widgets.card import card
from pytorch_lab.widgets.clinic import clinic
from pytorch_lab.widgets.derivatives import derivatives
from pytorch_lab.widgets.order import order
from pytorch_lab.widgets.predict import predict
from pytorch_lab.widgets.recall import recall
from pytorch_lab.widgets.show import show
from pytorch_lab.widgets.vjp import vjp

__all__ = ["card", "clinic", "derivatives", "order", "predict", "recall", "show", "vjp"]
