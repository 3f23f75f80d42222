//! Facts of the machine: the IOMMU, VFIO, the driver of the card.

use super::process::CardProcess;
use super::rig::{CardSetup, wait};
use super::{CardResult, HOST};
use crate::output::Join;
use anyhow::{Context, ensure};
use millstream_host::netlink::Netlink;
use millstream_host::{kernel_log, pci};
use std::fs;
use std::time::Duration;

const NO_IOMMU: &str = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";

/// The kernel, its messages about the IOMMU, and the card.
pub fn machine(rig: &CardSetup) -> CardResult {
    let mut lines = vec![
        format!("kernel {}", read("/proc/sys/kernel/osrelease")),
        format!("command line: {}", read("/proc/cmdline")),
    ];
    let log = kernel_log::lines().map(|line| line.text);
    lines.extend(log.filter(|line| is_about_the_iommu(line, &rig.card)));
    let device = |file: &str| read(&format!("/sys/bus/pci/devices/{}/{file}", rig.card));
    let (CardSetup { card, name, driver, .. }, vendor, number) =
        (rig, device("vendor"), device("device"));
    lines.push(format!("{card}: {vendor}:{number}, {name} of {driver}"));
    let group = pci::iommu_group(&rig.card).context(
        "the card is in no IOMMU group: switch on the IOMMU (kernel argument intel_iommu=on)",
    )?;
    lines.push(format!("IOMMU group {group}: {}", members(&group).join(" ")));
    Ok(lines)
}

/// Binds the card to VFIO.
pub fn bind(rig: &CardSetup) -> CardResult {
    pci::bind(&rig.card, "vfio-pci")?;
    let group = pci::iommu_group(&rig.card).context(
        "the card is in no IOMMU group: switch on the IOMMU (kernel argument intel_iommu=on)",
    )?;
    ensure!(fs::exists(format!("/dev/vfio/{group}"))?, "there is no /dev/vfio/{group}");
    // A kernel that is built without it has no such file.
    let no_iommu = fs::read_to_string(NO_IOMMU).unwrap_or_else(|_| "not built in".to_owned());
    let no_iommu = no_iommu.trim();
    ensure!(no_iommu != "Y", "VFIO would hand devices out without an IOMMU ({NO_IOMMU})");
    let domain = pci::iommu_domain(&rig.card).unwrap_or_default();
    Ok(vec![
        format!("driver {}", pci::driver_of(&rig.card).unwrap_or_default()),
        format!("/dev/vfio/{group}; group {group} ({domain}): {}", members(&group).join(" ")),
        format!("no-IOMMU mode: {no_iommu} ({NO_IOMMU})"),
        type1(),
    ])
}

/// The VFIO files of a running process, and the interrupts of the card.
pub fn held(pid: u32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    let names = targets.map(|target| target.to_string_lossy().into_owned());
    let mut held: Vec<_> = names.filter(|target| target.contains("vfio")).collect();
    held.sort();
    held
}

/// Interrupts through VFIO, by the kernel's counts.
pub fn interrupts() -> Vec<String> {
    let all = read("/proc/interrupts");
    let lines = all.lines().filter(|line| line.contains("vfio"));
    lines.map(|line| line.split_whitespace().join(" ")).collect()
}

/// The use count of VFIO's IOMMU module.
pub fn type1() -> String {
    let all = read("/proc/modules");
    let line = all.lines().find(|line| line.starts_with("vfio_iommu_type1 "));
    let users = line.and_then(|line| line.split_whitespace().nth(2));
    format!("vfio_iommu_type1: {} users", users.unwrap_or("no"))
}

/// Before: the driver has the card.
pub fn doctor_before(rig: &CardSetup) -> CardResult {
    let bind = format!("dpdk-devbind.py --bind=vfio-pci {}", rig.card);
    doctor(&["an IOMMU is on", "vfio-pci is loaded", "the link is up", &bind])
}

/// After: it does not any more.
pub fn doctor_bound(_: &CardSetup) -> CardResult {
    doctor(&["vfio-pci drives the device, so DPDK can take it"])
}

fn doctor(wanted: &[&str]) -> CardResult {
    let ended = CardProcess::start(&["host", "doctor", "dpdk"])?.end()?;
    let text = &ended.text;
    for wanted in wanted {
        ensure!(
            text.contains(wanted),
            "{}\nthe output of the command lacks `{wanted}`:\n{text}",
            ended.head()
        );
    }
    Ok([vec![ended.head()], ended.wrote()].concat())
}

/// The kernel has it again, as it was.
pub fn give_back(rig: &CardSetup) -> CardResult {
    pci::give_back(&rig.card)?;
    let back = || pci::interface_of(&rig.card);
    let is_back = wait(Duration::from_secs(5), || back().is_some());
    ensure!(is_back, "the driver {} did not take the card back", rig.driver);
    let name = back().unwrap_or_default();
    let mut netlink = Netlink::open()?;
    let index = netlink.interface(&name)?.index;
    let has = netlink.addresses()?.iter().any(|address| address.address == HOST);
    ensure!(!has, "another network interface has the address {HOST} now");
    netlink.set_up(index, true)?;
    let running =
        || Netlink::open().is_ok_and(|mut it| it.interface(&name).is_ok_and(|i| i.running));
    ensure!(
        wait(Duration::from_secs(20), running),
        "the network interface {name} has no carrier: check the cable"
    );
    let driver = pci::driver_of(&rig.card).unwrap_or_default();
    Ok(vec![format!("{driver} has it, as {name}, with its carrier"), type1()])
}

fn is_about_the_iommu(line: &str, card: &str) -> bool {
    let iommu = line.contains("DMAR") && (line.contains("enabled") || line.contains("Virtualiz"));
    iommu || line.contains("iommu: Default") || line.contains(card) && line.contains("iommu group")
}

fn members(group: &str) -> Vec<String> {
    let entries = fs::read_dir(format!("/sys/kernel/iommu_groups/{group}/devices"));
    let names = entries.into_iter().flatten().flatten();
    names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}
