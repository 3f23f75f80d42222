//! Reception and transmission at once by one thread: it takes received samples, and sends when
//! there is room.

use super::receive::{SideTask, receive_beside};
use super::transmit::LoadGenerator;
use super::{RateError, RxOutcome, RxPlan, TxOutcome, TxPlan, set_rate};
use millstream_radio::Device;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Largest number of blocks sent between two receive calls, so that the transmission can recover.
const BLOCKS_MAX: usize = 4;

/// The results of both directions at once. The CPU time of either is that of both together.
#[derive(Debug, Clone, Serialize)]
pub struct DuplexOutcome {
    /// From the radio.
    pub rx: RxOutcome,
    /// To the radio.
    pub tx: TxOutcome,
}

/// Receives and transmits at once by two plans of one rate.
///
/// # Errors
/// [`RateError`]; [`RateError::OtherRate`] when the radio does not take the rate.
pub fn duplex(
    device: &mut Device,
    rx_plan: &RxPlan,
    tx_plan: &TxPlan,
) -> Result<DuplexOutcome, RateError> {
    set_rate(device, tx_plan.rate_hz)?;
    let mut generator = LoadGenerator::open(device, tx_plan)?;
    // The receive call does the waiting.
    generator.patience = Duration::ZERO;
    let began = Instant::now();
    let mut send = || {
        for _ in 0..BLOCKS_MAX {
            let before = generator.left();
            if before == 0 {
                return Ok(SideTask::Done);
            }
            generator.step()?;
            if tx_plan.until_loss && generator.is_troubled() {
                return Ok(SideTask::End);
            }
            if generator.left() == before {
                break;
            }
        }
        Ok(SideTask::Going)
    };
    let rx = receive_beside(device, rx_plan, Some(&mut send))?;
    let tx = generator.outcome(tx_plan, began, rx.cpu_s)?;
    Ok(DuplexOutcome { rx, tx })
}
