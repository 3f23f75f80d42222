//! Advice for a port that does not open.

use std::io;
use std::path::Path;

use millstream_dpdk::DpdkError;

use super::device::{DeviceName, Driver};
use super::foresee;
use super::options::DpdkOptions;
use crate::LinkError;

/// Returns an error about the device.
pub(super) fn failed(
    device: &DeviceName,
    step: &str,
    source: io::Error,
    hint: String,
) -> LinkError {
    let (step, interface) = (step.to_owned(), device.to_string());
    LinkError::Interface { link: super::LINK.name, interface, step, source, hint }
}

/// Returns the error of an EAL that did not start.
pub(super) fn eal(options: &DpdkOptions, error: DpdkError) -> LinkError {
    let hint = match options.own.huge {
        Some(true) => {
            "the option huge=on needs huge pages: reserve some with `sysctl vm.nr_hugepages=512`, \
             or use huge=off"
        }
        _ => {
            "a process can start DPDK only once: run `millstream host doctor dpdk`, fix what it \
             reports, and start the program again"
        }
    };
    refused(&options.device, error, hint.to_owned())
}

/// Returns the error of a port that did not open.
pub(super) fn port(options: &DpdkOptions, error: DpdkError) -> LinkError {
    let hint = match options.device.driver() {
        None => pci(&options.device.to_string()),
        Some(Driver::VirtioUser) => {
            "start the vhost end first: it creates the socket of path=".to_owned()
        }
        Some(Driver::Memif) => {
            "both ends need the same socket= and id=, one end with role=server and the other with \
             role=client; each pair can be used only once"
                .to_owned()
        }
        Some(_) => "its arguments are those of DPDK's driver, in its Network Interface Controller \
                    guide"
            .to_owned(),
    };
    refused(&options.device, error, hint)
}

fn refused(device: &DeviceName, error: DpdkError, hint: String) -> LinkError {
    let (step, source, log) = match error {
        DpdkError::Port { step, source, log } => (step, source, log),
        DpdkError::Eal { source, log } => ("start DPDK".to_owned(), source, log),
        other => ("start DPDK".to_owned(), io::Error::other(other.to_string()), String::new()),
    };
    let said = if log.is_empty() { String::new() } else { format!("; DPDK says: {log}") };
    failed(device, &step, source, format!("{hint}{said}"))
}

/// Returns what a device on the PCI bus needs.
fn pci(address: &str) -> String {
    format!(
        "bind it to vfio-pci (`dpdk-devbind.py --bind=vfio-pci {address}`), with an IOMMU that is \
         on; `millstream host doctor dpdk` says what is missing"
    )
}

/// Refuses a device that DPDK cannot take, or whose memory accesses are not restricted.
pub(super) fn check_pci(options: &DpdkOptions) -> Result<(), LinkError> {
    let DeviceName::Pci(address) = &options.device else { return Ok(()) };
    let folder = Path::new("/sys/bus/pci/devices").join(address);
    if !folder.exists() {
        let hint = "`lspci -D` lists the devices of this machine".to_owned();
        return Err(failed(
            &options.device,
            "look at the device",
            io::ErrorKind::NotFound.into(),
            hint,
        ));
    }
    let driver = millstream_host::pci::driver_of(address);
    let domain = millstream_host::pci::iommu_domain(address);
    judge(address, driver.as_deref(), options.own.unsafe_uio)
        .and_then(|()| judge_domain(address, driver.as_deref(), domain.as_deref()))
        .map_err(|(kind, hint)| failed(&options.device, "look at the device", kind.into(), hint))
}

/// Checks whether a device with this driver can be taken; returns what to do if not.
fn judge(
    address: &str,
    driver: Option<&str>,
    unsafe_uio: bool,
) -> Result<(), (io::ErrorKind, String)> {
    let bind = pci(address);
    match driver {
        Some(name) if foresee::has_the_device(name) => Ok(()),
        Some("uio_pci_generic" | "igb_uio") if unsafe_uio => Ok(()),
        Some(uio @ ("uio_pci_generic" | "igb_uio")) => Err((
            io::ErrorKind::PermissionDenied,
            format!(
                "the card is bound to {uio}, with which it can write to any memory of this \
                 machine: {bind}, or accept that with unsafe_uio=on"
            ),
        )),
        Some(name) => Err((
            io::ErrorKind::ResourceBusy,
            format!("the kernel driver {name} has the card: {bind}"),
        )),
        None => Err((io::ErrorKind::ResourceBusy, format!("no driver has the card: {bind}"))),
    }
}

/// Checks whether the IOMMU lets a device of UIO reach memory: UIO maps nothing for it. Otherwise
/// the device would neither receive nor send, and only the kernel's log would say why.
fn judge_domain(
    address: &str,
    driver: Option<&str>,
    domain: Option<&str>,
) -> Result<(), (io::ErrorKind, String)> {
    match (driver, domain) {
        (Some(uio @ ("uio_pci_generic" | "igb_uio")), Some(domain @ ("DMA" | "DMA-FQ"))) => Err((
            io::ErrorKind::Unsupported,
            format!(
                "the IOMMU is on (domain {domain}), and {uio} maps no memory for the card, so it \
                 could not transfer a packet: {}. Without protection {uio} also works, after the \
                 kernel argument iommu=pt",
                pci(address)
            ),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_taken_from_vfio_and_from_uio_only_where_that_is_said() {
        let judged = |driver, uio| judge("0000:03:00.0", driver, uio).map_err(|(_, hint)| hint);
        assert_eq!(judged(Some("vfio-pci"), false), Ok(()));
        let error = judged(Some("uio_pci_generic"), false).unwrap_err();
        assert!(error.contains("any memory") && error.contains("unsafe_uio=on"), "{error}");
        assert_eq!(judged(Some("uio_pci_generic"), true), Ok(()));
        let error = judged(Some("e1000e"), true).unwrap_err();
        assert!(error.contains("dpdk-devbind.py --bind=vfio-pci 0000:03:00.0"), "{error}");
        assert!(judged(None, false).unwrap_err().starts_with("no driver has the card"));
    }

    #[test]
    fn a_device_of_uio_is_refused_where_an_iommu_would_refuse_its_accesses() {
        let judged = |driver, domain| judge_domain("0000:03:00.0", Some(driver), domain);
        for free in [None, Some("identity")] {
            assert_eq!(judged("uio_pci_generic", free), Ok(()));
        }
        assert_eq!(judged("vfio-pci", Some("DMA-FQ")), Ok(()));
        let (kind, hint) = judged("uio_pci_generic", Some("DMA-FQ")).unwrap_err();
        assert_eq!(kind, io::ErrorKind::Unsupported);
        assert!(hint.contains("vfio-pci 0000:03:00.0") && hint.contains("iommu=pt"), "{hint}");
    }
}
