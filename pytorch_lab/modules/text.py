"""A module's record as text that reads well at 80 columns and is the same in every run."""

from pytorch_lab.modules.record import ModuleTree

WIDTH = 80


def render(tree: ModuleTree) -> str:
    """The tree of modules, its totals, and what is invisible."""
    lines = []
    for info in tree.modules:
        name = info.path.rpartition(".")[2] or tree.type
        own = "" if info.n_parameters == 0 else f"{info.n_parameters:,}"
        left = "  " * info.depth + (f"{name}: {info.type}" if info.path else name)
        lines.append(f"{left:<64.64}{own:>16}")
    lines.append(f"{tree.n_parameters:,} parameters, {tree.n_trainable:,} trainable")
    if tree.invisible:
        lines.append("")
        lines.append("Invisible")
        for thing in tree.invisible:
            lines.append(f"  {thing.path} ({thing.kind})")
            lines.append(f"    {thing.why}")
            lines.append(f"    {thing.fix}")
    return "\n".join(lines)
