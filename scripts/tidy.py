#!/usr/bin/env python3
"""Style that a program can check: crates use only those that ARCHITECTURE.md allows, files and lines stay short, documents
have short paragraphs and links that lead somewhere, comments name what exists, and ordered memory accesses stay where
they are explored.

The table of crates in ARCHITECTURE.md is the rule; this script holds no second copy of it.
"""

import pathlib
import re
import statistics
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE_LINES_MAX = 1000
# Most files are short; a long one is one idea that would only be cut.
FILE_LINES_MEDIAN = 160
LINE_CHARS_MAX = 100
README_LINES_MAX = 120
PARAGRAPH_LINES_MAX = 6
DOCUMENT_CHARS_MAX = 120

# A fence, or an access that is ordered more strictly than `Relaxed`.
ORDERED = re.compile(r"\bfence\(|\bOrdering::(?:\{[^}]*\b)?(?:Acquire|Release|AcqRel|SeqCst)\b")
# Where there are such beside `ring` and tests: files and folders, and why.
ORDERED_ELSEWHERE = {
    "crates/atsc/src/monitor.rs": "a claim that one holder at a time has",
    "crates/emulator/src/faults": "flags: who sees that a fault struck sees what it did",
    "crates/flow/src/observe/latency/meter.rs": "marks, each with one writer, read upstream first so that nothing is missed",
    "crates/flow/src/runtime/control.rs": "which thread has a block, and who wakes it; explored by runtime/sim.rs",
    "crates/flow/src/runtime/sim.rs": "tests only: the turns of the simulation",
    "crates/flow/src/runtime/sim": "tests only: the same",
    "crates/host/src/bpf/records.rs": "words that the kernel shares: how far programs wrote",
    "crates/lab/src/irq": "words that a device, or another process in its place, shares",
    "crates/link/src/packet": "words that the kernel's packet rings share",
    "crates/link/src/xdp/ring.rs": "the kernel's wish to be called, beside the cursors of ring::shared",
    "crates/radio/src/control/events.rs": "counts, each stored behind what it counts",
    "crates/radio/src/lease.rs": "a claim that one holder at a time has",
}

# Where a word is compared that is a link's name, too, and what it is there.
LINK_NAMES_ELSEWHERE = {
    "crates/emulator/src/rpc/description.rs": "a transport, as MPM names it",
}

# Names of public types that stand for more than one thing, and why they may.
SAME_NAME = {
    "Args": "the arguments of a command, in each command's module",
    "Error": "the error of a crate or module, as in the standard library",
    "Fir": "a filter, and the block that runs it",
    "Header": "the header of a protocol, in the protocol's module of `wire`",
    "Op": "the operation of a protocol, in the protocol's module of `wire`",
    "Packet": "the packet of a protocol, in the protocol's module of `wire`",
    "Part": "a structure of the C library, and our form of it",
    "Port": "a structure of the C library, and our form of it; a UDP port of any link",
    "Frame": "a view of a frame's bytes, and the buffer that a link lends for one",
    "Radio": "a radio that a program opens, and the emulated one that it starts",
    "Receiver": "the receiving end of a queue, and the television receiver",
    "Sample": "one type, which two crates show",
}

# Names in comments that are not of this repository's code, and whose they are.
OUTSIDE_NAMES = {
    "BytesMap": "a message of MPM's gRPC",
    "InAddrErrors": "a counter of /proc/net/snmp",
    "InDiscards": "a counter of /proc/net/snmp",
    "InHdrErrors": "a counter of /proc/net/snmp",
    "Length": "a field of CHDR packets",
    "ReasmFails": "a counter of /proc/net/snmp",
    "Repr": "the end of the names of the structs of `wire` that are parsed and emitted",
    "SigCgt": "proc(5)",
    "SigIgn": "proc(5)",
    "StringMap": "a message of MPM's gRPC",
}


def allowed():
    """Crate to whether it may use another, from the table."""
    crates = {}
    for line in (ROOT / "ARCHITECTURE.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 5 and re.fullmatch(r"`[\w-]+`", cells[1]):
            named, every = set(re.findall(r"`([\w-]+)`", cells[3])), cells[3].startswith("all")
            crates[cells[1].strip("`")] = lambda other, named=named, every=every: (other in named) != every
    return crates


def crate_problems():
    """Dependencies that the table does not allow."""
    rules = allowed()
    for manifest in sorted(ROOT.glob("crates/*/Cargo.toml")):
        crate = manifest.parent.name
        if crate not in rules:
            yield f"{manifest.relative_to(ROOT)}: the crate `{crate}` is missing in the table of ARCHITECTURE.md: add a row"
            continue
        dependencies = tomllib.loads(manifest.read_text()).get("dependencies", {})
        used = {name.removeprefix("millstream-") for name in dependencies if name.startswith("millstream-")}
        for other in sorted(other for other in used if not rules[crate](other)):
            yield f"{manifest.relative_to(ROOT)}: the crate `{crate}` may not use `{other}`: its row in ARCHITECTURE.md does not list it"


def sources():
    """All files of Rust."""
    folders = ("crates", "capi", "examples", "fuzz/src", "python/src", "seify/src", "seify/tests", "seify/flowgraphs")
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.rs"))]


def file_problems():
    """Files and lines that are too long, and files that are long as a rule."""
    lengths = []
    for path in sources():
        lines = path.read_text().splitlines()
        name = path.relative_to(ROOT)
        lengths.append(len(lines))
        if len(lines) > FILE_LINES_MAX:
            yield f"{name}: {len(lines)} lines, at most {FILE_LINES_MAX}: split it, one idea a file"
        for number, line in enumerate(lines, 1):
            if len(line) > LINE_CHARS_MAX:
                yield f"{name}:{number}: {len(line)} characters, at most {LINE_CHARS_MAX}"
    if statistics.median(lengths) > FILE_LINES_MEDIAN:
        yield f"half of the Rust files are longer than {statistics.median(lengths)} lines, at most {FILE_LINES_MEDIAN}"


def documents():
    """Pages that people read."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").glob("*.md"))]


def anchors(page):
    """What links to headings of a page may name."""
    headings = re.findall(r"^#+ (.*)", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def document_problems():
    """Documents with long lines or paragraphs, and links without a target."""
    for page in documents():
        name = page.relative_to(ROOT)
        lines = page.read_text().splitlines()
        if name.name == "README.md" and len(name.parts) == 1 and len(lines) > README_LINES_MAX:
            yield f"{name}: {len(lines)} lines, at most {README_LINES_MAX}: details belong to docs/"
        length = 0
        for number, line in enumerate(lines, 1):
            if len(line) > DOCUMENT_CHARS_MAX:
                yield f"{name}:{number}: {len(line)} characters, at most {DOCUMENT_CHARS_MAX}"
            is_prose = line.strip() and not line.startswith(("|", "#", "    ", "!["))
            begins = re.match(r" {0,3}([-*]|\d+\.) ", line)
            length = (1 if begins else length + 1) if is_prose else 0
            if length == PARAGRAPH_LINES_MAX + 1:
                yield f"{name}:{number}: a paragraph of more than {PARAGRAPH_LINES_MAX} lines"
            for link in re.findall(r"\]\(([^)\s]+)\)", line):
                path, _, anchor = link.partition("#")
                target = page.parent / path if path else page
                if "://" in link:
                    continue
                if not target.exists():
                    yield f"{name}:{number}: the link {link} has no target"
                elif anchor and anchor not in anchors(target):
                    yield f"{name}:{number}: {path or name} has no heading #{anchor}"


def is_test(path):
    """Whether a file holds tests only."""
    return "tests" in path.parts or path.stem == "tests" or path.stem.endswith("_tests")


def order_problems():
    """Lock-free protocols outside `ring`, where `loom` does not see them."""
    unused = set(ORDERED_ELSEWHERE)
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        name = path.relative_to(ROOT)
        if name.parts[1] == "ring" or is_test(name):
            continue
        code = without_tests(path)
        places = {str(name), *map(str, name.parents)} & set(ORDERED_ELSEWHERE)
        for number, line in enumerate(code.splitlines(), 1):
            if ORDERED.search(line):
                unused -= places
                if not places:
                    yield (
                        f"{name}:{number}: an access ordered more strictly than `Relaxed`: use a type of `ring`, or make "
                        f"one there with a loom model (a file for which that makes no sense: ORDERED_ELSEWHERE in scripts/tidy.py)"
                    )
    for place in sorted(unused):
        yield f"scripts/tidy.py: ORDERED_ELSEWHERE has `{place}`, which has no such access any more: remove it"


def without_tests(path):
    """A file's code, without the tests at its end."""
    return re.split(r"^#\[cfg\(test\)\]\n(?:pub\(crate\) )?mod \w+ \{", path.read_text(), maxsplit=1, flags=re.MULTILINE)[0]


def link_problems():
    """Decisions by the name of a link, which its entry in crates/link should make."""
    source = ROOT / "crates/link/src"
    entries = {path: re.search(r'pub static LINK: LinkEntry = LinkEntry \{\s*name: "(\w+)"', path.read_text())
               for path in source.rglob("*.rs")}
    homes = {path.parent if path.name == "mod.rs" else path: found[1] for path, found in entries.items() if found}
    registered = len(re.findall(r"^    &\w+::LINK,$", (source / "lib.rs").read_text(), flags=re.MULTILINE))
    if len(homes) != registered:
        yield f"crates/link/src: {len(homes)} links have an entry, and lib.rs lists {registered}"
    name = "(?:" + "|".join(sorted(homes.values())) + ")"
    # `"xdp" =>`, `"xdp" |`, `| "xdp"`, `== "xdp"`, `matches!(…, "xdp"`, `starts_with("xdp:…`
    decides = re.compile(
        rf'"{name}"\)?\s*(?:=>|\|(?!\|))|(?:\||==|!=|matches!\(.*,)\s*"{name}"|(?:starts_with|strip_prefix)\("{name}[":,]'
    )
    unused = set(LINK_NAMES_ELSEWHERE)
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        if is_test(path) or any(home == path or home in path.parents for home in homes):
            continue
        for number, line in enumerate(without_tests(path).splitlines(), 1):
            if decides.search(line) and not line.lstrip().startswith("//"):
                place = str(path.relative_to(ROOT))
                unused.discard(place)
                if place not in LINK_NAMES_ELSEWHERE:
                    yield f"{place}:{number}: decides by the name of a link: use its entry (crates/link/src/entry.rs)"
    for place in sorted(unused):
        yield f"scripts/tidy.py: LINK_NAMES_ELSEWHERE has `{place}`, which compares no such word any more: remove it"


def type_problems():
    """Names of public types that stand for more than one thing."""
    homes = {}
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        if is_test(path.relative_to(ROOT)):
            continue
        for name in re.findall(r"^pub (?:unsafe )?(?:struct|enum|union|trait|type) (\w+)", without_tests(path), flags=re.MULTILINE):
            homes.setdefault(name, []).append(str(path.relative_to(ROOT)))
    for name, places in sorted(homes.items()):
        if len(places) > 1 and name not in SAME_NAME:
            yield f"{places[0]}: the type `{name}` is also in {', '.join(places[1:])}: a name stands for one thing"
    for name in sorted(set(SAME_NAME) - {name for name, places in homes.items() if len(places) > 1}):
        yield f"scripts/tidy.py: SAME_NAME has `{name}`, which stands for one thing only: remove it"


def json_problems():
    """Documents that are put together by hand: a struct with `Serialize` names its fields once, with their types."""
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        name = path.relative_to(ROOT)
        if is_test(name):
            continue
        for number, line in enumerate(without_tests(path).splitlines(), 1):
            if re.search(r"\bjson!", line) and not line.lstrip().startswith("//"):
                yield f"{name}:{number}: json! outside tests: derive `Serialize` (verbs: `results!`, crates/cli/src/results.rs)"


def crates_within(crate, uses, seen):
    """A crate and the crates of this repository that it uses, directly or not."""
    if crate in uses and crate not in seen:
        seen.add(crate)
        for other in uses[crate]:
            crates_within(other, uses, seen)
    return seen


def name_problems():
    """Names in comments that stand for nothing: `Name` and `a::name` are in the code of the crate, or of one that it uses."""
    files, words, uses = {}, {}, {}
    for path in sources():
        name = path.relative_to(ROOT)
        crate = pathlib.Path(*name.parts[:2]) if name.parts[0] == "crates" else pathlib.Path(name.parts[0])
        lines = path.read_text().splitlines()
        files.setdefault(crate.name, []).append((name, lines))
        code = "\n".join(re.sub(r"(?:^|\s)//.*", "", line) for line in lines)
        words.setdefault(crate.name, set()).update(re.findall(r"[A-Za-z_]\w*", code))
        manifest = ROOT / crate / "Cargo.toml"
        if crate.name not in uses:
            tables = tomllib.loads(manifest.read_text()) if manifest.exists() else {}
            tables = [tables, *tables.get("target", {}).values()]
            uses[crate.name] = {used.removeprefix("millstream-") for table in tables
                                for kind in ("dependencies", "dev-dependencies", "build-dependencies")
                                for used in table.get(kind, {})}
    unused = set(OUTSIDE_NAMES)
    for crate, its_files in files.items():
        known = set().union(*(words[other] for other in crates_within(crate, uses, set())))
        for name, lines in its_files:
            for number, line in enumerate(lines, 1):
                comment = re.search(r"//(.*)", line)
                for named in re.findall(r"`([A-Za-z_][\w:]*(?:<[\w, :<>']*>)?!?(?:\(\))?)`", comment[1] if comment else ""):
                    # Names of types, and paths; constants in capitals are the kernel's or C's.
                    if "::" not in named and not re.match(r"[A-Z]\w*[a-z]", named):
                        continue
                    unknown = set(re.findall(r"[A-Za-z_]\w*", named)) - known
                    unused -= unknown
                    if unknown - set(OUTSIDE_NAMES):
                        yield (f"{name}:{number}: `{named}` is in no code of this crate, or of those that it uses: correct the "
                               f"name (one of another program or standard: OUTSIDE_NAMES in scripts/tidy.py)")
    for name in sorted(unused):
        yield f"scripts/tidy.py: OUTSIDE_NAMES has `{name}`, which no comment names any more: remove it"


def target_problems():
    """Scripts that look for what cargo has built in a folder that they name themselves."""
    # Not the folder that a script gives to cargo, and not `$target`.
    named = re.compile(r"(?<!\$)(?<!folder / \")\btarget/(?:debug|release)\b")
    files = [ROOT / "Makefile", *(path for folder in (".ci", "scripts", "peers", "soapy", "fuzz")
                                  for path in sorted((ROOT / folder).glob("*")))]
    for path in files:
        if not path.is_file() or path.suffix in (".md", ".txt", ".lock") or path == pathlib.Path(__file__).resolve():
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if named.search(re.sub(r"^\s*#.*|## .*", "", line)):
                yield f"{path.relative_to(ROOT)}:{number}: names cargo's target folder: ask scripts/target.sh (peers: `built`)"


def main():
    """Prints every problem."""
    problems = [*crate_problems(), *file_problems(), *document_problems(), *order_problems(),
                *link_problems(), *type_problems(), *json_problems(), *name_problems(), *target_problems()]
    print("\n".join(problems) if problems else
          "tidy: crates, files, lines, documents, ordered accesses, links, type names, documents of JSON, names in comments and "
          "target folders follow the rules")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
