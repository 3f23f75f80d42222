//! Whether an IOMMU refuses and reports an access to memory that was not mapped for a device.

use super::tester::{Access, DmaTester};
use super::{DmaPage, VfioDevice};
use crate::vfio::VfioError;
use crate::vfio::error::at;
use millstream_host::kernel_log::{self, IommuFault};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// The time in which the kernel writes a fault into its log.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the device copies, and what is in the memory that it must neither change nor see.
const COPIED: u8 = 0x5a;
const PROTECTED: u8 = 0xc3;

/// What became of the accesses.
#[derive(Clone, Debug)]
pub struct OutsideAccess {
    /// The physical address of the page, which was also its address for the device.
    pub address: u64,
    /// Whether the device read and wrote the page while it was mapped.
    pub reached_inside: bool,
    /// Faults of the device in that time.
    pub faults_inside: Vec<IommuFault>,
    /// Whether the page, when it was no longer mapped, stayed as it was.
    pub memory_kept: bool,
    /// Whether the device did not get what was in the page then.
    pub memory_hidden: bool,
    /// Faults of the device that the kernel reported for the write and the read.
    pub faults: [Vec<IommuFault>; 2],
}

impl OutsideAccess {
    /// The reason why the memory was not protected, or its protection not reported.
    #[must_use]
    pub fn wrong(&self) -> Option<String> {
        let page = self.address;
        let reported = |faults: &[IommuFault], kind: &str| {
            faults.iter().any(|fault| fault.address & !0xfff == page && fault.access == kind)
        };
        let missing = |kind: &str| {
            let text = format!(
                "the kernel's log reports no fault of the device's {kind} at {page:#x}: is an \
                 IOMMU of Intel on (intel_iommu=on)?"
            );
            Some(text)
        };
        match self {
            Self { reached_inside: false, .. } => Some(format!(
                "the device does not reach the page at {page:#x} even while it is mapped, so the \
                 test shows nothing"
            )),
            Self { faults_inside, .. } if !faults_inside.is_empty() => {
                Some(format!("an access to mapped memory faulted: {}", faults_inside[0].text))
            }
            Self { memory_kept: false, .. } => Some(format!(
                "the device has CHANGED the memory at {page:#x}, which was not mapped for it"
            )),
            Self { memory_hidden: false, .. } => Some(format!(
                "the device has READ the memory at {page:#x}, which was not mapped for it"
            )),
            Self { faults: [write, _], .. } if !reported(write, "Write") => missing("write"),
            Self { faults: [_, read], .. } if !reported(read, "Read") => missing("read"),
            Self { .. } => None,
        }
    }
}

/// Makes the device `edu` of QEMU at this PCI address, which vfio-pci has, access a page that is
/// mapped for it, and the same address when it is not mapped any more. The address is also the
/// page's physical one: without an IOMMU the device would reach it.
///
/// # Errors
/// [`VfioError`]; a failed check is no error, but [`OutsideAccess::wrong`].
pub fn try_access(pci_address: &str) -> Result<OutsideAccess, VfioError> {
    let device = VfioDevice::open(pci_address)?;
    let tester = DmaTester::new(&device)?;
    let page = DmaPage::new().map_err(at("memory"))?;
    let address = page.physical_address().map_err(at("the physical address of memory"))?;
    let short = u32::try_from(address).map_err(|_| {
        at("the physical address of memory")(io::Error::other(format!(
            "{address:#x} has more than 32 bits: the device cannot be told so"
        )))
    })?;
    let mut log = FaultLog::of(pci_address);

    let mapping = device.map(&page, address)?;
    page.fill(COPIED);
    tester.access(Access::Read, short)?;
    page.fill(0);
    tester.access(Access::Write, short)?;
    let reached_inside = page.count(COPIED) == DmaTester::BYTES;
    let faults_inside = log.new_ones();
    drop(mapping);

    page.fill(PROTECTED);
    tester.access(Access::Write, short)?;
    let written = log.wait();
    let memory_kept = page.count(PROTECTED) == DmaPage::BYTES;
    tester.access(Access::Read, short)?;
    let read = log.wait();
    // The page is mapped again to look at what the device has.
    let _mapping = device.map(&page, address)?;
    tester.access(Access::Write, short)?;
    let memory_hidden = page.count(PROTECTED) == DmaPage::BYTES - DmaTester::BYTES;
    let faults = [written, read];
    Ok(OutsideAccess { address, reached_inside, faults_inside, memory_kept, memory_hidden, faults })
}

/// Faults of one device, from now on.
struct FaultLog {
    /// As the kernel's log names it: without the domain.
    device: String,
    last: u64,
}

impl FaultLog {
    fn of(pci_address: &str) -> Self {
        let device = pci_address.trim_start_matches("0000:").to_owned();
        let last = kernel_log::lines().map(|line| line.number).max().unwrap_or(0);
        Self { device, last }
    }

    fn new_ones(&mut self) -> Vec<IommuFault> {
        let lines: Vec<_> = kernel_log::lines().filter(|line| line.number > self.last).collect();
        self.last = lines.last().map_or(self.last, |line| line.number);
        let faults = lines.iter().filter_map(|line| IommuFault::parse(&line.text));
        faults.filter(|fault| fault.device == self.device).collect()
    }

    fn wait(&mut self) -> Vec<IommuFault> {
        let until = Instant::now() + PATIENCE;
        loop {
            let found = self.new_ones();
            if !found.is_empty() || Instant::now() > until {
                return found;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(access: &'static str, address: u64) -> IommuFault {
        let text = format!("{access} {address:x}");
        IommuFault { access, device: "00:06.0".to_owned(), address, text }
    }

    fn good() -> OutsideAccess {
        OutsideAccess {
            address: 0x7000,
            reached_inside: true,
            faults_inside: Vec::new(),
            memory_kept: true,
            memory_hidden: true,
            faults: [vec![fault("Write", 0x7000)], vec![fault("Read", 0x7ff8)]],
        }
    }

    #[test]
    fn only_memory_that_stays_and_faults_that_are_reported_will_do() {
        assert_eq!(good().wrong(), None);
        let says = |change: fn(&mut OutsideAccess), wanted: &str| {
            let mut access = good();
            change(&mut access);
            let said = access.wrong().unwrap();
            assert!(said.contains(wanted), "{said}");
        };
        says(|it| it.reached_inside = false, "even while it is mapped");
        says(|it| it.faults_inside.push(fault("Write", 0x7000)), "mapped memory faulted: Write");
        says(|it| it.memory_kept = false, "has CHANGED the memory at 0x7000");
        says(|it| it.memory_hidden = false, "has READ the memory");
        says(|it| it.faults[0].clear(), "no fault of the device's write at 0x7000");
        says(|it| it.faults[1][0].address = 0x8000, "no fault of the device's read");
        says(|it| it.faults.reverse(), "no fault of the device's write");
    }
}
