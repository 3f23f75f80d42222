//! As long as the card is not vfio-pci's.

use super::Outcome;
use super::process::Process;
use super::rig::Rig;
use anyhow::Context;
use millstream_host::pci;

/// The kernel's driver has it.
pub fn by_the_kernel(rig: &Rig) -> Outcome {
    let bind = format!("dpdk-devbind.py --bind=vfio-pci {}", rig.card);
    host(rig, "", &[&rig.driver, &bind])
}

/// A driver has it that keeps it from nothing.
pub fn as_unsafe(rig: &Rig) -> Outcome {
    const UIO: &str = "uio_pci_generic";
    pci::bind(&rig.card, UIO).with_context(|| format!("bind to {UIO}"))?;
    host(rig, "", &["any memory", "unsafe_uio=on"])
}

/// A host on the card, which there cannot be.
fn host(rig: &Rig, more: &str, words: &[&str]) -> Outcome {
    let link = rig.link(more);
    Process::start(&["host", "net", "host", "--link", &link, "--duration", "1"])?
        .end()?
        .refused(words)
}

/// What the kernel knows of it, as a file.
pub fn import(rig: &Rig) -> Outcome {
    let file = rig.file();
    let file = file.to_string_lossy();
    let words = ["host", "net", "import", "--dpdk", &rig.name, "--out", &file];
    let ended = Process::start(&words)?.end()?;
    let head = ended.head();
    let text = std::fs::read_to_string(rig.file()).with_context(|| head.clone())?;
    Ok(std::iter::once(head).chain(text.lines().map(str::to_owned)).collect())
}
