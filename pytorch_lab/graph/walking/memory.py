"""How many bytes a graph keeps for backward: rising in forward, falling in backward."""

from collections.abc import Iterable, Sequence

from pytorch_lab.graph.schema import Node


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

    Example:
        >>> from pytorch_lab.graph.schema import Saved
        >>> kept = Saved("result", (3,), "float32", 12, 0, 0, None)
        >>> rest = (), (), ((3,),), "float32", "cpu", (kept,), True, None, 0, 1, (), 0
        >>> timeline([Node(0, "ExpBackward0", "builtin", *rest)], [0], [0])
        [('op', 0, 12), ('node', 0, 0)]
    """
    held = _Held(nodes)
    by_op: dict[int, list[Node]] = {}
    for node in nodes:
        if node.op is not None:
            by_op.setdefault(node.op, []).append(node)
    line: list[tuple[str, int, int]] = []
    for op in ops:
        for node in by_op.get(op, ()):
            held.take(node)
        line.append(("op", op, held.bytes))
    for place in backward_order:
        if nodes[place].freed:
            held.let_go(nodes[place])
        line.append(("node", place, held.bytes))
    return line


def kept_bytes(nodes: Sequence[Node]) -> int:
    """What all nodes together keep for backward; a storage counts once, with its largest view.

    Example:
        >>> from pytorch_lab.graph.schema import Saved
        >>> kept = Saved("result", (3,), "float32", 12, 0, 0, None)
        >>> rest = (), (), ((3,),), "float32", "cpu", (kept,), None, None, 0, 1, (), 0
        >>> kept_bytes([Node(place, "ExpBackward0", "builtin", *rest) for place in range(2)])
        12
    """
    return sum(_Held(nodes).sizes.values())


class _Held:
    """The storages held at one moment, and by how many nodes each."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.bytes = 0
        self.sizes: dict[object, int] = {}
        self._holders: dict[object, int] = {}
        for node in nodes:
            for key, size in _storages(node):
                self.sizes[key] = max(size, self.sizes.get(key, 0))

    def take(self, node: Node) -> None:
        for key, _ in _storages(node):
            if not self._holders.get(key):
                self.bytes += self.sizes[key]
            self._holders[key] = self._holders.get(key, 0) + 1

    def let_go(self, node: Node) -> None:
        for key, _ in _storages(node):
            left = self._holders.get(key, 0)
            if left == 1:
                self.bytes -= self.sizes[key]
            self._holders[key] = max(left - 1, 0)


def _storages(node: Node) -> list[tuple[object, int]]:
    """The storages that a node holds; a tensor of unknown storage counts as one of its own."""
    return [
        ((node.index, number) if saved.storage is None else saved.storage, saved.bytes)
        for number, saved in enumerate(node.saved)
    ]
