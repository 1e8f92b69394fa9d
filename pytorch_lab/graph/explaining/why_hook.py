"""Did a hook on a tensor change the gradient?"""

from pytorch_lab.graph.explaining.explanation import Explanation
from pytorch_lab.graph.explaining.gradient_story import Story, arriving
from pytorch_lab.graph.explaining.spots import quoted
from pytorch_lab.graph.schema import Node


def why_hooked(story: Story, sender: Node, node: Node, became: str) -> Explanation | None:
    """The explanation if a hook stands where the gradient changed.

    Args:
        story: what happened.
        sender: the node that sent a good gradient.
        node: the one that it reached changed.
        became: what it was then: "0", "NaN".
    """
    if node.index not in story.hooks:
        return None
    site = story.hooks[node.index]
    op = story.op_of(node)
    made = f"the result of `{op.name}`" if op is not None else story.name
    received = arriving(sender)
    length = f" of length {received.norm:.3g}" if received is not None else ""
    text = ""
    if site is not None and site.line:
        lines = story.record.source(site.file)
        text = lines[site.line - 1] if site.line <= len(lines) else ""
    return Explanation(
        "hook",
        f"A hook stands on {made}, just where the gradient became {became}: what it returns takes "
        "the gradient's place.",
        where=site.where if site is not None else "",
        evidence=(
            f"{sender.name} received a gradient{length}; behind the hook it is {became}",
            *(quoted(site.where, text) if site is not None else ()),
        ),
        fix="look at what the function given to register_hook returns; None leaves the gradient "
        "as it is",
    )
