//! The packets of flows that the kernel drops, each with the kernel's reason.

mod program;
mod taps;

use std::collections::HashMap;
use std::mem::offset_of;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use millstream_host::bpf::{Btf, MapKind, RecordRing};
use millstream_host::mapping::Mapping;
use millstream_watch::DroppedPacket;
use rustix::mm::ProtFlags;

use crate::probe::{ProbeError, attach, create_map, real_minus_monotonic_ns};
use program::{DropRecord, DropTarget, Offsets, Shared};
use taps::Taps;

/// The room for records: 25 000 packets.
const RECORDS_BYTES: u32 = 1 << 21;

/// The reason of a packet that a packet socket had no room for, since Linux 6.10: a copy, and not a
/// loss of the flow.
const TAP: &str = "PACKET_SOCK_ERROR";

/// The packets of watched ports that the kernel drops, in all network namespaces, from now on.
#[derive(Debug)]
pub struct DropWatch {
    shared: Mapping,
    records: RecordRing,
    reasons: HashMap<u32, String>,
    taps: Taps,
    list: List,
    _attached: OwnedFd,
}

impl DropWatch {
    /// Puts a program at the tracepoint `skb:kfree_skb`; no port is watched yet.
    ///
    /// # Errors
    /// [`ProbeError`]: the kernel has no BTF (CONFIG_DEBUG_INFO_BTF) or is older than Linux 5.8, or
    /// this process has neither CAP_BPF with CAP_PERFMON nor CAP_SYS_ADMIN.
    pub fn open() -> Result<Self, ProbeError> {
        let types = Btf::of_kernel(Path::new("/"))?;
        // Linux before 6.12 has the function, but not for programs at tracepoints.
        match types.function("bpf_dynptr_from_skb") {
            Some(function) => match Self::with(&types, Some(function)) {
                Err(ProbeError::Refused(_)) => Self::with(&types, None),
                opened => opened,
            },
            None => Self::with(&types, None),
        }
    }

    fn with(types: &Btf, from_packet: Option<u32>) -> Result<Self, ProbeError> {
        let point = types.tracepoint("kfree_skb")?;
        let offsets = Offsets::new(types)?;
        let bytes = size_of::<Shared>();
        let shared = create_map("ms_drop_ports", MapKind::Value { bytes: bytes as u32 }, bytes)?;
        let kind = MapKind::Records { bytes: RECORDS_BYTES };
        let records = create_map("ms_drops", kind, RECORDS_BYTES as usize)?;
        let code = program::assemble(DropTarget {
            offsets,
            arguments: point.arguments,
            from_packet,
            shared: shared.as_raw_fd(),
            records: records.as_raw_fd(),
        });
        let attached = attach("ms_drops", point, &code)?;
        let names = types.enumeration("skb_drop_reason");
        let reasons: HashMap<_, _> =
            names.into_iter().map(|(number, name)| (number, without_prefix(&name))).collect();
        let mut watch = Self {
            shared: Mapping::new(shared.as_fd(), 0, bytes, ProtFlags::READ | ProtFlags::WRITE)?,
            records: RecordRing::new(records.as_fd(), RECORDS_BYTES)?,
            reasons,
            taps: Taps::default(),
            list: List::default(),
            _attached: attached,
        };
        if !watch.tells_taps() {
            watch.taps = Taps::of_kernel(Path::new("/"));
        }
        Ok(watch)
    }

    /// Whether a copy for a packet socket is known from a loss.
    fn tells_taps(&self) -> bool {
        self.reasons.values().any(|name| name == TAP) || !self.taps.is_empty()
    }

    /// Watches these UDP ports, of senders or receivers, and no others.
    pub fn watch_ports(&mut self, ports: &[u16]) {
        let table = self.shared.at::<u8>(offset_of!(Shared, ports) as u64, 65536);
        let mut wanted = vec![false; 65536];
        ports.iter().for_each(|port| wanted[usize::from(port.to_be())] = true);
        for (index, wanted) in wanted.into_iter().enumerate() {
            // SAFETY: within the mapping; the program only reads there, a byte at a time.
            unsafe { table.add(index).write_volatile(wanted.into()) };
        }
    }

    /// Appends the packets that were dropped since the last call, in the order of their CPUs'
    /// records. Packets that were only copies for a packet socket are left out.
    pub fn read(&mut self, into: &mut Vec<DroppedPacket>) {
        let (reasons, taps, list) = (&self.reasons, &self.taps, &mut self.list);
        let offset = real_minus_monotonic_ns();
        self.records.read(|bytes| {
            let bytes: Option<&[u8; size_of::<DropRecord>()]> = bytes.first_chunk();
            // SAFETY: all bit patterns are a valid `DropRecord`, and the bytes are as many.
            let record = bytes.map(|bytes| unsafe { bytes.as_ptr().cast::<DropRecord>().read() });
            let Some(record) = record.filter(|record| !taps.have(record.location)) else { return };
            let mut packet = describe(&record, reasons, offset);
            list.correct(&record, &mut packet);
            into.extend(Some(packet).filter(|packet| packet.reason != TAP));
        });
    }

    /// Returns the packets that were not recorded so far, because they were not read in time.
    #[must_use]
    pub fn missed(&self) -> u64 {
        let missed = self.shared.at::<u64>(offset_of!(Shared, missed) as u64, 1);
        // SAFETY: within the mapping and aligned; the program may write at any time.
        unsafe { missed.read_volatile() }
    }
}

/// A packet on which others hung. They come behind it, and only the first one has the reason.
#[derive(Debug, Default)]
struct List {
    first: Option<DroppedPacket>,
    left: u16,
}

impl List {
    fn correct(&mut self, record: &DropRecord, packet: &mut DroppedPacket) {
        if record.has_list != 0 {
            *self = Self { first: Some(packet.clone()), left: record.segments.saturating_sub(1) };
            return;
        }
        let first = self.first.as_ref().filter(|first| {
            let is_flow = (first.source, first.destination) == (packet.source, packet.destination);
            is_flow && self.left > 0 && packet.reason == "NOT_SPECIFIED"
        });
        if let Some(first) = first {
            packet.reason.clone_from(&first.reason);
            self.left -= 1;
        }
    }
}

/// `SKB_DROP_REASON_NO_SOCKET` is `NO_SOCKET`, `SKB_CONSUMED` is `CONSUMED`.
fn without_prefix(name: &str) -> String {
    let name = name.strip_prefix("SKB_").unwrap_or(name);
    name.strip_prefix("DROP_REASON_").unwrap_or(name).to_owned()
}

fn describe(
    record: &DropRecord,
    reasons: &HashMap<u32, String>,
    real_minus_monotonic_ns: i64,
) -> DroppedPacket {
    let reason = match reasons.get(&record.reason) {
        Some(name) => name.clone(),
        None if reasons.is_empty() => "UNKNOWN".to_owned(),
        // A module's own reasons have no names here.
        None => format!("NUMBER_{}", record.reason),
    };
    let address = |address: u32, port: u16| {
        SocketAddrV4::new(Ipv4Addr::from(u32::from_be(address)), u16::from_be(port))
    };
    // A UDP header and at least as many bytes as we show; 0 stands for a length beyond 64 KiB.
    let length = u16::from_be(record.length);
    let has_header = record.has_header != 0 && (length >= 16 || length == 0);
    DroppedPacket {
        at_ns: record.at_ns.wrapping_add_signed(real_minus_monotonic_ns),
        reason,
        namespace: Some(record.namespace).filter(|inode| *inode > 0),
        // The packets of a list follow as records of their own.
        segments: if record.has_list != 0 { 1 } else { u32::from(record.segments).max(1) },
        source: address(record.source, record.source_port),
        destination: address(record.destination, record.destination_port),
        header: has_header.then_some(record.header),
    }
}

#[cfg(test)]
mod tests;
