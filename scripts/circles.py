#!/usr/bin/env python3
"""Circles of modules: in these crates, what a module uses may not use it in turn.

An arrow leads from each module to those that its code names, tests aside: `crate::…`, `super::…`, and names that another module
shows again (`pub use`). A module stands for the files in its folder, so arrows are compared among modules with one parent.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CRATES = ["atsc", "batch", "cli", "flow", "lab-cli", "planner"]
# Circles that are known, by the crate and the modules in them. Shorten this list, do not extend it.
KNOWN = set()

TESTS = re.compile(r"^#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))? )?mod \w+ \{", re.MULTILINE)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
USE = re.compile(r"\b(pub(?:\([^)]*\))? )?use ([^;]+);")
PATH = re.compile(r"(?<![\w:$])(crate|super|self)((?:::\w+)+)")


def modules(crate):
    """Module path (a tuple of names) to its code, without comments, texts and tests."""
    source = ROOT / "crates" / crate / "src"
    found = {}
    for path in sorted(source.rglob("*.rs")):
        parts = list(path.relative_to(source).with_suffix("").parts)
        if parts in (["main"],) or path.stem == "tests" or path.stem.endswith("_tests"):
            continue
        if parts[-1] in ("mod", "lib"):
            parts.pop()
        code = TESTS.split(path.read_text(), maxsplit=1)[0]
        found[tuple(parts)] = STRING.sub('""', COMMENT.sub("", code))
    tests = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))? )?mod (\w+);")
    only_tests = {(*module, name) for module, code in found.items() for name in tests.findall(code)}
    return {module: code for module, code in found.items()
            if not any(module[:len(test)] == test for test in only_tests)}


def flat(tree, prefix=()):
    """Every (path, name) of the tree of a `use`."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    if brace:
        prefix = (*prefix, *(part for part in head.split("::") if part))
        depth, start, rest = 0, 0, rest[:rest.rindex("}")]
        for at, letter in enumerate(rest + ","):
            depth += (letter == "{") - (letter == "}")
            if letter == "," and depth == 0:
                if rest[start:at].strip():
                    yield from flat(rest[start:at], prefix)
                start = at + 1
        return
    path, _, other = (part.strip() for part in tree.partition(" as "))
    path = (*prefix, *path.split("::"))
    yield (path[:-1], path[-2]) if path[-1] == "self" else (path, other or path[-1])


class Crate:
    """The modules of a crate, and what their names stand for."""

    def __init__(self, name):
        self.code = modules(name)
        self.uses = {module: [entry for _, tree in USE.findall(code) for entry in flat(tree)]
                     for module, code in self.code.items()}

    def module_of(self, path, depth=0):
        """The module that defines what the path from the root of the crate names."""
        for length in range(len(path) + 1):
            if path[:length] not in self.code:
                return self.shown(path[:length - 1], path[length - 1:], depth)
        return path

    def shown(self, module, rest, depth):
        """The module behind the first name of `rest` in `module`, which may come from another."""
        for path, name in self.uses.get(module, []):
            if name == rest[0] and depth < 9:
                target = self.absolute(module, path)
                if target is not None:
                    return self.module_of((*target, *rest[1:]), depth + 1)
        return module

    def absolute(self, module, path):
        """The path from the root of the crate; None for one into another crate."""
        if path[0] == "crate":
            return path[1:]
        at = module
        while path and path[0] in ("super", "self"):
            at, path = (at[:-1], path[1:]) if path[0] == "super" else (at, path[1:])
        if at != module or (*module, path[0]) in self.code:
            return (*at, *path)
        return None

    def arrows(self):
        """Module to the modules that its code names."""
        for module, code in self.code.items():
            paths = [path for path, _ in self.uses[module]]
            paths += [(first, *rest.split("::")[1:]) for first, rest in PATH.findall(USE.sub("", code))]
            for path in paths:
                target = self.absolute(module, path)
                if target is not None:
                    yield module, self.module_of(target)


def circles(name):
    """The sets of modules with one parent that use each other round."""
    graph, why = {}, {}
    for module, target in Crate(name).arrows():
        shared = 0
        while shared < min(len(module), len(target)) and module[shared] == target[shared]:
            shared += 1
        if shared < min(len(module), len(target)):
            ends = module[:shared + 1], target[:shared + 1]
            graph.setdefault(ends[0], set()).add(ends[1])
            why.setdefault(ends, set()).add("/".join(module) + " uses " + "::".join(target))

    def reached(start):
        seen, todo = set(), [start]
        while todo:
            for other in graph.get(todo.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return seen

    reach = {module: reached(module) for module in graph}
    done = set()
    for module in sorted(graph):
        if module in reach[module] and module not in done:
            members = sorted(other for other in reach[module] if module in reach.get(other, ()))
            done.update(members)
            inside = {ends: reasons for ends, reasons in sorted(why.items()) if {*ends} <= {*members}}
            yield members, inside


def main():
    """Prints every circle that is not known."""
    problems, seen = [], set()
    for crate in CRATES:
        for members, inside in circles(crate):
            key = f"{crate}: " + " ".join("/".join(member) for member in members)
            seen.add(key)
            if key not in KNOWN:
                problems.append(f"crates/{crate}: these modules use each other round: "
                                + ", ".join("/".join(member) for member in members))
                problems += [f"    {'/'.join(a)} -> {'/'.join(b)}: " + "; ".join(sorted(reasons)[:4])
                             for (a, b), reasons in inside.items()]
    problems += [f"scripts/circles.py: KNOWN has `{key}`, which is no circle any more: remove it" for key in sorted({*KNOWN} - seen)]
    print("\n".join(problems) if problems else "circles: no module is used by what it uses")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
