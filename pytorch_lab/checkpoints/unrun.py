"""Read a pickle without running it: what would be made, and by which functions.

A pickle is a program for a small stack machine. `pickletools` splits it into instructions; here
they are followed with stand-ins. Where the real machine imports a name there is a `Global`, where
it calls a function there is a `Made` with the function's name and arguments, and nothing is ever
imported or called. So a file of a stranger can be looked at, and one whose classes are not
installed.

https://github.com/python/cpython/blob/main/Lib/pickletools.py describes every instruction.
"""

import pickletools
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple, cast

MOST_OPS = 3_000_000  # instructions; some ten seconds
LARGEST_PICKLE = 512 * 2**20  # bytes; also of one piece of it
LONGEST_LINE = 2**16  # bytes of a name or a number that is written as text

# What the unpickler behind torch.load's default understands, in pickletools' words.
PLAIN_OPS = frozenset((
    "GLOBAL", "NEWOBJ", "REDUCE", "BUILD", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "MARK",
    "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "NONE", "NEWFALSE", "NEWTRUE", "EMPTY_TUPLE",
    "EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET", "BININT", "BININT1", "BININT2", "BINFLOAT",
    "BINUNICODE", "SHORT_BINSTRING", "BINPERSID", "BINGET", "LONG_BINGET", "BINPUT",
    "LONG_BINPUT", "LONG1", "PROTO", "STOP",
))  # fmt: skip
TABLES = ("dict", "collections.OrderedDict", "collections.Counter")  # what it fills with items


class Unreadable(Exception):
    """The pickle ends too early or is none; the message says where."""


class Global(NamedTuple):
    """A class or function, by name."""

    name: str  # "torch._utils._rebuild_tensor_v2"


@dataclass(eq=False)
class Table:
    """A dict: its pairs in order, whatever the keys are."""

    pairs: list[tuple[Any, Any]] = field(default_factory=list)

    def get(self, key: str, default: Any = None) -> Any:
        """The last value of a key that is a string."""
        return next(
            (v for k, v in reversed(self.pairs) if isinstance(k, str) and k == key), default
        )


@dataclass(eq=False)
class Row:
    """A list, tuple, set or frozenset."""

    kind: str
    items: list[Any]


@dataclass(eq=False)
class Made:
    """What a call would return, with what is then put into it."""

    by: Any  # a Global, unless the file is made to confuse
    args: Any
    state: Any = None
    pairs: list[tuple[Any, Any]] = field(default_factory=list)
    items: list[Any] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The name of the function or class."""
        return self.by.name if isinstance(self.by, Global) else ""

    def arg(self, place: int, default: Any = None) -> Any:
        """One of the arguments."""
        items = self.args.items if isinstance(self.args, Row) else []
        return items[place] if place < len(items) else default


@dataclass(eq=False)
class Kept:
    """What the pickle keeps outside of itself: torch's storages."""

    id: Any


@dataclass
class Reading:
    """What a pickle would make, and what it would need for that."""

    value: Any = None
    globals: dict[str, int] = field(default_factory=dict)  # name: how often it would be called
    refused: list[str] = field(default_factory=list)  # why torch.load's default refuses it
    protocol: int = 0
    ops: int = 0  # instructions


def printable(text: str, longest: int = 200) -> str:
    """A stranger's text without what could play tricks on a terminal or a table.

    Example:
        >>> printable(f"a{chr(10)}b{chr(27)}[2J"), printable("x" * 9, 4)
        ('a�b�[2J', 'xxxx…')
    """
    cut = text if len(text) <= longest else f"{text[:longest]}…"
    return "".join(letter if letter.isprintable() else "�" for letter in cut)


class _Bounded:
    """A file of which nothing large is read in one piece, whatever the pickle asks for."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.tell = file, file.tell

    def read(self, count: int) -> bytes:
        return self.file.read(min(count, LARGEST_PICKLE))

    def readline(self) -> bytes:
        return self.file.readline(LONGEST_LINE)


def follow(pickle: BinaryIO, most_ops: int = MOST_OPS) -> Reading:
    """The pickle that begins where the file stands; the file stands behind it afterwards.

    Example:
        >>> import io, os, pickle
        >>> class Trap:
        ...     def __reduce__(self):
        ...         return os.getcwd, ()
        >>> follow(io.BytesIO(pickle.dumps(Trap()))).globals
        {'posix.getcwd': 1}

    Raises:
        Unreadable: it is no pickle, or ends too early.
    """
    machine, bounded = _Machine(), cast("BinaryIO", _Bounded(pickle))
    number, position = 0, 0
    try:
        for number, (op, arg, at) in enumerate(pickletools.genops(bounded)):
            position = at or 0
            if number > most_ops:
                raise Unreadable(f"its pickle has more than {most_ops:,} instructions")
            machine.run(op.name, arg)
    except (
        ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError, MemoryError,
    ) as error:  # fmt: skip
        raise Unreadable(f"its pickle breaks off or is damaged at byte {position:,}") from error
    machine.reading.ops = number
    if not machine.stack:
        raise Unreadable("its pickle leaves nothing behind")
    machine.reading.value = machine.stack[-1]
    return machine.reading


class _Machine:
    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.reading = Reading()
        self.handlers: dict[str, Callable[[Any], None]] = _handlers(self)

    def run(self, name: str, arg: Any) -> None:
        if name not in PLAIN_OPS:
            self.refuse(f"the pickle instruction {name}")
        handler = self.handlers.get(name)
        if handler is not None:
            handler(arg)
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name]())
        else:  # numbers, strings, bytes: pickletools has read them
            self.stack.append(arg)

    def refuse(self, why: str) -> None:
        if why not in self.reading.refused:
            self.reading.refused.append(why)

    def items(self) -> list[Any]:
        """What came since the last mark."""
        found, self.stack = self.stack, self.marks.pop()
        return found

    # --- names and calls ---

    def name(self, arg: str) -> None:
        module, name = arg.split(" ", 1)
        self._global(module, name)

    def name_of_stack(self, _: Any) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        if not (isinstance(name, str) and isinstance(module, str)):
            name, module = "name that is computed", "a"
        self._global(module, name)

    def _global(self, module: str, name: str) -> None:
        if (module, name) in NAME_MAPPING:  # as Python 2 called it
            module, name = NAME_MAPPING[module, name]
        module = IMPORT_MAPPING.get(module, module)
        found = Global(printable(f"{module}.{name}"))
        self.reading.globals.setdefault(found.name, 0)
        self.stack.append(found)

    def call(self, by: Any, args: Any) -> None:
        made = Made(by, args)
        if isinstance(by, Global):
            self.reading.globals[by.name] += 1
        else:
            self.refuse("a call of something that is itself made by a call")
        self.stack.append(made)

    def reduce(self, _: Any) -> None:
        args = self.stack.pop()
        self.call(self.stack.pop(), args)

    def new_with_keywords(self, _: Any) -> None:
        keywords, args, by = self.stack.pop(), self.stack.pop(), self.stack.pop()
        self.call(by, Row("tuple", [*args.items, *(v for _, v in keywords.pairs)]))

    def instance(self, arg: str) -> None:
        args = Row("tuple", self.items())
        self.name(arg)
        self.call(self.stack.pop(), args)

    def object(self, _: Any) -> None:
        by, *args = self.items()
        self.call(by, Row("tuple", args))

    def extension(self, arg: int) -> None:
        self._global("copyreg", f"extension {arg}")

    def build(self, _: Any) -> None:
        state = self.stack.pop()
        made = self.stack[-1]
        if isinstance(made, Made):
            made.state = state
        else:
            self.refuse("a state for something that is no object")

    def keep(self, arg: Any) -> None:
        name = self.stack.pop() if arg is None else arg
        parts = name.items if isinstance(name, Row) else [""]
        if parts[:1] == ["module"] and len(parts) > 1:  # a class, with its source beside it
            self.refuse("the source code of a class, as the legacy format has it")
            self.stack.append(parts[1])
        else:
            self.stack.append(Kept(name))

    # --- containers ---

    def mark(self, _: Any) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def put_pairs(self, pairs: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, Table | Made):
            raise TypeError("no dict")
        if isinstance(target, Made) and target.name not in TABLES:
            self.refuse(f"items put into a {target.name}")
        target.pairs.extend(zip(pairs[::2], pairs[1::2], strict=True))

    def put_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        if not isinstance(target, Row | Made):
            raise TypeError("no list")
        if isinstance(target, Made):
            self.refuse(f"items put into a {target.name}")
        target.items.extend(items)

    def set_item(self, _: Any) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.put_pairs([key, value])

    def append(self, _: Any) -> None:
        self.put_items([self.stack.pop()])

    def short_tuple(self, length: int) -> None:
        items = self.stack[-length:]
        if len(items) < length:
            raise IndexError(length)
        del self.stack[-length:]
        self.stack.append(Row("tuple", items))

    def gather(self, kind: str) -> None:
        items = self.items()  # which leaves another stack
        self.stack.append(Row(kind, items))

    def gather_table(self, _: Any) -> None:
        items = self.items()
        self.stack.append(Table(list(zip(items[::2], items[1::2], strict=True))))

    def pop(self, _: Any) -> None:
        if self.stack:
            self.stack.pop()
        else:
            self.items()

    def pop_mark(self, _: Any) -> None:
        self.items()

    def remember(self, place: int | None) -> None:
        self.memo[len(self.memo) if place is None else place] = self.stack[-1]

    def recall(self, place: int) -> None:
        self.stack.append(self.memo[place])


_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": Table,
    "EMPTY_LIST": lambda: Row("list", []),
    "EMPTY_TUPLE": lambda: Row("tuple", []),
    "EMPTY_SET": lambda: Row("set", []),
    "NEXT_BUFFER": lambda: None,
}


def _nothing(_: Any) -> None:
    """PROTO, FRAME, STOP, READONLY_BUFFER: nothing on the stack changes."""


def _handlers(m: _Machine) -> dict[str, Callable[[Any], None]]:
    def protocol(number: int) -> None:
        m.reading.protocol = number

    return {
        "PROTO": protocol, "FRAME": _nothing, "STOP": _nothing, "READONLY_BUFFER": _nothing,
        "GLOBAL": m.name, "STACK_GLOBAL": m.name_of_stack, "REDUCE": m.reduce, "NEWOBJ": m.reduce,
        "NEWOBJ_EX": m.new_with_keywords, "INST": m.instance, "OBJ": m.object, "BUILD": m.build,
        "EXT1": m.extension, "EXT2": m.extension, "EXT4": m.extension,
        "PERSID": m.keep, "BINPERSID": m.keep,
        "MARK": m.mark, "POP_MARK": m.pop_mark, "POP": m.pop,
        "DUP": lambda _: m.stack.append(m.stack[-1]),
        "SETITEM": m.set_item, "SETITEMS": lambda _: m.put_pairs(m.items()),
        "APPEND": m.append, "APPENDS": lambda _: m.put_items(m.items()),
        "ADDITEMS": lambda _: m.put_items(m.items()),
        "TUPLE1": lambda _: m.short_tuple(1), "TUPLE2": lambda _: m.short_tuple(2),
        "TUPLE3": lambda _: m.short_tuple(3), "TUPLE": lambda _: m.gather("tuple"),
        "LIST": lambda _: m.gather("list"), "FROZENSET": lambda _: m.gather("frozenset"),
        "DICT": m.gather_table,
        "PUT": m.remember, "BINPUT": m.remember, "LONG_BINPUT": m.remember, "MEMOIZE": m.remember,
        "GET": m.recall, "BINGET": m.recall, "LONG_BINGET": m.recall,
    }  # fmt: skip
