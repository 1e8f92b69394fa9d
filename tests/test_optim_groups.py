"""groups: who is in which group, in none, in two; nothing is changed by looking."""

import json
import re

import pytest
import torch
from torch import nn

import pytorch_lab as lab
from pytorch_lab import optim
from pytorch_lab.errors import UsageError


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 3), nn.Linear(3, 2)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.head = nn.Embedding(5, 3), nn.Linear(3, 5, bias=False)
        self.head.weight = self.tokens.weight


def sgd(parameters, **options):
    return torch.optim.SGD(parameters, **{"lr": 0.1} | options)


def all_in_one():
    net = Net()
    return sgd(net.parameters()), net


def unfrozen_later():
    net = Net()
    net.body.requires_grad_(False)
    optimizer = sgd([p for p in net.parameters() if p.requires_grad])
    net.body.requires_grad_(True)
    net.body.weight.grad = torch.ones(3, 4)
    return optimizer, net


def head_replaced():
    net = Net()
    optimizer = sgd(net.parameters())
    net.head = nn.Linear(3, 7)
    return optimizer, net


def of_another_model():
    return sgd(Net().parameters()), Net()


@pytest.mark.filterwarnings("ignore:optimizer contains a parameter group with duplicate")
def twice():
    net = Net()
    return sgd([*net.parameters(), net.head.bias]), net


def tied_in_two():
    net = Tied()
    return [{"params": [net.tokens.weight]}, {"params": [net.head.weight]}], net


def two_optimizers_share():
    net = Net()
    return [sgd(net.parameters()), torch.optim.Adam(net.head.parameters())], net


def frozen_with_gradient():
    net = Net()
    optimizer = sgd(net.parameters())
    net.body.weight.grad = torch.ones(3, 4)
    net.body.requires_grad_(False)
    return optimizer, net


def masked():
    net = Net()
    net.body.weight.register_hook(lambda grad: grad * 0)
    return sgd(net.parameters(), weight_decay=0.1), net


def used_up():
    net = Net()
    params = net.parameters()
    sgd(params)
    return params, net


def used_up_in_a_group():
    net = Net()
    params = net.parameters()
    sgd(params)
    return [{"params": params}, {"params": [net.head.bias]}], net


SAID = {
    "unfrozen later": (
        unfrozen_later, ["in_none"],
        "2 trainable tensors are in no group, so step() never changes them (1 of them with a "
        "gradient): body.weight, body.bias.",
    ),
    "a new head": (
        head_replaced, ["in_none", "foreign"],
        "holds 2 tensors that the model has not: tensor (2, 3), tensor (2,). A layer was replaced",
    ),
    "another model": (
        of_another_model, ["other_model"], "None of the optimizer's 4 tensors belongs to",
    ),
    "twice": (twice, ["twice"], "head.bias is 2 times in group 0, and is updated 2 times"),
    "tied in two groups": (
        tied_in_two, ["in_two"],
        "tokens.weight (also head.weight) is in group 0 and in group 1: torch refuses such groups.",
    ),
    "two optimizers": (
        two_optimizers_share, ["in_two", "in_two"],
        "head.weight is in SGD group 0 and in Adam group 0: each updates it.",
    ),
    "frozen with a gradient": (
        frozen_with_gradient, ["stale_gradient"], "body.weight is frozen, but still with a gra",
    ),
    "a hook and weight decay": (
        masked, ["hooked_decay"], "body.weight has a hook on its gradient and weight_decay=0.1",
    ),
    "a generator used up": (used_up, ["used_up"], "The generator of parameters is used up"),
    "a generator used up in a group": (
        used_up_in_a_group, ["used_up", "in_none"], "The generator of parameters of group 0 is",
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:optimizer contains a parameter group with duplicate")
@pytest.mark.parametrize(("make", "codes", "words"), SAID.values(), ids=SAID)
def test_what_is_wrong_is_said(make, codes, words):
    record = optim.groups(*make())
    assert [one.code for one in record.problems] == codes
    assert words in " ".join(one.text for one in record.problems)
    assert all(len(line) <= 80 for line in str(record).splitlines())


def two_groups():
    net = Net()
    return sgd([{"params": net.body.parameters(), "weight_decay": 0.1}, *[
        {"params": net.head.parameters(), "lr": 0.01, "name": "head"}]]), net  # fmt: skip


def muon_and_adamw():
    net = Net()
    flat = [p for p in net.parameters() if p.dim() != 2]
    return [torch.optim.Muon([p for p in net.parameters() if p.dim() == 2]),
            torch.optim.AdamW(flat)], net  # fmt: skip


def frozen_body():
    net = Net()
    net.body.requires_grad_(False)
    return sgd(net.head.parameters()), net


def lazy():
    net = nn.Sequential(nn.LazyLinear(3), nn.Linear(3, 2))
    return sgd(net.parameters()), net


def tied():
    net = Tied()
    return sgd(net.parameters()), net


GOOD = [all_in_one, two_groups, muon_and_adamw, frozen_body, lazy, tied]


@pytest.mark.parametrize("make", GOOD)
def test_a_good_optimizer_has_no_problem(make):
    record = optim.groups(*make())
    assert record.problems == ()
    assert (record.in_none, record.foreign, record.repeated) == ((), (), ())


@pytest.mark.parametrize("make", GOOD)
def test_the_numbers_are_those_of_the_optimizer(make):
    optimizer, net = make()
    record = optim.groups(optimizer, net)
    raw = [
        group
        for one in (optimizer if isinstance(optimizer, list) else [optimizer])
        for group in one.param_groups
    ]
    assert [group.lr for group in record.groups] == [group["lr"] for group in raw]
    assert [group.weight_decay for group in record.groups] == [g["weight_decay"] for g in raw]
    assert [group.n_tensors for group in record.groups] == [len(g["params"]) for g in raw]
    names = {id(p): name for name, p in net.named_parameters()}
    for index, group in enumerate(raw):
        mine = {p.names[0] for p in record.parameters if index in p.groups}
        assert mine == {names[id(p)] for p in group["params"]}


def test_groups_are_called_by_name_and_by_optimizer():
    assert [g.name for g in optim.groups(*two_groups()).groups] == ["group 0", "head"]
    record = optim.groups(*muon_and_adamw())
    assert [g.name for g in record.groups] == ["Muon group 0", "AdamW group 0"]
    assert record.optimizer == "Muon and AdamW"


def test_a_gan_has_two_optimizers_of_one_class():
    first, second = Net(), Net()
    record = optim.groups([sgd(first.parameters()), sgd(second.parameters())], first)
    assert [one.code for one in record.problems] == ["foreign"]


def test_names_that_the_optimizer_knows_are_used_for_what_the_model_lost():
    net = Net()
    optimizer = sgd(net.named_parameters())
    net.head = nn.Linear(3, 7)
    assert optim.groups(optimizer, net).foreign == ("head.weight", "head.bias")
    assert optim.groups(optimizer).parameters[0].names == ("body.weight",)


def test_without_a_model_only_what_can_be_known_is_said():
    record = optim.groups(all_in_one()[0])
    assert record.problems == ()
    assert str(record).splitlines()[0] == "SGD: 1 group, 4 tensors"


def test_nothing_is_changed():
    optimizer, net = two_groups()
    before = (
        repr(optimizer.state_dict()),
        [id(p) for p in net.parameters()],
        vars(optimizer).keys(),
    )
    optim.groups(optimizer, net)
    after = (
        repr(optimizer.state_dict()),
        [id(p) for p in net.parameters()],
        vars(optimizer).keys(),
    )
    assert before == after
    params = net.parameters()
    with pytest.raises(UsageError, match="which reading would use up"):
        optim.groups(params, net)
    assert len(list(params)) == 4


def test_no_tensor_is_kept_alive():
    import gc
    import weakref

    optimizer, net = all_in_one()
    record, weight = optim.groups(optimizer, net), weakref.ref(net.body.weight)
    del optimizer, net
    gc.collect()
    assert weight() is None
    assert json.loads(json.dumps(record.to_dict()))["parameters"][0]["names"] == ["body.weight"]


REFUSED = {
    "the model first": (lambda: (Net(), all_in_one()[0]), "expected an nn.Module as `model`"),
    "only the model": (lambda: (Net(),), "expected the optimizer first, got an nn.Module (Net)"),
    "a number": (lambda: (3,), "expected an optimizer, a list of them, or a list of parameters"),
    "nothing": (lambda: ([],), "got []"),
    "words": (lambda: ([{"params": ["weight"]}],), "expected tensors in a group, got str"),
    "a filter": (lambda: (filter(None, []),), "got a filter, which reading would use up"),
}


@pytest.mark.parametrize(("make", "says"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_optimizer_is_refused(make, says):
    with pytest.raises(UsageError, match=re.escape(says)):
        optim.groups(*make())


# ------------------------------------------------------------------------------- the picture


def test_uniform_parts_are_one_row_and_what_is_lost_comes_first():
    net = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), nn.Linear(2, 1))
    state = lab.show(sgd(net[0].parameters()), net).state
    rows = [(row["name"], row["says"], row["lost"]) for row in state["rows"]]
    assert rows == [("1.*", "in no group", True), ("0.*", "group 0", False)]
    assert state["rows"][1]["size"] == "4 tensors, 12"
    assert (state["finding"], state["good"]) == ("2 trainable tensors in no group", False)


def test_every_tensor_is_in_a_row():
    net = nn.TransformerEncoderLayer(8, 2, 16)
    decay = [p for p in net.parameters() if p.dim() > 1]
    rest = [p for p in net.parameters() if p.dim() < 2]
    rows = lab.show(sgd([{"params": decay}, {"params": rest}]), net).state["rows"]
    counts = [re.match(r"(\d+) tensors", row["size"]) for row in rows]
    assert sum(int(found[1]) if found else 1 for found in counts) == len(list(net.parameters()))


def test_the_page_without_a_kernel_is_stable_and_says_the_same():
    page = lab.show(optim.groups(*head_replaced())).to_html()
    assert page == lab.show(*head_replaced()).to_html()
    assert "in no group" in page
    assert "A layer was replaced" in page
    with pytest.raises(UsageError, match="expected the ParamGroups alone"):
        lab.show(optim.groups(*all_in_one()), 1)
