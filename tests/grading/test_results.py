"""The results of a run pass through a file, which student code without a sandbox could write to."""

import json

from pytorch_lab.grading.grade import _verdicts
from pytorch_lab.grading.nbval_run import records


def record(submission, exercise, status):
    return {"submission": submission, "exercise": exercise, "status": status, "reason": ""}


def test_lines_that_are_no_record_are_passed_over(tmp_path):
    true = record("00000", "03.1", "passed")
    file = tmp_path / "results.jsonl"
    file.write_text("\n".join(["junk", "[1]", '{"exercise": "03.1"}', json.dumps(true)]), "utf-8")
    assert records(file) == [true]


def test_two_verdicts_for_one_exercise_earn_nothing_and_touch_no_other():
    told = [
        record("00000", "03.1", "failed"),
        record("00000", "03.2", "passed"),
        record("00000", "03.1", "passed"),
        record("00001", "03.1", "passed"),
        record("7", "03.1", "passed"),
        record("x", "03.1", "passed"),
    ]
    found = _verdicts(told, ["ada", "bob"])
    assert {key: value["status"] for key, value in found.items()} == {
        ("ada", "03.1"): "refused",
        ("ada", "03.2"): "passed",
        ("bob", "03.1"): "passed",
    }


def test_a_record_of_other_types_or_an_unknown_status_is_none(tmp_path):
    record = {"submission": "00000", "exercise": "03.1", "status": "passed", "reason": ""}
    odd = [{"reason": 7}, {"status": []}, {"status": "great"}, {"submission": 0}]
    file = tmp_path / "results.jsonl"
    file.write_text("\n".join(json.dumps(record | change) for change in odd), "utf-8")
    assert records(file) == []
