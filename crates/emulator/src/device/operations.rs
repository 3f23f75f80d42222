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
pub(super) fn execute(
    protocol: Protocol,
    request: &CtrlRepr,
    mut access: impl FnMut(Access) -> Result<u32, NoRegister>,
) -> (ControlStatus, DataWords) {
    let outcome = match protocol {
        Protocol::V1 => execute_v1(request, &mut access),
        Protocol::V2 => execute_v2(request, &mut access),
    };
    outcome.unwrap_or_else(|NoRegister| (ControlStatus::CommandError, empty(protocol, request)))
}

type Outcome = Result<(ControlStatus, DataWords), NoRegister>;

/// As many words as the request has, of which only the first one has a meaning.
fn execute_v1(
    request: &CtrlRepr,
    access: &mut impl FnMut(Access) -> Result<u32, NoRegister>,
) -> Outcome {
    let value = match request.op {
        Op::Sleep => 0,
        Op::Read => access(Access::Read(request.address))?,
        Op::Write => {
            let value = request.data.first();
            access(Access::Write(request.address, value))?;
            value
        }
        _ => return Err(NoRegister),
    };
    let mut words = [0; MAX_DATA_WORDS];
    words[0] = value;
    Ok((ControlStatus::Ok, words_of(&words, request.data.len())))
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
            let [wanted, mask, ..] = *request.data else { return Err(NoRegister) };
            let found = (value ^ wanted) & mask == 0;
            let status = if found { ControlStatus::Ok } else { ControlStatus::CommandError };
            return Ok((status, DataWords::one(value)));
        }
        Op::Other(_) => return Err(NoRegister),
    };
    Ok((ControlStatus::Ok, words))
}

/// Returns the words of an acknowledgement of a request that could not be executed.
fn empty(protocol: Protocol, request: &CtrlRepr) -> DataWords {
    let count = match (protocol, request.op) {
        (Protocol::V1, _) => request.data.len(),
        (Protocol::V2, Op::Read | Op::BlockRead) => request.read_words.into(),
        (Protocol::V2, Op::ReadWrite | Op::Poll) => 1,
        (Protocol::V2, _) => 0,
    };
    words_of(&[0; MAX_DATA_WORDS], count)
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
        });
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
    fn what_cannot_be_executed_is_an_error_with_the_words_that_were_asked_for() {
        let mut registers = [0; 16];
        let error = |count| (ControlStatus::CommandError, vec![0; count]);
        assert_eq!(done(&mut registers[..].try_into().unwrap(), Op::Other(9), &[1], 0), error(0));
        assert_eq!(done(&mut registers, Op::Poll, &[1, 1], 0).0, ControlStatus::CommandError);
        assert_eq!(done(&mut registers, Op::Poll, &[1], 0), error(1));
        assert_eq!(done(&mut registers, Op::Write, &[], 0), (ControlStatus::Ok, vec![]));
        assert_eq!(done(&mut registers, Op::Read, &[], 0), (ControlStatus::Ok, vec![]));
        let far = CtrlRepr { op: Op::BlockRead, read_words: 15, ..CtrlRepr::default() };
        let (status, words) = execute(Protocol::V2, &far, |_| Err(NoRegister));
        assert_eq!((status, words.to_vec()), error(15));
    }

    #[test]
    fn protocol_1_reads_and_writes_single_words() {
        let two = DataWords::new(&[5, 6]).unwrap();
        let ask = |op| {
            let request = CtrlRepr { op, data: two, ..CtrlRepr::default() };
            let (status, words) = execute(Protocol::V1, &request, |access| match access {
                Access::Read(_) => Ok(9),
                Access::Write(_, value) => Ok(value),
            });
            (status, words.to_vec())
        };
        assert_eq!(ask(Op::Read), (ControlStatus::Ok, vec![9, 0]));
        assert_eq!(ask(Op::Write), (ControlStatus::Ok, vec![5, 0]));
        assert_eq!(ask(Op::BlockRead), (ControlStatus::CommandError, vec![0, 0]));
    }
}
