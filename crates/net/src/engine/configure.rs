//! The configuration of a link's stack, out of the link string, the link, and the kernel.

use millstream_link::LinkError;
use millstream_link::frame::LinkInfo;

use crate::options::{Asked, UdpChecksum, bad};
use crate::stack::{AddressClaim, ChecksumPolicy, Route, StackConfig, Subnet};

use super::clock::now_ns;
use super::kernel::KernelInterface;

/// Returns the stack's configuration, and the kernel's interface where its addresses are used.
pub(super) fn configure(
    asked: &Asked,
    info: &LinkInfo,
) -> Result<(StackConfig, Option<KernelInterface>), LinkError> {
    let mut config = StackConfig::new(info.mac, info.mtu);
    config.vlan = asked.engine.vlan;
    let summed = asked.engine.udp_checksum.unwrap_or_default();
    config.udp_checksum = summed != UdpChecksum::Off;
    config.checksum_offload = summed == UdpChecksum::Offload && info.completes_checksums;
    config.checksum = match asked.engine.checksum {
        Some(ChecksumPolicy::Ignore) => ChecksumPolicy::Ignore,
        _ if info.partial_checksums => ChecksumPolicy::AcceptPartial,
        _ => ChecksumPolicy::Verify,
    };
    config.seed = now_ns();
    if let Some(address) = asked.engine.address {
        refuse_the_kernels(address, asked, info)?;
        config.addresses.push(address);
        config.routes.extend(asked.engine.gateway.map(Route::default_via));
        config.own_addresses = true;
        if info.interface.is_none() {
            // In memory no other station can have the address.
            config.claim = AddressClaim::Announce;
        }
        return Ok((config, None));
    }
    let Some(interface) = &info.interface else {
        let reason = "is needed (such as address=10.0.0.2/24): this link has no interface of \
                      the kernel to take one from";
        return Err(bad("address=IP/PREFIX".to_owned(), reason));
    };
    let kernel = KernelInterface::read(interface)?;
    config.addresses.clone_from(&kernel.addresses);
    config.routes.clone_from(&kernel.routes);
    Ok((config, Some(kernel)))
}

/// Refuses an address of the kernel: two hosts that answer for one address disturb each other, and
/// neither receives the other's ARP.
fn refuse_the_kernels(own: Subnet, asked: &Asked, info: &LinkInfo) -> Result<(), LinkError> {
    // A VLAN is another network than the interface's own.
    let (Some(interface), None) = (&info.interface, asked.engine.vlan) else { return Ok(()) };
    let kernel = KernelInterface::read(interface)?;
    if kernel.addresses.iter().all(|subnet| subnet.address != own.address) {
        return Ok(());
    }
    let reason = format!(
        "belongs to the kernel on {interface}: leave address= out to share it, or give one that \
         the kernel does not have"
    );
    Err(bad(format!("address={}/{}", own.address, own.prefix), &reason))
}
