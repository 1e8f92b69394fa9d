"""The gradebook's tables, and how a database comes to have them.

    schema        which edition of these tables it holds
    runs          when, on which seed, by which version, in a sandbox or not
    submissions   each notebook that a student handed in, by a hash of its content
    verdicts      by key: what a run found out, so that it is not run again
    outcomes      what a run said about a student's exercise, whenever that changed
    overrides     points that a person gave
    rules         what lateness costs

A gradebook of an earlier edition is brought up to date when it is opened; one of a later edition,
and a database of something else, is refused.
"""

import datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    Engine,
    Float,
    Index,
    Integer,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
    create_engine,
    event,
    inspect,
    select,
)
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from pytorch_lab.errors import CourseError

EDITION = 2
WAIT_S = 30  # for another run that is writing
_READS = "pytorch_lab_reads"


class Moment(TypeDecorator[datetime.datetime]):
    """A moment, kept in UTC: SQLite knows no time zones."""

    impl = DateTime(timezone=False)
    cache_ok = True

    def process_bind_param(self, value: datetime.datetime | None, dialect: Dialect) -> Any:
        """What is stored."""
        return None if value is None else value.astimezone(datetime.UTC).replace(tzinfo=None)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime.datetime | None:
        """What was stored."""
        return None if value is None else value.replace(tzinfo=datetime.UTC)


class Name(TypeDecorator[str]):
    """A short text; what UTF-8 or a database cannot hold is replaced."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:
        """What is stored."""
        return value and value.encode(errors="replace").decode().replace("\0", "\ufffd")


class Prose(Name):
    """A text of any length."""

    impl = Text
    cache_ok = True


class Table(DeclarativeBase):
    """The root of all tables."""

    type_annotation_map = {datetime.datetime: Moment}  # noqa: RUF012 (SQLAlchemy's own form)


_NAME, _WHO = Name(200), Name(500)


class Edition(Table):
    """One row: the edition of the tables."""

    __tablename__ = "schema"
    edition: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)


class Run(Table):
    """One run of `pytorch-lab grade`."""

    __tablename__ = "runs"
    id: Mapped[int] = mapped_column(primary_key=True)
    assignment: Mapped[str] = mapped_column(_NAME, index=True)
    exercises: Mapped[list[Any]] = mapped_column(JSON)  # their ids and points
    only: Mapped[list[str]] = mapped_column(JSON)  # what --exercise said
    seed: Mapped[int] = mapped_column(BigInteger)
    version: Mapped[str] = mapped_column(String(40))
    sandbox: Mapped[bool]
    started: Mapped[datetime.datetime]
    ended: Mapped[datetime.datetime | None]


class Handed(Table):
    """A notebook that was handed in."""

    __tablename__ = "submissions"
    id: Mapped[int] = mapped_column(primary_key=True)
    assignment: Mapped[str] = mapped_column(_NAME, index=True)
    student: Mapped[str] = mapped_column(_WHO)
    content: Mapped[str] = mapped_column(String(64))  # its hash; "" for what could not be read
    lms_id: Mapped[str] = mapped_column(_NAME)
    submitted_at: Mapped[datetime.datetime | None]
    late: Mapped[bool | None]
    folder: Mapped[str] = mapped_column(Prose)  # where it lay
    gone: Mapped[bool]  # it lies there no longer
    at: Mapped[datetime.datetime]


class Known(Table):
    """A verdict on a key."""

    __tablename__ = "verdicts"
    __table_args__ = (UniqueConstraint("key", "exercise"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(64), index=True)
    exercise: Mapped[str] = mapped_column(_NAME)
    student: Mapped[str] = mapped_column(_WHO, index=True)
    status: Mapped[str] = mapped_column(String(40))
    reason: Mapped[str] = mapped_column(Prose)
    misconception: Mapped[str] = mapped_column(Prose, default="")
    hint: Mapped[str] = mapped_column(Prose, default="")
    shown: Mapped[str] = mapped_column(Prose, default="")
    seconds: Mapped[float] = mapped_column(Float, default=0.0)
    points: Mapped[float | None] = mapped_column(Float, default=None)
    at: Mapped[datetime.datetime]


class Outcome(Table):
    """What a run said about a student's exercise."""

    __tablename__ = "outcomes"
    __table_args__ = (Index("whose_outcome", "assignment", "student"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    run: Mapped[int]
    assignment: Mapped[str] = mapped_column(_NAME)
    student: Mapped[str] = mapped_column(_WHO)
    exercise: Mapped[str] = mapped_column(_NAME)
    status: Mapped[str] = mapped_column(String(40))
    reason: Mapped[str] = mapped_column(Prose)
    misconception: Mapped[str] = mapped_column(Prose)
    hint: Mapped[str] = mapped_column(Prose)
    shown: Mapped[str] = mapped_column(Prose)
    seconds: Mapped[float]
    points: Mapped[float | None]
    at: Mapped[datetime.datetime]


class Overridden(Table):
    """Points that a person gave; none takes the override before it back."""

    __tablename__ = "overrides"
    id: Mapped[int] = mapped_column(primary_key=True)
    assignment: Mapped[str] = mapped_column(_NAME, index=True)
    student: Mapped[str] = mapped_column(_WHO)
    exercise: Mapped[str] = mapped_column(_NAME)
    points: Mapped[float | None]
    comment: Mapped[str] = mapped_column(Prose)
    author: Mapped[str] = mapped_column(_NAME)
    at: Mapped[datetime.datetime]


class Rule(Table):
    """What lateness costs in an assignment; the latest holds."""

    __tablename__ = "rules"
    id: Mapped[int] = mapped_column(primary_key=True)
    assignment: Mapped[str] = mapped_column(_NAME, index=True)
    late: Mapped[str] = mapped_column(Prose)
    at: Mapped[datetime.datetime]


def connect(url: str) -> Engine:
    """The database at a URL, with the tables of this edition.

    Raises:
        CourseError: it cannot be opened, is of a later edition, or is no gradebook.

    Example:
        >>> connect("nonsense")
        Traceback (most recent call last):
        pytorch_lab.errors.CourseError: expected a gradebook at the URL that --db gives, ...
    """
    try:
        engine = create_engine(url)
        if engine.dialect.name == "sqlite":
            event.listen(engine, "connect", _patient)
            event.listen(engine, "begin", _begin)
        if _edition(reading(engine)) != EDITION:
            with engine.begin() as connection:
                _bring_up_to_date(connection)
    except (SQLAlchemyError, ImportError) as error:
        raise CourseError(
            f"expected a gradebook at the URL that --db gives, but got {first_line(error)!r}; give "
            "the URL of a database that you may write to, such as sqlite:///marks/gradebook.sqlite."
        ) from None
    return engine


def reading(engine: Engine) -> Engine:
    """The same database for a look: it waits for no other run, and may be read-only."""
    return engine.execution_options(**{_READS: True})


def first_line(error: Exception) -> str:
    """What a database said."""
    cause = getattr(error, "orig", None) or error
    return str(cause).splitlines()[0]


def _patient(connection: Any, _record: Any) -> None:
    """Let SQLite wait for another run's transaction; begin one only where `_begin` says so."""
    connection.isolation_level = None
    connection.execute(f"PRAGMA busy_timeout = {WAIT_S * 1000}")


def _begin(connection: Any) -> None:
    """Take SQLite's one writing place at once: a reader that wants it later may be refused."""
    reads = connection.get_execution_options().get(_READS)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _edition(engine: Any) -> int:
    """The edition of a database's tables; 0 for an empty one, 1 before editions were counted."""
    there = set(inspect(engine).get_table_names())
    if not there:
        return 0
    if Edition.__tablename__ in there and Known.__tablename__ in there:
        with Session(engine) as session:
            edition = session.scalars(select(Edition.edition)).first() or 0
        if edition > EDITION:
            raise CourseError(
                f"expected a gradebook of edition {EDITION} or earlier at {engine.engine.url!r}, "
                f"got edition {edition}; update PyTorch Lab, or give --db another URL."
            )
        return edition
    if there == {Known.__tablename__}:
        return 1
    raise CourseError(
        f"expected a gradebook, or an empty database, at {engine.engine.url!r}, found other tables "
        f"({', '.join(sorted(there)[:3])}, …); give --db a database of its own."
    )


def _bring_up_to_date(connection: Any) -> None:
    """Make what is missing, within one transaction; another run may have done it meanwhile."""
    if _edition(connection) == EDITION:
        return
    Table.metadata.create_all(connection)
    there = {column["name"] for column in inspect(connection).get_columns(Known.__tablename__)}
    for name, kind in (("misconception", "TEXT"), ("hint", "TEXT"), ("shown", "TEXT")):
        if name not in there:
            connection.exec_driver_sql(
                f"ALTER TABLE verdicts ADD COLUMN {name} {kind} NOT NULL DEFAULT ''"
            )
    if "seconds" not in there:
        connection.exec_driver_sql(
            "ALTER TABLE verdicts ADD COLUMN seconds FLOAT NOT NULL DEFAULT 0"
        )
    if "points" not in there:
        connection.exec_driver_sql("ALTER TABLE verdicts ADD COLUMN points FLOAT")
    connection.execute(Table.metadata.tables["schema"].insert(), {"edition": EDITION})
