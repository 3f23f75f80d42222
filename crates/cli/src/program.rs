//! This program, started again as a helper process.

use std::ffi::OsStr;
use std::process::Command;

/// The command of this program with arguments.
pub fn command(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args);
    Ok(command)
}
