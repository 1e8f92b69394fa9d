"""What the training rooms are measured on: scikit-learn's digits, and a network that reads them."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import TensorDataset


def digits() -> TensorDataset:
    """The pictures, (1797, 1, 8, 8), and what they show."""
    found = load_digits()
    pictures = torch.tensor(found.data, dtype=torch.float32).view(-1, 1, 8, 8) / 16
    return TensorDataset(pictures, torch.tensor(found.target))


def network() -> nn.Module:
    """A small convolutional network."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 64, 10),
    )  # fmt: skip
