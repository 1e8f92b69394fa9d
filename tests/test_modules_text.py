"""The text of a record: golden files, and what must be true of any text."""

import re
from collections.abc import Callable

import pytest
import torch
from torch import nn

from pytorch_lab.modules import ModuleTree, describe
from pytorch_lab.modules.text import WIDTH, spell_bytes


class Tower(nn.Module):
    """One of each: hidden, shared, frozen, unused, in another mode, not saved, called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(4, 8)
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.ReLU()) for _ in range(3)])
        self.norm = nn.BatchNorm1d(8)
        self.heads = [nn.Linear(8, 2), nn.Linear(8, 2)]
        self.scale = torch.ones(2)
        self.table = {"gain": nn.Parameter(torch.ones(2))}
        self.spare = nn.Linear(8, 2)
        self.register_buffer("mask", torch.ones(8), persistent=False)
        self.stem.requires_grad_(False)
        self.spare.weight.requires_grad_(False)
        self.norm.eval()
        self.twin = self.blocks[0][0]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.stem(x)) * self.mask
        for block in self.blocks:
            x = block(x)
        x = nn.Dropout(0.1)(x)
        return self.heads[0](self.twin(x)) * self.table["gain"] * self.scale


class Outputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a_layer_with_quite_a_long_name = nn.Linear(4, 3)
        self.rnn = nn.GRU(4, 3)

    def forward(self, x: torch.Tensor) -> dict:
        y, h = self.rnn(x)
        return {"logits": self.a_layer_with_quite_a_long_name(x) + y, "hidden": h}


def deep() -> nn.Module:
    model: nn.Module = nn.Linear(2, 2)
    for _ in range(20):
        model = nn.Sequential(model)
    return model


TREES: dict[str, Callable[[], ModuleTree]] = {
    "layer": lambda: describe(nn.Linear(4, 2)),
    "empty": lambda: describe(nn.Sequential()),
    "tower": lambda: describe(Tower()),
    "tower_run": lambda: describe(Tower(), torch.ones(3, 4)),
    "outputs": lambda: describe(Outputs(), torch.ones(3, 4)),
    "shared_blocks": lambda: describe(nn.Sequential(*[nn.Linear(2, 2)] * 10)),
    "lazy": lambda: describe(nn.Sequential(nn.LazyLinear(2), nn.ReLU())),
    "deep": lambda: describe(deep()),
    "transformer": lambda: describe(nn.Transformer(8, 2, 3, 2, 16, batch_first=True)),
}


@pytest.mark.parametrize("name", TREES)
def test_the_text_is_golden(name: str, golden: Callable[[str, str], None]) -> None:
    golden(f"modules_{name}", str(TREES[name]()))


@pytest.mark.parametrize("name", TREES)
def test_the_columns_add_up_and_fit(name: str) -> None:
    """The parameters of the lines make the total below; no line is wider than 80 columns."""
    tree = TREES[name]()
    lines = str(tree).splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert not any(line != line.rstrip() for line in lines)
    first, last = [i for i, line in enumerate(lines) if line.startswith("─")]
    column = [re.sub(r"\D", "", line[57:70]) for line in lines[first + 1 : last]]
    assert sum(int(number) for number in column if number) == tree.n_parameters
    total = re.search(r"Parameters +([\d,]+): ([\d,]+) trainable, ([\d,]+) frozen", str(tree))
    assert total is not None
    numbers = [int(n.replace(",", "")) for n in total.groups()]
    assert numbers == [tree.n_parameters, tree.n_trainable, tree.n_parameters - tree.n_trainable]


def test_the_text_is_the_same_every_time() -> None:
    texts = {str(describe(Tower(), torch.ones(3, 4))) for _ in range(5)}
    assert len(texts) == 1


def test_every_invisible_thing_is_named_with_its_fix() -> None:
    tree = describe(Tower(), torch.ones(3, 4))
    text = " ".join(str(tree).split())
    for thing in tree.invisible:
        assert thing.path in text
        assert thing.fix.replace(" ", "") in text.replace(" ", "")


def test_equal_siblings_are_folded_only_if_they_are_equal() -> None:
    layers = [nn.Linear(2, 2) for _ in range(4)]
    assert "0…3: Linear ×4" in str(describe(nn.Sequential(*layers)))
    layers[2].requires_grad_(False)
    text = str(describe(nn.Sequential(*layers)))
    assert "0…1: Linear ×2" in text
    assert "2: Linear" in text
    assert "frozen" in text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 * 2**20, "3.0 MiB"), (2**40, "1.0 TiB")],
)
def test_bytes_for_people(count: int, text: str) -> None:
    assert spell_bytes(count) == text
