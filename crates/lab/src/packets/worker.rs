//! A side as a process: reads jobs line by line, plays them, and answers. It ends with its input.

use std::io::{self, BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use millstream_cpu::sched::{self, Class};

use super::end::{self, EndAddress};
use super::job::{BulkPlan, JobResult, PingPlan, Role, SideJob, SideReply};
use super::launch::{ArrivalEnd, LaunchEnd};
use super::plan::{Carriage, Half};
use super::side::PacketSide;
use super::trace::SyscallTrace;
use super::waiting::{ListenEnd, TickPlan};
use crate::helper::answer;

/// The first line of a side: it is in its network.
pub const HELLO: &str = "hello";

/// The line that ends the running job.
pub const STOP: &str = "stop";

/// Serves jobs from `input` until it ends.
///
/// # Errors
/// When the reader of the answers has gone.
pub fn serve(input: impl BufRead + Send + 'static, output: &mut impl Write) -> io::Result<()> {
    writeln!(output, "{HELLO}")?;
    output.flush()?;
    let stop = Arc::new(AtomicBool::new(false));
    let (tell, jobs) = mpsc::channel();
    let reader_stop = Arc::clone(&stop);
    std::thread::Builder::new().name("ms-jobs".to_owned()).spawn(move || {
        for line in input.lines().map_while(Result::ok) {
            if line == STOP {
                reader_stop.store(true, Ordering::Relaxed);
                continue;
            }
            // A stop request that came too late must not end the next job.
            reader_stop.store(false, Ordering::Relaxed);
            if tell.send(line).is_err() {
                return;
            }
        }
        reader_stop.store(true, Ordering::Relaxed);
    })?;
    for line in jobs {
        let reply = match serde_json::from_str::<SideJob>(&line) {
            Ok(job) => play(&job, &stop, output)?,
            Err(error) => Err(format!("cannot read the request: {error}")),
        };
        let reply =
            reply.map_or_else(SideReply::Failed, |outcome| SideReply::Done(Box::new(outcome)));
        answer(output, &reply)?;
    }
    Ok(())
}

/// Opens the end, reports that it is ready, and plays the role. The outer error: the reader has
/// gone.
fn play(
    job: &SideJob,
    stop: &AtomicBool,
    output: &mut impl Write,
) -> io::Result<Result<JobResult, String>> {
    // Before any thread of a link starts, so that it counts those, too.
    let trace = match job.trace.then(SyscallTrace::open).transpose() {
        Ok(trace) => trace,
        Err(why) => return Ok(Err(format!("cannot trace system calls: {why}"))),
    };
    if let Err(error) = schedule(job.fifo) {
        return Ok(Err(error));
    }
    match &job.role {
        Role::Launch(plan) => {
            let end = LaunchEnd::open(&job.end, plan.via);
            return alone(end, LaunchEnd::address, |end| end.play(plan, stop), output);
        }
        Role::Arrive { tolerance_ns } => {
            let end = ArrivalEnd::open(&job.end);
            return alone(end, ArrivalEnd::address, |end| end.play(*tolerance_ns, stop), output);
        }
        Role::Listen => {
            let end = ListenEnd::open(&job.end);
            return alone(end, ListenEnd::address, |end| end.play(stop), output);
        }
        _ => {}
    }
    let receives = !matches!(
        job.role,
        Role::Hold | Role::Bulk(_) | Role::Tick(_) | Role::Transmit { drain: false, .. }
    );
    let opened = end::open(&job.end, receives).and_then(|end| Ok((end, load_end(job)?)));
    let (mut end, mut load) = match opened {
        Ok(opened) => opened,
        Err(reason) => return Ok(Err(reason)),
    };
    if let Role::Transmit { to, .. }
    | Role::Ping(PingPlan { to, .. })
    | Role::Bulk(BulkPlan { to, .. })
    | Role::Tick(TickPlan { to, .. }) = &job.role
    {
        end.aim(to);
        load.iter_mut().for_each(|load| load.aim(to));
    }
    let address: EndAddress = end.address();
    answer(output, &SideReply::Ready(address))?;
    let load = load.as_deref_mut().map(|end| end as &mut dyn end::PathEnd);
    let mut side = PacketSide { end: &mut *end, load, wait: job.end.way.wait, stop, trace };
    Ok(side.play(&job.role).map_err(|error| format!("{}: {error}", name(&job.end.way))))
}

/// Plays a role that has an end of its own kind.
fn alone<E>(
    opened: Result<E, String>,
    address: impl Fn(&E) -> EndAddress,
    play: impl FnOnce(&mut E) -> io::Result<JobResult>,
    output: &mut impl Write,
) -> io::Result<Result<JobResult, String>> {
    let mut end = match opened {
        Ok(end) => end,
        Err(reason) => return Ok(Err(reason)),
    };
    answer(output, &SideReply::Ready(address(&end)))?;
    Ok(play(&mut end).map_err(|error| error.to_string()))
}

/// Opens the second end for load: flows over ports and sockets have one each; on a bare link both
/// share one.
fn load_end(job: &SideJob) -> Result<Option<Box<dyn end::PathEnd>>, String> {
    let Role::Ping(PingPlan { load_pps: Some(_), .. }) = &job.role else { return Ok(None) };
    match job.end.way.path {
        Carriage::Kernel | Carriage::Port => end::open(&job.end, false).map(Some),
        Carriage::Frames | Carriage::IpFrames => Ok(None),
    }
}

fn name(way: &Half) -> &str {
    if way.path == Carriage::Kernel { "kernel UDP" } else { &way.link }
}

/// Sets the scheduling class of this thread; threads started later inherit it.
fn schedule(fifo: Option<u32>) -> Result<(), String> {
    let class = fifo.map_or(Class::Other, |priority| Class::Fifo(priority.min(99) as u8));
    let advice = "it needs root, CAP_SYS_NICE or RLIMIT_RTPRIO (and, in a cpu cgroup, rt_runtime)";
    sched::set_thread(0, class).map_err(|error| format!("cannot run as {class}: {error}; {advice}"))
}
