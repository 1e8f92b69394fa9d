"""Wrong answers to the exercises of lesson 03 that people really give, and what each one believes.

A test proves that every one is rejected: by the visible check with a message that contains `says`,
and by the grader with no points. `ALTERNATIVES` are right answers in another style than ours; they
must pass both.
"""

from pytorch_lab.grading import Mutant

_TRAINABLE = [
    Mutant(
        "03.1",
        "nothing",
        "an empty dict will do",
        says="listed under its name",
        code="""
def trainable(model):
    return {}
""",
    ),
    Mutant(
        "03.1",
        "one_number",
        "the total is what was asked for",
        says="listed under its name",
        code="""
def trainable(model):
    return [sum(p.numel() for p in model.parameters() if p.requires_grad)]
""",
    ),
    Mutant(
        "03.1",
        "rows",
        "len(p) is the number of elements",
        says="not its rows",
        code="""
def trainable(model):
    return {name: len(p) for name, p in model.named_parameters() if p.requires_grad}
""",
    ),
    Mutant(
        "03.1",
        "shapes",
        "a shape is as good as a number",
        says="not its shape",
        code="""
def trainable(model):
    return {name: tuple(p.shape) for name, p in model.named_parameters() if p.requires_grad}
""",
    ),
    Mutant(
        "03.1",
        "own_only",
        "a model's parameters are those of its own attributes and of their attributes",
        says="A model is a tree",
        code="""
def trainable(model):
    found = {}
    for name, p in model.named_parameters(recurse=False):
        if p.requires_grad:
            found[name] = p.numel()
    for child_name, child in model.named_children():
        for name, p in child.named_parameters(recurse=False):
            if p.requires_grad:
                found[f"{child_name}.{name}"] = p.numel()
    return found
""",
    ),
    Mutant(
        "03.1",
        "state_dict",
        "state_dict() is the list of what is trained",
        says="no optimizer changes a buffer",
        code="""
def trainable(model):
    frozen = {name for name, p in model.named_parameters() if not p.requires_grad}
    seen, found = set(), {}
    for name, tensor in model.state_dict().items():
        if name not in frozen and tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            found[name] = tensor.numel()
    return found
""",
    ),
    Mutant(
        "03.1",
        "tied_twice",
        "a shared weight is trained once for each of its names",
        says="one tensor with two names",
        code="""
def trainable(model):
    every = model.named_parameters(remove_duplicate=False)
    return {name: p.numel() for name, p in every if p.requires_grad}
""",
    ),
    Mutant(
        "03.1",
        "frozen_too",
        "parameters() gives only what is trained",
        says="The first layer is frozen",
        code="""
def trainable(model):
    return {name: p.numel() for name, p in model.named_parameters()}
""",
    ),
    Mutant(
        "03.1",
        "unfreezes",
        "a model may be switched to training in order to look at it",
        says="The first layer is frozen",
        code="""
def trainable(model):
    model.requires_grad_(True)
    return {name: p.numel() for name, p in model.named_parameters() if p.requires_grad}
""",
    ),
]

_TOWER = [
    Mutant(
        "03.2",
        "plain_list",
        "a list of layers registers them",
        says="a plain list hides its layers",
        code="""
class Tower(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = [nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:])]
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)
""",
    ),
    Mutant(
        "03.2",
        "made_in_forward",
        "forward is a fine place to make a layer",
        says="a new one each time",
        code="""
class Tower(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes

    def forward(self, x):
        pairs = list(zip(self.sizes[:-1], self.sizes[1:]))
        for a, b in pairs[:-1]:
            x = torch.relu(nn.Linear(a, b)(x))
        return nn.Linear(*pairs[-1])(x)
""",
    ),
    Mutant(
        "03.2",
        "one_layer_many_times",
        "[layer] * n makes n layers",
        says="a layer of its own",
        code="""
class Tower(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        made = {}
        for pair in zip(sizes[:-1], sizes[1:]):
            made.setdefault(pair, nn.Linear(*pair))
        self.layers = nn.ModuleList(made[pair] for pair in zip(sizes[:-1], sizes[1:]))
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)
""",
    ),
    Mutant(
        "03.2",
        "fixed_height",
        "the example's two layers are all there ever are",
        says="Each pair of neighbouring sizes",
        code="""
class Tower(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.first = nn.Linear(sizes[0], sizes[1])
        self.last = nn.Linear(sizes[1], sizes[-1])
        for layer in (self.first, self.last):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))
""",
    ),
    Mutant(
        "03.2",
        "zeros",
        "the right shape is enough",
        says="cut from the graph",
        code="""
class Tower(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:]))
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        return torch.zeros(len(x), self.layers[-1].out_features)
""",
    ),
    Mutant(
        "03.2",
        "no_gradient",
        "no_grad only makes things faster",
        says="cut from the graph",
        code="""
class Tower(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:]))
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    @torch.no_grad()
    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)
""",
    ),
    Mutant(
        "03.2",
        "relu_after_all",
        "every layer has an activation, the last one too",
        says="after each but the last",
        code="""
class Tower(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:]))
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x
""",
    ),
    Mutant(
        "03.2",
        "no_relu",
        "stacked linear layers are a deep network",
        says="ReLU stands between the layers",
        code="""
class Tower(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:])))
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        return self.layers(x)
""",
    ),
    Mutant(
        "03.2",
        "default_start",
        "nn.Linear starts with Kaiming's scale for ReLU",
        says="The default of `nn.Linear`",
        code="""
class Tower(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:]))
        for layer in self.layers:
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)
""",
    ),
    Mutant(
        "03.2",
        "standard_normal_start",
        "weights start from the standard normal distribution",
        says="The signal would explode",
        code="""
class Tower(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes[:-1], sizes[1:]))
        for layer in self.layers:
            nn.init.normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)
""",
    ),
]

_RUNNING_NORM = [
    Mutant(
        "03.3",
        "parameters",
        "all state of a module is an nn.Parameter",
        says="An optimizer would train the running values",
        code="""
class RunningNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.mean = nn.Parameter(torch.zeros(features))
        self.var = nn.Parameter(torch.ones(features))
        self.register_buffer("seen", torch.tensor(0), persistent=False)

    def forward(self, x):
        if not self.training:
            return (x - self.mean) / (self.var + self.eps).sqrt()
        if len(x) < 2:
            raise ValueError("one row")
        with torch.no_grad():
            self.mean.lerp_(x.mean(0), self.momentum)
            self.var.lerp_(x.var(0), self.momentum)
            self.seen += 1
        return (x - x.mean(0)) / (x.var(0, correction=0) + self.eps).sqrt()
""",
    ),
    Mutant(
        "03.3",
        "plain_attributes",
        "a tensor attribute belongs to the module",
        says="A plain tensor attribute stays",
        code="""
class RunningNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.mean = torch.zeros(features)
        self.var = torch.ones(features)
        self.seen = torch.tensor(0)

    def forward(self, x):
        if not self.training:
            return (x - self.mean) / (self.var + self.eps).sqrt()
        if len(x) < 2:
            raise ValueError("one row")
        with torch.no_grad():
            self.mean.lerp_(x.mean(0), self.momentum)
            self.var.lerp_(x.var(0), self.momentum)
            self.seen += 1
        return (x - x.mean(0)) / (x.var(0, correction=0) + self.eps).sqrt()
""",
    ),
    Mutant(
        "03.3",
        "all_saved",
        "every buffer belongs into the checkpoint",
        says="`seen` stays out",
        code="""
class RunningNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))
        self.register_buffer("seen", torch.tensor(0))

    def forward(self, x):
        if not self.training:
            return (x - self.mean) / (self.var + self.eps).sqrt()
        if len(x) < 2:
            raise ValueError("one row")
        with torch.no_grad():
            self.mean.lerp_(x.mean(0), self.momentum)
            self.var.lerp_(x.var(0), self.momentum)
            self.seen += 1
        return (x - x.mean(0)) / (x.var(0, correction=0) + self.eps).sqrt()
""",
    ),
    Mutant(
        "03.3",
        "zeros",
        "normalised values are zero on average, so zero is close",
        says="normalised by its own mean",
        code="""
class RunningNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))
        self.register_buffer("seen", torch.tensor(0), persistent=False)

    def forward(self, x):
        return torch.zeros_like(x)
""",
    ),
    Mutant(
        "03.3",
        "running_in_train",
        "train mode normalises with the running values too",
        says="normalised by its own mean",
        code="""
class RunningNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))
        self.register_buffer("seen", torch.tensor(0), persistent=False)

    def forward(self, x):
        if self.training:
            if len(x) < 2:
                raise ValueError("one row")
            with torch.no_grad():
                self.mean = self.mean.lerp(x.mean(0), self.momentum)
                self.var = self.var.lerp(x.var(0), self.momentum)
                self.seen += 1
        return (x - self.mean) / (self.var + self.eps).sqrt()
""",
    ),
    Mutant(
        "03.3",
        "constants_for_autograd",
        "the batch's mean and variance are constants for the gradient",
        says="the gradient flows through them too",
        code="""
class RunningNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))
        self.register_buffer("seen", torch.tensor(0), persistent=False)

    def forward(self, x):
        if not self.training:
            return (x - self.mean) / (self.var + self.eps).sqrt()
        if len(x) < 2:
            raise ValueError("one row")
        with torch.no_grad():
            mean, var = x.mean(0), x.var(0, correction=0)
            self.mean.lerp_(mean, self.momentum)
            self.var.lerp_(x.var(0), self.momentum)
            self.seen += 1
        return (x - mean) / (var + self.eps).sqrt()
""",
    ),
    Mutant(
        "03.3",
        "graph_kept",
        "an average of tensors is just a number",
        says="keep the graph of every batch so far",
        code="""
class RunningNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))
        self.register_buffer("seen", torch.tensor(0), persistent=False)

    def forward(self, x):
        if not self.training:
            return (x - self.mean) / (self.var + self.eps).sqrt()
        if len(x) < 2:
            raise ValueError("one row")
        self.mean = (1 - self.momentum) * self.mean + self.momentum * x.mean(0)
        self.var = (1 - self.momentum) * self.var + self.momentum * x.var(0)
        self.seen += 1
        return (x - x.mean(0)) / (x.var(0, correction=0) + self.eps).sqrt()
""",
    ),
    Mutant(
        "03.3",
        "momentum_reversed",
        "momentum is how much of the old value is kept, as in an optimizer",
        says="keeps (1 - momentum) of the old value",
        code="""
class RunningNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))
        self.register_buffer("seen", torch.tensor(0), persistent=False)

    def forward(self, x):
        if not self.training:
            return (x - self.mean) / (self.var + self.eps).sqrt()
        if len(x) < 2:
            raise ValueError("one row")
        with torch.no_grad():
            self.mean.lerp_(x.mean(0), 1 - self.momentum)
            self.var.lerp_(x.var(0), 1 - self.momentum)
            self.seen += 1
        return (x - x.mean(0)) / (x.var(0, correction=0) + self.eps).sqrt()
""",
    ),
    Mutant(
        "03.3",
        "one_variance",
        "the variance that normalises is the one to remember",
        says="the variance with N - 1 in it",
        code="""
class RunningNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))
        self.register_buffer("seen", torch.tensor(0), persistent=False)

    def forward(self, x):
        if not self.training:
            return (x - self.mean) / (self.var + self.eps).sqrt()
        if len(x) < 2:
            raise ValueError("one row")
        mean, var = x.mean(0), x.var(0, correction=0)
        with torch.no_grad():
            self.mean.lerp_(mean, self.momentum)
            self.var.lerp_(var, self.momentum)
            self.seen += 1
        return (x - mean) / (var + self.eps).sqrt()
""",
    ),
    Mutant(
        "03.3",
        "deaf_to_eval",
        "a batch is always normalised by itself",
        says="In eval mode the running values normalise",
        code="""
class RunningNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))
        self.register_buffer("seen", torch.tensor(0), persistent=False)

    def forward(self, x):
        if self.training:
            if len(x) < 2:
                raise ValueError("one row")
            with torch.no_grad():
                self.mean.lerp_(x.mean(0), self.momentum)
                self.var.lerp_(x.var(0), self.momentum)
                self.seen += 1
        return (x - x.mean(0)) / (x.var(0, correction=0) + self.eps).sqrt()
""",
    ),
    Mutant(
        "03.3",
        "learns_in_eval",
        "every batch that passes is one more to learn from",
        says="Eval mode changes nothing",
        code="""
class RunningNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))
        self.register_buffer("seen", torch.tensor(0), persistent=False)

    def forward(self, x):
        if self.training:
            if len(x) < 2:
                raise ValueError("one row")
            out = (x - x.mean(0)) / (x.var(0, correction=0) + self.eps).sqrt()
        else:
            out = (x - self.mean) / (self.var + self.eps).sqrt()
        if len(x) > 1:
            with torch.no_grad():
                self.mean = self.mean.lerp(x.mean(0), self.momentum)
                self.var = self.var.lerp(x.var(0), self.momentum)
                self.seen = self.seen + self.training
        return out
""",
    ),
    Mutant(
        "03.3",
        "one_row_is_fine",
        "a single row has variance 0",
        says="One row has no variance",
        code="""
class RunningNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))
        self.register_buffer("seen", torch.tensor(0), persistent=False)

    def forward(self, x):
        if not self.training:
            return (x - self.mean) / (self.var + self.eps).sqrt()
        var = x.var(0, correction=0)
        with torch.no_grad():
            self.mean.lerp_(x.mean(0), self.momentum)
            self.var.lerp_(var * len(x) / max(len(x) - 1, 1), self.momentum)
            self.seen += 1
        return (x - x.mean(0)) / (var + self.eps).sqrt()
""",
    ),
    Mutant(
        "03.3",
        "no_grad_is_eval",
        "under no_grad a module is in eval mode",
        says="`no_grad` isn't eval mode",
        code="""
class RunningNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))
        self.register_buffer("seen", torch.tensor(0), persistent=False)

    def forward(self, x):
        if not (self.training and torch.is_grad_enabled()):
            return (x - self.mean) / (self.var + self.eps).sqrt()
        if len(x) < 2:
            raise ValueError("one row")
        with torch.no_grad():
            self.mean.lerp_(x.mean(0), self.momentum)
            self.var.lerp_(x.var(0), self.momentum)
            self.seen += 1
        return (x - x.mean(0)) / (x.var(0, correction=0) + self.eps).sqrt()
""",
    ),
]

_READER_HEAD = """
class Reader(nn.Module):
    def __init__(self, vocabulary, width, classes, p=0.5):
        super().__init__()
        self.p = p
        self.embed = nn.Embedding(vocabulary, width)
"""

_READER = [
    Mutant(
        "03.4",
        "list_left",
        "the heads were found by forward, so they are registered",
        says="The optimizer doesn't see the heads",
        code=_READER_HEAD
        + """
        self.register_buffer("counts", torch.ones(vocabulary))
        self.counts[0] = 0.0
        self.heads = [nn.Linear(width, n) for n in classes]

    def forward(self, words):
        place = torch.arange(words.shape[1], device=words.device)
        weight = self.counts[words] / (1 + place)
        x = (self.embed(words) * weight.unsqueeze(-1)).sum(1)
        x = F.dropout(x, self.p, training=self.training)
        return [head(x) for head in self.heads]
""",
    ),
    Mutant(
        "03.4",
        "counts_trained",
        "what must move with the model is made a parameter",
        says="An optimizer would train `counts`",
        code=_READER_HEAD
        + """
        counts = torch.ones(vocabulary)
        counts[0] = 0.0
        self.counts = nn.Parameter(counts)
        self.heads = nn.ModuleList(nn.Linear(width, n) for n in classes)

    def forward(self, words):
        place = torch.arange(words.shape[1], device=words.device)
        weight = self.counts[words] / (1 + place)
        x = (self.embed(words) * weight.unsqueeze(-1)).sum(1)
        x = F.dropout(x, self.p, training=self.training)
        return [head(x) for head in self.heads]
""",
    ),
    Mutant(
        "03.4",
        "counts_left",
        "moving the tensor in forward is as good as registering it",
        says="`counts` is a plain tensor attribute",
        code=_READER_HEAD
        + """
        self.counts = torch.ones(vocabulary)
        self.counts[0] = 0.0
        self.heads = nn.ModuleList(nn.Linear(width, n) for n in classes)

    def forward(self, words):
        place = torch.arange(words.shape[1], device=words.device)
        weight = self.counts.to(words.device)[words] / (1 + place)
        x = (self.embed(words) * weight.unsqueeze(-1)).sum(1)
        x = F.dropout(x, self.p, training=self.training)
        return [head(x) for head in self.heads]
""",
    ),
    Mutant(
        "03.4",
        "counts_not_saved",
        "persistent=False only means that it isn't trained",
        says="`counts` is missing in the checkpoint",
        code=_READER_HEAD
        + """
        self.register_buffer("counts", torch.ones(vocabulary), persistent=False)
        self.counts[0] = 0.0
        self.heads = nn.ModuleList(nn.Linear(width, n) for n in classes)

    def forward(self, words):
        place = torch.arange(words.shape[1], device=words.device)
        weight = self.counts[words] / (1 + place)
        x = (self.embed(words) * weight.unsqueeze(-1)).sum(1)
        x = F.dropout(x, self.p, training=self.training)
        return [head(x) for head in self.heads]
""",
    ),
    Mutant(
        "03.4",
        "padding_counts",
        "a buffer is filled by the module itself",
        says="Word 0 is padding",
        code=_READER_HEAD
        + """
        self.register_buffer("counts", torch.ones(vocabulary))
        self.heads = nn.ModuleList(nn.Linear(width, n) for n in classes)

    def forward(self, words):
        place = torch.arange(words.shape[1], device=words.device)
        weight = self.counts[words] / (1 + place)
        x = (self.embed(words) * weight.unsqueeze(-1)).sum(1)
        x = F.dropout(x, self.p, training=self.training)
        return [head(x) for head in self.heads]
""",
    ),
    Mutant(
        "03.4",
        "dropout_left",
        "F.dropout knows the mode of the module that calls it",
        says="doesn't know which module calls it",
        code=_READER_HEAD
        + """
        self.register_buffer("counts", torch.ones(vocabulary))
        self.counts[0] = 0.0
        self.heads = nn.ModuleList(nn.Linear(width, n) for n in classes)

    def forward(self, words):
        place = torch.arange(words.shape[1], device=words.device)
        weight = self.counts[words] / (1 + place)
        x = (self.embed(words) * weight.unsqueeze(-1)).sum(1)
        x = F.dropout(x, self.p)
        return [head(x) for head in self.heads]
""",
    ),
    Mutant(
        "03.4",
        "dropout_in_forward",
        "an nn.Dropout follows eval() wherever it is made",
        says="is new each time",
        code=_READER_HEAD
        + """
        self.register_buffer("counts", torch.ones(vocabulary))
        self.counts[0] = 0.0
        self.heads = nn.ModuleList(nn.Linear(width, n) for n in classes)

    def forward(self, words):
        place = torch.arange(words.shape[1], device=words.device)
        weight = self.counts[words] / (1 + place)
        x = (self.embed(words) * weight.unsqueeze(-1)).sum(1)
        x = nn.Dropout(self.p)(x)
        return [head(x) for head in self.heads]
""",
    ),
    Mutant(
        "03.4",
        "dropout_thrown_out",
        "without dropout the scores are steady, and that heals it",
        says="In train mode dropout is still at work",
        code=_READER_HEAD
        + """
        self.register_buffer("counts", torch.ones(vocabulary))
        self.counts[0] = 0.0
        self.heads = nn.ModuleList(nn.Linear(width, n) for n in classes)

    def forward(self, words):
        place = torch.arange(words.shape[1], device=words.device)
        weight = self.counts[words] / (1 + place)
        x = (self.embed(words) * weight.unsqueeze(-1)).sum(1)
        return [head(x) for head in self.heads]
""",
    ),
    Mutant(
        "03.4",
        "device_remembered",
        "the device is known when the model is made",
        says="a tensor made in `forward` belongs where the input is",
        code=_READER_HEAD
        + """
        self.register_buffer("counts", torch.ones(vocabulary))
        self.counts[0] = 0.0
        self.heads = nn.ModuleList(nn.Linear(width, n) for n in classes)
        self.device = self.embed.weight.device

    def forward(self, words):
        place = torch.arange(words.shape[1], device=self.device)
        weight = self.counts[words] / (1 + place)
        x = (self.embed(words) * weight.unsqueeze(-1)).sum(1)
        x = F.dropout(x, self.p, training=self.training)
        return [head(x) for head in self.heads]
""",
    ),
    Mutant(
        "03.4",
        "zeros",
        "the right shapes are enough",
        says="the formula of the class",
        code=_READER_HEAD
        + """
        self.register_buffer("counts", torch.ones(vocabulary))
        self.counts[0] = 0.0
        self.heads = nn.ModuleList(nn.Linear(width, n) for n in classes)

    def forward(self, words):
        return [torch.zeros(len(words), head.out_features) for head in self.heads]
""",
    ),
    Mutant(
        "03.4",
        "embedding_cut_off",
        "detach() frees the embedding from the mode",
        says="Embedding and heads get their gradients",
        code=_READER_HEAD
        + """
        self.register_buffer("counts", torch.ones(vocabulary))
        self.counts[0] = 0.0
        self.heads = nn.ModuleList(nn.Linear(width, n) for n in classes)

    def forward(self, words):
        place = torch.arange(words.shape[1], device=words.device)
        weight = self.counts[words] / (1 + place)
        x = (self.embed(words).detach() * weight.unsqueeze(-1)).sum(1)
        x = F.dropout(x, self.p, training=self.training)
        return [head(x) for head in self.heads]
""",
    ),
]

_FROZEN = [
    Mutant(
        "03.5",
        "hidden_body",
        "in a list it is safe from the optimizer",
        says="`body` is registered under its name",
        code="""
class Frozen(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.parts = [body.requires_grad_(False).eval()]

    def forward(self, x):
        return self.parts[0](x)
""",
    ),
    Mutant(
        "03.5",
        "mode_only",
        "in eval mode nothing is trained",
        says="still ask for gradients",
        code="""
class Frozen(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body.eval()

    def train(self, mode=True):
        super().train(mode)
        self.body.eval()
        return self

    def forward(self, x):
        return self.body(x)
""",
    ),
    Mutant(
        "03.5",
        "flag_on_the_module",
        "module.requires_grad = False freezes it",
        says="still ask for gradients",
        code="""
class Frozen(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
        self.body.requires_grad = False

    def train(self, mode=True):
        super().train(mode)
        self.body.eval()
        return self

    def forward(self, x):
        return self.body.eval()(x)
""",
    ),
    Mutant(
        "03.5",
        "zeros",
        "a frozen part gives something constant",
        says="what `body` gives in eval mode",
        code="""
class Frozen(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body.requires_grad_(False)

    def forward(self, x):
        return torch.zeros_like(self.body.eval()(x))
""",
    ),
    Mutant(
        "03.5",
        "returns_nothing",
        "train() is called for its effect",
        says="return the module itself",
        code="""
class Frozen(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body.requires_grad_(False).eval()

    def train(self, mode=True):
        super().train(mode)
        self.body.eval()

    def forward(self, x):
        return self.body(x)
""",
    ),
    Mutant(
        "03.5",
        "under_no_grad",
        "a frozen part needs no graph",
        says="`no_grad` and `detach` cut the graph",
        code="""
class Frozen(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body.requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            return self.body.eval()(x)
""",
    ),
    Mutant(
        "03.5",
        "eval_once",
        "eval() in __init__ lasts",
        says="undoes an earlier `eval()`",
        code="""
class Frozen(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body.requires_grad_(False).eval()

    def forward(self, x):
        return self.body(x)
""",
    ),
    Mutant(
        "03.5",
        "weights_only",
        "requires_grad_(False) freezes everything",
        says="what `body` gives in eval mode",
        code="""
class Frozen(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body.requires_grad_(False)

    def forward(self, x):
        return self.body(x)
""",
    ),
    Mutant(
        "03.5",
        "statistics_only",
        "only BatchNorm has a mode",
        says="After `model.train()` the output",
        code="""
class Frozen(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body.requires_grad_(False).eval()

    def train(self, mode=True):
        super().train(mode)
        for part in self.body.modules():
            if isinstance(part, nn.BatchNorm1d):
                part.eval()
        return self

    def forward(self, x):
        return self.body(x)
""",
    ),
]

MUTANTS = [*_TRAINABLE, *_TOWER, *_RUNNING_NORM, *_READER, *_FROZEN]

ALTERNATIVES = {
    "03.1": """
def trainable(model):
    sizes, seen = {}, set()

    def visit(module, prefix):
        for name, p in module._parameters.items():
            if p is not None and p.requires_grad and id(p) not in seen:
                seen.add(id(p))
                sizes[prefix + name] = p.shape.numel()
        for name, child in module.named_children():
            visit(child, f"{prefix}{name}.")

    visit(model, "")
    return sizes
""",
    "03.2": """
def _layer(inputs, outputs):
    layer = nn.Linear(inputs, outputs)
    with torch.no_grad():
        layer.weight.copy_(torch.randn(outputs, inputs) * (2 / inputs) ** 0.5)
        layer.bias.fill_(0.0)
    return layer


class Tower(nn.Sequential):
    def __init__(self, sizes):
        steps = []
        for i in range(len(sizes) - 1):
            if i > 0:
                steps.append(nn.ReLU())
            steps.append(_layer(sizes[i], sizes[i + 1]))
        super().__init__(*steps)
""",
    "03.3": """
class RunningNorm(nn.Module):
    def __init__(self, features, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum = momentum
        self.eps = eps
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("var", torch.ones(features))
        self.register_buffer("seen", torch.zeros((), dtype=torch.long), persistent=False)

    def forward(self, x):
        out = F.batch_norm(
            x, self.mean, self.var, training=self.training, momentum=self.momentum, eps=self.eps
        )
        if self.training:
            self.seen = self.seen + 1
        return out
""",
    "03.4": """
class Reader(nn.Module):
    def __init__(self, vocabulary, width, classes, p=0.5):
        super().__init__()
        self.drop = nn.Dropout(p)
        self.embed = nn.Embedding(vocabulary, width)
        counts = torch.ones(vocabulary)
        counts[0] = 0.0
        self.register_buffer("counts", counts)
        self.heads = nn.ModuleList()
        for n in classes:
            self.heads.append(nn.Linear(width, n))

    def forward(self, words):
        place = words.new_ones(words.shape[1]).cumsum(0)
        weight = self.counts[words] / place
        x = self.drop(torch.einsum("bt,btw->bw", weight, self.embed(words)))
        return [head(x) for head in self.heads]
""",
    "03.5": """
class Frozen(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
        for p in self.body.parameters():
            p.requires_grad = False

    def forward(self, x):
        for part in self.body.modules():
            part.training = False
        return self.body(x)
""",
}
