//! The radio under test, and the CPUs of both sides.

use super::Args;
use crate::numbers::allowed_cpus;
use millstream_cpu::thread::pin_current_thread;
use serde::Serialize;

/// The CPUs of both sides; `None` where the kernel chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SideCpus {
    /// CPU of all threads of the host, ours or UHD's.
    pub host_cpu: Option<usize>,
    /// CPU of all threads of the emulated radio.
    pub radio_cpu: Option<usize>,
}

impl SideCpus {
    /// Chooses the CPUs, and moves this process to the host's: threads that start later stay there.
    pub fn choose(args: &Args) -> anyhow::Result<Self> {
        let allowed: Vec<_> = allowed_cpus()?.iter().collect();
        let both = allowed.len() > 1 && !args.no_pin;
        let first = allowed.first().copied().filter(|_| both && args.args.is_none());
        let last = allowed.last().copied().filter(|_| both);
        let place = Self { host_cpu: args.cpu.or(last), radio_cpu: args.radio_cpu.or(first) };
        if let Some(cpu) = place.host_cpu {
            pin_current_thread(cpu)?;
        }
        Ok(place)
    }

    /// Describes them; the user's own radio has none.
    pub fn describe(&self, emulated: bool) -> String {
        let where_to = |cpu: Option<usize>| match cpu {
            Some(cpu) => format!("CPU {cpu}"),
            None => "any CPU".to_owned(),
        };
        let host = format!("the host on {}", where_to(self.host_cpu));
        match emulated {
            true => format!("place   the emulated radio on {}, {host}", where_to(self.radio_cpu)),
            false => format!("place   {host}"),
        }
    }
}
