"""Models that nobody here wrote: tiny random ones from `transformers` and `diffusers`, no download.

`LIBRARY_MODELS[name]()` gives the model and the keyword arguments to call it with;
`as_found(model)` is what a collector must leave as it was.
"""

import collections
import random
import types
from collections.abc import Callable
from typing import Any

import numpy
import torch
from torch import nn
from torch.nn.modules import module as nn_module

Built = tuple[nn.Module, dict[str, Any]]


def _ids(rows: int = 2, length: int = 7, vocabulary: int = 60) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(3, vocabulary, (rows, length), generator=generator)


def bert() -> Built:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        vocab_size=60,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    return BertForMaskedLM(config), {"input_ids": _ids()}


def gpt2() -> Built:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=60, n_embd=16, n_layer=2, n_head=2, n_positions=32)
    return GPT2LMHeadModel(config), {"input_ids": _ids()}


def t5() -> Built:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=60, d_model=16, d_kv=8, d_ff=32, num_layers=2, num_heads=2, pad_token_id=0
    )
    return T5ForConditionalGeneration(config), {
        "input_ids": _ids(),
        "decoder_input_ids": _ids(length=5),
    }


def llama() -> Built:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=60,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=32,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config), {"input_ids": _ids()}


def vit() -> Built:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=16,
        patch_size=8,
        num_labels=5,
    )
    return ViTForImageClassification(config), {"pixel_values": torch.ones(2, 3, 16, 16)}


def whisper() -> Built:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=60,
        num_mel_bins=8,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        max_source_positions=10,
        max_target_positions=12,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    return WhisperForConditionalGeneration(config), {
        "input_features": torch.ones(2, 8, 20),
        "decoder_input_ids": _ids(length=5),
    }


def mamba() -> Built:
    from transformers import MambaConfig, MambaForCausalLM

    config = MambaConfig(
        vocab_size=60, hidden_size=16, state_size=4, num_hidden_layers=2, pad_token_id=0
    )
    return MambaForCausalLM(config), {"input_ids": _ids()}


def unet() -> Built:
    from diffusers import UNet2DConditionModel

    model = UNet2DConditionModel(
        sample_size=8,
        in_channels=4,
        out_channels=4,
        block_out_channels=(8, 16),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=8,
        attention_head_dim=4,
        norm_num_groups=4,
    )
    return model, {
        "sample": torch.ones(1, 4, 8, 8),
        "timestep": torch.tensor([3]),
        "encoder_hidden_states": torch.ones(1, 5, 8),
    }


LIBRARY_MODELS: dict[str, Callable[[], Built]] = {
    "bert": bert,
    "gpt2": gpt2,
    "t5": t5,
    "llama": llama,
    "vit": vit,
    "whisper": whisper,
    "mamba": mamba,
    "unet": unet,
}


def as_found(model: nn.Module) -> dict[str, Any]:
    """Everything that looking at a model must not change, in comparable form."""
    facts: dict[str, Any] = {
        "torch rng": bytes(torch.get_rng_state().numpy()),
        "numpy rng": repr(numpy.random.get_state()),  # noqa: NPY002
        "python rng": random.getstate(),
        "grad mode": torch.is_grad_enabled(),
        "default dtype": torch.get_default_dtype(),
        "Module.__init__": nn.Module.__init__,
        "global hooks": {
            n: len(v)
            for n, v in vars(nn_module).items()
            if n.startswith("_global_") and isinstance(v, dict)
        },
        "modes": len(torch.overrides._get_current_function_mode_stack()),
    }
    for path, module in model.named_modules():
        facts[path] = {name: _look(value) for name, value in vars(module).items()}
        facts[f"{path} class"] = type(module)
        facts[f"{path} order"] = list(vars(module))
    for name, parameter in model.named_parameters():
        grad = parameter.grad
        facts[f"{name} grad"] = None if grad is None else (id(grad), _look(grad))
    return facts


def _look(value: Any, depth: int = 4) -> Any:
    if isinstance(value, torch.Tensor):
        if isinstance(value, nn.parameter.UninitializedTensorMixin):
            return id(value), type(value)
        plain = value.detach()
        bits = plain.to_dense().contiguous().view(-1).tolist() if not value.is_meta else None
        return id(value), type(value), value.dtype, value.shape, value.requires_grad, repr(bits)
    if depth == 0 or isinstance(value, nn.Module):
        return id(value)
    if isinstance(value, dict):
        inside = [(repr(k), _look(v, depth - 1)) for k, v in dict.items(value)]
        return id(value), type(value), inside
    if isinstance(value, list | tuple | set | collections.deque):
        return id(value), type(value), [_look(item, depth - 1) for item in value]
    inside = getattr(value, "__dict__", None)
    if isinstance(inside, dict) and not isinstance(value, type | types.FunctionType):
        return id(value), {k: _look(v, depth - 1) for k, v in inside.items()}
    return value if isinstance(value, int | float | str | bool | type(None)) else id(value)
