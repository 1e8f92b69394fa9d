"""A gradient check in a real browser: themes, keyboard, what the cells show."""

import pytest
import torch
from playwright.sync_api import expect
from torch.autograd import Function

from pytorch_lab import customop
from pytorch_lab.widgets.gradient_check import GradientPicture


class Softmax(Function):
    """Its backward treats the softmax as if each element were alone."""

    @staticmethod
    def forward(ctx, x):
        y = x.softmax(-1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * y * (1 - y)


class Mul(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight.T, (x.T @ grad_output.detach()) * 1.5


X = torch.tensor([[0.5, -1.0], [2.0, 0.25]])
THEMES = ["light", "dark", "vscode-dark", "colab-dark"]


@pytest.mark.parametrize("theme", THEMES)
def test_it_reads_well_in_every_theme(stage, theme):
    view = stage(GradientPicture(customop.check(Mul, X, X.T.clone())), theme=theme)
    expect(view.root).to_contain_text("Gradient of Mul: wrong")
    view.axe()
    view.picture(f"customop-{theme}")


@pytest.mark.parametrize(("width", "zoom"), [(900, 2), (360, 1)])
def test_it_fits_a_narrow_window(stage, width, zoom):
    view = stage(GradientPicture(customop.check(Mul, X, X)), width=width, zoom=zoom)
    assert view.overflow() == 0
    view.axe()


def test_the_worst_is_chosen_and_arrows_walk(stage):
    view = stage(GradientPicture(customop.check(Softmax, torch.tensor([0.0, 1.0, 3.0]))))
    said = view.page.locator(".grad-said")
    expect(said).to_contain_text("d out[0] / d x[1]: backward gives 0")
    view.page.locator('.grad-cell[tabindex="0"]').focus()
    view.page.keyboard.press("ArrowDown")
    expect(said).to_contain_text("d out[1] / d x[1]:")
    expect(said).to_contain_text("both agree")
    view.page.keyboard.press("ArrowDown")
    view.page.keyboard.press("ArrowDown")  # there is no further row
    expect(said).to_contain_text("d out[2] / d x[1]:")
    assert view.page.locator('.grad-cell[tabindex="0"]').count() == 1
    view.page.locator(".grad-cell").first.click()
    expect(said).to_contain_text("d out[0] / d x[0]:")
    assert view.keys() == []


def test_the_cells_show_what_is_asked_for_and_keep_the_place(stage):
    view = stage(GradientPicture(customop.check(Mul, X, X)))
    here = view.page.locator(".grad-here")
    expect(here).to_have_text("0.25")
    view.page.get_by_role("button", name="backward", exact=True).focus()
    view.page.keyboard.press("Enter")
    expect(here).to_have_text("0.75")
    view.page.get_by_role("button", name="numeric").click()
    expect(here).to_have_text("0.5")


def test_the_gradient_of_the_gradient_is_a_page_of_its_own(stage):
    view = stage(GradientPicture(customop.check(torch.sin, torch.tensor([0.5]), second=True)))
    expect(view.root).to_contain_text("Gradient of sin: right")
    view.page.get_by_role("button", name="the gradient of the gradient").click()
    expect(view.root).to_contain_text("The gradient of sin: right")
    expect(view.page.locator("thead")).to_contain_text("grad_output[0]")
    view.axe()


def test_a_backward_that_raises_has_no_matrix(stage):
    class One(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output

    view = stage(GradientPicture(customop.check(One, X, X)))
    expect(view.root).to_contain_text("Backward returns 1 gradient, but forward has 2 arguments")
    assert view.page.get_by_role("grid").count() == 0
    view.axe()
