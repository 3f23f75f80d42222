//! Steps while the card is not vfio-pci's.

use super::process::CardProcess;
use super::rig::CardSetup;
use super::{CardResult, UIO};
use anyhow::Context;
use millstream_host::pci;

/// The kernel's driver has the card.
pub fn by_the_kernel(rig: &CardSetup) -> CardResult {
    let bind = format!("dpdk-devbind.py --bind=vfio-pci {}", rig.card);
    host(rig, "", &[&rig.driver, &bind])
}

/// A driver without IOMMU protection has the card.
pub fn as_unsafe(rig: &CardSetup) -> CardResult {
    pci::bind(&rig.card, UIO).with_context(|| format!("cannot bind the card to {UIO}"))?;
    host(rig, "", &["any memory", "unsafe_uio=on"])
}

/// Starts a host on the card, which must be refused.
pub fn host(rig: &CardSetup, more: &str, words: &[&str]) -> CardResult {
    let link = rig.link(more);
    CardProcess::start(&["host", "net", "host", "--link", &link, "--duration", "1"])?
        .end()?
        .refused(words)
}

/// Imports the kernel's configuration of the card to a file.
pub fn import(rig: &CardSetup) -> CardResult {
    let file = rig.file();
    let file = file.to_string_lossy();
    let words = ["host", "net", "import", "--dpdk", &rig.name, "--out", &file];
    let ended = CardProcess::start(&words)?.end()?;
    let head = ended.head();
    let text = std::fs::read_to_string(rig.file()).with_context(|| head.clone())?;
    Ok(std::iter::once(head).chain(text.lines().map(str::to_owned)).collect())
}
