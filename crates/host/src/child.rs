//! Child processes for a measurement: each runs on its CPU, and ends with the process that started
//! it.

use millstream_cpu::proc::Stat;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

/// Makes `command` run on `cpu` only, if one is given, and end when the calling thread ends, in any
/// way (prctl(2), PR_SET_PDEATHSIG).
///
/// # Panics
/// When `cpu` is beyond the CPUs that Linux masks hold (1024). The spawn of the command fails when
/// the CPU does not exist or is not allowed.
pub fn tie(command: &mut Command, cpu: Option<usize>) {
    let mask = cpu.map(|cpu| {
        let mut mask = rustix::thread::CpuSet::new();
        mask.set(cpu);
        mask
    });
    let parent = std::process::id();
    let prepare = move || {
        if let Some(mask) = &mask {
            rustix::thread::sched_setaffinity(None, mask)?;
        }
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        // The parent may have ended just before.
        if std::os::unix::process::parent_id() == parent {
            Ok(())
        } else {
            Err(io::ErrorKind::Other.into())
        }
    };
    // SAFETY: the closure makes async-signal-safe system calls and allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

/// Passes descriptors to `command`, under the same numbers as here.
pub fn inherit(command: &mut Command, descriptors: Vec<Arc<OwnedFd>>) {
    let keep = move || {
        for descriptor in &descriptors {
            rustix::io::fcntl_setfd(&**descriptor, rustix::io::FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only fcntl(2) is called, which is safe there.
    unsafe { command.pre_exec(keep) };
}

/// Returns the user and system CPU time of a process with all its threads, including ended ones,
/// seconds (proc(5)): exact to a clock tick, usually 10 ms. `None` when the process has ended.
#[must_use]
pub fn cpu_time_s(pid: u32) -> Option<f64> {
    let stat = Stat::read(format!("/proc/{pid}").as_ref())?;
    let ticks = stat.field::<u64>(14)? + stat.field::<u64>(15)?;
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn a_tied_process_runs_on_its_cpu() {
        let cpu = millstream_cpu::thread::allowed_cpus().unwrap().iter().next().unwrap();
        let mut command = Command::new("cat");
        command.arg("/proc/self/status").stdout(Stdio::piped());
        tie(&mut command, Some(cpu));
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(&format!("Cpus_allowed_list:\t{cpu}\n")), "{text}");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        let mut command = Command::new("true");
        tie(&mut command, Some(1023));
        assert!(command.spawn().is_err());
    }

    #[test]
    fn a_tied_process_ends_with_the_thread_that_started_it() {
        let start = || {
            let mut command = Command::new("cat");
            command.stdin(Stdio::piped());
            tie(&mut command, None);
            command.spawn().unwrap()
        };
        let mut child = std::thread::spawn(start).join().unwrap();
        // Without the tie it would wait for its input for ever.
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn this_process_has_used_time_and_no_process_none() {
        assert!(cpu_time_s(std::process::id()).is_some());
        assert_eq!(cpu_time_s(u32::MAX), None);
    }
}
