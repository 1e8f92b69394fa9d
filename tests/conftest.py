"""What tests share: a real JupyterLab, library models, and golden texts."""

from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import hypothesis
import pytest

from tests.real_lab import open_lab

__all__ = ["open_lab"]  # a fixture of every test: a real JupyterLab

# No time is measured in tests: on a busy machine an example takes as long as it takes.
hypothesis.settings.register_profile("lab", deadline=None)
hypothesis.settings.load_profile("lab")

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--overwrite", action="store_true", help="write the golden texts anew instead of comparing"
    )


@pytest.fixture(scope="session")
def models() -> ModuleType:
    """The module `tests/models.py`: the tests lie in no package that could be imported from."""
    spec = spec_from_file_location("tests_models", Path(__file__).with_name("models.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(name, text)`: equal to `tests/golden/<name>.txt`, or written there on request."""

    def compare(name: str, text: str) -> None:
        file = GOLDEN / f"{name}.txt"
        if request.config.getoption("--overwrite"):
            GOLDEN.mkdir(exist_ok=True)
            file.write_text(text + "\n", "utf-8")
        assert file.exists(), f"no golden text {file.name}; run pytest with --overwrite to write it"
        assert text + "\n" == file.read_text("utf-8")

    return compare
