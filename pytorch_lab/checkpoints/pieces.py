"""A piece of a run: how its state is saved, and put back.

A piece is anything with `state_dict()` and `load_state_dict()`, a generator of torch, numpy or
Python, a pair of functions (save, load), or the name of one of the global generators.
"""

import io
import random
from typing import Any

import numpy
import torch

from pytorch_lab import words
from pytorch_lab.errors import UsageError

RNG = ("python RNG", "numpy RNG", "torch RNG")


def save(name: str, piece: Any) -> bytes:
    """The state of a piece as torch.save writes it."""
    buffer = io.BytesIO()
    try:
        torch.save(_state(piece), buffer)
    except Exception as error:  # the learner's own state_dict
        raise UsageError(
            f"resume_gap(make_run) could not save the piece {name!r}: "
            f"{words.shortened(words.message_of(error))}"
        ) from error
    return buffer.getvalue()


def _state(piece: Any) -> Any:
    if isinstance(piece, str):  # as _made names the global generators
        return _global_state(piece)
    if isinstance(piece, tuple):
        return piece[0]()
    if isinstance(piece, torch.Generator):
        return piece.get_state()
    if isinstance(piece, numpy.random.Generator):
        return piece.bit_generator.state
    if isinstance(piece, numpy.random.RandomState):
        return piece.get_state()
    if isinstance(piece, random.Random):
        return piece.getstate()
    return piece.state_dict()


def is_piece(piece: Any) -> bool:
    """Whether its state can be saved and put back."""
    kinds = (torch.Generator, numpy.random.Generator, numpy.random.RandomState, random.Random)
    pair = isinstance(piece, tuple) and len(piece) == 2 and all(map(callable, piece))
    both = hasattr(piece, "state_dict") and hasattr(piece, "load_state_dict")
    return isinstance(piece, kinds) or pair or both


def load(piece: Any, saved: bytes) -> None:
    """Put a saved state back."""
    # Written by this very process a moment ago.
    state = torch.load(io.BytesIO(saved), weights_only=False)
    if isinstance(piece, str):
        _set_global_state(piece, state)
    elif isinstance(piece, tuple):
        piece[1](state)
    elif isinstance(piece, torch.Generator | numpy.random.RandomState):
        piece.set_state(state)
    elif isinstance(piece, numpy.random.Generator):
        piece.bit_generator.state = state
    elif isinstance(piece, random.Random):
        piece.setstate(state)
    else:
        piece.load_state_dict(state)


def _global_state(name: str) -> Any:
    return {
        "python RNG": random.getstate,
        "numpy RNG": numpy.random.get_state,
        "torch RNG": torch.get_rng_state,
    }[name]()


def _set_global_state(name: str, state: Any) -> None:
    {
        "python RNG": random.setstate,
        "numpy RNG": numpy.random.set_state,
        "torch RNG": torch.set_rng_state,
    }[name](state)
