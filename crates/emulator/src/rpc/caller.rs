//! Which version of UHD calls.

use super::values::text;
use crate::UhdGeneration;
use crate::generation::{AskedBefore, Generation};
use millstream_mpm::RpcKind;
use rmpv::Value;

/// The generation that is spoken with the caller of a session.
#[derive(Debug)]
pub(super) struct Caller {
    choice: UhdGeneration,
    /// How the last call came.
    rpc: RpcKind,
    asked: AskedBefore,
    /// The generation that was told to it.
    told: Option<&'static Generation>,
}

impl Caller {
    /// Returns the state before a session.
    pub fn new(choice: UhdGeneration) -> Self {
        Self { choice, rpc: RpcKind::Msgpack, asked: AskedBefore::Nothing, told: None }
    }

    /// Takes note of how a call comes.
    pub fn speaks(&mut self, rpc: RpcKind) {
        self.rpc = rpc;
    }

    /// Forgets the caller, as a session begins or ends.
    pub fn forget(&mut self) {
        *self = Self::new(self.choice);
    }

    /// Takes note of a call of the session.
    pub fn note(&mut self, method: &str, args: &[Value]) {
        let asked = match (method, text(args, 0)) {
            ("get_num_timekeepers", _) => AskedBefore::Timekeepers,
            ("supports_feature", Ok("gpio_power")) => AskedBefore::GpioPower,
            ("supports_feature", _) => AskedBefore::Features,
            _ => return,
        };
        self.asked = self.asked.max(asked);
    }

    /// Returns the generation that is spoken with the caller.
    pub fn generation(&self) -> &'static Generation {
        self.told.unwrap_or_else(|| match self.rpc {
            RpcKind::Grpc => self.by_grpc(),
            RpcKind::Msgpack => self.choice.row(),
        })
    }

    /// Decides the generation, as the caller asks for the version of MPM; it remains for the
    /// session.
    pub fn ask(&mut self) -> &'static Generation {
        let found = match (self.choice, self.rpc) {
            (_, RpcKind::Grpc) => self.by_grpc(),
            (UhdGeneration::Auto, _) => Generation::by_first_questions(self.asked),
            (chosen, _) => chosen.row(),
        };
        self.told.get_or_insert(found)
    }

    /// Returns the generation of callers by gRPC.
    fn by_grpc(&self) -> &'static Generation {
        match self.choice {
            UhdGeneration::Auto => UhdGeneration::V4_11.row(),
            chosen => chosen.row(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the version of MPM that is told to a caller after these calls.
    fn told(choice: UhdGeneration, calls: &[(&str, &str)]) -> [u32; 2] {
        let mut caller = Caller::new(choice);
        calls.iter().for_each(|(method, arg)| caller.note(method, &[Value::from(*arg)]));
        let told = caller.ask().mpm_compat;
        // What it asks later changes nothing.
        caller.note("get_num_timekeepers", &[]);
        caller.note("supports_feature", &[Value::from("gpio_power")]);
        assert_eq!((caller.ask().mpm_compat, caller.generation().mpm_compat), (told, told));
        caller.forget();
        assert_eq!(caller.generation(), choice.row());
        told
    }

    /// The calls of each version of UHD between its claim and its question for the version of MPM.
    #[test]
    fn callers_are_told_apart_by_what_they_ask_before_the_version() {
        let start = [("get_device_info", ""), ("get_dboard_info", ""), ("set_device_id", "")];
        let uhd_4_0 = [("get_num_timekeepers", ""), ("get_mb_sensors", ""), ("get_gpio_banks", "")];
        let uhd_4_1 =
            [("supports_feature", "ref_clk_calibration"), ("supports_feature", "trig_io_mode")];
        let uhd_4_2 = [("supports_feature", "gpio_power")];
        let auto = |parts: &[&[(&str, &str)]]| told(UhdGeneration::Auto, &parts.concat());
        assert_eq!(auto(&[&start]), [5, 3]);
        assert_eq!(auto(&[&start, &uhd_4_0]), [3, 0]);
        assert_eq!(auto(&[&start, &uhd_4_0, &uhd_4_1]), [4, 0]);
        assert_eq!(auto(&[&start, &uhd_4_0, &uhd_4_1, &uhd_4_2]), [4, 2]);
        assert_eq!(auto(&[]), [5, 3], "a program that is not UHD");
        let mut caller = Caller::new(UhdGeneration::Auto);
        caller.speaks(RpcKind::Grpc);
        assert_eq!(caller.generation().mpm_compat, [7, 0], "before a session");
        assert_eq!(caller.ask().mpm_compat, [7, 0]);
        caller.speaks(RpcKind::Msgpack);
        assert_eq!(caller.generation().mpm_compat, [7, 0], "for the session");
        for (name, compat) in
            [("4.0", [3, 0]), ("4.4", [4, 4]), ("4.8", [5, 3]), ("4.10", [6, 1]), ("4.11", [7, 0])]
        {
            let chosen = UhdGeneration::named(name).unwrap();
            assert_eq!(told(chosen, &uhd_4_0), compat, "{name} whoever calls");
        }
    }
}
