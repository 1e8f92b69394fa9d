"""Wrong answers to the exercises of lesson 01 that people really give, and what each one believes.

A test proves that every one is rejected: by the visible check with a message that contains `says`,
and by the grader with no points. `ALTERNATIVES` are right answers in another style than ours; they
must pass both.
"""

from pytorch_lab.grading import Mutant

_WAY_BACK = [
    Mutant(
        "01.1",
        "nothing",
        "an empty list will do",
        says="the list is empty",
        code="""
def way_back(result):
    return []
""",
    ),
    Mutant(
        "01.1",
        "nodes",
        "a node is as good as its name",
        says="a node is not a name",
        code="""
def way_back(result):
    nodes, node = [], result.grad_fn
    while node is not None:
        nodes.append(node)
        node = node.next_functions[0][0] if node.next_functions else None
    return nodes
""",
    ),
    Mutant(
        "01.1",
        "as_text",
        "str(node) is its name",
        says="A name is that of the node's class",
        code="""
def way_back(result):
    names, node = [], result.grad_fn
    while node is not None:
        names.append(str(node))
        node = node.next_functions[0][0] if node.next_functions else None
    return names
""",
    ),
    Mutant(
        "01.1",
        "own_name",
        "node.name() is the class's name for every node",
        says="A name is that of the node's class",
        code="""
def way_back(result):
    names, node = [], result.grad_fn
    while node is not None:
        names.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return names
""",
    ),
    Mutant(
        "01.1",
        "forward_order",
        "the graph is read from the leaf to the result",
        says="The way back starts at the result",
        code="""
def way_back(result):
    names, node = [], result.grad_fn
    while node is not None:
        names.insert(0, type(node).__name__)
        node = node.next_functions[0][0] if node.next_functions else None
    return names
""",
    ),
    Mutant(
        "01.1",
        "first_left_out",
        "the way begins behind grad_fn",
        says="The way back starts at the result",
        code="""
def way_back(result):
    names, node = [], result.grad_fn
    while node is not None and node.next_functions:
        node = node.next_functions[0][0]
        if node is not None:
            names.append(type(node).__name__)
    return names
""",
    ),
    Mutant(
        "01.1",
        "leaf_left_out",
        "a node without next_functions is not on the way",
        says="The way ends at the leaf",
        code="""
def way_back(result):
    names, node = [], result.grad_fn
    while node is not None and node.next_functions:
        names.append(type(node).__name__)
        node = node.next_functions[0][0]
    return names
""",
    ),
    Mutant(
        "01.1",
        "last_way",
        "all ways out of a node lead to the same place",
        says="only the first one is followed",
        code="""
def way_back(result):
    names, node = [], result.grad_fn
    while node is not None:
        names.append(type(node).__name__)
        ways = [after for after, _ in node.next_functions if after is not None]
        node = ways[-1] if ways else None
    return names
""",
    ),
    Mutant(
        "01.1",
        "every_way",
        "the way back is the whole graph",
        says="only the first one is followed",
        code="""
def way_back(result):
    names, todo = [], [result.grad_fn]
    while todo:
        node = todo.pop(0)
        if node is not None:
            names.append(type(node).__name__)
            todo += [after for after, _ in node.next_functions]
    return names
""",
    ),
    Mutant(
        "01.1",
        "around_none",
        "a way out that leads nowhere is skipped",
        says="that is the end",
        code="""
def way_back(result):
    names, node = [], result.grad_fn
    while node is not None:
        names.append(type(node).__name__)
        ways = [after for after, _ in node.next_functions if after is not None]
        node = ways[0] if ways else None
    return names
""",
    ),
    Mutant(
        "01.1",
        "none_is_a_node",
        "the None at the end has a name too",
        says="that is the end",
        code="""
def way_back(result):
    names, node = [], result.grad_fn
    while node is not None:
        names.append(type(node).__name__)
        if not node.next_functions:
            break
        node = node.next_functions[0][0]
        if node is None:
            names.append("None")
    return names
""",
    ),
    Mutant(
        "01.1",
        "leaf_has_a_way",
        "every tensor that requires grad has a node behind it",
        says="Nothing was recorded for it",
        code="""
def way_back(result):
    names, node = [], result.grad_fn
    if node is None:
        return ["AccumulateGrad"] if result.requires_grad else []
    while node is not None:
        names.append(type(node).__name__)
        node = node.next_functions[0][0] if node.next_functions else None
    return names
""",
    ),
    Mutant(
        "01.1",
        "recursive",
        "a graph is never deeper than Python's recursion",
        says="walk in a loop",
        code="""
def way_back(result):
    def names_from(node):
        if node is None:
            return []
        after = node.next_functions[0][0] if node.next_functions else None
        return [type(node).__name__, *names_from(after)]

    return names_from(result.grad_fn)
""",
    ),
]

_SETTLE_HEAD = """
class Settle(nn.Module):
    def __init__(self, width, tol=0.01, most=50):
        super().__init__()
        self.tol, self.most = tol, most
        self.step = nn.Linear(width, width)
"""

_SETTLE = [
    Mutant(
        "01.2",
        "state_only",
        "the number of turns is for the learner's eyes",
        says="returns two things",
        code=_SETTLE_HEAD
        + """
    def forward(self, x):
        h = torch.zeros_like(x)
        for _ in range(self.most):
            before, h = h, torch.tanh(self.step(h) + x)
            if (h - before).abs().max() < self.tol:
                break
        return h
""",
    ),
    Mutant(
        "01.2",
        "turns_as_tensor",
        "a count is a tensor like everything else",
        says="that is an `int`",
        code=_SETTLE_HEAD
        + """
    def forward(self, x):
        h, turns = torch.zeros_like(x), torch.tensor(0)
        for _ in range(self.most):
            before, h = h, torch.tanh(self.step(h) + x)
            turns += 1
            if (h - before).abs().max() < self.tol:
                break
        return h, turns
""",
    ),
    Mutant(
        "01.2",
        "always_most",
        "a network has a fixed number of layers",
        says="one turn is enough",
        code=_SETTLE_HEAD
        + """
    def forward(self, x):
        h = torch.zeros_like(x)
        for _ in range(self.most):
            h = torch.tanh(self.step(h) + x)
        return h, self.most
""",
    ),
    Mutant(
        "01.2",
        "from_zero",
        "enumerate counts turns",
        says="one turn is enough",
        code=_SETTLE_HEAD
        + """
    def forward(self, x):
        h = torch.zeros_like(x)
        for turns in range(self.most):
            before, h = h, torch.tanh(self.step(h) + x)
            if (h - before).abs().max() < self.tol:
                break
        return h, turns
""",
    ),
    Mutant(
        "01.2",
        "sign_ignored",
        "a change is a rise",
        says="up or down",
        code=_SETTLE_HEAD
        + """
    def forward(self, x):
        h = torch.zeros_like(x)
        for turns in range(1, self.most + 1):
            before, h = h, torch.tanh(self.step(h) + x)
            if (h - before).max() < self.tol:
                break
        return h, turns
""",
    ),
    Mutant(
        "01.2",
        "average_change",
        "small on average is small everywhere",
        says="whose largest change",
        code=_SETTLE_HEAD
        + """
    def forward(self, x):
        h = torch.zeros_like(x)
        for turns in range(1, self.most + 1):
            before, h = h, torch.tanh(self.step(h) + x)
            if (h - before).abs().mean() < self.tol:
                break
        return h, turns
""",
    ),
    Mutant(
        "01.2",
        "one_more",
        "`turns > most` is the moment to stop",
        says="turns were allowed",
        code=_SETTLE_HEAD
        + """
    def forward(self, x):
        h, turns = torch.zeros_like(x), 0
        while True:
            before, h = h, torch.tanh(self.step(h) + x)
            turns += 1
            if (h - before).abs().max() < self.tol or turns > self.most:
                return h, turns
""",
    ),
    Mutant(
        "01.2",
        "the_one_before",
        "when nothing changes, the old value is as good",
        says="that of the last turn",
        code=_SETTLE_HEAD
        + """
    def forward(self, x):
        h = torch.zeros_like(x)
        for turns in range(1, self.most + 1):
            new = torch.tanh(self.step(h) + x)
            if (new - h).abs().max() < self.tol and turns > 1:
                break
            h = new
            if turns == 1 and h.abs().max() < self.tol:
                break
        return h, turns
""",
    ),
    Mutant(
        "01.2",
        "no_grad",
        "a loop of unknown length can't be recorded",
        says="doesn't require grad",
        code=_SETTLE_HEAD
        + """
    @torch.no_grad()
    def forward(self, x):
        h = torch.zeros_like(x)
        for turns in range(1, self.most + 1):
            before, h = h, torch.tanh(self.step(h) + x)
            if (h - before).abs().max() < self.tol:
                break
        return h, turns
""",
    ),
    Mutant(
        "01.2",
        "last_turn_only",
        "the graph of the earlier turns must be cut off",
        says="not only through the last one",
        code=_SETTLE_HEAD
        + """
    def forward(self, x):
        h = torch.zeros_like(x)
        for turns in range(1, self.most + 1):
            before = h.detach()
            h = torch.tanh(self.step(before) + x)
            if (h - before).abs().max() < self.tol:
                break
        return h, turns
""",
    ),
    Mutant(
        "01.2",
        "state_kept",
        "a module remembers where it settled",
        says="Each call is a new loop",
        code=_SETTLE_HEAD
        + """
        self.h = None

    def forward(self, x):
        h = torch.zeros_like(x) if self.h is None or self.h.shape != x.shape else self.h
        for turns in range(1, self.most + 1):
            before, h = h, torch.tanh(self.step(h) + x)
            if (h - before).abs().max() < self.tol:
                break
        self.h = h.detach()
        return h, turns
""",
    ),
    Mutant(
        "01.2",
        "length_of_the_first",
        "the first input decides how long the network is",
        says="Each call is a new loop",
        code=_SETTLE_HEAD
        + """
        self.turns = None

    def forward(self, x):
        h = torch.zeros_like(x)
        for turns in range(1, (self.turns or self.most) + 1):
            before, h = h, torch.tanh(self.step(h) + x)
            if self.turns is None and (h - before).abs().max() < self.tol:
                break
        self.turns = turns
        return h, turns
""",
    ),
]

_CENSUS = [
    Mutant(
        "01.3",
        "total",
        "how many was the question",
        says="a total hides what it counts",
        code="""
def census(result):
    seen, todo = set(), [result.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            todo += [after for after, _ in node.next_functions]
    return len(seen)
""",
    ),
    Mutant(
        "01.3",
        "nothing",
        "an empty dict will do",
        says="the dict is empty",
        code="""
def census(result):
    return {}
""",
    ),
    Mutant(
        "01.3",
        "own_name",
        "node.name() is the class's name for every node",
        says="A name is that of the node's class",
        code="""
def census(result):
    names, seen, todo = {}, set(), [result.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            names[node.name()] = names.get(node.name(), 0) + 1
            todo += [after for after, _ in node.next_functions]
    return names
""",
    ),
    Mutant(
        "01.3",
        "leaf_left_out",
        "a node that leads nowhere is no node",
        says="The leaf has a node too",
        code="""
def census(result):
    names, seen, todo = {}, set(), [result.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and node.next_functions and node not in seen:
            seen.add(node)
            name = type(node).__name__
            names[name] = names.get(name, 0) + 1
            todo += [after for after, _ in node.next_functions]
    return names
""",
    ),
    Mutant(
        "01.3",
        "names_once",
        "a name that was seen is a node that was seen",
        says="seen is a node, not a name",
        code="""
def census(result):
    names, todo = {}, [result.grad_fn]
    while todo:
        node = todo.pop()
        if node is None:
            continue
        names[type(node).__name__] = 1
        todo += [after for after, _ in node.next_functions]
    return names
""",
    ),
    Mutant(
        "01.3",
        "first_way",
        "a graph is a chain",
        says="both are followed",
        code="""
def census(result):
    names, node = {}, result.grad_fn
    while node is not None:
        name = type(node).__name__
        names[name] = names.get(name, 0) + 1
        node = node.next_functions[0][0] if node.next_functions else None
    return names
""",
    ),
    Mutant(
        "01.3",
        "once_per_way",
        "a graph is a tree",
        says="it counts once",
        code="""
def census(result):
    names, todo = {}, [result.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None:
            name = type(node).__name__
            names[name] = names.get(name, 0) + 1
            todo += [after for after, _ in node.next_functions]
    return names
""",
    ),
    Mutant(
        "01.3",
        "marked_when_listed_twice",
        "what is still on the list can't be listed again",
        says="it counts once",
        code="""
def census(result):
    names, seen, todo = {}, set(), [result.grad_fn]
    while todo:
        node = todo.pop()
        if node is None:
            continue
        seen.add(node)
        name = type(node).__name__
        names[name] = names.get(name, 0) + 1
        todo += [after for after, _ in node.next_functions if after not in seen]
    return names
""",
    ),
    Mutant(
        "01.3",
        "none_counted",
        "a way out that leads to no node is a node too",
        says="those ways out lead to no node",
        code="""
def census(result):
    names, seen, todo = {}, set(), [result.grad_fn] if result.grad_fn else []
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        if node is not None:
            seen.add(node)
            todo += [after for after, _ in node.next_functions]
        name = "None" if node is None else type(node).__name__
        names[name] = names.get(name, 0) + 1
    return names
""",
    ),
    Mutant(
        "01.3",
        "leaf_has_a_graph",
        "every tensor that requires grad has a node behind it",
        says="nobody is to be counted",
        code="""
def census(result):
    if result.grad_fn is None:
        return {"AccumulateGrad": 1} if result.requires_grad else {}
    names, seen, todo = {}, set(), [result.grad_fn]
    while todo:
        node = todo.pop()
        if node is not None and node not in seen:
            seen.add(node)
            name = type(node).__name__
            names[name] = names.get(name, 0) + 1
            todo += [after for after, _ in node.next_functions]
    return names
""",
    ),
    Mutant(
        "01.3",
        "recursive",
        "a graph is never deeper than Python's recursion",
        says="deeper than Python's recursion",
        code="""
def census(result):
    names, seen = {}, set()

    def visit(node):
        if node is None or node in seen:
            return
        seen.add(node)
        name = type(node).__name__
        names[name] = names.get(name, 0) + 1
        for after, _ in node.next_functions:
            visit(after)

    visit(result.grad_fn)
    return names
""",
    ),
]

_SMOOTHER_HEAD = """
class Smoother(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.start = nn.Parameter(torch.full((width,), 0.1))
        self.gate = nn.Parameter(torch.tensor(0.5))
        self.mix = nn.Linear(width, width)
        self.last = None
"""

_SMOOTHER = [
    Mutant(
        "01.4",
        "keep_left",
        "what __init__ computes follows the parameter it was made of",
        says="a graph that an earlier `backward()` has used up",
        code=_SMOOTHER_HEAD
        + """
        self.keep = torch.sigmoid(self.gate)

    def forward(self, series):
        h = self.start if self.last is None else self.last
        for row in series:
            h = self.keep * h + (1 - self.keep) * torch.tanh(self.mix(row))
            if h.norm() > 1:
                h = h / h.norm()
        self.last = h.detach()
        return h
""",
    ),
    Mutant(
        "01.4",
        "keep_cached",
        "what is computed in the first forward need not be computed again",
        says="a graph that an earlier `backward()` has used up",
        code=_SMOOTHER_HEAD
        + """
        self.keep = None

    def forward(self, series):
        h = self.start if self.last is None else self.last
        if self.keep is None:
            self.keep = torch.sigmoid(self.gate)
        for row in series:
            h = self.keep * h + (1 - self.keep) * torch.tanh(self.mix(row))
            if h.norm() > 1:
                h = h / h.norm()
        self.last = h.detach()
        return h
""",
    ),
    Mutant(
        "01.4",
        "keep_is_a_number",
        "item() cures the error of a graph that is used up",
        says="`gate` gets no gradient",
        code=_SMOOTHER_HEAD
        + """
    def forward(self, series):
        h = self.start if self.last is None else self.last
        keep = torch.sigmoid(self.gate).item()
        for row in series:
            h = keep * h + (1 - keep) * torch.tanh(self.mix(row))
            if h.norm() > 1:
                h = h / h.norm()
        self.last = h.detach()
        return h
""",
    ),
    Mutant(
        "01.4",
        "keep_detached_in_init",
        "detach() cures the error of a graph that is used up",
        says="`gate` gets no gradient",
        code=_SMOOTHER_HEAD
        + """
        self.keep = torch.sigmoid(self.gate).detach()

    def forward(self, series):
        h = self.start if self.last is None else self.last
        for row in series:
            h = self.keep * h + (1 - self.keep) * torch.tanh(self.mix(row))
            if h.norm() > 1:
                h = h / h.norm()
        self.last = h.detach()
        return h
""",
    ),
    Mutant(
        "01.4",
        "item_left",
        "item() only looks at the norm",
        says="the division by the norm included",
        code=_SMOOTHER_HEAD
        + """
    def forward(self, series):
        h = self.start if self.last is None else self.last
        keep = torch.sigmoid(self.gate)
        for row in series:
            h = keep * h + (1 - keep) * torch.tanh(self.mix(row))
            if h.norm() > 1:
                h = h / h.norm().item()
        self.last = h.detach()
        return h
""",
    ),
    Mutant(
        "01.4",
        "division_dropped",
        "the if is only there for the numbers' sake",
        says="The numbers are those of the formulas",
        code=_SMOOTHER_HEAD
        + """
    def forward(self, series):
        h = self.start if self.last is None else self.last
        keep = torch.sigmoid(self.gate)
        for row in series:
            h = keep * h + (1 - keep) * torch.tanh(self.mix(row))
        self.last = h.detach()
        return h
""",
    ),
    Mutant(
        "01.4",
        "always_divided",
        "a branch must not depend on the data",
        says="The numbers are those of the formulas",
        code=_SMOOTHER_HEAD
        + """
    def forward(self, series):
        h = self.start if self.last is None else self.last
        keep = torch.sigmoid(self.gate)
        for row in series:
            h = keep * h + (1 - keep) * torch.tanh(self.mix(row))
            h = h / h.norm()
        self.last = h.detach()
        return h
""",
    ),
    Mutant(
        "01.4",
        "last_left",
        "what is kept for the next call is only numbers",
        says="`last` still carries the graph",
        code=_SMOOTHER_HEAD
        + """
    def forward(self, series):
        h = self.start if self.last is None else self.last
        keep = torch.sigmoid(self.gate)
        for row in series:
            h = keep * h + (1 - keep) * torch.tanh(self.mix(row))
            if h.norm() > 1:
                h = h / h.norm()
        self.last = h
        return h
""",
    ),
    Mutant(
        "01.4",
        "last_cloned",
        "clone() gives numbers without a graph",
        says="A clone carries it too",
        code=_SMOOTHER_HEAD
        + """
    def forward(self, series):
        h = self.start if self.last is None else self.last
        keep = torch.sigmoid(self.gate)
        for row in series:
            h = keep * h + (1 - keep) * torch.tanh(self.mix(row))
            if h.norm() > 1:
                h = h / h.norm()
        self.last = h.clone()
        return h
""",
    ),
    Mutant(
        "01.4",
        "last_forgotten",
        "each call must start from nothing",
        says="`last` still carries the graph",
        code=_SMOOTHER_HEAD
        + """
    def forward(self, series):
        h = self.start
        keep = torch.sigmoid(self.gate)
        for row in series:
            h = keep * h + (1 - keep) * torch.tanh(self.mix(row))
            if h.norm() > 1:
                h = h / h.norm()
        return h
""",
    ),
    Mutant(
        "01.4",
        "output_detached",
        "detach() before return, for last and for the caller",
        says="The output doesn't require grad",
        code=_SMOOTHER_HEAD
        + """
    def forward(self, series):
        h = self.start if self.last is None else self.last
        keep = torch.sigmoid(self.gate)
        for row in series:
            h = keep * h + (1 - keep) * torch.tanh(self.mix(row))
            if h.norm() > 1:
                h = h / h.norm()
        self.last = h = h.detach()
        return h
""",
    ),
    Mutant(
        "01.4",
        "detached_each_row",
        "a graph over many rows is an error",
        says="The gradient goes through all",
        code=_SMOOTHER_HEAD
        + """
    def forward(self, series):
        h = self.start if self.last is None else self.last
        keep = torch.sigmoid(self.gate)
        for row in series:
            h = keep * h.detach() + (1 - keep) * torch.tanh(self.mix(row))
            if h.norm() > 1:
                h = h / h.norm()
        self.last = h.detach()
        return h
""",
    ),
    Mutant(
        "01.4",
        "length_left",
        "all series are as long as the first",
        says="The numbers are those of the formulas",
        code=_SMOOTHER_HEAD
        + """
        self.steps = None

    def forward(self, series):
        h = self.start if self.last is None else self.last
        self.steps = self.steps or len(series)
        keep = torch.sigmoid(self.gate)
        for row in series[: self.steps]:
            h = keep * h + (1 - keep) * torch.tanh(self.mix(row))
            if h.norm() > 1:
                h = h / h.norm()
        self.last = h.detach()
        return h
""",
    ),
]

_TREE_HEAD = """
class TreeNet(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.merge = nn.Linear(width, width)
        self.again = nn.Linear(width, width)
"""

_TREE = [
    Mutant(
        "01.5",
        "words_merged",
        "everything goes through merge, a word too",
        says="nothing more is done to it",
        code=_TREE_HEAD
        + """
    def forward(self, tree):
        h = self.embed.weight[tree] if isinstance(tree, int) else sum(map(self.forward, tree))
        h = torch.tanh(self.merge(h))
        return torch.tanh(self.again(h)) if h.mean() < 0 else h
""",
    ),
    Mutant(
        "01.5",
        "no_tanh",
        "adding linear layers is enough",
        says="then come `merge` and `tanh`",
        code=_TREE_HEAD
        + """
    def forward(self, tree):
        if isinstance(tree, int):
            return self.embed.weight[tree]
        h = self.merge(sum(map(self.forward, tree)))
        return self.again(h) if h.mean() < 0 else h
""",
    ),
    Mutant(
        "01.5",
        "mean_of_parts",
        "parts are averaged, so that long phrases do not weigh more",
        says="The vectors are added",
        code=_TREE_HEAD
        + """
    def forward(self, tree):
        if isinstance(tree, int):
            return self.embed.weight[tree]
        h = torch.tanh(self.merge(sum(map(self.forward, tree)) / len(tree)))
        return torch.tanh(self.again(h)) if h.mean() < 0 else h
""",
    ),
    Mutant(
        "01.5",
        "pairs_only",
        "a tree is binary",
        says="all of them are added",
        code=_TREE_HEAD
        + """
    def forward(self, tree):
        if isinstance(tree, int):
            return self.embed.weight[tree]
        h = torch.tanh(self.merge(self.forward(tree[0]) + self.forward(tree[-1])))
        return torch.tanh(self.again(h)) if h.mean() < 0 else h
""",
    ),
    Mutant(
        "01.5",
        "one_part_unwrapped",
        "a tuple of one part is that part",
        says="A tuple of one part goes through `merge`",
        code=_TREE_HEAD
        + """
    def forward(self, tree):
        if isinstance(tree, int):
            return self.embed.weight[tree]
        if len(tree) == 1:
            return self.forward(tree[0])
        h = torch.tanh(self.merge(sum(map(self.forward, tree))))
        return torch.tanh(self.again(h)) if h.mean() < 0 else h
""",
    ),
    Mutant(
        "01.5",
        "bag_of_words",
        "only the words count, not how they are grouped",
        says="A part may be a tree itself",
        code=_TREE_HEAD
        + """
    def words(self, tree):
        return [tree] if isinstance(tree, int) else [w for part in tree for w in self.words(part)]

    def forward(self, tree):
        if isinstance(tree, int):
            return self.embed.weight[tree]
        h = torch.tanh(self.merge(self.embed.weight[self.words(tree)].sum(0)))
        return torch.tanh(self.again(h)) if h.mean() < 0 else h
""",
    ),
    Mutant(
        "01.5",
        "each_word_once",
        "a set of words is enough",
        says="as often as it stands there",
        code=_TREE_HEAD
        + """
    def forward(self, tree):
        if isinstance(tree, int):
            return self.embed.weight[tree]
        h = torch.tanh(self.merge(sum(map(self.forward, dict.fromkeys(tree)))))
        return torch.tanh(self.again(h)) if h.mean() < 0 else h
""",
    ),
    Mutant(
        "01.5",
        "branch_forgotten",
        "an if on a tensor does not belong into a network",
        says="Where the mean is negative",
        code=_TREE_HEAD
        + """
    def forward(self, tree):
        if isinstance(tree, int):
            return self.embed.weight[tree]
        return torch.tanh(self.merge(sum(map(self.forward, tree))))
""",
    ),
    Mutant(
        "01.5",
        "branch_at_the_root",
        "the if is for the whole sentence",
        says="Where the mean is negative",
        code=_TREE_HEAD
        + """
    def vector(self, tree):
        if isinstance(tree, int):
            return self.embed.weight[tree]
        return torch.tanh(self.merge(sum(map(self.vector, tree))))

    def forward(self, tree):
        h = self.vector(tree)
        if isinstance(tree, int) or h.mean() >= 0:
            return h
        return torch.tanh(self.again(h))
""",
    ),
    Mutant(
        "01.5",
        "both_branches",
        "both ways are computed, and one is multiplied by zero",
        says="a layer that was not used gets none",
        code=_TREE_HEAD
        + """
    def forward(self, tree):
        if isinstance(tree, int):
            return self.embed.weight[tree]
        h = torch.tanh(self.merge(sum(map(self.forward, tree))))
        below = (h.mean() < 0).float()
        return below * torch.tanh(self.again(h)) + (1 - below) * h
""",
    ),
    Mutant(
        "01.5",
        "copied_numbers",
        "torch.tensor makes a fresh vector of a row",
        says="cut from the graph",
        code=_TREE_HEAD
        + """
    def forward(self, tree):
        if isinstance(tree, int):
            return torch.tensor(self.embed.weight[tree].tolist())
        h = torch.tanh(self.merge(sum(map(self.forward, tree))))
        return torch.tanh(self.again(h)) if h.mean() < 0 else h
""",
    ),
    Mutant(
        "01.5",
        "parts_detached",
        "a finished phrase is only numbers",
        says="from every place where it was used",
        code=_TREE_HEAD
        + """
    def forward(self, tree):
        if isinstance(tree, int):
            return self.embed.weight[tree]
        parts = [self.forward(part).detach() for part in tree]
        h = torch.tanh(self.merge(sum(parts)))
        return torch.tanh(self.again(h)) if h.mean() < 0 else h
""",
    ),
    Mutant(
        "01.5",
        "remembered",
        "a tree that was computed once need not be computed again",
        says="remembered from an earlier call",
        code=_TREE_HEAD
        + """
        self.known = {}

    def forward(self, tree):
        if isinstance(tree, int):
            return self.embed.weight[tree]
        if tree not in self.known:
            h = torch.tanh(self.merge(sum(map(self.forward, tree))))
            self.known[tree] = torch.tanh(self.again(h)) if h.mean() < 0 else h
        return self.known[tree]
""",
    ),
]

MUTANTS = [*_WAY_BACK, *_SETTLE, *_CENSUS, *_SMOOTHER, *_TREE]

ALTERNATIVES = {
    "01.1": """
def _names(node):
    while node is not None:
        yield type(node).__name__
        node = next((after for after, _ in node.next_functions), None)


def way_back(result):
    return list(_names(result.grad_fn))
""",
    "01.2": """
class Settle(nn.Module):
    def __init__(self, width, tol=0.01, most=50):
        super().__init__()
        self.tol, self.most = tol, most
        self.step = nn.Linear(width, width)

    def forward(self, x):
        states = [torch.zeros_like(x)]
        for _ in range(self.most):
            states.append(self.step(states[-1]).add(x).tanh())
            change = states[-1].detach() - states[-2].detach()
            if torch.linalg.vector_norm(change, ord=float("inf")).item() < self.tol:
                break
        return states[-1], len(states) - 1
""",
    "01.3": """
import collections


def census(result):
    found = dict.fromkeys([result.grad_fn] if result.grad_fn else [])
    line = collections.deque(found)
    while line:
        for after, _ in line.popleft().next_functions:
            if after and after not in found:
                found[after] = None
                line.append(after)
    return dict(collections.Counter(type(node).__name__ for node in found))
""",
    "01.4": """
class Smoother(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.start = nn.Parameter(torch.full((width,), 0.1))
        self.gate = nn.Parameter(torch.tensor(0.5))
        self.mix = nn.Linear(width, width)
        self.register_buffer("last", None)

    def forward(self, series):
        h = self.start if self.last is None else self.last
        for new in self.mix(series).tanh():
            h = torch.lerp(new, h, torch.sigmoid(self.gate))
            h = h / h.norm().clamp(min=1)
        with torch.no_grad():
            self.last = h.clone()
        return h
""",
    "01.5": """
class TreeNet(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.merge = nn.Linear(width, width)
        self.again = nn.Linear(width, width)

    def forward(self, tree):
        line, at = [tree], 0
        while at < len(line):
            if isinstance(line[at], tuple):
                line.extend(line[at])
            at += 1
        vectors = []  # of the trees from the end of the line: parts come before their phrase
        for each in reversed(line):
            if isinstance(each, int):
                vectors.append(self.embed(torch.tensor(each)))
                continue
            parts, vectors = vectors[: len(each)], vectors[len(each) :]
            h = self.merge(torch.stack(parts).sum(0)).tanh()
            vectors.append(self.again(h).tanh() if h.mean() < 0 else h)
        return vectors[0]
""",
}
