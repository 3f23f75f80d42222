#!/usr/bin/env python3
"""Finds programs that tests, scripts or commands call and that scripts/programs.txt does not declare.

Looked at: Rust (`Command::new("ip")`, `.command("ip")`, `.sh("ip link …")`), Python (lists that begin with a program,
`shutil.which`, `os.execvp`), shell scripts and the recipes of the Makefile (words at the place of a command). Programs
that every Debian has need no row: those of packages that are essential or required.
"""

import ast
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = re.compile(r"[a-z][\w.+-]*")
# The Rust that the README asks for, and what it brings.
RUST = {"cargo", "rustc", "rustdoc", "rustup"}
RUST_CALL = re.compile(r'(?:Command::new|\.command|\.sh)\(\s*(?:&?format!\(\s*)?"([^" {]+)[" ]')
SHELL_WORDS = set("""
    if then else elif fi for while until do done case esac in function select time coproc [[ [ { } !
    . : alias bg break builtin cd command continue declare echo eval exec exit export false fg getopts hash jobs kill let
    local mapfile printf pushd popd pwd read readonly return set shift shopt source test times trap true type typeset
    ulimit umask unset wait""".split())
# Words behind which a command follows, with the number of arguments of their own before it.
WRAPPERS = {"exec": 0, "time": 0, "nohup": 0, "sudo": 0, "env": 0, "nice": 0, "if": 0, "then": 0, "else": 0, "elif": 0,
            "while": 0, "until": 0, "do": 0, "!": 0, "{": 0, "builtin": 0, "timeout": 1, "$": 0}


def declared():
    """Programs of the table."""
    rows = [line.split() for line in (ROOT / "scripts/programs.txt").read_text().splitlines()]
    return {row[0] for row in rows if row and not row[0].startswith("#")}


def base():
    """Programs that each Debian has; None elsewhere."""
    if shutil.which("dpkg-query") is None:
        return None

    def ask(*arguments):
        return subprocess.run(["dpkg-query", *arguments], capture_output=True, text=True, check=True).stdout
    packages = [line.split()[2] for line in ask("-W", "-f=${Essential} ${Priority} ${Package} ${db:Status-Status}\n").splitlines()
                if line.split()[-1] == "installed" and (line.startswith("yes ") or line.split()[1] == "required")]
    files = ask("-L", *packages).splitlines()
    names = {file.rsplit("/", 1)[1] for file in files if re.fullmatch(r"(/usr)?/s?bin/[^/]+", file)}
    for link in pathlib.Path("/etc/alternatives").glob("*"):
        if link.resolve().name in names:
            names.add(link.name)
    return names


def in_rust(path):
    """(line, program) of each call."""
    text = path.read_text()
    for match in RUST_CALL.finditer(text):
        name = match.group(1)
        if NAME.fullmatch(name) and not text[text.rfind("\n", 0, match.start()):match.start()].lstrip().startswith("//"):
            yield text.count("\n", 0, match.start()) + 1, name


def in_python(path):
    """(line, program) of each call, and of each list that begins with an installed program."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            first = node.args[0] if node.args else None
            if called in ("shutil.which", "os.execvp", "which") and isinstance(first, ast.Constant):
                yield node.lineno, first.value
            if called.startswith("subprocess.") and isinstance(first, ast.List) and first.elts \
                    and isinstance(first.elts[0], ast.Constant):
                yield node.lineno, first.elts[0].value
        if isinstance(node, ast.List):
            starred = [index for index, one in enumerate(node.elts) if isinstance(one, ast.Starred)]
            for index in {0, *(index + 1 for index in starred)}:
                one = node.elts[index] if index < len(node.elts) else None
                if len(node.elts) > 1 and isinstance(one, ast.Constant) and isinstance(one.value, str) \
                        and NAME.fullmatch(one.value) and shutil.which(one.value):
                    yield node.lineno, one.value


def in_shell(text):
    """(line, program) of each word at the place of a command."""
    text = re.sub(r"<<-?\s*'?(\w+)'?[^\n]*\n.*?\n\s*\1\n", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)
    text = re.sub(r"(?m)(^|(?<=\s))#.*$", "", text)
    text = re.sub(r"'[^']*'", lambda m: "Q" + "\n" * m.group(0).count("\n"), text)
    text = re.sub(r"\$?\(\([^()]*\)\)|\$\{[^{}]*\}", "Q", text)
    # Of a text in double quotes only what is run within it.
    def runs(match):
        inside = re.findall(r"\$\(([^()]*)\)", match.group(0))
        return "Q" + "".join(f";$( {one} );Q" for one in inside) + "\n" * match.group(0).count("\n")
    text = re.sub(r'"(?:\\.|\$\([^()]*\)|[^"\\])*"', runs, text)
    text = text.replace("\\\n", " ")
    # Also those of the files that it sources.
    sourced = [ROOT / path for path in re.findall(r"(?m)^\s*(?:\.|source)\s+(\S+\.sh)\s*$", text)]
    texts = [text, *(path.read_text() for path in sourced)]
    functions = {name for one in texts for name in re.findall(r"(?m)^\s*(?:function\s+)?(\w+)\s*\(\)", one)}
    # Patterns of `case` are no commands; neither are the items of an array.
    text = re.sub(r"(?m)^\s*(?:\*|[\w.|*?-]+)\)", "", text)
    text = re.sub(r"\bcase\b.*?\bin\b", "", text)
    text = re.sub(r"\w+\+?=\([^()]*\)", "", text)
    line = 1
    for piece in re.split(r"(\n|;|\|\|?|&&?|\$\(|\(|\)|`)", text):
        if piece == "\n":
            line += 1
        words = piece.split()
        while words:
            word = words.pop(0)
            if re.match(r"\w+\+?=|[<>\d]*[<>]", word):
                continue
            if word == "command" and words and words[0] == "-v" and len(words) > 1:
                words = words[1:]
                continue
            if word in WRAPPERS:
                while words and words[0].startswith("-"):
                    words.pop(0)
                del words[:WRAPPERS[word]]
                continue
            if word == "for":
                break
            if NAME.fullmatch(word) and word not in SHELL_WORDS and word not in functions:
                yield line, word
            break


def in_makefile(path):
    """(line, program) of each recipe."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("\t"):
            recipe = re.sub(r"\$\([A-Z]+\)", "cargo", line.strip().lstrip("@-"))
            for _, name in in_shell(recipe.replace("$$", "$") + "\n"):
                yield number, name


def calls():
    """(file, line, program)."""
    for path in sorted(ROOT.glob("crates/**/*.rs")):
        yield from ((path, *call) for call in in_rust(path))
    for folder in ("peers", "scripts", "scripts/guests", "docs/evidence", "fuzz", ".ci"):
        for path in sorted((ROOT / folder).glob("*")):
            if not path.is_file() or path.suffix in (".txt", ".md", ".c", ".cpp", ".supp", ".toml", ".lock"):
                continue
            text = path.read_text()
            if path.suffix == ".py":
                yield from ((path, *call) for call in in_python(path))
            elif text.startswith("#!") and "sh" in text.splitlines()[0] or path.suffix == ".sh":
                yield from ((path, *call) for call in in_shell(text))
    yield from ((ROOT / "Makefile", *call) for call in in_makefile(ROOT / "Makefile"))


def main():
    """Prints every program without a row."""
    always = base()
    if always is None:
        print("programs: not checked: no dpkg here that says what each Debian has")
        return
    helpers = set(re.findall(r"(?m)^(\w+)\(\) *\{", (ROOT / "peers/lib.sh").read_text()))
    known = declared() | always | RUST | helpers
    found = [(path, line, name) for path, line, name in calls() if name not in known]
    for path, line, name in found:
        print(f"{path.relative_to(ROOT)}:{line}: `{name}` is called and has no row in scripts/programs.txt "
              "(program, Debian package, make targets)")
    if found:
        sys.exit(1)
    print("programs: each one that is called is declared")


if __name__ == "__main__":
    main()
