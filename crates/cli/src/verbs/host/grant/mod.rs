//! `millstream host grant`: gives other users links without giving them rights.

mod account;
mod confine;
mod serve;
mod terminal;

use crate::numbers::{ports, whole};
use crate::output::Report;
use anyhow::{Context, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use millstream_link::Subnet;
use millstream_link::rights::policy::{self, GrantPolicy};
use millstream_link::rights::{DEFAULT_BROKER, DirectSteps, Family, Rights};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use account::Account;

/// Opens links for users without root. Run it as root; the users stream without root and
/// capabilities.
///
/// Without a command it runs until you end it. With a command it drops its privileges, runs the
/// command as the user, and serves only this command.
///
/// A socket of the link `packet` can receive and send on every interface of this network namespace.
/// A socket of `xdp` can send on every interface. So grant these links only to users whom you trust
/// with that.
#[derive(clap::Args)]
pub struct Args {
    /// Interface to grant. Repeat the option for more.
    #[arg(long, required = true, value_name = "INTERFACE")]
    pub interface: Vec<String>,

    /// User (name or number) who may use the interface. Repeat the option for more. The default is
    /// the user who called sudo.
    #[arg(long, value_name = "USER")]
    pub user: Vec<String>,

    /// Group whose members may use the interface.
    #[arg(long, value_name = "GROUP")]
    pub group: Vec<String>,

    /// Links to grant, separated by commas.
    #[arg(long, value_name = "LINK,…", value_delimiter = ',', default_value = "xdp",
        value_parser = families())]
    pub link: Vec<&'static Family>,

    /// UDP ports that an xdp link may take away from the kernel, separated by commas. Other
    /// programs that use these ports then receive nothing, so grant only a few.
    #[arg(long, value_delimiter = ',', value_name = "PORT[-PORT],…", value_parser = ports,
        default_value = "1024-65535")]
    pub port: Vec<RangeInclusive<u16>>,

    /// IP addresses, beside those of this machine, that a link may use (`address=` in a link
    /// string), separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "IP[/BITS],…",
        value_parser = policy::network)]
    pub network: Vec<Subnet>,

    /// Let links take all frames of the interface away from the kernel, for measurements.
    #[arg(long)]
    pub everything: bool,

    /// Let links change the number of queues of the interface while they are open.
    #[arg(long)]
    pub queues: bool,

    /// Memory that each link may lock for its frames, in MiB.
    #[arg(long, default_value_t = 1024, value_name = "MIB", value_parser = whole::<u64>(..))]
    pub locked: u64,

    /// Path of the Unix socket on which the command listens.
    #[arg(long, default_value = DEFAULT_BROKER, value_name = "PATH")]
    pub socket: PathBuf,

    /// Command to run as the user, with these links and without privileges.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// The links that a broker can grant, by name.
fn families() -> impl TypedValueParser<Value = &'static Family> {
    let names = PossibleValuesParser::new(Family::all().map(|family| family.link));
    names.try_map(|name| Family::of_link(&name).ok_or("this link cannot be granted"))
}

crate::results! { also [serve::results], }

/// Serves, or runs the command.
pub fn run(args: Args) -> anyhow::Result<Report> {
    if !rustix::process::geteuid().is_root() {
        bail!("only root can grant links: run `sudo millstream host grant …`");
    }
    for interface in &args.interface {
        exists(interface)?;
    }
    let accounts = accounts(&args)?;
    let policy = policy(&args, &accounts)?;
    if args.command.is_empty() {
        return serve::until_interrupted(&args, policy, &accounts);
    }
    let [account] = accounts.as_slice() else {
        bail!("a command can run as only one user: give --user exactly once");
    };
    serve::command(&args.command, policy, account)
}

/// The accounts of the command line.
fn accounts(args: &Args) -> anyhow::Result<Vec<Account>> {
    if !args.user.is_empty() {
        return args.user.iter().map(|user| Account::find(user)).collect();
    }
    match std::env::var("SUDO_UID") {
        Ok(caller) => Ok(vec![Account::find(&caller)?]),
        Err(_) if args.group.is_empty() => {
            bail!("no user is given who may use the interface: add --user or --group")
        }
        Err(_) => Ok(Vec::new()),
    }
}

fn policy(args: &Args, accounts: &[Account]) -> anyhow::Result<GrantPolicy> {
    let groups = args.group.iter().map(|group| account::group(group));
    let mut policy = GrantPolicy::new(&args.interface[0], &args.link);
    policy.users = accounts.iter().map(|account| account.uid).collect();
    policy.groups = groups.collect::<anyhow::Result<_>>()?;
    policy.interfaces.clone_from(&args.interface);
    policy.ports.clone_from(&args.port);
    policy.addresses.clone_from(&args.network);
    policy.everything = args.everything;
    policy.channels = args.queues;
    let bytes = args.locked.checked_mul(1 << 20);
    policy.locked_bytes_max =
        bytes.context("--locked is larger than the address space: give a smaller number of MiB")?;
    Ok(policy)
}

fn exists(interface: &str) -> anyhow::Result<()> {
    let known =
        rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)
            .and_then(|socket| rustix::net::netdevice::name_to_index(&socket, interface));
    known.map(drop).map_err(|error| {
        anyhow::anyhow!("there is no network interface {interface} ({error}); `ip link` lists them")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream_link::rights::policy::ORDINARY_PORTS;

    #[test]
    fn ports_are_single_or_ranges() {
        assert_eq!(ports("49153"), Ok(49153..=49153));
        assert_eq!(ports("49153-49400"), Ok(49153..=49400));
        assert_eq!(ports("1024-65535"), Ok(ORDINARY_PORTS));
        for bad in ["", "0", "5-4", "x", "1-70000", "-"] {
            assert!(ports(bad).unwrap_err().contains("is not a port"), "{bad}");
        }
    }
}
