"""Puts the landing page into the wheel, beside the notebooks.

Folders are moved by `sources` in pyproject.toml, which can't move a single file. `force-include`
can, but would also copy the page into site-packages when the checkout is installed as editable,
where it would go stale.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LandingPage(BuildHookInterface):
    """The one file of the course that lies at its root."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds."""
        if version == "standard":
            build_data["force_include"]["START_HERE.md"] = "pytorch_lab/course_files/START_HERE.md"
