"""What lateness costs: a rule in one line, applied when marks are written.

    10% per day, at most 50%, after 2026-12-01T23:59+01:00
    100% after 2026-12-01

Every day (hour, week) that has begun counts. The share is taken off the points that were earned;
points that a person gave are not touched.
"""

import datetime
import math
import re
from dataclasses import dataclass

from pytorch_lab.errors import UsageError

_HOURS = {"hour": 1, "day": 24, "week": 168}
_NUMBER = r"(\d+(?:\.\d+)?)\s*%"
_RULE = re.compile(
    rf"\s*{_NUMBER}\s*(?:(?:per|an?|each)\s+(hour|day|week))?\s*,?"
    rf"(?:\s*at\s+most\s+{_NUMBER}\s*,?)?\s*after\s+(\S.*?)\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class LateRule:
    """A share of the points for lateness."""

    percent: float
    per: str  # "hour", "day", "week", or "" for once
    most: float  # percent
    after: datetime.datetime

    @classmethod
    def parse(cls, text: str) -> "LateRule | None":
        """The rule that a text is; None for "none" and "".

        A moment without a time zone is one of this machine's zone; a day without a time ends at
        midnight.

        Raises:
            UsageError: the text is no such rule.

        Example:
            >>> str(LateRule.parse("10 % a day, at most 50%, after 2026-12-01T23:59+01:00"))
            '10% per day, at most 50%, after 2026-12-01T23:59+01:00'
        """
        if text.strip().lower() in ("", "none"):
            return None
        found = _RULE.fullmatch(text)
        after = _moment(found[4]) if found else None
        percents = [float(found[n] or 100) for n in (1, 3)] if found else []
        if found is None or after is None or max(percents) > 100:
            raise UsageError(
                f"expected a rule for lateness, got {text!r}; write it like '10% per day, at most "
                "50%, after 2026-12-01T23:59+01:00', or 'none'."
            )
        return cls(percents[0], (found[2] or "").lower(), percents[1], after)

    def lost(self, submitted_at: datetime.datetime | None, late: bool | None = None) -> float:
        """The share of the points, from 0 to 1, that is lost.

        Args:
            submitted_at: when it was handed in; None if that is not known.
            late: what the platform says; if it names no moment, this costs the least there is.

        Example:
            >>> rule = LateRule.parse("10% per day after 2026-12-01T00:00+00:00")
            >>> rule.lost(datetime.datetime(2026, 12, 2, 0, 1, tzinfo=datetime.UTC))
            0.2
        """
        if submitted_at is None:
            times = 1 if late else 0
        else:
            over = max(submitted_at.astimezone() - self.after, datetime.timedelta(0))
            unit = datetime.timedelta(hours=_HOURS[self.per]) if self.per else over
            times = math.ceil(over / unit) if over else 0
        return min(self.percent * times, self.most, 100) / 100

    def __str__(self) -> str:
        per = f" per {self.per}" if self.per else ""
        most = f", at most {self.most:g}%," if self.most < 100 else ""
        return f"{self.percent:g}%{per}{most} after {self.after.isoformat(timespec='minutes')}"


def _moment(text: str) -> datetime.datetime | None:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    if re.fullmatch(r"\d{4}-?\d\d-?\d\d", text):  # all of that day is in time
        moment += datetime.timedelta(days=1)
    return moment.astimezone() if moment.tzinfo is None else moment
