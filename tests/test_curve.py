"""Where the lines of a loss curve stand."""

import math
import re

import pytest

from pytorch_lab.widgets import curve, listing


def points(path):
    return [tuple(map(float, pair)) for pair in re.findall(r"[ML]([\d.]+) ([\d.-]+)", path)]


def test_no_losses_no_curve():
    assert curve.plan({}) is None
    assert curve.plan({"loss": ()}) is None


def test_a_single_loss_makes_no_curve():
    assert curve.plan({"loss": (0.5,)}) is None
    plan = curve.plan({"before": (0.5,), "now": (0.5, 0.25)})
    assert [series["name"] for series in plan["series"]] == ["now"]


def test_heights_are_proportional():
    """Against the rule of three, on a scale from 0 to 4."""
    plan = curve.plan({"loss": (4.0, 3.0, 1.0, 0.0)})
    assert [label for _, label in plan["y_ticks"]] == ["0", "1", "2", "3", "4"]
    left, top, right, bottom = plan["box"]
    assert points(plan["series"][0]["path"]) == [
        (left, top),
        (round(left + (right - left) / 3, 1), top + (bottom - top) / 4),
        (round(left + (right - left) * 2 / 3, 1), top + (bottom - top) * 3 / 4),
        (right, bottom),
    ]


def test_wide_ranges_are_logarithmic():
    plan = curve.plan({"loss": (100.0, 1.0, 0.01)})
    assert plan["y_label"] == "loss (log scale)"
    heights = [y for _, y in points(plan["series"][0]["path"])]
    assert heights[1] - heights[0] == pytest.approx(heights[2] - heights[1], abs=0.1)
    assert curve.plan({"loss": (100.0, 0.2)})["y_label"] == "loss"
    assert curve.plan({"loss": (100.0, 0.0)})["y_label"] == "loss"


@pytest.mark.parametrize(
    "losses",
    [
        (0.0, 0.0),
        (-3.0, -1.0),
        (5.0, 5.0),
        (1e-300, 1e300),
        (1e38, 2e38),
        (math.nan, math.nan),
        (math.inf, 1.0),
        tuple(range(5000)),
        (2.3025, 2.3024, 2.3026),
    ],
)
def test_everything_stays_in_the_box(losses):
    plan = curve.plan({"loss": losses})
    left, top, right, bottom = plan["box"]
    for series in plan["series"]:
        for x, y in points(series["path"]):
            assert left <= x <= right
            assert top <= y <= bottom
    assert 2 <= len(plan["y_ticks"]) <= 8
    assert all(top <= y <= bottom for y, _ in plan["y_ticks"])
    assert curve.to_image(plan) == curve.to_image(curve.plan({"loss": losses}))


def test_long_curves_are_thinned_and_keep_their_end():
    found = points(curve.plan({"loss": tuple(range(5000))})["series"][0]["path"])
    assert len(found) <= curve.MOST_POINTS + 1
    assert found[-1][0] == curve.RIGHT


def test_a_loss_that_is_no_number_is_said():
    plan = curve.plan({"loss": (1.0, 0.5, math.nan, math.nan)})
    assert plan["series"][0]["end"][2] == "nan from step 3"
    assert plan["alt"] == "Loss over 4 steps: from 1 to nan."
    broken = curve.plan({"loss": (1.0, math.inf, 0.5)})["series"][0]["path"]
    assert broken.count("M") == 2


def test_two_curves_share_the_scale():
    plan = curve.plan({"a": (4.0, 2.0), "b": (1.0, 1.5)})
    a, b = (points(series["path"]) for series in plan["series"])
    assert a[0][0] == b[0][0]
    assert a[0][1] < a[1][1] < b[0][1]


CODE = {
    "comment": ("x  # why", [[["", "x  "], ["comment", "# why"]]]),
    "keyword": ("return x", [[["keyword", "return"], ["", " x"]]]),
    "two lines": (
        "x = '''a\nb''' + c",
        [[["", "x = "], ["string", "'''a"]], [["string", "b'''"], ["", " + c"]]],
    ),
    "not Python": ("def (", [[["keyword", "def"], ["", " ("]]]),
    "empty line": ("a\n\nb", [[["", "a"]], [], [["", "b"]]]),
    "nothing": ("", [[]]),
    "indentation": ("    pass", [[["", "    "], ["keyword", "pass"]]]),
}


@pytest.mark.parametrize("name", CODE)
def test_listing(name):
    code, expected = CODE[name]
    assert listing.listing(code) == expected


@pytest.mark.parametrize("name", CODE)
def test_listing_loses_nothing(name):
    code, _ = CODE[name]
    lines = ["".join(text for _, text in words) for words in listing.listing(code)]
    assert "\n".join(lines) == code
