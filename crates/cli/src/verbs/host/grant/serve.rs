//! The broker as a service, or for one command.

use super::terminal::CommandTerminal;
use super::{Account, Args, DirectSteps, Family, Report, Rights, confine};
use crate::output::Join;
use crate::{interrupt, output};
use anyhow::{Context, anyhow};
use millstream_link::rights::BROKER_VARIABLE;
use millstream_link::rights::policy::{GrantPolicy, PeerIdentity};
use millstream_link::rights::server::{BrokerEvent, Server};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

crate::results! {
    /// What a broker did.
    struct GrantedLinks {
        /// Links granted.
        granted: u64,
        /// Requests refused.
        refused: u64,
    }
}

/// The longest delay until the end of a command, or a signal, is seen.
const TURN: Duration = Duration::from_millis(100);

/// Begins the privileged steps for a client.
fn begin(
    family: &'static Family,
    interface: &str,
    peer: &PeerIdentity,
) -> io::Result<Box<dyn Rights>> {
    let client = rustix::process::Pid::from_raw(peer.pid);
    Ok(Box::new(DirectSteps::new(family, interface, client)?))
}

fn listen(path: &Path, policy: GrantPolicy) -> anyhow::Result<Server> {
    Server::listen(path, policy, begin).map_err(|error| match error.kind() {
        io::ErrorKind::AddrInUse => {
            anyhow!(
                "another broker already listens at {}: give --socket for another path",
                path.display()
            )
        }
        _ => anyhow!("cannot listen at {}: {error}", path.display()),
    })
}

/// Serves until the user asks it to end.
pub fn until_interrupted(
    args: &Args,
    policy: GrantPolicy,
    accounts: &[Account],
) -> anyhow::Result<Report> {
    let names = accounts.iter().map(|account| account.name.clone());
    let groups = args.group.iter().map(|group| format!("group {group}"));
    let mut server = listen(&args.socket, policy)?;
    interrupt::install();
    output::note(format_args!(
        "granting {} on {} to {} at {}; interrupt to end",
        args.link.iter().map(|family| family.link).join(", "),
        args.interface.join(", "),
        names.chain(groups).join(", "),
        args.socket.display()
    ));
    let (mut opened, mut refused) = (0_u64, 0_u64);
    while !interrupt::asked() {
        server.step(TURN, &mut |event| {
            opened += u64::from(matches!(event, BrokerEvent::Opened { .. }));
            refused += u64::from(matches!(event, BrokerEvent::Refused { .. }));
            output::note(event);
        })?;
    }
    let text = format!("links granted {opened}, requests refused {refused}\n");
    Ok(Report::of(text, &GrantedLinks { granted: opened, refused }))
}

/// Runs a command without rights and serves only it, until it ends; then this process ends with its
/// status.
pub fn command(
    command: &[OsString],
    policy: GrantPolicy,
    account: &Account,
) -> anyhow::Result<Report> {
    let path = PathBuf::from(format!("/run/millstream/grant-{}.sock", std::process::id()));
    let mut server = listen(&path, policy)?;
    interrupt::install();
    let (mut child, terminal) = start(command, &path, account)?;
    let mut told_to_end = false;
    let status = loop {
        server.step(TURN, &mut |event| {
            output::note(event);
            terminal.iter().for_each(CommandTerminal::begin_line);
        })?;
        if let Some(status) = child.try_wait()? {
            break status;
        }
        terminal.iter().for_each(CommandTerminal::follow_size);
        interrupt::forward(&child, &mut told_to_end);
    };
    drop((server, terminal));
    std::process::exit(output::status_of(status).into());
}

fn start(
    command: &[OsString],
    broker: &Path,
    account: &Account,
) -> anyhow::Result<(Child, Option<CommandTerminal>)> {
    let mut prepared = Command::new(&command[0]);
    prepared.args(&command[1..]);
    let terminal = CommandTerminal::between(&mut prepared, account.uid);
    let mut terminal = terminal.context("cannot make a terminal for the command")?;
    confine::confine(&mut prepared, account)?;
    prepared.env(BROKER_VARIABLE, broker);
    let child = prepared.spawn().with_context(|| {
        format!("cannot run the command {} as user {}", command[0].to_string_lossy(), account.name)
    })?;
    // Its ends of the terminal are only the command's from now on.
    drop(prepared);
    terminal.as_mut().map_or(Ok(()), CommandTerminal::start)?;
    Ok((child, terminal))
}
