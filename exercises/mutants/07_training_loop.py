"""Wrong answers to the exercises of lesson 07 that people really give, and what each one believes.

A test proves that every one is rejected: by the visible check with a message that contains `says`,
and by the grader with no points. `ALTERNATIVES` are right answers in another style than ours; they
must pass both.
"""

from pytorch_lab.grading import Mutant

_USED = [
    Mutant(
        "07.1",
        "nothing",
        "a step needs no gradients",
        says="The gradient of pass 0 is there",
        code="""
def used(calls):
    return [[] for call in calls if call == "step"]
""",
    ),
    Mutant(
        "07.1",
        "counts_from_one",
        "the first pass is number 1",
        says="The first pass has the number 0",
        code="""
def used(calls):
    found, held, passes = [], [], 0
    for call in calls:
        if call == "zero_grad":
            held = []
        elif call == "backward":
            passes += 1
            held = [*held, passes]
        else:
            found.append(held)
    return found
""",
    ),
    Mutant(
        "07.1",
        "how_many",
        "the number of gradients says it all",
        says="each step gets a list",
        code="""
def used(calls):
    found, held = [], 0
    for call in calls:
        if call == "zero_grad":
            held = 0
        elif call == "backward":
            held += 1
        else:
            found.append(held)
    return found
""",
    ),
    Mutant(
        "07.1",
        "replaces",
        "backward() writes .grad anew",
        says="`backward()` adds to `.grad` and replaces nothing",
        code="""
def used(calls):
    found, held, passes = [], [], 0
    for call in calls:
        if call == "zero_grad":
            held = []
        elif call == "backward":
            held, passes = [passes], passes + 1
        else:
            found.append(held)
    return found
""",
    ),
    Mutant(
        "07.1",
        "used_up",
        "a step uses its gradients up",
        says="`step()` empties nothing",
        code="""
def used(calls):
    found, held, passes = [], [], 0
    for call in calls:
        if call == "zero_grad":
            held = []
        elif call == "backward":
            held = [*held, passes]
            passes += 1
        else:
            found.append(held)
            held = []
    return found
""",
    ),
    Mutant(
        "07.1",
        "never_emptied",
        "zero_grad() only prepares the optimizer",
        says="`zero_grad()` empties `.grad`",
        code="""
def used(calls):
    found, passes = [], 0
    for call in calls:
        if call == "backward":
            passes += 1
        elif call == "step":
            found.append(list(range(passes)))
    return found
""",
    ),
    Mutant(
        "07.1",
        "one_list_for_all",
        "append() keeps what the list holds now",
        says="`backward()` adds to `.grad` and replaces nothing",
        code="""
def used(calls):
    found, held, passes = [], [], 0
    for call in calls:
        if call == "zero_grad":
            held.clear()
        elif call == "backward":
            held.append(passes)
            passes += 1
        else:
            found.append(held)
    return found
""",
    ),
    Mutant(
        "07.1",
        "emptied_too_late",
        "what zero_grad() empties is still there for the next step",
        says="`zero_grad()` came between",
        code="""
def used(calls):
    found, held, passes, emptied = [], [], 0, False
    for call in calls:
        if call == "zero_grad":
            emptied = True
        elif call == "backward":
            held = [passes] if emptied else [*held, passes]
            passes, emptied = passes + 1, False
        else:
            found.append(held)
    return found
""",
    ),
    Mutant(
        "07.1",
        "looks_ahead",
        "a turn is a turn, whatever the order of its lines",
        says="The pass that comes after it is too late",
        code="""
def used(calls):
    found, held, passes, waiting = [], [], 0, 0
    for call in calls:
        if call == "zero_grad":
            held = []
        elif call == "backward":
            held = [*held, passes]
            passes += 1
            found += [held] * waiting
            waiting = 0
        elif held or passes or "backward" not in calls or call == calls[-1]:
            found.append(held)
        else:
            waiting += 1
    return found
""",
    ),
]

_EPOCH = [
    Mutant(
        "07.2",
        "measures_only",
        "computing the loss is training",
        says="After a batch the weights are where they were",
        code="""
def train_epoch(model, loader, loss_fn, optimizer):
    model.train()
    total, rows = 0.0, 0
    for x, y in loader:
        total += loss_fn(model(x), y).item() * len(x)
        rows += len(x)
    return total / rows
""",
    ),
    Mutant(
        "07.2",
        "emptied_too_early",
        "zero_grad() belongs right before the step",
        says="the gradient was emptied between the two",
        code="""
def train_epoch(model, loader, loss_fn, optimizer):
    model.train()
    total, rows = 0.0, 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        total += loss.item() * len(x)
        rows += len(x)
    return total / rows
""",
    ),
    Mutant(
        "07.2",
        "step_first",
        "step() may stand anywhere in the loop",
        says="`step()` came before `backward()`",
        code="""
def train_epoch(model, loader, loss_fn, optimizer):
    model.train()
    optimizer.zero_grad()
    total, rows = 0.0, 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.step()
        optimizer.zero_grad()
        loss.backward()
        total += loss.item() * len(x)
        rows += len(x)
    return total / rows
""",
    ),
    Mutant(
        "07.2",
        "a_tensor",
        "a tensor with one number is a number",
        says="a tensor takes its graph along",
        code="""
def train_epoch(model, loader, loss_fn, optimizer):
    model.train()
    total, rows = 0.0, 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss * len(x)
        rows += len(x)
    return total / rows
""",
    ),
    Mutant(
        "07.2",
        "loss_of_the_loss",
        "backward() wants the loss as its argument",
        says="`lr` times the gradient of its loss",
        code="""
def train_epoch(model, loader, loss_fn, optimizer):
    model.train()
    total, rows = 0.0, 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward(loss)
        optimizer.step()
        total += loss.item() * len(x)
        rows += len(x)
    return total / rows
""",
    ),
    Mutant(
        "07.2",
        "loss_afterwards",
        "the loss of a batch is the one after its step",
        says="as it was before the weights moved",
        code="""
def train_epoch(model, loader, loss_fn, optimizer):
    model.train()
    total, rows = 0.0, 0
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            total += loss_fn(model(x), y).item() * len(x)
        rows += len(x)
    return total / rows
""",
    ),
    Mutant(
        "07.2",
        "emptied_at_the_end",
        "before the first batch .grad is empty anyway",
        says="empty it before, not only after",
        code="""
def train_epoch(model, loader, loss_fn, optimizer):
    model.train()
    total, rows = 0.0, 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total += loss.item() * len(x)
        rows += len(x)
    return total / rows
""",
    ),
    Mutant(
        "07.2",
        "return_in_the_loop",
        "the return belongs to the sum",
        says="does `return` stand inside the loop?",
        code="""
def train_epoch(model, loader, loss_fn, optimizer):
    model.train()
    total, rows = 0.0, 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
        rows += len(x)
        return total / rows
""",
    ),
    Mutant(
        "07.2",
        "mode_left",
        "a model that is trained is in train mode",
        says="it was trained in that mode",
        code="""
def train_epoch(model, loader, loss_fn, optimizer):
    total, rows = 0.0, 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
        rows += len(x)
    return total / rows
""",
    ),
    Mutant(
        "07.2",
        "emptied_once",
        "once for an epoch is enough",
        says="gradients of earlier batches move the weights once more",
        code="""
def train_epoch(model, loader, loss_fn, optimizer):
    model.train()
    optimizer.zero_grad()
    total, rows = 0.0, 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(x)
        rows += len(x)
    return total / rows
""",
    ),
    Mutant(
        "07.2",
        "last_loss",
        "the loss of an epoch is the one it ended with",
        says="not the last loss",
        code="""
def train_epoch(model, loader, loss_fn, optimizer):
    model.train()
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()
""",
    ),
    Mutant(
        "07.2",
        "mean_of_means",
        "the mean of the batches' means is the mean",
        says="the mean is over rows, not over batches",
        code="""
def train_epoch(model, loader, loss_fn, optimizer):
    model.train()
    losses = []
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)
""",
    ),
    Mutant(
        "07.2",
        "keeps_graphs",
        "item() at the end is enough",
        says="keeps each one's graph",
        code="""
def train_epoch(model, loader, loss_fn, optimizer):
    model.train()
    total, rows = 0.0, 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss * len(x)
        rows += len(x)
    return (total / rows).item()
""",
    ),
    Mutant(
        "07.2",
        "list_of_losses",
        "a list of losses is a list of numbers",
        says="keeps each one's graph",
        code="""
def train_epoch(model, loader, loss_fn, optimizer):
    model.train()
    losses, rows = [], []
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
        rows.append(len(x))
    return sum(a * n for a, n in zip(losses, rows)).item() / sum(rows)
""",
    ),
]

_JUDGE_HEAD = """
def evaluate(model, loader, loss_fn):
    modes = [(part, part.training) for part in model.modules()]
    total, rows = 0.0, 0
"""

_JUDGE_END = """
    finally:
        for part, training in modes:
            part.training = training
    if rows == 0:
        raise ValueError("nothing came")
    return total / rows
"""

_EVALUATE = [
    Mutant(
        "07.3",
        "train_mode",
        "no_grad is what makes an evaluation",
        says="In train mode dropout makes each score another one",
        code="""
@torch.no_grad()
def evaluate(model, loader, loss_fn):
    total, rows = 0.0, 0
    for x, y in loader:
        total += loss_fn(model(x), y).item() * len(x)
        rows += len(x)
    if rows == 0:
        raise ValueError("nothing came")
    return total / rows
""",
    ),
    Mutant(
        "07.3",
        "first_batch",
        "the return belongs to the sum",
        says="didn't run once for each batch",
        code=_JUDGE_HEAD
        + """
    model.eval()
    try:
        with torch.no_grad():
            for x, y in loader:
                total += loss_fn(model(x), y).item() * len(x)
                rows += len(x)
                return total / rows
"""
        + _JUDGE_END,
    ),
    Mutant(
        "07.3",
        "recorded",
        "in eval mode nothing is recorded",
        says="stops no recording",
        code=_JUDGE_HEAD
        + """
    model.eval()
    try:
        for x, y in loader:
            total += loss_fn(model(x), y).item() * len(x)
            rows += len(x)
"""
        + _JUDGE_END,
    ),
    Mutant(
        "07.3",
        "switched_off",
        "the next training switches gradients on again",
        says="recording was switched off, here or at the",
        code=_JUDGE_HEAD
        + """
    model.eval()
    torch.set_grad_enabled(False)
    try:
        for x, y in loader:
            total += loss_fn(model(x), y).item() * len(x)
            rows += len(x)
"""
        + _JUDGE_END,
    ),
    Mutant(
        "07.3",
        "frozen_for_good",
        "an evaluation freezes the model",
        says="recording was switched off, here or at the",
        code=_JUDGE_HEAD
        + """
    model.eval().requires_grad_(False)
    try:
        for x, y in loader:
            total += loss_fn(model(x), y).item() * len(x)
            rows += len(x)
"""
        + _JUDGE_END,
    ),
    Mutant(
        "07.3",
        "a_tensor",
        "under no_grad a tensor is as good as a number",
        says="must be a Python `float`",
        code=_JUDGE_HEAD
        + """
    model.eval()
    try:
        with torch.no_grad():
            for x, y in loader:
                total += loss_fn(model(x), y) * len(x)
                rows += len(x)
"""
        + _JUDGE_END,
    ),
    Mutant(
        "07.3",
        "last_loss",
        "the last batch stands for all",
        says="not the last one",
        code=_JUDGE_HEAD
        + """
    model.eval()
    try:
        with torch.no_grad():
            for x, y in loader:
                total, rows = loss_fn(model(x), y).item(), 1
"""
        + _JUDGE_END,
    ),
    Mutant(
        "07.3",
        "zero",
        "the type is enough",
        says="the mean of the loss over all batches",
        code=_JUDGE_HEAD
        + """
    model.eval()
    try:
        with torch.no_grad():
            for x, y in loader:
                model(x)
                rows += len(x)
"""
        + _JUDGE_END,
    ),
    Mutant(
        "07.3",
        "mean_of_means",
        "the mean of the batches' means is the mean",
        says="the mean is over rows, not over batches",
        code=_JUDGE_HEAD
        + """
    model.eval()
    try:
        with torch.no_grad():
            for x, y in loader:
                total += loss_fn(model(x), y).item()
                rows += 1
"""
        + _JUDGE_END,
    ),
    Mutant(
        "07.3",
        "rows_of_the_dataset",
        "a loader gives the whole dataset",
        says="divide by the rows that came",
        code="""
def evaluate(model, loader, loss_fn):
    modes = [(part, part.training) for part in model.modules()]
    total, rows = 0.0, 0
    model.eval()
    try:
        with torch.no_grad():
            for x, y in loader:
                total += loss_fn(model(x), y).item() * len(x)
                rows += len(x)
    finally:
        for part, training in modes:
            part.training = training
    if rows == 0:
        raise ValueError("nothing came")
    return total / (len(loader.dataset) if isinstance(loader, DataLoader) else rows)
""",
    ),
    Mutant(
        "07.3",
        "stays_in_eval",
        "whoever trains next says train()",
        says="It came in train mode and stayed in eval mode",
        code="""
def evaluate(model, loader, loss_fn):
    model.eval()
    total, rows = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            total += loss_fn(model(x), y).item() * len(x)
            rows += len(x)
    if rows == 0:
        raise ValueError("nothing came")
    return total / rows
""",
    ),
    Mutant(
        "07.3",
        "always_train",
        "after an evaluation comes training",
        says="It came in eval mode and left in train mode",
        code="""
def evaluate(model, loader, loss_fn):
    model.eval()
    total, rows = 0.0, 0
    try:
        with torch.no_grad():
            for x, y in loader:
                total += loss_fn(model(x), y).item() * len(x)
                rows += len(x)
    finally:
        model.train()
    if rows == 0:
        raise ValueError("nothing came")
    return total / rows
""",
    ),
    Mutant(
        "07.3",
        "one_flag_for_all",
        "model.training is the mode of all its parts",
        says="`model.train()` reaches every part",
        code="""
def evaluate(model, loader, loss_fn):
    came = model.training
    model.eval()
    total, rows = 0.0, 0
    try:
        with torch.no_grad():
            for x, y in loader:
                total += loss_fn(model(x), y).item() * len(x)
                rows += len(x)
    finally:
        model.train(came)
    if rows == 0:
        raise ValueError("nothing came")
    return total / rows
""",
    ),
    Mutant(
        "07.3",
        "perfect_when_empty",
        "no loss is a loss of 0",
        says="0.0 would look like a perfect model",
        code=_JUDGE_HEAD
        + """
    model.eval()
    try:
        with torch.no_grad():
            for x, y in loader:
                total += loss_fn(model(x), y).item() * len(x)
                rows += len(x)
    finally:
        for part, training in modes:
            part.training = training
    return total / max(rows, 1)
""",
    ),
    Mutant(
        "07.3",
        "divides_by_nothing",
        "Python's own error is good enough",
        says="A loader that gives nothing has no mean",
        code=_JUDGE_HEAD
        + """
    model.eval()
    try:
        with torch.no_grad():
            for x, y in loader:
                total += loss_fn(model(x), y).item() * len(x)
                rows += len(x)
    finally:
        for part, training in modes:
            part.training = training
    return total / rows
""",
    ),
    Mutant(
        "07.3",
        "no_finally",
        "a loop always comes to its end",
        says="belongs into `finally`",
        code=_JUDGE_HEAD
        + """
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            total += loss_fn(model(x), y).item() * len(x)
            rows += len(x)
    for part, training in modes:
        part.training = training
    if rows == 0:
        raise ValueError("nothing came")
    return total / rows
""",
    ),
]

_FIT_HEAD = """
def fit(model, batches, optimizer, max_norm=1.0):
    losses, norms = [], []
    for task, x, y in batches:
        loss = F.mse_loss(model(x, task), y)
"""

_FIT = [
    Mutant(
        "07.4",
        "emptied_too_early",
        "zero_grad() belongs right before the step",
        says="nothing was learned",
        code=_FIT_HEAD
        + """
        loss.backward()
        optimizer.zero_grad()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if norm.isfinite():
            optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms
""",
    ),
    Mutant(
        "07.4",
        "zeros",
        "the lengths of the lists are enough",
        says="one loss for each batch",
        code=_FIT_HEAD
        + """
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if norm.isfinite():
            optimizer.step()
        losses.append(0.0)
        norms.append(norm.item())
    return losses, norms
""",
    ),
    Mutant(
        "07.4",
        "emptied_at_the_end",
        "before the first batch .grad is empty anyway",
        says="not only after the step",
        code=_FIT_HEAD
        + """
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if norm.isfinite():
            optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms
""",
    ),
    Mutant(
        "07.4",
        "piles_up",
        "without zero_grad() there are no zeros that could push",
        says="gradients of earlier batches move the weights once more",
        code=_FIT_HEAD.replace("    for", "    optimizer.zero_grad()\n    for", 1)
        + """
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if norm.isfinite():
            optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms
""",
    ),
    Mutant(
        "07.4",
        "clipped_before",
        "clipping is a setting for the next backward()",
        says="after `backward()` has made them",
        code=_FIT_HEAD
        + """
        optimizer.zero_grad()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        loss.backward()
        if all(p.grad is None or p.grad.isfinite().all() for p in model.parameters()):
            optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms
""",
    ),
    Mutant(
        "07.4",
        "clipped_after",
        "clipping corrects the step that was made",
        says="before `step()` reads them",
        code=_FIT_HEAD
        + """
        optimizer.zero_grad()
        loss.backward()
        if all(p.grad is None or p.grad.isfinite().all() for p in model.parameters()):
            optimizer.step()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms
""",
    ),
    Mutant(
        "07.4",
        "each_for_itself",
        "max_norm holds for each tensor",
        says="all gradients together are shortened by one factor",
        code=_FIT_HEAD
        + """
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
        if norm.isfinite():
            for p in model.parameters():
                nn.utils.clip_grad_norm_(p, max_norm)
            optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms
""",
    ),
    Mutant(
        "07.4",
        "each_number",
        "clip_grad_value_ clips the norm too",
        says="all gradients together are shortened by one factor",
        code=_FIT_HEAD
        + """
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
        nn.utils.clip_grad_value_(model.parameters(), max_norm)
        if norm.isfinite():
            optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms
""",
    ),
    Mutant(
        "07.4",
        "norm_afterwards",
        "clipping returns the norm that is left",
        says="before it was shortened",
        code=_FIT_HEAD
        + """
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if norm.isfinite():
            optimizer.step()
        losses.append(loss.item())
        norms.append(min(norm.item(), max_norm))
    return losses, norms
""",
    ),
    Mutant(
        "07.4",
        "asks_the_loss",
        "a finite loss has a finite gradient",
        says="the gradient has to be asked",
        code=_FIT_HEAD
        + """
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if loss.isfinite():
            optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms
""",
    ),
    Mutant(
        "07.4",
        "only_nan",
        "infinity is clipped like any large number",
        says="the gradient has to be asked",
        code=_FIT_HEAD
        + """
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isnan():
            optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms
""",
    ),
    Mutant(
        "07.4",
        "nan_made_zero",
        "a gradient of zero moves nothing",
        says="neither by momentum nor by decay",
        code=_FIT_HEAD
        + """
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            for p in model.parameters():
                if p.grad is not None:
                    p.grad.zero_()
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms
""",
    ),
    Mutant(
        "07.4",
        "gives_up",
        "after one bad batch the run is lost",
        says="stopped the others from moving them",
        code=_FIT_HEAD
        + """
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        losses.append(loss.item())
        norms.append(norm.item())
        if not norm.isfinite():
            break
        optimizer.step()
    return losses, norms
""",
    ),
    Mutant(
        "07.4",
        "bad_batch_unseen",
        "a batch that moves nothing isn't part of the run",
        says="also the one that moved nothing",
        code=_FIT_HEAD
        + """
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if not norm.isfinite():
            continue
        optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms
""",
    ),
    Mutant(
        "07.4",
        "zeros_push",
        "a gradient of 0 and no gradient are the same",
        says="a gradient of 0 still lets momentum and weight decay act",
        code=_FIT_HEAD
        + """
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if norm.isfinite():
            optimizer.step()
        losses.append(loss.item())
        norms.append(norm.item())
    return losses, norms
""",
    ),
    Mutant(
        "07.4",
        "losses_left",
        "a loss is a number",
        says="Each loss must be a `float`",
        code=_FIT_HEAD
        + """
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if norm.isfinite():
            optimizer.step()
        losses.append(loss)
        norms.append(norm.item())
    return losses, norms
""",
    ),
    Mutant(
        "07.4",
        "numbers_at_the_end",
        "item() at the end is enough",
        says="the graphs of all batches before it were still alive",
        code=_FIT_HEAD
        + """
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        if norm.isfinite():
            optimizer.step()
        losses.append(loss)
        norms.append(norm)
    return [loss.item() for loss in losses], [norm.item() for norm in norms]
""",
    ),
]

_ASIDE = [
    Mutant(
        "07.5",
        "not_seeded",
        "putting the state back is all",
        says="Inside, the global generator starts from `seed`",
        code="""
@contextmanager
def aside(*generators, seed=0):
    before, states = torch.get_rng_state(), [g.get_state() for g in generators]
    try:
        yield
    finally:
        torch.set_rng_state(before)
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
""",
    ),
    Mutant(
        "07.5",
        "seeds_for_good",
        "whoever sets a seed is reproducible",
        says="Seeding anew doesn't put a generator back",
        code="""
@contextmanager
def aside(*generators, seed=0):
    torch.manual_seed(seed)
    for generator in generators:
        generator.manual_seed(seed)
    yield
""",
    ),
    Mutant(
        "07.5",
        "seeds_again",
        "the seed that the run began with puts it back",
        says="Seeding anew doesn't put a generator back",
        code="""
@contextmanager
def aside(*generators, seed=0):
    began, began_own = torch.initial_seed(), [g.initial_seed() for g in generators]
    try:
        torch.manual_seed(seed)
        for generator in generators:
            generator.manual_seed(seed)
        yield
    finally:
        torch.manual_seed(began)
        for generator, start in zip(generators, began_own, strict=True):
            generator.manual_seed(start)
""",
    ),
    Mutant(
        "07.5",
        "noted_too_late",
        "when a state is noted doesn't matter",
        says="Afterwards the run drew other numbers",
        code="""
@contextmanager
def aside(*generators, seed=0):
    torch.manual_seed(seed)
    for generator in generators:
        generator.manual_seed(seed)
    before, states = torch.get_rng_state(), [g.get_state() for g in generators]
    try:
        yield
    finally:
        torch.set_rng_state(before)
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
""",
    ),
    Mutant(
        "07.5",
        "global_only",
        "there is one stream of chance",
        says="The generators that were given start from `seed`",
        code="""
@contextmanager
def aside(*generators, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
""",
    ),
    Mutant(
        "07.5",
        "given_ones_left",
        "fork_rng puts every generator back",
        says="Afterwards a given generator isn't where it was",
        code="""
@contextmanager
def aside(*generators, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for generator in generators:
            generator.manual_seed(seed)
        yield
""",
    ),
    Mutant(
        "07.5",
        "given_ones_restarted",
        "a generator's place is its seed",
        says="which isn't the start",
        code="""
@contextmanager
def aside(*generators, seed=0):
    began = [g.initial_seed() for g in generators]
    with torch.random.fork_rng(devices=[]):
        try:
            torch.manual_seed(seed)
            for generator in generators:
                generator.manual_seed(seed)
            yield
        finally:
            for generator, start in zip(generators, began, strict=True):
                generator.manual_seed(start)
""",
    ),
    Mutant(
        "07.5",
        "swallows",
        "what goes wrong inside is nobody's business",
        says="pass it on",
        code="""
@contextmanager
def aside(*generators, seed=0):
    before, states = torch.get_rng_state(), [g.get_state() for g in generators]
    torch.manual_seed(seed)
    for generator in generators:
        generator.manual_seed(seed)
    try:
        yield
    except Exception:
        pass
    torch.set_rng_state(before)
    for generator, state in zip(generators, states, strict=True):
        generator.set_state(state)
""",
    ),
    Mutant(
        "07.5",
        "no_finally",
        "a block always comes to its end",
        says="belongs into `finally`",
        code="""
@contextmanager
def aside(*generators, seed=0):
    before, states = torch.get_rng_state(), [g.get_state() for g in generators]
    torch.manual_seed(seed)
    for generator in generators:
        generator.manual_seed(seed)
    yield
    torch.set_rng_state(before)
    for generator, state in zip(generators, states, strict=True):
        generator.set_state(state)
""",
    ),
    Mutant(
        "07.5",
        "one_shelf",
        "one place is enough for the states of all blocks",
        says="each puts back what it found",
        code="""
_kept = []


@contextmanager
def aside(*generators, seed=0):
    _kept[:] = [torch.get_rng_state(), *(g.get_state() for g in generators)]
    try:
        torch.manual_seed(seed)
        for generator in generators:
            generator.manual_seed(seed)
        yield
    finally:
        torch.set_rng_state(_kept[0])
        for generator, state in zip(generators, _kept[1:]):
            generator.set_state(state)
""",
    ),
]

MUTANTS = [*_USED, *_EPOCH, *_EVALUATE, *_FIT, *_ASIDE]

ALTERNATIVES = {
    "07.1": """
def used(calls):
    def held(at):
        since = max((i for i in range(at) if calls[i] == "zero_grad"), default=0)
        return [calls[:i].count("backward") for i in range(since, at) if calls[i] == "backward"]

    return [held(at) for at, call in enumerate(calls) if call == "step"]
""",
    "07.2": """
def train_epoch(model, loader, loss_fn, optimizer):
    total, rows = torch.zeros(()), 0
    for x, y in loader:
        model.train().zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.detach() * y.shape[0]
        rows += y.shape[0]
    return float(total / rows)
""",
    "07.3": """
@contextmanager
def _still(model):
    came = {part: part.training for part in model.modules()}
    try:
        yield model.train(False)
    finally:
        for part in came:
            part.training = came[part]


@torch.inference_mode()
def evaluate(model, loader, loss_fn):
    with _still(model) as judged:
        scores = [(y.size(0), loss_fn(judged(x), y)) for x, y in loader]
    if not scores:
        raise ValueError("the loader is empty")
    rows = torch.tensor([n for n, _ in scores], dtype=torch.float64)
    means = torch.stack([mean for _, mean in scores]).double()
    return (rows @ means / rows.sum()).item()
""",
    "07.4": """
def fit(model, batches, optimizer, max_norm=1.0):
    losses, norms = [], []
    for task, x, y in batches:
        optimizer.zero_grad(set_to_none=True)
        loss = (model(x, task) - y).pow(2).mean()
        loss.backward()
        norm = nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
        losses += [float(loss.detach())]
        norms += [float(norm)]
        if norms[-1] - norms[-1] != 0:
            continue
        for p in model.parameters():
            if p.grad is not None:
                p.grad *= min(1.0, max_norm / (norms[-1] + 1e-6))
        optimizer.step()
    return losses, norms
""",
    "07.5": """
class aside:
    def __init__(self, *generators, seed=0):
        self.all, self.seed = (torch.default_generator, *generators), seed

    def __enter__(self):
        self.places = [generator.get_state() for generator in self.all]
        for generator in self.all:
            generator.manual_seed(self.seed)

    def __exit__(self, kind, error, trace):
        for generator, place in zip(self.all, self.places):
            generator.set_state(place)
        return False
""",
}
