//! The device `edu` of QEMU, whose registers make it read or write any address (QEMU,
//! docs/specs/edu.txt).

use super::VfioDevice;
use super::error::{VfioError, at};
use std::io;
use std::os::unix::fs::FileExt;
use std::thread;
use std::time::{Duration, Instant};

const REGION_BAR0: u32 = 0;
/// Reads as 0xRRrr00ed.
const IDENTIFICATION: u64 = 0;
const SOURCE: u64 = 0x80;
const DESTINATION: u64 = 0x88;
const COUNT: u64 = 0x90;
const COMMAND: u64 = 0x98;
const START: u32 = 1;
const TO_MEMORY: u32 = 2;
/// The device's own memory, of 4 KiB, as its registers address it.
const OWN: u32 = 0x4_0000;
/// The device needs 100 ms of its clock.
const PATIENCE: Duration = Duration::from_secs(20);

/// The direction of an access.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Access {
    /// It copies memory into its own.
    Read,
    /// It copies its own memory out.
    Write,
}

/// The device, open.
pub(super) struct DmaTester<'d> {
    device: &'d VfioDevice,
    registers: u64,
}

impl<'d> DmaTester<'d> {
    /// Takes an open device, if it is one.
    pub fn new(device: &'d VfioDevice) -> Result<Self, VfioError> {
        let tester = Self { device, registers: device.region(REGION_BAR0)? };
        let found = tester.get(IDENTIFICATION)?;
        if found & 0xffff != 0xed {
            let what = format!("the register 0 holds {found:#x}: it is no device `edu` of QEMU");
            return Err(at("the device")(io::Error::other(what)));
        }
        Ok(tester)
    }

    /// The bytes of an access. QEMU ends itself when an access reaches the end of the device's 4
    /// KiB.
    pub const BYTES: usize = 4088;

    /// Makes it access an address of the bus, and waits until it has.
    pub fn access(&self, access: Access, address: u32) -> Result<(), VfioError> {
        let (from, to, direction) = match access {
            Access::Read => (address, OWN, 0),
            Access::Write => (OWN, address, TO_MEMORY),
        };
        self.set(SOURCE, from)?;
        self.set(DESTINATION, to)?;
        self.set(COUNT, Self::BYTES as u32)?;
        self.set(COMMAND, START | direction)?;
        let until = Instant::now() + PATIENCE;
        while self.get(COMMAND)? & START != 0 {
            if Instant::now() > until {
                return Err(at("an access of the device")(io::ErrorKind::TimedOut.into()));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn get(&self, register: u64) -> Result<u32, VfioError> {
        let mut value = [0; 4];
        let place = self.registers + register;
        self.device.file().read_exact_at(&mut value, place).map_err(at("a register"))?;
        Ok(u32::from_le_bytes(value))
    }

    fn set(&self, register: u64, value: u32) -> Result<(), VfioError> {
        let place = self.registers + register;
        let value = value.to_le_bytes();
        self.device.file().write_all_at(&value, place).map_err(at("a register"))
    }
}
