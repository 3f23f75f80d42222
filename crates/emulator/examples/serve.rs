//! Serves an emulated radio until it is told to stop: `serve ADDR [ANTENNA…]`.

use millstream_emulator::{Radio, RadioConfig};
use std::io::BufRead;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let addr = args.next().ok_or("usage: serve ADDR [ANTENNA…]")?.parse()?;
    let radio =
        Radio::start(RadioConfig { addr, rx_antennas: args.collect(), ..RadioConfig::default() })?;
    eprintln!("ready {}", radio.chdr_addr());
    // Until end of file or a line on standard input.
    std::io::stdin().lock().lines().next();
    for (name, value) in radio.stop().entries() {
        eprintln!("{name} {value}");
    }
    Ok(())
}
