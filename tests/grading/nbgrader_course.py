"""Run as a program with nbgrader on its path: release and autograde a course, print the scores.

    python nbgrader_course.py COURSE ASSIGNMENT...

Prints, as JSON, {assignment: {student: {notebook: {grade cell: points, or null for a person}}}}.
"""

import json
import sys
from pathlib import Path


def main(course: str, *assignments: str) -> None:
    from nbgrader.apps.api import NbGraderAPI  # only this program can import it
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import Config

    config = Config()
    config.CourseDirectory.root = course
    config.Execute.timeout = 300
    api = NbGraderAPI(CourseDirectory(config=config), config=config)
    found = {}
    for assignment in assignments:
        must(api.generate_assignment(assignment))
        for folder in sorted(Path(course, "submitted").glob(f"*/{assignment}")):
            must(api.autograde(assignment, folder.parent.name))
        found[assignment] = scores(f"sqlite:///{course}/gradebook.db", assignment)
    print(json.dumps(found))


def must(result: dict) -> None:
    if not result["success"]:
        sys.exit(f"{result.get('error')}\n{result.get('log')}")


def scores(url: str, assignment: str) -> dict:
    from nbgrader.api import Gradebook

    with Gradebook(url) as book:
        return {
            submission.student.id: {
                notebook.name: {
                    grade.name: None if grade.needs_manual_grade else grade.score
                    for grade in notebook.grades
                }
                for notebook in submission.notebooks
            }
            for submission in book.assignment_submissions(assignment)
        }


if __name__ == "__main__":
    main(*sys.argv[1:])
