"""Go back through the graph one node at a time, really: stop, look, change a gradient, go on.

stepper = Stepper(loss)
stepper.node.name               # the node that is about to run
stepper.gradients[0] *= 0       # what it is about to get
stepper.step()                  # it runs; the next node is about to
stepper.run()                   # the rest
"""

from typing import Any

import torch

from pytorch_lab.graph.record import Node


class Stepper:
    """A backward that waits in front of every node.

    Args:
        root: the result to go back from.
        gradient: as for `root.backward(gradient)`.
        retain_graph: as for `backward`.
        create_graph: as for `backward`.
        nodes: the records of the graph's nodes, if there are some already.
    """

    def __init__(
        self,
        root: torch.Tensor,
        gradient: torch.Tensor | None = None,
        *,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        live: Any = None,
        nodes: tuple[Node, ...] | None = None,
    ) -> None:
        raise NotImplementedError

    @property
    def done(self) -> bool:
        """Whether all nodes have run."""
        raise NotImplementedError

    @property
    def node(self) -> Node | None:
        """The node that is about to run; None at the end."""
        raise NotImplementedError

    @property
    def gradients(self) -> list[torch.Tensor | None]:
        """What the node is about to get: change it, or put something else in its place."""
        raise NotImplementedError

    @property
    def ready(self) -> tuple[Node, ...]:
        """The nodes that have all their gradients and wait; the first is `node`."""
        raise NotImplementedError

    @property
    def order(self) -> tuple[int, ...]:
        """Places of the nodes that ran."""
        raise NotImplementedError

    def step(self) -> Node | None:
        """Run `node`; the one that is about to run next."""
        raise NotImplementedError

    def run(self, until: str | int | None = None) -> Node | None:
        """Run on to the end, or to the next node of that name or place."""
        raise NotImplementedError

    def close(self) -> None:
        """Give up; gradients accumulated so far stay."""
        raise NotImplementedError
