//! Sample conversion: the rate of every pair of formats and form, beside a copy of the same bytes
//! and beside UHD's converters.
//!
//! The copy moves as many bytes as the conversion reads and writes together: a conversion as fast
//! as the copy costs only the necessary memory traffic. Interleaved rounds make a disturbance hit
//! all of a row alike.

mod job;
pub mod uhd;

use crate::named::named;
use job::ConvertJob;
use millstream_radio::convert::{ConvertForm, Wire};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use millstream_stats::Summary;

/// A sample type of the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// `Complex<f32>`
    Fc32,
    /// `Complex<f64>`
    Fc64,
    /// `[i16; 2]`
    Sc16,
    /// `[i8; 2]`
    Sc8,
}

named!(User, 4, [(Fc32, "fc32"), (Fc64, "fc64"), (Sc16, "sc16"), (Sc8, "sc8")]);

impl User {
    /// Bytes of a sample.
    pub fn bytes(self) -> usize {
        match self {
            Self::Fc32 => 8,
            Self::Fc64 => 16,
            Self::Sc16 => 4,
            Self::Sc8 => 2,
        }
    }
}

/// The direction of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConvertDirection {
    /// From the wire to the application.
    Receive,
    /// From the application to the wire.
    Transmit,
}

/// A pair of formats and a direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormatPair {
    /// The wire format.
    pub wire: Wire,
    /// The application's type.
    pub user: User,
    /// The direction.
    pub direction: ConvertDirection,
}

impl FormatPair {
    /// Every pair in both directions.
    pub fn all() -> Vec<Self> {
        let pairs = Wire::ALL.into_iter().flat_map(|wire| User::ALL.map(|user| (wire, user)));
        let both = [ConvertDirection::Receive, ConvertDirection::Transmit];
        pairs
            .flat_map(|(wire, user)| both.map(|direction| Self { wire, user, direction }))
            .collect()
    }

    /// Bytes that a conversion of `samples` samples reads and writes.
    pub fn traffic_bytes(self, samples: usize) -> usize {
        self.wire.bytes_of(samples) + samples * self.user.bytes()
    }
}

impl fmt::Display for FormatPair {
    /// `wire:sc16>fc32`, or `fc32>wire:sc16`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wire, user) = (self.wire.name(), self.user.name());
        f.pad(&match self.direction {
            ConvertDirection::Receive => format!("wire:{wire}>{user}"),
            ConvertDirection::Transmit => format!("{user}>wire:{wire}"),
        })
    }
}

impl FromStr for FormatPair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::all().into_iter().find(|pair| pair.to_string() == text);
        found.ok_or_else(|| {
            "give WIRE and USER as wire:sc16>fc32 or fc32>wire:sc16; on the wire sc16, sc12 or \
             sc8, at the user fc32, fc64, sc16 or sc8"
                .to_owned()
        })
    }
}

/// The length of the measurements.
#[derive(Debug, Clone)]
pub struct ConvertSpec {
    /// Repetitions.
    pub repeats: usize,
    /// Shortest length of one measurement.
    pub time: Duration,
    /// UHD's tool, if it is measured, too.
    pub uhd: Option<uhd::Tool>,
}

/// Rates of one form.
#[derive(Debug, Clone, Serialize)]
pub struct FormRate {
    /// The form's name.
    pub form: &'static str,
    /// Million samples per second.
    pub msps: Summary,
}

/// One pair at one size.
#[derive(Debug, Clone, Serialize)]
pub struct ConvertRow {
    /// The pair, as text.
    pub pair: String,
    /// Samples of one call.
    pub samples: usize,
    /// Every form that this processor supports; the last is the one in use.
    pub forms: Vec<FormRate>,
    /// The rate of a copy of the same bytes, in million samples per second.
    pub copy_msps: Summary,
    /// The median of the form in use as a share of the copy's.
    pub share_of_copy: f64,
    /// UHD's converters for the same formats, each with its fastest implementation.
    pub uhd: Vec<uhd::ConverterRate>,
    /// The median of the form in use over that of UHD's fastest.
    pub ratio_to_uhd: Option<f64>,
}

/// Measures a pair with `samples` samples of one call; they decide whether the data stays in a
/// cache.
///
/// # Errors
/// When UHD's tool cannot be run, or prints no rates.
pub fn measure(
    plan: &ConvertSpec,
    pair: FormatPair,
    samples: usize,
) -> Result<ConvertRow, uhd::Error> {
    let available = ConvertForm::ALL.into_iter().filter(|form| form.is_available());
    let mut jobs: Vec<(ConvertForm, ConvertJob, Vec<f64>)> = available
        .map(|form| (form, ConvertJob::conversion(pair, form, samples), Vec::new()))
        .collect();
    let mut copy = ConvertJob::copy(pair.traffic_bytes(samples) / 2);
    let mut copies = Vec::new();
    let mut others = uhd::Rates::default();
    for _ in 0..plan.repeats {
        for (_, job, rates) in &mut jobs {
            rates.push(job.msps(samples, plan.time));
        }
        copies.push(copy.msps(samples, plan.time));
        if let Some(tool) = &plan.uhd {
            tool.measure(pair, samples, plan.time, &mut others)?;
        }
    }
    let forms: Vec<FormRate> = jobs
        .into_iter()
        .map(|(form, _, rates)| FormRate { form: form.name(), msps: figures(&rates) })
        .collect();
    let used = forms.last().map_or(0.0, |form| form.msps.median);
    let copy_msps = figures(&copies);
    let uhd = others.finish();
    let fastest = uhd.iter().map(|rate| rate.msps.median).reduce(f64::max);
    Ok(ConvertRow {
        pair: pair.to_string(),
        samples,
        forms,
        share_of_copy: used / copy_msps.median,
        copy_msps,
        uhd,
        ratio_to_uhd: fastest.map(|fastest| used / fastest),
    })
}

/// A plan repeats at least once; without a figure all are 0.
fn figures(rates: &[f64]) -> Summary {
    Summary::of(rates).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_a_name_that_means_it() {
        let all = FormatPair::all();
        assert_eq!(all.len(), 24);
        for pair in all {
            assert_eq!(pair.to_string().parse(), Ok(pair));
        }
        assert!(
            "sc16>fc32".parse::<FormatPair>().unwrap_err().starts_with("give WIRE and USER as ")
        );
    }

    #[test]
    fn traffic_is_what_is_read_and_written() {
        let pair: FormatPair = "wire:sc16>fc32".parse().unwrap();
        assert_eq!(pair.traffic_bytes(10), 120);
        let pair: FormatPair = "fc64>wire:sc12".parse().unwrap();
        assert_eq!(pair.traffic_bytes(5), 24 + 80, "whole groups on the wire");
    }

    #[test]
    fn a_row_has_every_form_and_a_share_of_the_copy() {
        let plan = ConvertSpec { repeats: 3, time: Duration::from_micros(50), uhd: None };
        for samples in [64, 65] {
            let row = measure(&plan, "wire:sc12>sc8".parse().unwrap(), samples).unwrap();
            let forms = ConvertForm::ALL.into_iter().filter(|form| form.is_available()).count();
            assert_eq!(row.forms.len(), forms);
            let used = row.forms.last().unwrap().msps;
            assert!(used.min > 0.0 && row.copy_msps.min > 0.0, "{row:?}");
            assert_eq!(row.share_of_copy, used.median / row.copy_msps.median);
            assert!(row.uhd.is_empty() && row.ratio_to_uhd.is_none());
        }
    }
}
