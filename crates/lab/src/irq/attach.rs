//! The device at the host: shared memory, an interrupt, and clock queries.

use std::fs::File;
use std::hint::spin_loop;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::IrqSpec;
use super::board::{SharedBoard, command};
use super::clock::Exchange;
use super::host::{IrqError, PATIENCE};
use super::iio::IioChoice;
use super::ivshmem::{self, Ivshmem};
use millstream_cpu::alarm::now_ns;

/// Clock queries before and after a measurement.
const QUESTIONS: usize = 500;

/// Makes the command that serves [`super::device::serve`] over two descriptors, given by number:
/// shared memory and interrupt.
pub type StartImitation<'s> = dyn Fn([i32; 2]) -> io::Result<Command> + 's;

/// The location of the device.
pub enum DevicePlace<'s> {
    /// A process started for the measurement.
    Process(&'s StartImitation<'s>),
    /// Behind the PCI bus of a guest: the first device of vfio-pci.
    Vfio,
    /// A real device, through its character device.
    Iio(IioChoice<'s>),
}

/// An imitated device in a process of its own, which ends with this value.
#[derive(Debug)]
pub struct Imitation {
    child: Child,
    /// The shared memory, of a device window's size: a power of two.
    pub memory: OwnedFd,
    /// The eventfd that it writes for an interrupt (eventfd(2)).
    pub line: OwnedFd,
}

impl Imitation {
    /// Starts it, on `cpu` if given.
    ///
    /// # Errors
    /// The kernel's.
    pub fn start(start: &StartImitation<'_>, cpu: Option<usize>) -> io::Result<Self> {
        let memory = memfd_create("millstream-adc", MemfdFlags::CLOEXEC)?;
        ftruncate(&memory, SharedBoard::BYTES.next_power_of_two() as u64)?;
        let line = eventfd(0, EventfdFlags::CLOEXEC)?;
        let theirs = [&memory, &line].map(|shared| shared.try_clone().map(Arc::new));
        let [memory_too, line_too] = theirs;
        let theirs = vec![memory_too?, line_too?];
        let mut command = start([theirs[0].as_raw_fd(), theirs[1].as_raw_fd()])?;
        millstream_host::child::inherit(&mut command, theirs);
        millstream_host::child::tie(&mut command, cpu);
        Ok(Self { child: command.spawn()?, memory, line })
    }
}

impl Drop for Imitation {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A device, ready for queries.
pub(super) struct AttachedDevice {
    pub board: SharedBoard,
    /// Readable after an interrupt.
    pub line: File,
    imitation: Option<Imitation>,
    /// Keeps the device behind VFIO open.
    _behind: Option<Ivshmem>,
}

impl AttachedDevice {
    /// Starts a device as a process.
    pub fn start(plan: &IrqSpec, start: &StartImitation<'_>) -> Result<Self, IrqError> {
        let imitation = Imitation::start(start, Some(plan.device_cpu))?;
        let line = imitation.line.try_clone()?.into();
        let board = SharedBoard::map(&imitation.memory)?;
        Ok(Self { board, line, imitation: Some(imitation), _behind: None }.told(plan))
    }

    /// Opens the device behind VFIO.
    pub fn behind_vfio(plan: &IrqSpec) -> Result<Self, IrqError> {
        let behind = ivshmem::open()?;
        let board = SharedBoard::map_at(behind.device.file(), behind.memory_offset)?;
        let line = behind.line.try_clone()?;
        Ok(Self { board, line, imitation: None, _behind: Some(behind) }.told(plan))
    }

    /// Whether it reads the same clock as this host.
    pub fn is_here(&self) -> bool {
        self.imitation.is_some()
    }

    /// Passes the plan's parameters to it.
    fn told(self, plan: &IrqSpec) -> Self {
        let board = &self.board;
        // A device behind VFIO has served others before.
        board.command.store(command::CALIBRATE, Release);
        for block in &board.blocks {
            block.number.store(0, Relaxed);
            block.converted_ticks.store(0, Relaxed);
        }
        for count in [&board.transfers, &board.consumed, &board.overruns, &board.finished] {
            count.store(0, Relaxed);
        }
        board.interrupts.store(plan.interrupts.number(), Relaxed);
        board.period_ns.store(plan.period_ns, Relaxed);
        board.count.store(plan.count, Release);
        self
    }

    /// Queries the clock.
    pub fn ask(&mut self) -> Result<Vec<Exchange>, IrqError> {
        let mut exchanges = Vec::with_capacity(QUESTIONS);
        let until = Instant::now() + PATIENCE;
        let first = self.board.question.load(Relaxed) + 1;
        for number in first..first + QUESTIONS as u64 {
            let asked_ns = now_ns();
            self.board.question.store(number, Release);
            let mut looks = 0u32;
            while self.board.answered.load(Acquire) != number {
                spin_loop();
                looks = looks.wrapping_add(1);
                // It may wait for this very CPU.
                if looks.is_multiple_of(100_000) {
                    thread::sleep(Duration::from_millis(1));
                    self.look_after(until)?;
                }
            }
            let ticks = self.board.answer_ticks.load(Relaxed);
            exchanges.push(Exchange { asked_ns, ticks, answered_ns: now_ns() });
        }
        Ok(exchanges)
    }

    /// Checks that the device still lives and the time is not over.
    fn look_after(&mut self, until: Instant) -> Result<(), IrqError> {
        if let Some(imitation) = &mut self.imitation
            && let Some(status) = imitation.child.try_wait()?
        {
            return Err(io::Error::other(format!(
                "the process of the imitated converter has ended ({status})"
            ))
            .into());
        }
        if Instant::now() > until { Err(IrqError::Silent("answer")) } else { Ok(()) }
    }
}

impl Drop for AttachedDevice {
    fn drop(&mut self) {
        // A device behind VFIO stays for the next user.
        self.board.command.store(command::CALIBRATE, Release);
    }
}
