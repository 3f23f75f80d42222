//! Lines of the file `trace` (Documentation/trace/ftrace.rst, "Output format").
//!
//! ```text
//!      lto cgu.10-24394   [001] d..2. 62610.589112: sched_switch: prev_comm=lto cgu.10 prev_pid=…
//!      who-number         [cpu] flags seconds       name          fields
//! ```
//!
//! Names of threads may contain any text, including spaces; numbers and keys are searched from both
//! ends.

/// A trace event.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceEvent {
    /// The time, microseconds of the ring's clock.
    pub at_us: f64,
    /// The CPU.
    pub cpu: usize,
    /// The thread that was running on it.
    pub thread: i32,
    /// Its name; `<...>` where the kernel no longer has it.
    pub name: String,
    /// The kind, with its fields.
    pub what: TraceEventKind,
}

/// The kind of an event, with its fields.
#[derive(Clone, Debug, PartialEq)]
pub enum TraceEventKind {
    /// Another thread got the CPU.
    Switch {
        /// The previous thread.
        previous: i32,
        /// Its state: `S` sleeping, `T` stopped, `R` runnable.
        state: String,
        /// The next thread.
        next: i32,
        /// Its name.
        next_name: String,
        /// Its priority in the kernel's numbers: below 100 real time, 99 − n for priority n.
        next_priority: i32,
    },
    /// A thread is being woken.
    Waking {
        /// The thread.
        thread: i32,
        /// Its priority, in the kernel's numbers.
        priority: Option<i32>,
    },
    /// A thread moves to another CPU.
    Migrate {
        /// The thread.
        thread: i32,
        /// The old CPU.
        from: usize,
        /// The new CPU.
        to: usize,
    },
    /// An interrupt begins: of a device, or a vector of the processor.
    InterruptEntry(String),
    /// An interrupt ends.
    InterruptExit,
    /// A soft interrupt begins: `NET_RX`.
    SoftEntry(String),
    /// A soft interrupt ends.
    SoftExit,
    /// A timer fires: the function that it calls.
    Timer(String),
    /// A page was missing.
    PageFault,
    /// A signal is sent.
    Signal {
        /// The number of the signal.
        number: i32,
        /// The receiving thread.
        to: i32,
    },
    /// The clock of the CPU changed, kHz.
    Frequency(u64),
}

/// Returns the events of a trace in the order of its lines; unknown lines are left out.
#[must_use]
pub fn parse(text: &str) -> Vec<TraceEvent> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<TraceEvent> {
    let (name, thread, cpu, rest) = split_at_cpu(line)?;
    let (_flags, rest) = rest.trim_start().split_once(' ')?;
    let (seconds, rest) = rest.trim_start().split_once(": ")?;
    let (event, fields) = rest.split_once(": ").or_else(|| rest.split_once(':'))?;
    let at_us = seconds.parse::<f64>().ok()? * 1e6;
    Some(TraceEvent { at_us, cpu, thread, name: name.to_owned(), what: what(event, fields)? })
}

/// Splits at ` [001] `: name and number of the thread, the CPU, and the rest.
pub(super) fn split_at_cpu(line: &str) -> Option<(&str, i32, usize, &str)> {
    line.match_indices(" [").find_map(|(place, mark)| {
        let (cpu, rest) = line[place + mark.len()..].split_once("] ")?;
        let (name, thread) = line[..place].trim().rsplit_once('-')?;
        // A thread group may follow the number: `name-12 (  10)`.
        let thread = thread.split_whitespace().next()?.parse().ok()?;
        Some((name, thread, cpu.parse().ok()?, rest))
    })
}

/// Returns the value of `key=`, up to the next key or the end.
fn field<'a>(fields: &'a str, key: &str, next: &str) -> Option<&'a str> {
    let rest = &fields[fields.find(key)? + key.len()..];
    Some(if next.is_empty() { rest.trim_end() } else { &rest[..rest.find(next)?] })
}

/// Returns the number after the last `key=`.
fn number(fields: &str, key: &str) -> Option<i32> {
    let rest = &fields[fields.rfind(key)? + key.len()..];
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

fn what(event: &str, fields: &str) -> Option<TraceEventKind> {
    Some(match event {
        "sched_switch" => switch(fields)?,
        "sched_waking" => TraceEventKind::Waking {
            thread: number(fields, " pid=")?,
            priority: number(fields, " prio="),
        },
        "sched_migrate_task" => TraceEventKind::Migrate {
            thread: number(fields, " pid=")?,
            from: number(fields, "orig_cpu=")?.try_into().ok()?,
            to: number(fields, "dest_cpu=")?.try_into().ok()?,
        },
        "irq_handler_entry" => {
            let irq = number(fields, "irq=")?;
            TraceEventKind::InterruptEntry(format!("irq {irq} {}", field(fields, "name=", "")?))
        }
        "irq_handler_exit" => TraceEventKind::InterruptExit,
        "softirq_entry" => TraceEventKind::SoftEntry(field(fields, "action=", "]")?.to_owned()),
        "softirq_exit" => TraceEventKind::SoftExit,
        "hrtimer_expire_entry" => {
            TraceEventKind::Timer(field(fields, "function=", " ")?.to_owned())
        }
        "page_fault_user" | "page_fault_kernel" => TraceEventKind::PageFault,
        "signal_generate" => {
            TraceEventKind::Signal { number: number(fields, "sig=")?, to: number(fields, " pid=")? }
        }
        "cpu_frequency" => TraceEventKind::Frequency(field(fields, "state=", " ")?.parse().ok()?),
        // irq_vectors: `local_timer_entry: vector=236`.
        _ if fields.trim_start().starts_with("vector=") => match event.strip_suffix("_entry") {
            Some(name) => TraceEventKind::InterruptEntry(name.replace('_', " ")),
            None => event.strip_suffix("_exit").map(|_| TraceEventKind::InterruptExit)?,
        },
        _ => return None,
    })
}

fn switch(fields: &str) -> Option<TraceEventKind> {
    // The second half first: the name in the first may contain any text.
    let (previous, next) = fields.rsplit_once(" ==> next_comm=")?;
    let (next_name, next) = next.rsplit_once(" next_pid=")?;
    let (pid, priority) = next.split_once(" next_prio=")?;
    let (_, previous) = previous.rsplit_once(" prev_pid=")?;
    let (previous, state) = previous.split_once(' ')?;
    Some(TraceEventKind::Switch {
        previous: previous.parse().ok()?,
        state: state.rsplit_once("prev_state=")?.1.to_owned(),
        next: pid.parse().ok()?,
        next_name: next_name.to_owned(),
        next_priority: priority.trim().parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
CPU:1 [LOST 5 EVENTS]
 lto cgu [1] x-12-24394   [001] d..2. 62610.589112: \
 sched_switch: prev_comm=lto prev_pid=7 x prev_pid=24394 prev_prio=120 prev_state=R+ \
 ==> next_comm=a b next_pid=11145 next_prio=9
          <idle>-0       [000] dN.2. 62610.676311: \
 sched_waking: comm=x pid=1 y pid=21068 prio=120 target_cpu=001
           <...>-17      [001] d.h.. 62610.625557: irq_handler_entry: irq=36 name=virtio1-req.0
           <...>-17      [001] d.h.. 62610.625561: irq_handler_exit: irq=36 ret=handled
            bash-24436   [000] .Ns1. 62610.584069: softirq_entry: vec=3 [action=NET_RX]
            bash-24436   [000] .Ns1. 62610.584883: softirq_exit: vec=3 [action=NET_RX]
            bash-24436   [000] d.h1. 62610.600025: local_timer_entry: vector=236
            bash-24436   [000] d.h1. 62610.600026: \
 hrtimer_expire_entry: hrtimer=0000000040c355cf function=hrtimer_wakeup now=62610600025959
            bash-24436   [000] d.h1. 62610.600027: local_timer_exit: vector=236
            bash-24436   [000] d.... 62610.623407: \
 page_fault_user: address=0x5 ip=0x5 error_code=0x7
            bash-24436   [000] dN.2. 62610.676311: \
 signal_generate: sig=19 errno=0 code=1 comm=cargo pid=21068 grp=1 res=1
            bash-24436   [000] d..3. 62610.625306: \
 sched_migrate_task: comm=bash pid=24455 prio=120 orig_cpu=0 dest_cpu=1
            bash-24436   [000] d..3. 62610.700000: cpu_frequency: state=800000 cpu_id=0
            bash-24436   [000] d..3. 62610.700001: something_else: x=1
";

    #[test]
    fn every_kind_of_line_is_understood() {
        let events = parse(TRACE);
        assert_eq!(events.len(), 13);
        let whats: Vec<_> = events.iter().map(|event| event.what.clone()).collect();
        let switch = TraceEventKind::Switch {
            previous: 24394,
            state: "R+".into(),
            next: 11145,
            next_name: "a b".into(),
            next_priority: 9,
        };
        assert_eq!(whats[0], switch);
        assert_eq!(events[0].name, "lto cgu [1] x-12");
        assert_eq!((events[0].thread, events[0].cpu), (24394, 1));
        assert!((events[0].at_us - 62_610_589_112.0).abs() < 0.5);
        assert_eq!(whats[2], TraceEventKind::InterruptEntry("irq 36 virtio1-req.0".into()));
        assert_eq!(whats[4], TraceEventKind::SoftEntry("NET_RX".into()));
        assert_eq!(whats[6], TraceEventKind::InterruptEntry("local timer".into()));
        assert_eq!(whats[7], TraceEventKind::Timer("hrtimer_wakeup".into()));
        assert_eq!(whats[8], TraceEventKind::InterruptExit);
        assert_eq!(whats[10], TraceEventKind::Signal { number: 19, to: 21068 });
        assert_eq!(whats[11], TraceEventKind::Migrate { thread: 24455, from: 0, to: 1 });
    }

    #[test]
    fn a_thread_may_be_called_like_a_key() {
        let events = parse(TRACE);
        assert_eq!(events[1].what, TraceEventKind::Waking { thread: 21068, priority: Some(120) });
    }

    #[test]
    fn no_line_is_a_reason_to_fail() {
        for cut in 0..TRACE.len() {
            if TRACE.is_char_boundary(cut) {
                assert!(parse(&TRACE[..cut]).len() + parse(&TRACE[cut..]).len() <= 14, "{cut}");
            }
        }
        assert!(parse("x-1 [9999999999999999999] a b: c: d\n [0] \n-[1] : : :").is_empty());
    }
}
