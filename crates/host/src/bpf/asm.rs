//! A tiny eBPF assembler: the instructions that our programs need, with labels.
//!
//! Source: the kernel's `Documentation/bpf/standardization/instruction-set.rst`. An instruction is
//! 8 bytes: opcode, destination and source register, 16-bit offset, 32-bit immediate; only the load
//! of a 64-bit immediate takes two.

/// A register. `R0` holds results, `R1`–`R5` arguments (lost in a call); a call preserves
/// `R6`–`R9`; `R10` is the end of the stack (512 bytes), and only read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// Bytes that a load or store moves.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub enum Size {
    /// 4 bytes (BPF_W).
    Word = 0x00,
    /// 2 bytes (BPF_H).
    Half = 0x08,
    /// 1 byte (BPF_B).
    Byte = 0x10,
    /// 8 bytes (BPF_DW).
    Double = 0x18,
}

/// The condition of a jump; comparisons are unsigned and of 64 bits.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub enum If {
    /// Equal (BPF_JEQ).
    Equal = 0x10,
    /// Greater (BPF_JGT).
    Above = 0x20,
    /// Any bit of both set (BPF_JSET).
    AnyBit = 0x40,
    /// Not equal (BPF_JNE).
    NotEqual = 0x50,
    /// Less (BPF_JLT).
    Below = 0xa0,
}

/// The operation of an arithmetic instruction on its destination.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub enum AluOp {
    /// Add (BPF_ADD).
    Add = 0x00,
    /// Subtract (BPF_SUB).
    Sub = 0x10,
    /// And (BPF_AND).
    And = 0x50,
    /// Shift left (BPF_LSH).
    ShiftLeft = 0x60,
    /// Shift right without sign (BPF_RSH).
    ShiftRight = 0x70,
    /// Copy (BPF_MOV).
    Move = 0xb0,
}

/// Functions of the kernel, by their number in `enum bpf_func_id` of `linux/bpf.h`.
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
pub enum BpfHelper {
    /// `bpf_map_lookup_elem`.
    MapLookup = 1,
    /// `bpf_ktime_get_ns`.
    KtimeNs = 5,
    /// `bpf_get_smp_processor_id`.
    ProcessorId = 8,
    /// `bpf_redirect_map`.
    RedirectMap = 51,
    /// `bpf_probe_read_kernel` (Linux 5.5).
    ProbeRead = 113,
    /// `bpf_ringbuf_output` (Linux 5.8).
    RingOutput = 130,
    /// `bpf_xdp_get_buff_len`.
    BufferLength = 188,
    /// `bpf_dynptr_read` (Linux 5.19).
    DynptrRead = 201,
}

/// A target of jumps in the program.
#[derive(Debug, Clone, Copy)]
pub struct Label(usize);

/// One instruction in the kernel's encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Insn {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

const CLASS_LD: u8 = 0x00;
const CLASS_LDX: u8 = 0x01;
const CLASS_ST: u8 = 0x02;
const CLASS_STX: u8 = 0x03;
const CLASS_ALU: u8 = 0x04;
const CLASS_JMP: u8 = 0x05;
const CLASS_ALU64: u8 = 0x07;
/// The operand is a register and not the immediate (BPF_X).
const FROM_REG: u8 = 0x08;
/// Memory at register plus offset (BPF_MEM).
const MODE_MEM: u8 = 0x60;
const MODE_ATOMIC: u8 = 0xc0;
const MODE_IMM: u8 = 0x00;
/// Atomic add that leaves the old value in the source register (BPF_ADD | BPF_FETCH).
const FETCH_ADD: i32 = 0x01;
const CALL: u8 = 0x80;
const EXIT: u8 = 0x90;
/// Byte swap to big-endian order (BPF_END | BPF_TO_BE).
const TO_BIG_ENDIAN: u8 = 0xd0 | 0x08;
/// The immediate of a 64-bit load is a map's descriptor (BPF_PSEUDO_MAP_FD).
const IS_MAP: u8 = 1;
/// The immediate is the address of the one value of an array map (BPF_PSEUDO_MAP_VALUE).
const IS_MAP_VALUE: u8 = 2;
/// The immediate of a call is the BTF number of a kernel's function (BPF_PSEUDO_KFUNC_CALL).
const IS_KERNEL_FUNCTION: u8 = 2;

/// A program being written.
#[derive(Debug, Default)]
pub struct Asm {
    code: Vec<Insn>,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Asm {
    fn push(&mut self, code: u8, dst: Reg, src: u8, offset: i16, immediate: i32) {
        let registers = src << 4 | dst as u8;
        self.code.push(Insn { code, registers, offset, immediate });
    }

    /// Creates a label, to be placed once.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Places a label before the next instruction.
    ///
    /// # Panics
    /// When the label was placed before.
    pub fn place(&mut self, label: Label) {
        let before = self.labels[label.0].replace(self.code.len());
        assert!(before.is_none(), "a label is placed once");
    }

    /// `dst = dst OP src`.
    pub fn alu(&mut self, op: AluOp, dst: Reg, src: Reg) {
        self.push(CLASS_ALU64 | FROM_REG | op as u8, dst, src as u8, 0, 0);
    }

    /// `dst = dst OP immediate`.
    pub fn alu_imm(&mut self, op: AluOp, dst: Reg, immediate: i32) {
        self.push(CLASS_ALU64 | op as u8, dst, 0, 0, immediate);
    }

    /// `dst = dst`, two bytes of network order read as a number.
    pub fn swap16(&mut self, dst: Reg) {
        self.push(CLASS_ALU | TO_BIG_ENDIAN, dst, 0, 0, 16);
    }

    /// `dst = *(src + offset)`.
    pub fn load(&mut self, size: Size, dst: Reg, src: Reg, offset: i16) {
        self.push(CLASS_LDX | MODE_MEM | size as u8, dst, src as u8, offset, 0);
    }

    /// `*(dst + offset) = src`.
    pub fn store(&mut self, size: Size, dst: Reg, offset: i16, src: Reg) {
        self.push(CLASS_STX | MODE_MEM | size as u8, dst, src as u8, offset, 0);
    }

    /// `*(dst + offset) = immediate`.
    pub fn store_imm(&mut self, size: Size, dst: Reg, offset: i16, immediate: i32) {
        self.push(CLASS_ST | MODE_MEM | size as u8, dst, 0, offset, immediate);
    }

    /// `*(dst + offset) += src`, atomically, 8 bytes.
    pub fn atomic_add(&mut self, dst: Reg, offset: i16, src: Reg) {
        let code = CLASS_STX | MODE_ATOMIC | Size::Double as u8;
        self.push(code, dst, src as u8, offset, 0);
    }

    /// `src = *(dst + offset); *(dst + offset) += src`, atomically, 8 bytes (Linux 5.12).
    pub fn fetch_add(&mut self, dst: Reg, offset: i16, src: Reg) {
        let code = CLASS_STX | MODE_ATOMIC | Size::Double as u8;
        self.push(code, dst, src as u8, offset, FETCH_ADD);
    }

    /// `dst` = the map with this descriptor, as an argument of a helper.
    pub fn map(&mut self, dst: Reg, descriptor: i32) {
        self.load_imm64(dst, IS_MAP, descriptor);
    }

    /// `dst` = the address of the only value of an array map.
    pub fn map_value(&mut self, dst: Reg, descriptor: i32) {
        self.load_imm64(dst, IS_MAP_VALUE, descriptor);
    }

    fn load_imm64(&mut self, dst: Reg, kind: u8, low: i32) {
        self.push(CLASS_LD | MODE_IMM | Size::Double as u8, dst, kind, 0, low);
        self.push(0, Reg::R0, 0, 0, 0);
    }

    /// Jumps to `label`.
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(CLASS_JMP, Reg::R0, 0, 0, 0);
    }

    /// Jumps to `label` if the comparison of `dst` and `src` is true.
    pub fn jump_if(&mut self, test: If, dst: Reg, src: Reg, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(CLASS_JMP | FROM_REG | test as u8, dst, src as u8, 0, 0);
    }

    /// Jumps to `label` if the comparison of `dst` and the (sign-extended) immediate is true.
    pub fn jump_if_imm(&mut self, test: If, dst: Reg, immediate: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(CLASS_JMP | test as u8, dst, 0, 0, immediate);
    }

    /// `r0 = helper(r1, r2, r3, r4, r5)`.
    pub fn call(&mut self, helper: BpfHelper) {
        self.push(CLASS_JMP | CALL, Reg::R0, 0, 0, helper as i32);
    }

    /// `r0 = function(r1, r2, r3, r4, r5)`: a function of the kernel by its number in its BTF.
    pub fn call_kernel(&mut self, function: u32) {
        self.push(CLASS_JMP | CALL, Reg::R0, IS_KERNEL_FUNCTION, 0, function as i32);
    }

    /// Ends the program with `r0`.
    pub fn exit(&mut self) {
        self.push(CLASS_JMP | EXIT, Reg::R0, 0, 0, 0);
    }

    /// Returns the program, its jumps resolved.
    ///
    /// # Panics
    /// If a label that is a jump's target was not placed, or is too far away.
    #[must_use]
    pub fn finish(mut self) -> Vec<Insn> {
        for (from, label) in &self.jumps {
            let to = self.labels[label.0].expect("every label is placed");
            let distance = to as isize - (*from as isize + 1);
            self.code[*from].offset = i16::try_from(distance).expect("jumps are short");
        }
        self.code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(insn: Insn) -> [u8; 8] {
        let (offset, immediate) = (insn.offset.to_le_bytes(), insn.immediate.to_le_bytes());
        let mut all = [insn.code, insn.registers, 0, 0, 0, 0, 0, 0];
        all[2..4].copy_from_slice(&offset);
        all[4..].copy_from_slice(&immediate);
        all
    }

    /// Compares with the encodings in the standard's tables.
    #[test]
    fn instructions_are_encoded_as_the_standard_says() {
        let mut asm = Asm::default();
        asm.alu_imm(AluOp::Move, Reg::R0, 2);
        asm.alu(AluOp::Add, Reg::R4, Reg::R2);
        asm.load(Size::Half, Reg::R5, Reg::R2, 12);
        asm.store(Size::Double, Reg::R7, -8, Reg::R1);
        asm.swap16(Reg::R1);
        asm.fetch_add(Reg::R1, 8, Reg::R2);
        asm.call(BpfHelper::RedirectMap);
        asm.exit();
        let code: Vec<_> = asm.finish().into_iter().map(bytes).collect();
        let expected = [
            [0xb7, 0x00, 0, 0, 2, 0, 0, 0],
            [0x0f, 0x24, 0, 0, 0, 0, 0, 0],
            [0x69, 0x25, 12, 0, 0, 0, 0, 0],
            [0x7b, 0x17, 0xf8, 0xff, 0, 0, 0, 0],
            [0xdc, 0x01, 0, 0, 16, 0, 0, 0],
            [0xdb, 0x21, 8, 0, 1, 0, 0, 0],
            [0x85, 0x00, 0, 0, 51, 0, 0, 0],
            [0x95, 0x00, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(code, expected);
    }

    #[test]
    fn jumps_count_instructions_from_the_next_one() {
        let mut asm = Asm::default();
        let (end, start) = (asm.label(), asm.label());
        asm.place(start);
        asm.jump_if_imm(If::Equal, Reg::R1, 7, end);
        asm.map_value(Reg::R2, 3);
        asm.jump(start);
        asm.place(end);
        asm.exit();
        let code = asm.finish();
        assert_eq!(code.len(), 5, "a 64-bit load takes two");
        assert_eq!((code[0].offset, code[3].offset), (3, -4));
        assert_eq!(bytes(code[1]), [0x18, 0x22, 0, 0, 3, 0, 0, 0]);
    }

    #[test]
    #[should_panic(expected = "every label is placed")]
    fn a_jump_into_nowhere_is_refused() {
        let mut asm = Asm::default();
        let nowhere = asm.label();
        asm.jump(nowhere);
        let _ = asm.finish();
    }
}
