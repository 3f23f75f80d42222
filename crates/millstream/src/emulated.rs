//! An emulated radio for this process.

use millstream_emulator::{Error, Radio, RadioConfig, RunningRadio};
use millstream_radio::DeviceArgs;

/// Starts an emulated radio on free ports of `config.addr`, and returns it with the arguments that
/// open it. It runs until it is dropped.
///
/// ```
/// use millstream::prelude::*;
///
/// let (radio, args) = millstream::emulated_radio(RadioConfig::default())?;
/// let device = Device::open(args)?;
/// assert_eq!(device.rx_channels(), 2);
/// drop(device);
/// assert!(radio.stop().rpc_calls > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Those of [`Radio::start`].
pub fn emulated_radio(config: RadioConfig) -> Result<(RunningRadio, DeviceArgs), Error> {
    let addr = config.addr;
    let radio =
        Radio::start(RadioConfig { discovery_port: 0, rpc_port: 0, chdr_port: 0, ..config })?;
    let args = DeviceArgs {
        discovery_port: radio.discovery_addr().port(),
        rpc_port: radio.rpc_addr().port(),
        ..DeviceArgs::new(addr)
    };
    Ok((radio, args))
}
