"""Wrong answers to the exercises of lesson 08 that people really give, and what each one believes.

A test proves that every one is rejected: by the visible check with a message that contains `says`,
and by the grader with no points. `ALTERNATIVES` are right answers in another style than ours; they
must pass both.
"""

from pytorch_lab.grading import Mutant

_SNAPSHOT = [
    Mutant(
        "08.1",
        "live",
        "state_dict() is a copy",
        says="the model's own memory",
        code="""
def snapshot(model):
    return model.state_dict()
""",
    ),
    Mutant(
        "08.1",
        "new_dict",
        "copy() copies what is in the dict",
        says="A new dict alone copies the names",
        code="""
def snapshot(model):
    return model.state_dict().copy()
""",
    ),
    Mutant(
        "08.1",
        "contiguous",
        "contiguous() always makes a new tensor",
        says="the model's own memory",
        code="""
def snapshot(model):
    return {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
""",
    ),
    Mutant(
        "08.1",
        "deepcopy",
        "a deep copy copies what the tensor shows",
        says="drags the whole table along",
        code="""
def snapshot(model):
    return copy.deepcopy(model.state_dict())
""",
    ),
    Mutant(
        "08.1",
        "parameters",
        "the parameters are the whole state",
        says="buffers, such as BatchNorm's running mean",
        code="""
def snapshot(model):
    return {name: p.detach().clone() for name, p in model.named_parameters()}
""",
    ),
    Mutant(
        "08.1",
        "every_buffer",
        "every buffer is saved",
        says="stays out",
        code="""
def snapshot(model):
    named = [*model.named_parameters(), *model.named_buffers()]
    kept = {name: tensor.detach().clone() for name, tensor in named}
    order = [*model.state_dict(), *kept]
    return {name: kept[name] for name in order}
""",
    ),
    Mutant(
        "08.1",
        "graph",
        "clone() gives numbers alone",
        says="asks for a gradient",
        code="""
def snapshot(model):
    return {name: tensor.clone() for name, tensor in model.state_dict(keep_vars=True).items()}
""",
    ),
    Mutant(
        "08.1",
        "floats",
        "weights are floats, so everything is",
        says="keeps the dtype",
        code="""
def snapshot(model):
    return {name: tensor.clone().float() for name, tensor in model.state_dict().items()}
""",
    ),
    Mutant(
        "08.1",
        "zeros",
        "the right shapes are enough",
        says="the moment when it was taken",
        code="""
def snapshot(model):
    return {name: torch.zeros_like(tensor) for name, tensor in model.state_dict().items()}
""",
    ),
]

_REST = """
    if isinstance(thing, np.ndarray):
        return torch.from_numpy(thing)
    if isinstance(thing, dict):
        return {key: plain(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return type(thing)(map(plain, thing))
    if hasattr(thing, "state_dict"):
        return plain(thing.state_dict())
    raise TypeError(type(thing).__name__)
"""
_VALUES = """
    if thing is None or isinstance(thing, bool | int | float | str | torch.Tensor):
        return thing
"""
_NUMBERS = """
    if isinstance(thing, np.generic):
        return thing.item()
"""
_HEAD = "\ndef plain(thing):"

_PLAIN = [
    Mutant(
        "08.2",
        "as_it_is",
        "torch.save takes it, so torch.load will",
        says="becomes the Python number",
        code="""
def plain(thing):
    return thing
""",
    ),
    Mutant(
        "08.2",
        "a_float_is_a_float",
        "isinstance(x, float) means that x is a plain float",
        says="a subclass of `float`",
        code=_HEAD + _VALUES + _NUMBERS + _REST,
    ),
    Mutant(
        "08.2",
        "all_floats",
        "every number is a float",
        says="whole stays whole",
        code=_HEAD + _NUMBERS.replace("thing.item()", "float(thing)") + _VALUES + _REST,
    ),
    Mutant(
        "08.2",
        "only_the_top",
        "what lies deeper was plain before",
        says="What lies deep inside",
        code="""
def plain(thing):
    def one(value):
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray):
            return torch.from_numpy(value)
        if hasattr(value, "state_dict"):
            return dict(value.state_dict())
        if isinstance(value, set):
            raise TypeError("set")
        return value

    if isinstance(thing, dict):
        return {key: one(value) for key, value in thing.items()}
    return one(thing)
""",
    ),
    Mutant(
        "08.2",
        "lists",
        "a list of numbers is as good as a tensor",
        says="An array becomes a tensor",
        code=_HEAD
        + _NUMBERS
        + _VALUES
        + _REST.replace("torch.from_numpy(thing)", "thing.tolist()"),
    ),
    Mutant(
        "08.2",
        "float32",
        "tensors are float32",
        says="a tensor of the same dtype",
        code=_HEAD + _NUMBERS + _VALUES + _REST.replace("(thing)\n", "(thing).float()\n", 1),
    ),
    Mutant(
        "08.2",
        "no_tuples",
        "a tuple may become a list",
        says="a tuple a tuple",
        code=_HEAD + _NUMBERS + _VALUES + _REST.replace("type(thing)(map(", "list(map("),
    ),
    Mutant(
        "08.2",
        "same_mapping",
        "a defaultdict is a dict",
        says="must become a plain `dict`",
        code=_HEAD
        + _NUMBERS
        + _VALUES
        + _REST.replace(
            "return {key: plain(value) for key, value in thing.items()}",
            "made = copy.copy(thing)\n"
            "        made.update({key: plain(value) for key, value in thing.items()})\n"
            "        return made",
        ),
    ),
    Mutant(
        "08.2",
        "whole_model",
        "a module is what a checkpoint is about, so it may stay",
        says="A whole model loads only where its class",
        code=_HEAD + _NUMBERS + _VALUES + _REST.replace("plain(thing.state_dict())", "thing"),
    ),
    Mutant(
        "08.2",
        "as_text",
        "what can't be saved is saved as text",
        says="must be refused when saving",
        code=_HEAD
        + _NUMBERS
        + _VALUES
        + _REST.replace("raise TypeError(type(thing).__name__)", "return str(thing)"),
    ),
    Mutant(
        "08.2",
        "left_out",
        "what can't be saved is better left out",
        says="must be refused when saving",
        code=_HEAD
        + _NUMBERS
        + _VALUES
        + _REST.replace("raise TypeError(type(thing).__name__)", "return None"),
    ),
]

_PACK = """
def pack(step, model, optimizer, scheduler):
    return copy.deepcopy({
        "step": step,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "torch": torch.get_rng_state(),
        "python": random.getstate(),
    })
"""
_UNPACK = """
def unpack(saved, model, optimizer, scheduler):
    saved = copy.deepcopy(saved)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    scheduler.load_state_dict(saved["scheduler"])
    torch.set_rng_state(saved["torch"])
    random.setstate(saved["python"])
    return saved["step"]
"""


def _without(line: str) -> str:
    """The solution, with one line of `unpack` forgotten."""
    assert line in _UNPACK
    return _PACK + _UNPACK.replace(f"    {line}\n", "")


_RESUME = [
    Mutant(
        "08.3",
        "no_weights",
        "a new model will do",
        says="The weights are not those",
        code=_without('model.load_state_dict(saved["model"])'),
    ),
    Mutant(
        "08.3",
        "weights_alone",
        "the weights are the run",
        says="begins with other moments",
        code="""
def pack(step, model, optimizer, scheduler):
    return {"step": step, "model": copy.deepcopy(model.state_dict())}


def unpack(saved, model, optimizer, scheduler):
    model.load_state_dict(saved["model"])
    return saved["step"]
""",
    ),
    Mutant(
        "08.3",
        "no_scheduler",
        "the rate is in the optimizer, so the scheduler needs nothing",
        says="The schedule is at another place",
        code=_without('scheduler.load_state_dict(saved["scheduler"])'),
    ),
    Mutant(
        "08.3",
        "no_torch_state",
        "chance can't be saved",
        says="torch draws other random numbers",
        code=_without('torch.set_rng_state(saved["torch"])'),
    ),
    Mutant(
        "08.3",
        "the_seed",
        "setting the seed again puts the generator back",
        says="A seed is where a generator began",
        code=_PACK.replace("torch.get_rng_state()", "torch.initial_seed()")
        + _UNPACK.replace("torch.set_rng_state(", "torch.manual_seed("),
    ),
    Mutant(
        "08.3",
        "no_python_state",
        "torch's random state is the only one",
        says="it has a state of its own",
        code=_without('random.setstate(saved["python"])'),
    ),
    Mutant(
        "08.3",
        "sets_a_seed",
        "a fixed seed when saving makes it repeatable",
        says="drew random numbers or set a seed",
        code=_PACK.replace("    return copy", "    torch.manual_seed(0)\n    return copy")
        + _UNPACK,
    ),
    Mutant(
        "08.3",
        "live",
        "state_dict() is a copy",
        says="its numbers went on changing with the run",
        code=_PACK.replace("copy.deepcopy(", "dict(") + _UNPACK,
    ),
    Mutant(
        "08.3",
        "once",
        "load_state_dict copies what it is given",
        says="the first run wrote into the dict",
        code=_PACK + _UNPACK.replace("    saved = copy.deepcopy(saved)\n", ""),
    ),
    Mutant(
        "08.3",
        "objects",
        "the simplest is to save the objects",
        says="holds whole objects",
        code="""
def pack(step, model, optimizer, scheduler):
    return copy.deepcopy({
        "step": step, "model": model, "optimizer": optimizer, "scheduler": scheduler,
        "torch": torch.get_rng_state(), "python": random.getstate(),
    })


def unpack(saved, model, optimizer, scheduler):
    model.load_state_dict(saved["model"].state_dict())
    optimizer.load_state_dict(copy.deepcopy(saved["optimizer"].state_dict()))
    scheduler.load_state_dict(saved["scheduler"].state_dict())
    torch.set_rng_state(saved["torch"])
    random.setstate(saved["python"])
    return saved["step"]
""",
    ),
    Mutant(
        "08.3",
        "no_step",
        "unpack has nothing to say",
        says="returns the step",
        code=_without('return saved["step"]'),
    ),
]

_RESTORE = """
def restore(file, model, optimizer, scheduler):
    saved = torch.load(file, map_location="cpu")
    weights = saved["model"]
    for prefix in ("module.", "_orig_mod."):
        nn.modules.utils.consume_prefix_in_state_dict_if_present(weights, prefix)
    model.load_state_dict(weights)
    optimizer.load_state_dict(saved["optimizer"])
    own = {"step_size": scheduler.step_size, "gamma": scheduler.gamma}
    scheduler.load_state_dict(saved["scheduler"] | own)
    return saved["epoch"]
"""


def _but(old: str, new: str) -> str:
    """The solution, with one thing done as the mutant believes."""
    assert old in _RESTORE
    return _RESTORE.replace(old, new)


_REPAIR = [
    Mutant(
        "08.4",
        "as_given",
        "it works on my machine",
        says="got its code run",
        code="""
def restore(file, model, optimizer, scheduler):
    saved = torch.load(file, weights_only=False)
    model.load_state_dict(saved["model"], strict=False)
    optimizer.load_state_dict(saved["optimizer"])
    scheduler.load_state_dict(saved["scheduler"])
    return saved["epoch"]
""",
    ),
    Mutant(
        "08.4",
        "second_attempt",
        "when the safe way fails, the other one is needed",
        says="also as a second attempt",
        code=_but(
            '    saved = torch.load(file, map_location="cpu")\n',
            """    try:
        saved = torch.load(file, map_location="cpu")
    except pickle.UnpicklingError:
        file.seek(0)
        saved = torch.load(file, map_location="cpu", weights_only=False)
""",
        ),
    ),
    Mutant(
        "08.4",
        "no_map",
        "load_state_dict moves the tensors anyway",
        says="asks for the GPU it came from",
        code=_but(', map_location="cpu"', ""),
    ),
    Mutant(
        "08.4",
        "strict_alone",
        "strict=True is all that is needed for names",
        says="the prefix belongs to a wrapper",
        code=_but('("module.", "_orig_mod.")', "()"),
    ),
    Mutant(
        "08.4",
        "one_prefix",
        "module. is the prefix there is",
        says="`_orig_mod.` before each name",
        code=_but('("module.", "_orig_mod.")', '("module.",)'),
    ),
    Mutant(
        "08.4",
        "replaced_anywhere",
        "replace() takes a prefix off",
        says="The weights arrive",
        code="""
def restore(file, model, optimizer, scheduler):
    saved = torch.load(file, map_location="cpu")
    names = {n: n.replace("module.", "").replace("_orig_mod.", "") for n in saved["model"]}
    model.load_state_dict({names[n]: t for n, t in saved["model"].items()}, strict=False)
    optimizer.load_state_dict(saved["optimizer"])
    own = {"step_size": scheduler.step_size, "gamma": scheduler.gamma}
    scheduler.load_state_dict(saved["scheduler"] | own)
    return saved["epoch"]
""",
    ),
    Mutant(
        "08.4",
        "not_strict",
        "with the prefix gone strict=False does no harm",
        says="nobody said so",
        code=_but("load_state_dict(weights)", "load_state_dict(weights, strict=False)"),
    ),
    Mutant(
        "08.4",
        "settings_of_the_file",
        "a scheduler's state is its place",
        says="loading put the file's over the new ones",
        code=_but(" | own", ""),
    ),
    Mutant(
        "08.4",
        "only_the_period",
        "the period is the only setting",
        says="loading put the file's over the new ones",
        code=_but(', "gamma": scheduler.gamma', ""),
    ),
    Mutant(
        "08.4",
        "no_scheduler",
        "a scheduler that isn't loaded keeps its settings",
        says="goes on where it stood",
        code=_but('    scheduler.load_state_dict(saved["scheduler"] | own)\n', ""),
    ),
    Mutant(
        "08.4",
        "no_optimizer",
        "the optimizer finds its moments again",
        says="gets the moments",
        code=_but('    optimizer.load_state_dict(saved["optimizer"])\n', ""),
    ),
]

_BY_NAME = """
def by_name(saved, was, now):
    names = [name for group in was for name in group]
    moments = {names[position]: state for position, state in saved["state"].items()}
    state, groups, position = {}, [], 0
    for old, group in zip(saved["param_groups"], now):
        groups.append(old | {"params": list(range(position, position + len(group)))})
        for name in group:
            if name in moments:
                state[position] = moments[name]
            position += 1
    return {"state": state, "param_groups": groups}
"""


def _other(old: str, new: str) -> str:
    """The solution, with one thing done as the mutant believes."""
    assert old in _BY_NAME
    return _BY_NAME.replace(old, new)


_MOMENTS = [
    Mutant(
        "08.5",
        "as_it_is",
        "load_state_dict sorts it out",
        says="A moment landed at another parameter",
        code="""
def by_name(saved, was, now):
    return copy.deepcopy(saved)
""",
    ),
    Mutant(
        "08.5",
        "nothing",
        "the moments come back by themselves",
        says="every position keeps its moments",
        code=_other('"state": state', '"state": {}'),
    ),
    Mutant(
        "08.5",
        "the_wrong_way",
        "from the old place to the new one, or back: it is the same",
        says="where that name stood",
        code="""
def by_name(saved, was, now):
    before = [name for group in was for name in group]
    after = [name for group in now for name in group]
    state, groups, first = {}, [], 0
    for place, name in enumerate(before):
        if name in after and after.index(name) in saved["state"]:
            state[place] = saved["state"][after.index(name)]
    for old, group in zip(saved["param_groups"], now):
        groups.append(old | {"params": list(range(first, first + len(group)))})
        first += len(group)
    return {"state": state, "param_groups": groups}
""",
    ),
    Mutant(
        "08.5",
        "names_as_keys",
        "names are better keys than positions",
        says="The keys of `state` are positions",
        code=_other("state[position] = moments[name]", "state[name] = moments[name]").replace(
            '"state": state',
            '"state": saved["state"] if was == now else state',
        ),
    ),
    Mutant(
        "08.5",
        "old_params",
        "the groups have not changed",
        says="the positions of now",
        code=_other('old | {"params": list(range(position, position + len(group)))}', "dict(old)"),
    ),
    Mutant(
        "08.5",
        "each_from_zero",
        "positions are counted in each group",
        says="count on through all groups",
        code=_other("list(range(position, position + len(group)))", "list(range(len(group)))"),
    ),
    Mutant(
        "08.5",
        "settings_lost",
        "a group is a list of parameters",
        says="A group keeps its settings",
        code=_other("old | {", "{"),
    ),
    Mutant(
        "08.5",
        "invented",
        "a parameter without moments begins with those of its neighbour",
        says="A new name has no moments yet",
        code=_other(
            "            position += 1",
            "            elif moments:\n"
            "                state[position] = next(iter(moments.values()))\n"
            "            position += 1",
        ),
    ),
    Mutant(
        "08.5",
        "own_group_only",
        "a parameter's group never changes",
        says="takes its moments along",
        code=_other(
            "            if name in moments:",
            "            if name in moments and name in was[len(groups) - 1]:",
        ),
    ),
    Mutant(
        "08.5",
        "in_place",
        "what was loaded is mine to change",
        says="What was given must stay as it is",
        code=_other(
            'groups.append(old | {"params": list(range(position, position + len(group)))})',
            'old["params"] = list(range(position, position + len(group)))\n'
            "        groups.append(old)",
        ),
    ),
]

MUTANTS = [*_SNAPSHOT, *_PLAIN, *_RESUME, *_REPAIR, *_MOMENTS]

ALTERNATIVES = {
    "08.1": """
def snapshot(model):
    kept = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        with torch.no_grad():
            kept[name] = torch.empty(tensor.shape, dtype=tensor.dtype).copy_(tensor)
    return kept
""",
    "08.2": """
def plain(thing):
    match thing:
        case np.generic():
            return thing.item()
        case np.ndarray():
            return torch.tensor(thing)
        case torch.Tensor() | None | bool() | int() | float() | str():
            return thing
        case dict():
            return dict(zip(thing.keys(), [plain(value) for value in thing.values()]))
        case list():
            return [plain(value) for value in thing]
        case tuple():
            return tuple(plain(value) for value in thing)
    try:
        state = thing.state_dict()
    except AttributeError:
        raise TypeError(type(thing)) from None
    return plain(state)
""",
    "08.3": """
def pack(step, *pieces):
    buffer = io.BytesIO()
    states = [piece.state_dict() for piece in pieces]
    torch.save([step, states, torch.random.get_rng_state(), random.getstate()], buffer)
    return {"bytes": torch.frombuffer(bytearray(buffer.getvalue()), dtype=torch.uint8)}


def unpack(saved, *pieces):
    buffer = io.BytesIO(bytes(saved["bytes"].tolist()))
    step, states, torch_state, python_state = torch.load(buffer)
    for piece, state in zip(pieces, states):
        piece.load_state_dict(state)
    random.setstate(python_state)
    torch.random.set_rng_state(torch_state)
    return step
""",
    "08.4": """
def restore(file, model, optimizer, scheduler):
    step_size, gamma = scheduler.step_size, scheduler.gamma
    saved = torch.load(file, map_location=torch.device("cpu"), weights_only=True)
    model.load_state_dict({
        name.removeprefix("module.").removeprefix("_orig_mod."): tensor
        for name, tensor in saved["model"].items()
    })
    optimizer.load_state_dict(saved["optimizer"])
    scheduler.load_state_dict(saved["scheduler"])
    scheduler.step_size, scheduler.gamma = step_size, gamma
    return saved["epoch"]
""",
    "08.5": """
def by_name(saved, was, now):
    before, after = sum(was, []), sum(now, [])
    found = {
        place: saved["state"][before.index(name)]
        for place, name in enumerate(after)
        if name in before and before.index(name) in saved["state"]
    }
    groups = copy.deepcopy(saved["param_groups"])
    places = iter(range(len(after)))
    for group, names in zip(groups, now):
        group["params"] = [next(places) for _ in names]
    return {"state": found, "param_groups": groups}
""",
}
