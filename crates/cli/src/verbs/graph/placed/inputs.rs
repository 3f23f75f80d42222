//! The inputs of `plan`: a machine, a profile, pins.

use anyhow::{Context, ensure};
use millstream_cpu::{CpuSet, Environment, RecordedMachine, Topology};
use millstream_flow::Shape;
use millstream_flow::{GraphFile, Profile};
use serde_json::Value;
use std::path::Path;

/// The machine to plan for.
pub struct TargetMachine {
    pub name: String,
    pub topology: Topology,
    /// CPUs that this process may use; `None` on another machine.
    pub allowed: Option<CpuSet>,
}

impl TargetMachine {
    /// This machine, or another: by name, from a description, or from a copy of its `/sys`.
    pub fn read(said: Option<&str>) -> anyhow::Result<Self> {
        let Some(said) = said else {
            let topology = Topology::read(Path::new("/"))?;
            let model = Environment::read(Path::new("/"), "").cpu_model;
            let count = topology.cores.len();
            let name = format!("{count} × {}", model.unwrap_or_else(|| "this machine".to_owned()));
            let allowed = millstream_cpu::thread::allowed_cpus().ok();
            return Ok(Self { name, topology, allowed });
        };
        let path = Path::new(said);
        let (name, topology) = if path.is_dir() {
            (said.to_owned(), tree(path)?)
        } else if path.is_file() {
            let text = millstream_flow::file::read_text(path)
                .with_context(|| format!("cannot read the machine file {said}"))?;
            let machine = RecordedMachine::from_toml(&text)
                .with_context(|| format!("cannot use the machine file {said}"))?;
            (machine.description, machine.topology)
        } else {
            let machine = RecordedMachine::named(said)?;
            (machine.description, machine.topology)
        };
        Ok(Self { name, topology, allowed: None })
    }
}

/// A folder that holds `sys`, or is it.
fn tree(folder: &Path) -> anyhow::Result<Topology> {
    let root = if folder.join("devices/system/cpu").is_dir() {
        folder.parent().filter(|_| folder.ends_with("sys")).with_context(|| {
            format!(
                "{} contains a copy of /sys under another name: rename that folder to `sys`",
                folder.display()
            )
        })?
    } else {
        folder
    };
    Ok(Topology::read(root)?)
}

/// `BLOCK=CPU`.
pub fn pin(text: &str) -> Result<(String, usize), String> {
    let (block, cpu) = text.split_once('=').ok_or("write BLOCK=CPU")?;
    let cpu = cpu.parse().map_err(|_| {
        format!("`{cpu}` is not the number of a CPU: write BLOCK=CPU, for example decoder=2")
    })?;
    Ok((block.to_owned(), cpu))
}

/// A profile that was measured on this graph, alone or in the document of `millstream --json`.
pub fn profile(path: &Path, file: &GraphFile) -> anyhow::Result<(Shape, Profile)> {
    let shown = path.display();
    let text = millstream_flow::file::read_text(path)
        .with_context(|| format!("cannot read the profile {shown}"))?;
    let mut value: Value =
        serde_json::from_str(&text).with_context(|| format!("the profile {shown} is not JSON"))?;
    if let Some(inside) = value.pointer_mut("/results/profile") {
        value = inside.take();
    }
    let profile: Profile = serde_json::from_value(value).with_context(|| {
        format!(
            "{shown} contains no profile: give a file that `millstream graph plan --json` printed"
        )
    })?;
    let mut measured: Vec<&str> = profile.blocks.iter().map(|block| &*block.name).collect();
    let mut there: Vec<&str> = file.block_names().collect();
    measured.sort_unstable();
    there.sort_unstable();
    ensure!(
        measured == there,
        "the profile {shown} belongs to another graph: it has the blocks {}, but this graph has \
         {}",
        measured.join(", "),
        there.join(", ")
    );
    Ok((Shape::of_profile(&profile), profile))
}
