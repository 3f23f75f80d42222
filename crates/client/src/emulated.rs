//! The emulated radio of a process.

use millstream_emulator::{Radio, RadioConfig, RunningRadio};
use millstream_radio::DeviceArgs;

use crate::args::ClientArgs;
use crate::error::ClientError;

/// An emulated radio on loopback ports that nobody else knows.
#[derive(Debug)]
pub(crate) struct EmulatedRadio {
    radio: RunningRadio,
    rates_hz: (f64, f64),
}

impl EmulatedRadio {
    pub fn start(config: RadioConfig) -> Result<Self, ClientError> {
        let rates_hz = config.rates.bounds();
        Ok(Self { radio: Radio::start(config)?, rates_hz })
    }

    /// Returns the arguments of a connection to it.
    pub fn device_args(&self, args: &ClientArgs) -> Result<DeviceArgs, ClientError> {
        let address = self.radio.discovery_addr();
        let own = [
            ("addr".to_owned(), address.ip().to_string()),
            ("discovery_port".to_owned(), address.port().to_string()),
            ("rpc_port".to_owned(), self.radio.rpc_addr().port().to_string()),
        ];
        let given = args.pairs().map(|(key, value)| (key.to_owned(), value.to_owned()));
        // The own ones replace those of the user.
        ClientArgs::from_pairs(given.chain(own)).device_args()
    }

    /// Returns the rates that its clock can have, Hz.
    pub fn rates_hz(&self) -> (f64, f64) {
        self.rates_hz
    }

    pub fn add_fault(&self, fault: &str) -> Result<(), ClientError> {
        Ok(self.radio.faults().add(fault).map(drop)?)
    }
}
