"""The results of a run pass through a file, which student code without a sandbox could write to."""

import json

import pytest

from pytorch_lab.grading.book.gradebook import Gradebook
from pytorch_lab.grading.running.collecting import Collector
from pytorch_lab.grading.running.explaining import Explainer
from pytorch_lab.grading.running.misconceptions import Misconceptions
from pytorch_lab.grading.running.nbval_run import record_in
from pytorch_lab.grading.statuses import NO_KERNEL

PLAIN = Explainer([], {}, Misconceptions(list))  # no mistakes are known


def record(submission, exercise, status):
    told = {"submission": submission, "exercise": exercise, "status": status, "reason": ""}
    return told | {"seconds": 0.5, "shown": "", "reveals": []}


def test_lines_that_are_no_record_are_passed_over():
    true = record("00000", "03.1", "passed")
    lines = ["junk", "[1]", '{"exercise": "03.1"}', json.dumps(true), "[" * 9999]
    assert [record_in(line) for line in lines] == [None, None, None, true, None]


def test_two_verdicts_for_one_exercise_earn_nothing_and_touch_no_other():
    told = [
        record("00000", "03.1", "failed"),
        record("00000", "03.2", "passed"),
        record("00000", "03.1", "passed"),
        record("00001", "03.1", "passed"),
        record("7", "03.1", "passed"),
        record("x", "03.1", "passed"),
    ]
    book = Gradebook("sqlite://")
    collector = Collector(["ada", "bob"], {"ada": "a", "bob": "b"}, book, PLAIN)
    for each in told:
        collector.hear(each)
    collector.settle()
    assert {place: said.status for place, said in collector.verdicts.items()} == {
        ("ada", "03.1"): "refused",
        ("ada", "03.2"): "passed",
        ("bob", "03.1"): "passed",
    }
    assert {e: said.status for e, said in book.known("a").items()} == {
        "03.1": "refused",
        "03.2": "passed",
    }
    assert book.known("c") == {}
    book.close()


def test_half_a_submission_and_a_machine_without_kernels_are_run_again():
    book = Gradebook("sqlite://")
    keys, asked = {"ada": "a", "bob": "b", "eve": "e"}, {"03.1", "03.2"}
    collector = Collector(list(keys), keys, book, PLAIN, asked=dict.fromkeys(keys, asked))
    no_kernel = record("00001", "03.2", "kernel_died") | {"reason": f"{NO_KERNEL}: disk full"}
    collector.hear(record("00000", "03.1", "passed"))  # and then the process was killed
    collector.hear(record("00001", "03.1", "passed"))
    collector.hear(no_kernel)
    collector.hear(record("00002", "03.1", "passed"))
    collector.hear(record("00002", "03.2", "kernel_died"))
    collector.settle()
    assert len(collector.verdicts) == 5
    assert (book.known("a"), book.known("b"), len(book.known("e"))) == ({}, {}, 2)
    book.close()


@pytest.mark.parametrize(
    "odd",
    [
        {"reason": 7},
        {"status": []},
        {"status": "great"},
        {"submission": 0},
        {"seconds": "long"},
        {"seconds": float("nan")},
    ],
)
def test_a_record_of_other_types_or_an_unknown_status_is_none(odd):
    assert record_in(json.dumps(record("00000", "03.1", "passed") | odd)) is None
