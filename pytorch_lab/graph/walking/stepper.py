"""Go back through the graph one node at a time, really: stop, look, change a gradient, go on.

    stepper = Stepper(loss)
    stepper.node.name               # the node that is about to run
    stepper.gradients[0] *= 0       # what it is about to get
    stepper.step()                  # it runs; the next node is about to
    stepper.run()                   # the rest

Between two steps nothing runs: the leaves' `.grad` fill one by one as the nodes pass. Without a
change the gradients are, bit for bit, those of `loss.backward()`, and hooks run as they do there.
"""

import weakref
from collections.abc import Callable
from typing import Any

import torch

from pytorch_lab.errors import UsageError
from pytorch_lab.graph.schema import Node
from pytorch_lab.graph.stats import sizes_of
from pytorch_lab.graph.walking.autograd import Live, edge_of, walk
from pytorch_lab.graph.walking.direct import Direct, needs_engine
from pytorch_lab.graph.walking.engines import Engine, Gradients, Stop
from pytorch_lab.graph.walking.frozen import freeze
from pytorch_lab.graph.walking.used import Release, is_used
from pytorch_lab.words import count

_ONE_STEP = {
    "checkpoint": "a reentrant checkpoint is one step: what it runs again inside has no stops",
    "compiled": "compiled code is one step",
}


class Stepper:
    """A backward that waits in front of every node.

    Args:
        root: the result to go back from.
        gradient: as for `root.backward(gradient)`: of the shape of `root`; not needed if that is a
            single number.
        retain_graph: as for `backward`.
        create_graph: as for `backward`.
        live: the graph of `root`, if it has been walked already.
        nodes: its records, one for each place of `live`.
        hooks: whether there may be hooks on tensors or nodes. Who knows that there are none gets a
            quicker stepper, which keeps what the graph saved until the end.
        finished: is called at the end of backward.

    Raises:
        UsageError: no graph behind `root`, or a gradient of the wrong shape.

    Example:
        >>> import torch
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> stepper = Stepper((x * x).sum())
        >>> stepper.node.name, stepper.gradients
        ('SumBackward0', [tensor(1.)])
        >>> stepper.step().name, stepper.gradients
        ('MulBackward0', [tensor([1., 1.])])
        >>> stepper.gradients[0][1] = 10
        >>> stepper.run()
        >>> x.grad
        tensor([ 2., 40.])
    """

    def __init__(
        self,
        root: torch.Tensor,
        gradient: torch.Tensor | None = None,
        *,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        live: Live | None = None,
        nodes: tuple[Node, ...] | None = None,
        hooks: bool = True,
        finished: Callable[[], None] | None = None,
    ) -> None:
        edge = edge_of(root)
        if edge is None:
            raise UsageError(
                "expected a result with a graph behind it, got a tensor that does not require a "
                "gradient; see why_none for how the graph got lost"
            )
        gradient = _first_gradient(root, gradient)
        live = walk([root]) if live is None else live
        self.nodes = freeze(live) if nodes is None else nodes
        start = live.place[edge[0]]
        retain = create_graph if retain_graph is None else retain_graph
        self._shown: list[torch.Tensor | None] | None = None
        self._given: list[tuple[torch.Tensor | None, int]] = []
        self._create_graph = create_graph
        self._finished = finished
        quick = (
            not hooks
            and not create_graph
            and not is_used(edge[0])
            and not needs_engine(live, self.nodes)
        )
        if quick:
            first: list[torch.Tensor | None] = [None] * len(self.nodes[start].shapes)
            first[edge[1]] = gradient
            release = Release(root, self.nodes)
            self._driver = Direct(live, self.nodes, start, tuple(first), retain, release)
        else:
            backward = _Backward(root, gradient, retain, create_graph)
            self._driver = Engine(live, self.nodes, start, backward)
        self._end = weakref.finalize(self, self._driver.give_up)
        self._end.atexit = False  # a thread that runs on into the end of Python can crash it

    @property
    def notes(self) -> tuple[str, ...]:
        """What one should know of the steps.

        Example:
            >>> import torch
            >>> from torch.utils.checkpoint import checkpoint
            >>> x = torch.ones(2, requires_grad=True)
            >>> Stepper(checkpoint(torch.exp, x, use_reentrant=True).sum()).notes
            ('a reentrant checkpoint is one step: what it runs again inside has no stops',)
        """
        kinds = {node.kind for node in self.nodes}
        return tuple(says for kind, says in _ONE_STEP.items() if kind in kinds)

    @property
    def done(self) -> bool:
        """Whether it has come to its end."""
        return self._driver.done

    @property
    def node(self) -> Node | None:
        """The node that is about to run; None at the end."""
        place = self._driver.place
        return None if place is None else self.nodes[place]

    @property
    def ready(self) -> tuple[Node, ...]:
        """The nodes that have all their gradients; the first is `node`, which runs next."""
        here = self._driver.place
        waiting = [self.nodes[place] for place in self._driver.ready]
        return tuple(sorted(waiting, key=lambda node: (node.index != here, -_turn(node))))

    @property
    def order(self) -> tuple[int, ...]:
        """Places of the nodes that ran, as they ran."""
        return tuple(self._driver.order)

    @property
    def gradients(self) -> list[torch.Tensor | None]:
        """What the node is about to get, one for each of its outputs; None where nothing came.

        These are copies that the node gets if they are changed, in place or by putting other
        tensors of the same shape into the list.
        """
        if self._shown is None:
            with torch.set_grad_enabled(self._create_graph):
                self._shown = [
                    None if gradient is None else gradient.clone()
                    for gradient in self._driver.gradients
                ]
            self._given = [(one, _version(one)) for one in self._shown]
        return self._shown

    def step(self) -> Node | None:
        """Run `node`.

        Returns:
            The node that is about to run now; None at the end.

        Raises:
            UsageError: there is nothing left to run, or what was put into `gradients` doesn't fit.
        """
        return self._go(None)

    def run(self, until: str | int | None = None) -> Node | None:
        """Run on.

        Args:
            until: the name or the place of a node to stop in front of; to the end if None.

        Returns:
            The node that is about to run now; None at the end.
        """
        if until is None:
            if not self.done:
                self._finish()
            return None
        nodes = self.nodes
        return self._go(lambda place: until in (place, nodes[place].name))

    def close(self) -> None:
        """Give up: the nodes that are left don't run; what is in `.grad` by now stays."""
        if self._end.detach() is not None and not self.done:
            self._driver.close()

    def __enter__(self) -> "Stepper":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        ran = f"{len(self.order)} of {count(len(self.nodes), 'node')} ran"
        return f"<Stepper: {ran}, {f'next is {self.node.name}' if self.node else 'done'}>"

    def _go(self, stop: Stop | None) -> Node | None:
        driver = self._driver
        if driver.done:
            raise UsageError(
                f"expected a node that is left to run, but backward is done: all "
                f"{len(self.order)} have run; make a new stepper from a new result"
            )
        changed = None if self._shown is None else self._changed()
        self._shown = None
        place = driver.go(changed, stop)
        if place is None:
            self._ended()
            return None
        return self.nodes[place]

    def _finish(self) -> None:
        changed = None if self._shown is None else self._changed()
        self._shown = None
        self._driver.finish(changed)
        self._ended()

    def _ended(self) -> None:
        finished, self._finished = self._finished, None
        if finished is not None:
            finished()

    def _changed(self) -> Gradients | None:
        """The learner's gradients if one of them is another now."""
        if self._shown is None or self.node is None:
            return None
        came = self._driver.gradients
        if len(self._shown) != len(came):
            raise UsageError(
                f"expected {count(len(came), 'gradient')} for {self.node.name}, got "
                f"{len(self._shown)}; put a tensor into the list, don't add or remove one"
            )
        changed = [
            new is not old or _version(new) != version
            for new, (old, version) in zip(self._shown, self._given, strict=True)
        ]
        for new, old, differs in zip(self._shown, came, changed, strict=True):
            if differs:
                _check(new, old, self.node.name)
        if not any(changed):
            return None
        pairs = zip(self._shown, came, changed, strict=True)
        return tuple(new if differs else old for new, old, differs in pairs)


def _check(new: Any, old: torch.Tensor | None, name: str) -> None:
    """Refuse what the node could not be given."""
    if old is None:
        raise UsageError(
            f"expected None to stay where no gradient came to {name}: nothing before it used "
            f"that output"
        )
    if not isinstance(new, torch.Tensor):
        raise UsageError(
            f"expected a tensor as a gradient of {name}, got {type(new).__name__}; to stop a "
            f"gradient, multiply it by 0"
        )
    wanted = old.shape, old.dtype, old.device
    if (new.shape, new.dtype, new.device) != wanted:
        raise UsageError(
            f"expected a gradient of shape {tuple(old.shape)}, {old.dtype} on {old.device} for "
            f"{name}, got {tuple(new.shape)}, {new.dtype} on {new.device}"
        )


def _first_gradient(root: torch.Tensor, gradient: torch.Tensor | None) -> torch.Tensor:
    if gradient is None:
        if root.numel() != 1:
            raise UsageError(
                f"expected a result of one number, got shape {tuple(root.shape)}; pass the "
                f"gradient to start from, of that shape, or take the sum or the mean first"
            )
        return torch.ones_like(root)
    check_gradient(root, gradient)
    return gradient


def check_gradient(root: torch.Tensor, gradient: Any) -> None:
    """Refuse what a backward of `root` could not start from.

    Args:
        root: the result.
        gradient: what was passed as its gradient.

    Raises:
        UsageError: it is no tensor, or of another shape.

    Example:
        >>> import torch
        >>> check_gradient(torch.ones(3), torch.ones(3))
    """
    if not isinstance(gradient, torch.Tensor):
        raise UsageError(
            f"expected a tensor as the gradient to start from, of shape {sizes_of(root)}, got "
            f"{type(gradient).__name__}"
        )
    if sizes_of(gradient) != sizes_of(root):
        raise UsageError(
            f"expected a gradient of the shape of the result, {sizes_of(root)}, got "
            f"{sizes_of(gradient)}"
        )


def _version(tensor: torch.Tensor | None) -> int:
    return tensor._version if isinstance(tensor, torch.Tensor) else 0


def _turn(node: Node) -> float:
    """Torch runs the youngest node that is ready, and AccumulateGrad before all others."""
    return float("inf") if node.sequence < 0 else node.sequence


class _Backward:
    """Torch's backward of one result, once; the result is let go with the call."""

    def __init__(self, root: torch.Tensor, gradient: torch.Tensor, retain: bool, create: bool):
        self._roots = [root]
        self._arguments = gradient, retain, create

    def __call__(self) -> None:
        torch.autograd.backward(self._roots.pop(), *self._arguments)
