//! The engine `slurm`: an array job whose elements run the same tasks as a worker here.

use crate::results::make_parent;
use crate::{Batch, BatchError};
use std::fs;
use std::path::{Path, PathBuf};

/// The most elements of an array: sites allow about a thousand (MaxArraySize). With more tasks, an
/// element runs several, one after the other.
pub const ELEMENTS_MAX: usize = 1000;

/// Pauses between the tries of a task that another process runs, seconds.
const BUSY_PAUSES: &str = "1 10 60";

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
    /// The folder cannot be written, or Slurm cannot write its logs there.
    pub fn write(
        batch: &Batch,
        tasks: &[usize],
        (name, program): (&str, &Path),
        (workers, cpus): (Option<usize>, usize),
    ) -> Result<Self, BatchError> {
        let folder = batch.results().path().join("slurm").join(name);
        let log = log_pattern(&folder)?;
        let (list, script) = (folder.join("tasks"), folder.join("job.sh"));
        make_parent(&list)?;
        let names = tasks.iter().map(|task| batch.tasks[*task].name.clone() + "\n");
        fs::write(&list, names.collect::<String>()).map_err(BatchError::write(&list))?;
        let elements = tasks.len().min(ELEMENTS_MAX);
        let text = text(batch, (&folder, &log), program, elements, workers, cpus);
        fs::write(&script, text).map_err(BatchError::write(&script))?;
        Ok(Self { script, elements })
    }
}

/// The path of the logs, where sbatch takes `%` for itself.
fn log_pattern(folder: &Path) -> Result<String, BatchError> {
    match folder.to_str() {
        Some(text) if !text.contains(['\\', '\n']) => Ok(text.replace('%', "%%") + "/%a.log"),
        _ => Err(BatchError::SlurmPath(folder.to_owned())),
    }
}

fn text(
    batch: &Batch,
    (folder, log): (&Path, &str),
    program: &Path,
    elements: usize,
    workers: Option<usize>,
    cpus: usize,
) -> String {
    let last = elements.saturating_sub(1);
    let throttle = workers.map_or(String::new(), |workers| format!("%{workers}"));
    let stem = batch.path.file_stem().unwrap_or_default().to_string_lossy();
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
           # {busy}: another process runs the task.\n  \
           for pause in {BUSY_PAUSES} 0; do\n    \
             {program} batch task {manifest} \"${{tasks[at]}}\"\n    \
             ended=$?\n    \
             [ $ended = {busy} ] || break\n    \
             sleep $pause\n  \
           done\n  \
           [ $ended = 0 ] || [ $ended = {busy} ] || status=1\n\
         done\n\
         exit $status\n",
        name = plain(&stem),
        output = quoted(Path::new(log)),
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

    #[test]
    fn a_path_of_logs_is_escaped_or_refused() {
        assert_eq!(log_pattern(Path::new("/a 5%/x")).unwrap(), "/a 5%%/x/%a.log");
        let error = log_pattern(Path::new("/a\\b")).unwrap_err().to_string();
        assert!(error.ends_with("choose another folder with the key `results`"), "{error}");
    }

    /// Says how it was called; the first calls for the second task end with status 75.
    const PROGRAM: &str = "#!/bin/sh\n\
        echo \"$4\" >>\"$0.calls\"\n\
        [ \"$4\" != \"$BUSY\" ] && exit 0\n\
        [ \"$(grep -c \"$4\" \"$0.calls\")\" -gt \"$TIMES\" ] || exit 75\n";

    #[test]
    fn a_task_that_another_process_runs_is_tried_again() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, batch) = crate::batch::tests::of_recordings(2, "");
        let batch = batch.unwrap();
        let program = folder.path().join("program");
        fs::write(&program, PROGRAM).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let job = ArrayJob::write(&batch, &[0, 1], ("1", &program), (None, 1)).unwrap();
        for (times, calls) in [("2", 3), ("9", 4)] {
            // Without the pauses.
            let script = fs::read_to_string(&job.script).unwrap();
            let mut bash = std::process::Command::new("bash");
            bash.args(["-c", &format!("sleep() {{ echo $1; }}\n{script}")]);
            bash.env("BUSY", &batch.tasks[1].name).env("TIMES", times);
            let ended = bash.env("SLURM_ARRAY_TASK_ID", "1").output().unwrap();
            assert!(ended.status.success(), "{ended:?}");
            let pauses = String::from_utf8(ended.stdout).unwrap();
            assert!("1\n10\n60\n0\n".starts_with(&pauses), "{pauses}");
            let called = folder.path().join("program.calls");
            assert_eq!(fs::read_to_string(&called).unwrap().lines().count(), calls);
            fs::remove_file(called).unwrap();
        }
    }
}
