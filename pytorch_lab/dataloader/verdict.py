"""What the measured numbers of workers say: which would feed the model, and whether more help."""

from pytorch_lab import words
from pytorch_lab.dataloader.timeline import LoaderTimeline, Trial

FED = 0.10  # a model that waits for less of its time is fed
FASTER = 0.90  # of the time between batches: what is less than this counts as faster


def verdict(timeline: LoaderTimeline) -> str:
    """One or two sentences.

    Example:
        >>> some = dict(loader="", cores=8, has_step=False, batches=(), steady_from=0)
        >>> tried = (Trial(0, 10.0, 1.0), Trial(1, 5.0, 1.0), Trial(2, 5.1, 1.0))
        >>> verdict(LoaderTimeline(**some, workers=0, trials=tried))
        'No step was given, so nobody waits. 1 worker is best, a batch every 5.0 ms; ...'
    """
    tried = [one for one in timeline.trials if one.batch_ms is not None]
    own = next((one for one in tried if one.workers == timeline.workers), None)
    if own is None:
        return "Too few batches came to say who waits for whom."
    best = best_of(tried)
    others = [one for one in tried if one is not own]
    if not timeline.has_step:
        return "No step was given, so nobody waits. " + _without_step(own, best, others)
    share = f"The model waits {percent(own.wait_share)} of the time"
    if not others:
        return f"{share}; no other number of workers was tried."
    if is_fed(own):
        return f"{share}: {_with(own.workers)} it is fed.{_fewer(own, tried)}"
    return f"{share}; {_cure(own, best, tried, timeline.cores)}"


def best_of(tried: list[Trial]) -> Trial:
    """The fewest workers with which nobody is clearly faster, or with which the model is fed."""
    fed = [one for one in tried if is_fed(one)]
    if fed:
        return fed[0]
    least = min(one.batch_ms or 0.0 for one in tried)
    return next(one for one in tried if (one.batch_ms or 0.0) * FASTER <= least)


def is_fed(trial: Trial) -> bool:
    """Whether the model hardly waits."""
    return trial.wait_share is not None and trial.wait_share <= FED


def _without_step(own: Trial, best: Trial, others: list[Trial]) -> str:
    if not others:
        return f"A batch comes every {own.batch_ms:.1f} ms {_with(own.workers)}."
    more = [one.workers for one in others if one.workers > best.workers]
    tail = f"; with {words.listed(more)} no more" if more else ", the most that were tried"
    return f"{_subject(best.workers)} best, a batch every {best.batch_ms:.1f} ms{tail}."


def _fewer(own: Trial, tried: list[Trial]) -> str:
    enough = next(one for one in tried if is_fed(one))
    return "" if enough is own else f" {_subject(enough.workers)} enough, too."


def _cure(own: Trial, best: Trial, tried: list[Trial], cores: int) -> str:
    more = [one.workers for one in tried if one.workers > best.workers]
    beyond = f"; more would not help ({words.listed(more)} tried)" if more else ""
    if is_fed(best):
        return f"{_plainly(best.workers)} would feed it{beyond}."
    numbers = words.listed([one.workers for one in tried])
    if best is own and not more:
        return f"{_subject(own.workers)} the fastest of {numbers}; more were not tried."
    if best is own:
        return (
            f"no other number of workers is faster ({numbers} tried, {words.count(cores, 'core')})."
            " Make the samples cheaper: prepare them once, or fetch whole batches."
        )
    faster = (own.batch_ms or 0.0) / (best.batch_ms or 1.0)
    return (
        f"{_plainly(best.workers)} would be {faster:.1f} times as fast, with the model waiting "
        f"{percent(best.wait_share)}{beyond or ', the most that were tried'}."
    )


def _with(workers: int) -> str:
    return f"with {words.count(workers, 'worker')}"


def _plainly(workers: int) -> str:
    return words.count(workers, "worker") if workers else "no workers"


def _subject(workers: int) -> str:
    if not workers:
        return "No workers are"
    return f"{words.count(workers, 'worker')} {'is' if workers == 1 else 'are'}"


def percent(share: float | None) -> str:
    """A share as people read it: "71 %".

    Example:
        >>> percent(0.712), percent(0.004), percent(None)
        ('71 %', '0.4 %', '?')
    """
    if share is None:
        return "?"
    return f"{share:.0%}".replace("%", " %") if share >= 0.01 else f"{100 * share:.1g} %"
