//! A plan as a file (TOML).

use millstream_cpu::CpuSet;
use millstream_stats::Random;
use serde::{Deserialize, Serialize};

use super::quiet::QuietCondition;
use crate::load::{LoadProfile, ProfileError, Profiles};
use std::collections::BTreeSet;
use std::time::Duration;

/// The placeholder for the number of samples in the arguments of a measurement.
const SAMPLES: &str = "{samples}";

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MeasurementPlan {
    /// Its name, part of the name of its runs.
    pub name: String,
    /// The question of the plan, for the report.
    pub about: String,
    /// The seed of the order.
    pub seed: u64,
    /// The least number of fresh starts of each cell; six can distinguish a change from chance.
    pub restarts: u32,
    /// The largest number, while the figure is not known well enough.
    pub restarts_max: u32,
    /// The samples of each start.
    pub samples: u32,
    /// The quantile that the stop rule checks.
    pub quantile: f64,
    /// The largest half width of the figure's 95 % interval at which the run stops, as a share of
    /// it.
    pub precision: f64,
    /// The time from the start of a load to the measurement, seconds.
    pub settle_s: f64,
    /// The longest wait for a quiet machine before each start, seconds; 0: do not wait.
    pub quiet_s: f64,
    /// The share of all CPUs' time that others may take on a quiet machine.
    pub quiet_cpu_share: f64,
    /// The packets a second that may pass the interfaces of a quiet machine.
    pub quiet_packets_per_s: f64,
    /// Interfaces that are watched in addition to those with hardware behind them: the end of a
    /// tunnel, of a container, of a virtual machine.
    pub quiet_interfaces: Vec<String>,
    /// CPUs whose latency is measured; load for `system` does not use them.
    pub measured_cpus: CpuSet,
    /// Names of load profiles.
    pub loads: Vec<String>,
    /// Profiles in addition to those that come with the program.
    #[serde(rename = "profile")]
    pub profiles: Vec<LoadProfile>,
    /// The compared variants; empty: one without a name.
    #[serde(rename = "variant")]
    pub variants: Vec<Variant>,
    /// The measurements.
    #[serde(rename = "measurement")]
    pub measurements: Vec<PlannedMeasurement>,
}

impl Default for MeasurementPlan {
    fn default() -> Self {
        Self {
            name: String::new(),
            about: String::new(),
            seed: 0,
            restarts: 6,
            restarts_max: 0,
            samples: 3,
            quantile: 0.99,
            precision: 0.1,
            settle_s: 0.1,
            quiet_s: 0.0,
            quiet_cpu_share: 0.05,
            quiet_packets_per_s: 20.0,
            quiet_interfaces: Vec::new(),
            measured_cpus: CpuSet::default(),
            loads: vec!["idle".to_owned()],
            profiles: Vec::new(),
            variants: Vec::new(),
            measurements: Vec::new(),
        }
    }
}

/// One side of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Arguments that every measurement gets in addition to its own.
    #[serde(default)]
    pub args: Vec<String>,
}

/// One measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedMeasurement {
    /// Its name.
    pub name: String,
    /// The arguments of `millstream-lab`, such as `["latency", "timer", "--repeat", "{samples}"]`.
    pub args: Vec<String>,
}

/// The reason why a plan cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasurementPlanError {
    /// The file has a wrong syntax or type.
    #[error("cannot read the measurement plan: {0}")]
    Syntax(#[from] toml::de::Error),
    /// A load profile is wrong or missing.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A value makes no sense.
    #[error("the measurement plan: `{key}` {problem}")]
    Value {
        /// The key of the value.
        key: &'static str,
        /// The problem, and a correct value.
        problem: String,
    },
}

/// One cell of a run: a variant, a measurement and a load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// The variant's name.
    pub variant: String,
    /// The number of the variant, from 0.
    pub side: u32,
    /// The measurement's name.
    pub name: String,
    /// The load profile during the measurement.
    pub load: LoadProfile,
    /// The arguments of the program.
    pub args: Vec<String>,
}

impl MeasurementPlan {
    /// Reads a plan and checks it.
    ///
    /// # Errors
    /// [`MeasurementPlanError`].
    pub fn parse(text: &str) -> Result<Self, MeasurementPlanError> {
        let mut plan: Self = toml::from_str(text)?;
        let wrong =
            |key, problem: &str| MeasurementPlanError::Value { key, problem: problem.to_owned() };
        if plan.restarts == 0 || plan.samples == 0 {
            return Err(wrong("restarts", "and `samples` must be 1 or more"));
        }
        plan.restarts_max = plan.restarts_max.max(plan.restarts);
        if !(0.0..1.0).contains(&plan.quantile) || plan.precision.is_nan() || plan.precision <= 0.0
        {
            return Err(wrong("quantile", "must be from 0 to below 1, and `precision` above 0"));
        }
        if !(0.0..3600.0).contains(&plan.settle_s) {
            return Err(wrong("settle_s", "must be from 0 to 3600"));
        }
        if !(0.0..=86_400.0).contains(&plan.quiet_s) {
            return Err(wrong("quiet_s", "must be from 0 to 86400"));
        }
        let bounds = [plan.quiet_cpu_share, plan.quiet_packets_per_s];
        if bounds.iter().any(|bound| bound.is_nan() || *bound < 0.0) {
            return Err(wrong("quiet_cpu_share", "and `quiet_packets_per_s` must be 0 or more"));
        }
        if plan.name.is_empty() || plan.name.contains(['/', '\n']) {
            return Err(wrong("name", "must be a text without a slash"));
        }
        let names =
            |names: Vec<&String>| names.iter().collect::<BTreeSet<_>>().len() == names.len();
        if plan.measurements.is_empty()
            || !names(plan.measurements.iter().map(|one| &one.name).collect())
        {
            return Err(wrong("measurement", "is needed, each with a name of its own"));
        }
        if !names(plan.variants.iter().map(|variant| &variant.name).collect()) {
            return Err(wrong("variant", "must have a name of its own"));
        }
        if !names(plan.loads.iter().collect()) {
            return Err(wrong("loads", "must name each profile once"));
        }
        plan.cells()?;
        Ok(plan)
    }

    /// Returns every variant with every measurement and every load.
    ///
    /// # Errors
    /// [`MeasurementPlanError::Profile`] when a load does not exist.
    pub fn cells(&self) -> Result<Vec<Cell>, MeasurementPlanError> {
        let mut profiles = Profiles::builtin();
        profiles.all.extend(self.profiles.iter().cloned());
        let none = [Variant::default()];
        let variants = if self.variants.is_empty() { &none[..] } else { &self.variants };
        let mut cells = Vec::new();
        for load in &self.loads {
            let load = profiles.get(load)?;
            for measurement in &self.measurements {
                cells.extend((0..).zip(variants).map(|(side, variant)| Cell {
                    variant: variant.name.clone(),
                    side,
                    name: measurement.name.clone(),
                    load: load.clone(),
                    args: self.arguments(measurement, variant),
                }));
            }
        }
        Ok(cells)
    }

    /// Returns the conditions for a start.
    #[must_use]
    pub fn quiet(&self) -> QuietCondition {
        QuietCondition {
            patience: Duration::from_secs_f64(self.quiet_s),
            cpu_share: self.quiet_cpu_share,
            packets_per_s: self.quiet_packets_per_s,
            interfaces: self.quiet_interfaces.clone(),
        }
    }

    fn arguments(&self, measurement: &PlannedMeasurement, variant: &Variant) -> Vec<String> {
        let all = measurement.args.iter().chain(&variant.args);
        all.map(|argument| argument.replace(SAMPLES, &self.samples.to_string())).collect()
    }

    /// Returns the order of the cells in a round.
    #[must_use]
    pub fn order(&self, round: u32, cells: usize) -> Vec<usize> {
        let mut random = Random::new(self.seed ^ (u64::from(round) + 1).rotate_left(32));
        let mut order: Vec<_> = (0..cells).collect();
        random.shuffle(&mut order);
        order
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub const PLAN: &str = r#"
        name = "two"
        seed = 7
        restarts = 4
        samples = 2
        loads = ["idle", "mine"]
        measured_cpus = "1"
        profile = [{ name = "mine", about = "", worker = [{ kind = "cpu", on = "system" }] }]
        variant = [{ name = "a" }, { name = "b", args = ["--handicap", "200us"] }]
        measurement = [
          { name = "timer", args = ["latency", "timer", "--repeat", "{samples}"] },
          { name = "udp", args = ["latency", "udp"] },
        ]
    "#;

    #[test]
    fn every_variant_meets_every_measurement_and_load() {
        let plan = MeasurementPlan::parse(PLAN).unwrap();
        let cells = plan.cells().unwrap();
        assert_eq!(cells.len(), 8);
        assert_eq!(cells[0].args, ["latency", "timer", "--repeat", "2"]);
        assert_eq!(cells[1].args[4..], ["--handicap", "200us"]);
        assert_eq!((&*cells[7].variant, &*cells[7].load.name), ("b", "mine"));
        assert_eq!(plan.restarts_max, 4);
    }

    #[test]
    fn each_round_has_every_cell_once_in_an_order_of_its_own_that_the_seed_repeats() {
        let plan = MeasurementPlan::parse(PLAN).unwrap();
        let orders: Vec<_> = (0..6).map(|round| plan.order(round, 8)).collect();
        for order in &orders {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..8).collect::<Vec<_>>());
        }
        assert!(orders.windows(2).any(|pair| pair[0] != pair[1]));
        assert_eq!(orders[3], plan.order(3, 8));
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let wrong = |from: &str, to: &str| {
            MeasurementPlan::parse(&PLAN.replace(from, to)).unwrap_err().to_string()
        };
        assert!(wrong("\"idle\", ", "\"idel\", ").contains("no load profile `idel`"));
        assert!(wrong("\"mine\"]", "\"idle\"]").contains("each profile once"));
        assert!(wrong("samples = 2", "samples = 0").contains("1 or more"));
        assert!(wrong("\"udp\"", "\"timer\"").contains("name of its own"));
        assert!(wrong("seed = 7", "sede = 7").contains("unknown field `sede`"));
        assert!(wrong("\"two\"", "\"a/b\"").contains("without a slash"));
        assert!(wrong("samples = 2", "quiet_s = -1").contains("`quiet_s` must be from 0"));
        assert!(wrong("samples = 2", "quiet_cpu_share = -1").contains("must be 0 or more"));
    }
}
