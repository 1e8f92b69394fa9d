"""Wrong answers to the exercises of lesson 06 that people really give, and what each one believes.

A test proves that every one is rejected: by the visible check with a message that contains `says`,
and by the grader with no points. `ALTERNATIVES` are right answers in another style than ours; they
must pass both.
"""

from pytorch_lab.grading import Mutant

_RATES = [
    Mutant(
        "06.1",
        "zeros",
        "a list of the right length is enough",
        says="Step 0 uses `lr` itself",
        code="""
def rates(shape, lr, length, steps):
    return [0.0] * steps
""",
    ),
    Mutant(
        "06.1",
        "after_the_step",
        "the rate of a step is the one that stands there after it",
        says="the scheduler moves on after the step",
        code="""
def rates(shape, lr, length, steps):
    if shape == "step":
        return [lr * 0.1 ** (k // length) for k in range(1, steps + 1)]
    return [lr * (1 + math.cos(math.pi * k / length)) / 2 for k in range(1, steps + 1)]
""",
    ),
    Mutant(
        "06.1",
        "one_too_early",
        "step number `length` is the last at the old rate, counted from 1",
        says="The first `length` steps all use `lr`",
        code="""
def rates(shape, lr, length, steps):
    if shape == "step":
        return [lr * 0.1 ** ((k + 1) // length) for k in range(steps)]
    return [lr * (1 + math.cos(math.pi * k / length)) / 2 for k in range(steps)]
""",
    ),
    Mutant(
        "06.1",
        "every_step",
        "StepLR multiplies in every step",
        says="StepLR waits for `length` calls",
        code="""
def rates(shape, lr, length, steps):
    if shape == "step":
        return [lr * 0.1**k for k in range(steps)]
    return [lr * (1 + math.cos(math.pi * k / length)) / 2 for k in range(steps)]
""",
    ),
    Mutant(
        "06.1",
        "drops_once",
        "StepLR drops once",
        says="not only once",
        code="""
def rates(shape, lr, length, steps):
    if shape == "step":
        return [lr if k < length else lr * 0.1 for k in range(steps)]
    return [lr * (1 + math.cos(math.pi * k / length)) / 2 for k in range(steps)]
""",
    ),
    Mutant(
        "06.1",
        "whole_wave",
        "T_max is the length of the whole wave",
        says="`length` steps are half a wave",
        code="""
def rates(shape, lr, length, steps):
    if shape == "step":
        return [lr * 0.1 ** (k // length) for k in range(steps)]
    return [lr * (1 + math.cos(2 * math.pi * k / length)) / 2 for k in range(steps)]
""",
    ),
    Mutant(
        "06.1",
        "straight_line",
        "annealing is a straight way down",
        says="not a straight line",
        code="""
def rates(shape, lr, length, steps):
    if shape == "step":
        return [lr * 0.1 ** (k // length) for k in range(steps)]
    return [lr * abs(1 - k / length) for k in range(steps)]
""",
    ),
    Mutant(
        "06.1",
        "stays_down",
        "after T_max the cosine stays at its lowest",
        says="after it the rate climbs again",
        code="""
def rates(shape, lr, length, steps):
    if shape == "step":
        return [lr * 0.1 ** (k // length) for k in range(steps)]
    return [lr * (1 + math.cos(math.pi * min(1, k / length))) / 2 for k in range(steps)]
""",
    ),
    Mutant(
        "06.1",
        "starts_over",
        "after T_max the cosine starts anew from the top",
        says="after it the rate climbs again",
        code="""
def rates(shape, lr, length, steps):
    if shape == "step":
        return [lr * 0.1 ** (k // length) for k in range(steps)]
    where = [k if k <= length else k % length for k in range(steps)]
    return [lr * (1 + math.cos(math.pi * k / length)) / 2 for k in where]
""",
    ),
]


def _walk(first: str = "g = slope(w) if kind == 'adamw' else slope(w) + decay * w",
          momentum: str = "way = m = 0.9 * m + g",
          adam: str = "way = m / (1 - 0.9**k) / ((s / (1 - 0.999**k)).sqrt() + 1e-8)",
          kept: str = "w * (1 - lr * decay) if kind == 'adamw' else w") -> str:  # fmt: skip
    """An answer to 06.2, in which one line may be another."""
    return f"""
def walk(kind, w, slope, lr, steps, decay=0.0):
    places, m, s = [w.clone()], torch.zeros_like(w), torch.zeros_like(w)
    for k in range(1, steps + 1):
        w = places[-1]
        {first}
        if kind == "sgd":
            way = g
        elif kind == "momentum":
            {momentum}
        else:
            m, s = 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * g * g
            {adam}
        kept = {kept}
        places.append(kept - lr * way)
    return places
"""


_WALK = [
    Mutant(
        "06.2",
        "zeros",
        "a list of tensors of the right shape is enough",
        says="The first place is the start",
        code="""
def walk(kind, w, slope, lr, steps, decay=0.0):
    return [torch.zeros_like(w) for _ in range(steps + 1)]
""",
    ),
    Mutant(
        "06.2",
        "without_the_start",
        "the places are those after a step",
        says="a list of `steps + 1` places",
        code=_walk().replace("return places", "return places[1:]"),
    ),
    Mutant(
        "06.2",
        "in_place",
        "a list keeps what a tensor was when it was appended",
        says="appended, and then changed in place",
        code="""
def walk(kind, w, slope, lr, steps, decay=0.0):
    w = w.clone()
    places, m, s = [w.clone()], torch.zeros_like(w), torch.zeros_like(w)
    for k in range(1, steps + 1):
        g = slope(w) if kind == "adamw" else slope(w) + decay * w
        if kind == "sgd":
            way = g
        elif kind == "momentum":
            way = m = 0.9 * m + g
        else:
            m, s = 0.9 * m + 0.1 * g, 0.999 * s + 0.001 * g * g
            way = m / (1 - 0.9**k) / ((s / (1 - 0.999**k)).sqrt() + 1e-8)
        if kind == "adamw":
            w *= 1 - lr * decay
        w -= lr * way
        places.append(w)
    return places
""",
    ),
    Mutant(
        "06.2",
        "changes_the_start",
        "a function may write to the tensor that it was given",
        says="The tensor that was passed in was changed",
        code=_walk().replace("return places", "w_start.copy_(places[-1])\n    return places")
        .replace("    places, m, s", "    w_start = w\n    places, m, s"),
    ),
    Mutant(
        "06.2",
        "one_slope",
        "the gradient is computed once, at the start",
        says="at the place where it stands then",
        code=_walk(first="g = slope(places[0]) + (0 if kind == 'adamw' else decay * w)"),
    ),
    Mutant(
        "06.2",
        "averaged_momentum",
        "momentum is an average of the gradients",
        says="It is no average",
        code=_walk(momentum="way = m = 0.9 * m + 0.1 * g"),
    ),
    Mutant(
        "06.2",
        "no_correction",
        "the averages can be used as they are",
        says="corrected for their start at 0",
        code=_walk(adam="way = m / (s.sqrt() + 1e-8)"),
    ),
    Mutant(
        "06.2",
        "no_root",
        "Adam divides by the average of the squares",
        says="goes under a root",
        code=_walk(adam="way = m / (1 - 0.9**k) / (s / (1 - 0.999**k) + 1e-8)"),
    ),
    Mutant(
        "06.2",
        "corrected_for_good",
        "the correction belongs into the averages themselves",
        says="The averages go on uncorrected",
        code=_walk(adam="m, s = m / (1 - 0.9**k), s / (1 - 0.999**k)\n"
                        "            way = m / (s.sqrt() + 1e-8)"),
    ),
    Mutant(
        "06.2",
        "no_l2",
        "weight decay is AdamW's business alone",
        says="L2 decay is part of the gradient",
        code=_walk(first="g = slope(w)"),
    ),
    Mutant(
        "06.2",
        "adamw_is_adam",
        "AdamW is Adam with L2",
        says="Adam would divide it",
        code=_walk(first="g = slope(w) + decay * w", kept="w"),
    ),
    Mutant(
        "06.2",
        "decay_without_rate",
        "AdamW takes the share `decay` of w in each step",
        says="the share `lr * decay` of `w`",
        code=_walk(kept="w * (1 - decay) if kind == 'adamw' else w"),
    ),
]  # fmt: skip

_TUNER = [
    Mutant(
        "06.3",
        "nothing",
        "a list of groups is an optimizer",
        says="The answer is an optimizer",
        code="""
def tuner(model, lr, decay):
    return [{"params": list(model.parameters()), "lr": lr, "weight_decay": decay}]
""",
    ),
    Mutant(
        "06.3",
        "adam",
        "Adam with weight_decay is AdamW",
        says="This is not AdamW",
        code="""
def tuner(model, lr, decay):
    return torch.optim.Adam(
        [
            {
                "params": [p],
                "lr": lr / 10 if name.startswith("body.") else lr,
                "weight_decay": decay if p.ndim > 1 else 0.0,
            }
            for name, p in model.named_parameters()
            if p.requires_grad
        ]
    )
""",
    ),
    Mutant(
        "06.3",
        "used_up",
        "a generator can be read twice",
        says="A generator gives what it has once",
        code="""
def tuner(model, lr, decay):
    named = ((name, p) for name, p in model.named_parameters() if p.requires_grad)
    body = [p for name, p in named if name.startswith("body.")]
    other = [p for name, p in named if not name.startswith("body.")]
    groups = []
    for params, rate in ((body, lr / 10), (other, lr)):
        for dims, wd in ((True, decay), (False, 0.0)):
            chosen = [p for p in params if (p.ndim > 1) is dims]
            groups.append({"params": chosen, "lr": rate, "weight_decay": wd})
    return torch.optim.AdamW(groups)
""",
    ),
    Mutant(
        "06.3",
        "one_group",
        "the optimizer knows which layers are new",
        says="The body gets a tenth of `lr`",
        code="""
def tuner(model, lr, decay):
    params = [p for p in model.parameters() if p.requires_grad]
    return torch.optim.AdamW(
        [
            {"params": [p for p in params if p.ndim > 1], "weight_decay": decay},
            {"params": [p for p in params if p.ndim < 2], "weight_decay": 0.0},
        ],
        lr=lr,
    )
""",
    ),
    Mutant(
        "06.3",
        "name_contains_body",
        "whose name contains `body` belongs to the body",
        says="a name of the body starts with `body.`",
        code="""
def tuner(model, lr, decay):
    return torch.optim.AdamW(
        [
            {
                "params": [p],
                "lr": lr / 10 if "body" in name else lr,
                "weight_decay": decay if p.ndim > 1 else 0.0,
            }
            for name, p in model.named_parameters()
            if p.requires_grad
        ]
    )
""",
    ),
    Mutant(
        "06.3",
        "everything_decays",
        "weight decay is good for every parameter",
        says="No decay for tensors of one dimension",
        code="""
def tuner(model, lr, decay):
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    body = [p for name, p in named if name.startswith("body.")]
    other = [p for name, p in named if not name.startswith("body.")]
    groups = [{"params": body, "lr": lr / 10}, {"params": other}]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=lr, weight_decay=decay)
""",
    ),
    Mutant(
        "06.3",
        "biases_only",
        "only what is called `bias` has one dimension",
        says="the weights of norms",
        code="""
def tuner(model, lr, decay):
    return torch.optim.AdamW(
        [
            {
                "params": [p],
                "lr": lr / 10 if name.startswith("body.") else lr,
                "weight_decay": 0.0 if name.endswith("bias") else decay,
            }
            for name, p in model.named_parameters()
            if p.requires_grad
        ]
    )
""",
    ),
    Mutant(
        "06.3",
        "frozen_too",
        "a frozen parameter does no harm in a group",
        says="What is frozen is in no group",
        code="""
def tuner(model, lr, decay):
    return torch.optim.AdamW(
        [
            {
                "params": [p],
                "lr": lr / 10 if name.startswith("body.") else lr,
                "weight_decay": decay if p.ndim > 1 else 0.0,
            }
            for name, p in model.named_parameters()
        ]
    )
""",
    ),
    Mutant(
        "06.3",
        "part_by_part",
        "the parameters of different parts are different tensors",
        says="one tensor with two names",
        code="""
def tuner(model, lr, decay):
    groups = []
    for part, child in model.named_children():
        rate = lr / 10 if part == "body" else lr
        params = [p for p in child.parameters() if p.requires_grad]
        groups.append(
            {"params": [p for p in params if p.ndim > 1], "lr": rate, "weight_decay": decay}
        )
        groups.append(
            {"params": [p for p in params if p.ndim < 2], "lr": rate, "weight_decay": 0.0}
        )
    return torch.optim.AdamW(groups)
""",
    ),
]

_LOOP = """
        for x, y in batches:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(params, 1.0)
            optimizer.step()
"""


def _finetune(start: str, before: str, after: str, loop: str = _LOOP) -> str:
    """An answer to 06.4 out of its parts."""
    return f"""
def finetune(model, head, batches, measure, lr, epochs):
{start}
    rates = []
    for epoch in range(epochs):
{before}{loop}{after}
    return rates
"""


_MADE = """    model.head = head
    params = list(model.parameters())
    optimizer = torch.optim.SGD(params, lr=lr)"""
_PLATEAU = '\n    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=0)'
_NOTE = '        rates.append(optimizer.param_groups[0]["lr"])'
_JUDGE = "        scheduler.step(measure(model))"

_FINETUNE = [
    Mutant(
        "06.4",
        "constant",
        "the rates are what is asked for, and no training",
        says="The new head hasn't changed",
        code="""
def finetune(model, head, batches, measure, lr, epochs):
    model.head = head
    return [lr] * epochs
""",
    ),
    Mutant(
        "06.4",
        "optimizer_first",
        "an optimizer follows the model",
        says="in none of the optimizer's groups",
        code=_finetune(
            """    params = list(model.parameters())
    optimizer = torch.optim.SGD(params, lr=lr)
    model.head = head"""
            + _PLATEAU,
            _NOTE,
            _JUDGE,
        ),
    ),
    Mutant(
        "06.4",
        "head_alone",
        "fine-tuning trains the head",
        says="The body hasn't changed",
        code=_finetune(
            _MADE.replace("model.parameters()", "head.parameters()") + _PLATEAU, _NOTE, _JUDGE
        ),
    ),
    Mutant(
        "06.4",
        "epoch_number",
        "step() wants the number of the epoch",
        says="not the epoch's number",
        code=_finetune(_MADE + _PLATEAU, _NOTE, "        scheduler.step(epoch)"),
    ),
    Mutant(
        "06.4",
        "watches_the_loss",
        "the training loss says as much as the accuracy",
        says="not the loss",
        code=_finetune(
            _MADE + _PLATEAU.replace('"max"', '"min"'),
            _NOTE,
            "        scheduler.step(loss.item())",
        ),
    ),
    Mutant(
        "06.4",
        "scheduler_first",
        "an epoch begins with the scheduler",
        says="The first measurement came before",
        code=_finetune(_MADE + _PLATEAU, _JUDGE + "\n" + _NOTE, ""),
    ),
    Mutant(
        "06.4",
        "lower_is_better",
        "ReduceLROnPlateau knows that an accuracy should rise",
        says="higher is better",
        code=_finetune(
            _MADE + "\n    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)",
            _NOTE,
            _JUDGE,
        ),
    ),
    Mutant(
        "06.4",
        "negated",
        "minus the accuracy in mode min is the same as the accuracy in mode max",
        says="the rates that the epochs used",
        # The threshold is relative: below 0, "smaller than 99.99 % of the best" lets the best
        # itself pass for better, and the rate never falls.
        code=_finetune(
            _MADE + _PLATEAU.replace('"max"', '"min"'),
            _NOTE,
            "        scheduler.step(-measure(model))",
        ),
    ),
    Mutant(
        "06.4",
        "rates_of_the_next",
        "the rate that stands there after the epoch is the one it used",
        says="the rates that the epochs used",
        code=_finetune(_MADE + _PLATEAU, "", _JUDGE + "\n" + _NOTE),
    ),
    Mutant(
        "06.4",
        "generator",
        "parameters() is a list",
        says="a generator that the optimizer has read gives none",
        code=_finetune(
            _MADE.replace("list(model.parameters())", "model.parameters()") + _PLATEAU,
            _NOTE,
            _JUDGE,
        ),
    ),
    Mutant(
        "06.4",
        "clips_too_late",
        "clipping may stand anywhere in the loop",
        says="between `backward()` and `step()`",
        code=_finetune(
            _MADE + _PLATEAU,
            _NOTE,
            _JUDGE,
            _LOOP.replace("            optimizer.step()\n", "").replace(
                "            nn.utils", "            optimizer.step()\n            nn.utils"
            ),
        ),
    ),
]


def _warm(factor: str, *, before: str = "", made: str = "factor") -> str:
    """An answer to 06.5 with another factor."""
    return f"""
def warm_cosine(optimizer, warm_up, total, lowest=0.0):
{before}
    def factor(k):
{factor}

    return lr_scheduler.LambdaLR(optimizer, {made})
"""


_RIGHT = """        if k < warm_up:
            return (k + 1) / warm_up
        if k >= total:
            return lowest
        part = (k - warm_up) / (total - warm_up)
        return lowest + (1 - lowest) * (1 + math.cos(math.pi * part)) / 2"""

_WARM = [
    Mutant(
        "06.5",
        "list_of_factors",
        "a schedule is a list of numbers",
        says="The answer is a scheduler",
        code="""
def warm_cosine(optimizer, warm_up, total, lowest=0.0):
    wave = [k / (total - warm_up) for k in range(total - warm_up)]
    rise = [(k + 1) / warm_up for k in range(warm_up)]
    return rise + [lowest + (1 - lowest) * (1 + math.cos(math.pi * part)) / 2 for part in wave]
""",
    ),
    Mutant(
        "06.5",
        "constant",
        "any scheduler will do",
        says="The warm-up",
        code=_warm("        return 1.0"),
    ),
    Mutant(
        "06.5",
        "returns_rates",
        "the lambda of LambdaLR returns the rate",
        says="a factor, not a rate",
        code=_warm(
            _RIGHT.replace("return ", "return peak * ").replace("lowest +", "(lowest +") + ")",
            before='    peak = optimizer.param_groups[0]["lr"]',
        ),
    ),
    Mutant(
        "06.5",
        "wave_from_the_start",
        "the wave counts from step 0",
        says="the wave begins there",
        code=_warm(_RIGHT.replace("(k - warm_up) / (total - warm_up)", "k / total")),
    ),
    Mutant(
        "06.5",
        "from_zero",
        "a warm-up begins at rate 0",
        says="at rate 0 a batch is wasted",
        code=_warm(_RIGHT.replace("(k + 1) / warm_up", "k / warm_up")),
    ),
    Mutant(
        "06.5",
        "straight_down",
        "how it falls makes no difference",
        says="not a straight line",
        code=_warm(
            _RIGHT.replace("(1 + math.cos(math.pi * part)) / 2", "(1 - part)"),
        ),
    ),
    Mutant(
        "06.5",
        "cut_off",
        "`lowest` is a floor under the wave",
        says="it isn't cut off before",
        code=_warm(
            _RIGHT.replace(
                "lowest + (1 - lowest) * (1 + math.cos(math.pi * part)) / 2",
                "max(lowest, (1 + math.cos(math.pi * part)) / 2)",
            )
        ),
    ),
    Mutant(
        "06.5",
        "climbs",
        "after its length a cosine stays down",
        says="A cosine of more than half a wave climbs",
        code=_warm(
            _RIGHT.replace("if k >= total:", "if total == warm_up:"),
        ),
    ),
    Mutant(
        "06.5",
        "one_peak",
        "an optimizer has one rate",
        says="Each group has its own peak",
        code=_warm(
            _RIGHT,
            before="""    for group in optimizer.param_groups:
        group["lr"] = optimizer.param_groups[0]["lr"]""",
        ),
    ),
    Mutant(
        "06.5",
        "own_count",
        "a function can count its calls itself",
        says="not on a count of your own",
        code="""
def warm_cosine(optimizer, warm_up, total, lowest=0.0):
    def counter():
        calls = [-1]

        def factor(_):
            calls[0] += 1
            k = calls[0]
            if k < warm_up:
                return (k + 1) / warm_up
            if k >= total:
                return lowest
            part = (k - warm_up) / (total - warm_up)
            return lowest + (1 - lowest) * (1 + math.cos(math.pi * part)) / 2

        return factor

    return lr_scheduler.LambdaLR(optimizer, [counter() for _ in optimizer.param_groups])
""",
    ),
]

MUTANTS = [*_RATES, *_WALK, *_TUNER, *_FINETUNE, *_WARM]

ALTERNATIVES = {
    "06.1": """
def rates(shape, lr, length, steps):
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=lr)
    if shape == "step":
        scheduler = lr_scheduler.StepLR(optimizer, step_size=length)
    else:
        scheduler = lr_scheduler.CosineAnnealingLR(optimizer, T_max=length)
    found = []
    while len(found) < steps:
        found += scheduler.get_last_lr()
        optimizer.step()
        scheduler.step()
    return found
""",
    "06.2": """
def walk(kind, w, slope, lr, steps, decay=0.0):
    make = {
        "sgd": lambda p: torch.optim.SGD(p, lr=lr, weight_decay=decay),
        "momentum": lambda p: torch.optim.SGD(p, lr=lr, momentum=0.9, weight_decay=decay),
        "adam": lambda p: torch.optim.Adam(p, lr=lr, weight_decay=decay),
        "adamw": lambda p: torch.optim.AdamW(p, lr=lr, weight_decay=decay),
    }[kind]
    moving = nn.Parameter(w.clone())
    optimizer = make([moving])
    places = [w.clone()]
    for _ in range(steps):
        moving.grad = slope(moving.detach())
        optimizer.step()
        places.append(moving.detach().clone())
    return places
""",
    "06.3": """
def tuner(model, lr, decay):
    optimizer = torch.optim.AdamW([torch.zeros(1)], lr=lr, weight_decay=0.0)
    optimizer.param_groups.clear()
    seen = set()

    def add(module, inside):
        for p in module._parameters.values():
            if p is not None and p.requires_grad and id(p) not in seen:
                seen.add(id(p))
                group = {"params": [p], "weight_decay": decay * (p.dim() >= 2)}
                if inside:
                    group["lr"] = lr / 10
                optimizer.add_param_group(group)
        for name, child in module.named_children():
            add(child, inside or (module is model and name == "body"))

    add(model, False)
    return optimizer
""",
    "06.4": """
def finetune(model, head, batches, measure, lr, epochs):
    setattr(model, "head", head)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    rates = []
    while len(rates) < epochs:
        rates += scheduler.get_last_lr()
        for x, y in batches:
            model.zero_grad()
            F.cross_entropy(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        scheduler.step(1 - measure(model))
    return rates
""",
    "06.5": """
class WarmCosine(lr_scheduler.LRScheduler):
    def __init__(self, optimizer, warm_up, total, lowest):
        self.warm_up, self.total, self.lowest = warm_up, total, lowest
        super().__init__(optimizer)

    def get_lr(self):
        k = self.last_epoch
        if k < self.warm_up:
            share = (k + 1) / self.warm_up
        elif k >= self.total:
            share = self.lowest
        else:
            angle = math.pi * (k - self.warm_up) / (self.total - self.warm_up)
            share = 1 - (1 - self.lowest) * math.sin(angle / 2) ** 2
        return [share * peak for peak in self.base_lrs]


def warm_cosine(optimizer, warm_up, total, lowest=0.0):
    return WarmCosine(optimizer, warm_up, total, lowest)
""",
}
