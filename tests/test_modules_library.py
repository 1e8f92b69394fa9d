"""Models that nobody here wrote: nothing false is said about them, and nothing is changed."""

import gc
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch
from torch import nn

from pytorch_lab.modules import describe

pytestmark = [
    pytest.mark.heavy,
    # Importing diffusers and transformers touches deprecated corners of torch and of themselves.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

NAMES = ["bert", "gpt2", "t5", "llama", "vit", "whisper", "mamba", "unet"]
TIED = {
    "bert": {
        ("bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"),
        ("cls.predictions.bias", "cls.predictions.decoder.bias"),
    },
    "gpt2": {("transformer.wte.weight", "lm_head.weight")},
    "t5": {
        (
            "shared.weight",
            "encoder.embed_tokens.weight",
            "decoder.embed_tokens.weight",
            "lm_head.weight",
        )
    },
    "llama": {("model.embed_tokens.weight", "lm_head.weight")},
    "vit": set(),
    "whisper": {("model.decoder.embed_tokens.weight", "proj_out.weight")},
    "mamba": {("backbone.embeddings.weight", "lm_head.weight")},
    "unet": set(),
}


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    torch.manual_seed(0)
    yield request.param
    gc.collect()


def unreached_by_backward(model: nn.Module, inputs: dict) -> set[str]:
    """The reference: trainable parameters that get no gradient from any of the outputs."""
    outputs, stack = [], [model(**inputs)]
    while stack:
        value = stack.pop()
        if isinstance(value, torch.Tensor):
            outputs.append(value)
        elif isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list | tuple):
            stack.extend(value)
    sum(y.float().sum() for y in outputs if y.requires_grad).backward()
    trainable = ((n, p) for n, p in model.named_parameters() if p.requires_grad)
    return {n for n, p in trainable if p.grad is None}


def test_library_models(models: ModuleType, name: str) -> None:
    model, inputs = models.LIBRARY_MODELS[name]()
    before = models.as_found(model)
    looked = describe(model)
    tree = describe(model, **inputs)
    after = models.as_found(model)
    assert [key for key in before if before[key] != after.get(key)] == []
    assert before.keys() == after.keys()

    assert tree.n_parameters == sum(p.numel() for p in model.parameters())
    assert tree.bytes == sum(t.nbytes for t in {*model.parameters(), *model.buffers()})
    assert [info.path for info in tree.modules] == [path for path, _ in model.named_modules()]
    assert set(tree.shared) == TIED[name]
    assert tree.invisible == looked.invisible == ()
    assert tree.modules[0].calls == 1
    assert tree.modules[0].output_shapes
    assert all(len(line) <= 80 for line in str(tree).splitlines())
    assert set(tree.unused or ()) == unreached_by_backward(model, inputs)


def test_a_hidden_layer_in_a_library_model_is_found(models: ModuleType, name: str) -> None:
    """The twin: the silence above is no deafness."""
    model, inputs = models.LIBRARY_MODELS[name]()
    inner = [module for module in model.modules() if list(module.children())][-1]
    [path] = [path for path, module in model.named_modules() if module is inner]
    inner.lost = [nn.Linear(2, 2)]
    for tree in (describe(model), describe(model, **inputs)):
        assert [thing.path for thing in tree.invisible] == [f"{path}.lost[0]"]


def test_a_frozen_part_that_is_used_is_not_unused(models: ModuleType) -> None:
    model, inputs = models.LIBRARY_MODELS["gpt2"]()
    model.transformer.requires_grad_(False)
    model.spare = nn.Linear(2, 2)
    tree = describe(model, **inputs)
    assert tree.unused == ("spare.weight", "spare.bias")
    assert len(tree.frozen) == len(list(model.transformer.parameters()))


def test_a_cache_given_as_input_is_left_as_it_was(models: ModuleType) -> None:
    model, inputs = models.LIBRARY_MODELS["llama"]()
    cache = model(**inputs).past_key_values
    length = cache.get_seq_length()
    describe(model, **inputs, past_key_values=cache)
    assert cache.get_seq_length() == length


def test_a_model_that_has_generated(models: ModuleType) -> None:
    """What `generate` leaves on the model is no loss."""
    model, inputs = models.LIBRARY_MODELS["gpt2"]()
    model.generate(**inputs, max_new_tokens=2, do_sample=False, pad_token_id=0)
    assert describe(model, **inputs).invisible == ()
