#!/usr/bin/env python3
"""Shows the crates of the workspace: lines and dependencies as a table, and a picture of who uses whom.

    scripts/crates.py [PICTURE.svg]     default: docs/pictures/crates.svg

Lines are those of Rust files, with comments and blank lines; `tests` are those in tests/, benches/ and
examples/, in files called *tests.rs, and in modules `#[cfg(test)]`. `with` counts the source lines of a crate
and of all crates that it uses. The picture leaves out dependencies that others imply.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PREFIX = "millstream-"


def short(name):
    return name.removeprefix(PREFIX)


def only_in_tests(folder):
    """Files (without .rs) and folders of the modules that are declared `#[cfg(test)] mod name;`."""
    for file in folder.rglob("*.rs"):
        below = file.parent if file.name in ("lib.rs", "main.rs", "mod.rs") else file.with_suffix("")
        for name in re.findall(r"#\[cfg\(test\)\]\n\s*(?:pub(?:\(\w+\))? )?mod (\w+);", file.read_text()):
            yield below / name


def count(folder):
    """Lines of source and of tests in the Rust files below a folder."""
    source = tests = 0
    hidden = set(only_in_tests(folder))
    for file in folder.rglob("*.rs"):
        parts = file.relative_to(folder).parts
        lines = file.read_text().splitlines()
        apart = {"tests", "benches", "examples"} & set(parts[:-1]) or file.name.endswith("tests.rs")
        apart = apart or hidden & {file.with_suffix(""), *file.parents}
        first = len(lines)
        if not apart:
            # A module of tests is the last thing in its file (scripts/tidy.py), and inside braces.
            marks = [n for n, line in enumerate(lines) if line.startswith(("#[cfg(test)]", "#[cfg(all(test,"))]
            inline = [n for n in marks if n + 1 < len(lines) and lines[n + 1].endswith("{")]
            first = inline[0] if inline else first
        source += 0 if apart else first
        tests += len(lines) if apart else len(lines) - first
    return source, tests


def main():
    picture = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs/pictures/crates.svg")
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    found = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    ours = {package["name"] for package in found["packages"]}
    uses, lines = {}, {}
    for package in found["packages"]:
        name = short(package["name"])
        normal = [of["name"] for of in package["dependencies"] if of["kind"] is None]
        uses[name] = {short(of) for of in normal if of in ours and of != package["name"]}
        lines[name] = count(pathlib.Path(package["manifest_path"]).parent)

    def closure(name):
        return {name}.union(*(closure(of) for of in uses[name]))

    order = sorted(uses, key=lambda name: (len(closure(name)), name))
    print(f"{'crate':<10} {'source':>7} {'tests':>7} {'with':>7}  uses")
    for name in order:
        whole = sum(lines[of][0] for of in closure(name))
        source, tests = lines[name]
        print(f"{name:<10} {source:>7} {tests:>7} {whole:>7}  {' '.join(sorted(uses[name])) or '-'}")
    totals = [sum(one[part] for one in lines.values()) for part in (0, 1)]
    print(f"{'all':<10} {totals[0]:>7} {totals[1]:>7}")

    edges = [(name, of) for name in order for of in sorted(uses[name])]
    direct = [(name, of) for name, of in edges if not any(of in closure(via) for via in uses[name] - {of})]
    text = ["digraph crates {", "rankdir=BT; nodesep=0.25; ranksep=0.45; bgcolor=white;"]
    text += ['node [shape=box style="rounded,filled" fillcolor="#eef4fb" color="#3b6ea5"];']
    text += ['node [fontname="Helvetica" fontsize=12];']
    text += ['edge [color="#5a6b7b" arrowsize=0.6];']
    text += [f'"{name}" [label="{name}\\n{lines[name][0]:,} lines"];'.replace(",", " ", 1) for name in order]
    text += [f'"{name}" -> "{of}";' for name, of in direct]
    text += ["}"]
    dot = "\n".join(text)
    try:
        drawn = subprocess.run(["dot", "-Tsvg"], input=dot, text=True, check=True, stdout=subprocess.PIPE)
    except FileNotFoundError:
        sys.exit("crates: no picture: `dot` is missing; install the Debian package graphviz")
    picture.write_text(drawn.stdout)
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
