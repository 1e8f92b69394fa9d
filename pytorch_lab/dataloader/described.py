"""A loader in one line: what it reads, how it groups, and with how many workers."""

from typing import Any

from torch.utils.data import DataLoader, RandomSampler, SequentialSampler

from pytorch_lab import words


def headline(loader: DataLoader, workers: int | None = None) -> str:
    """The line.

    Example:
        >>> headline(DataLoader([1, 2, 3], batch_size=2, shuffle=True))
        'DataLoader(list of 3 samples, batch_size=2, shuffle=True, num_workers=0)'

    Args:
        loader: any.
        workers: the number to say in place of the loader's own.
    """
    parts = [dataset_line(loader.dataset), *_grouping(loader), *_order(loader)]
    parts.append(f"num_workers={loader.num_workers if workers is None else workers}")
    if loader.num_workers and loader.persistent_workers:
        parts.append("persistent_workers=True")
    if loader.pin_memory:
        parts.append("pin_memory=True")
    return f"{type(loader).__name__}({', '.join(parts)})"


def dataset_line(dataset: Any) -> str:
    """What a loader reads, such as "Digits of 1,797 samples"."""
    name = type(dataset).__name__
    inner = getattr(dataset, "dataset", None)
    if name == "Subset" and inner is not None:
        name = f"Subset of {type(inner).__name__}"
    try:
        return f"{name} of {words.count(len(dataset), 'sample')}"
    except (TypeError, NotImplementedError):  # a stream
        return name


def _grouping(loader: DataLoader) -> list[str]:
    if loader.batch_size is not None:
        return [f"batch_size={loader.batch_size}"]
    if loader.batch_sampler is None:
        return ["batch_size=None"]
    return [f"batch_sampler={type(loader.batch_sampler).__name__}"]


def _order(loader: DataLoader) -> list[str]:
    sampler = loader.sampler
    if isinstance(sampler, RandomSampler):
        return ["shuffle=True"]
    own = type(sampler).__name__
    if isinstance(sampler, SequentialSampler) or own.startswith("_"):
        return []
    return [f"sampler={own}"]
