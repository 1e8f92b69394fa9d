"""Does recording keep attention from its fast path?

In evaluation, torch runs `nn.MultiheadAttention` and the layers of `nn.TransformerEncoder` in one
step of C++ where nothing speaks against it, and an active mode does. What comes out is the same up
to rounding, but for padded places: there the fast path gives zeros. Torch keeps the reason in a
variable of `forward`.
"""

from types import FrameType

ATTENTION = "multi_head_attention_forward"
_FILES = ("torch/nn/modules/activation.py", "torch/nn/modules/transformer.py")
_NAMES = ("why_not_fast_path", "why_not_sparsity_fast_path")
_REASON = "some Tensor argument has_torch_function"
_FRAMES = 30  # from the attention up to its encoder, with hooks between


def is_left(frame: FrameType | None) -> bool:
    """Whether the attention that runs, or its layer, would be on the fast path without a mode.

    Whether gradients are asked for is to be seen by the caller: torch looks for modes first.

    Args:
        frame: that of `multi_head_attention_forward`.
    """
    for _ in range(_FRAMES):
        if frame is None:
            return False
        if frame.f_code.co_name == "forward" and frame.f_code.co_filename.endswith(_FILES):
            said = frame.f_locals
            if any(said.get(name) == _REASON for name in _NAMES):
                return True
        frame = frame.f_back
    return False
