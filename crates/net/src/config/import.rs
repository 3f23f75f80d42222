//! A configuration written from the present state of the system.

use std::collections::BTreeMap;

use super::survey::{FoundInterface, InterfaceSurvey};
use super::{Config, InterfaceConfig, LinkName, RouteConfig};
use millstream_link::{Subnet, dpdk, packet, xdp};

/// Converts the result of `survey` to a configuration, which then fits: the interfaces called
/// `names`, or every Ethernet interface that is up and has an IPv4 address.
///
/// # Errors
/// The name of the missing interface.
pub fn import(survey: &InterfaceSurvey, names: &[String]) -> Result<Config, String> {
    for name in names {
        if survey.interface(name).is_none() {
            return Err(name.clone());
        }
    }
    let wanted = |found: &&FoundInterface| {
        let interface = &found.interface;
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
pub fn import_for_dpdk(survey: &InterfaceSurvey, names: &[String]) -> Result<Config, String> {
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
            options: BTreeMap::new(),
            ..described
        })
    };
    let interfaces = names.iter().map(of).collect::<Result<_, String>>()?;
    Ok(Config { interfaces, threads: Vec::new() })
}

fn describe(found: &FoundInterface) -> InterfaceConfig {
    let native = found.features.is_some_and(|features| features.native);
    let near = |via| found.addresses.iter().any(|cidr| cidr.contains(via));
    let routes = found.routes.iter().filter_map(|route| {
        let via = route.gateway.filter(|via| near(*via))?;
        Some(RouteConfig { to: Subnet { address: route.destination, prefix: route.prefix }, via })
    });
    let (default, routes): (Vec<_>, Vec<_>) = routes.partition(|route| route.to.prefix == 0);
    InterfaceConfig {
        name: found.interface.name.clone(),
        link: LinkName::from(if native { &xdp::LINK } else { &packet::LINK }),
        channels: found.channels.map(|(now, _)| now.receiving()).filter(|count| *count > 0),
        mtu: Some(found.interface.mtu),
        addresses: found.addresses.clone(),
        gateway: default.first().map(|route| route.via),
        routes,
        ..InterfaceConfig::default()
    }
}
