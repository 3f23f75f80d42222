//! The other users of an interface, described for people.

use std::os::fd::AsFd;
use std::path::Path;

use super::bpf;
use super::privileged::PROGRAM_NAME;
use crate::device::InterfaceState;

/// Returns what occupies an interface, and what to do about it.
pub fn explain(device: &InterfaceState) -> String {
    let name = &device.interface.name;
    // The program may have been attached after the first check.
    let id = InterfaceState::look(super::open::NAME, name).ok().and_then(|device| device.program());
    let Some(id) = id else {
        return format!("`ip link show {name}` shows which program is attached");
    };
    let title = bpf::program_by_id(id).and_then(|p| bpf::program_info(p.as_fd()));
    let title = title.map_or_else(|_| "?".to_owned(), |(_, title)| title);
    match title.as_str() {
        PROGRAM_NAME => format!(
            "millstream is there already (program {id}{}): all ports of one process share one \
             link; stop the other process, or use another interface",
            held_by(id)
        ),
        "xdp_dispatcher" => format!(
            "a dispatcher of libxdp is attached (program {id}), and it is left alone: our program \
             must be the interface's only one; `xdp-loader status {name}` lists its programs, \
             `xdp-loader unload {name} --all` removes them; or use packet:{name}"
        ),
        _ => format!(
            "program \"{title}\" (number {id}{}) is attached, and it is left alone: stop its \
             owner, or detach it with `ip link set {name} xdp off`; or use packet:{name}",
            held_by(id)
        ),
    }
}

/// Returns the processes that have the program or its attachment open, as far as our rights allow.
/// A process that is just being started has the open files of its parent.
fn held_by(id: u32) -> String {
    let line = format!("prog_id:\t{id}");
    let holders = processes(|process| {
        let open = std::fs::read_dir(process.join("fdinfo")).into_iter().flatten().flatten();
        let mut texts = open.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default());
        texts.any(|text| text.lines().any(|found| found == line))
    });
    if holders.is_empty() { String::new() } else { format!(", held by {}", holders.join(", ")) }
}

/// Returns the processes that have AF_XDP sockets, as far as our rights allow: only those map a
/// socket at the offset of a fill ring (`XDP_UMEM_PGOFF_FILL_RING`). The kernel reports the queue
/// of a socket only if it was built with CONFIG_XDP_SOCKETS_DIAG.
pub fn socket_holders() -> Vec<String> {
    processes(|process| {
        let maps = std::fs::read_to_string(process.join("maps")).unwrap_or_default();
        maps.lines().any(is_fill_ring)
    })
}

/// Returns the matching processes, by name and number.
fn processes(have: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else {
            continue;
        };
        if have(&process.path()) {
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            found.push(format!("{} [{pid}]", name.trim()));
        }
    }
    found
}

/// Whether a line of /proc/PID/maps is a fill ring: address, access, offset, device, inode, path.
fn is_fill_ring(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace().skip(2);
    words.next() == Some("100000000") && words.nth(2).is_some_and(|path| path.contains("socket:["))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameOptions;
    use crate::xdp::bpf::{LoadOptions, ProgramPlace};
    use crate::{Spec, xdp};
    use millstream_testkit::netns::{INTERFACE, PairOptions, VethPair};
    use std::os::fd::AsRawFd;

    #[test]
    fn a_queue_that_is_taken_names_who_may_have_it() {
        use crate::xdp::pool::Geometry;
        use crate::xdp::queue::{Binding, Queue, Sizes, register};
        let Some(pair) = VethPair::new(PairOptions::default()) else { return };
        pair.right.run(|| {
            let flags = rustix::mm::MapFlags::empty();
            let memory = crate::frame::FrameMemory::anonymous(1 << 20, flags).unwrap();
            let socket = xdp::privileged::socket().unwrap();
            let geometry = Geometry { chunk: 2048, unaligned: false };
            register(socket.as_fd(), &memory, geometry).unwrap();
            let sizes = Sizes { receive: 64, spare: 64, transmit: 64 };
            let mut queue = Queue::new(socket, 0, sizes).unwrap();
            let interface = InterfaceState::look("xdp", INTERFACE).unwrap().interface.index;
            let flags = rustix::net::xdp::SocketAddrXdpFlags::XDP_COPY;
            queue.bind(Binding { interface, queue: 0, flags }, None).unwrap();
            let spec = Spec::parse("xdp:veth0").unwrap();
            let error = xdp::open(&spec, &FrameOptions::default()).err().unwrap().to_string();
            let pid = format!("[{}]", std::process::id());
            for part in ["bind to queue 0", "another AF_XDP socket uses this queue", &pid] {
                assert!(error.contains(part), "no \"{part}\" in {error}");
            }
            drop(queue);
            xdp::open(&spec, &FrameOptions::default()).unwrap();
        });
    }

    #[test]
    fn only_a_fill_ring_is_one() {
        let line = "7f30-7f31 rw-s 100000000 00:08 4242    socket:[4242]";
        assert!(is_fill_ring(line));
        assert!(!is_fill_ring(&line.replace("100000000", "00000000")));
        assert!(!is_fill_ring(&line.replace("socket:[4242]", "/tmp/large")) && !is_fill_ring(""));
    }

    /// `XDP_FLAGS_SKB_MODE`.
    const GENERIC: u32 = 1 << 1;

    #[test]
    fn a_program_of_others_is_named_and_left_alone() {
        let Some(pair) = VethPair::new(PairOptions::default()) else { return };
        for (name, advice) in [
            ("filter_of_mine", "program \"filter_of_mine\" (number "),
            ("xdp_dispatcher", "a dispatcher of libxdp is attached"),
        ] {
            let error = pair.right.run(|| {
                let rules = bpf::create_map("ms_rules", bpf::MapKind::Value { bytes: 1 << 17 });
                let counters = bpf::create_map("ms", bpf::MapKind::Value { bytes: 1 << 20 });
                let sockets = bpf::create_map("ms", bpf::MapKind::Sockets { queues: 1 });
                let maps = [rules, counters, sockets].map(Result::unwrap);
                let [rules, counters, sockets] = maps.each_ref().map(AsRawFd::as_raw_fd);
                let maps = bpf::Descriptors { rules, counters, sockets, cpus: 1, parts: false };
                let place = ProgramPlace::Xdp { parts: false };
                let program = bpf::load(&bpf::assemble(maps), LoadOptions { name, place });
                let program = program.unwrap();
                let (id, _) = bpf::program_info(program.as_fd()).unwrap();
                let index = InterfaceState::look("xdp", INTERFACE).unwrap().interface.index;
                let link = bpf::attach(program.as_fd(), index, GENERIC).unwrap();
                let spec = Spec::parse("xdp:veth0").unwrap();
                let error = xdp::open(&spec, &FrameOptions::default()).err().unwrap();
                let there = InterfaceState::look("xdp", INTERFACE).unwrap().program();
                assert_eq!(there, Some(id), "it is still attached");
                // Another test that is starting a program may hold a copy of the descriptor.
                bpf::detach(link.as_fd()).unwrap();
                xdp::open(&spec, &FrameOptions::default()).unwrap();
                error.to_string()
            });
            assert!(error.contains(advice) && error.contains("left alone"), "{error}");
            assert!(error.contains("or use packet:veth0"), "{error}");
        }
    }
}
