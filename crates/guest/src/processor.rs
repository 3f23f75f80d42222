//! The kinds of processors that kernels are made for, and how their emulated machines differ.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The kind of processor of a kernel and of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// x86-64: QEMU's machine `q35`.
    X86,
    /// ARM64: QEMU's machine `virt`.
    Arm64,
}

impl Processor {
    /// The processor that runs this program.
    pub const OWN: Self = if cfg!(target_arch = "aarch64") { Self::Arm64 } else { Self::X86 };

    /// Returns the processor of a kernel's image. An image for ARM64 has a magic number of its own,
    /// or is a program of UEFI that says so (Linux, Documentation/arch/arm64/booting.rst; PE
    /// format, IMAGE_FILE_MACHINE_ARM64). Every other one is for x86-64.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn of_image(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut head = Vec::new();
        (&mut file).take(64).read_to_end(&mut head)?;
        if head.get(56..60) == Some(b"ARM\x64") {
            return Ok(Self::Arm64);
        }
        let (Some(b"MZ"), Some(place)) = (head.get(..2), head.get(60..64)) else {
            return Ok(Self::X86);
        };
        let place = u32::from_le_bytes(place.try_into().expect("four bytes"));
        file.seek(SeekFrom::Start(u64::from(place)))?;
        let mut signature = Vec::new();
        file.take(6).read_to_end(&mut signature)?;
        Ok(if signature == *b"PE\0\0\x64\xaa" { Self::Arm64 } else { Self::X86 })
    }

    /// Returns QEMU's program for machines with this processor.
    #[must_use]
    pub const fn emulator(self) -> &'static str {
        match self {
            Self::X86 => "qemu-system-x86_64",
            Self::Arm64 => "qemu-system-aarch64",
        }
    }

    /// Returns the Debian package with QEMU's program.
    pub(crate) const fn package(self) -> &'static str {
        match self {
            Self::X86 => "qemu-system-x86",
            Self::Arm64 => "qemu-system-arm",
        }
    }

    /// Returns QEMU's machine.
    pub(crate) const fn machine(self) -> &'static str {
        match self {
            Self::X86 => "q35",
            Self::Arm64 => "virt",
        }
    }

    /// Returns the name in texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::X86 => "x86-64",
            Self::Arm64 => "ARM64",
        }
    }

    /// Returns the number of its programs (ELF, `EM_X86_64` and `EM_AARCH64`).
    pub(crate) const fn elf_machine(self) -> u16 {
        match self {
            Self::X86 => 62,
            Self::Arm64 => 183,
        }
    }

    /// Returns QEMU's model of the CPU unless another is wanted. KVM on ARM64 runs the host's model
    /// only; on x86-64 `max` has all that the host has. In software `max` is a CPU of AMD, and QEMU
    /// does not emulate the way in which that reports hardware threads.
    pub(crate) fn cpu(self, accelerator: &str, threads: usize) -> &'static str {
        let kvm = accelerator.split(',').next() == Some("kvm");
        match self {
            Self::X86 if threads > 1 && !kvm => "max,vendor=GenuineIntel",
            Self::X86 => "max",
            Self::Arm64 if kvm => "host",
            Self::Arm64 => "cortex-a53",
        }
    }

    /// Returns the serial line of the console.
    pub(crate) const fn console(self) -> &'static str {
        match self {
            Self::X86 => "ttyS0",
            Self::Arm64 => "ttyAMA0",
        }
    }

    /// Returns the serial line of the command's output, in the guest.
    #[must_use]
    pub const fn output(self) -> &'static str {
        match self {
            Self::X86 => "/dev/ttyS1",
            Self::Arm64 => "/dev/ttyS0",
        }
    }

    /// Returns QEMU's arguments for the line of the command's output, which goes to a file. The
    /// machine `virt` has one line for users, and gets the second as a card.
    pub(crate) fn output_arguments(self, file: &Path) -> Vec<String> {
        let file = file.display();
        match self {
            Self::X86 => vec!["-serial".to_owned(), format!("file:{file}")],
            Self::Arm64 => vec![
                "-chardev".to_owned(),
                format!("file,id=output,path={file}"),
                "-device".to_owned(),
                "pci-serial,chardev=output".to_owned(),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_tells_its_processor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vmlinuz");
        let of = |content: &[u8]| {
            std::fs::write(&path, content).unwrap();
            Processor::of_image(&path).unwrap()
        };
        let mut image = b"MZ".to_vec();
        image.resize(56, 0);
        image.extend(b"ARM\x64\x40\0\0\0");
        assert_eq!(of(&image), Processor::Arm64);
        // A compressed image for UEFI, of either kind.
        image[56..60].fill(0);
        image.extend(b"PE\0\0\x64\xaa");
        assert_eq!(of(&image), Processor::Arm64);
        image[68..70].copy_from_slice(&[0x64, 0x86]);
        assert_eq!(of(&image), Processor::X86);
        // Cut anywhere, or with a place behind its end.
        (0..image.len()).for_each(|length| assert_eq!(of(&image[..length]), Processor::X86));
        image[60..64].fill(0xff);
        assert_eq!(of(&image), Processor::X86);
    }
}
