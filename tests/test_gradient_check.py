"""The picture of a gradient check: what is drawn, what is left out, and the still form."""

import re
from base64 import b64decode

import pytest
import torch

import pytorch_lab as lab
from pytorch_lab import customop
from pytorch_lab.errors import UsageError
from pytorch_lab.widgets.gradient_check import MOST_COLUMNS, MOST_ROWS, GradientPicture
from tests.customop_cases import RIGHT, WRONG, M, W, X, product


def page_of(fn, *inputs, **options):
    return GradientPicture(customop.check(fn, *inputs, **options)).state["pages"][0]


def test_a_row_for_each_output_and_a_column_for_each_input():
    page = page_of(product(lambda x, w, g: (g @ w.T, 2 * x.T @ g)), M, W)
    assert page["rows"][:2] == ["out[0, 0]", "out[0, 1]"]
    assert page["columns"][:7] == [
        "x[0, 0]", "x[0, 1]", "x[0, 2]", "x[1, 0]", "x[1, 1]", "x[1, 2]", "w[0, 0]",
    ]  # fmt: skip
    assert [len(row) for row in page["cells"]] == [len(page["columns"])] * 6
    first = page["cells"][0]
    assert [cell["tone"] for cell in first[:4]] == ["right", "right", "right", "zero"]
    wrong = first[6]
    assert (wrong["sign"], wrong["shown"]) == ("✗", ["-1", "-2", "-1"])  # off by, backward, numeric
    assert wrong["says"] == (
        "d out[0, 0] / d w[0, 0]: backward gives -2, a difference of forward -1; wrong, off by -1."
    )


def test_the_colour_grows_with_the_share_that_is_wrong():
    tones = [
        page_of(product(lambda x, w, g, c=c: (g @ w.T, c * x.T @ g)), M, W)["cells"][0][6]["tone"]
        for c in (1.0, 0.9, 0.5, 0.0, -1.0)
    ]
    assert tones == ["right", "wrong-0", "wrong-1", "wrong-2", "wrong-2"]


def test_kinks_and_what_is_undecided_have_a_sign_of_their_own():
    kink = page_of(torch.relu, torch.zeros(1))["cells"][0][0]
    assert (kink["sign"], kink["tone"]) == ("^", "kink")
    unsure = page_of(torch.sqrt, torch.zeros(1))["cells"][0][0]
    assert (unsure["sign"], unsure["tone"]) == ("?", "unsure")


def test_of_a_large_jacobian_the_wrong_rows_and_columns_are_drawn():
    class Late(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad_output):
            grad = 2 * grad_output
            grad[90] *= 3
            return grad

    page = page_of(Late, torch.ones(100))
    assert (len(page["rows"]), len(page["columns"])) == (MOST_ROWS, MOST_COLUMNS)
    assert page["rows"][-1] == "out[90]"
    assert page["columns"][-1] == "x[90]"
    assert page["left_out"] == (
        "Shown are 16 of 100 rows and 16 of 100 columns, first those with a wrong derivative."
    )
    assert page_of(torch.sin, X)["left_out"] == ""


def test_the_second_derivative_is_a_page_of_its_own():
    pages = GradientPicture(customop.check(torch.sin, X, second=True)).state["pages"]
    assert [page["name"] for page in pages] == ["gradient", "the gradient of the gradient"]
    assert pages[1]["columns"][-1] == "grad_output[2]"


@pytest.mark.parametrize("name", [*RIGHT, *WRONG])
def test_every_check_has_a_still_picture_that_says_the_same(name):
    case = (RIGHT | WRONG)[name]
    found = customop.check(case.fn, *case.inputs)
    widget = lab.show(found)
    assert isinstance(widget, GradientPicture)
    assert str(widget) == str(found)
    html = widget.to_html()
    assert html == GradientPicture(found).to_html()
    for problem in found.problems:
        assert problem.text.split("`")[0].strip() in html
    if found.blocks and found.inputs[0].shape != (0,):
        drawn = b64decode(re.search(r"base64,([^\"]+)", html)[1]).decode()
        assert found.outputs[0].element(0) in drawn


def test_the_record_is_shown_alone():
    with pytest.raises(UsageError, match="expected the GradientCheck alone, got more beside it"):
        lab.show(customop.check(torch.sin, X), X)
