"""Errors of autograd whose message says all: what they mean for a learner, and the cure.

`WORDS` is read from the top; the first pattern found in torch's message is the answer. In the texts
`{expression}` is the reader's own code that raised, and `{1}`, `{2}` what the pattern caught.
"""

from typing import NamedTuple


class Words(NamedTuple):
    """The explanation of one error."""

    pattern: str
    cause: str
    says: str
    fix: str


WORDS = (
    Words(
        r"a view of a leaf Variable that requires grad is being used in an in-place",
        "view_of_leaf_in_place",
        "{expression} writes into a part (a view) of a leaf that requires grad, while autograd is "
        "recording: the leaf's old values would be lost to its gradient.",
        "put the write under torch.no_grad() if it is an initialisation or an update; if it is "
        "part of the computation, clone() the leaf first and write into the clone",
    ),
    Words(
        r"a leaf Variable that requires grad is being used in an in-place operation",
        "leaf_in_place",
        "{expression} writes in place into a leaf that requires grad (a parameter), while "
        "autograd is recording: an update or an initialisation must not be part of the graph.",
        "put it under torch.no_grad(): with torch.no_grad(): ... around the update, or "
        "@torch.no_grad() above the function; for initial values use torch.nn.init",
    ),
    Words(
        r"Output (\d+) of (\w+) is a view and is being modified inplace\. This view is the output "
        r"of a function that returns multiple views",
        "view_of_many_in_place",
        "{expression} writes in place into one of several views that {2} returned together; "
        "autograd cannot tell what that does to the others.",
        "make a new tensor: a = a * 2 instead of a *= 2; or take the part by indexing, x[0], "
        "which may be written to",
    ),
    Words(
        r"Output (\d+) of (\w+) is a view and is being modified inplace\. This view was created "
        r"inside a custom Function",
        "view_of_function_in_place",
        "{expression} writes in place into what the custom Function {2} returned, which is a view "
        "of its input: its own backward would be passed over.",
        "clone() the result of the Function before the write, or return a new tensor from it",
    ),
    Words(
        r"A view was created in (no_grad|inference) mode and is being modified inplace",
        "view_without_grad_in_place",
        "{expression} writes in place into a view that was made under {1} mode; autograd never "
        "saw that it is a view, so the gradient of its base would be wrong.",
        "make the view and write to it on the same side: both inside the block, or both outside",
    ),
    Words(
        r"Inference tensors cannot be saved for backward",
        "inference_saved",
        "{expression} needs to keep a tensor for backward that was made in inference_mode, and "
        "such tensors cannot be kept.",
        "make it under torch.no_grad() instead of inference_mode, or clone() it before use",
    ),
    Words(
        r"Inplace update to inference tensor outside InferenceMode",
        "inference_in_place",
        "{expression} writes in place into a tensor that was made in inference_mode.",
        "clone() it first, or make it under torch.no_grad() instead of inference_mode",
    ),
    Words(
        r"Setting requires_grad=True on inference tensor",
        "inference_leaf",
        "A tensor made in inference_mode can never ask for a gradient.",
        "clone() it outside of inference_mode and call requires_grad_() on the clone, or make it "
        "under torch.no_grad()",
    ),
    Words(
        r"Inference tensors do not track version counter",
        "inference_version",
        "A tensor made in inference_mode counts no versions.",
        "ask is_inference() first, or make it under torch.no_grad()",
    ),
    Words(
        r"grad can be implicitly created only for real scalar outputs but got (\S+)",
        "complex_loss",
        "The loss is complex ({1}); only a real number can be made smaller, so only that has a "
        "gradient without being told a direction.",
        "make it real first: loss.abs(), loss.real, or (z * z.conj()).real",
    ),
    Words(
        r"both grad_output and output are required to have the same dtype",
        "gradient_dtype",
        "The gradient given to backward has another dtype than the tensor it is for.",
        "make it like the tensor: torch.ones_like(output)",
    ),
    Words(
        r"Mismatch in shape: grad_output\[(\d+)\] has a shape of torch\.Size\((\[.*?\])\) and "
        r"output\[\d+\] has a shape of torch\.Size\((\[.*?\])\)",
        "gradient_shape",
        "The gradient given to backward has the shape {2}, the tensor it is for {3}.",
        "give one number for each element of the output: torch.ones_like(output)",
    ),
    Words(
        r"attempting to assign a gradient of size '(\[.*?\])' to a tensor of size '(\[.*?\])'",
        "gradient_shape",
        "A gradient of shape {1} was assigned to a tensor of shape {2}.",
        "`.grad` has the shape of its tensor; sum over the batch first",
    ),
    Words(
        r"attempting to assign a gradient with dtype '(\w+)' to a tensor with grad_dtype '(\w+)'",
        "gradient_dtype",
        "A gradient of dtype {1} was assigned to a tensor whose gradient is of dtype {2}.",
        "convert it: grad.to(parameter.dtype)",
    ),
    Words(
        r"[Oo]nly Tensors of floating point (?:and complex )?dtype can require gradients",
        "integer_leaf",
        "{expression} asks for the gradient of whole numbers; only floating point and complex "
        "tensors have one.",
        "make it floating point: torch.tensor([1.0, 2.0], requires_grad=True), or x.float()",
    ),
    Words(
        r"you can only change requires_grad flags of leaf variables",
        "non_leaf",
        "{expression} changes requires_grad of a tensor that is the result of an operation; only "
        "leaves have a choice.",
        "detach() gives the same values without the graph; to freeze a layer, set "
        "requires_grad_(False) on its parameters",
    ),
    Words(
        r"can't retain_grad on Tensor that has requires_grad=False",
        "not_requires_grad",
        "{expression} wants to keep the gradient of a tensor that gets none.",
        "call requires_grad_() on the input before the computation",
    ),
    Words(
        r"cannot register a hook on a tensor that doesn't require gradient",
        "not_requires_grad",
        "{expression} puts a hook on a tensor that never gets a gradient.",
        "call requires_grad_() on it, or put the hook on a parameter",
    ),
    Words(
        r"The \.grad attribute of a Tensor that is not a leaf Tensor is being accessed",
        "non_leaf",
        "{expression} reads `.grad` of a tensor that is the result of an operation: backward "
        "passes its gradient on and keeps none.",
        "call retain_grad() on it before backward(), or read `.grad` of the leaf",
    ),
    Words(
        r"Can't call numpy\(\) on Tensor that requires grad",
        "numpy_of_grad",
        "{expression} hands a tensor with a graph to numpy, which could not carry the gradient.",
        "for plots and metrics: x.detach().numpy(); where it should be learned from, stay in torch",
    ),
    Words(
        r"Converting a tensor with requires_grad=True to a scalar|To copy construct from a tensor",
        "copied",
        "{expression} copies the numbers of a tensor with a graph into one without: no gradient "
        "comes back through it.",
        "torch.stack(list_of_tensors) keeps the graph; for a copy without it say so: "
        "x.detach().clone()",
    ),
    Words(
        r"Only Tensors created explicitly by the user \(graph leaves\) support the deepcopy",
        "deepcopy_of_result",
        "{expression} copies something that holds a result with its graph, which cannot be copied.",
        "detach() what is kept on the module (a hidden state, a cached loss) before the copy",
    ),
    Words(
        r"One of the differentiated Tensors does not require grad",
        "not_requires_grad",
        "autograd.grad was asked for the gradient of a tensor that does not ask for one.",
        "call requires_grad_() on it before the computation",
    ),
    Words(
        r"Function '?(\w+)'? returned nan values in its (\d+)th output",
        "nan_in_backward",
        "The gradient became NaN in {1}, the first node of the way back that made one.",
        "why_gradient(parameter, lambda: loss) names its line and the values that led to it",
    ),
    Words(
        r"function (\w+) returned an incorrect number of gradients \(expected (\d+), got (\d+)\)",
        "function_gradients",
        "The backward of the custom Function {1} returns {3} values, but its forward has {2} "
        "inputs.",
        "return one gradient for each input of forward, None for those that need none",
    ),
    Words(
        r"Function (\w+) returned an invalid gradient at index (\d+) - got (\[.*?\]) but expected "
        r"shape compatible with (\[.*?\])",
        "function_gradients",
        "{1} returned a gradient of shape {3} for its input {2}, which has the shape {4}.",
        "a gradient has the shape of its input: sum over what was broadcast",
    ),
    Words(
        r"save_for_backward can only save variables, but argument (\d+) is of type (\S+)",
        "function_saves_number",
        "save_for_backward takes tensors only, and was given a {2}.",
        "keep numbers on the context itself: ctx.factor = factor",
    ),
    Words(
        r"Legacy autograd function|should not be instantiated\. Methods on autograd functions",
        "function_instantiated",
        "{expression} makes an object of an autograd.Function; it is used through its class.",
        "write forward and backward as @staticmethod with ctx first, and call MyFunction.apply(x)",
    ),
    Words(
        r"trying to differentiate twice a function that was marked with @?once_differentiable",
        "no_second_derivative",
        "This Function allows one derivative only: its backward is marked once_differentiable.",
        "leave the mark out and write backward with differentiable ops",
    ),
    Words(
        r"derivative for (\S+) is not implemented|the derivative for '(\w+)' is not implemented",
        "no_second_derivative",
        "torch has no formula for this derivative: {1}.",
        "compute it from ops that have one, or leave create_graph=True out",
    ),
    Words(
        r"more than one element of the written-to tensor refers to a single memory location"
        r"|some elements of the input tensor and the written-to tensor refer to a single memory",
        "overlapping_write",
        "{expression} writes into a tensor whose elements share memory (expand, or overlapping "
        "slices).",
        "clone() it before the write",
    ),
    Words(
        r"you're calling \.item\(\) on a Tensor\. We don't support vmap",
        "item_in_transform",
        "{expression} takes a number out of torch inside of vmap, where one tensor stands for "
        "many.",
        "stay in torch: torch.where instead of `if`, tensor arithmetic instead of float()",
    ),
    Words(
        r"torch\.utils\.checkpoint: (?:A different number of tensors|Recomputed values|trying to)",
        "checkpoint_differs",
        "The checkpointed part did something else when it was run again for backward: it depends "
        "on a random number, a counter or a value that changed in between.",
        "make it give the same tensors each time; keep preserve_rng_state=True",
    ),
    Words(
        r"`inputs` argument to `backward\(\)` cannot be empty",
        "no_inputs",
        "backward(inputs=...) was given nothing to compute gradients for.",
        "pass the parameters, as a list: a generator is empty when it was used before",
    ),
)
