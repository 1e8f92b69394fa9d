"""Wrong answers to the exercises of lesson 04 that people really give, and what each one believes.

A test proves that every one is rejected: by the visible check with a message that contains `says`,
and by the grader with no points. `ALTERNATIVES` are right answers in another style than ours; they
must pass both.
"""

from pytorch_lab.grading import Mutant

_WORST = [
    Mutant(
        "04.1",
        "always_right",
        "a slope that is given will be right",
        says="nothing wrong was found",
        code="""
def worst(f, slope, x):
    return 0.0
""",
    ),
    Mutant(
        "04.1",
        "a_tensor",
        "a tensor of one element is a number",
        says="a `float`, and here comes a Tensor",
        code="""
def worst(f, slope, x):
    x = x.detach().double()
    return (slope(x) - (f(x + 1e-6) - f(x - 1e-6)) / 2e-6).abs().max()
""",
    ),
    Mutant(
        "04.1",
        "in_its_own_precision",
        "float32 has digits enough",
        says="all digits of the difference are rounding",
        code="""
def worst(f, slope, x):
    x = x.detach()
    return (slope(x) - (f(x + 1e-6) - f(x - 1e-6)) / 2e-6).abs().max().item()
""",
    ),
    Mutant(
        "04.1",
        "double_too_late",
        "the result is to be double",
        says="all digits of the difference are rounding",
        code="""
def worst(f, slope, x):
    x = x.detach()
    numeric = (f(x + 1e-6).double() - f(x - 1e-6).double()) / 2e-6
    return (slope(x).double() - numeric).abs().max().item()
""",
    ),
    Mutant(
        "04.1",
        "one_sided",
        "a difference to the right is the same",
        says="taken to both sides",
        code="""
def worst(f, slope, x):
    x = x.detach().double()
    return (slope(x) - (f(x + 1e-6) - f(x)) / 1e-6).abs().max().item()
""",
    ),
    Mutant(
        "04.1",
        "wide_step",
        "the step doesn't matter much",
        says="a wider one sees how the curve bends",
        code="""
def worst(f, slope, x):
    x = x.detach().double()
    return (slope(x) - (f(x + 1e-2) - f(x - 1e-2)) / 2e-2).abs().max().item()
""",
    ),
    Mutant(
        "04.1",
        "signed",
        "the largest difference is the worst",
        says="a distance has no sign",
        code="""
def worst(f, slope, x):
    x = x.detach().double()
    return (slope(x) - (f(x + 1e-6) - f(x - 1e-6)) / 2e-6).max().item()
""",
    ),
    Mutant(
        "04.1",
        "on_average",
        "a mean says how far it is off",
        says="the worst place counts",
        code="""
def worst(f, slope, x):
    x = x.detach().double()
    return (slope(x) - (f(x + 1e-6) - f(x - 1e-6)) / 2e-6).abs().mean().item()
""",
    ),
    Mutant(
        "04.1",
        "moves_x",
        "x can be moved and is nobody else's",
        says="`x` is another one afterwards",
        code="""
def worst(f, slope, x):
    x = x.detach().double()
    claimed = slope(x)
    x += 1e-6
    up = f(x)
    x -= 2e-6
    return (claimed - (up - f(x)) / 2e-6).abs().max().item()
""",
    ),
]

_SOFT = [
    Mutant(
        "04.2",
        "nothing_back",
        "a threshold has no gradient",
        says="nothing before this function would learn",
        code="""
class SoftThreshold(Function):
    @staticmethod
    def forward(ctx, x, width):
        ctx.save_for_backward(x, width)
        return x.sign() * (x.abs() - width).clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        x, width = ctx.saved_tensors
        by_x = torch.zeros_like(x) if ctx.needs_input_grad[0] else None
        return by_x, torch.zeros_like(width) if ctx.needs_input_grad[1] else None
""",
    ),
    Mutant(
        "04.2",
        "one_side_only",
        "numbers are positive",
        says="the negative ones too",
        code="""
class SoftThreshold(Function):
    @staticmethod
    def forward(ctx, x, width):
        ctx.save_for_backward(x, width)
        return (x - width).clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        x, width = ctx.saved_tensors
        through = grad_output * (x > width)
        by_x = through if ctx.needs_input_grad[0] else None
        return by_x, -through.sum_to_size(width.shape) if ctx.needs_input_grad[1] else None
""",
    ),
    Mutant(
        "04.2",
        "no_mask",
        "the gradient passes through unchanged",
        says="so no gradient passes",
        code="""
class SoftThreshold(Function):
    @staticmethod
    def forward(ctx, x, width):
        ctx.save_for_backward(x, width)
        return x.sign() * (x.abs() - width).clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        x, width = ctx.saved_tensors
        by_x = grad_output if ctx.needs_input_grad[0] else None
        by_width = -x.sign() * grad_output
        return by_x, by_width.sum_to_size(width.shape) if ctx.needs_input_grad[1] else None
""",
    ),
    Mutant(
        "04.2",
        "grad_output_forgotten",
        "backward returns the derivative",
        says="it is to be multiplied by it",
        code="""
class SoftThreshold(Function):
    @staticmethod
    def forward(ctx, x, width):
        ctx.save_for_backward(x, width)
        return x.sign() * (x.abs() - width).clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        x, width = ctx.saved_tensors
        through = (x.abs() > width).to(x.dtype)
        by_x = through if ctx.needs_input_grad[0] else None
        by_width = -x.sign() * through
        return by_x, by_width.sum_to_size(width.shape) if ctx.needs_input_grad[1] else None
""",
    ),
    Mutant(
        "04.2",
        "width_one_sign",
        "a larger width makes everything smaller",
        says="and a negative one larger",
        code="""
class SoftThreshold(Function):
    @staticmethod
    def forward(ctx, x, width):
        ctx.save_for_backward(x, width)
        return x.sign() * (x.abs() - width).clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        x, width = ctx.saved_tensors
        through = grad_output * (x.abs() > width)
        by_x = through if ctx.needs_input_grad[0] else None
        return by_x, -through.sum_to_size(width.shape) if ctx.needs_input_grad[1] else None
""",
    ),
    Mutant(
        "04.2",
        "not_summed",
        "a gradient has the shape of the output",
        says="what was broadcast is summed",
        code="""
class SoftThreshold(Function):
    @staticmethod
    def forward(ctx, x, width):
        ctx.save_for_backward(x, width)
        return x.sign() * (x.abs() - width).clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        x, width = ctx.saved_tensors
        through = grad_output * (x.abs() > width)
        by_x = through if ctx.needs_input_grad[0] else None
        return by_x, -x.sign() * through if ctx.needs_input_grad[1] else None
""",
    ),
    Mutant(
        "04.2",
        "over_the_rows",
        "a parameter belongs to the columns",
        says="has the shape of `width`",
        code="""
class SoftThreshold(Function):
    @staticmethod
    def forward(ctx, x, width):
        ctx.save_for_backward(x, width)
        return x.sign() * (x.abs() - width).clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        x, width = ctx.saved_tensors
        through = grad_output * (x.abs() > width)
        by_x = through if ctx.needs_input_grad[0] else None
        return by_x, (-x.sign() * through).sum(0) if ctx.needs_input_grad[1] else None
""",
    ),
    Mutant(
        "04.2",
        "averaged",
        "a broadcast number gets the mean",
        says="all that it moves is added up",
        code="""
class SoftThreshold(Function):
    @staticmethod
    def forward(ctx, x, width):
        ctx.save_for_backward(x, width)
        return x.sign() * (x.abs() - width).clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        x, width = ctx.saved_tensors
        through = grad_output * (x.abs() > width)
        by_x = through if ctx.needs_input_grad[0] else None
        by_width = (-x.sign() * through).sum_to_size(width.shape) * width.numel() / x.numel()
        return by_x, by_width if ctx.needs_input_grad[1] else None
""",
    ),
    Mutant(
        "04.2",
        "always_both",
        "torch drops what it doesn't need",
        says="`None` is enough for the other",
        code="""
class SoftThreshold(Function):
    @staticmethod
    def forward(ctx, x, width):
        ctx.save_for_backward(x, width)
        return x.sign() * (x.abs() - width).clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        x, width = ctx.saved_tensors
        through = grad_output * (x.abs() > width)
        return through, (-x.sign() * through).sum_to_size(width.shape)
""",
    ),
    Mutant(
        "04.2",
        "attribute_of_ctx",
        "ctx.x = x is as good",
        says="`ctx.save_for_backward` is for tensors",
        code="""
class SoftThreshold(Function):
    @staticmethod
    def forward(ctx, x, width):
        ctx.x, ctx.width = x, width
        return x.sign() * (x.abs() - width).clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        through = grad_output * (ctx.x.abs() > ctx.width)
        by_x = through if ctx.needs_input_grad[0] else None
        by_width = (-ctx.x.sign() * through).sum_to_size(ctx.width.shape)
        return by_x, by_width if ctx.needs_input_grad[1] else None
""",
    ),
]

_LION = [
    Mutant(
        "04.3",
        "names_a_new_tensor",
        "p = p - ... updates p",
        says="`p = ...` names a new tensor",
        code="""
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def step(self, closure=None):
        loss = None if closure is None else closure()
        with torch.no_grad():
            for group in self.param_groups:
                b1, b2 = group["betas"]
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    memory = self.state[p].setdefault("memory", torch.zeros_like(p))
                    direction = (b1 * memory + (1 - b1) * p.grad).sign()
                    p = p - group["lr"] * (direction + group["weight_decay"] * p)
                    memory.mul_(b2).add_(p, alpha=1 - b2)
        return loss
""",
    ),
    Mutant(
        "04.3",
        "no_sign",
        "a step is lr times the gradient",
        says="against the sign of the gradient, however large",
        code="""
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def step(self, closure=None):
        loss = None if closure is None else closure()
        with torch.no_grad():
            for group in self.param_groups:
                b1, b2 = group["betas"]
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    memory = self.state[p].setdefault("memory", torch.zeros_like(p))
                    direction = b1 * memory + (1 - b1) * p.grad
                    p.sub_(direction + group["weight_decay"] * p, alpha=group["lr"])
                    memory.mul_(b2).add_(p.grad, alpha=1 - b2)
        return loss
""",
    ),
    Mutant(
        "04.3",
        "memory_first",
        "the memory takes the gradient in before it is asked",
        says="changes with `b2` **after** that",
        code="""
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def step(self, closure=None):
        loss = None if closure is None else closure()
        with torch.no_grad():
            for group in self.param_groups:
                b1, b2 = group["betas"]
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    memory = self.state[p].setdefault("memory", torch.zeros_like(p))
                    memory.mul_(b1).add_(p.grad, alpha=1 - b1)
                    p.sub_(memory.sign() + group["weight_decay"] * p, alpha=group["lr"])
        return loss
""",
    ),
    Mutant(
        "04.3",
        "changes_the_gradient",
        "p.grad is free for my own use",
        says="The gradient is as it was before",
        code="""
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def step(self, closure=None):
        loss = None if closure is None else closure()
        with torch.no_grad():
            for group in self.param_groups:
                b1, b2 = group["betas"]
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    memory = self.state[p].setdefault("memory", torch.zeros_like(p))
                    given = p.grad.clone()
                    p.grad.mul_(1 - b1).add_(memory, alpha=b1)
                    p.sub_(p.grad.sign() + group["weight_decay"] * p, alpha=group["lr"])
                    memory.mul_(b2).add_(given, alpha=1 - b2)
        return loss
""",
    ),
    Mutant(
        "04.3",
        "rate_of_the_first_group",
        "there is one learning rate",
        says="Options come from the group",
        code="""
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def step(self, closure=None):
        loss = None if closure is None else closure()
        lr, (b1, b2) = self.param_groups[0]["lr"], self.param_groups[0]["betas"]
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    memory = self.state[p].setdefault("memory", torch.zeros_like(p))
                    direction = (b1 * memory + (1 - b1) * p.grad).sign()
                    p.sub_(direction + group["weight_decay"] * p, alpha=lr)
                    memory.mul_(b2).add_(p.grad, alpha=1 - b2)
        return loss
""",
    ),
    Mutant(
        "04.3",
        "memory_of_its_own",
        "an attribute is as good as self.state",
        says="The memory is not in `state_dict()`",
        code="""
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})
        self.memories = {}

    def step(self, closure=None):
        loss = None if closure is None else closure()
        with torch.no_grad():
            for group in self.param_groups:
                b1, b2 = group["betas"]
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    memory = self.memories.setdefault(p, torch.zeros_like(p))
                    direction = (b1 * memory + (1 - b1) * p.grad).sign()
                    p.sub_(direction + group["weight_decay"] * p, alpha=group["lr"])
                    memory.mul_(b2).add_(p.grad, alpha=1 - b2)
        return loss
""",
    ),
    Mutant(
        "04.3",
        "decay_in_the_gradient",
        "weight decay is added to the gradient",
        says="It is no part of the gradient",
        code="""
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def step(self, closure=None):
        loss = None if closure is None else closure()
        with torch.no_grad():
            for group in self.param_groups:
                b1, b2 = group["betas"]
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    slope = p.grad + group["weight_decay"] * p
                    memory = self.state[p].setdefault("memory", torch.zeros_like(p))
                    p.sub_((b1 * memory + (1 - b1) * slope).sign(), alpha=group["lr"])
                    memory.mul_(b2).add_(slope, alpha=1 - b2)
        return loss
""",
    ),
    Mutant(
        "04.3",
        "none_is_zero",
        "no gradient is a gradient of 0",
        says="what has no gradient rests",
        code="""
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    def step(self, closure=None):
        loss = None if closure is None else closure()
        with torch.no_grad():
            for group in self.param_groups:
                b1, b2 = group["betas"]
                for p in group["params"]:
                    slope = torch.zeros_like(p) if p.grad is None else p.grad
                    memory = self.state[p].setdefault("memory", torch.zeros_like(p))
                    direction = (b1 * memory + (1 - b1) * slope).sign()
                    p.sub_(direction + group["weight_decay"] * p, alpha=group["lr"])
                    memory.mul_(b2).add_(slope, alpha=1 - b2)
        return loss
""",
    ),
    Mutant(
        "04.3",
        "closure_unrecorded",
        "@torch.no_grad() above step is enough",
        says="it runs under `no_grad`",
        code="""
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        loss = None if closure is None else closure()
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                memory = self.state[p].setdefault("memory", torch.zeros_like(p))
                direction = (b1 * memory + (1 - b1) * p.grad).sign()
                p.sub_(direction + group["weight_decay"] * p, alpha=group["lr"])
                memory.mul_(b2).add_(p.grad, alpha=1 - b2)
        return loss
""",
    ),
    Mutant(
        "04.3",
        "closure_ignored",
        "a closure is for LBFGS only",
        says="returns what `closure` returned",
        code="""
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                memory = self.state[p].setdefault("memory", torch.zeros_like(p))
                direction = (b1 * memory + (1 - b1) * p.grad).sign()
                p.sub_(direction + group["weight_decay"] * p, alpha=group["lr"])
                memory.mul_(b2).add_(p.grad, alpha=1 - b2)
""",
    ),
]


def _row_norm(name: str, believes: str, says: str, backward: str) -> Mutant:
    """A RowNorm whose backward ends with these lines."""
    code = """
class RowNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, eps):
        r = (x.square().mean(-1, keepdim=True) + eps).sqrt()
        ctx.save_for_backward(x, gain, r)
        return x / r * gain

    @staticmethod
    def backward(ctx, grad_output):
        x, gain, r = ctx.saved_tensors
        h = grad_output * gain
"""
    return Mutant("04.4", name, believes, says=says, code=code + backward.lstrip("\n"))


_ROW_NORM = [
    _row_norm(
        "one_gradient_short",
        "only tensors have a place in what backward returns",
        "Backward returns 2 gradients, but forward has 3 arguments",
        """
        by_x = (h - x * (h * x).mean(-1, keepdim=True) / r.square()) / r
        return by_x, (grad_output * x / r).sum(0)
""",
    ),
    _row_norm(
        "r_held_still",
        "r is a constant, as eps is",
        "derivatives with respect to `x`",
        """
        return h / r, (grad_output * x / r).sum(0), None
""",
    ),
    _row_norm(
        "gain_averaged",
        "rows are averaged, as in a loss",
        "Every derivative with respect to `gain` is 0.3333 times the right one",
        """
        by_x = (h - x * (h * x).mean(-1, keepdim=True) / r.square()) / r
        return by_x, (grad_output * x / r).mean(0), None
""",
    ),
    _row_norm(
        "added",
        "the term through r is added",
        "derivatives with respect to `x`",
        """
        by_x = (h + x * (h * x).mean(-1, keepdim=True) / r.square()) / r
        return by_x, (grad_output * x / r).sum(0), None
""",
    ),
    _row_norm(
        "gain_forgotten",
        "the gain plays no part in the gradient of x",
        "derivatives with respect to `x`",
        """
        g = grad_output
        by_x = (g - x * (g * x).mean(-1, keepdim=True) / r.square()) / r
        return by_x, (g * x / r).sum(0), None
""",
    ),
    _row_norm(
        "mean_over_everything",
        "all rows share one r",
        "derivatives with respect to `x`",
        """
        by_x = (h - x * (h * x).mean() / r.square()) / r
        return by_x, (grad_output * x / r).sum(0), None
""",
    ),
    _row_norm(
        "no_gain_gradient",
        "a gain is a setting and has no gradient",
        "no gradient for `gain`",
        """
        by_x = (h - x * (h * x).mean(-1, keepdim=True) / r.square()) / r
        return by_x, None, None
""",
    ),
    _row_norm(
        "zeros",
        "a gradient of the right shape will do",
        "Backward gives 0 for `x`",
        """
        return torch.zeros_like(x), (grad_output * x / r).sum(0), None
""",
    ),
]

_BALANCED = [
    Mutant(
        "04.5",
        "everything",
        "a sampler yields all indices",
        says="Each class comes as often as the smallest",
        code="""
class Balanced(Sampler):
    def __init__(self, labels, seed):
        self.size, self.generator = len(labels), torch.Generator().manual_seed(seed)

    def __iter__(self):
        return iter(torch.randperm(self.size, generator=self.generator).tolist())

    def __len__(self):
        return self.size
""",
    ),
    Mutant(
        "04.5",
        "tensors",
        "an index may be a tensor",
        says="each an `int`",
        code="""
class Balanced(Sampler):
    def __init__(self, labels, seed):
        labels = torch.as_tensor(labels)
        self.members = [(labels == k).nonzero().flatten() for k in labels.unique()]
        self.most = min(map(len, self.members))
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self):
        parts = [m[torch.randperm(len(m), generator=self.generator)] for m in self.members]
        chosen = torch.cat([part[: self.most] for part in parts])
        return iter(chosen[torch.randperm(len(chosen), generator=self.generator)])

    def __len__(self):
        return self.most * len(self.members)
""",
    ),
    Mutant(
        "04.5",
        "made_once",
        "an iterator can be kept",
        says="an iterator is used up",
        code="""
class Balanced(Sampler):
    def __init__(self, labels, seed):
        labels = torch.as_tensor(labels)
        generator = torch.Generator().manual_seed(seed)
        members = [(labels == k).nonzero().flatten() for k in labels.unique()]
        most = min(map(len, members))
        parts = [m[torch.randperm(len(m), generator=generator)][:most] for m in members]
        chosen = torch.cat(parts)
        self.size = len(chosen)
        self.order = iter(chosen[torch.randperm(len(chosen), generator=generator)].tolist())

    def __iter__(self):
        return self.order

    def __len__(self):
        return self.size
""",
    ),
    Mutant(
        "04.5",
        "with_replacement",
        "weights that make classes equal on average are enough",
        says="Each class comes as often as the smallest",
        code="""
class Balanced(Sampler):
    def __init__(self, labels, seed):
        labels = torch.as_tensor(labels)
        kinds, counts = labels.unique(return_counts=True)
        self.weights = sum((labels == k) / n for k, n in zip(kinds, counts, strict=True))
        self.size = int(counts.min()) * len(kinds)
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self):
        drawn = torch.multinomial(self.weights, self.size, True, generator=self.generator)
        return iter(drawn.tolist())

    def __len__(self):
        return self.size
""",
    ),
    Mutant(
        "04.5",
        "twice_in_an_epoch",
        "drawing with replacement within a class is the same",
        says="An example comes twice",
        code="""
class Balanced(Sampler):
    def __init__(self, labels, seed):
        labels = torch.as_tensor(labels)
        self.members = [(labels == k).nonzero().flatten() for k in labels.unique()]
        self.most = min(map(len, self.members))
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self):
        g = self.generator
        parts = [m[torch.randint(len(m), (self.most,), generator=g)] for m in self.members]
        chosen = torch.cat(parts)
        return iter(chosen[torch.randperm(len(chosen), generator=g)].tolist())

    def __len__(self):
        return self.most * len(self.members)
""",
    ),
    Mutant(
        "04.5",
        "length_of_the_data",
        "len() is that of the data set",
        says="`len()` is how many indices an epoch yields",
        code="""
class Balanced(Sampler):
    def __init__(self, labels, seed):
        labels = torch.as_tensor(labels)
        self.size = len(labels)
        self.members = [(labels == k).nonzero().flatten() for k in labels.unique()]
        self.most = min(map(len, self.members))
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self):
        parts = [m[torch.randperm(len(m), generator=self.generator)] for m in self.members]
        chosen = torch.cat([part[: self.most] for part in parts])
        return iter(chosen[torch.randperm(len(chosen), generator=self.generator)].tolist())

    def __len__(self):
        return self.size
""",
    ),
    Mutant(
        "04.5",
        "global_numbers",
        "torch.manual_seed is how one seeds",
        says="Use a generator of your own",
        code="""
class Balanced(Sampler):
    def __init__(self, labels, seed):
        torch.manual_seed(seed)
        labels = torch.as_tensor(labels)
        self.members = [(labels == k).nonzero().flatten() for k in labels.unique()]
        self.most = min(map(len, self.members))

    def __iter__(self):
        parts = [m[torch.randperm(len(m))][: self.most] for m in self.members]
        chosen = torch.cat(parts)
        return iter(chosen[torch.randperm(len(chosen))].tolist())

    def __len__(self):
        return self.most * len(self.members)
""",
    ),
    Mutant(
        "04.5",
        "seeded_each_epoch",
        "the seed belongs where the numbers are drawn",
        says="Each epoch is the same",
        code="""
class Balanced(Sampler):
    def __init__(self, labels, seed):
        labels = torch.as_tensor(labels)
        self.members = [(labels == k).nonzero().flatten() for k in labels.unique()]
        self.most, self.seed = min(map(len, self.members)), seed

    def __iter__(self):
        g = torch.Generator().manual_seed(self.seed)
        parts = [m[torch.randperm(len(m), generator=g)][: self.most] for m in self.members]
        chosen = torch.cat(parts)
        return iter(chosen[torch.randperm(len(chosen), generator=g)].tolist())

    def __len__(self):
        return self.most * len(self.members)
""",
    ),
    Mutant(
        "04.5",
        "always_the_first",
        "cutting the large classes once is enough",
        says="some examples never came up",
        code="""
class Balanced(Sampler):
    def __init__(self, labels, seed):
        labels = torch.as_tensor(labels)
        members = [(labels == k).nonzero().flatten() for k in labels.unique()]
        most = min(map(len, members))
        self.chosen = torch.cat([m[:most] for m in members])
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self):
        order = torch.randperm(len(self.chosen), generator=self.generator)
        return iter(self.chosen[order].tolist())

    def __len__(self):
        return len(self.chosen)
""",
    ),
    Mutant(
        "04.5",
        "class_by_class",
        "the order within an epoch doesn't matter",
        says="One class comes after the other",
        code="""
class Balanced(Sampler):
    def __init__(self, labels, seed):
        labels = torch.as_tensor(labels)
        self.members = [(labels == k).nonzero().flatten() for k in labels.unique()]
        self.most = min(map(len, self.members))
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self):
        parts = [m[torch.randperm(len(m), generator=self.generator)] for m in self.members]
        return iter(torch.cat([part[: self.most] for part in parts]).tolist())

    def __len__(self):
        return self.most * len(self.members)
""",
    ),
]

MUTANTS = [*_WORST, *_SOFT, *_LION, *_ROW_NORM, *_BALANCED]

ALTERNATIVES = {
    "04.1": """
def worst(f, slope, x):
    off = [0.0]
    for place in x.flatten().tolist():
        at = torch.tensor([place - 1e-6, place, place + 1e-6], dtype=torch.float64)
        low, _, high = f(at).tolist()
        off.append(abs(slope(at)[1].item() - (high - low) / 2e-6))
    return max(off)
""",
    "04.2": """
class SoftThreshold(Function):
    @staticmethod
    def forward(x, width):
        return torch.where(x > width, x - width, torch.where(x < -width, x + width, x * 0))

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, width = inputs
        ctx.shapes = x.shape, width.shape
        ctx.save_for_backward((x > width).to(x.dtype) - (x < -width).to(x.dtype))

    @staticmethod
    def backward(ctx, grad_output):
        (side,) = ctx.saved_tensors
        grads = [None, None]
        for place, part in enumerate((side.abs(), -side)):
            if ctx.needs_input_grad[place]:
                grads[place] = (grad_output * part).sum_to_size(ctx.shapes[place])
        return tuple(grads)
""",
    "04.3": """
class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for p in filter(lambda p: p.grad is not None, group["params"]):
                held = self.state[p]
                if not held:
                    held["momentum"] = p.grad * 0
                towards = torch.lerp(held["momentum"], p.grad, 1 - group["betas"][0])
                p.mul_(1 - group["lr"] * group["weight_decay"]).add_(-group["lr"] * towards.sign())
                held["momentum"] = torch.lerp(held["momentum"], p.grad, 1 - group["betas"][1])
        return loss
""",
    "04.4": """
class RowNorm(Function):
    @staticmethod
    def forward(ctx, x, gain, eps):
        ctx.save_for_backward(x, gain)
        ctx.eps = eps
        return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * gain

    @staticmethod
    def backward(ctx, grad_output):
        x, gain = (t.detach().requires_grad_() for t in ctx.saved_tensors)
        with torch.enable_grad():
            out = x / (x.square().mean(-1, keepdim=True) + ctx.eps).sqrt() * gain
        return *torch.autograd.grad(out, (x, gain), grad_output), None
""",
    "04.5": """
class Balanced(Sampler):
    def __init__(self, labels, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.places = {}
        for i, label in enumerate(labels):
            self.places.setdefault(int(label), []).append(i)

    def __len__(self):
        return min(len(places) for places in self.places.values()) * len(self.places)

    def __iter__(self):
        each = len(self) // len(self.places)
        epoch = []
        for places in self.places.values():
            order = torch.randperm(len(places), generator=self.generator).tolist()
            epoch += [places[k] for k in order[:each]]
        for k in torch.randperm(len(epoch), generator=self.generator).tolist():
            yield epoch[k]
""",
}
