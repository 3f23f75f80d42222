//! Our XDP program: wanted frames go to the socket of their queue, all others to the kernel.
//!
//! ```text
//!   Ethernet ─▶ VLAN as wanted? ─▶ everything ───────────────────────────────┐
//!                    │            further Ethernet type ─────────────────────┤
//!                    │            ARP, about an own address ─────────────────┤
//!                    │            IPv4, our address ─▶ UDP to a wanted port ─┤
//!                    │                             └▶ own address: the rest ─┤
//!                    ▼ none                                                  ▼
//!                 to the kernel ◀── no socket for the queue ─── count, rate limit ─▶ socket
//! ```
//!
//! IPv4 headers with options and fragments are not matched to ports: the kernel handles them.
//! Sources: `Documentation/bpf/` (program types, `map_xskmap`), `Documentation/networking/af_xdp`.

use millstream_host::bpf::{AluOp, Asm, BpfHelper, If, Insn, Label, Reg, Reg::*, Size};

use super::maps::{
    ADDRESSES_MAX, ETHERTYPES_MAX, EVERYTHING, OWN_ADDRESSES, ProgramCounts, QUEUES_MAX, QueueRow,
    ROW_SHIFT, Rules, UNTAGGED, queues_at,
};

/// The offset of a field of a map's value.
macro_rules! at {
    ($value:ty, $field:ident) => {
        std::mem::offset_of!($value, $field) as i16
    };
}

/// `enum xdp_action`.
const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;
const XDP_REDIRECT: i32 = 4;

/// Offsets in `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RX_QUEUE: i16 = 16;

/// Returns a number in the form in which two bytes of network order are loaded.
const fn be(number: u16) -> i32 {
    number.to_be() as i32
}

/// The maps of the program, and the values that are constant in it.
#[derive(Debug, Clone, Copy)]
pub struct Descriptors {
    pub rules: i32,
    pub counters: i32,
    pub sockets: i32,
    /// The number of processors with counters of their own.
    pub cpus: u32,
    /// Frames may come in several parts.
    pub parts: bool,
}

/// Assembles the program.
#[must_use]
pub fn assemble(maps: Descriptors) -> Vec<Insn> {
    let mut asm = Asm::default();
    let [pass, other, deliver] = [0; 3].map(|_| asm.label());
    let ends = Ends { pass, other, deliver };
    // R6: context; R9: rules; R2, R3: the frame's first byte and the end of the readable bytes.
    asm.alu(AluOp::Move, R6, R1);
    asm.map_value(R9, maps.rules);
    asm.load(Size::Word, R2, R6, DATA);
    asm.load(Size::Word, R3, R6, DATA_END);
    ethernet(&mut asm, ends);
    let ipv4 = asm.label();
    kinds(&mut asm, ends, ipv4);
    arp(&mut asm, ends);
    asm.place(ipv4);
    ip(&mut asm, ends);
    asm.place(other);
    asm.alu_imm(AluOp::Move, R7, 0);
    asm.place(deliver);
    count(&mut asm, maps);
    rate_guard(&mut asm, maps);
    redirect(&mut asm, maps);
    asm.place(pass);
    asm.alu_imm(AluOp::Move, R0, XDP_PASS);
    asm.exit();
    asm.finish()
}

/// The possible destinations of a frame.
#[derive(Clone, Copy)]
struct Ends {
    /// The kernel.
    pass: Label,
    /// Wanted, counted in row 0.
    other: Label,
    /// Wanted, counted in row R7.
    deliver: Label,
}

/// Jumps to `short` unless `bytes` can be read from `at` on. R0 is lost.
fn needs(asm: &mut Asm, at: Reg, bytes: i32, short: Label) {
    asm.alu(AluOp::Move, R0, at);
    asm.alu_imm(AluOp::Add, R0, bytes);
    asm.jump_if(If::Above, R0, R3, short);
}

/// Puts the Ethernet type into R5, the address of the rest into R8, the flags into R4.
fn ethernet(asm: &mut Asm, ends: Ends) {
    let untagged = asm.label();
    needs(asm, R2, 14, ends.pass);
    asm.load(Size::Half, R5, R2, 12);
    asm.alu(AluOp::Move, R8, R2);
    asm.alu_imm(AluOp::Add, R8, 14);
    asm.alu_imm(AluOp::Move, R7, UNTAGGED as i32);
    asm.jump_if_imm(If::NotEqual, R5, be(0x8100), untagged);
    needs(asm, R2, 18, ends.pass);
    asm.load(Size::Half, R7, R2, 14);
    asm.swap16(R7);
    asm.alu_imm(AluOp::And, R7, 0x0fff);
    asm.load(Size::Half, R5, R2, 16);
    asm.alu_imm(AluOp::Add, R8, 4);
    // A tag with VLAN 0 carries a priority only (802.1Q, 9.6).
    asm.jump_if_imm(If::NotEqual, R7, 0, untagged);
    asm.alu_imm(AluOp::Move, R7, UNTAGGED as i32);
    asm.place(untagged);
    asm.load(Size::Word, R4, R9, at!(Rules, flags));
    asm.jump_if_imm(If::AnyBit, R4, EVERYTHING as i32, ends.other);
    asm.load(Size::Word, R1, R9, at!(Rules, vlan));
    asm.jump_if(If::NotEqual, R7, R1, ends.pass);
}

/// Branches by Ethernet type; ARP falls through.
fn kinds(asm: &mut Asm, ends: Ends, ipv4: Label) {
    asm.jump_if_imm(If::Equal, R5, be(0x0800), ipv4);
    for index in 0..ETHERTYPES_MAX {
        asm.load(Size::Half, R1, R9, at!(Rules, ethertypes) + 2 * index as i16);
        asm.jump_if(If::Equal, R5, R1, ends.other);
    }
    asm.jump_if_imm(If::NotEqual, R5, be(0x0806), ends.pass);
}

/// ARP (RFC 826): wanted if the sender or the target is an own address.
fn arp(asm: &mut Asm, ends: Ends) {
    let own = asm.label();
    asm.jump_if_imm(If::AnyBit, R4, OWN_ADDRESSES as i32, own);
    asm.jump(ends.pass);
    asm.place(own);
    needs(asm, R8, 28, ends.pass);
    asm.load(Size::Word, R1, R8, 24);
    asm.load(Size::Word, R5, R8, 14);
    for index in 0..ADDRESSES_MAX {
        asm.load(Size::Word, R0, R9, at!(Rules, addresses) + 4 * index as i16);
        asm.jump_if(If::Equal, R1, R0, ends.other);
        asm.jump_if(If::Equal, R5, R0, ends.other);
    }
    asm.jump(ends.pass);
}

/// IPv4 (RFC 791) and UDP (RFC 768).
fn ip(asm: &mut Asm, ends: Ends) {
    let [ours, no_port] = [0; 2].map(|_| asm.label());
    needs(asm, R8, 20, ends.pass);
    asm.load(Size::Word, R1, R8, 16);
    for index in 0..ADDRESSES_MAX {
        asm.load(Size::Word, R0, R9, at!(Rules, addresses) + 4 * index as i16);
        asm.jump_if(If::Equal, R1, R0, ours);
    }
    // Frames to a broadcast address have the broadcast Ethernet address; only wanted ports are
    // wanted of them, so the flags are cleared.
    asm.load(Size::Word, R0, R2, 0);
    asm.alu_imm(AluOp::Add, R0, 1);
    asm.alu_imm(AluOp::ShiftLeft, R0, 32);
    asm.jump_if_imm(If::NotEqual, R0, 0, ends.pass);
    asm.load(Size::Half, R0, R2, 4);
    asm.jump_if_imm(If::NotEqual, R0, 0xffff, ends.pass);
    asm.alu_imm(AluOp::Move, R4, 0);
    asm.place(ours);
    asm.load(Size::Byte, R0, R8, 0);
    asm.jump_if_imm(If::NotEqual, R0, 0x45, no_port);
    asm.load(Size::Byte, R0, R8, 9);
    asm.jump_if_imm(If::NotEqual, R0, libc::IPPROTO_UDP, no_port);
    // More fragments, or an offset: a fragment.
    asm.load(Size::Half, R0, R8, 6);
    asm.jump_if_imm(If::AnyBit, R0, be(0x3fff), no_port);
    needs(asm, R8, 28, no_port);
    asm.load(Size::Half, R1, R8, 22);
    asm.swap16(R1);
    asm.alu_imm(AluOp::And, R1, 0xffff);
    asm.alu(AluOp::Move, R0, R9);
    asm.alu(AluOp::Add, R0, R1);
    asm.load(Size::Byte, R7, R0, at!(Rules, ports));
    asm.jump_if_imm(If::NotEqual, R7, 0, ends.deliver);
    asm.place(no_port);
    asm.jump_if_imm(If::AnyBit, R4, OWN_ADDRESSES as i32, ends.other);
    asm.jump(ends.pass);
}

/// Counts the frame in row R7 of this processor; puts the row's address into R7.
fn count(asm: &mut Asm, maps: Descriptors) {
    if maps.parts {
        asm.alu(AluOp::Move, R1, R6);
        asm.call(BpfHelper::BufferLength);
        asm.alu(AluOp::Move, R8, R0);
    } else {
        asm.load(Size::Word, R8, R6, DATA_END);
        asm.load(Size::Word, R1, R6, DATA);
        asm.alu(AluOp::Sub, R8, R1);
    }
    // A program runs to its end on one processor, so no other processor writes this row.
    asm.call(BpfHelper::ProcessorId);
    asm.alu_imm(AluOp::And, R0, maps.cpus as i32 - 1);
    asm.alu_imm(AluOp::ShiftLeft, R7, maps.cpus.trailing_zeros() as i32);
    asm.alu(AluOp::Add, R7, R0);
    asm.alu_imm(AluOp::ShiftLeft, R7, ROW_SHIFT);
    asm.map_value(R1, maps.counters);
    asm.alu(AluOp::Add, R1, R7);
    asm.alu(AluOp::Move, R7, R1);
    add(asm, at!(ProgramCounts, frames), None);
    add(asm, at!(ProgramCounts, bytes), Some(R8));
}

/// Adds a register, or one, to a counter of the row. R1 is lost.
fn add(asm: &mut Asm, counter: i16, register: Option<Reg>) {
    asm.load(Size::Double, R1, R7, counter);
    match register {
        Some(register) => asm.alu(AluOp::Add, R1, register),
        None => asm.alu_imm(AluOp::Add, R1, 1),
    }
    asm.store(Size::Double, R7, counter, R1);
}

/// Drops frames beyond the limit of an interval, by queue. Two processors that begin the same
/// interval at once may pass a few more.
fn rate_guard(asm: &mut Asm, maps: Descriptors) {
    let [passes, same] = [0; 2].map(|_| asm.label());
    asm.load(Size::Word, R8, R9, at!(Rules, interval_frames));
    asm.jump_if_imm(If::Equal, R8, 0, passes);
    asm.call(BpfHelper::KtimeNs);
    asm.load(Size::Word, R1, R9, at!(Rules, interval_shift));
    asm.alu_imm(AluOp::And, R1, 63);
    asm.alu(AluOp::ShiftRight, R0, R1);
    at_queue(asm, maps);
    asm.load(Size::Double, R2, R1, at!(QueueRow, interval));
    asm.jump_if(If::Equal, R2, R0, same);
    asm.store(Size::Double, R1, at!(QueueRow, interval), R0);
    asm.store_imm(Size::Double, R1, at!(QueueRow, interval_frames), 0);
    asm.place(same);
    asm.alu_imm(AluOp::Move, R2, 1);
    asm.fetch_add(R1, at!(QueueRow, interval_frames), R2);
    asm.jump_if(If::Below, R2, R8, passes);
    add(asm, at!(ProgramCounts, limited), None);
    asm.alu_imm(AluOp::Move, R0, XDP_DROP);
    asm.exit();
    asm.place(passes);
}

/// Puts the address of the row of the frame's queue into R1. R2 is lost.
fn at_queue(asm: &mut Asm, maps: Descriptors) {
    asm.load(Size::Word, R2, R6, RX_QUEUE);
    asm.alu_imm(AluOp::And, R2, QUEUES_MAX as i32 - 1);
    asm.alu_imm(AluOp::ShiftLeft, R2, ROW_SHIFT);
    asm.alu_imm(AluOp::Add, R2, queues_at(maps.cpus) as i32);
    asm.map_value(R1, maps.counters);
    asm.alu(AluOp::Add, R1, R2);
}

/// Sends the frame to the socket of its queue; without one, counts it and passes it to the kernel.
fn redirect(asm: &mut Asm, maps: Descriptors) {
    let unwatched = asm.label();
    asm.load(Size::Word, R2, R6, RX_QUEUE);
    asm.map(R1, maps.sockets);
    asm.alu_imm(AluOp::Move, R3, XDP_PASS);
    asm.call(BpfHelper::RedirectMap);
    asm.jump_if_imm(If::NotEqual, R0, XDP_REDIRECT, unwatched);
    asm.exit();
    asm.place(unwatched);
    add(asm, at!(ProgramCounts, unwatched), None);
    at_queue(asm, maps);
    asm.alu_imm(AluOp::Move, R2, 1);
    asm.fetch_add(R1, at!(QueueRow, unwatched), R2);
}
