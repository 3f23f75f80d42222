//! An access to memory that is not mapped for a device: refused and reported, or done.

use super::CardResult;
use super::rig::CardSetup;
use anyhow::{Context, ensure};
use millstream_host::pci;
use millstream_lab::vfio::outside;

/// A device that the program commands accesses memory that the IOMMU does not map for it.
pub fn unmapped(rig: &CardSetup) -> CardResult {
    let Some(tester) = &rig.tester else {
        return Ok(vec!["not tried: --dma-tester was not given".to_owned()]);
    };
    let bound = pci::bind(tester, "vfio-pci");
    let bound = bound.with_context(|| format!("cannot bind {tester} to vfio-pci"));
    let tried = bound.and_then(|_| Ok(outside::try_access(tester)?));
    let back = pci::give_back(tester);
    let tried = tried?;
    back?;
    if let Some(wrong) = tried.wrong() {
        anyhow::bail!("{wrong}");
    }
    let page = format!("{:#x}", tried.address);
    let mut lines = vec![
        format!("{tester} read and wrote the page at {page} while it was mapped: no fault"),
        format!("not mapped any more, the page at {page} was neither changed nor read:"),
    ];
    for fault in tried.faults.iter().flatten() {
        ensure!(tester.ends_with(&fault.device), "a fault of another device: {}", fault.text);
        lines.push(format!("device {}, {}, {:#x}", fault.device, fault.access, fault.address));
        lines.push(fault.text.clone());
    }
    Ok(lines)
}
