"""What the course's JupyterLab writes when a learner saves: pictures in the place of dead widgets.

A live widget is saved as the id of something in the kernel's memory. When the notebook is opened
again that memory is gone, and JupyterLab shows "Error displaying widget: model not found" although
the same output holds a picture. So the id is left out of what is written; the page that is open
keeps its live widgets, and running the cell again brings them back.
"""

from typing import Any

_LIVE = "application/vnd.jupyter.widget-view+json"
_PICTURE = "text/html"


def keep_pictures(model: dict[str, Any], **_: Any) -> None:
    """Leave live ids out of outputs that hold a picture too; called before each save.

    Example:
        >>> output = {"data": {"text/html": "<p>", "application/vnd.jupyter.widget-view+json": {}}}
        >>> notebook = {"cells": [{"outputs": [output]}], "metadata": {}}
        >>> keep_pictures({"type": "notebook", "content": notebook})
        >>> output
        {'data': {'text/html': '<p>'}}

    Args:
        model: Jupyter's contents model; anything but a whole notebook is left alone.
    """
    if model.get("type") != "notebook" or not isinstance(model.get("content"), dict):
        return
    for cell in model["content"].get("cells", []):
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if _PICTURE in data:
                data.pop(_LIVE, None)
