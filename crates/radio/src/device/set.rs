//! Several devices with one time.

use std::thread;
use std::time::{Duration, Instant};

use super::Device;
use crate::deadline::deadline;
use crate::stream::{RxArgs, RxError, RxStreamer};
use crate::tx::{TxArgs, TxError, TxStreamer};
use crate::{DeviceArgs, RadioError};

/// The interval of requests for a device's latest PPS.
const POLL: Duration = Duration::from_millis(2);

/// The attempts to ask all devices between the same two edges.
const TRIES: u32 = 5;

/// The largest difference of an edge's arrival at two devices, seconds.
const SLACK_S: f64 = 10e-6;

/// The most edges until the devices are compared.
const EDGES_MAX: f64 = 10.0;

/// Several open devices.
///
/// They share a PPS: an edge reaches all of them within far less than its period. That is
/// sufficient to set them to one time, see [`DeviceSet::sync_at_pps`].
#[derive(Debug)]
pub struct DeviceSet {
    devices: Vec<Device>,
}

impl DeviceSet {
    /// Opens every device.
    ///
    /// # Errors
    /// Those of [`Device::open`]; the devices opened until then are released.
    pub fn open(args: impl IntoIterator<Item = DeviceArgs>) -> Result<Self, RadioError> {
        let devices: Result<_, _> = args.into_iter().map(Device::open).collect();
        Ok(Self { devices: devices? })
    }

    /// Returns the devices, in their order.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Returns the devices, to set them.
    pub fn devices_mut(&mut self) -> &mut [Device] {
        &mut self.devices
    }

    /// Returns the devices.
    pub fn into_devices(self) -> Vec<Device> {
        self.devices
    }

    /// Requests a sample rate from every device and returns the one that they took.
    ///
    /// # Errors
    /// Those of [`Device::set_rate`]; [`RadioError::RatesDiffer`] names a device whose rate differs
    /// from the first one's.
    pub fn set_rate(&mut self, rate_hz: f64) -> Result<f64, RadioError> {
        let mut common_hz = None;
        for device in &mut self.devices {
            let taken_hz = device.set_rate(rate_hz)?;
            let first_hz = *common_hz.get_or_insert(taken_hz);
            if taken_hz != first_hz {
                return Err(RadioError::RatesDiffer {
                    address: device.address(),
                    rate_hz: taken_hz,
                    others_hz: first_hz,
                });
            }
        }
        Ok(common_hz.unwrap_or(rate_hz))
    }

    /// Opens channels of these devices for aligned reception; each channel has its device's
    /// position in the set. The devices must already have one time.
    ///
    /// # Errors
    /// Those of [`Device::rx_group`]; [`RxError::BadGroup`] for a device that does not exist.
    pub fn rx_group(&self, channels: &[(usize, RxArgs)]) -> Result<RxStreamer, RxError> {
        let open = |(at, (number, args)): (usize, &(usize, RxArgs))| {
            let reason = "it names a device that is not in the set";
            let device = self.devices.get(*number).ok_or(RxError::BadGroup { reason })?;
            Ok(device.rx_member(*args, of_same_device(&channels[at + 1..], *number))?)
        };
        let members: Result<_, RxError> = channels.iter().enumerate().map(open).collect();
        RxStreamer::new(members?)
    }

    /// Opens channels of these devices for aligned transmission, as [`DeviceSet::rx_group`] does.
    ///
    /// # Errors
    /// Those of [`Device::tx_group`]; [`TxError::BadGroup`] for a device that does not exist.
    pub fn tx_group(&self, channels: &[(usize, TxArgs)]) -> Result<TxStreamer, TxError> {
        let open = |(at, (number, args)): (usize, &(usize, TxArgs))| {
            let reason = "one is of a device that is not in the set";
            let device = self.devices.get(*number).ok_or(TxError::BadGroup { reason })?;
            Ok(device.tx_member(*args, of_same_device(&channels[at + 1..], *number))?)
        };
        let members: Result<_, TxError> = channels.iter().enumerate().map(open).collect();
        TxStreamer::new(members?)
    }

    /// Sets all devices to the time `ticks` at the same PPS edge, and checks that they took it.
    ///
    /// Waits for an edge, commands every device before the next one, and compares their times after
    /// that. `timeout` bounds each wait for an edge; a real PPS comes once a second.
    ///
    /// # Errors
    /// [`RadioError::NoPps`] when the first device sees no edge, [`RadioError::PpsDiffers`] or
    /// [`RadioError::TimesDiffer`] for one that did not take the time or disagrees with the first;
    /// [`RadioError::Rpc`].
    pub fn sync_at_pps(&self, ticks: u64, timeout: Duration) -> Result<(), RadioError> {
        let Some(first) = self.devices.first() else { return Ok(()) };
        let mut tries = 0;
        loop {
            let edge = next_edge(first, timeout)?;
            self.devices.iter().try_for_each(|device| device.set_time_next_pps(ticks))?;
            // Unless the first device has seen an edge meanwhile, all were commanded between the
            // same two edges.
            tries += 1;
            if first.time_last_pps()? == edge || tries == TRIES {
                break;
            }
        }
        next_edge(first, timeout)?;
        self.check_pps(ticks)?;
        self.check_times()
    }

    /// Compares the devices' times now; a device that took the time at another edge differs here.
    fn check_times(&self) -> Result<(), RadioError> {
        let Some((first, others)) = self.devices.split_first() else { return Ok(()) };
        let slack_ticks = (first.tick_rate_hz() * SLACK_S).ceil() as i64 + 1;
        for device in others {
            let (from_ticks, ticks, to_ticks) =
                (first.time_ticks()?, device.time_ticks()?, first.time_ticks()?);
            let after = |a: u64, b: u64| a.wrapping_sub(b) as i64;
            let early = after(from_ticks, ticks) > slack_ticks;
            if early || after(ticks, to_ticks) > slack_ticks {
                let address = device.address();
                return Err(RadioError::TimesDiffer { address, ticks, from_ticks, to_ticks });
            }
        }
        Ok(())
    }

    /// Compares the devices' times at the latest edge, all read between the same two edges.
    fn check_pps(&self, wanted_ticks: u64) -> Result<(), RadioError> {
        let mut outcome = Ok(());
        for _ in 0..TRIES {
            let first_ticks = self.devices[0].time_last_pps()?;
            let since = first_ticks.wrapping_sub(wanted_ticks);
            // A few edges may have passed.
            let taken = since as f64 <= EDGES_MAX * self.devices[0].tick_rate_hz();
            let wanted_ticks = if taken { first_ticks } else { wanted_ticks };
            outcome = self.devices.iter().try_for_each(|device| {
                let (ticks, address) = (device.time_last_pps()?, device.address());
                let agrees = ticks == wanted_ticks;
                agrees.then_some(()).ok_or(RadioError::PpsDiffers { address, ticks, wanted_ticks })
            });
            let no_edge_between = self.devices[0].time_last_pps()? == first_ticks;
            if outcome.is_ok() && no_edge_between {
                break;
            }
            // The edge may not have reached all of them yet.
            thread::sleep(POLL);
        }
        outcome
    }
}

impl From<Device> for DeviceSet {
    fn from(device: Device) -> Self {
        Self { devices: vec![device] }
    }
}

/// The number of members that are of a device.
fn of_same_device<T>(members: &[(usize, T)], device: usize) -> usize {
    members.iter().filter(|(number, _)| *number == device).count()
}

/// Waits for an edge and returns the device's time at it, ticks.
fn next_edge(device: &Device, timeout: Duration) -> Result<u64, RadioError> {
    let (before, mut now) = (device.time_last_pps()?, device.time_ticks()?);
    let until = deadline(timeout);
    loop {
        let (edge, last) = (device.time_last_pps()?, now);
        now = device.time_ticks()?;
        // An edge that sets the time to that of the previous edge shows only in the current time.
        if edge != before || now < last {
            return device.time_last_pps();
        }
        if Instant::now() >= until {
            let waited_ms = timeout.as_millis() as u64;
            return Err(RadioError::NoPps { address: device.address(), waited_ms, ticks: edge });
        }
        thread::sleep(POLL);
    }
}
