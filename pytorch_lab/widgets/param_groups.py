"""The picture of parameter groups: each layer with its group, what is in none in the open.

    lab.show(optimizer, model)
    lab.show(optim.groups([muon, adamw], model))

A part of the model whose tensors all share one group is one row, and what is in no group, in two,
or not of this model comes first. A group's button picks out its rows.
"""

from dataclasses import dataclass, field
from html import escape
from typing import Any

from pytorch_lab import words
from pytorch_lab.optim.param_groups import Parameter, ParamGroups, headline
from pytorch_lab.widgets import prose
from pytorch_lab.widgets.piece import LessonPiece

MOST_ROWS = 120

Kind = tuple[tuple[int, ...], bool, bool]  # groups, trainable, foreign


@dataclass(slots=True)
class _Node:
    """A part of the model by its name."""

    name: str
    own: list[Parameter] = field(default_factory=list)
    parts: dict[str, "_Node"] = field(default_factory=dict)

    def tensors(self) -> list[Parameter]:
        """All below, in order."""
        return [*self.own, *(p for part in self.parts.values() for p in part.tensors())]


class GroupsPicture(LessonPiece, stem="param_groups"):
    """The widget of a `ParamGroups`.

    Example:
        >>> import torch
        >>> from pytorch_lab import optim
        >>> net = torch.nn.Linear(4, 2)
        >>> GroupsPicture(optim.groups(torch.optim.SGD(net.parameters()), net)).state["finding"]
        'Every trainable tensor is in one group'

    Args:
        record: what `optim.groups` found.
    """

    kind = "Parameter groups"

    def __init__(self, record: ParamGroups) -> None:
        self.record = record
        super().__init__(_state(record))

    def to_html(self) -> str:
        """The groups, the rows and the remarks as plain tables."""
        state = self.state
        head = _row("th", ["group", "lr", "weight_decay", "tensors", "elements"])
        groups = "".join(_row("td", group["cells"]) for group in state["groups"])
        rows = "".join(
            _row("td", [row["name"], row["says"], row["lr"], row["size"]]) for row in state["rows"]
        )
        said = "".join(f"<li>{prose.to_html(text)}</li>" for _, text in state["remarks"])
        return self.framed(
            f"<p><strong>{escape(state['title'])}</strong><br>{escape(state['finding'])}</p>"
            f"<table>{head}{groups}</table><table>{rows}</table>" + (said and f"<ul>{said}</ul>")
        )

    def __str__(self) -> str:
        return str(self.record)


def _row(tag: str, cells: list[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _state(record: ParamGroups) -> dict[str, Any]:
    rows = _rows(record)
    finding, good = _finding(record)
    return {
        "title": headline(record),
        "finding": finding,
        "good": good,
        "groups": [
            {
                "name": group.name,
                "cells": [
                    group.name,
                    "none" if group.lr is None else f"{group.lr:.4g}",
                    f"{group.weight_decay:.4g}",
                    f"{group.n_tensors:,}",
                    f"{group.n_elements:,}",
                ],
                "more": ", ".join(f"{key}={value}" for key, value in group.options),
            }
            for group in record.groups
        ],
        "rows": sorted(rows, key=lambda row: not row["lost"])[:MOST_ROWS],
        "left_out": max(len(rows) - MOST_ROWS, 0),
        "remarks": [[one.level, one.text] for one in record.remarks],
    }


def _finding(record: ParamGroups) -> tuple[str, bool]:
    if record.problems:
        lost = len(record.in_none)
        if lost and record.model:
            return f"{words.count(lost, 'trainable tensor')} in no group", False
        return f"{words.count(len(record.problems), 'thing')} to look at", False
    return (
        "Every trainable tensor is in one group" if record.model else "No tensor is twice"
    ), True


def _rows(record: ParamGroups) -> list[dict[str, Any]]:
    """The model from top to bottom, each uniform part in one row; then the foreign tensors."""
    root = _Node("")
    loose: list[Parameter] = []
    for p in record.parameters:
        if p.foreign or not record.model:
            loose.append(p)
            continue
        node = root
        *path, _leaf = p.names[0].split(".")
        for name in path:
            node = node.parts.setdefault(name, _Node(f"{node.name}.{name}".lstrip(".")))
        node.own.append(p)
    found: list[dict[str, Any]] = []
    _fold(root, record, found, top=True)
    found += [_one(p.names[0], [p], record) for p in loose]
    return found


def _fold(node: _Node, record: ParamGroups, found: list[dict[str, Any]], *, top: bool) -> None:
    tensors = node.tensors()
    if not tensors:
        return
    if len(tensors) > 1 and len(set(map(_kind, tensors))) == 1 and not top:
        found.append(_one(f"{node.name}.*", tensors, record))
        return
    found += [_one(p.names[0], [p], record) for p in node.own]
    for part in node.parts.values():
        _fold(part, record, found, top=False)


def _kind(p: Parameter) -> Kind:
    return p.groups, p.trainable, p.foreign


def _one(name: str, tensors: list[Parameter], record: ParamGroups) -> dict[str, Any]:
    """One row: who, how large, in which group, with which rate."""
    groups, trainable, foreign = _kind(tensors[0])
    elements = sum(p.numel for p in tensors)
    size = f"{words.count(len(tensors), 'tensor')}, {elements:,}"
    if len(tensors) == 1:
        size = "lazy" if tensors[0].shape is None else str(tensors[0].shape)
    names = [record.groups[index].name for index in groups]
    says = words.listed(names) if len(set(names)) == len(names) else f"{len(names)} × {names[0]}"
    if not groups:
        says = "in no group" if trainable else "frozen, in no group"
    elif foreign:
        says += ", not of this model"
    elif not trainable:
        says += ", frozen"
    rates = {record.groups[index].lr for index in groups}
    alone = next(iter(rates)) if len(rates) == 1 else None
    lost = (not groups and trainable) or foreign or len(groups) > 1
    return {
        "name": name,
        "size": size,
        "says": says,
        "lr": "" if alone is None else f"{alone:.4g}",
        "groups": sorted(set(groups)),
        "lost": lost,
        "idle": not groups and not trainable,
    }
