//! The operations of control packets, made of reads and writes of single registers.

use super::radio_block::NoRegister;
use millstream_wire::ctrl::{ControlStatus, CtrlRepr, DataWords, MAX_DATA_WORDS, Op, Protocol};

/// One access to a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Of this address.
    Read(u32),
    /// Of this address, with this value.
    Write(u32, u32),
}

/// Executes a request by single accesses; returns status and words of the acknowledgement.
///
/// Registers change only with the time and by requests, so a poll that does not find its value at
/// once has timed out.
///
/// # Errors
/// [`NoRegister`] of the accesses.
pub(super) fn execute(
    protocol: Protocol,
    request: &CtrlRepr,
    mut access: impl FnMut(Access) -> Result<u32, NoRegister>,
) -> Outcome {
    match protocol {
        Protocol::V1 => execute_v1(request, &mut access),
        Protocol::V2 => execute_v2(request, &mut access),
    }
}

type Outcome = Result<(ControlStatus, DataWords), NoRegister>;

/// As many words as the request has, of which the first one is the result.
fn execute_v1(
    request: &CtrlRepr,
    access: &mut impl FnMut(Access) -> Result<u32, NoRegister>,
) -> Outcome {
    let (address, value) = (request.address, request.data.first());
    let (status, result) = match request.op {
        Op::Sleep => (ControlStatus::Ok, value),
        Op::Read => (ControlStatus::Ok, access(Access::Read(address))?),
        Op::Write => {
            access(Access::Write(address, value))?;
            (ControlStatus::Ok, value)
        }
        Op::ReadWrite => {
            let before = access(Access::Read(address))?;
            access(Access::Write(address, value))?;
            (ControlStatus::Ok, before)
        }
        _ => (ControlStatus::CommandError, value),
    };
    let mut words = [0; MAX_DATA_WORDS];
    words[..request.data.len()].copy_from_slice(&request.data);
    words[0] = result;
    Ok((status, words_of(&words, request.data.len())))
}

fn execute_v2(
    request: &CtrlRepr,
    access: &mut impl FnMut(Access) -> Result<u32, NoRegister>,
) -> Outcome {
    let step = if matches!(request.op, Op::BlockRead | Op::BlockWrite) { 4 } else { 0 };
    let address = |index: usize| request.address.wrapping_add(step * index as u32) & 0xf_ffff;
    let words = match request.op {
        Op::Sleep => DataWords::NONE,
        Op::Write | Op::BlockWrite => {
            for (index, value) in request.data.iter().enumerate() {
                access(Access::Write(address(index), *value))?;
            }
            DataWords::NONE
        }
        Op::Read | Op::BlockRead => {
            let mut words = [0; MAX_DATA_WORDS];
            let count = usize::from(request.read_words);
            for (index, word) in words[..count].iter_mut().enumerate() {
                *word = access(Access::Read(address(index)))?;
            }
            words_of(&words, count)
        }
        Op::ReadWrite => {
            let before = access(Access::Read(request.address))?;
            access(Access::Write(request.address, request.data.first()))?;
            DataWords::one(before)
        }
        Op::Poll => {
            let value = access(Access::Read(request.address))?;
            let [wanted, mask, ..] = *request.data else {
                return Ok((ControlStatus::CommandError, DataWords::one(value)));
            };
            let found = (value ^ wanted) & mask == 0;
            let status = if found { ControlStatus::Ok } else { ControlStatus::CommandError };
            return Ok((status, DataWords::one(value)));
        }
        Op::Other(_) => return Ok((ControlStatus::CommandError, DataWords::NONE)),
    };
    Ok((ControlStatus::Ok, words))
}

/// Returns the first `count` words.
fn words_of(words: &[u32; MAX_DATA_WORDS], count: usize) -> DataWords {
    DataWords::new(&words[..count.min(MAX_DATA_WORDS)]).unwrap_or(DataWords::NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Executes a request on 16 registers from address 0x100 on.
    fn done(
        registers: &mut [u32; 16],
        op: Op,
        data: &[u32],
        read_words: u8,
    ) -> (ControlStatus, Vec<u32>) {
        let data = if data.is_empty() { DataWords::NONE } else { DataWords::new(data).unwrap() };
        let request = CtrlRepr { op, data, read_words, address: 0x104, ..CtrlRepr::default() };
        let (status, words) = execute(Protocol::V2, &request, |access| {
            let (Access::Read(address) | Access::Write(address, _)) = access;
            let index = (address - 0x100) as usize / 4;
            let register = registers.get_mut(index).ok_or(NoRegister)?;
            if let Access::Write(_, value) = access {
                *register = value;
            }
            Ok(*register)
        })
        .unwrap();
        (status, words.to_vec())
    }

    #[test]
    fn each_operation_of_protocol_2_has_its_accesses_and_its_words() {
        let mut registers = core::array::from_fn(|index| index as u32);
        let ok = |words: &[u32]| (ControlStatus::Ok, words.to_vec());
        assert_eq!(done(&mut registers, Op::Sleep, &[9], 0), ok(&[]));
        assert_eq!(done(&mut registers, Op::Read, &[], 2), ok(&[1, 1]));
        assert_eq!(done(&mut registers, Op::BlockRead, &[], 3), ok(&[1, 2, 3]));
        assert_eq!(done(&mut registers, Op::BlockRead, &[], 15), ok(&(1..16).collect::<Vec<_>>()));
        assert_eq!(done(&mut registers, Op::Write, &[7, 8], 0), ok(&[]));
        assert_eq!(registers[..4], [0, 8, 2, 3]);
        assert_eq!(done(&mut registers, Op::BlockWrite, &[7, 8], 0), ok(&[]));
        assert_eq!(registers[..4], [0, 7, 8, 3]);
        assert_eq!(done(&mut registers, Op::ReadWrite, &[0x55], 0), ok(&[7]));
        assert_eq!(done(&mut registers, Op::Poll, &[0xF5, 0x0F, 100], 0), ok(&[0x55]));
        let late = (ControlStatus::CommandError, vec![0x55]);
        assert_eq!(done(&mut registers, Op::Poll, &[0xF4, 0x0F, 100], 0), late);
    }

    #[test]
    fn what_cannot_be_executed_is_an_error() {
        let mut registers = [0; 16];
        let error = |words: &[u32]| (ControlStatus::CommandError, words.to_vec());
        assert_eq!(done(&mut registers, Op::Other(9), &[1], 0), error(&[]));
        assert_eq!(done(&mut registers, Op::Poll, &[1], 0), error(&[0]));
        assert_eq!(done(&mut registers, Op::Write, &[], 0), (ControlStatus::Ok, vec![]));
        assert_eq!(done(&mut registers, Op::Read, &[], 0), (ControlStatus::Ok, vec![]));
        let far = CtrlRepr { op: Op::BlockRead, read_words: 15, ..CtrlRepr::default() };
        assert_eq!(execute(Protocol::V2, &far, |_| Err(NoRegister)), Err(NoRegister));
    }

    #[test]
    fn protocol_1_reads_and_writes_single_words() {
        let two = DataWords::new(&[5, 6]).unwrap();
        let ask = |op| {
            let request = CtrlRepr { op, data: two, ..CtrlRepr::default() };
            let (status, words) = execute(Protocol::V1, &request, |access| match access {
                Access::Read(_) => Ok(9),
                Access::Write(_, value) => Ok(value),
            })
            .unwrap();
            (status, words.to_vec())
        };
        assert_eq!(ask(Op::Read), (ControlStatus::Ok, vec![9, 6]));
        assert_eq!(ask(Op::Write), (ControlStatus::Ok, vec![5, 6]));
        assert_eq!(ask(Op::ReadWrite), (ControlStatus::Ok, vec![9, 6]));
        assert_eq!(ask(Op::BlockRead), (ControlStatus::CommandError, vec![5, 6]));
    }
}
