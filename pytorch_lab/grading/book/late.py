"""What lateness costs: a rule in one line, applied when marks are written.

    10% per day, at most 50%, after 2026-12-01T23:59+01:00
    10% per day after 2026-10-24T23:59 Europe/Berlin
    100% after 2026-12-01

A minute that is named is in time to its end, and so is a day. Every hour (day, week) that has begun
counts; a day ends at the rule's time by the clocks of its zone, also when these are put forward or
back. The share is taken off the points that were earned; points that a person gave are not touched.
"""

import datetime
import math
import os
import re
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

from pytorch_lab.errors import UsageError

_DAYS = {"day": 1, "week": 7}
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
    after: datetime.datetime  # in its zone; the last moment that is in time
    named: str  # the same, as it is written

    @classmethod
    def parse(cls, text: str) -> "LateRule | None":
        """The rule that a text is; None for "none" and "".

        A moment without a time zone is one of this machine's zone.

        Raises:
            UsageError: the text is no such rule.

        Example:
            >>> str(LateRule.parse("10 % a day, at most 50%, after 2026-12-01T23:59+01:00"))
            '10% per day, at most 50%, after 2026-12-01T23:59+01:00'
        """
        if text.strip().lower() in ("", "none"):
            return None
        found = _RULE.fullmatch(text)
        after, named = _moment(found[4]) if found else (None, "")
        percents = [float(found[n] or 100) for n in (1, 3)] if found else []
        if found is None or after is None or max(percents) > 100:
            raise UsageError(
                f"expected a rule for lateness, got {text!r}; write it like '10% per day, at most "
                "50%, after 2026-12-01T23:59+01:00', or 'none'."
            )
        return cls(percents[0], (found[2] or "").lower(), percents[1], after, named)

    def lost(self, submitted_at: datetime.datetime | None, late: bool | None = None) -> float:
        """The share of the points, from 0 to 1, that is lost.

        Args:
            submitted_at: when it was handed in; None if that is not known.
            late: what the platform says; if it names no moment, this costs the least there is.

        Example:
            >>> rule = LateRule.parse("10% per day after 2026-12-01T00:00+00:00")
            >>> rule.lost(datetime.datetime(2026, 12, 2, 0, 1, tzinfo=datetime.UTC))
            0.1
            >>> rule.lost(datetime.datetime(2026, 12, 2, 0, 2, tzinfo=datetime.UTC))
            0.2
        """
        times = self._times(submitted_at) if submitted_at else int(bool(late))
        return min(self.percent * times, self.most, 100) / 100

    def _times(self, submitted_at: datetime.datetime) -> int:
        """How many hours, days or weeks have begun."""
        over = submitted_at.astimezone(datetime.UTC) - self.after.astimezone(datetime.UTC)
        if over <= datetime.timedelta(0):
            return 0
        if not self.per:
            return 1
        if self.per == "hour":
            return math.ceil(over / datetime.timedelta(hours=1))
        there = submitted_at.astimezone(self.after.tzinfo)
        by_clock = there.replace(tzinfo=None) - self.after.replace(tzinfo=None)
        return max(1, math.ceil(by_clock / datetime.timedelta(days=_DAYS[self.per])))

    def __str__(self) -> str:
        per = f" per {self.per}" if self.per else ""
        most = f", at most {self.most:g}%," if self.most < 100 else ""
        return f"{self.percent:g}%{per}{most} after {self.named}"


_MOMENT = re.compile(
    r"(?P<day>\d{4}-?\d\d-?\d\d)(?:[T ](?P<time>[\d:.]+))?\s*(?P<zone>Z|[+-][\d:]+|[A-Za-z_]\S*)?"
)


def _moment(text: str) -> tuple[datetime.datetime | None, str]:
    """The last moment that is in time, and its name; none for what is no moment."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None, ""
    try:
        day, time, zone = found["day"], found["time"], found["zone"]
        whole = not time or time.count(":") < 2
        named = datetime.datetime.fromisoformat(f"{day}T{time or '23:59'}")
        place = _zone(zone, named)
        moment = named.replace(tzinfo=place)
        moment += datetime.timedelta(minutes=1) if whole else datetime.timedelta(0)
        moment.astimezone(datetime.UTC)
    except (LookupError, OSError, OverflowError, ValueError):  # no such zone, day or year
        return None, ""
    shown = named.isoformat(timespec="minutes" if whole else "auto")
    if isinstance(place, ZoneInfo):
        return moment, f"{shown} {place.key}"
    return moment, shown + moment.isoformat()[len(moment.replace(tzinfo=None).isoformat()) :]


def _zone(name: str | None, at: datetime.datetime) -> datetime.tzinfo | None:
    """A zone by its name or offset; this machine's without one."""
    if name is None:
        here = os.environ.get("TZ") or str(Path("/etc/localtime").resolve())
        try:
            return ZoneInfo(here.rpartition("zoneinfo/")[2].lstrip(":"))
        except (LookupError, OSError, ValueError):
            return at.astimezone().tzinfo
    if name == "Z" or name[0] in "+-":
        return datetime.datetime.fromisoformat(f"2000-01-01T00:00{name}").tzinfo
    return ZoneInfo(name)
