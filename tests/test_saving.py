"""What the course's JupyterLab saves: the picture stays, the dead widget goes."""

import json

import pytest

from pytorch_lab.launch.saving import keep_pictures

LIVE = "application/vnd.jupyter.widget-view+json"


def saved(*outputs):
    """The outputs after a save of a notebook that holds them."""
    model = {"type": "notebook", "content": {"cells": [{"outputs": list(outputs)}]}}
    keep_pictures(model, path="a.ipynb", contents_manager=None)
    return model["content"]["cells"][0]["outputs"]


def test_an_output_with_a_picture_loses_its_live_id():
    assert saved({"data": {LIVE: {"model_id": "1"}, "text/html": "<p>", "text/plain": "x"}}) == [
        {"data": {"text/html": "<p>", "text/plain": "x"}}
    ]


def test_an_output_without_a_picture_is_left_alone():
    slider = {"data": {LIVE: {"model_id": "1"}, "text/plain": "IntSlider(value=3)"}}
    stream = {"output_type": "stream", "text": "a"}
    assert saved(dict(slider), dict(stream)) == [slider, stream]


@pytest.mark.parametrize("model", [
    {"type": "file", "content": "text"},
    {"type": "notebook", "content": None},
    {"type": "directory"},
])  # fmt: skip
def test_what_is_no_whole_notebook_is_left_alone(model):
    before = json.dumps(model)
    keep_pictures(model)
    assert json.dumps(model) == before
