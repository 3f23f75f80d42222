//! The programs at `sched:sched_wakeup` and `sched:sched_switch`: when a watched thread was ready,
//! when it ran, and who ran on its CPU meanwhile.
//!
//! ```text
//!   wake-up, or displaced by another ─▶ thread: ready since, CPU ─▶ the CPU's waiting threads
//!   every switch of that CPU ─▶ each waiting thread: who has run the longest meanwhile
//!   the thread runs ─▶ waited long? ─▶ record
//! ```

use std::mem::offset_of;

use millstream_host::bpf::{
    AluOp, Asm, BpfHelper, Btf, BtfError, If, Insn, Label, Reg, Reg::*, Size,
};

/// The threads that a CPU knows to wait for it. A thread has the place of its number modulo this;
/// one that loses it to another is no longer told who ran.
pub const PLACES: usize = 8;

/// What the programs know of a watched thread: the record of a wait, too.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub struct Waiting {
    /// From when it is ready and does not run, nanoseconds of CLOCK_MONOTONIC; 0 if it is not.
    pub ready_ns: u64,
    /// When it ran.
    pub until_ns: u64,
    /// The longest run of another thread meanwhile.
    pub longest_ns: u64,
    pub tid: u32,
    /// The CPU that it waits for.
    pub cpu: u32,
    /// The thread of the longest run; 0 where the CPU rested.
    pub longest_tid: u32,
    pub unused: u32,
    /// Its name; empty where that is not known.
    pub longest_name: [u8; 16],
}

/// What the programs know of a CPU.
#[repr(C, align(64))]
pub struct CpuRun {
    /// When the thread there began to run.
    pub since_ns: u64,
    pub tid: u32,
    pub unused: u32,
    /// The threads that wait.
    pub waiting: [u32; PLACES],
}

/// The memory shared with the programs; a [`CpuRun`] for each CPU follows.
#[repr(C, align(64))]
pub struct WaitsHead {
    /// Records for which there was no room.
    pub missed: u64,
}

/// Where the members of `struct task_struct` lie.
#[derive(Debug, Clone, Copy)]
pub struct ThreadOffsets {
    tid: i16,
    name: i16,
    state: i16,
    cpu: i16,
}

impl ThreadOffsets {
    pub fn new(types: &Btf) -> Result<Self, BtfError> {
        let member = |path| types.offset("task_struct", path);
        Ok(Self {
            tid: member("pid")?,
            name: member("comm")?,
            // As it was called before Linux 5.14, and where it lay before 5.16.
            state: member("__state").or_else(|_| member("state"))?,
            cpu: member("thread_info.cpu").or_else(|_| member("cpu"))?,
        })
    }
}

/// What the programs are made for.
#[derive(Debug, Clone, Copy)]
pub struct WaitsTarget {
    pub offsets: ThreadOffsets,
    /// CPUs with a [`CpuRun`]: a power of two.
    pub cpus: u32,
    /// The shortest wait that is recorded.
    pub threshold_ns: i32,
    /// The descriptor of the map of tid to [`Waiting`].
    pub threads: i32,
    /// The descriptor of the map that begins with [`WaitsHead`].
    pub shared: i32,
    /// The descriptor of the map of records.
    pub records: i32,
}

const KEY: i16 = -8;
const CPU: i16 = -16;
const DISPLACED: i16 = -24;
const ROW: i16 = -32;
const SINCE: i16 = -40;

/// The arguments of `sched_switch` by their position in the context: whether the thread before was
/// displaced, and both threads.
const BEFORE: i16 = 8;
const NEXT: i16 = 16;

/// No process waits for records (BPF_RB_NO_WAKEUP).
const NO_WAKEUP: i32 = 1;

const ROW_SHIFT: i32 = size_of::<CpuRun>().trailing_zeros() as i32;

macro_rules! at {
    ($of:ident, $field:ident) => {
        offset_of!($of, $field) as i16
    };
}

/// R0 = the [`Waiting`] of the thread whose number is in R0; jumps if it is not watched.
fn look_up(asm: &mut Asm, target: WaitsTarget, other: Label) {
    asm.store(Size::Word, R10, KEY, R0);
    asm.map(R1, target.threads);
    asm.alu(AluOp::Move, R2, R10);
    asm.alu_imm(AluOp::Add, R2, KEY.into());
    asm.call(BpfHelper::MapLookup);
    asm.jump_if_imm(If::Equal, R0, 0, other);
}

/// R1 = the row of the CPU in `cpu`, which is lost.
fn row(asm: &mut Asm, target: WaitsTarget, cpu: Reg) {
    asm.alu_imm(AluOp::And, cpu, target.cpus as i32 - 1);
    asm.alu_imm(AluOp::ShiftLeft, cpu, ROW_SHIFT);
    asm.map_value(R1, target.shared);
    asm.alu(AluOp::Add, R1, cpu);
    asm.alu_imm(AluOp::Add, R1, size_of::<WaitsHead>() as i32);
}

/// The thread whose [`Waiting`] is in R0 waits from the time in `now` for the CPU in R3. R1 to R5
/// are lost.
fn begin(asm: &mut Asm, target: WaitsTarget, now: Reg) {
    asm.store(Size::Double, R0, at!(Waiting, ready_ns), now);
    asm.store(Size::Word, R0, at!(Waiting, cpu), R3);
    asm.store_imm(Size::Double, R0, at!(Waiting, longest_ns), 0);
    asm.store_imm(Size::Word, R0, at!(Waiting, longest_tid), 0);
    row(asm, target, R3);
    asm.load(Size::Word, R2, R0, at!(Waiting, tid));
    asm.alu(AluOp::Move, R3, R2);
    asm.alu_imm(AluOp::And, R3, PLACES as i32 - 1);
    asm.alu_imm(AluOp::ShiftLeft, R3, 2);
    asm.alu(AluOp::Add, R1, R3);
    asm.store(Size::Word, R1, at!(CpuRun, waiting), R2);
}

/// Returns the program at `sched_wakeup`.
pub fn wakeup(target: WaitsTarget) -> Vec<Insn> {
    let mut asm = Asm::default();
    let out = asm.label();
    asm.load(Size::Double, R7, R1, 0);
    asm.load(Size::Word, R0, R7, target.offsets.tid);
    look_up(&mut asm, target, out);
    asm.alu(AluOp::Move, R8, R0);
    asm.load(Size::Double, R1, R8, at!(Waiting, ready_ns));
    asm.jump_if_imm(If::NotEqual, R1, 0, out);
    asm.call(BpfHelper::KtimeNs);
    asm.alu(AluOp::Move, R9, R0);
    asm.alu(AluOp::Move, R0, R8);
    asm.load(Size::Word, R3, R7, target.offsets.cpu);
    begin(&mut asm, target, R9);
    asm.place(out);
    asm.alu_imm(AluOp::Move, R0, 0);
    asm.exit();
    asm.finish()
}

/// Returns the program at `sched_switch`. In it, R7 and R8 are the thread before and the next one,
/// R9 is now.
pub fn switch(target: WaitsTarget) -> Vec<Insn> {
    let mut asm = Asm::default();
    let out = asm.label();
    asm.load(Size::Double, R7, R1, BEFORE);
    asm.load(Size::Double, R8, R1, NEXT);
    asm.load(Size::Double, R0, R1, 0);
    asm.store(Size::Double, R10, DISPLACED, R0);
    asm.call(BpfHelper::KtimeNs);
    asm.alu(AluOp::Move, R9, R0);
    asm.call(BpfHelper::ProcessorId);
    asm.store(Size::Double, R10, CPU, R0);
    row(&mut asm, target, R0);
    asm.store(Size::Double, R10, ROW, R1);
    asm.load(Size::Double, R0, R1, at!(CpuRun, since_ns));
    asm.store(Size::Double, R10, SINCE, R0);
    asm.store(Size::Double, R1, at!(CpuRun, since_ns), R9);
    asm.load(Size::Word, R0, R8, target.offsets.tid);
    asm.store(Size::Word, R1, at!(CpuRun, tid), R0);
    for place in 0..PLACES as i16 {
        account(&mut asm, target, at!(CpuRun, waiting) + 4 * place);
    }
    leaves(&mut asm, target);
    comes(&mut asm, target, out);
    asm.place(out);
    asm.alu_imm(AluOp::Move, R0, 0);
    asm.exit();
    asm.finish()
}

/// A thread that waits at a place of this CPU sees the run that ends.
fn account(asm: &mut Asm, target: WaitsTarget, place: i16) {
    let [gone, done, clipped] = [0; 3].map(|_| asm.label());
    asm.load(Size::Double, R1, R10, ROW);
    asm.load(Size::Word, R0, R1, place);
    asm.jump_if_imm(If::Equal, R0, 0, done);
    look_up(asm, target, gone);
    asm.load(Size::Double, R1, R0, at!(Waiting, ready_ns));
    asm.jump_if_imm(If::Equal, R1, 0, gone);
    asm.load(Size::Double, R2, R10, SINCE);
    asm.jump_if(If::Above, R1, R2, clipped);
    asm.alu(AluOp::Move, R1, R2);
    asm.place(clipped);
    asm.jump_if(If::Above, R1, R9, done);
    asm.alu(AluOp::Move, R2, R9);
    asm.alu(AluOp::Sub, R2, R1);
    asm.load(Size::Double, R1, R0, at!(Waiting, longest_ns));
    asm.jump_if(If::Below, R2, R1, done);
    asm.store(Size::Double, R0, at!(Waiting, longest_ns), R2);
    asm.load(Size::Word, R1, R7, target.offsets.tid);
    asm.store(Size::Word, R0, at!(Waiting, longest_tid), R1);
    asm.alu(AluOp::Move, R1, R0);
    asm.alu_imm(AluOp::Add, R1, offset_of!(Waiting, longest_name) as i32);
    asm.alu_imm(AluOp::Move, R2, 16);
    asm.alu(AluOp::Move, R3, R7);
    asm.alu_imm(AluOp::Add, R3, target.offsets.name.into());
    asm.call(BpfHelper::ProbeRead);
    asm.jump(done);
    asm.place(gone);
    asm.load(Size::Double, R1, R10, ROW);
    asm.store_imm(Size::Word, R1, place, 0);
    asm.place(done);
}

/// The thread before is ready from now if it was displaced; if it sleeps or is stopped, it is not.
fn leaves(asm: &mut Asm, target: WaitsTarget) {
    let [rests, ready, other] = [0; 3].map(|_| asm.label());
    asm.load(Size::Word, R0, R7, target.offsets.tid);
    look_up(asm, target, other);
    asm.load(Size::Double, R1, R10, DISPLACED);
    asm.jump_if_imm(If::NotEqual, R1, 0, ready);
    asm.load(Size::Word, R1, R7, target.offsets.state);
    asm.jump_if_imm(If::NotEqual, R1, 0, rests);
    asm.place(ready);
    asm.load(Size::Double, R3, R10, CPU);
    begin(asm, target, R9);
    asm.jump(other);
    asm.place(rests);
    asm.store_imm(Size::Double, R0, at!(Waiting, ready_ns), 0);
    asm.place(other);
}

/// The next thread waits no longer; a long wait is recorded.
fn comes(asm: &mut Asm, target: WaitsTarget, out: Label) {
    let [record, waited, clipped] = [0; 3].map(|_| asm.label());
    asm.load(Size::Word, R0, R8, target.offsets.tid);
    look_up(asm, target, out);
    asm.alu(AluOp::Move, R6, R0);
    asm.load(Size::Double, R1, R6, at!(Waiting, ready_ns));
    asm.jump_if_imm(If::Equal, R1, 0, out);
    asm.jump_if(If::Above, R1, R9, waited);
    asm.alu(AluOp::Move, R2, R9);
    asm.alu(AluOp::Sub, R2, R1);
    asm.jump_if_imm(If::Below, R2, target.threshold_ns, waited);
    asm.store(Size::Double, R6, at!(Waiting, until_ns), R9);
    // Where it was moved, the run on the CPU that it waited for still goes on.
    asm.load(Size::Word, R3, R6, at!(Waiting, cpu));
    asm.load(Size::Double, R2, R10, CPU);
    asm.jump_if(If::Equal, R2, R3, record);
    asm.alu(AluOp::Move, R4, R1);
    row(asm, target, R3);
    asm.load(Size::Double, R2, R1, at!(CpuRun, since_ns));
    asm.jump_if(If::Above, R4, R2, clipped);
    asm.alu(AluOp::Move, R4, R2);
    asm.place(clipped);
    asm.jump_if(If::Above, R4, R9, record);
    asm.alu(AluOp::Move, R2, R9);
    asm.alu(AluOp::Sub, R2, R4);
    asm.load(Size::Double, R3, R6, at!(Waiting, longest_ns));
    asm.jump_if(If::Below, R2, R3, record);
    asm.load(Size::Word, R2, R1, at!(CpuRun, tid));
    asm.store(Size::Word, R6, at!(Waiting, longest_tid), R2);
    asm.store_imm(Size::Double, R6, at!(Waiting, longest_name), 0);
    asm.place(record);
    asm.map(R1, target.records);
    asm.alu(AluOp::Move, R2, R6);
    asm.alu_imm(AluOp::Move, R3, size_of::<Waiting>() as i32);
    asm.alu_imm(AluOp::Move, R4, NO_WAKEUP);
    asm.call(BpfHelper::RingOutput);
    asm.jump_if_imm(If::Equal, R0, 0, waited);
    asm.map_value(R1, target.shared);
    asm.alu_imm(AluOp::Move, R2, 1);
    asm.atomic_add(R1, at!(WaitsHead, missed), R2);
    asm.place(waited);
    asm.store_imm(Size::Double, R6, at!(Waiting, ready_ns), 0);
}
