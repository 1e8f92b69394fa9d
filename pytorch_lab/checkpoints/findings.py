"""What a person should know about a checkpoint: an ordered list of small finders.

Each looks at the whole and yields findings, or nothing. A fix is code that runs as it stands; the
names in it are `checkpoint` (what was loaded, or is to be saved), `model` and `scheduler`.
"""

from dataclasses import replace

from pytorch_lab.checkpoints import meeting, opening
from pytorch_lab.checkpoints.case import Case
from pytorch_lab.checkpoints.record import Finding
from pytorch_lab.remark import problems_first


def find(case: Case) -> tuple[Finding, ...]:
    """All findings, problems first."""
    found = [Finding(*note) for note in case.contents.notes]
    for finder in (*opening.FINDERS, *meeting.FINDERS):
        found.extend(map(_with_import, finder(case)))
    return problems_first(found)


def _with_import(finding: Finding) -> Finding:
    if "safetensors.torch." not in finding.fix:
        return finding
    return replace(finding, fix=f"import safetensors.torch\n{finding.fix}")
