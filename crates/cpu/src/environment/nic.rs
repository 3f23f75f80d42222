//! Network devices in the record.

mod coalescing;

pub use coalescing::NicCoalescing;

use crate::folders::names;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// A network device, as sysfs describes it.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Nic {
    /// Its name on this machine, `eth0`.
    pub name: String,
    /// The driver, `virtio_net`.
    pub driver: Option<String>,
    /// Largest IP packet, bytes.
    pub mtu: Option<u32>,
    /// Rate of the line, Mb/s; unknown while it is down.
    pub speed_mbps: Option<u32>,
    /// Receive queues.
    pub rx_queues: usize,
    /// Transmit queues.
    pub tx_queues: usize,
    /// How it coalesces interrupts; `None` where the driver does not tell.
    pub coalescing: Option<NicCoalescing>,
}

/// Reads all devices below `root` that have hardware behind them, by name.
pub(super) fn read(root: &Path) -> Vec<Nic> {
    let folder = root.join("sys/class/net");
    let has_hardware = |name: &String| folder.join(name).join("device").exists();
    let names = names(&folder).into_iter().filter(has_hardware);
    // A copy of another machine's files says nothing about the devices of this one.
    let is_here = root == Path::new("/");
    names.map(|name| nic(&folder.join(&name), name, is_here)).collect()
}

fn nic(folder: &Path, name: String, is_here: bool) -> Nic {
    let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse().ok();
    let driver = fs::read_link(folder.join("device/driver")).ok();
    let queues = names(&folder.join("queues"));
    let queues = |prefix: &str| queues.iter().filter(|name| name.starts_with(prefix)).count();
    Nic {
        coalescing: is_here.then(|| NicCoalescing::read(&name)).flatten(),
        name,
        driver: driver.and_then(|path| Some(path.file_name()?.to_str()?.to_owned())),
        mtu: number("mtu"),
        speed_mbps: number("speed"),
        rx_queues: queues("rx-"),
        tx_queues: queues("tx-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_without_hardware_are_left_out() {
        let root = tempfile::tempdir().unwrap();
        let net = root.path().join("sys/class/net");
        for folder in ["lo/queues/rx-0", "eth1/queues/rx-0", "eth1/queues/rx-1", "eth1/queues/tx-0"]
        {
            fs::create_dir_all(net.join(folder)).unwrap();
        }
        fs::create_dir_all(net.join("eth1/device")).unwrap();
        std::os::unix::fs::symlink("/bus/drivers/igb", net.join("eth1/device/driver")).unwrap();
        fs::write(net.join("eth1/mtu"), "9000\n").unwrap();
        fs::write(net.join("eth1/speed"), "-1\n").unwrap();
        let expected = Nic {
            name: "eth1".to_owned(),
            driver: Some("igb".to_owned()),
            mtu: Some(9000),
            speed_mbps: None,
            rx_queues: 2,
            tx_queues: 1,
            coalescing: None,
        };
        assert_eq!(read(root.path()), [expected]);
    }
}
