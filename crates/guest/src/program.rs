//! Programs for guests: whether a file is a static program, and for which processor.

use crate::error::{Error, at};
use crate::processor::Processor;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

// System V ABI, ELF-64 object file format.
const IDENTITY: &[u8] = b"\x7fELF\x02\x01";
const HEADER: u64 = 64;
const SEGMENT: usize = 56;
/// A program for fixed addresses (`ET_EXEC`), or for any (`ET_DYN`).
const PROGRAMS: [u16; 2] = [2, 3];
/// A segment that names the loader of shared libraries (`PT_INTERP`).
const LOADER: u32 = 3;

/// Checks that a file is a static program for `processor`, which needs nothing else in a guest.
///
/// # Errors
/// When it is none, or the file cannot be read.
pub fn check(path: &Path, processor: Processor) -> Result<(), Error> {
    let reason = File::open(path).and_then(|file| fault(file, processor)).map_err(at(path))?;
    match reason {
        None => Ok(()),
        Some(reason) => {
            Err(Error::Program { path: path.to_owned(), processor: processor.name(), reason })
        }
    }
}

/// Returns what speaks against a program.
fn fault(mut file: impl Read + Seek, processor: Processor) -> io::Result<Option<String>> {
    let mut head = Vec::new();
    (&mut file).take(HEADER).read_to_end(&mut head)?;
    let half = |place: usize| {
        let bytes = head.get(place..place + 2)?;
        Some(u16::from_le_bytes(bytes.try_into().expect("two bytes")))
    };
    let table =
        head.get(32..40).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")));
    let whole = (half(16), half(18), table, half(54), half(56));
    let (Some(kind), Some(machine), Some(table), Some(size), Some(count)) = whole else {
        return Ok(Some("it is not a program in ELF's form for 64 bits".to_owned()));
    };
    if !head.starts_with(IDENTITY) || !PROGRAMS.contains(&kind) {
        return Ok(Some("it is not a program in ELF's form for 64 bits".to_owned()));
    }
    if machine != processor.elf_machine() {
        let known = [Processor::X86, Processor::Arm64].into_iter();
        let name = known.map(|known| (known.elf_machine(), known.name()));
        let other = name.filter(|&(number, _)| number == machine).map(|(_, name)| name).next();
        return Ok(Some(other.map_or_else(
            || format!("it is for another processor (ELF machine {machine})"),
            |name| format!("it is for {name}"),
        )));
    }
    let mut segments = Vec::new();
    file.seek(SeekFrom::Start(table))?;
    file.take(u64::from(size) * u64::from(count)).read_to_end(&mut segments)?;
    if usize::from(size) != SEGMENT || segments.len() != SEGMENT * usize::from(count) {
        return Ok(Some("its table of segments is damaged or incomplete".to_owned()));
    }
    let dynamic = segments.chunks_exact(SEGMENT).any(|one| one.starts_with(&LOADER.to_le_bytes()));
    Ok(dynamic.then(|| "it needs shared libraries, which the guest does not have".to_owned()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Cursor;

    /// Returns the smallest program: it ends with status 0 (System V ABI, ELF-64; x86-64's `exit`).
    pub(crate) fn smallest_static_program() -> Vec<u8> {
        const BASE: u64 = 0x40_0000;
        const HEADERS: u64 = 64 + 56;
        const CODE: [u8; 9] = [0xb8, 60, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05];
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(16, 0);
        let halves = |bytes: &mut Vec<u8>, values: &[u16]| {
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        };
        let longs = |bytes: &mut Vec<u8>, values: &[u64]| {
            bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        };
        halves(&mut bytes, &[2, 62, 1, 0]);
        longs(&mut bytes, &[BASE + HEADERS, 64, 0]);
        halves(&mut bytes, &[0, 0, 64, 56, 1, 0, 0, 0]);
        // One segment to load, readable and executable.
        halves(&mut bytes, &[1, 0, 5, 0]);
        let length = HEADERS + CODE.len() as u64;
        longs(&mut bytes, &[0, BASE, BASE, length, length, 4096]);
        bytes.extend(CODE);
        bytes
    }

    #[test]
    fn a_program_for_a_guest_is_static_and_for_its_processor() {
        let says = |bytes: &[u8], processor| fault(Cursor::new(bytes), processor).unwrap();
        let mut program = smallest_static_program();
        assert_eq!(says(&program, Processor::X86), None);
        assert_eq!(says(&program, Processor::Arm64).unwrap(), "it is for x86-64");
        program[18] = 183;
        assert_eq!(says(&program, Processor::Arm64), None);
        program[18] = 40;
        assert!(says(&program, Processor::Arm64).unwrap().ends_with("(ELF machine 40)"));
        program[18] = 62;
        program[64] = 3;
        assert!(says(&program, Processor::X86).unwrap().contains("shared libraries"));
        program[64] = 1;
        // Cut anywhere in its headers, with a table outside of it, or no program at all.
        assert!((0..120).all(|length| says(&program[..length], Processor::X86).is_some()));
        program[39] = 0x7f;
        assert!(says(&program, Processor::X86).unwrap().contains("table of segments"));
        assert!(says(&[b'#'; 200], Processor::X86).unwrap().contains("not a program"));
    }

    #[test]
    fn the_error_names_the_file_and_what_to_give() {
        let own = std::env::current_exe().unwrap();
        let other =
            if Processor::OWN == Processor::X86 { Processor::Arm64 } else { Processor::X86 };
        let said = check(&own, other).unwrap_err().to_string();
        let wanted = [own.to_str().unwrap(), Processor::OWN.name(), "static", "make arm64"];
        assert!(wanted.iter().all(|part| said.contains(part)), "{said}");
    }
}
