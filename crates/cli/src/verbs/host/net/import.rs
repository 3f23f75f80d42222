//! `millstream host net import`: a configuration file that describes the present system.

use crate::force::ForceArgs;
use crate::output::{Report, count, shown};
use millstream_net::config::{Config, InterfaceSurvey, import, import_for_dpdk};
use std::fmt::Write as _;
use std::path::PathBuf;

/// Writes a configuration file with the present addresses, MTU, routes and queues of interfaces.
#[derive(clap::Args)]
pub struct Args {
    /// Interfaces to describe. The default is every Ethernet interface that is up and has an
    /// address.
    #[arg(value_name = "INTERFACE")]
    interfaces: Vec<String>,

    /// Describe the interfaces for the link dpdk, which takes them away from the kernel. The file
    /// also contains the commands that give a card to DPDK and back to the kernel.
    #[arg(long, requires = "interfaces")]
    dpdk: bool,

    /// File to write; it must not exist yet. The default is standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    force: ForceArgs,
}

crate::results! {
    /// The configuration of the present system.
    struct ImportedConfig<'a> {
        /// The configuration.
        config: &'a Config,
        /// The same as the text of a file.
        text: &'a str,
        /// The file that was written.
        file: Option<String>,
    }
}

/// Succeeds when there is an interface to describe.
pub fn run(args: Args) -> anyhow::Result<Report> {
    let survey = InterfaceSurvey::take()?;
    let config = if args.dpdk {
        import_for_dpdk(&survey, &args.interfaces).map_err(anyhow::Error::msg)?
    } else {
        import(&survey, &args.interfaces).map_err(|name| super::no_interface(&name, &survey))?
    };
    if config.interfaces.is_empty() {
        anyhow::bail!(
            "no Ethernet interface is up and has an IPv4 address: set one up (`ip link set NAME \
             up`, `ip addr add`), or give the name of an interface"
        );
    }
    let body = toml::to_string_pretty(&config)?;
    let text = format!(
        "# Written by `millstream host net import`. `millstream host net check` compares it with\n\
         # the system; `millstream host net schema` describes every key.\n{}\n{body}",
        commands(&config, &survey)
    );
    let file = args.out.as_deref().map(shown);
    let report = Report::of(text.clone(), &ImportedConfig { config: &config, text: &text, file });
    let Some(path) = &args.out else { return Ok(report) };
    args.force.write(path, &text)?;
    let count = count(config.interfaces.len() as u64, "interface");
    Ok(Report { text: format!("{}: {count}\n", path.display()), ..report })
}

/// The commands that give DPDK its interfaces, and that return them to the kernel, as comments.
fn commands(config: &Config, survey: &InterfaceSurvey) -> String {
    let mut text = String::new();
    for interface in &config.interfaces {
        let (Some(device), Some(found)) = (&interface.device, survey.interface(&interface.name))
        else {
            continue;
        };
        let name = &interface.name;
        let driver = found.driver.as_deref().unwrap_or("DRIVER");
        let bind = |driver: &str| format!("dpdk-devbind.py --bind={driver} {device}");
        let (to_dpdk, to_kernel, mtu) = (bind("vfio-pci"), bind(driver), found.interface.mtu);
        let _ = writeln!(
            text,
            "#\n# {name}, for DPDK (the kernel loses it):\n#   modprobe vfio-pci; ip link set \
             {name} down; {to_dpdk}\n# and back to the kernel:\n#   {to_kernel}; ip link set \
             {name} up mtu {mtu}"
        );
        for address in &found.addresses {
            let _ = writeln!(text, "#   ip addr add {address} dev {name}");
        }
        for route in &found.routes {
            let Some(via) = route.gateway else { continue };
            let to = format!("{}/{}", route.destination, route.prefix);
            let _ = writeln!(text, "#   ip route add {to} via {via} dev {name}");
        }
    }
    text
}
