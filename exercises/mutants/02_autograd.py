"""Wrong answers to the exercises of lesson 02 that people really give, and what each one believes.

A test proves that every one is rejected: by the visible check with a message that contains `says`,
and by the grader with no points. `ALTERNATIVES` are right answers in another style than ours; they
must pass both.
"""

from pytorch_lab.grading import Mutant

_KEEPERS = [
    Mutant(
        "02.1",
        "nothing",
        "before backward() nobody has a gradient",
        says="nothing has to be there before",
        code="""
def keepers(tensors):
    return [name for name, t in tensors.items() if t.is_leaf and t.grad is not None]
""",
    ),
    Mutant(
        "02.1",
        "parameters_only",
        "only nn.Parameter is trained",
        says="`w` is a leaf that asks for a gradient",
        code="""
def keepers(tensors):
    return [name for name, t in tensors.items() if isinstance(t, nn.Parameter) and t.requires_grad]
""",
    ),
    Mutant(
        "02.1",
        "retained_only",
        "retains_grad says it all, for leaves too",
        says="`w` is a leaf that asks for a gradient",
        code="""
def keepers(tensors):
    return [name for name, t in tensors.items() if t.retains_grad]
""",
    ),
    Mutant(
        "02.1",
        "a_set",
        "the order doesn't matter",
        says="nothing has to be there before",
        code="""
def keepers(tensors):
    return {n for n, t in tensors.items() if t.requires_grad and (t.is_leaf or t.retains_grad)}
""",
    ),
    Mutant(
        "02.1",
        "leaves",
        "every leaf gets a gradient",
        says="nobody asked for its gradient",
        code="""
def keepers(tensors):
    return [name for name, t in tensors.items() if t.is_leaf or t.retains_grad]
""",
    ),
    Mutant(
        "02.1",
        "no_grad_fn",
        "what has no grad_fn is a leaf, and a leaf gets a gradient",
        says="nobody asked for its gradient",
        code="""
def keepers(tensors):
    return [name for name, t in tensors.items() if t.grad_fn is None or t.retains_grad]
""",
    ),
    Mutant(
        "02.1",
        "all_that_require_grad",
        "requires_grad means that .grad is filled",
        says="is the result of an op",
        code="""
def keepers(tensors):
    return [name for name, t in tensors.items() if t.requires_grad]
""",
    ),
    Mutant(
        "02.1",
        "makes_them_keep",
        "retain_grad() may be called in order to know",
        says="is the result of an op",
        code="""
def keepers(tensors):
    for t in tensors.values():
        if t.requires_grad:
            t.retain_grad()
    return [name for name, t in tensors.items() if t.requires_grad]
""",
    ),
    Mutant(
        "02.1",
        "tries_it",
        "run backward() and see",
        says="Only look",
        code="""
def keepers(tensors):
    asked = [t for t in tensors.values() if t.requires_grad]
    if asked:
        sum(t.sum() for t in asked).backward()
    found = []
    for name, t in tensors.items():
        if (t.is_leaf or t.retains_grad) and t.grad is not None:
            found.append(name)
    return found
""",
    ),
    Mutant(
        "02.1",
        "forgets_retain_grad",
        "only leaves keep a gradient",
        says="Somebody called `retain_grad()`",
        code="""
def keepers(tensors):
    return [name for name, t in tensors.items() if t.requires_grad and t.is_leaf]
""",
    ),
    Mutant(
        "02.1",
        "views_count",
        "a part of a leaf is a leaf",
        says="A view of a leaf is a result",
        code="""
def keepers(tensors):
    found = []
    for name, t in tensors.items():
        base = t._base if t._is_view() and t._base is not None else t
        if t.requires_grad and (base.is_leaf or t.retains_grad):
            found.append(name)
    return found
""",
    ),
    Mutant(
        "02.1",
        "leaves_first",
        "the leaves come first",
        says="keeps its gradient too",
        code="""
def keepers(tensors):
    leaves = [n for n, t in tensors.items() if t.requires_grad and t.is_leaf]
    return leaves + [n for n, t in tensors.items() if t.retains_grad]
""",
    ),
]

_JACOBIAN = [
    Mutant(
        "02.2",
        "frees_the_graph",
        "a graph can be used as often as one likes",
        says="The first row freed the graph",
        code="""
def jacobian(function, x):
    leaf = x.detach().requires_grad_()
    y = function(leaf)
    rows = [torch.autograd.grad(y, leaf, v)[0] for v in torch.eye(len(y), dtype=y.dtype)]
    return torch.stack(rows)
""",
    ),
    Mutant(
        "02.2",
        "all_at_once",
        "a vector of ones gives all rows",
        says="one row for each output",
        code="""
def jacobian(function, x):
    leaf = x.detach().requires_grad_()
    y = function(leaf)
    return torch.autograd.grad(y, leaf, torch.ones_like(y))[0]
""",
    ),
    Mutant(
        "02.2",
        "one_vector_per_input",
        "v has one number for each input",
        says="one row for each output",
        code="""
def jacobian(function, x):
    leaf = x.detach().requires_grad_()
    y = function(leaf)
    rows = []
    for v in torch.eye(len(leaf), dtype=y.dtype):
        rows.append(torch.autograd.grad(y, leaf, v, retain_graph=True)[0])
    return torch.stack(rows)
""",
    ),
    Mutant(
        "02.2",
        "keeps_a_graph",
        "create_graph does what retain_graph does",
        says="still hangs on a graph",
        code="""
def jacobian(function, x):
    leaf = x.detach().requires_grad_()
    y = function(leaf)
    rows = []
    for v in torch.eye(len(y), dtype=y.dtype):
        rows.append(torch.autograd.grad(y, leaf, v, create_graph=True)[0])
    return torch.stack(rows)
""",
    ),
    Mutant(
        "02.2",
        "piles_up",
        "backward() writes .grad anew",
        says="`backward` adds to `.grad`",
        code="""
def jacobian(function, x):
    leaf = x.detach().requires_grad_()
    rows = []
    for out in function(leaf):
        out.backward(inputs=[leaf], retain_graph=True)
        rows.append(leaf.grad.clone())
    return torch.stack(rows)
""",
    ),
    Mutant(
        "02.2",
        "same_tensor",
        ".grad is a new tensor after each backward()",
        says="is the same tensor each time",
        code="""
def jacobian(function, x):
    leaf = x.detach().requires_grad_()
    rows = []
    for out in function(leaf):
        if leaf.grad is not None:
            leaf.grad.zero_()
        out.backward(inputs=[leaf], retain_graph=True)
        rows.append(leaf.grad)
    return torch.stack(rows)
""",
    ),
    Mutant(
        "02.2",
        "calls_again",
        "each row needs its own forward pass",
        says="all rows come from one forward pass",
        code="""
def jacobian(function, x):
    leaf = x.detach().requires_grad_()
    size = len(function(leaf))
    return torch.stack([torch.autograd.grad(function(leaf)[k], leaf)[0] for k in range(size)])
""",
    ),
    Mutant(
        "02.2",
        "differences",
        "a small step tells the derivative",
        says="Each row needs a clean start",
        code="""
def jacobian(function, x):
    with torch.no_grad():
        base, columns, step = function(x), [], 1e-2
        for k in range(len(x)):
            moved = x.clone()
            moved[k] += step
            columns.append((function(moved) - base) / step)
    return torch.stack(columns, dim=1)
""",
    ),
    Mutant(
        "02.2",
        "transposed",
        "a row belongs to an input",
        says="one row for each output",
        code="""
def jacobian(function, x):
    leaf = x.detach().requires_grad_()
    y = function(leaf)
    units = torch.eye(len(y), dtype=y.dtype)
    rows = [torch.autograd.grad(y, leaf, v, retain_graph=True)[0] for v in units]
    return torch.stack(rows, dim=1)
""",
    ),
    Mutant(
        "02.2",
        "fills_the_weights",
        "backward() concerns x alone",
        says="`backward()` fills every leaf it reaches",
        code="""
def jacobian(function, x):
    leaf = x.detach().requires_grad_()
    rows = []
    for out in function(leaf):
        leaf.grad = None
        out.backward(retain_graph=True)
        rows.append(leaf.grad)
    return torch.stack(rows)
""",
    ),
    Mutant(
        "02.2",
        "changes_x",
        "x may be switched to requires_grad",
        says="`x` itself was changed",
        code="""
def jacobian(function, x):
    x.requires_grad_()
    y = function(x)
    units = torch.eye(len(y), dtype=y.dtype)
    return torch.stack([torch.autograd.grad(y, x, v, retain_graph=True)[0] for v in units])
""",
    ),
    Mutant(
        "02.2",
        "uses_x_grad",
        "if x requires grad already, its .grad is free",
        says="`x.grad` belongs to the caller",
        code="""
def jacobian(function, x):
    leaf = x if x.requires_grad else x.detach().requires_grad_()
    rows = []
    for out in function(leaf):
        leaf.grad = None
        out.backward(inputs=[leaf], retain_graph=True)
        rows.append(leaf.grad)
    leaf.grad = None
    return torch.stack(rows)
""",
    ),
]

_METER_HEAD = """
class GradientMeter:
    def __init__(self, model):
        self.model = model
        self.norms = {}
        self.handles = []

    def layers(self):
        return [(n, m) for n, m in self.model.named_modules() if not list(m.children())]
"""
_METER_EXIT = """
    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()
"""

_METER = [
    Mutant(
        "02.3",
        "returns_nothing",
        "with ... as gives the object by itself",
        says="return `self`",
        code=_METER_HEAD
        + """
    def __enter__(self):
        for name, module in self.layers():
            self.norms[name] = []
            self.handles.append(module.register_forward_hook(self.watch(name)))

    def watch(self, name):
        def look(module, inputs, output):
            if output.requires_grad:
                keep = lambda grad: self.norms[name].append(grad.norm().item())
                self.handles.append(output.register_hook(keep))

        return look
"""
        + _METER_EXIT,
    ),
    Mutant(
        "02.3",
        "returns_the_norm",
        "what a hook returns goes nowhere",
        says="A hook is called with what torch has for it",
        code=_METER_HEAD
        + """
    def __enter__(self):
        for name, module in self.layers():
            self.norms[name] = []
            self.handles.append(module.register_forward_hook(self.watch(name)))
        return self

    def watch(self, name):
        def keep(grad):
            self.norms[name].append(grad.norm().item())
            return self.norms[name][-1]

        def look(module, inputs, output):
            if output.requires_grad:
                self.handles.append(output.register_hook(keep))

        return look
"""
        + _METER_EXIT,
    ),
    Mutant(
        "02.3",
        "containers_too",
        "every module is a layer",
        says="a module without modules inside",
        code=_METER_HEAD
        + """
    def __enter__(self):
        for name, module in self.model.named_modules():
            self.norms[name] = []
            self.handles.append(module.register_forward_hook(self.watch(name)))
        return self

    def watch(self, name):
        def look(module, inputs, output):
            if output.requires_grad:
                keep = lambda grad: self.norms[name].append(grad.norm().item())
                self.handles.append(output.register_hook(keep))

        return look
"""
        + _METER_EXIT,
    ),
    Mutant(
        "02.3",
        "weights_only",
        "the gradient of a layer is that of its weight",
        says="with or without weights",
        code=_METER_HEAD
        + """
    def __enter__(self):
        for name, module in self.layers():
            if hasattr(module, "weight"):
                self.norms[name] = []
                self.handles.append(module.weight.register_hook(self.watch(name)))
        return self

    def watch(self, name):
        return lambda grad: self.norms[name].append(grad.norm().item())
"""
        + _METER_EXIT,
    ),
    Mutant(
        "02.3",
        "keeps_tensors",
        "a tensor of one element is a number",
        says="Keep each length as a `float`",
        code=_METER_HEAD
        + """
    def __enter__(self):
        for name, module in self.layers():
            self.norms[name] = []
            self.handles.append(module.register_forward_hook(self.watch(name)))
        return self

    def watch(self, name):
        def look(module, inputs, output):
            if output.requires_grad:
                keep = lambda grad: self.norms[name].append(grad.norm())
                self.handles.append(output.register_hook(keep))

        return look
"""
        + _METER_EXIT,
    ),
    Mutant(
        "02.3",
        "last_name",
        "a lambda in a loop remembers the loop's value",
        says="under its own name",
        code=_METER_HEAD
        + """
    def __enter__(self):
        for name, module in self.layers():
            self.norms[name] = []

            def look(module, inputs, output):
                if output.requires_grad:
                    keep = lambda grad: self.norms[name].append(grad.norm().item())
                    self.handles.append(output.register_hook(keep))

            self.handles.append(module.register_forward_hook(look))
        return self
"""
        + _METER_EXIT,
    ),
    Mutant(
        "02.3",
        "largest_element",
        "the size of a gradient is its largest element",
        says="Euclidean length",
        code=_METER_HEAD
        + """
    def __enter__(self):
        for name, module in self.layers():
            self.norms[name] = []
            self.handles.append(module.register_forward_hook(self.watch(name)))
        return self

    def watch(self, name):
        def look(module, inputs, output):
            if output.requires_grad:
                keep = lambda grad: self.norms[name].append(grad.abs().max().item())
                self.handles.append(output.register_hook(keep))

        return look
"""
        + _METER_EXIT,
    ),
    Mutant(
        "02.3",
        "of_the_input",
        "the gradient at a layer is that of its input",
        says="at the layer's **output**",
        code=_METER_HEAD
        + """
    def __enter__(self):
        for name, module in self.layers():
            self.norms[name] = []
            self.handles.append(module.register_forward_hook(self.watch(name)))
        return self

    def watch(self, name):
        def look(module, inputs, output):
            where = inputs[0] if inputs[0].requires_grad else output
            if where.requires_grad:
                keep = lambda grad: self.norms[name].append(grad.norm().item())
                self.handles.append(where.register_hook(keep))

        return look
"""
        + _METER_EXIT,
    ),
    Mutant(
        "02.3",
        "normalises",
        "a meter may tidy up the gradient on the way",
        says="must not change the gradient",
        code=_METER_HEAD
        + """
    def __enter__(self):
        for name, module in self.layers():
            self.norms[name] = []
            self.handles.append(module.register_forward_hook(self.watch(name)))
        return self

    def watch(self, name):
        def keep(grad):
            self.norms[name].append(grad.norm().item())
            return grad.clamp(-0.1, 0.1) if name == "0.0" else None

        def look(module, inputs, output):
            if output.requires_grad:
                self.handles.append(output.register_hook(keep))

        return look
"""
        + _METER_EXIT,
    ),
    Mutant(
        "02.3",
        "last_pass_only",
        "the newest number is enough",
        says="adds its entry behind the earlier ones",
        code=_METER_HEAD
        + """
    def __enter__(self):
        for name, module in self.layers():
            self.norms[name] = []
            self.handles.append(module.register_forward_hook(self.watch(name)))
        return self

    def watch(self, name):
        def keep(grad):
            self.norms[name] = [grad.norm().item()]

        def look(module, inputs, output):
            if output.requires_grad:
                self.handles.append(output.register_hook(keep))

        return look
"""
        + _METER_EXIT,
    ),
    Mutant(
        "02.3",
        "full_backward_hook",
        "a module's full backward hook works everywhere",
        says="The ReLU works in place here",
        code=_METER_HEAD
        + """
    def __enter__(self):
        for name, module in self.layers():
            self.norms[name] = []
            self.handles.append(module.register_full_backward_pre_hook(self.watch(name)))
        return self

    def watch(self, name):
        def look(module, grads):
            self.norms[name].append(grads[0].norm().item())

        return look
"""
        + _METER_EXIT,
    ),
    Mutant(
        "02.3",
        "always_hooks",
        "every output takes a hook",
        says="Under `no_grad` an output doesn't require grad",
        code=_METER_HEAD
        + """
    def __enter__(self):
        for name, module in self.layers():
            self.norms[name] = []
            self.handles.append(module.register_forward_hook(self.watch(name)))
        return self

    def watch(self, name):
        def look(module, inputs, output):
            keep = lambda grad: self.norms[name].append(grad.norm().item())
            self.handles.append(output.register_hook(keep))

        return look
"""
        + _METER_EXIT,
    ),
    Mutant(
        "02.3",
        "tensor_hooks_left",
        "only modules have handles",
        says="the hooks of the tensors have handles too",
        code=_METER_HEAD
        + """
    def __enter__(self):
        for name, module in self.layers():
            self.norms[name] = []
            self.handles.append(module.register_forward_hook(self.watch(name)))
        return self

    def watch(self, name):
        def look(module, inputs, output):
            if output.requires_grad:
                output.register_hook(lambda grad: self.norms[name].append(grad.norm().item()))

        return look
"""
        + _METER_EXIT,
    ),
    Mutant(
        "02.3",
        "swallows_errors",
        "__exit__ returns True when all went well",
        says="passes through `__exit__`",
        code=_METER_HEAD
        + """
    def __enter__(self):
        for name, module in self.layers():
            self.norms[name] = []
            self.handles.append(module.register_forward_hook(self.watch(name)))
        return self

    def watch(self, name):
        def look(module, inputs, output):
            if output.requires_grad:
                keep = lambda grad: self.norms[name].append(grad.norm().item())
                self.handles.append(output.register_hook(keep))

        return look
"""
        + _METER_EXIT
        + """
        return True
""",
    ),
    Mutant(
        "02.3",
        "hooks_stay",
        "a switch is as good as removing the hooks",
        says="Hooks stay on",
        code=_METER_HEAD
        + """
    def __enter__(self):
        self.open = True
        for name, module in self.layers():
            self.norms[name] = []
            module.register_forward_hook(self.watch(name))
        return self

    def watch(self, name):
        def keep(grad):
            if self.open:
                self.norms[name].append(grad.norm().item())

        def look(module, inputs, output):
            if output.requires_grad:
                output.register_hook(keep)

        return look

    def __exit__(self, *error):
        self.open = False
""",
    ),
]

_FIT_HEAD = """
def fit(cell, chunks, lr):
    losses, state = [], None
    for inputs, targets in chunks:
        out, state = cell(inputs, state)
        loss = (out - targets).square().mean()
"""

_FIT = [
    Mutant(
        "02.4",
        "nothing_recorded",
        "no_grad belongs around the whole step",
        says="A loss needs its graph",
        code="""
def fit(cell, chunks, lr):
    losses, state = [], None
    for inputs, targets in chunks:
        with torch.no_grad():
            out, state = cell(inputs, state)
            loss = (out - targets).square().mean()
            cell.zero_grad()
            loss.backward()
            for p in cell.parameters():
                p -= lr * p.grad
        losses.append(loss.item())
    return losses
""",
    ),
    Mutant(
        "02.4",
        "leaf_in_place",
        "without .data the plain in-place line works",
        says="only where nothing is recorded",
        code=_FIT_HEAD
        + """
        state = state.detach()
        cell.zero_grad()
        loss.backward()
        for p in cell.parameters():
            p -= lr * p.grad
        losses.append(loss.item())
    return losses
""",
    ),
    Mutant(
        "02.4",
        "new_name",
        "p = p - ... changes the weight",
        says="only gives the name to a new tensor",
        code=_FIT_HEAD
        + """
        state = state.detach()
        cell.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in cell.parameters():
                p = p - lr * p.grad
        losses.append(loss.item())
    return losses
""",
    ),
    Mutant(
        "02.4",
        "emptied_too_early",
        "zero_grad() belongs right before the update",
        says="a gradient emptied too early",
        code=_FIT_HEAD
        + """
        state = state.detach()
        loss.backward()
        cell.zero_grad(set_to_none=False)
        with torch.no_grad():
            for p in cell.parameters():
                p -= lr * p.grad
        losses.append(loss.item())
    return losses
""",
    ),
    Mutant(
        "02.4",
        "losses_left",
        "a loss is a number",
        says="keeps its whole graph alive",
        code=_FIT_HEAD
        + """
        state = state.detach()
        cell.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in cell.parameters():
                p -= lr * p.grad
        losses.append(loss)
    return losses
""",
    ),
    Mutant(
        "02.4",
        "emptied_at_the_end",
        "before the first chunk .grad is empty anyway",
        says="empty it before, not after",
        code=_FIT_HEAD
        + """
        state = state.detach()
        loss.backward()
        with torch.no_grad():
            for p in cell.parameters():
                p -= lr * p.grad
        cell.zero_grad()
        losses.append(loss.item())
    return losses
""",
    ),
    Mutant(
        "02.4",
        "piles_up",
        "backward() writes .grad anew",
        says="`backward()` adds to",
        code=_FIT_HEAD
        + """
        state = state.detach()
        loss.backward()
        with torch.no_grad():
            for p in cell.parameters():
                p -= lr * p.grad
        losses.append(loss.item())
    return losses
""",
    ),
    Mutant(
        "02.4",
        "emptied_once",
        "once at the start is enough",
        says="gradients of earlier chunks move the weights once more",
        code="""
def fit(cell, chunks, lr):
    losses, state = [], None
    cell.zero_grad()
    for inputs, targets in chunks:
        out, state = cell(inputs, state)
        loss = (out - targets).square().mean()
        state = state.detach()
        loss.backward()
        with torch.no_grad():
            for p in cell.parameters():
                p -= lr * p.grad
        losses.append(loss.item())
    return losses
""",
    ),
    Mutant(
        "02.4",
        "one_update",
        "accumulated gradients can wait for the end",
        says="There is one update for each chunk",
        code="""
def fit(cell, chunks, lr):
    losses, state = [], None
    cell.zero_grad()
    for inputs, targets in chunks:
        out, state = cell(inputs, state)
        loss = (out - targets).square().mean()
        state = state.detach()
        loss.backward()
        losses.append(loss.item())
    with torch.no_grad():
        for p in cell.parameters():
            p -= lr * p.grad
    return losses
""",
    ),
    Mutant(
        "02.4",
        "state_kept",
        "retain_graph lets the chunks share a graph",
        says="cut the state's graph",
        code=_FIT_HEAD
        + """
        cell.zero_grad()
        loss.backward(retain_graph=True)
        with torch.no_grad():
            for p in cell.parameters():
                p -= lr * p.grad
        losses.append(loss.item())
    return losses
""",
    ),
    Mutant(
        "02.4",
        "state_kept_by_data",
        ".data makes the version error go away, so all is well",
        says="cut the state's graph",
        code=_FIT_HEAD
        + """
        cell.zero_grad()
        loss.backward(retain_graph=True)
        for p in cell.parameters():
            p.data -= lr * p.grad
        losses.append(loss.item())
    return losses
""",
    ),
    Mutant(
        "02.4",
        "state_forgotten",
        "a fresh state cuts the graph",
        says="the cell still remembers",
        code=_FIT_HEAD
        + """
        state = None
        cell.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in cell.parameters():
                p -= lr * p.grad
        losses.append(loss.item())
    return losses
""",
    ),
    Mutant(
        "02.4",
        "retain_left",
        "retain_graph does no harm",
        says="nothing needs `retain_graph=True`",
        code=_FIT_HEAD
        + """
        state = state.detach()
        cell.zero_grad()
        loss.backward(retain_graph=True)
        with torch.no_grad():
            for p in cell.parameters():
                p -= lr * p.grad
        losses.append(loss.item())
    return losses
""",
    ),
    Mutant(
        "02.4",
        "data_left",
        ".data is how one changes a weight",
        says="a change through `.data` isn't counted",
        code=_FIT_HEAD
        + """
        state = state.detach()
        cell.zero_grad()
        loss.backward()
        for p in cell.parameters():
            p.data -= lr * p.grad
        losses.append(loss.item())
    return losses
""",
    ),
    Mutant(
        "02.4",
        "detached_update",
        "detach() gives a copy that is safe to write to",
        says="`.data` isn't counted",
        code=_FIT_HEAD
        + """
        state = state.detach()
        cell.zero_grad()
        loss.backward()
        for p in cell.parameters():
            p.data = p.detach() - lr * p.grad
        losses.append(loss.item())
    return losses
""",
    ),
]

_CULPRIT_IMPORTS = """
def _with_anomaly(loss_fn, weights, **arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            torch.autograd.grad(loss_fn(), weights, **arguments)

"""

_CULPRIT = [
    Mutant(
        "02.5",
        "healthy",
        "a loss that is a number has good gradients",
        says="that **made** the NaN",
        code="""
def culprit(loss_fn, weights):
    loss = loss_fn()
    return loss.grad_fn.name() if loss.isnan() else None
""",
    ),
    Mutant(
        "02.5",
        "where_it_starts",
        "the last op of the loss is to blame",
        says="neither where the way back starts",
        code="""
def culprit(loss_fn, weights):
    loss = loss_fn()
    grads = torch.autograd.grad(loss, weights, allow_unused=True)
    if any(g is not None and g.isnan().any() for g in grads):
        return loss.grad_fn.name()
    return None
""",
    ),
    Mutant(
        "02.5",
        "where_it_ends",
        "the node where the NaN is found made it",
        says="nor where it ends",
        code="""
def culprit(loss_fn, weights):
    loss, found = loss_fn(), []

    def watch(node):
        def look(inputs, outputs):
            if any(g is not None and g.isnan().any() for g in inputs):
                found.append(node.name())

        node.register_hook(look)

    todo = [loss.grad_fn] if loss.grad_fn else []
    for node in todo:
        watch(node)
        todo += [n for n, _ in node.next_functions if n is not None and n not in todo]
    torch.autograd.grad(loss, weights, allow_unused=True)
    return found[-1] if found else None
""",
    ),
    Mutant(
        "02.5",
        "whole_message",
        "the message is the answer",
        says="not the whole message",
        code=_CULPRIT_IMPORTS
        + """
def culprit(loss_fn, weights):
    try:
        _with_anomaly(loss_fn, weights, allow_unused=True)
    except RuntimeError as error:
        if "nan" not in str(error):
            raise
        return str(error)
    return None
""",
    ),
    Mutant(
        "02.5",
        "always_sqrt",
        "it is always the square root",
        says="doesn't take the log of 0",
        code="""
def culprit(loss_fn, weights):
    grads = torch.autograd.grad(loss_fn(), weights, allow_unused=True)
    bad = any(g is not None and g.isnan().any() for g in grads)
    return "SqrtBackward0" if bad else None
""",
    ),
    Mutant(
        "02.5",
        "mode_stays_on",
        "a switch turned on does no harm",
        says="Anomaly mode is still on",
        code="""
def culprit(loss_fn, weights):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.autograd.set_detect_anomaly(True)
        try:
            torch.autograd.grad(loss_fn(), weights, allow_unused=True)
        except RuntimeError as error:
            found = re.search(r"Function '(\\w+)' returned nan", str(error))
            if found is None:
                raise
            return found[1]
    return None
""",
    ),
    Mutant(
        "02.5",
        "mode_put_off",
        "afterwards anomaly mode is off",
        says="leave it as it was",
        code="""
def culprit(loss_fn, weights):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.autograd.set_detect_anomaly(True)
        try:
            torch.autograd.grad(loss_fn(), weights, allow_unused=True)
        except RuntimeError as error:
            found = re.search(r"Function '(\\w+)' returned nan", str(error))
            if found is None:
                raise
            return found[1]
        finally:
            torch.autograd.set_detect_anomaly(False)
    return None
""",
    ),
    Mutant(
        "02.5",
        "leaves_gradients",
        "backward() is how one goes back",
        says="a diagnosis leaves no trace",
        code="""
def culprit(loss_fn, weights):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            loss = loss_fn()
            try:
                loss.backward()
            except RuntimeError as error:
                found = re.search(r"Function '(\\w+)' returned nan", str(error))
                if found is None:
                    raise
                return found[1]
    return None
""",
    ),
    Mutant(
        "02.5",
        "looks_forward",
        "a NaN in the loss makes NaN gradients",
        says="Look at the way back",
        code=_CULPRIT_IMPORTS
        + """
def culprit(loss_fn, weights):
    loss = loss_fn()
    if loss.isnan():
        return loss.grad_fn.name()
    try:
        _with_anomaly(loss_fn, weights, allow_unused=True)
    except RuntimeError as error:
        found = re.search(r"Function '(\\w+)' returned nan", str(error))
        if found is None:
            raise
        return found[1]
    return None
""",
    ),
    Mutant(
        "02.5",
        "infinity_too",
        "what is not finite is NaN",
        says="infinity is not NaN",
        code="""
def culprit(loss_fn, weights):
    loss, found = loss_fn(), []

    def watch(node):
        def look(inputs, outputs):
            if any(g is not None and not g.isfinite().all() for g in inputs):
                found.append(node.name())

        node.register_hook(look)

    todo = [loss.grad_fn] if loss.grad_fn else []
    for node in todo:
        watch(node)
        todo += [n for n, _ in node.next_functions if n is not None and n not in todo]
    torch.autograd.grad(loss, weights, allow_unused=True)
    return found[0] if found else None
""",
    ),
    Mutant(
        "02.5",
        "all_must_be_used",
        "every weight is part of every loss",
        says="The first of the weights is not used",
        code=_CULPRIT_IMPORTS
        + """
def culprit(loss_fn, weights):
    try:
        _with_anomaly(loss_fn, weights)
    except RuntimeError as error:
        found = re.search(r"Function '(\\w+)' returned nan", str(error))
        if found is None:
            raise
        return found[1]
    return None
""",
    ),
    Mutant(
        "02.5",
        "swallows",
        "every RuntimeError is about NaN",
        says="swallowed, it would look like good health",
        code=_CULPRIT_IMPORTS
        + """
def culprit(loss_fn, weights):
    try:
        _with_anomaly(loss_fn, weights, allow_unused=True)
    except RuntimeError as error:
        found = re.search(r"Function '(\\w+)' returned nan", str(error))
        return found and found[1]
    return None
""",
    ),
    Mutant(
        "02.5",
        "no_graph_no_matter",
        "a loss without a graph is a healthy one",
        says="This loss has no graph",
        code=_CULPRIT_IMPORTS
        + """
def culprit(loss_fn, weights):
    if not loss_fn().requires_grad:
        return None
    try:
        _with_anomaly(loss_fn, weights, allow_unused=True)
    except RuntimeError as error:
        found = re.search(r"Function '(\\w+)' returned nan", str(error))
        if found is None:
            raise
        return found[1]
    return None
""",
    ),
]

MUTANTS = [*_KEEPERS, *_JACOBIAN, *_METER, *_FIT, *_CULPRIT]

ALTERNATIVES = {
    "02.1": """
def keepers(tensors):
    found = []
    for name in tensors:
        tensor = tensors[name]
        asked = tensor.requires_grad
        if asked and tensor.grad_fn is None:
            found.append(name)
        elif tensor.retains_grad:
            found.append(name)
    return found
""",
    "02.2": """
def jacobian(function, x):
    leaf = x.clone().detach().requires_grad_(True)
    out = function(leaf)
    matrix = torch.zeros(len(out), len(x), dtype=x.dtype)
    for k in range(len(out)):
        leaf.grad = None
        out[k].backward(inputs=[leaf], retain_graph=k + 1 < len(out))
        matrix[k] = leaf.grad
    return matrix
""",
    "02.3": """
from contextlib import ExitStack
from functools import partial


class GradientMeter:
    def __init__(self, model):
        self.model = model
        self.norms = {}
        self.open = ExitStack()

    def __enter__(self):
        for name, module in self.model.named_modules():
            if next(module.children(), None) is None:
                self.norms[name] = []
                hook = module.register_forward_hook(partial(self._forward, name))
                self.open.callback(hook.remove)
        return self

    def _forward(self, name, module, inputs, output):
        if output.grad_fn is not None:
            hook = output.register_hook(partial(self._gradient, name))
            self.open.callback(hook.remove)

    def _gradient(self, name, grad):
        self.norms[name].append(float(torch.linalg.vector_norm(grad)))

    def __exit__(self, kind, error, where):
        self.open.close()
""",
    "02.4": """
def fit(cell, chunks, lr):
    optimizer = torch.optim.SGD(cell.parameters(), lr=lr)
    losses, state = [], None
    for inputs, targets in chunks:
        if state is not None:
            state = state.detach()
        optimizer.zero_grad()
        out, state = cell(inputs, state)
        loss = (out - targets).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach().tolist())
    return losses
""",
    "02.5": """
def culprit(loss_fn, weights):
    loss, found = loss_fn(), []

    def watch(node):
        def look(inputs, outputs):
            if any(g is not None and g.isnan().any() for g in inputs):
                found.append(node.name())

        node.register_hook(look)

    seen = {loss.grad_fn} if loss.grad_fn is not None else set()
    todo = list(seen)
    while todo:
        node = todo.pop()
        watch(node)
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                todo.append(following)
    torch.autograd.grad(loss, weights, allow_unused=True)
    return found[0] if found else None
""",
}
