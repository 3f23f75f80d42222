//! The kernel's log (Linux, Documentation/ABI/testing/dev-kmsg), and the faults of an IOMMU in it.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

/// A line of the log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogLine {
    /// Its number; they grow.
    pub number: u64,
    /// Its text.
    pub text: String,
}

/// Returns the lines that the log holds now. Without the right to read it there are none.
pub fn lines() -> impl Iterator<Item = LogLine> {
    let mut options = OpenOptions::new();
    let mut file = options.read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg").ok();
    std::iter::from_fn(move || {
        loop {
            let mut record = [0; 8192];
            match file.as_mut()?.read(&mut record) {
                // A container may have another file in its place.
                Ok(0) => return None,
                Ok(count) => return Some(line(&String::from_utf8_lossy(&record[..count]))),
                // The log has overwritten what was to come; the next record is there.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => return None,
            }
        }
    })
}

/// Reads `level,number,µs,flags;text`, behind which lines with properties follow.
fn line(record: &str) -> LogLine {
    let (head, text) = record.split_once(';').unwrap_or_default();
    let number = head.split(',').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0);
    LogLine { number, text: text.lines().next().unwrap_or_default().to_owned() }
}

/// An access of a device that an IOMMU of Intel has refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct IommuFault {
    /// `Read` or `Write`.
    pub access: &'static str,
    /// The device, `00:06.0`.
    pub device: String,
    /// The address that it wanted to access.
    pub address: u64,
    /// The line, which also has the reason.
    pub text: String,
}

impl IommuFault {
    /// Reads it from a line of the log (Linux, drivers/iommu/intel/dmar.c). The prefix of the
    /// address and the words around PASID depend on the version.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("DMAR: [DMA ")?;
        let access = ["Read", "Write"].into_iter().find(|access| rest.starts_with(access))?;
        let (device, rest) = rest.split_once("Request device [")?.1.split_once(']')?;
        let (_, rest) = rest.split_once("fault addr ")?;
        let address = rest.split_whitespace().next()?.trim_start_matches("0x");
        let address = u64::from_str_radix(address, 16).ok()?;
        Some(Self { access, device: device.to_owned(), address, text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_a_number_and_a_text() {
        let found = line("3,512,4821,-;DMAR: DRHD: handling\n SUBSYSTEM=pci\n");
        assert_eq!(found, LogLine { number: 512, text: "DMAR: DRHD: handling".to_owned() });
        assert_eq!(line("").number, 0);
    }

    #[test]
    fn a_fault_names_device_address_and_direction() {
        let new = "DMAR: [DMA Write NO_PASID] Request device [00:06.0] fault addr 0x7f35000 [fault \
                   reason 0x05] PTE Write access is not set";
        let fault = IommuFault::parse(new).unwrap();
        assert_eq!((fault.access, &*fault.device, fault.address), ("Write", "00:06.0", 0x7f3_5000));
        let old = "DMAR: [DMA Read] Request device [3b:00.1] PASID ffffffff fault addr fffff000 \
                   [fault reason 06] PTE Read access is not set";
        let fault = IommuFault::parse(old).unwrap();
        assert_eq!((fault.access, &*fault.device, fault.address), ("Read", "3b:00.1", 0xffff_f000));
        for other in ["DMAR: DRHD: handling fault status reg 2", "DMAR: IOMMU enabled", ""] {
            assert_eq!(IommuFault::parse(other), None);
        }
    }
}
