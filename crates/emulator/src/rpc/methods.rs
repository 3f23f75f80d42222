//! The methods of a device, as UHD calls them.

use super::caller::Caller;
use super::claim::CurrentClaim;
use super::description::sync_sources;
use super::pins::Pins;
use super::values::{
    binary_map, bytes, entry, none, number, string_map, strings, text, truth, unsigned,
};
use crate::UhdGeneration;
use crate::front_end::FrontEnd;
use crate::generation::Generation;
use crate::mailbox::DeviceCommand;
use crate::personality::{ClockRates, FrontEndKind, Personality};
use crate::scene::Scene;
use crate::time::DeviceClock;
use millstream_mpm::{GrpcCall, GrpcCode, GrpcStatus, RpcKind};
use millstream_wire::chdr::Width;
use rmpv::Value;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

/// The identity of the radio.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub serial: String,
    pub name: String,
    /// The addresses of CHDR packets, one for each link.
    pub chdr: Vec<SocketAddrV4>,
    pub personality: &'static Personality,
    pub width: Width,
    /// The master clock rates that it takes.
    pub rates: ClockRates,
    /// Tuning takes the nearest values of the hardware.
    pub limited: bool,
    /// What its antennas hear, if tuning has an effect.
    pub scene: Option<Scene>,
    /// The version of UHD that it belongs to.
    pub uhd: UhdGeneration,
}

/// The management state of the radio: session, rate and time.
pub(crate) struct Mpm {
    pub(super) identity: Identity,
    claim: CurrentClaim,
    pub(super) caller: Caller,
    /// What the device speaks.
    spoken: &'static Generation,
    claimed: Arc<AtomicBool>,
    pub(super) timekeeper: DeviceClock,
    default_rate_hz: f64,
    orders: Sender<DeviceCommand>,
    clock_source: String,
    time_source: String,
    pins: Pins,
    /// The front end of each radio block.
    pub(super) front_ends: Vec<FrontEnd>,
    coercions: u64,
    last_error: String,
}

pub(super) type Answer = Result<Value, String>;

impl Mpm {
    /// Returns the state of an unclaimed radio. `claimed` is kept up to date for discovery.
    pub fn new(
        identity: Identity,
        timekeeper: DeviceClock,
        claimed: Arc<AtomicBool>,
        orders: Sender<DeviceCommand>,
    ) -> Self {
        Self {
            front_ends: vec![
                FrontEnd::new(identity.personality.front_end, identity.limited);
                identity.personality.radios
            ],
            caller: Caller::new(identity.uhd),
            spoken: identity.uhd.row(),
            identity,
            claim: CurrentClaim::default(),
            claimed,
            timekeeper,
            default_rate_hz: timekeeper.clock().rate_hz(),
            orders,
            clock_source: "internal".to_owned(),
            time_source: "internal".to_owned(),
            pins: Pins::default(),
            coercions: 0,
            last_error: String::new(),
        }
    }

    /// Ends a claim whose holder has been silent for too long; returns whether it did.
    pub fn expire_claim(&mut self, now_ns: u64) -> bool {
        let expired = self.claim.expire(now_ns);
        if expired {
            self.end_session();
        }
        expired
    }

    fn end_session(&mut self) {
        self.claim.release();
        self.claimed.store(false, Ordering::Relaxed);
        self.caller.forget();
    }

    /// Returns the rates so far that replaced requested ones out of range.
    pub fn rate_coercions(&self) -> u64 {
        self.coercions
    }

    /// Drops the session, as after a power failure; `keeper` has the time after it. The device has
    /// cleared its own state.
    pub fn power_cycle(&mut self, keeper: DeviceClock) {
        self.end_session();
        self.speak(self.identity.uhd.row());
        self.timekeeper = keeper;
        self.last_error.clear();
        // Corrects commands that a call in progress may have sent to the device.
        self.order(DeviceCommand::PowerCycle(keeper));
    }

    /// Moves the time at `now_ns`.
    pub fn jump(&mut self, ticks: i64, now_ns: u64) {
        let time = self.timekeeper.now(now_ns).wrapping_add_signed(ticks);
        self.timekeeper.set_now(now_ns, time);
        self.order(DeviceCommand::Time(self.timekeeper));
    }

    /// Returns how all calls travel; `None` for both kinds.
    pub fn rpc(&self) -> Option<RpcKind> {
        self.identity.uhd.rpc()
    }

    /// Answers a call that came by gRPC.
    pub fn grpc_call(&mut self, call: &GrpcCall, now_ns: u64) -> Result<Value, GrpcStatus> {
        let method = match call.board {
            Some(board) => format!("db_{board}_{}", call.method.name),
            None => call.method.name.to_owned(),
        };
        self.caller.speaks(RpcKind::Grpc);
        let answer = self.call(&method, &call.arguments, now_ns);
        self.caller.speaks(RpcKind::Msgpack);
        answer.map_err(|text| self.status(call, &method, text))
    }

    /// Returns how an error looks in gRPC, as MPM 7.0 tells it.
    fn status(&self, call: &GrpcCall, method: &str, text: String) -> GrpcStatus {
        let boards = self.front_ends.len();
        let (code, message) = match call.board {
            _ if text == wrong_token(method) => {
                (GrpcCode::Unauthenticated, "Invalid token".to_owned())
            }
            Some(board) if board as usize >= boards => (
                GrpcCode::InvalidArgument,
                format!("Invalid db_idx: {board} (valid range: 0-{})", boards - 1),
            ),
            _ if text == no_method(method) => return GrpcStatus::no_method(),
            _ if method == "claim" => {
                (GrpcCode::Internal, format!("Runtime error in Claim: Double-claim ({text})"))
            }
            _ => (GrpcCode::Internal, format!("Runtime error in {}: {text}", call.method.grpc)),
        };
        GrpcStatus { code, message }
    }

    /// Answers a call at `now_ns`.
    pub fn call(&mut self, method: &str, args: &[Value], now_ns: u64) -> Answer {
        let answer = match self.open_call(method, args, now_ns) {
            Some(answer) => answer,
            None if !self.claim.renew(bytes(args, 0), now_ns) => Err(wrong_token(method)),
            None => self.claimed_call(method, &args[1..], now_ns),
        };
        if let Err(text) = &answer {
            self.last_error.clone_from(text);
        }
        answer
    }

    /// Handles methods that need no token.
    fn open_call(&mut self, method: &str, args: &[Value], now_ns: u64) -> Option<Answer> {
        Some(Ok(match method {
            "claim" => return Some(self.start_session(args, now_ns)),
            "get_device_info" => self.device_info(),
            "get_dboard_info" => self.board_info(),
            "get_mpm_compat_num" => self.tell_version(),
            "get_chdr_width" => Value::from(self.identity.width.bits()),
            "get_proto_ver" => Value::from(self.caller.generation().protocol.version()),
            "list_updateable_components" => none(),
            "get_last_error" => Value::from(self.last_error.as_str()),
            _ => return None,
        }))
    }

    /// Handles methods of the claim's holder; `args` without the token.
    fn claimed_call(&mut self, method: &str, args: &[Value], now_ns: u64) -> Answer {
        self.caller.note(method, args);
        if let Some((board, name)) = self.board_of(method) {
            return self.board_call(board, name, args, now_ns);
        }
        Ok(match method {
            "reclaim" => Value::from(true),
            "init" => self.init(args, now_ns)?,
            "unclaim" => {
                self.end_session();
                Value::from(true)
            }
            "get_log_buf" | "pop_host_tasks" => none(),
            "get_mb_sensors" => self.board_sensors(),
            "get_mb_sensor" => self.board_sensor(args)?,
            // What the boards of a set need of one another: nothing.
            "synchronize" => args.first().cloned().unwrap_or(Value::Map(Vec::new())),
            "aggregate_sync_data" => first_map(args),
            "get_chdr_xport_adapters" => self.adapters(),
            "add_remote_chdr_route" => self.add_route(args)?,
            "get_gpio_banks" if self.is_x410() => none(),
            "get_gpio_banks" => Pins::banks(),
            "get_gpio_srcs" => Pins::sources(args)?,
            "get_gpio_src" => self.pins.get(args)?,
            "set_gpio_src" => self.pins.set(args)?,
            "set_device_id" => {
                let id = u16::try_from(unsigned(args, 0)?);
                self.order(DeviceCommand::DeviceId(
                    id.map_err(|_| "the device id must fit 16 bits")?,
                ));
                Value::Nil
            }
            "get_db_eeprom" if self.is_x410() => binary_map([
                ("pid", self.identity.personality.board_pid),
                ("serial", &self.identity.serial),
            ]),
            "get_mb_eeprom" | "get_db_eeprom" => string_map([
                ("pid", self.identity.personality.pid),
                ("rev", self.identity.personality.revision),
                ("serial", &self.identity.serial),
            ]),
            "get_num_timekeepers" => Value::from(1),
            "supports_feature" => Value::from(false),
            "get_init_status" => strings(&["true", "ready"]),
            "get_clocks" => self.clocks(),
            "get_chdr_link_types" => strings(&["udp"]),
            "get_chdr_link_options" => self.link_options(args)?,
            "set_tick_period" | "set_channel_mode" => Value::Nil,
            "get_timekeeper_time" => {
                let at_pps = truth(args, 1)?;
                let keeper = &self.timekeeper;
                Value::from(if at_pps { keeper.last_pps(now_ns) } else { keeper.now(now_ns) })
            }
            "set_timekeeper_time" => self.set_time(args, now_ns)?,
            "get_clock_source" => Value::from(self.clock_source.as_str()),
            "get_time_source" => Value::from(self.time_source.as_str()),
            "get_clock_sources" | "get_time_sources" => strings(&["internal", "external"]),
            "set_clock_source" => set_source(&mut self.clock_source, args)?,
            "set_time_source" => set_source(&mut self.time_source, args)?,
            "get_sync_sources" => sync_sources(),
            "set_sync_source" => self.set_sync_source(args)?,
            "get_master_clock_rate" => Value::from(self.timekeeper.clock().rate_hz()),
            "is_db_gpio_ifc_present" if self.is_x410() => Value::from(true),
            // The oscillators of the converters take any frequency.
            "rfdc_set_nco_freq" if self.is_x410() => Value::from(number(args, 3)?),
            "rfdc_get_nco_freq" if self.is_x410() => Value::from(0.0),
            // As the hardware does: it has no connector for it.
            "set_clock_source_out" => {
                return Err("set_clock_source_out: there is no output for the clock".to_owned());
            }
            _ => return Err(no_method(method)),
        })
    }

    fn start_session(&mut self, args: &[Value], now_ns: u64) -> Answer {
        self.expire_claim(now_ns);
        let session = text(args, 0).unwrap_or("unnamed");
        let token = self
            .claim
            .claim(session, now_ns)
            .map_err(|holder| format!("the radio is claimed by {holder}"))?;
        self.claimed.store(true, Ordering::Relaxed);
        self.prepare_boards(now_ns);
        Ok(Value::from(token))
    }

    /// Tells the version of MPM that the caller expects; the image speaks its language from then
    /// on. Without a session there is no caller.
    fn tell_version(&mut self) -> Value {
        if self.claim.is_held() {
            let told = self.caller.ask();
            self.speak(told);
        }
        Value::Array(self.caller.generation().mpm_compat.map(Value::from).into())
    }

    /// Has the device speak a generation.
    fn speak(&mut self, generation: &'static Generation) {
        if self.spoken != generation {
            self.spoken = generation;
            self.order(DeviceCommand::Speak(generation));
        }
    }

    /// Sets the boards and their clocks for a session, as MPM does. The logic behind them keeps
    /// what the last host has left there.
    fn prepare_boards(&mut self, now_ns: u64) {
        self.timekeeper.set_rate(now_ns, self.default_rate_hz);
        self.order(DeviceCommand::Time(self.timekeeper));
        for number in 0..self.front_ends.len() {
            self.front_ends[number].reset();
            self.order(DeviceCommand::FrontEnd(number, self.front_ends[number]));
        }
        self.clock_source = "internal".to_owned();
        self.time_source = "internal".to_owned();
    }

    /// Takes the device arguments. A rate given here applies before the host requests any, so its
    /// graph never sees another one.
    fn init(&mut self, args: &[Value], now_ns: u64) -> Answer {
        if let Some(rate) = entry(args, 0, "master_clock_rate") {
            let rate_hz = rate.parse().map_err(|_| {
                format!("the device argument master_clock_rate={rate} is not a rate")
            })?;
            self.set_rate(rate_hz, now_ns)?;
        }
        Ok(Value::from(true))
    }

    /// Sets a rate, or the nearest possible one, as the hardware does.
    pub(super) fn set_rate(&mut self, wanted_hz: f64, now_ns: u64) -> Answer {
        if !(wanted_hz.is_finite() && wanted_hz > 0.0) {
            return Err(format!("{wanted_hz} is not a rate"));
        }
        let rate_hz = self.identity.rates.nearest(wanted_hz);
        self.coercions += u64::from(rate_hz != wanted_hz);
        self.timekeeper.set_rate(now_ns, rate_hz);
        self.order(DeviceCommand::Time(self.timekeeper));
        Ok(Value::from(rate_hz))
    }

    /// Sets clock and time source together; sources missing in the map are unchanged.
    fn set_sync_source(&mut self, args: &[Value]) -> Answer {
        for (key, source) in
            [("clock_source", &mut self.clock_source), ("time_source", &mut self.time_source)]
        {
            if let Some(name) = entry(args, 0, key) {
                set_source(source, &[Value::from(name)])?;
            }
        }
        Ok(Value::Nil)
    }

    fn set_time(&mut self, args: &[Value], now_ns: u64) -> Answer {
        let (timestamp, at_pps) = (unsigned(args, 1)?, truth(args, 2)?);
        if at_pps {
            self.timekeeper.set_at_next_pps(now_ns, timestamp);
        } else {
            self.timekeeper.set_now(now_ns, timestamp);
        }
        self.order(DeviceCommand::Time(self.timekeeper));
        Ok(Value::Nil)
    }

    pub(super) fn is_x410(&self) -> bool {
        self.identity.personality.front_end == FrontEndKind::Zbx
    }

    /// Sends a command to the device thread, which may have ended and then needs none.
    pub(super) fn order(&self, order: DeviceCommand) {
        let _ = self.orders.send(order);
    }
}

/// Returns the first of the maps in the first argument; an empty one without any.
fn first_map(args: &[Value]) -> Value {
    let first = args.first().and_then(Value::as_array).and_then(|maps| maps.first());
    first.cloned().unwrap_or(Value::Map(Vec::new()))
}

fn wrong_token(method: &str) -> String {
    format!("{method}: the token is not that of the current claim")
}

pub(super) fn no_method(method: &str) -> String {
    format!("there is no method {method}")
}

fn set_source(source: &mut String, args: &[Value]) -> Answer {
    match text(args, 0)? {
        name @ ("internal" | "external") => {
            name.clone_into(source);
            Ok(Value::Nil)
        }
        other => Err(format!("source {other} is neither internal nor external")),
    }
}

#[cfg(test)]
#[path = "methods_tests.rs"]
pub(super) mod tests;
