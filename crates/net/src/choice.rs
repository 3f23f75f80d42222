//! The stored choice of a link: the one that measured best for an interface of this machine. The
//! link `auto` follows it. `millstream-lab bench packets --choose` measures and stores.
//!
//! Without a stored choice `auto` is `udp`: the safest link, which works everywhere.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};

use millstream_cpu::{Environment, folders};
use millstream_link::interfaces;
use millstream_link::registry::{at_interface, takes_interface};
use serde::{Deserialize, Serialize};

/// The link string that stands for the stored choice.
pub const AUTO: &str = "auto";

/// A stored choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredChoice {
    /// The interface of the choice.
    pub interface: String,
    /// The link string, such as `xdp` or `udp:gro=off`. A link that works on an interface gets
    /// [`Self::interface`] when it is opened.
    pub link: String,
    /// The reason, in one line.
    pub reason: String,
    /// The time of the measurement (RFC 3339).
    pub measured: String,
    /// The measured machine.
    pub machine: MachineKey,
    /// The whole environment record, for people.
    #[serde(default)]
    pub environment: serde_json::Value,
}

/// The properties that identify a machine: another kernel or CPU needs another measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineKey {
    /// Kernel release.
    pub kernel: Option<String>,
    /// The processor's own name.
    pub cpu: Option<String>,
    /// CPUs online.
    pub cpus: String,
}

impl MachineKey {
    /// Returns the machine of an environment record.
    #[must_use]
    pub fn of(environment: &Environment) -> Self {
        Self {
            kernel: environment.kernel_release.clone(),
            cpu: environment.cpu_model.clone(),
            cpus: environment.cpus_online.to_string(),
        }
    }
}

/// The link that `auto` stands for here, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// A link string that can be opened.
    pub link: String,
    /// The reason, in one line.
    pub reason: String,
}

impl Chosen {
    fn udp(reason: String) -> Self {
        Self { link: "udp".to_owned(), reason }
    }
}

/// Returns the link of `auto` for an address of this machine.
#[must_use]
pub fn for_local(local: Ipv4Addr) -> Chosen {
    if local.is_loopback() {
        return Chosen::udp("loopback addresses belong to the kernel".to_owned());
    }
    let found = interfaces::list().unwrap_or_default();
    match found.into_iter().find(|interface| interface.address == local) {
        Some(interface) => for_interface(&interface.name),
        None => Chosen::udp("the address belongs to no interface".to_owned()),
    }
}

/// Returns the link of `auto` towards an address: that of the interface by which packets to it
/// leave.
#[must_use]
pub fn for_peer(peer: Ipv4Addr) -> Chosen {
    // Connecting a UDP socket looks up the route, but sends nothing.
    let towards = || -> io::Result<Ipv4Addr> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        socket.connect((peer, 9))?;
        match socket.local_addr()?.ip() {
            std::net::IpAddr::V4(local) => Ok(local),
            std::net::IpAddr::V6(_) => Err(io::ErrorKind::AddrNotAvailable.into()),
        }
    };
    match towards() {
        Ok(local) if peer.is_loopback() || local == peer => for_local(Ipv4Addr::LOCALHOST),
        Ok(local) => for_local(local),
        Err(error) => Chosen::udp(format!("there is no route to {peer} ({error})")),
    }
}

fn for_interface(interface: &str) -> Chosen {
    let machine = MachineKey::of(&Environment::read(Path::new("/"), ""));
    // The user's own choice comes first.
    let stored: Vec<_> = places().iter().flat_map(|path| load(path)).collect();
    decide(interface, &stored, &machine, may_open_frames())
}

/// Returns the choice for an interface out of all stored ones.
#[must_use]
pub fn decide(
    interface: &str,
    stored: &[StoredChoice],
    machine: &MachineKey,
    rights: bool,
) -> Chosen {
    let Some(one) = stored.iter().find(|one| one.interface == interface) else {
        return Chosen::udp(format!("nothing was measured for {interface}"));
    };
    let StoredChoice { link, reason, measured, .. } = one;
    if one.machine != *machine {
        return Chosen::udp(format!(
            "the choice for {interface} of {measured} was measured on another kernel or CPU; \
             measure again (millstream-lab bench packets --choose)"
        ));
    }
    if !takes_interface(link) {
        return Chosen { link: link.clone(), reason: reason.clone() };
    }
    if !rights {
        return Chosen::udp(format!(
            "the measurement chose {link} for {interface}, but it needs root, or a broker \
             (millstream host grant) and link=NAME:{interface}"
        ));
    }
    Chosen { link: at_interface(link, interface), reason: reason.clone() }
}

/// Stores a choice in place of an earlier one for the same interface; returns the file. A choice
/// that root stores holds for every user: measuring needs root, and another user often follows the
/// choice.
///
/// # Errors
/// The file, and the system's error.
pub fn store(choice: StoredChoice) -> Result<PathBuf, (PathBuf, io::Error)> {
    let mut places = places();
    let named = folders::variable("XDG_STATE_HOME").is_some_and(|path| path.is_absolute());
    if rustix::process::geteuid().is_root() && !named {
        places.reverse();
    }
    let path = places.swap_remove(0);
    match write(&path, choice) {
        Ok(()) => Ok(path),
        Err(error) => Err((path, error)),
    }
}

fn write(path: &Path, choice: StoredChoice) -> io::Result<()> {
    let mut all = load(path);
    all.retain(|one| one.interface != choice.interface);
    all.push(choice);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    // A reader sees the old file or the new one.
    let part = path.with_extension(format!("{}.part", std::process::id()));
    fs::write(&part, serde_json::to_string_pretty(&all)? + "\n")?;
    fs::rename(&part, path)
}

/// Returns the user's own file below `$XDG_STATE_HOME`, usually `~/.local/state`, and that of the
/// machine.
fn places() -> Vec<PathBuf> {
    let own = folders::state(folders::variable);
    let both = own.into_iter().chain([PathBuf::from("/var/lib")]);
    both.map(|folder| folder.join("millstream/links.json")).collect()
}

/// Reads the choices of a file. A file that does not exist or is not ours has none.
fn load(path: &Path) -> Vec<StoredChoice> {
    let text = fs::read_to_string(path).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Whether this process has CAP_NET_ADMIN and CAP_NET_RAW (proc(5), `CapEff`).
fn may_open_frames() -> bool {
    const WANTED: u64 = 1 << 12 | 1 << 13;
    millstream_cpu::proc::capabilities(Path::new("/proc/self"))
        .is_some_and(|capabilities| capabilities & WANTED == WANTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(kernel: &str) -> MachineKey {
        MachineKey { kernel: Some(kernel.to_owned()), cpu: None, cpus: "0-1".to_owned() }
    }

    fn stored(interface: &str, link: &str) -> StoredChoice {
        StoredChoice {
            interface: interface.to_owned(),
            link: link.to_owned(),
            reason: "the safest that meets it".to_owned(),
            measured: "2026-01-01T00:00:00Z".to_owned(),
            machine: machine("6.1"),
            environment: serde_json::Value::Null,
        }
    }

    #[test]
    fn a_choice_holds_for_its_interface_machine_and_rights() {
        let all = [
            stored("eth1", "xdp:mode=native"),
            stored("eth2", "udp:busy_poll_us=50"),
            stored("eth3", "packet"),
        ];
        for (interface, kernel, rights, link, reason) in [
            ("eth1", "6.1", true, "xdp:eth1,mode=native", "the safest that meets it"),
            ("eth1", "6.1", false, "udp", "needs root, or a broker"),
            ("eth1", "6.2", true, "udp", "on another kernel or CPU"),
            ("eth2", "6.1", false, "udp:busy_poll_us=50", "the safest that meets it"),
            ("eth3", "6.1", true, "packet:eth3", "the safest that meets it"),
            ("eth4", "6.1", true, "udp", "nothing was measured for eth4"),
        ] {
            let chosen = decide(interface, &all, &machine(kernel), rights);
            assert_eq!(chosen.link, link);
            assert!(chosen.reason.contains(reason), "{}", chosen.reason);
        }
    }

    #[test]
    fn loopback_and_no_address_in_particular_are_the_kernels() {
        assert_eq!(for_peer(Ipv4Addr::new(127, 0, 0, 9)).link, "udp");
        assert_eq!(for_local(Ipv4Addr::UNSPECIFIED).link, "udp");
    }

    #[test]
    fn a_file_that_is_not_ours_holds_no_choices() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("links.json");
        assert_eq!(load(&path), []);
        fs::write(&path, "{ not json").unwrap();
        assert_eq!(load(&path), []);
    }

    #[test]
    fn a_choice_takes_the_place_of_an_earlier_one_for_its_interface() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("not/there/yet/links.json");
        for (interface, link) in [("eth1", "packet"), ("eth2", "udp"), ("eth1", "xdp")] {
            write(&path, stored(interface, link)).unwrap();
        }
        assert_eq!(load(&path), [stored("eth2", "udp"), stored("eth1", "xdp")]);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no part is left");
    }

    #[test]
    fn the_machines_choices_stand_behind_the_users_own() {
        let places = places();
        assert_eq!(places.last().unwrap(), Path::new("/var/lib/millstream/links.json"));
        assert!(places.len() <= 2 && places.iter().all(|path| path.is_absolute()));
    }
}
