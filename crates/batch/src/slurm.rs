//! The engine `slurm`: an array job whose elements run the same tasks as a worker here.

use crate::results::make_parent;
use crate::{Batch, BatchError};
use std::fs;
use std::path::{Path, PathBuf};

/// The most elements of an array: sites allow about a thousand (MaxArraySize). With more tasks, an
/// element runs several, one after the other.
pub const ELEMENTS_MAX: usize = 1000;

/// An array job in a folder of its own.
#[derive(Clone, Debug)]
pub struct ArrayJob {
    /// The script for `sbatch`.
    pub script: PathBuf,
    /// The elements of the array.
    pub elements: usize,
}

impl ArrayJob {
    /// Writes the script and the list of its tasks into `slurm/NAME` of the results. `program` runs
    /// the tasks; at most `workers` elements run at a time, each with so many CPUs.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write(
        batch: &Batch,
        tasks: &[usize],
        (name, program): (&str, &Path),
        (workers, cpus): (Option<usize>, usize),
    ) -> Result<Self, BatchError> {
        let folder = batch.results().path().join("slurm").join(name);
        let (list, script) = (folder.join("tasks"), folder.join("job.sh"));
        make_parent(&list)?;
        let names = tasks.iter().map(|task| batch.tasks[*task].name.clone() + "\n");
        fs::write(&list, names.collect::<String>()).map_err(BatchError::write(&list))?;
        let elements = tasks.len().min(ELEMENTS_MAX);
        let text = text(batch, &folder, program, elements, workers, cpus);
        fs::write(&script, text).map_err(BatchError::write(&script))?;
        Ok(Self { script, elements })
    }
}

fn text(
    batch: &Batch,
    folder: &Path,
    program: &Path,
    elements: usize,
    workers: Option<usize>,
    cpus: usize,
) -> String {
    let last = elements.saturating_sub(1);
    let throttle = workers.map_or(String::new(), |workers| format!("%{workers}"));
    let stem = batch.path.file_stem().unwrap_or_default().to_string_lossy();
    // sbatch takes `%` in names of files for itself.
    let log = folder.join("%a.log").display().to_string();
    let log = log.replace('\\', "");
    let [list, program, manifest] = [&folder.join("tasks"), program, &batch.path].map(quoted);
    format!(
        "#!/bin/bash\n\
         #SBATCH --job-name={name}\n\
         #SBATCH --array=0-{last}{throttle}\n\
         #SBATCH --cpus-per-task={cpus}\n\
         #SBATCH --output={output}\n\
         #SBATCH --requeue\n\
         # Partition, account and time limit: SBATCH_PARTITION, SBATCH_ACCOUNT, SBATCH_TIMELIMIT.\n\
         mapfile -t tasks < {list}\n\
         status=0\n\
         for ((at = SLURM_ARRAY_TASK_ID; at < ${{#tasks[@]}}; at += {elements})); do\n  \
           {program} batch task {manifest} \"${{tasks[at]}}\"\n  \
           ended=$?\n  \
           # {busy}: another process runs the task.\n  \
           [ $ended = 0 ] || [ $ended = {busy} ] || status=1\n\
         done\n\
         exit $status\n",
        name = plain(&stem),
        output = quoted(Path::new(&log)),
        busy = crate::engine::BUSY_STATUS,
    )
}

/// A path as one word of the shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

/// A name that needs no quotes.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    format!("millstream-{}", name.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_quotes_is_one_word() {
        assert_eq!(quoted(Path::new("/a b/it's")), "'/a b/it'\\''s'");
        assert_eq!(plain("a b'c"), "millstream-a-b-c");
    }
}
