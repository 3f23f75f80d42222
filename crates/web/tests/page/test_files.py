"""The page's files by themselves: these need no browser."""

import gzip
import re

from conftest import ROOT

FOLDER = ROOT / "crates/web/page"
FILES = sorted(path for path in FOLDER.iterdir() if path.is_file())


def test_all_of_it_is_small():
    assert sum(len(gzip.compress(path.read_bytes())) for path in FILES) <= 150_000


def test_foreign_text_is_never_read_as_html():
    for path in FILES:
        text = path.read_text()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser"):
            assert word not in text, f"{path.name}: {word}"


def test_everything_comes_from_the_server():
    names = {path.name for path in FILES}
    for path in FILES:
        text = path.read_text()
        for address in re.findall(r"""(?:src|href)="([^"#]+)"|from "([^"]+)"|url\(([^)]+)\)""", text):
            name = next(part for part in address if part)
            assert name.removeprefix("./") in names, f"{path.name}: {name}"
        # Styles and handlers in the text would need a weaker content security policy.
        assert path.suffix != ".html" or not re.search(r"""\s(style|on\w+)=""", text), path.name


def test_each_element_that_scripts_name_exists():
    html = (FOLDER / "index.html").read_text()
    ids = set(re.findall(r'id="([^"]+)"', html))
    for path in FILES:
        if path.suffix == ".js":
            for name in re.findall(r'byId\("([^"]+)"\)', path.read_text()):
                assert name in ids, f"{path.name}: {name}"
