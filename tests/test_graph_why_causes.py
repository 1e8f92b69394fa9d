"""Every cause that an answer can name is listed, and every one that is listed can be named."""

import ast
from collections.abc import Iterator
from pathlib import Path

from pytorch_lab.graph.explaining import causes
from pytorch_lab.graph.explaining.causes import CAUSES
from tests import test_graph_bank, test_graph_why_error, test_graph_why_none
from tests.autograd_mistakes import MISTAKES

FILES = sorted(Path(causes.__file__).parent.glob("*.py"))
CODE_IS = {"Explanation": 0, "Words": 1, "_Flat": 1}  # which argument of a call is a code
PASSED_ON = {"cut.cause", "words.cause", "flat.cause"}  # from where another code is found here
IN_TESTS_OF_THEIR_OWN = {"checkpoint_without_grad", "inside_checkpoint", "went_elsewhere"}
GRAD_MODES = {"no_grad", "inference"}  # of an op, which are causes as they are


def calls() -> Iterator[tuple[str, str, ast.expr]]:
    """File, callee and code of every call that makes an answer, or a row of a table of answers."""
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                place = CODE_IS.get(node.func.id)
                if place is not None:
                    by_name = [word.value for word in node.keywords if word.arg == "cause"]
                    yield file.stem, node.func.id, (by_name or [node.args[place]])[0]


def literals(node: ast.expr) -> set[str]:
    """The words that an expression can be."""
    if isinstance(node, ast.IfExp):
        return literals(node.body) | literals(node.orelse)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value}
    assert ast.unparse(node) in PASSED_ON, f"a code that cannot be read: {ast.unparse(node)}"
    return set()


def cuts() -> set[str]:
    """What cuts.py calls the ends of a graph."""
    tree = ast.parse(next(file for file in FILES if file.stem == "cuts").read_text("utf-8"))
    (function,) = (
        n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "_cause"
    )
    returned = [n.value for n in ast.walk(function) if isinstance(n, ast.Return) and n.value]
    named = set().union(*(literals(r) for r in returned if not isinstance(r, ast.Attribute)))
    return named | GRAD_MODES


def test_the_list_is_what_the_source_can_name() -> None:
    assert cuts().union(*(literals(code) for _, _, code in calls())) == set(CAUSES)


def test_each_cause_is_met_by_a_test_and_only_these_are() -> None:
    met = {mistake.cause for mistake in MISTAKES} | test_graph_bank.HARMLESS
    met |= {cause for _, cause in test_graph_why_error.REAL}
    met |= set(test_graph_why_none.LIVING.values()) | set(test_graph_why_none.BEYOND.values())
    assert met <= set(CAUSES)
    assert set(CAUSES) - met == IN_TESTS_OF_THEIR_OWN


def test_each_cause_is_one_sentence() -> None:
    for code, sentence in CAUSES.items():
        assert code.isidentifier()
        assert sentence.endswith(".")
        assert ". " not in sentence
    assert len(set(CAUSES.values())) == len(CAUSES)


def test_an_answer_that_several_questions_give_is_built_in_one_place() -> None:
    """Else its words drift apart. Of a result two things can be said: to look at, or to train."""
    files: dict[str, set[str]] = {}
    for file, callee, code in calls():
        for word in literals(code) if callee == "Explanation" else ():
            files.setdefault(word, set()).add(file)
    assert {word for word, where in files.items() if len(where) > 1} == {"non_leaf"}
