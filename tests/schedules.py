"""Every scheduler of torch and of transformers, and some of one's own."""

import functools

import torch
from torch.optim import lr_scheduler as S
from torch.optim.swa_utils import SWALR


def sgd(*rates, **options):
    """An optimizer with a group for each of these rates."""
    groups = [{"params": [torch.zeros(2, requires_grad=True)], "lr": rate} for rate in rates]
    return torch.optim.SGD(groups, momentum=0.9, **options)


def adam(*rates):
    return torch.optim.Adam(
        [{"params": [torch.zeros(2, requires_grad=True)], "lr": rate} for rate in rates]
    )


class Halving(S.LRScheduler):
    """Somebody's own, with a list that grows and a print in every step."""

    def __init__(self, optimizer, every=3):
        self.every, self.seen = every, []
        super().__init__(optimizer)

    def get_lr(self):
        self.seen.append(self.last_epoch)
        print("lr of epoch", self.last_epoch)
        return [base * 0.5 ** (self.last_epoch // self.every) for base in self.base_lrs]


class Warm:
    """A scheduler that derives from nothing and wants the number of the step."""

    def __init__(self, optimizer):
        self.optimizer, self.count = optimizer, 0

    def step(self, epoch):
        self.count = epoch
        for group in self.optimizer.param_groups:
            group["lr"] = 0.1 * min(1.0, (epoch + 1) / 5)


class Unfreezing(S.LRScheduler):
    """Adds a group in its third step."""

    def get_lr(self):
        if self.last_epoch == 3 and len(self.optimizer.param_groups) == 1:
            self.optimizer.add_param_group({"params": [torch.zeros(1)], "lr": 0.5})
            self.base_lrs.append(0.5)
        return [base / (1 + self.last_epoch) for base in self.base_lrs]


class Resetting(S.LRScheduler):
    """Forgets the momentum of the optimizer at a restart, as some do."""

    def get_lr(self):
        if self.last_epoch % 4 == 2:
            self.optimizer.state.clear()
            self.optimizer.defaults["lr"] = 0.0
        return [base * 0.5 ** (self.last_epoch % 4) for base in self.base_lrs]


class Wrapper:
    """Holds another scheduler and the optimizer in a list, as accelerate's does."""

    def __init__(self, optimizer):
        self.scheduler, self.optimizers = S.StepLR(optimizer, 2), [optimizer]
        self.count = 0

    @property
    def optimizer(self):
        return self.optimizers[0]

    def step(self, *args):
        self.count += 1
        self.scheduler.step(*args)


class Counting:
    """A callable object with a state of its own, as LambdaLR saves it."""

    def __init__(self):
        self.calls = []

    def __call__(self, epoch):
        self.calls.append(epoch)
        return 0.9**epoch


def closure(optimizer):
    """A lambda that counts its own calls instead of using its argument."""
    calls = [0]

    def factor(_epoch):
        calls[0] += 1
        return 1 / calls[0]

    return S.LambdaLR(optimizer, factor)


def nonlocal_(optimizer):
    calls = 0

    def factor(_epoch):
        nonlocal calls
        calls += 1
        return 1 / calls

    return S.LambdaLR(optimizer, factor)


CALLS = 0


def global_factor(_epoch):
    global CALLS
    CALLS += 1
    return 1 / CALLS


def random_(optimizer):
    return S.LambdaLR(optimizer, lambda _epoch: float(torch.rand(())))


def chained(optimizer):
    return S.ChainedScheduler(
        [S.ConstantLR(optimizer, 0.1, 3), S.ExponentialLR(optimizer, 0.9)], optimizer
    )


def sequential(optimizer):
    parts = [S.LinearLR(optimizer, 0.1, total_iters=4), S.CosineAnnealingLR(optimizer, 10)]
    return S.SequentialLR(optimizer, parts, [4])


def nested(optimizer):
    """A chain with a sequence inside."""
    return S.ChainedScheduler([sequential(optimizer), S.ExponentialLR(optimizer, 0.9)])


def tensor_rates(make):
    """With rates that are tensors, which schedulers change in place."""

    def on(_optimizer):
        groups = [{"params": [torch.zeros(2)], "lr": torch.tensor(rate)} for rate in (0.1, 0.02)]
        return make(torch.optim.Adam(groups, capturable=False, foreach=False))

    return on


SCHEDULERS = {
    "LambdaLR": lambda o: S.LambdaLR(o, lambda epoch: 0.95**epoch),
    "LambdaLR of an object": lambda o: S.LambdaLR(o, Counting()),
    "LambdaLR of two": lambda o: S.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (1 + e)]),
    "closure": closure,
    "nonlocal": nonlocal_,
    "global": lambda o: S.LambdaLR(o, global_factor),
    "random": random_,
    "MultiplicativeLR": lambda o: S.MultiplicativeLR(o, lambda _epoch: 0.95),
    "StepLR": lambda o: S.StepLR(o, 3),
    "MultiStepLR": lambda o: S.MultiStepLR(o, [2, 5, 5, 9]),
    "ConstantLR": lambda o: S.ConstantLR(o, 0.5, 4),
    "LinearLR": lambda o: S.LinearLR(o, 0.1, total_iters=7),
    "ExponentialLR": lambda o: S.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda o: S.PolynomialLR(o, 9, 2.0),
    "CosineAnnealingLR": lambda o: S.CosineAnnealingLR(o, 8, 0.001),
    "CosineAnnealingWarmRestarts": lambda o: S.CosineAnnealingWarmRestarts(o, 3, 2),
    "CyclicLR": lambda o: S.CyclicLR(o, 0.01, 0.1, 4, mode="exp_range", gamma=0.99),
    "CyclicLR scaled": lambda o: S.CyclicLR(o, 0.01, 0.1, 4, scale_fn=lambda x: 0.5**x),
    "OneCycleLR": lambda o: S.OneCycleLR(o, 0.1, total_steps=30),
    "OneCycleLR in three": lambda o: S.OneCycleLR(o, 0.1, total_steps=30, three_phase=True),
    "OneCycleLR with Adam": lambda _o: S.OneCycleLR(adam(0.1, 0.02), 0.1, total_steps=30),
    "SWALR": lambda o: SWALR(o, 0.05, 5),
    "ReduceLROnPlateau": lambda o: S.ReduceLROnPlateau(o, patience=1, cooldown=1, min_lr=1e-4),
    "ChainedScheduler": chained,
    "SequentialLR": sequential,
    "nested": nested,
    "own": Halving,
    "own without a base": Warm,
    "resetting": Resetting,
    "wrapper": Wrapper,
    "StepLR of tensors": tensor_rates(lambda o: S.StepLR(o, 3)),
    "CosineAnnealingLR of tensors": tensor_rates(lambda o: S.CosineAnnealingLR(o, 8)),
    "ReduceLROnPlateau of tensors": tensor_rates(lambda o: S.ReduceLROnPlateau(o, patience=1)),
}  # fmt: skip


def of_transformers():
    """All schedules of transformers that need no more than numbers of steps."""
    from transformers import optimization as T

    return {
        "constant": T.get_constant_schedule,
        "constant with warm-up": functools.partial(
            T.get_constant_schedule_with_warmup, num_warmup_steps=4
        ),
        "linear": functools.partial(
            T.get_linear_schedule_with_warmup, num_warmup_steps=4, num_training_steps=30
        ),
        "cosine": functools.partial(
            T.get_cosine_schedule_with_warmup, num_warmup_steps=4, num_training_steps=30
        ),
        "restarts": functools.partial(
            T.get_cosine_with_hard_restarts_schedule_with_warmup,
            num_warmup_steps=4, num_training_steps=30, num_cycles=3,
        ),
        "polynomial": functools.partial(
            T.get_polynomial_decay_schedule_with_warmup, num_warmup_steps=4, num_training_steps=30
        ),
        "inverse sqrt": functools.partial(T.get_inverse_sqrt_schedule, num_warmup_steps=4),
        "wsd": functools.partial(
            T.get_wsd_schedule, num_warmup_steps=4, num_decay_steps=12, num_stable_steps=10
        ),
    }  # fmt: skip


def metric(steps):
    """Better at first, then stuck."""
    return [max(0.5, 1 - 0.1 * k) for k in range(steps)]


def plain_loop(scheduler, steps):
    """The reference: the rates that a loop of optimizer.step() and scheduler.step() uses."""
    optimizer, used = scheduler.optimizer, []
    for k, watched in enumerate(metric(steps)):
        used.append([float(group["lr"]) for group in optimizer.param_groups])
        optimizer.step()
        if isinstance(scheduler, S.ReduceLROnPlateau):
            scheduler.step(watched)
        elif isinstance(scheduler, Warm):
            scheduler.step(k + 1)
        else:
            scheduler.step()
    return used
