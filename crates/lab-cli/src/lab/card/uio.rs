//! Streams over UIO, without the protection of an IOMMU.

use super::rig::CardSetup;
use super::{CardResult, UIO, refused, stream};
use anyhow::Context;
use millstream_host::pci;

/// The option with which the link takes such a card.
const UNSAFE: &str = "huge=on,unsafe_uio=on";
/// The domain in which the IOMMU refuses nothing.
const UNPROTECTED: &str = "identity";

/// Streams in both directions over UIO, if the command line has allowed it.
pub fn streams(rig: &CardSetup) -> CardResult {
    if !rig.unsafe_uio {
        return Ok(vec!["not tried: --unsafe-uio was not given".to_owned()]);
    }
    let mut lines = Vec::new();
    let domain = pci::iommu_domain(&rig.card);
    if domain.as_deref().is_some_and(|domain| domain != UNPROTECTED) {
        pci::bind(&rig.card, UIO).with_context(|| format!("cannot bind the card to {UIO}"))?;
        lines.push("behind the IOMMU:".to_owned());
        lines.extend(refused::host(rig, UNSAFE, &["the IOMMU is on", "iommu=pt"])?);
    }
    let outcome = unprotected(rig, domain.is_some(), &mut lines);
    // A card that is in use has another domain only after it was released.
    pci::release(&rig.card)?;
    if let Some(domain) = domain {
        pci::set_iommu_domain(&rig.card, &domain).with_context(|| {
            format!("cannot give the card its domain {domain} of the IOMMU back")
        })?;
        lines.push(format!("its domain of the IOMMU is {domain} again"));
    }
    outcome.map(|()| lines)
}

fn unprotected(rig: &CardSetup, iommu: bool, lines: &mut Vec<String>) -> anyhow::Result<()> {
    if iommu {
        pci::release(&rig.card)?;
        pci::set_iommu_domain(&rig.card, UNPROTECTED)
            .context("cannot take the IOMMU away: start the kernel with iommu=pt")?;
        lines.push(format!("the domain of the card is now {UNPROTECTED}: it reaches all memory"));
    }
    pci::bind(&rig.card, UIO).with_context(|| format!("cannot bind the card to {UIO}"))?;
    // DPDK knows physical addresses of huge pages only.
    lines.push("without huge pages:".to_owned());
    lines.extend(refused::host(rig, "huge=off,unsafe_uio=on", &["Expecting 'PA' IOVA mode"])?);
    let both = || {
        let mut lines = stream::received(rig, UNSAFE)?;
        lines.extend(stream::transmitted(rig, UNSAFE)?);
        Ok(lines)
    };
    lines.extend(stream::with_huge_pages(both)?);
    Ok(())
}
