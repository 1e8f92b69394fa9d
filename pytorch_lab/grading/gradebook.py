"""The gradebook: which verdict a notebook got, so that nothing is run twice and nothing is lost.

A verdict belongs to a *key*: a hash of all that could change it (the overlaid notebook with its
seed, the solutions, the limits). The same key is never run again; a changed answer, solution or
seed has another key.

A SQLite file by default, any database of SQLAlchemy's else. Two runs may write at the same time:
each submission is one transaction, and the first to settle a key settles it.
"""

import datetime
import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import (
    DateTime,
    Float,
    String,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    select,
)
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from pytorch_lab.errors import CourseError

WAIT_S = 30  # for another run that is writing


class Verdict(NamedTuple):
    """How one exercise was judged."""

    status: str
    reason: str
    misconception: str = ""  # the mutant that reveals the same
    hint: str = ""
    shown: str = ""  # what the visible check printed in the graded kernel
    seconds: float = 0.0  # that the exercise's cells ran


class _Table(DeclarativeBase):
    pass


class _Verdict(_Table):
    __tablename__ = "verdicts"
    __table_args__ = (UniqueConstraint("key", "exercise"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(64), index=True)
    exercise: Mapped[str] = mapped_column(String(200))
    student: Mapped[str] = mapped_column(String(500), index=True)
    status: Mapped[str] = mapped_column(String(40))
    reason: Mapped[str] = mapped_column(Text)
    misconception: Mapped[str] = mapped_column(Text, default="")
    hint: Mapped[str] = mapped_column(Text, default="")
    shown: Mapped[str] = mapped_column(Text, default="")
    seconds: Mapped[float] = mapped_column(Float, default=0.0)
    at: Mapped[datetime.datetime] = mapped_column(DateTime(timezone=True))


def key_of(*parts: Any) -> str:
    """A hash of everything that a verdict depends on.

    Example:
        >>> key_of({"a": 1}, 7) == key_of({"a": 1}, 7), key_of({"a": 1}, 8) == key_of({"a": 1}, 7)
        (True, False)
    """
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Gradebook:
    """One database of verdicts.

    Args:
        url: as SQLAlchemy writes it, such as `sqlite:///marks/gradebook.sqlite`.

    Raises:
        CourseError: it cannot be opened, or is not a gradebook.

    Example:
        >>> book = Gradebook("sqlite://")
        >>> book.keep("k1", "ada", {"03.1": Verdict("passed", "")})
        >>> book.known("k1")["03.1"].status
        'passed'
    """

    def __init__(self, url: str) -> None:
        try:
            self.engine = create_engine(url)
            if self.engine.dialect.name == "sqlite":
                event.listen(self.engine, "connect", _patient)
            _Table.metadata.create_all(self.engine)
        except (SQLAlchemyError, ImportError) as error:
            raise CourseError(
                f"expected a gradebook at the URL that --db gives, but got {_first_line(error)!r}; "
                "give the URL of a database that you may write to, such as sqlite:///marks/gradebook.sqlite."
            ) from None

    def known(self, key: str) -> dict[str, Verdict]:
        """The verdicts on a key, by exercise; empty if it was never run to its end."""
        with Session(self.engine) as session:
            rows = session.scalars(select(_Verdict).where(_Verdict.key == key))
            return {row.exercise: _verdict(row) for row in rows}

    def keep(self, key: str, student: str, verdicts: Mapping[str, Verdict]) -> None:
        """Settle a key; if another run has settled it meanwhile, that stands.

        Raises:
            CourseError: the database cannot be written to: a full disk, a lost connection.
        """
        now = datetime.datetime.now(datetime.UTC)
        try:
            with Session(self.engine) as session, session.begin():
                session.add_all(
                    _Verdict(key=key, exercise=e, student=student, at=now, **said._asdict())
                    for e, said in verdicts.items()
                )
        except IntegrityError:
            return
        except SQLAlchemyError as error:
            raise CourseError(
                f"expected to write to the gradebook {self.engine.url!r}, but got "
                f"{_first_line(error)!r}; what was judged before is in it, and the same command "
                "goes on from there."
            ) from None

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()


def _verdict(row: Any) -> Verdict:
    return Verdict(*(getattr(row, name) for name in Verdict._fields))


def _patient(connection: Any, _record: Any) -> None:
    """Let SQLite wait for another run's transaction instead of failing at once."""
    connection.execute(f"PRAGMA busy_timeout = {WAIT_S * 1000}")


def _first_line(error: Exception) -> str:
    cause = getattr(error, "orig", None) or error
    return str(cause).splitlines()[0]
