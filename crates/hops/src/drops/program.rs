//! The program at `skb:kfree_skb`: what a dropped packet was.
//!
//! ```text
//!   packet ─▶ IPv4 at its network header, or else at its data? ─▶ UDP, first fragment?
//!          ─▶ a watched port? ─▶ first bytes, datagrams, namespace, reason ─▶ record
//! ```
//!
//! Headers lie in the packet's linear part, which the program reads by their address. The first
//! bytes of the datagram may lie in pages, which only the kernel's `bpf_dynptr_from_skb` finds.

use millstream_host::bpf::{
    AluOp, Asm, BpfHelper, Btf, BtfError, If, Insn, Label, Reg, Reg::*, Size,
};

/// The memory shared with the program.
#[repr(C)]
pub struct Shared {
    /// Records for which there was no room.
    pub missed: u64,
    /// Whether a port is watched; the index is the port in network order.
    pub ports: [u8; 65536],
}

/// What the program says of one packet; ports and addresses are in network order.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct DropRecord {
    /// When, nanoseconds of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// The address of the instruction that dropped it.
    pub location: u64,
    pub source: u32,
    pub destination: u32,
    pub source_port: u16,
    pub destination_port: u16,
    /// The number in `enum skb_drop_reason`.
    pub reason: u32,
    pub header: [u8; 8],
    /// The inode of the network namespace, or 0.
    pub namespace: u32,
    /// The datagrams of a train; 0 for a single one.
    pub segments: u16,
    /// The length of the UDP header and what follows, in network order.
    pub length: u16,
    /// Further packets hang on this one, and are dropped one by one.
    pub has_list: u32,
    /// `header` was read.
    pub has_header: u32,
}

/// Where the members of the kernel's structures lie.
#[derive(Debug, Clone, Copy)]
pub struct Offsets {
    head: i16,
    data: i16,
    tail: i16,
    end: i16,
    network_header: i16,
    gso_segs: i16,
    frag_list: i16,
    device: i16,
    device_net: i16,
    socket_net: i16,
    net_inode: i16,
}

impl Offsets {
    pub fn new(types: &Btf) -> Result<Self, BtfError> {
        let packet = |member| types.offset("sk_buff", member);
        Ok(Self {
            head: packet("head")?,
            data: packet("data")?,
            tail: packet("tail")?,
            end: packet("end")?,
            network_header: packet("network_header")?,
            gso_segs: types.offset("skb_shared_info", "gso_segs")?,
            frag_list: types.offset("skb_shared_info", "frag_list")?,
            device: packet("dev")?,
            device_net: types.offset("net_device", "nd_net.net")?,
            socket_net: types.offset("sock", "__sk_common.skc_net.net")?,
            net_inode: types.offset("net", "ns.inum")?,
        })
    }
}

/// What the program is made for.
#[derive(Debug, Clone, Copy)]
pub struct DropTarget {
    pub offsets: Offsets,
    /// The arguments of the tracepoint.
    pub arguments: usize,
    /// The kernel's function that reads packets in pages, where programs may use it (Linux 6.12).
    pub from_packet: Option<u32>,
    /// The descriptor of the map of a [`Shared`].
    pub shared: i32,
    /// The descriptor of the map of records.
    pub records: i32,
}

const RECORD: i16 = -(size_of::<DropRecord>() as i16);
const BUFFER_BYTES: i16 = 24;
const BUFFER: i16 = RECORD - BUFFER_BYTES;
const DYNPTR: i16 = BUFFER - 16;

/// The arguments of the tracepoint by their position in the context.
const LOCATION: i16 = 8;
const REASON: i16 = 16;
const SOCKET: i16 = 24;

/// No process waits for records (BPF_RB_NO_WAKEUP).
const NO_WAKEUP: i32 = 1;

macro_rules! at {
    ($field:ident) => {
        RECORD + std::mem::offset_of!(DropRecord, $field) as i16
    };
}

/// Returns the program.
pub fn assemble(target: DropTarget) -> Vec<Insn> {
    let DropTarget { offsets, arguments, shared, records, .. } = target;
    let mut asm = Asm::default();
    let asm = &mut asm;
    let [found, data, wanted, done, out] = [0; 5].map(|_| asm.label());
    asm.alu(AluOp::Move, R6, R1);
    asm.load(Size::Double, R7, R6, 0);
    asm.load(Size::Double, R8, R7, offsets.head);
    asm.load(Size::Half, R9, R7, offsets.network_header);
    asm.alu(AluOp::Add, R9, R8);
    find_udp(asm, found, data);
    // Behind a driver and before the kernel's stack, the network header is not set.
    asm.place(data);
    asm.load(Size::Double, R9, R7, offsets.data);
    find_udp(asm, found, out);
    asm.place(found);
    for double in (0..size_of::<DropRecord>()).step_by(8) {
        asm.store_imm(Size::Double, R10, RECORD + double as i16, 0);
    }
    for (from, to) in [(12, at!(source)), (16, at!(destination))] {
        asm.load(Size::Word, R0, R10, BUFFER + from);
        asm.store(Size::Word, R10, to, R0);
    }
    // The length of the IPv4 header, in words of 4 bytes.
    asm.load(Size::Byte, R1, R10, BUFFER);
    asm.alu_imm(AluOp::And, R1, 15);
    asm.alu_imm(AluOp::ShiftLeft, R1, 2);
    asm.alu(AluOp::Add, R9, R1);
    probe(asm, R9, 16, out);
    for (from, to) in [(0, at!(source_port)), (2, at!(destination_port)), (4, at!(length))] {
        asm.load(Size::Half, R0, R10, BUFFER + from);
        asm.store(Size::Half, R10, to, R0);
    }
    for port in [at!(source_port), at!(destination_port)] {
        asm.map_value(R1, shared);
        asm.load(Size::Half, R0, R10, port);
        asm.alu(AluOp::Add, R1, R0);
        asm.load(Size::Byte, R0, R1, std::mem::offset_of!(Shared, ports) as i16);
        asm.jump_if_imm(If::NotEqual, R0, 0, wanted);
    }
    asm.place(out);
    asm.alu_imm(AluOp::Move, R0, 0);
    asm.exit();
    asm.place(wanted);
    first_bytes(asm, target);
    train(asm, offsets);
    namespace(asm, target);
    asm.call(BpfHelper::KtimeNs);
    asm.store(Size::Double, R10, at!(at_ns), R0);
    asm.load(Size::Double, R0, R6, LOCATION);
    asm.store(Size::Double, R10, at!(location), R0);
    if arguments > 2 {
        asm.load(Size::Double, R0, R6, REASON);
        asm.store(Size::Word, R10, at!(reason), R0);
    }
    asm.map(R1, records);
    address(asm, R2, RECORD);
    asm.alu_imm(AluOp::Move, R3, size_of::<DropRecord>() as i32);
    asm.alu_imm(AluOp::Move, R4, NO_WAKEUP);
    asm.call(BpfHelper::RingOutput);
    asm.jump_if_imm(If::Equal, R0, 0, done);
    asm.map_value(R1, shared);
    asm.alu_imm(AluOp::Move, R2, 1);
    asm.atomic_add(R1, std::mem::offset_of!(Shared, missed) as i16, R2);
    asm.place(done);
    asm.alu_imm(AluOp::Move, R0, 0);
    asm.exit();
    std::mem::take(asm).finish()
}

/// `dst` = the address of a place on the stack.
fn address(asm: &mut Asm, dst: Reg, place: i16) {
    asm.alu(AluOp::Move, dst, R10);
    asm.alu_imm(AluOp::Add, dst, place.into());
}

/// Reads `bytes` at an address into the buffer; jumps where that is not possible.
fn probe(asm: &mut Asm, from: Reg, bytes: i32, failed: Label) {
    asm.alu(AluOp::Move, R3, from);
    address(asm, R1, BUFFER);
    asm.alu_imm(AluOp::Move, R2, bytes);
    asm.call(BpfHelper::ProbeRead);
    asm.jump_if_imm(If::NotEqual, R0, 0, failed);
}

/// Reads 20 bytes at R9; jumps by whether they are an IPv4 header with the beginning of a UDP
/// datagram behind it.
fn find_udp(asm: &mut Asm, found: Label, other: Label) {
    probe(asm, R9, 20, other);
    asm.load(Size::Byte, R0, R10, BUFFER);
    asm.jump_if_imm(If::Below, R0, 0x45, other);
    asm.jump_if_imm(If::Above, R0, 0x4f, other);
    asm.load(Size::Byte, R0, R10, BUFFER + 9);
    asm.jump_if_imm(If::NotEqual, R0, libc::IPPROTO_UDP, other);
    asm.load(Size::Half, R0, R10, BUFFER + 6);
    asm.jump_if_imm(If::AnyBit, R0, i32::from(0x1fff_u16.to_be()), other);
    asm.jump(found);
}

/// Puts the first bytes of the datagram into the record: of the buffer, which has what follows R9,
/// the UDP header; or of a page.
fn first_bytes(asm: &mut Asm, target: DropTarget) {
    let [elsewhere, read, unknown] = [0; 3].map(|_| asm.label());
    // The end of the linear part.
    asm.load(Size::Word, R1, R7, target.offsets.tail);
    asm.alu(AluOp::Add, R1, R8);
    asm.alu(AluOp::Move, R2, R9);
    asm.alu_imm(AluOp::Add, R2, 16);
    asm.jump_if(If::Above, R2, R1, elsewhere);
    asm.load(Size::Double, R0, R10, BUFFER + 8);
    asm.store(Size::Double, R10, at!(header), R0);
    asm.jump(read);
    asm.place(elsewhere);
    if let Some(function) = target.from_packet {
        asm.alu(AluOp::Move, R1, R7);
        asm.alu_imm(AluOp::Move, R2, 0);
        address(asm, R3, DYNPTR);
        asm.call_kernel(function);
        asm.jump_if_imm(If::NotEqual, R0, 0, unknown);
        address(asm, R1, at!(header));
        asm.alu_imm(AluOp::Move, R2, 8);
        address(asm, R3, DYNPTR);
        asm.alu(AluOp::Move, R4, R9);
        asm.alu_imm(AluOp::Add, R4, 8);
        // Its positions count from the packet's data.
        asm.load(Size::Double, R5, R7, target.offsets.data);
        asm.alu(AluOp::Sub, R4, R5);
        asm.alu_imm(AluOp::Move, R5, 0);
        asm.call(BpfHelper::DynptrRead);
        asm.jump_if_imm(If::NotEqual, R0, 0, unknown);
    } else {
        asm.jump(unknown);
    }
    asm.place(read);
    asm.store_imm(Size::Word, R10, at!(has_header), 1);
    asm.place(unknown);
}

/// Puts the number of datagrams into the record. R8 is lost.
fn train(asm: &mut Asm, offsets: Offsets) {
    let unknown = asm.label();
    asm.load(Size::Word, R1, R7, offsets.end);
    asm.alu(AluOp::Add, R8, R1);
    asm.alu_imm(AluOp::Add, R8, offsets.gso_segs.into());
    probe(asm, R8, 2, unknown);
    asm.load(Size::Half, R0, R10, BUFFER);
    asm.store(Size::Half, R10, at!(segments), R0);
    asm.alu_imm(AluOp::Add, R8, (offsets.frag_list - offsets.gso_segs).into());
    probe(asm, R8, 8, unknown);
    asm.load(Size::Double, R0, R10, BUFFER);
    asm.jump_if_imm(If::Equal, R0, 0, unknown);
    asm.store_imm(Size::Word, R10, at!(has_list), 1);
    asm.place(unknown);
}

/// Puts the namespace into the record: of the packet's device, or, as a socket's queue writes other
/// things over that, of the socket.
fn namespace(asm: &mut Asm, target: DropTarget) {
    let DropTarget { offsets, arguments, .. } = target;
    let [socket, inode, unknown] = [0; 3].map(|_| asm.label());
    asm.load(Size::Double, R8, R7, offsets.device);
    asm.alu_imm(AluOp::Add, R8, offsets.device_net.into());
    probe(asm, R8, 8, socket);
    asm.jump(inode);
    asm.place(socket);
    if arguments > 3 {
        asm.load(Size::Double, R8, R6, SOCKET);
        asm.jump_if_imm(If::Equal, R8, 0, unknown);
        asm.alu_imm(AluOp::Add, R8, offsets.socket_net.into());
        probe(asm, R8, 8, unknown);
    } else {
        asm.jump(unknown);
    }
    asm.place(inode);
    asm.load(Size::Double, R8, R10, BUFFER);
    asm.alu_imm(AluOp::Add, R8, offsets.net_inode.into());
    probe(asm, R8, 4, unknown);
    asm.load(Size::Word, R0, R10, BUFFER);
    asm.store(Size::Word, R10, at!(namespace), R0);
    asm.place(unknown);
}
