//! Commands in documents and help texts: the command line accepts each of them, and those of the
//! README and of the guides that need neither hardware nor minutes run, page by page.

use crate::common::shell::{self, Line};
use crate::common::{Running, address, command, graph, millstream};
use clap::Command;
use clap::error::ErrorKind;
use millstream_measure::design::MeasurementPlan;
use millstream_testkit::netns::Namespace;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

/// A help text with its command.
fn help_texts(command: &Command, path: &str, found: &mut Vec<(String, String)>) {
    let path = format!("{path} {}", command.get_name());
    let texts = [command.get_after_help(), command.get_after_long_help()];
    found.extend(texts.into_iter().flatten().map(|text| (path.clone(), text.to_string())));
    command.get_subcommands().for_each(|verb| help_texts(verb, &path, found));
}

/// The command line of a program of ours.
pub fn command_of(program: &str) -> Command {
    match program {
        "millstream-lab" => millstream_lab_cli::command(),
        _ => millstream_cli::command(),
    }
}

/// Checks that the command line is accepted, and that of a command after `--`, too. A `part` of
/// one, or an ellipsis, may lack arguments.
fn check(place: &str, words: &[String], part: bool) {
    check_by(command_of(&words[0]), place, words, part);
}

/// Checks arguments of `millstream-lab`, or of `millstream`, which it runs, too.
fn check_arguments(place: &str, args: &[String], part: bool) {
    let words = [&["millstream-lab".to_owned()], args].concat();
    check_by(millstream_lab_cli::whole_command(), place, &words, part);
}

fn check_by(command: Command, place: &str, words: &[String], part: bool) {
    let cut = part || words.iter().any(|word| word == "…");
    let whole = words.iter().filter(|word| *word != "…");
    if let Err(error) = command.try_get_matches_from(whole) {
        let shown = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        let left_out = cut && error.kind() == ErrorKind::MissingRequiredArgument;
        assert!(shown || left_out, "{place}: {}\n{error}", words.join(" "));
    }
    let Some(at) = words.iter().position(|word| word == "--") else { return };
    let inner = &words[at + 1..];
    let is_placeholder = |word: &String| word.chars().all(|c| c.is_uppercase() || c == '…');
    match inner {
        [first, ..] if shell::PROGRAMS.contains(&first.as_str()) => check(place, inner, part),
        // A guest runs this program: its name is left out.
        [first, ..] if is_guest(words) && !is_placeholder(first) => {
            check_arguments(place, inner, part);
        }
        _ => {}
    }
}

fn is_guest(words: &[String]) -> bool {
    words.iter().skip(1).take(2).eq(["lab", "guest"])
}

#[test]
fn every_example_of_a_help_text_is_accepted() {
    let mut texts = Vec::new();
    help_texts(&millstream_cli::command(), "", &mut texts);
    help_texts(&millstream_lab_cli::command(), "", &mut texts);
    let mut count = 0;
    for (path, text) in texts {
        for line in shell::lines(text.lines().filter_map(|line| line.strip_prefix("  "))) {
            let Some(words) = line.millstream() else { continue };
            check(&format!("the help of{path}"), words, false);
            count += 1;
        }
    }
    assert!(count >= 40, "{count} examples are left: are they still read?");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages for users: those at the root, and all below `docs` and `examples`.
fn documents() -> Vec<PathBuf> {
    let mut pages: Vec<_> =
        ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"].map(|name| root().join(name)).into();
    let mut folders = vec![root().join("docs"), root().join("examples")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// Commands in the blocks of code of a document.
fn blocks_of_code(text: &str) -> Vec<Line> {
    let mut fenced = false;
    let mut code = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            code.push(line);
        } else if let Some(line) = line.strip_prefix("    ") {
            code.push(line);
        }
    }
    shell::lines(code.into_iter())
}

/// Commands between backquotes.
fn quoted(text: &str) -> Vec<Line> {
    let quoted = text.lines().filter(|line| !line.starts_with("    "));
    let spans = quoted.flat_map(|line| line.split('`').skip(1).step_by(2));
    // `millstream host shield CPUS [-- COMMAND]` is a synopsis, not a command.
    let spans = spans.filter(|span| {
        span.split(' ').next().is_some_and(|first| shell::PROGRAMS.contains(&first))
            && !span.contains('[')
    });
    shell::lines(spans)
}

/// Whether the words are only the name of a verb, or of a part of one.
fn names_a_command(words: &[String]) -> bool {
    let mut command = command_of(&words[0]);
    for word in &words[1..] {
        let Some(verb) = command.find_subcommand(word) else { return false };
        command = verb.clone();
    }
    true
}

#[test]
fn every_command_of_a_document_is_accepted() {
    let mut count = 0;
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        let place = document.file_name().unwrap().to_string_lossy();
        let quoted = quoted(&text);
        let quoted = quoted.iter().filter_map(Line::millstream);
        let blocks = blocks_of_code(&text);
        let blocks = blocks.iter().filter_map(Line::millstream).map(|words| (words, false));
        // In a sentence a verb may stand for itself, and an option for its effect.
        let quoted = quoted.filter(|words| !names_a_command(words)).map(|words| (words, true));
        for (words, part) in blocks.chain(quoted) {
            check(&place, words, part);
            count += 1;
        }
    }
    assert!(count >= 80, "{count} commands are left: are they still read?");
}

#[test]
fn every_measurement_of_a_plan_and_every_command_of_its_comments_is_accepted() {
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("plans")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let place = path.file_name().unwrap().to_string_lossy();
        let plan = MeasurementPlan::parse(&text).unwrap_or_else(|error| panic!("{place}: {error}"));
        for cell in plan.cells().unwrap() {
            check_arguments(&place, &cell.args, false);
            count += 1;
        }
        let comments = text.lines().filter_map(|line| line.strip_prefix("#   "));
        for words in shell::lines(comments).iter().filter_map(Line::millstream) {
            check(&place, words, false);
        }
    }
    assert!(count >= 15, "{count} measurements are left: are they still read?");
}

/// A message names a block of one graph; the document has its link after it.
#[test]
fn a_message_of_a_guide_fits_its_graph() {
    let guide = std::fs::read_to_string(root().join("docs/guides/tune-a-graph.md")).unwrap();
    let mut count = 0;
    for (_, rest) in
        guide.match_indices("`--send ").map(|(at, found)| guide.split_at(at + found.len()))
    {
        let (message, behind) = rest.split_once('`').unwrap();
        let linked = behind.lines().next().unwrap().split("](").nth(1).unwrap();
        let (_, name) = linked.split_once("graphs/").unwrap();
        let name = name.split(')').next().unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("in.cf32"), [0; 80_000]).unwrap();
        let run =
            ["run", &graph(name), "--set", "in=in.cf32", "--set", "out=out", "--send", message];
        millstream(folder.path(), &run).succeeds();
        count += 1;
    }
    assert!(count > 0, "no message is left: are they still read?");
}

/// A reader who follows a page on a machine without hardware and rights.
struct Reader {
    page: String,
    folder: tempfile::TempDir,
    addr: Ipv4Addr,
    control: String,
    radio: Option<Running>,
    done: Vec<String>,
}

/// Whether a command needs a card, networks, rights, minutes, or a core for itself: it does not run
/// here.
fn is_for_others(words: &[String]) -> bool {
    const HARDWARE: [&str; 8] = [
        "link=",
        "--link",
        "eth1",
        "--config",
        "--dpdk",
        "--user",
        "--second-addr",
        "second_addr=",
    ];
    const LONG: [&str; 7] = ["bench", "demo", "host", "lab", "latency", "tune", "watch"];
    words.iter().skip(1).take(2).any(|verb| LONG.contains(&verb.as_str()))
        || words.iter().any(|word| HARDWARE.iter().any(|part| word.contains(part)) || word == "…")
}

impl Reader {
    fn new(page: &Path) -> Self {
        let page = page.file_name().unwrap().to_string_lossy().into_owned();
        let folder = tempfile::tempdir().unwrap();
        for name in ["graphs", "examples"] {
            let files = root().join(name).canonicalize().unwrap();
            std::os::unix::fs::symlink(files, folder.path().join(name)).unwrap();
        }
        // A free port in place of the page's, which another program may have.
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let control = free.to_string();
        Self { page, folder, addr: address(), control, radio: None, done: Vec::new() }
    }

    /// Adapts a command to this machine: another address, a free port, less time.
    fn here(&self, words: &[String]) -> Vec<String> {
        let addr = self.addr.to_string();
        let mut here: Vec<_> = words[1..]
            .iter()
            .map(|word| word.replace("192.168.10.2", &addr).replace("127.0.0.2", &addr))
            .map(|word| if word == "5555" { self.control.clone() } else { word })
            // Any free port for a dashboard.
            .map(|word| if word == "8080" { "0".to_owned() } else { word })
            // A start at an edge must be reached in time, which a busy machine may miss.
            .filter(|word| word != "--at-pps")
            .collect();
        if here[0] == "serve" {
            here.extend(["--duration", "0.2", "--listen", "127.0.0.1:0"].map(str::to_owned));
        }
        for at in 1..here.len() {
            if here[at - 1] == "--duration" && here[0] == "rx" {
                here[at] = "0.2".to_owned();
            }
        }
        here
    }

    fn follow(&mut self, line: &Line) {
        if let Some([from, to]) = line.copy() {
            let [from, to] = [from, to].map(|name| self.folder.path().join(name));
            std::fs::copy(&from, to.join(from.file_name().unwrap())).unwrap();
        }
        let Some(words) = line.millstream().filter(|words| !is_for_others(words)) else { return };
        let here = self.here(words);
        let here: Vec<&str> = here.iter().map(String::as_str).collect();
        if here.starts_with(&["sim", "radio"]) {
            self.serve(&here[2..]);
        } else {
            if ["find", "rx", "tx"].contains(&here[0]) && self.radio.is_none() {
                let addr = self.addr.to_string();
                self.serve(&["--addr", &addr, "--rx-antenna", "noise"]);
            }
            let mut command = command(self.folder.path(), &here);
            // Samples are no text.
            if here.contains(&"-") {
                command.stdout(std::process::Stdio::null());
            }
            let outcome = Running::start(command).wait();
            let command = words.join(" ");
            assert_eq!(outcome.status, Some(0), "{}: {command}: {outcome:?}", self.page);
        }
        let groups = ["batch", "sim", "graph"];
        let length = 1 + usize::from(groups.contains(&here[0]));
        self.done.push(here[..length].join(" "));
    }

    /// The radio before it ends: there is only one address.
    fn serve(&mut self, options: &[&str]) {
        self.end();
        let args = [&["sim", "radio"][..], options].concat();
        let running = Running::start(command(self.folder.path(), &args));
        running.line("ready: ");
        self.radio = Some(running);
    }

    fn end(&mut self) {
        if let Some(radio) = self.radio.take() {
            radio.signal(libc::SIGTERM);
            radio.wait().succeeds();
        }
    }
}

/// Whether a page is tested: the README, the recipes of the examples, and each guide. Each begins
/// in an empty folder.
fn is_followed(page: &Path) -> bool {
    let folder = page.parent().and_then(Path::file_name);
    let is_listed = folder.is_some_and(|folder| folder == "guides" || folder == "examples");
    is_listed || page == root().join("README.md")
}

#[test]
fn the_readme_and_the_guides_can_be_followed_without_hardware() {
    // Their radios have fixed ports, which other tests may have at that moment.
    match Namespace::alone() {
        Some(alone) => alone.run(follow_all),
        None => follow_all(),
    }
}

fn follow_all() {
    let mut done = Vec::new();
    for page in documents().into_iter().filter(|page| is_followed(page)) {
        let mut reader = Reader::new(&page);
        for line in blocks_of_code(&std::fs::read_to_string(&page).unwrap()) {
            reader.follow(&line);
        }
        reader.end();
        done.append(&mut reader.done);
    }
    let expected = [
        "batch map",
        "batch run",
        "find",
        "graph blocks",
        "graph plan",
        "run",
        "rx",
        "sim fault",
        "sim generate",
        "sim radio",
        "tx",
    ];
    for command in expected {
        assert!(done.iter().any(|done| done == command), "no {command}: {done:?}");
    }
}
