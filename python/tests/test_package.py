"""The package itself: examples of its documents run, its types are checked, its names are complete."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import millstream

PYTHON = Path(__file__).parents[1]
GUIDE = PYTHON.parent / "docs/guides/python.md"


def examples(page):
    """The Python examples of a page: blocks between fences, or indented ones that import something."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.S)


@pytest.mark.parametrize("page", [PYTHON / "README.md", GUIDE], ids=lambda page: page.name)
def test_the_examples_of_a_document_run(page, tmp_path):
    """One after the other in one session, as a reader types them, in an empty folder."""
    found = examples(page)
    assert len(found) >= 3
    session = "import matplotlib\nmatplotlib.use('Agg')\n" if "matplotlib" in "".join(found) else ""
    if session:
        pytest.importorskip("matplotlib")
    session += "import millstream\n" + "\n".join(found)
    done = subprocess.run(
        [sys.executable, "-c", session], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env=os.environ | {"MILLSTREAM_RADIO": "radio=emulated"},
    )
    assert done.returncode == 0, done.stderr
    assert "delivered" in done.stdout


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("record.py", r"^\d+ samples from number \d+, mean 0\.3"),
        ("scan.py", r"1000\.000 MHz: -1\d\.\d dB"),
        # On a busy machine a burst may be late, but each sample that came is sent.
        ("repeat.py", r"^(\d{5,}) samples received, \1 sent back\n\d+ bursts ended in time, \d+ were late"),
    ],
)
def test_the_example_programs_run(name, expected, tmp_path):
    program = PYTHON.parent / "examples/python" / name
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert re.search(expected, done.stdout), done.stdout


def test_types_are_right():
    pytest.importorskip("mypy")
    package = Path(millstream.__file__).parent
    for command in (
        ["mypy", "--strict", str(package)],
        ["mypy.stubtest", "millstream", "--concise"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command], capture_output=True, text=True, timeout=300,
            cwd=package.parent, env=os.environ | {"MYPYPATH": str(package.parent)},
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert (package / "py.typed").exists()


def test_every_public_name_is_documented():
    for name in millstream.__all__:
        found = getattr(millstream, name)
        if isinstance(found, type):
            assert found.__doc__, name
            for method, value in vars(found).items():
                if not method.startswith("_") and callable(value):
                    assert value.__doc__, f"{name}.{method}"


def test_the_version_is_that_of_the_workspace():
    manifest = (PYTHON.parent / "Cargo.toml").read_text(encoding="utf-8")
    assert f'version = "{millstream.__version__}"' in manifest
