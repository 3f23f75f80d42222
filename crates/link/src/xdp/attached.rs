//! What else is attached to an interface, named for people.

use std::os::fd::AsFd;

use super::bpf;
use super::privileged::PROGRAM_NAME;
use crate::device::Device;

/// What is in the way on an interface, and what to do about it.
pub fn explain(device: &Device) -> String {
    let name = &device.name;
    // The program may have come after the first look.
    let id = Device::look(super::open::NAME, name).ok().and_then(|device| device.program);
    let Some(id) = id else {
        return format!("`ip link show {name}` tells which program is attached");
    };
    let title = bpf::program_by_id(id).and_then(|p| bpf::program_info(p.as_fd()));
    let title = title.map_or_else(|_| "?".to_owned(), |(_, title)| title);
    match title.as_str() {
        PROGRAM_NAME => format!(
            "millstream is there already (program {id}{}): all ports of one process share one \
             link; stop the other process, or use another interface",
            holder(id).map(|holder| format!(", {holder}")).unwrap_or_default()
        ),
        "xdp_dispatcher" => format!(
            "a dispatcher of libxdp is attached (program {id}), and it is left alone: our program \
             must be the interface's only one; `xdp-loader status {name}` lists its programs, \
             `xdp-loader unload {name} --all` removes them; or use packet:{name}"
        ),
        _ => format!(
            "program \"{title}\" (number {id}{}) is attached, and it is left alone: stop its \
             owner, or detach it with `ip link set {name} xdp off`; or use packet:{name}",
            holder(id).map(|holder| format!(", {holder}")).unwrap_or_default()
        ),
    }
}

/// A process that has the program or its attachment open, as far as we may look.
fn holder(id: u32) -> Option<String> {
    let line = format!("prog_id:\t{id}");
    for process in std::fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) else {
            continue;
        };
        let Ok(open) = std::fs::read_dir(process.path().join("fdinfo")) else { continue };
        for file in open.flatten() {
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            if text.lines().any(|found| found == line) {
                let name = std::fs::read_to_string(process.path().join("comm"));
                return Some(format!("held by {} [{pid}]", name.unwrap_or_default().trim()));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FrameOptions;
    use crate::xdp::bpf::LoadOptions;
    use crate::{Spec, xdp};
    use millstream_testkit::netns::{INTERFACE, Pair, PairOptions};
    use std::os::fd::AsRawFd;

    /// `XDP_FLAGS_SKB_MODE`.
    const GENERIC: u32 = 1 << 1;

    #[test]
    fn a_program_of_others_is_named_and_left_alone() {
        let Some(pair) = Pair::new(PairOptions::default()) else { return };
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
                let program = bpf::load(&bpf::assemble(maps), LoadOptions { name, parts: false });
                let program = program.unwrap();
                let (id, _) = bpf::program_info(program.as_fd()).unwrap();
                let index = Device::look("xdp", INTERFACE).unwrap().index;
                let link = bpf::attach(program.as_fd(), index, GENERIC).unwrap();
                let spec = Spec::parse("xdp:veth0", xdp::OPTIONS_HELP).unwrap();
                let error = xdp::open(&spec, &FrameOptions::default()).err().unwrap();
                let there = Device::look("xdp", INTERFACE).unwrap().program;
                assert_eq!(there, Some(id), "it is still attached");
                drop(link);
                xdp::open(&spec, &FrameOptions::default()).unwrap();
                error.to_string()
            });
            assert!(error.contains(advice) && error.contains("left alone"), "{error}");
            assert!(error.contains("or use packet:veth0"), "{error}");
        }
    }
}
