//! Predictions of what opening a device would meet: whether the kernel has given it up.

use super::device::DeviceName;
use crate::Spec;
use crate::entry::{OpenTarget, Remark};

/// Whether a kernel driver of this name leaves the device to DPDK.
pub(super) fn has_the_device(driver: &str) -> bool {
    matches!(driver, "vfio-pci" | "mlx4_core" | "mlx5_core")
}

pub(super) fn foresee(spec: &Spec, place: &OpenTarget<'_>) -> Vec<Remark> {
    let Some(device) = spec.target.as_deref().and_then(DeviceName::parse) else {
        return Vec::new();
    };
    let DeviceName::Pci(address) = device else {
        let text = "a port in software: what it needs shows when it is opened";
        return vec![Remark::Note(text.to_owned())];
    };
    let card = place.cards.iter().find(|card| card.address == address);
    let bind = format!("`dpdk-devbind.py --bind=vfio-pci {address}`");
    let obstacle = match card.map(|card| card.driver.as_deref()) {
        None => format!("there is no network device {address} here"),
        Some(Some(driver)) if has_the_device(driver) => return Vec::new(),
        Some(Some(driver)) => {
            format!("{driver} has the device: `ip link set {} down`, then {bind}", place.name)
        }
        Some(None) => format!("no driver has the device: {bind}"),
    };
    vec![Remark::Obstacle(obstacle)]
}
