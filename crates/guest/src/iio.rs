//! A converter of the kernel's Industrial I/O without hardware: a bus in memory (Linux,
//! Documentation/i2c/i2c-stub.rst), an accelerometer's driver that reads it, and timers as triggers
//! (Documentation/iio/iio_configfs.rst). Everything except the chip is as on a board: the timer's
//! interrupt, the trigger's, its thread, the bus, the buffer.

/// The modules of the guest: kernels from 6.12 have them all.
pub const MODULES: [&str; 3] = ["i2c-stub chip_addr=0x15", "mxc4005", "iio-trig-hrtimer"];

/// Returns the settings by which the driver finds its chip: its name, and its address on the bus.
#[must_use]
pub fn settings() -> [(String, String); 1] {
    [("/sys/bus/i2c/devices/i2c-0/new_device".to_owned(), "mxc4005 0x15".to_owned())]
}
