"""What all widgets have in common: files, bundle, questions, colours."""

import json
import re
from pathlib import Path

import pytest

import pytorch_lab.widgets
from pytorch_lab.widgets import base
from pytorch_lab.widgets.base import LabWidget, asset

FOLDER = Path(base.__file__).parent
STYLES = sorted(FOLDER.glob("*.css"))
SCRIPTS = sorted(FOLDER.glob("*.js"))


class Counter(LabWidget):
    """The smallest widget."""

    _esm = "export default { render() {} };"

    def __init__(self):
        super().__init__({"count": 0, "step": 1})

    def on_add(self, times=1):
        self.update(count=self.state["count"] + times * self.state["step"])

    def to_html(self):
        return f"<p>{self.state['count']}</p>"

    def __str__(self):
        return f"Counter at {self.state['count']}"


def classes(parent=LabWidget):
    for child in parent.__subclasses__():
        if child.__module__.startswith(pytorch_lab.widgets.__name__):
            yield child
        yield from classes(child)


def text_of(attribute):
    """The class attribute as written; anywidget makes it a trait with the first instance."""
    return attribute if isinstance(attribute, str) else attribute.default_value


def test_the_front_end_asks_and_state_answers():
    counter = Counter()
    seen = []
    counter.observe(lambda change: seen.append(change["new"]), "state")
    counter._answer(counter, {"ask": "add", "with": {"times": 3}}, [])
    counter._answer(counter, {"ask": "add"}, [])
    assert seen == [{"count": 3, "step": 1}, {"count": 4, "step": 1}]


@pytest.mark.parametrize("content", [{}, {"ask": "unknown"}, {"ask": None}, {"other": 1}])
def test_what_is_not_asked_for_is_ignored(content):
    counter = Counter()
    counter._answer(counter, content, [])
    assert counter.state == {"count": 0, "step": 1}


def test_bundle_has_a_picture_and_the_whole_text():
    data, _ = Counter()._repr_mimebundle_()
    assert data["text/html"] == "<p>0</p>"
    assert data["text/plain"] == "Counter at 0"
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"]


def test_repr_has_no_address():
    assert repr(Counter()) == "Counter at 0"


def test_one_widget_is_files_of_one_stem():
    """Every stem, own or shared, has its `.js`, some a `.css`; the shared ones come first."""
    import pytorch_lab.widgets.xray  # noqa: F401 - one of them, at least

    found = [cls for cls in classes() if "stem" in vars(cls)]  # not what is drawn as another is
    assert {cls.stem for cls in found} >= {"xray"}
    for cls in found:
        stems = (*cls.shared, cls.stem)
        assert stems[0] == "base", cls
        assert text_of(cls._esm) == "".join(asset(f"{stem}.js") for stem in stems)
        assert text_of(cls._css) == "".join(asset(f"{stem}.css") for stem in stems)
        module = Path(__import__(cls.__module__, fromlist=["_"]).__file__)
        assert module.stem == cls.stem, f"{cls} should live in {cls.stem}.py"


def test_a_style_sheet_is_optional_and_a_script_is_not():
    assert asset("predict.css") == ""
    with pytest.raises(FileNotFoundError):
        asset("no_such_widget.js")


@pytest.mark.parametrize("file", STYLES, ids=lambda file: file.name)
def test_a_style_sheet_dresses_the_script_of_its_name(file):
    assert file.with_suffix(".js").exists(), f"{file.name} belongs to no script"
    assert "{" in file.read_text("utf-8"), f"{file.name} says nothing"


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_scripts_stand_alone(file):
    """A front end cannot import a sibling, and nobody may be asked over the network."""
    text = file.read_text("utf-8")
    assert not re.search(r"^\s*import\b|\bimport\(|https?://(?!www\.w3\.org/)", text, re.MULTILINE)
    assert not re.search(r"\bfetch\(|XMLHttpRequest|WebSocket|\beval\(|innerHTML", text)


@pytest.mark.parametrize("file", STYLES, ids=lambda file: file.name)
def test_styles_ask_nobody_and_stay_inside(file):
    """No url, and every rule begins with our class: a widget never restyles the notebook."""
    text = re.sub(r"/\*.*?\*/", "", file.read_text("utf-8"), flags=re.DOTALL)
    assert "url(" not in text
    assert "@import" not in text
    selectors = [found.strip() for found in re.findall(r"([^{};]+)\{", text)]
    selectors = [one for one in selectors if not one.startswith("@") and "%" not in one]
    for selector in selectors:
        parts = re.split(r",(?![^(]*\))", selector)
        assert all(".lab" in part for part in parts), selector


def test_every_colour_variable_is_defined_with_a_fallback():
    styles = {file.name: file.read_text("utf-8") for file in STYLES}
    defined = set(re.findall(r"(--lab-[a-z-]+)\s*:", "".join(styles.values())))
    set_by_script = set(
        re.findall(r'["`](--lab-[a-z-]+)["`:]', "".join(f.read_text() for f in SCRIPTS))
    )
    for name, text in styles.items():
        for variable in re.findall(r"var\((--lab-[a-z-]+)\)", text):
            assert variable in defined | set_by_script, f"{variable} in {name}"
    for line in styles["base.css"].splitlines():
        for foreign in re.findall(r"var\(--(?:jp|vscode|colab)-[\w-]+\)", line):
            raise AssertionError(f"{foreign} has no fallback: {line}")


def test_vscode_and_colab_come_before_jupyterlab():
    """They load ipywidgets' light `--jp-` variables under a dark theme."""
    for line in asset("base.css").splitlines():
        hosts = re.findall(r"--(jp|vscode|colab)-", line)
        assert "jp" not in hosts or hosts[-1] == "jp", line


def test_motion_only_where_it_is_welcome():
    for file in STYLES:
        text = file.read_text("utf-8")
        for found in re.finditer(r"\b(transition|animation)\s*:", text):
            before = text[: found.start()]
            block = before.rfind("@media (prefers-reduced-motion: no-preference)")
            assert block >= 0, f"{file.name}: {text[found.start() :][:40]}"
            opened = before[block:].count("{") - before[block:].count("}")
            assert opened == 2, f"{file.name}: {text[found.start() :][:40]}"


def test_state_of_a_widget_is_json():
    assert json.loads(json.dumps(Counter().state, allow_nan=False)) == {"count": 0, "step": 1}
