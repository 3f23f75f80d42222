//! `millstream watch`: where another program loses its samples, while it runs.

mod observer;
mod recording;
mod view;

use crate::account::FlowAccount;
use crate::live::{Live, Picture};
use crate::numbers::{ports, seconds, whole};
use crate::output::{Report, note};
use crate::{interrupt, stdout};
use anyhow::Context;
use observer::Observer;
use recording::{RecordArgs, WatchRecording};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// How long packets may be underway, and counters late, when the program has ended.
const AFTERMATH: Duration = Duration::from_millis(300);

/// The time between two looks for a program that streams.
const LOOK: Duration = Duration::from_millis(200);

/// Says where a program that streams from or to a radio loses samples: in the radio, on the wire,
/// in this host's card, in the kernel, in the socket's buffer, or in the program itself.
///
/// The program may be any: UHD's tools, GNU Radio, srsRAN, SoapySDR, or this one. It is neither
/// changed nor slowed: the command reads the headers of passing packets (CHDR, the protocol of
/// networked USRPs), the counters of each hop, and the scheduler's view of the program's threads.
/// Without --pid and without a command it watches the programs that stream now, and those that
/// begin to.
///
/// It ends when the program ends, or on SIGINT (Ctrl-C), with a summary of the losses.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  sudo millstream watch
  sudo millstream watch --pid 4711
  sudo millstream watch --max-lost 0 -- rx_samples_to_file --rate 10e6 --duration 60
  sudo millstream watch --interface eth1 --duration 10 --json
  sudo millstream watch --record radio.pcapng; millstream inspect radio.pcapng")]
pub struct Args {
    /// Watch the program with this process number, in its network namespace.
    #[arg(long, value_name = "PID", value_parser = whole::<u32>(1..))]
    pid: Option<u32>,

    /// UDP ports of the radio, if it is not 49153.
    #[arg(long, value_name = "PORT[-PORT],…", value_delimiter = ',', value_parser = ports)]
    port: Vec<RangeInclusive<u16>>,

    /// Watch this interface; by default all. Repeat the option for more interfaces.
    #[arg(long, value_name = "INTERFACE")]
    interface: Vec<String>,

    /// How long to watch; by default until the program ends. One that it started is then asked to
    /// end (SIGINT).
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    duration: Option<f64>,

    /// Exit with status 1 if more is lost: each lost packet, overrun, underflow, late packet and
    /// late command counts as one.
    #[arg(long, value_name = "N", value_parser = whole::<u64>(..))]
    max_lost: Option<u64>,

    #[command(flatten)]
    record: RecordArgs,

    /// A program to start and to watch, with its arguments.
    #[arg(last = true, value_name = "COMMAND", conflicts_with = "pid")]
    command: Vec<OsString>,
}

crate::results! {
    also [crate::account::results, recording::results],

    /// What was seen of the streams of other programs.
    struct WatchedStreams {
        /// How long it was watched.
        seconds: f64,
        /// The programs: those whose sockets the streams use.
        programs: Vec<WatchedProgram>,
        /// What could not be seen, and which right or command would help.
        not_seen: Vec<String>,
        /// Lost packets, overruns, underflows, late packets and late commands, each one.
        lost: u64,
        /// What --record has written.
        #[serde(skip_serializing_if = "Option::is_none")]
        recording: Option<WatchRecording>,
        /// The streams and their losses.
        #[serde(flatten)]
        account: FlowAccount,
    }

    /// A program.
    struct WatchedProgram {
        /// Its process number.
        pid: u32,
        /// Its name, up to 15 bytes.
        name: String,
        /// The exit status of a program that the command started; null if a signal ended it, and of
        /// other programs.
        status: Option<i32>,
    }
}

/// Succeeds unless more than `--max-lost` was lost.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let begins = !args.command.is_empty();
    let radio = millstream_wire::chdr::UDP_PORT;
    let ports: Vec<_> = args.port.iter().cloned().flatten().chain([radio]).collect();
    let is_named = begins || args.pid.is_some() || !args.interface.is_empty();
    // Where the program is; `None` until one streams.
    let place = if is_named { Some(args.pid) } else { observer::streams_at() };
    let mut is_found = place.is_some();
    let open = |pid, records: bool| {
        let recording = if records { args.record.begin(pid)? } else { None };
        Observer::open(pid, &args.interface, &ports, recording)
    };
    let mut observer = open(place.flatten(), is_found)?;
    let mut next_look = Instant::now();
    interrupt::install();
    let mut started = begins.then(|| Started::new(&args.command)).transpose()?;
    let begun = Instant::now();
    let (mut picture, mut line) = (Picture::default(), Live::new());
    // The program's own lines would be drawn over.
    let draws = !begins && std::io::stderr().is_terminal();
    let mut ended = None;
    loop {
        for line in observer.step()? {
            if !draws {
                note(line);
            }
        }
        let now = Instant::now();
        let is_over = interrupt::asked()
            || args.duration.is_some_and(|length| (now - begun).as_secs_f64() >= length)
            || match (&mut started, args.pid) {
                (Some(started), _) => started.has_ended()?,
                (None, Some(pid)) => !observer::is_alive(pid),
                (None, None) => observer.programs_have_ended(),
            };
        if is_over && *ended.get_or_insert(now) + AFTERMATH <= now {
            break;
        }
        if !is_found && now >= next_look {
            next_look = now + LOOK;
            // A program has its sockets before its samples come. Where none has, its packets may
            // come here past the sockets.
            let here = || (!observer.account.flows().is_empty()).then_some(None);
            if let Some(pid) = observer::streams_at().or_else(here) {
                is_found = true;
                observer = open(pid, true)?;
            }
        }
        if observer.is_time_for_picture(now) && draws {
            picture.draw(&view::lines(&observer, crate::live::size()));
        } else if !begins && !draws {
            line.show(now, || view::line(&observer));
        }
    }
    line.end();
    let recording = observer.finish()?;
    let seconds = begun.elapsed().as_secs_f64();
    let mut programs: Vec<_> =
        started.as_mut().map(Started::end).transpose()?.into_iter().collect();
    for program in &observer.programs {
        let (pid, name) = (program.pid, program.name.clone());
        match programs.iter_mut().find(|known| known.pid == pid) {
            Some(known) => known.name = name,
            None => programs.push(WatchedProgram { pid, name, status: None }),
        }
    }
    let results = WatchedStreams {
        seconds,
        programs,
        not_seen: observer.lacks(),
        lost: observer.lost,
        recording,
        account: observer.told(),
    };
    let failure = args.max_lost.and_then(|most| match results.lost {
        _ if results.account.flows.is_empty() => {
            Some("no stream passed, so --max-lost says nothing".into())
        }
        lost if lost > most => Some(format!("{lost} losses, and --max-lost {most} allows no more")),
        _ => None,
    });
    Ok(Report::of(text(&results), &results).failing(failure))
}

fn text(watched: &WatchedStreams) -> String {
    let WatchedStreams { seconds, programs, not_seen, account, .. } = watched;
    let mut text = format!("watched      {seconds:.1} s, {}\n", account.frame_words());
    for program in programs {
        text += &format!("program      {} ({})\n", program.name, program.pid);
    }
    for sentence in not_seen {
        text += &format!("not seen     {sentence}\n");
    }
    text += &watched.recording.as_ref().map(WatchRecording::line).unwrap_or_default();
    if account.flows.is_empty() {
        text += "flows        none: no CHDR data packet passed. Is the radio on this network \
                 namespace and port (--pid, --port)?\n";
    }
    text + &account.text()
}

/// A program that this command has started.
struct Started {
    child: Child,
    name: String,
    told: bool,
}

impl Started {
    fn new(command: &[OsString]) -> anyhow::Result<Self> {
        let (program, arguments) = command.split_first().context("a command is needed")?;
        let name = Path::new(program).display().to_string();
        let mut command = Command::new(program);
        if stdout::is_json() {
            // Standard output belongs to the document.
            command.stdout(rustix::io::dup(std::io::stderr())?);
        }
        let child = command.args(arguments).spawn();
        let child = child.with_context(|| format!("cannot start {name}"))?;
        Ok(Self { child, name, told: false })
    }

    /// Whether it has ended; a request to end is passed on to it.
    fn has_ended(&mut self) -> anyhow::Result<bool> {
        // The terminal's Ctrl-C goes to all of its processes by itself.
        let is_told = std::io::stdin().is_terminal();
        if !is_told {
            interrupt::forward(&self.child, &mut self.told);
        }
        Ok(self.child.try_wait()?.is_some())
    }

    /// Waits for its end; returns it with its exit status. If it has been watched for long enough,
    /// it is asked to end, as by Ctrl-C.
    fn end(&mut self) -> anyhow::Result<WatchedProgram> {
        if !interrupt::asked() && !self.has_ended()? {
            let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        }
        while !self.has_ended()? {
            std::thread::sleep(Duration::from_millis(20));
        }
        let status = self.child.wait()?.code();
        Ok(WatchedProgram { pid: self.child.id(), name: self.name.clone(), status })
    }
}
