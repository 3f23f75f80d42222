#!/usr/bin/env python3
"""Style that a program can check: rooms use only what ARCHITECTURE.md lets them, files and lines stay short.

The table of rooms in ARCHITECTURE.md is the rule; this script holds no second copy of it.
"""

import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE_LINES_MAX = 400
LINE_CHARS_MAX = 100


def allowed():
    """Room to the rooms it may use, from the table; None for all."""
    rooms = {}
    for line in (ROOT / "ARCHITECTURE.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and re.fullmatch(r"`\w+`", cells[1]):
            uses = cells[3]
            rooms[cells[1].strip("`")] = None if uses == "all" else set(re.findall(r"`(\w+)`", uses))
    return rooms


def room_problems():
    """Dependencies that cross a wall."""
    rules = allowed()
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        room = manifest.parent.name
        if room not in rules:
            yield f"{manifest.relative_to(ROOT)}: the room `{room}` is not in the table of ARCHITECTURE.md"
            continue
        dependencies = tomllib.loads(manifest.read_text()).get("dependencies", {})
        used = {name.removeprefix("millstream-") for name in dependencies if name.startswith("millstream-")}
        may_use = used if rules[room] is None else rules[room]
        for other in sorted(used - may_use):
            yield f"{manifest.relative_to(ROOT)}: the room `{room}` may not use `{other}` (ARCHITECTURE.md)"


def file_problems():
    """Files and lines that are too long."""
    for folder in ("crates", "fuzz/src"):
        for path in sorted((ROOT / folder).rglob("*.rs")):
            lines = path.read_text().splitlines()
            name = path.relative_to(ROOT)
            if len(lines) > FILE_LINES_MAX:
                yield f"{name}: {len(lines)} lines, at most {FILE_LINES_MAX}: one idea a file"
            for number, line in enumerate(lines, 1):
                if len(line) > LINE_CHARS_MAX:
                    yield f"{name}:{number}: {len(line)} characters, at most {LINE_CHARS_MAX}"


def main():
    """Prints every problem."""
    problems = [*room_problems(), *file_problems()]
    print("\n".join(problems) if problems else "tidy: rooms, files and lines are in order")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
