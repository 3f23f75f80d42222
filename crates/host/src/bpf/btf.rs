//! The kernel's description of its own types (BTF), from which a program at a tracepoint knows
//! where the members of the kernel's structures lie.
//!
//! Source: `Documentation/bpf/btf.rst`. The file is taken for untrusted: every position is checked,
//! every chain of types is followed for a bounded number of steps.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The running kernel's types, below the root folder.
pub const KERNEL_TYPES: &str = "sys/kernel/btf/vmlinux";

/// The most steps from a type to what it stands for, and the deepest nesting of members.
const STEPS_MAX: usize = 32;
/// The most members that a search for one of them looks at.
const MEMBERS_MAX: usize = 1 << 14;

const MAGIC: u16 = 0xeb9f;

/// `BTF_KIND_*` of `linux/btf.h`.
mod kind {
    pub const POINTER: u32 = 2;
    pub const STRUCT: u32 = 4;
    pub const UNION: u32 = 5;
    pub const ENUM: u32 = 6;
    pub const TYPEDEF: u32 = 8;
    pub const VOLATILE: u32 = 9;
    pub const CONST: u32 = 10;
    pub const RESTRICT: u32 = 11;
    pub const FUNCTION: u32 = 12;
    pub const PROTOTYPE: u32 = 13;
    pub const TYPE_TAG: u32 = 18;
}

/// The reason why the kernel's types cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BtfError {
    /// The file could not be read.
    #[error(
        "cannot read the kernel's types {}: {source}; a kernel with CONFIG_DEBUG_INFO_BTF has them",
        path.display()
    )]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Its bytes are not what they should be.
    #[error("the kernel's types are damaged: {what} at byte {at}")]
    Damaged {
        /// What is wrong.
        what: &'static str,
        /// The position, bytes.
        at: usize,
    },
    /// It does not have a name that is needed.
    #[error("this kernel has no {name} in its types, which is needed here")]
    Missing {
        /// The name.
        name: String,
    },
}

/// A tracepoint of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelPoint {
    /// The number of its type, by which a program is loaded for it.
    pub id: u32,
    /// The number of its arguments: 8 bytes each in the context of a program.
    pub arguments: usize,
}

/// The types of a kernel.
#[derive(Debug)]
pub struct Btf {
    bytes: Vec<u8>,
    /// The position of each type; type 0 is `void`, and has none.
    types: Vec<u32>,
    strings: (usize, usize),
}

/// The fixed part of a type: `struct btf_type`.
#[derive(Clone, Copy)]
struct Type {
    /// The position of what follows the fixed part.
    rest: usize,
    name: u32,
    info: u32,
    /// Its size, or the type that it refers to.
    size: u32,
}

impl Type {
    fn kind(self) -> u32 {
        self.info >> 24 & 0x1f
    }

    fn count(self) -> usize {
        (self.info & 0xffff) as usize
    }

    /// Returns the bytes of its variable part; `None` for a kind that is not known.
    fn rest_bytes(self) -> Option<usize> {
        Some(match self.kind() {
            kind::POINTER | 7..=kind::FUNCTION | 16 | kind::TYPE_TAG => 0,
            1 | 14 | 17 => 4,
            3 => 12,
            kind::ENUM | kind::PROTOTYPE => 8 * self.count(),
            kind::STRUCT | kind::UNION | 15 | 19 => 12 * self.count(),
            _ => return None,
        })
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Btf {
    /// Reads the types of the running kernel; `root` is `/`.
    ///
    /// # Errors
    /// [`BtfError`].
    pub fn of_kernel(root: &Path) -> Result<Self, BtfError> {
        let path = root.join(KERNEL_TYPES);
        match fs::read(&path) {
            Ok(bytes) => Self::parse(bytes),
            Err(source) => Err(BtfError::File { path, source }),
        }
    }

    /// Finds the types in the bytes of a file.
    ///
    /// # Errors
    /// [`BtfError::Damaged`].
    pub fn parse(bytes: Vec<u8>) -> Result<Self, BtfError> {
        let damaged = |what, at| BtfError::Damaged { what, at };
        let short = || damaged("the header is too short", bytes.len());
        let header = |at| word(&bytes, at).map(|value| value as usize).ok_or_else(short);
        if header(0)? as u32 & 0xffff != u32::from(MAGIC) {
            return Err(damaged("the magic number is another one", 0));
        }
        let base = header(4)?;
        let section = |at: usize| {
            let begin = base.saturating_add(header(at)?);
            let end = begin.saturating_add(header(at + 4)?);
            let fits = end <= bytes.len();
            if fits { Ok((begin, end)) } else { Err(damaged("a section goes beyond the end", at)) }
        };
        let ((mut at, end), strings) = (section(8)?, section(16)?);
        let mut types = vec![0];
        while at < end {
            let known = read(&bytes, at).and_then(|one| Some(one.rest + one.rest_bytes()?));
            let next = known.filter(|next| *next <= end);
            types.push(at as u32);
            at = next.ok_or_else(|| damaged("a type is unknown or cut off", at))?;
        }
        Ok(Self { bytes, types, strings })
    }

    fn get(&self, id: u32) -> Option<Type> {
        let at = *self.types.get(id as usize)?;
        if id == 0 { None } else { read(&self.bytes, at as usize) }
    }

    /// Returns a word in the variable part of a type: entry, words of an entry, word.
    fn entry(&self, of: Type, (entry, words, word_of): (usize, usize, usize)) -> Option<u32> {
        word(&self.bytes, of.rest + 4 * (entry * words + word_of))
    }

    fn name(&self, at: u32) -> &[u8] {
        let (begin, end) = self.strings;
        let rest = begin.checked_add(at as usize).and_then(|from| self.bytes.get(from..end));
        rest.and_then(|rest| rest.split(|byte| *byte == 0).next()).unwrap_or_default()
    }

    /// Finds the first type of one of these kinds with this name.
    fn find(&self, kinds: &[u32], name: &str) -> Option<(u32, Type)> {
        (1..self.types.len() as u32).find_map(|id| {
            let of = self.get(id)?;
            let is_it = kinds.contains(&of.kind()) && self.name(of.name) == name.as_bytes();
            is_it.then_some((id, of))
        })
    }

    /// Follows names, `const` and the like to the type behind them.
    fn behind(&self, mut id: u32) -> Option<Type> {
        for _ in 0..STEPS_MAX {
            let of = self.get(id)?;
            match of.kind() {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    id = of.size
                }
                _ => return Some(of),
            }
        }
        None
    }

    /// Returns the offset of a member of a structure, bytes: `("task_struct", "thread_info.cpu")`.
    /// Structures and unions without a name are looked through.
    ///
    /// # Errors
    /// [`BtfError::Missing`], also for a bit field.
    pub fn offset(&self, structure: &str, path: &str) -> Result<i16, BtfError> {
        let found = || {
            let (_, mut of) = self.find(&[kind::STRUCT, kind::UNION], structure)?;
            let (mut bits, mut looks) = (0_u32, MEMBERS_MAX);
            for name in path.split('.') {
                let (offset, id) = self.member(of, name, (STEPS_MAX, &mut looks))?;
                bits = bits.checked_add(offset)?;
                // Where the path ends, any type will do.
                of = self.behind(id).unwrap_or(of);
            }
            (bits % 8 == 0).then(|| i16::try_from(bits / 8).ok())?
        };
        found().ok_or_else(|| BtfError::Missing { name: format!("{structure}.{path}") })
    }

    /// Returns the offset of a member in bits, and its type; `limits` are the levels below and the
    /// members to look at that are left.
    fn member(&self, of: Type, name: &str, limits: (usize, &mut usize)) -> Option<(u32, u32)> {
        let (depth, looks) = limits;
        if !matches!(of.kind(), kind::STRUCT | kind::UNION) || depth == 0 {
            return None;
        }
        (0..of.count()).find_map(|number| {
            *looks = looks.checked_sub(1)?;
            let word = |word| self.entry(of, (number, 3, word));
            let (title, id, mut offset) = (self.name(word(0)?), word(1)?, word(2)?);
            // With this flag the upper byte is the width of a bit field.
            if of.info >> 31 == 1 {
                if offset >> 24 > 0 {
                    return None;
                }
                offset &= 0x00ff_ffff;
            }
            if !title.is_empty() {
                return (title == name.as_bytes()).then_some((offset, id));
            }
            let (inside, id) = self.member(self.behind(id)?, name, (depth - 1, looks))?;
            Some((offset.checked_add(inside)?, id))
        })
    }

    /// Returns the numbers and names of an enumeration; none if there is none.
    #[must_use]
    pub fn enumeration(&self, name: &str) -> Vec<(u32, String)> {
        let Some((_, of)) = self.find(&[kind::ENUM], name) else { return Vec::new() };
        let one = |number| {
            let word = |word| self.entry(of, (number, 2, word));
            Some((word(1)?, String::from_utf8_lossy(self.name(word(0)?)).into_owned()))
        };
        (0..of.count()).filter_map(one).collect()
    }

    /// Finds a tracepoint by its name, without its group: `kfree_skb`.
    ///
    /// # Errors
    /// [`BtfError::Missing`].
    pub fn tracepoint(&self, name: &str) -> Result<KernelPoint, BtfError> {
        let name = format!("btf_trace_{name}");
        let found = || {
            let (id, of) = self.find(&[kind::TYPEDEF], &name)?;
            let pointer = self.behind(of.size).filter(|of| of.kind() == kind::POINTER)?;
            let is_prototype = |of: &Type| of.kind() == kind::PROTOTYPE;
            let prototype = self.behind(pointer.size).filter(is_prototype)?;
            // The first one is for the kernel itself.
            Some(KernelPoint { id, arguments: prototype.count().checked_sub(1)? })
        };
        found().ok_or(BtfError::Missing { name })
    }

    /// Returns the number of a function that programs may call, if the kernel has it.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<u32> {
        self.find(&[kind::FUNCTION], name).map(|(id, _)| id)
    }
}

fn read(bytes: &[u8], at: usize) -> Option<Type> {
    let word = |number: usize| word(bytes, at + 4 * number);
    Some(Type { rest: at + 12, name: word(0)?, info: word(1)?, size: word(2)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of types: words of each, and the names.
    fn file(types: &[u32], names: &str) -> Vec<u8> {
        let bytes = 4 * types.len() as u32;
        let header = [u32::from(MAGIC) | 1 << 16, 24, 0, bytes, bytes, names.len() as u32];
        let words = header.iter().chain(types).flat_map(|word| word.to_ne_bytes());
        words.chain(names.bytes()).collect()
    }

    fn info(kind: u32, count: u32) -> u32 {
        kind << 24 | count
    }

    /// `struct a { int x; union { struct { int y; } z; }; int bits: 3; }`, an enumeration, a
    /// tracepoint, and a name for itself.
    fn example() -> Vec<u8> {
        const NAMES: &str = "\0a\0x\0y\0z\0bits\0e\0E_ONE\0btf_trace_t\0loop\0f\0";
        let at = |name: &str| NAMES.find(&format!("\0{name}\0")).unwrap() as u32 + 1;
        let types: [&[u32]; 12] = [
            &[0, info(1, 0), 4, 32],
            // 2: the structure, with widths of its members' bits.
            &[at("a"), info(kind::STRUCT, 3) | 1 << 31, 12],
            &[at("x"), 1, 0, 0, 3, 32, at("bits"), 1, 3 << 24 | 64],
            // 3, 4: what is inside.
            &[0, info(kind::UNION, 1), 4, at("z"), 4, 0],
            &[0, info(kind::STRUCT, 1), 4, at("y"), 1, 0],
            &[at("e"), info(kind::ENUM, 1), 4, at("E_ONE"), 7],
            // 6 to 8: a tracepoint of two arguments.
            &[0, info(kind::PROTOTYPE, 3), 0, 0, 0, 0, 1, 0, 1],
            &[0, info(kind::POINTER, 0), 6],
            &[at("btf_trace_t"), info(kind::TYPEDEF, 0), 7],
            // 9: a name that stands for itself; 10: a union that contains itself.
            &[at("loop"), info(kind::TYPEDEF, 0), 9],
            &[at("loop"), info(kind::UNION, 2), 4, 0, 10, 0, 0, 10, 0],
            &[at("f"), info(kind::FUNCTION, 0), 6],
        ];
        file(&types.concat(), NAMES)
    }

    #[test]
    fn members_names_and_tracepoints_are_found() {
        let types = Btf::parse(example()).unwrap();
        assert_eq!(types.offset("a", "x").unwrap(), 0);
        assert_eq!(types.offset("a", "z.y").unwrap(), 4);
        let missing = ["bits", "y", "x.x", "z.", ""];
        for path in missing {
            let error = types.offset("a", path).unwrap_err().to_string();
            assert!(error.contains(&format!("no a.{path} in")), "{error}");
        }
        assert_eq!(types.enumeration("e"), [(7, "E_ONE".to_owned())]);
        assert_eq!(types.enumeration("a"), []);
        assert_eq!(types.tracepoint("t").unwrap(), KernelPoint { id: 8, arguments: 2 });
        assert!(types.tracepoint("loop").is_err());
        assert_eq!(types.function("f"), Some(11));
    }

    #[test]
    fn types_that_contain_themselves_end_the_search() {
        let types = Btf::parse(example()).unwrap();
        assert!(types.behind(9).is_none());
        assert!(types.offset("loop", "x").is_err());
    }

    #[test]
    fn a_damaged_file_is_refused_or_harmless() {
        let whole = example();
        for length in 0..whole.len() {
            assert!(Btf::parse(whole[..length].to_vec()).is_err(), "{length} bytes");
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                exercise(bytes);
            }
        }
    }

    fn exercise(bytes: Vec<u8>) {
        let Ok(types) = Btf::parse(bytes) else { return };
        let _ = (types.offset("a", "z.y"), types.offset("loop", "y"), types.tracepoint("t"));
        let _ = (types.enumeration("e"), types.function("f"));
    }
}
