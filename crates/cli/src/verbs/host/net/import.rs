//! `millstream host net import`: a configuration file that describes the present system.

use crate::force::ForceArgs;
use crate::output::{Report, count, shown};
use millstream_link::{Subnet, dpdk, packet, xdp};
use millstream_net::config::{
    Config, FoundInterface, InterfaceConfig, InterfaceSurvey, LinkName, RouteConfig,
};
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
        let driver = found.state.driver.as_deref().unwrap_or("DRIVER");
        let bind = |driver: &str| format!("dpdk-devbind.py --bind={driver} {device}");
        let (to_dpdk, to_kernel, mtu) = (bind("vfio-pci"), bind(driver), found.state.interface.mtu);
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

/// Converts the result of `survey` to a configuration, which then fits: the interfaces called
/// `names`, or every Ethernet interface that is up and has an IPv4 address.
///
/// # Errors
/// The name of the missing interface.
pub(super) fn import(survey: &InterfaceSurvey, names: &[String]) -> Result<Config, String> {
    for name in names {
        if survey.interface(name).is_none() {
            return Err(name.clone());
        }
    }
    let wanted = |found: &&FoundInterface| {
        let interface = &found.state.interface;
        let ethernet = interface.up && !interface.loopback && interface.mac.is_some();
        let usable = ethernet && !found.addresses.is_empty();
        if names.is_empty() { usable } else { names.contains(&interface.name) }
    };
    let interfaces = survey.interfaces.iter().filter(wanted).map(describe).collect();
    Ok(Config { interfaces, threads: Vec::new() })
}

/// Describes the interfaces called `names` for DPDK while the kernel still has them: their device,
/// first address, MTU and gateway.
///
/// # Errors
/// The problem of one of them.
pub(super) fn import_for_dpdk(
    survey: &InterfaceSurvey,
    names: &[String],
) -> Result<Config, String> {
    let of = |name: &String| {
        let found = survey
            .interface(name)
            .ok_or_else(|| format!("there is no network interface {name}"))?;
        let device = found.device.clone().ok_or_else(|| {
            format!(
                "{name} is on no PCI device, as DPDK needs: take it with {}:{name}",
                xdp::LINK.name
            )
        })?;
        let address = found.addresses.first().ok_or_else(|| {
            format!(
                "{name} has no IPv4 address that DPDK could take over: `ip addr add IP/PREFIX \
                 dev {name}`"
            )
        })?;
        let described = describe(found);
        Ok(InterfaceConfig {
            link: LinkName::from(&dpdk::LINK),
            device: Some(device),
            own: true,
            addresses: vec![*address],
            // A gateway on the network of the first address, or none.
            gateway: described.gateway.filter(|via| address.contains(*via)),
            routes: Vec::new(),
            channels: None,
            ..described
        })
    };
    let interfaces = names.iter().map(of).collect::<Result<_, String>>()?;
    Ok(Config { interfaces, threads: Vec::new() })
}

fn describe(found: &FoundInterface) -> InterfaceConfig {
    let native = found.state.features.is_some_and(|features| features.native);
    let near = |via| found.addresses.iter().any(|cidr| cidr.contains(via));
    let routes = found.routes.iter().filter_map(|route| {
        let via = route.gateway.filter(|via| near(*via))?;
        Some(RouteConfig { to: Subnet { address: route.destination, prefix: route.prefix }, via })
    });
    let (default, routes): (Vec<_>, Vec<_>) = routes.partition(|route| route.to.prefix == 0);
    InterfaceConfig {
        name: found.state.interface.name.clone(),
        link: LinkName::from(if native { &xdp::LINK } else { &packet::LINK }),
        channels: found.state.channels.map(|(now, _)| now.receiving()).filter(|count| *count > 0),
        mtu: Some(found.state.interface.mtu),
        addresses: found.addresses.clone(),
        gateway: default.first().map(|route| route.via),
        routes,
        ..InterfaceConfig::default()
    }
}
