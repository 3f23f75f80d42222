//! The compared paths, by name.

use millstream_link::registry::{at_interface, carries_frames, takes_interface};
use serde::{Deserialize, Serialize};

pub use super::plan::Half;
use super::plan::{Carriage, EndPlan, PacketWait, Workload};
use super::testbed::SideSetup;

/// The name of the base row.
pub const BASE: &str = "kernel UDP";

impl Half {
    /// Creates a half with a link and a wait mode, without options.
    #[must_use]
    pub fn new(path: Carriage, link: &str, wait: PacketWait) -> Self {
        let link = link.to_owned();
        Self { path, link, wait, busy_poll_us: None, priority: None, call_takes: None }
    }

    /// The end of this half in a side's set-up.
    #[must_use]
    pub fn at(&self, place: &SideSetup, frame_bytes: usize) -> EndPlan {
        let way = Self { link: self.link_at(place), ..self.clone() };
        EndPlan { way, address: place.address, frame_bytes, batch_max: usize::MAX }
    }

    /// The link string in a side's set-up. An I/O thread shares the CPU of its side, so that no row
    /// has more CPUs than the base.
    fn link_at(&self, place: &SideSetup) -> String {
        let link = with_interface(&self.link, place.interface.as_deref());
        let is_set = |name: &str| link.split([':', ',']).any(|part| part.starts_with(name));
        let has_thread = self.path == Carriage::Port
            && takes_interface(&link)
            && !is_set("io=inline")
            && !is_set("cpu=")
            && !is_set("thread=");
        match place.cpu {
            Some(cpu) if has_thread => format!("{link},cpu={cpu}"),
            _ => link,
        }
    }
}

/// A path from the active to the passive side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRow {
    /// Its name in tables.
    pub name: String,
    /// The side that sends.
    pub active: Half,
    /// The side that receives, or answers.
    pub passive: Half,
}

impl PathRow {
    fn new(name: &str, active: Half, passive: Half) -> Self {
        Self { name: name.to_owned(), active, passive }
    }

    fn both(name: &str, half: Half) -> Self {
        Self::new(name, half.clone(), half)
    }

    /// Creates a row of the user's links: of the sending side, and of the other one.
    #[must_use]
    pub fn of_links(link: &str, peer: &str, path: Carriage, wait: PacketWait) -> Self {
        let kind = if path == Carriage::Port { "port" } else { "frames" };
        let wait_name = match wait {
            PacketWait::Block => "poll",
            PacketWait::Spin => "spin",
            PacketWait::Adaptive => "adaptive",
        };
        let links = if link == peer { link.to_owned() } else { format!("{link} > {peer}") };
        let name = format!("{links} {kind}, {wait_name}");
        Self::new(&name, Half::new(path, link, wait), Half::new(path, peer, wait))
    }

    /// The base row.
    #[must_use]
    pub fn base() -> Self {
        Self::both(BASE, Half::new(Carriage::Kernel, "udp", PacketWait::Block))
    }

    /// Whether it can be measured without an interface of its own.
    #[must_use]
    pub fn needs_interface(&self) -> bool {
        let needs = |half: &Half| half.path != Carriage::Kernel && carries_frames(&half.link);
        needs(&self.active) || needs(&self.passive)
    }
}

/// The rows of the throughput table for a workload.
#[must_use]
pub fn throughput(workload: Workload) -> Vec<PathRow> {
    use Carriage::{Frames, IpFrames, Kernel, Port};
    use PacketWait::{Block, Spin};
    let half = Half::new;
    let plain = || half(Port, "udp:gro=off,gso=off", Block);
    let mut rows = vec![
        PathRow::base(),
        PathRow::new("kernel UDP, spin", half(Kernel, "udp", Block), half(Kernel, "udp", Spin)),
        PathRow::both("udp port, plain", plain()),
    ];
    let gso = || half(Port, "udp", Block);
    if workload != Workload::Swap {
        rows.push(PathRow::new("udp port, GSO > plain", gso(), half(Port, "udp:gro=off", Block)));
    }
    rows.push(PathRow::both("udp port, GSO > GRO", gso()));
    if workload == Workload::Drop {
        rows.push(PathRow::both("packet, IP", half(IpFrames, "packet", Block)));
    }
    rows.extend([
        PathRow::both("packet", half(Frames, "packet", Block)),
        PathRow::both("packet port", half(Port, "packet:io=inline,user_wait=park", Block)),
    ]);
    for (mode, label) in [("generic", "xdp generic"), ("native", "xdp native")] {
        let link = format!("xdp:mode={mode}");
        rows.push(PathRow::both(&format!("{label}, spin"), half(Frames, &link, Spin)));
        rows.push(PathRow::both(&format!("{label}, poll"), half(Frames, &link, Block)));
        let link = format!("xdp:mode={mode},io=inline");
        rows.push(PathRow::both(&format!("{label} port, spin"), half(Port, &link, Spin)));
        let link = format!("{link},udp_checksum=offload");
        rows.push(PathRow::both(&format!("{label} port, offload"), half(Port, &link, Spin)));
    }
    rows.push(PathRow::both(
        "xdp native port, thread",
        half(Port, "xdp:mode=native,user_wait=park", Block),
    ));
    rows.push(PathRow::both("xdp native busy, spin", {
        half(Frames, "xdp:mode=native,busy_poll_us=20", Spin)
    }));
    rows
}

/// The rows of the round-trip table: ports, or bare frames.
#[must_use]
pub fn round_trip(path: Carriage) -> Vec<PathRow> {
    use PacketWait::{Adaptive, Block, Spin};
    let half = Half::new;
    let kernel = |wait| half(Carriage::Kernel, "udp", wait);
    let busy = Half { busy_poll_us: Some(50), ..kernel(Block) };
    let mut rows = vec![
        PathRow::base(),
        PathRow::both("kernel UDP, busy poll", busy),
        PathRow::both("kernel UDP, spin", kernel(Spin)),
    ];
    // A port of ours waits as its link string says, if it has a wait at all.
    let (inline, park) = match path {
        Carriage::Port => (",io=inline", ",user_wait=park"),
        _ => ("", ""),
    };
    if path == Carriage::Port {
        rows.push(PathRow::both("udp port, poll", half(path, "udp", Block)));
        rows.push(PathRow::both("udp port, adaptive", half(path, "udp", Adaptive)));
        rows.push(PathRow::both("udp port, spin", half(path, "udp", Spin)));
    }
    for (link, label) in [
        (format!("packet:{}", inline.trim_start_matches(',')), "packet"),
        (format!("xdp:mode=generic{inline}"), "xdp generic"),
        (format!("xdp:mode=native{inline}"), "xdp native"),
    ] {
        rows.push(PathRow::both(
            &format!("{label}, poll"),
            half(path, &format!("{link}{park}"), Block),
        ));
        rows.push(PathRow::both(&format!("{label}, spin"), half(path, &link, Spin)));
    }
    // A ring that stays in the caches. It has too few frames for a port.
    if path != Carriage::Port {
        let link = "packet:slots=64";
        rows.push(PathRow::both("packet of 64 slots, spin", half(path, link, Spin)));
    }
    let link = format!("xdp:mode=native{inline}{park}");
    rows.push(PathRow::both("xdp native, adaptive", half(path, &link, Adaptive)));
    let link = format!("xdp:mode=native,busy_poll_us=20{inline}");
    rows.push(PathRow::both("xdp native busy, spin", half(path, &link, Spin)));
    rows
}

/// Removes rows whose name contains none of `only` (if that is not empty), but never the base. A
/// text that is the whole name of a row means this row alone.
/// `interfaces`: whether rows that need an interface can be measured at all.
pub fn choose(rows: &mut Vec<PathRow>, only: &[String], interfaces: bool) {
    let names: Vec<_> = rows.iter().map(|row| row.name.clone()).collect();
    rows.retain(|row| {
        let wanted = |only: &String| match names.contains(only) {
            true => row.name == *only,
            false => row.name.contains(only.as_str()),
        };
        let chosen = only.is_empty() || row.name == BASE || only.iter().any(wanted);
        chosen && (interfaces || !row.needs_interface())
    });
}

/// Adds an interface to a link string that needs one and names none.
fn with_interface(link: &str, interface: Option<&str>) -> String {
    match interface {
        Some(interface) => at_interface(link, interface),
        None => link.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_go_where_a_link_needs_one() {
        for (link, expected) in [
            ("udp", "udp"),
            ("udp:gro=off", "udp:gro=off"),
            ("packet", "packet:ms0"),
            ("xdp:mode=native", "xdp:ms0,mode=native"),
            ("xdp:eth7,mode=native", "xdp:eth7,mode=native"),
            ("loop", "loop"),
        ] {
            assert_eq!(with_interface(link, Some("ms0")), expected);
            assert_eq!(with_interface(link, None), link);
        }
    }

    #[test]
    fn an_io_thread_shares_the_cpu_of_its_side() {
        let place = SideSetup {
            interface: Some("ms0".to_owned()),
            mac: [0; 6],
            address: std::net::Ipv4Addr::LOCALHOST,
            cpu: Some(3),
        };
        for (path, link, expected) in [
            (Carriage::Port, "xdp", "xdp:ms0,cpu=3"),
            (Carriage::Port, "packet:user_wait=park", "packet:ms0,user_wait=park,cpu=3"),
            (Carriage::Port, "xdp:io=inline", "xdp:ms0,io=inline"),
            (Carriage::Port, "xdp:cpu=1", "xdp:ms0,cpu=1"),
            (Carriage::Port, "udp:gro=off", "udp:gro=off"),
            (Carriage::Frames, "xdp", "xdp:ms0"),
        ] {
            assert_eq!(Half::new(path, link, PacketWait::Spin).link_at(&place), expected);
        }
    }

    #[test]
    fn the_base_is_always_chosen_and_interfaces_only_where_there_are_any() {
        let names = |only: &[&str], interfaces| {
            let only: Vec<String> = only.iter().map(|only| (*only).to_owned()).collect();
            let mut rows = throughput(Workload::Swap);
            choose(&mut rows, &only, interfaces);
            rows.into_iter().map(|row| row.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&["warp"], true), [BASE]);
        assert_eq!(
            names(&["GSO", "packet port"], true),
            [BASE, "udp port, GSO > GRO", "packet port"]
        );
        assert_eq!(names(&["GSO", "packet port"], false), [BASE, "udp port, GSO > GRO"]);
        assert_eq!(names(&["kernel UDP"], true), [BASE], "a whole name");
        assert_eq!(names(&["kernel"], true), [BASE, "kernel UDP, spin"]);
        assert_eq!(names(&[], true).len(), throughput(Workload::Swap).len());
    }

    #[test]
    fn names_are_unique_and_the_base_comes_first() {
        let tables = [Workload::Drop, Workload::Transmit, Workload::Swap].map(throughput);
        for rows in tables.into_iter().chain([Carriage::Port, Carriage::Frames].map(round_trip)) {
            assert_eq!(rows[0].name, BASE);
            let mut names: Vec<_> = rows.iter().map(|row| &row.name).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), rows.len());
        }
    }
}
