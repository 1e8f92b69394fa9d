"""How many bytes a graph keeps for backward: rising in forward, falling in backward."""

from collections.abc import Iterable, Sequence

from pytorch_lab.graph.record import Node


def timeline(
    nodes: Sequence[Node], ops: Iterable[int], backward_order: Iterable[int]
) -> list[tuple[str, int, int]]:
    """The bytes held after each op and then after each node.

    A storage counts once, with the largest of its views; it is freed when the last node that holds
    it has run. A node that kept what it saved (`freed` is False) goes on holding it.

    Args:
        nodes: all nodes, with `op` and `saved`.
        ops: the places of the ops, as they ran.
        backward_order: the places of the nodes, as they ran; empty before backward.

    Returns:
        `("op", place, bytes)` for each op, then `("node", place, bytes)` for each node.
    """
    sizes: dict[object, int] = {}
    holders: dict[object, int] = {}
    by_op: dict[int, list[Node]] = {}
    for node in nodes:
        if node.op is not None and node.saved:
            by_op.setdefault(node.op, []).append(node)
        for key, size in _storages(node):
            sizes[key] = max(size, sizes.get(key, 0))
    held = 0
    line: list[tuple[str, int, int]] = []
    for op in ops:
        for node in by_op.get(op, ()):
            for key, _ in _storages(node):
                if key not in holders:
                    held += sizes[key]
                holders[key] = holders.get(key, 0) + 1
        line.append(("op", op, held))
    for place in backward_order:
        node = nodes[place]
        for key, _ in _storages(node) if node.freed else ():
            left = holders.get(key, 0)
            if left == 1:
                held -= sizes[key]
            if left:
                holders[key] = left - 1
        line.append(("node", place, held))
    return line


def _storages(node: Node) -> list[tuple[object, int]]:
    """The storages that a node holds; a tensor of unknown storage counts as one of its own."""
    return [
        ((node.index, number) if saved.storage is None else saved.storage, saved.bytes)
        for number, saved in enumerate(node.saved)
    ]
