"""Two runs of one function: what they share, and the very decision that made the difference."""

import functools
import gc
import inspect
import itertools
import json
import queue
import random
import sys
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from pytorch_lab import surroundings
from pytorch_lab.errors import UsageError
from pytorch_lab.graph import GraphDiff, compare
from pytorch_lab.graph.comparing import alignment
from pytorch_lab.graph.comparing.alignment import align, hunks
from pytorch_lab.graph.comparing.compare import _run
from pytorch_lab.modules import copies

POSITIVE = torch.ones(3, requires_grad=True)
NEGATIVE = (-torch.ones(3)).requires_grad_()


# ---- the decision that made the difference -------------------------------------------------------
# In each function a comment `HERE` marks the line that decides.


def plain_if(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:  # HERE
        x = x * 2
    return x.exp()


def else_branch(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 5:
        return x.sin()
    elif x.sum() > 0:  # HERE
        return x.cos()
    return x.tan()


def ternary(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    return y.exp() if x.sum() > 0 else y.sin().cos()  # HERE


def short_circuit(x: torch.Tensor) -> torch.Tensor:
    positive = bool(x.sum() > 0)
    _ = positive and x.exp()  # HERE
    return x * 2


def second_condition(x: torch.Tensor) -> torch.Tensor:
    big = True
    if big and x.sum() > 0:  # HERE
        x = x * 2
    return x


def negated(x: torch.Tensor) -> torch.Tensor:
    positive = bool(x.sum() > 0)
    if not positive:  # HERE
        x = x * 2
    return x


def while_loop(x: torch.Tensor) -> torch.Tensor:
    x = x * 8
    while x.max() > 1:  # HERE
        x = x / 2
    return x


def broken_off(x: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        x = x + 0.5
        if x.min() > 0:  # HERE
            break
    return x


def early_return(x: torch.Tensor) -> torch.Tensor:
    if not x.min() > 0:  # HERE
        return x
    return x.log().sum()


def own_error(x: torch.Tensor) -> torch.Tensor:
    try:
        check_positive(x)
    except ValueError:
        return x.abs().log()
    return x.log()


def check_positive(x: torch.Tensor) -> None:
    if x.min() < 0:  # HERE of own_error
        raise ValueError("expected positive numbers")


def matched(x: torch.Tensor) -> torch.Tensor:
    match int(x.sum()):
        case 3:  # HERE
            return x * 2
        case _:
            return x


def inside_a_call(x: torch.Tensor) -> torch.Tensor:
    return plain_if(x * 1) + 1


def over_elements(x: torch.Tensor) -> torch.Tensor:
    kept = [element for element in x if element > 0]  # HERE
    return torch.stack([*kept, x.sum()]).sum()


DECISIONS = [
    (plain_if, "if", "x.sum() > 0", "true in A, false in B", plain_if),
    (else_branch, "elif", "x.sum() > 0", "true in A, false in B", else_branch),
    (ternary, "ternary", "x.sum() > 0", "true in A, false in B", ternary),
    (
        short_circuit,
        "and",
        "positive and x.exp()",
        "went different ways within line {line}",
        short_circuit,
    ),
    (second_condition, "if", "x.sum() > 0", "true in A, false in B", second_condition),
    (negated, "if", "positive", "true in A, false in B", negated),
    (while_loop, "while", "x.max() > 1", "true in A, false in B", while_loop),
    (broken_off, "if", "x.min() > 0", "true in A, false in B", broken_off),
    (early_return, "if", "x.min() > 0", "true in A, false in B", early_return),
    (own_error, "if", "x.min() < 0", "false in A, true in B", check_positive),
    (matched, "case", "3", "true in A, false in B", matched),
    (inside_a_call, "if", "x.sum() > 0", "true in A, false in B", plain_if),
]


def marked_line(function: Callable[..., Any]) -> int:
    lines, first = inspect.getsourcelines(function)
    return next(first + i for i, line in enumerate(lines) if "# HERE" in line)


@pytest.mark.parametrize(
    ("function", "kind", "condition", "says", "holder"), DECISIONS, ids=lambda p: str(p)[:24]
)
def test_the_deciding_line_is_found(
    function: Callable[..., Any], kind: str, condition: str, says: str, holder: Any
) -> None:
    branch = compare(function, POSITIVE, NEGATIVE).branch
    assert branch is not None
    assert (branch.kind, branch.condition) == (kind, condition)
    assert branch.site.line == marked_line(holder)
    assert branch.says == says.format(line=branch.site.line)


@pytest.mark.parametrize("function", [d[0] for d in DECISIONS], ids=lambda f: f.__name__)
def test_the_columns_are_those_of_the_decision(function: Callable[..., Any]) -> None:
    branch = compare(function, POSITIVE, NEGATIVE).branch
    assert branch is not None
    assert branch.site.columns is not None
    assert branch.site.file == __file__
    source = inspect.getsource(sys.modules[__name__]).splitlines()[branch.site.line - 1]
    decided = source[slice(*branch.site.columns)]
    assert branch.condition in decided
    head = {"ternary": "y.exp() if", "case": "3", "and": "positive"}.get(branch.kind, branch.kind)
    assert decided.startswith(head)


def test_a_loop_with_different_turns_names_both_numbers() -> None:
    def repeat(x: torch.Tensor, turns: int) -> torch.Tensor:
        for _ in range(turns):
            for _ in range(2):
                x = x * 2
        return x.sum()

    diff = compare(repeat, (POSITIVE, 3), (POSITIVE, 5))
    assert diff.branch is not None
    assert (diff.branch.kind, diff.branch.condition) == ("for", "range(turns)")
    assert diff.branch.says == "3 turns in A, 5 turns in B"
    assert (len(diff.ops), diff.only_a, len(diff.only_b)) == (7, (), 4)


def test_a_recursion_parts_at_its_end() -> None:
    def down(depth: int, x: torch.Tensor) -> torch.Tensor:
        if depth == 0:
            return x.sum()
        return down(depth - 1, x.cos())

    diff = compare(down, (2, POSITIVE), (5, POSITIVE))
    assert diff.branch is not None
    assert (diff.branch.kind, diff.branch.says) == ("if", "true in A, false in B")
    assert [diff.b.ops[i].name for i in diff.only_b] == ["cos"] * 3


def test_a_comprehension_is_named() -> None:
    diff = compare(over_elements, POSITIVE, NEGATIVE)
    assert diff.quiet or diff.branches
    found = (*diff.branches, *diff.quiet)
    assert found[0].kind == "comprehension"
    assert found[0].condition == "element > 0"


def test_an_exception_that_torch_raises_is_a_decision() -> None:
    def multiply(x: torch.Tensor) -> torch.Tensor:
        try:
            y = torch.ones(2, 3) @ x
        except RuntimeError:
            y = x.exp()
        return y * 2

    branch = compare(multiply, torch.ones(3), torch.ones(4)).branch
    assert branch is not None
    assert (branch.kind, branch.condition) == ("raise", "RuntimeError")
    assert branch.says == "raised RuntimeError in B, not in A"
    assert branch.site.line == multiply.__code__.co_firstlineno + 2


def test_a_call_that_goes_to_different_functions_is_named() -> None:
    table = {"sin": torch.sin, "own": lambda x: x * 2 + 1, "if": plain_if}

    def dispatch(name: str, x: torch.Tensor) -> torch.Tensor:
        return table[name](x)

    branch = compare(dispatch, ("if", POSITIVE), ("own", POSITIVE)).branch
    assert branch is not None
    assert branch.kind == "call"
    assert branch.says.startswith("called `plain_if` in A, `<lambda> of line")
    branch = compare(dispatch, ("sin", POSITIVE), ("if", POSITIVE)).branch
    assert branch is not None
    assert branch.says == "called torch's sin in A, `plain_if` in B"


def test_a_difference_inside_of_torch_has_the_line_of_the_call() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))

    def run(training: bool) -> torch.Tensor:
        model.train(training)
        return model(torch.ones(4, 3)).sum()

    diff = compare(run, True, False)
    assert diff.branch is not None
    assert diff.branch.kind == "inside"
    assert diff.branch.site.line == run.__code__.co_firstlineno + 2
    assert [diff.a.ops[i].name for i in diff.only_a] == ["add_"]  # it counts the batches


def test_an_op_that_builds_no_node_in_one_of_the_runs_is_no_branch() -> None:
    layer = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))

    def run(training: bool) -> torch.Tensor:
        layer.train(training)
        return layer(torch.ones(1, 3)).sum()

    diff = compare(run, True, False)
    assert (diff.branch, diff.only_a, diff.only_b) == (None, (), ())
    assert [diff.a.nodes[i].name for i in diff.nodes_only_a] == ["MulBackward0"]


def test_a_decision_that_changes_no_op_is_quiet() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        label = "big" if x.sum() > 0 else "small"
        if len(label) > 3:
            return x * 2
        return x / 2

    diff = compare(f, POSITIVE, NEGATIVE)
    assert [branch.kind for branch in diff.quiet] == ["ternary"]
    assert diff.branch is not None
    assert diff.branch.condition == "len(label) > 3"


def test_how_the_results_are_looked_through_is_no_decision_of_the_readers() -> None:
    def f(x: torch.Tensor, nested: bool) -> object:
        y = x * 2
        return ({"y": [y]}, None)[not nested]

    diff = compare(f, (POSITIVE, True), (POSITIVE, False))
    assert (diff.branches, diff.quiet) == ((), ())


def test_every_difference_has_its_own_decision() -> None:
    def f(x: torch.Tensor, first: bool, second: bool) -> torch.Tensor:
        if first:
            x = x.sin()
        x = x * 2
        if second:
            x = x.cos()
        return x + 1

    diff = compare(f, (POSITIVE, True, False), (POSITIVE, False, True))
    assert [branch.condition for branch in diff.branches] == ["first", "second"]
    assert [diff.a.ops[i].name for i in diff.branches[0].only_a] == ["sin"]
    assert [diff.b.ops[i].name for i in diff.branches[1].only_b] == ["cos"]


# ---- what is in common ---------------------------------------------------------------------------


def test_the_same_input_gives_the_same_graph() -> None:
    diff = compare(plain_if, POSITIVE, POSITIVE)
    assert (diff.only_a, diff.only_b, diff.branch, diff.quiet) == ((), (), None, ())
    assert (diff.nodes_only_a, diff.nodes_only_b) == ((), ())
    assert len(diff.nodes) == len(diff.a.nodes) > 0


def test_ops_and_nodes_add_up() -> None:
    diff = compare(while_loop, POSITIVE, NEGATIVE)
    assert len(diff.ops) + len(diff.only_a) == len(diff.a.ops)
    assert len(diff.ops) + len(diff.only_b) == len(diff.b.ops)
    assert len(diff.nodes) + len(diff.nodes_only_a) == len(diff.a.nodes)
    assert len(diff.nodes) + len(diff.nodes_only_b) == len(diff.b.nodes)
    assert all(diff.a.ops[i].name == diff.b.ops[j].name for i, j in diff.ops)
    assert all(diff.a.nodes[i].name == diff.b.nodes[j].name for i, j in diff.nodes)
    assert {diff.a.ops[i].name for i in diff.only_a} == {"div", "max", "gt", "bool"}


flags = st.lists(st.booleans(), max_size=6)


@given(a=flags, b=flags)
def test_each_turn_is_held_to_the_same_turn_of_the_other_run(a: list[bool], b: list[bool]) -> None:
    """The oracle pairs the turns by their number and counts what only one of them does."""

    def f(x: torch.Tensor, turns: list[bool]) -> torch.Tensor:
        for more in turns:
            if more:
                x = x.sin()
            x = x * 2
        return x + 1

    diff = compare(f, (POSITIVE, a), (POSITIVE, b))
    pairs = list(itertools.zip_longest(a, b))
    only_a = sum(1 if two is None else one > two for one, two in pairs if one is not None)
    only_a += sum(one for one, two in pairs if one is not None and two is None)
    only_b = sum(1 if one is None else two > one for one, two in pairs if two is not None)
    only_b += sum(two for one, two in pairs if two is not None and one is None)
    assert (len(diff.only_a), len(diff.only_b)) == (only_a, only_b)
    lines = [branch.site.line - f.__code__.co_firstlineno for branch in diff.branches]
    different = sum(one != two for one, two in zip(a, b, strict=False))
    assert sorted(lines) == [1] * (len(a) != len(b)) + [2] * different


def test_what_comes_after_a_loop_that_broke_off_is_in_common() -> None:
    def f(x: torch.Tensor, stop: int) -> torch.Tensor:
        for outer in range(2):
            for inner in range(5):
                x = x * 2
                if inner == stop + outer:
                    break
            x = x.sin()
        return x.cos()

    diff = compare(f, (POSITIVE, 1), (POSITIVE, 3))
    assert not diff.only_a
    assert [diff.b.ops[i].name for i in diff.only_b] == ["mul"] * 4  # 4 and 5 turns, not 2 and 3
    assert {branch.condition for branch in diff.branches} == {"inner == stop + outer"}


def test_a_generator_goes_on_in_its_own_turn() -> None:
    def steps(x: torch.Tensor, count: int) -> Iterator[torch.Tensor]:
        for turn in range(count):
            if turn != 1:
                x = x.sin()
            yield x

    def f(x: torch.Tensor, count: int) -> torch.Tensor:
        return sum(step * 2 for step in steps(x, count))  # pyright: ignore[reportReturnType]

    diff = compare(f, (POSITIVE, 2), (POSITIVE, 4))
    assert [diff.b.ops[i].name for i in diff.only_b] == ["sin", "mul", "add"] * 2
    assert not diff.only_a


def test_nodes_of_the_same_ops_are_common() -> None:
    diff = compare(plain_if, POSITIVE, NEGATIVE)
    common = [diff.a.nodes[i].name for i, _ in diff.nodes]
    only = [diff.a.nodes[i].name for i in diff.nodes_only_a]
    assert "ExpBackward0" in common
    assert "MulBackward0" in only


def test_a_module_is_compared_as_well() -> None:
    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for _ in range(int(x[0, 0])):
                x = self.layer(x).tanh()
            return x

    diff = compare(Deep(), torch.full((1, 3), 2.0), torch.full((1, 3), 4.0))
    assert diff.branch is not None
    assert diff.branch.says == "2 turns in A, 4 turns in B"
    assert {diff.b.ops[i].module for i in diff.only_b} == {"", "layer"}


def test_a_random_decision_is_the_same_in_both_runs() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        drawn = [torch.rand(()), random.random(), numpy.random.rand()]  # noqa: NPY002
        for number in drawn:
            x = x * 2 if number > 0.5 else x + 1
        return x

    with surroundings.kept():
        for number in range(8):
            surroundings.seed(number)
            assert compare(f, POSITIVE, NEGATIVE).branch is None


def test_the_random_numbers_go_on_as_if_nothing_had_run() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x * torch.rand(3) * random.random() * numpy.random.rand()  # noqa: NPY002

    def draw() -> list[float]:
        return [torch.rand(()).item(), random.random(), numpy.random.rand()]  # noqa: NPY002

    with surroundings.kept():
        surroundings.seed(5)
        expected = draw()
        surroundings.seed(5)
        compare(f, POSITIVE, NEGATIVE)
        assert draw() == expected


def test_what_a_model_counts_is_the_same_for_both_runs_and_afterwards() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(3)
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            x = self.norm(x)
            if self.calls > 1 or self.norm.num_batches_tracked > 1:
                x = x.exp()
            return x.sum()

    model = Counting()
    x = torch.arange(12.0).view(4, 3)
    for fn in (model, lambda x: model(x)):
        assert compare(fn, x, x + 1).branch is None
        assert (model.calls, model.norm.num_batches_tracked.item()) == (0, 0)
        assert not model.norm.running_mean.any()


def test_a_large_buffer_is_put_back_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Above some size a tensor is copied only when an op is about to write to it."""
    monkeypatch.setattr(copies, "COPY_AT_ONCE_BYTES", 8)
    norm = nn.BatchNorm1d(3)

    def f(x: torch.Tensor) -> torch.Tensor:
        x = norm(x)
        return x.sin() if norm.running_mean.sum() > 9.5 else x.cos()

    assert compare(f, torch.full((4, 3), 20.0), torch.full((4, 3), 20.0)).branch is None
    assert not norm.running_mean.any()


def test_a_weight_that_one_run_trains_is_the_old_one_for_the_other() -> None:
    layer = nn.Linear(3, 1, bias=False)
    nn.init.zeros_(layer.weight)

    def step(x: torch.Tensor) -> torch.Tensor:
        loss = (layer(x) - 1).square().sum()
        loss.backward()
        with torch.no_grad():
            layer.weight -= 0.1 * layer.weight.grad
        return layer.weight.sum().exp() if loss == 0 else loss

    assert compare(step, torch.ones(1, 3), torch.ones(1, 3)).branch is None
    assert layer.weight.grad is None
    assert not layer.weight.any()


def test_a_run_that_ends_in_an_error_is_compared_up_to_there() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        if x.sum() < 0:
            raise ValueError("no negative numbers")
        return y.sum()

    diff = compare(f, POSITIVE, NEGATIVE)
    assert diff.branch is not None
    assert diff.branch.condition == "x.sum() < 0"
    assert any("no negative numbers" in note for note in diff.notes)


# ---- leaving things as they were -----------------------------------------------------------------


def test_the_tracer_of_before_is_back() -> None:
    def tracer(frame: types.FrameType, event: str, arg: Any) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        compare(plain_if, POSITIVE, NEGATIVE)
        assert sys.gettrace() is tracer
        with pytest.raises(KeyboardInterrupt):
            compare(interrupt, POSITIVE, NEGATIVE)
        assert sys.gettrace() is tracer
    finally:
        sys.settrace(before)


def interrupt(x: torch.Tensor) -> torch.Tensor:
    raise KeyboardInterrupt


def test_a_generator_that_outlives_the_run_is_not_followed_on() -> None:
    kept: queue.SimpleQueue[Iterator[torch.Tensor]] = queue.SimpleQueue()  # a list is put back

    def halves(x: torch.Tensor) -> Iterator[torch.Tensor]:
        while True:
            x = x / 2
            yield x

    def f(x: torch.Tensor) -> torch.Tensor:
        made = halves(x)
        kept.put(made)
        return next(made)

    diff = compare(f, POSITIVE, NEGATIVE)
    assert diff.branch is None
    sys.settrace(lambda *_: None)
    try:
        next(kept.get())
        next(kept.get())
    finally:
        sys.settrace(None)
    assert [op.name for op in diff.a.ops] == [op.name for op in diff.b.ops] == ["div"]


def test_no_tensor_is_kept_alive() -> None:
    def ask() -> tuple[GraphDiff, weakref.ref[torch.Tensor]]:
        x = torch.ones(3, requires_grad=True)
        return compare(plain_if, x, -x), weakref.ref(x)

    diff, gone = ask()
    gc.collect()
    assert diff.branch is not None
    assert gone() is None


# ---- the text ------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [d[0] for d in DECISIONS], ids=lambda f: f.__name__)
def test_the_text_shows_the_line_in_eighty_columns(function: Callable[..., Any]) -> None:
    diff = compare(function, POSITIVE, NEGATIVE)
    text = str(diff)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert diff.branch is not None
    assert f"test_graph_compare.py:{diff.branch.site.line}" in text.replace("\n", " ")
    assert "^" in text
    assert f"{len(diff.only_a)} only in A, {len(diff.only_b)} only in B" in text


def test_long_differences_are_shortened() -> None:
    def repeat(x: torch.Tensor, turns: int) -> torch.Tensor:
        for _ in range(turns):
            x = x * 2
        return x

    text = str(compare(repeat, (POSITIVE, 1), (POSITIVE, 500)))
    assert len(text.splitlines()) < 40
    assert "more" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_program_without_source_is_compared_without_its_words() -> None:
    space: dict[str, Any] = {}
    exec(
        compile("def f(x):\n if x.sum() > 0:\n  return x * 2\n return x + 1\n", "<typed>", "exec"),
        space,
    )
    diff = compare(space["f"], POSITIVE, NEGATIVE)
    assert diff.branch is not None
    assert diff.branch.kind == "branch"
    assert diff.branch.site.line == 2
    assert str(diff)


def test_the_dictionary_is_plain() -> None:
    diff = compare(while_loop, POSITIVE, NEGATIVE)
    assert json.loads(json.dumps(diff.to_dict()))["branches"][0]["kind"] == "while"


@pytest.mark.parametrize("inputs", [(), (POSITIVE,), (POSITIVE, NEGATIVE, POSITIVE)])
def test_two_inputs_are_expected(inputs: tuple[torch.Tensor, ...]) -> None:
    with pytest.raises(UsageError, match=f"expected two inputs .*, got {len(inputs)};"):
        compare(plain_if, *inputs)


# ---- the alignment itself ------------------------------------------------------------------------


@functools.cache
def longest(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """The length of a longest common subsequence, as its definition says."""
    if not a or not b:
        return 0
    if a[0] == b[0]:
        return 1 + longest(a[1:], b[1:])
    return max(longest(a[1:], b), longest(a, b[1:]))


rows = st.lists(st.integers(0, 3), max_size=12).map(tuple)


@pytest.mark.parametrize("most_cells", [alignment.MOST_CELLS, 8])
@given(a=rows, b=rows)
def test_an_alignment_is_as_long_as_can_be_and_early(
    most_cells: int, a: tuple[int, ...], b: tuple[int, ...]
) -> None:
    """In order, equal, of the greatest length; after each pair the rows really part."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "MOST_CELLS", most_cells)
        pairs = align(a, b)
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(one[0] < two[0] and one[1] < two[1] for one, two in itertools.pairwise(pairs))
    assert len(pairs) == longest(a, b)
    for i, j in [(-1, -1), *pairs]:
        if i + 1 < len(a) and j + 1 < len(b) and a[i + 1] == b[j + 1]:
            assert (i + 1, j + 1) in pairs
    covered = sum(h.a_end - h.a_start for h in hunks(pairs, len(a), len(b)))
    assert covered + len(pairs) == len(a)


def test_a_long_loop_of_python_alone_is_not_followed_turn_by_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What comes in it and after it is seen all the same."""
    monkeypatch.setattr("pytorch_lab.graph.comparing.trail.MOST_QUIET", 100)

    def add(a: int, b: int) -> int:
        return a + b if a else b

    def counts(x: torch.Tensor) -> torch.Tensor:
        total = 0
        for i in range(300):
            for j in range(10):
                total = add(total, i * j)
            if i == 200:
                x = x.exp()
                if x.sum() > 10:
                    x = x * 2
        if x.sum() > 100:
            return x * 3
        return x

    small, middle, large = torch.ones(3) * -1, torch.ones(3) * 2, torch.ones(3) * 9
    inside = compare(counts, small, middle)
    assert inside.branch is not None
    assert inside.branch.condition == "x.sum() > 10"
    after = compare(counts, middle, large)
    assert after.branch is not None
    assert after.branch.condition == "x.sum() > 100"
    assert any("not followed turn by turn" in note for note in after.notes)
    followed = max(
        len(side.trail.steps) for side in (_run(counts, x, (x, x), {}) for x in (middle, large))
    )
    assert followed < 1000  # of more than 6,000
