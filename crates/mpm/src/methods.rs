//! The methods of MPM as data: both names, and the fields of request and response.
//!
//! Source: the interface of MPM 7.0 (UHD 4.11). A method that a program needs and that is not here
//! is one more row.

/// What a field of a request or a response contains, and the argument or result that it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// The claim's token: the first argument of a MessagePack call.
    Token,
    /// The number of the daughterboard: in the name of a MessagePack call, as `db_0_`.
    Board,
    /// A text.
    Text,
    /// A truth value.
    Bool,
    /// An integer of 32 or 64 bits that is not negative.
    Uint,
    /// An integer of 32 bits.
    Int,
    /// A double.
    Double,
    /// A list of texts.
    Texts,
    /// A list of [`Self::Uint`].
    Uints,
    /// A list of [`Self::Int`].
    Ints,
    /// A list of doubles.
    Doubles,
    /// A map of texts.
    Map,
    /// A map of texts to bytes.
    Blobs,
    /// A list of maps of texts.
    Maps,
}

use FieldKind::{
    Blobs, Board, Bool, Double, Int, Ints, Map, Maps, Text, Texts, Token, Uint, Uints,
};

/// A method. A field's number is its place in the list, from 1 on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Method {
    /// Its name in a MessagePack call, without a prefix for the daughterboard.
    pub name: &'static str,
    /// Its name in gRPC.
    pub grpc: &'static str,
    /// The fields of the request. Behind the token, the arguments of a MessagePack call have the
    /// same order.
    pub request: &'static [FieldKind],
    /// The fields of the response. The result of a MessagePack call is nil for none, and a list for
    /// several.
    pub response: &'static [FieldKind],
}

const fn row(
    name: &'static str,
    grpc: &'static str,
    request: &'static [FieldKind],
    response: &'static [FieldKind],
) -> Method {
    Method { name, grpc, request, response }
}

/// All methods that this program knows.
pub const METHODS: &[Method] = &[
    row("claim", "Claim", &[Text], &[Text]),
    row("reclaim", "Reclaim", &[Token], &[Bool]),
    row("unclaim", "Unclaim", &[Token], &[Bool]),
    row("get_mpm_compat_num", "GetMpmCompatNumber", &[], &[Uints]),
    row("init", "Init", &[Token, Map], &[Bool]),
    row("list_updateable_components", "ListUpdateableComponents", &[], &[Texts]),
    row("get_log_buf", "GetLogBuf", &[Token], &[Maps]),
    row("get_device_info", "GetDeviceInfo", &[], &[Map]),
    row("get_dboard_info", "GetDboardInfo", &[], &[Maps]),
    row("get_init_status", "GetInitStatus", &[Token], &[Texts]),
    row("get_device_id", "GetDeviceId", &[Token], &[Uint]),
    row("set_device_id", "SetDeviceId", &[Token, Uint], &[]),
    row("supports_feature", "SupportsFeature", &[Token, Text], &[Bool]),
    row("get_device_info_dyn", "GetDeviceInfoDyn", &[], &[Map]),
    row("get_num_timekeepers", "GetNumTimekeepers", &[Token], &[Uint]),
    row("set_tick_period", "SetTickPeriod", &[Token, Uint, Uint], &[]),
    row("get_timekeeper_time", "GetTimekeeperTime", &[Token, Uint, Bool], &[Uint]),
    row("set_timekeeper_time", "SetTimekeeperTime", &[Token, Uint, Uint, Bool], &[]),
    row("set_time_source", "SetTimeSource", &[Token, Text], &[]),
    row("get_time_source", "GetTimeSource", &[Token], &[Text]),
    row("get_time_sources", "GetTimeSources", &[Token], &[Texts]),
    row("set_clock_source", "SetClockSource", &[Token, Text], &[]),
    row("get_clock_source", "GetClockSource", &[Token], &[Text]),
    row("get_clock_sources", "GetClockSources", &[Token], &[Texts]),
    row("set_sync_source", "SetSyncSource", &[Token, Map], &[]),
    row("get_sync_source", "GetSyncSource", &[Token], &[Map]),
    row("get_sync_sources", "GetSyncSources", &[Token], &[Maps]),
    row("set_clock_source_out", "SetClockSourceOut", &[Token, Bool], &[]),
    row("set_trigger_io", "SetTriggerIo", &[Token, Text], &[]),
    row("get_clocks", "GetClocks", &[Token], &[Maps]),
    row("synchronize", "Synchronize", &[Token, Map, Bool], &[Map]),
    row("aggregate_sync_data", "AggregateSyncData", &[Token, Maps], &[Map]),
    row("get_mb_sensors", "GetMbSensors", &[Token], &[Texts]),
    row("get_mb_sensor", "GetMbSensor", &[Token, Text], &[Map]),
    row("enable_gps", "EnableGps", &[Token, Bool], &[]),
    row("get_ref_clock_freq", "GetRefClockFreq", &[Token], &[Double]),
    row("set_ref_clock_freq", "SetRefClockFreq", &[Token, Double], &[]),
    row("get_gpio_banks", "GetGpioBanks", &[Token], &[Texts]),
    row("get_gpio_srcs", "GetGpioSrcs", &[Token, Text], &[Texts]),
    row("get_gpio_src", "GetGpioSrc", &[Token, Text], &[Texts]),
    row("set_gpio_src", "SetGpioSrc", &[Token, Text, Texts], &[]),
    row("get_mb_eeprom", "GetMbEeprom", &[Token], &[Map]),
    row("set_mb_eeprom", "SetMbEeprom", &[Token, Map], &[]),
    row("get_db_eeprom", "GetDbEeprom", &[Token, Uint], &[Blobs]),
    row("set_db_eeprom", "SetDbEeprom", &[Token, Uint, Blobs], &[]),
    row("get_proto_ver", "GetProtoVer", &[], &[Uint]),
    row("get_chdr_width", "GetChdrWidth", &[], &[Uint]),
    row("get_chdr_link_types", "GetChdrLinkTypes", &[Token], &[Texts]),
    row("get_chdr_link_options", "GetChdrLinkOptions", &[Token, Text], &[Maps]),
    row("get_chdr_xport_adapters", "GetChdrXportAdapters", &[Token], &[Map]),
    row("add_remote_chdr_route", "AddRemoteChdrRoute", &[Token, Text, Uint, Map], &[Bool]),
    row("pop_host_tasks", "PopHostTasks", &[Token, Text], &[Maps]),
    row("set_channel_mode", "SetChannelMode", &[Token, Text], &[]),
    row("get_sensors", "GetSensors", &[Board, Token, Text], &[Texts]),
    row("get_sensor", "GetSensor", &[Board, Token, Text, Text, Uint], &[Map]),
    row("get_master_clock_rate", "GetMasterClockRate", &[Board, Token], &[Double]),
    row("set_bw_filter", "SetBwFilter", &[Board, Token, Text, Double], &[Double]),
    row("set_gain", "SetGain", &[Board, Token, Text, Double], &[Double]),
    row("set_agc", "SetAgc", &[Board, Token, Text, Bool], &[]),
    row("set_agc_mode", "SetAgcMode", &[Board, Token, Text, Text], &[]),
    row("set_catalina_clock_rate", "SetCatalinaClockRate", &[Board, Token, Double], &[Double]),
    row("set_active_chains", "SetActiveChains", &[Board, Token, Bool, Bool, Bool, Bool], &[]),
    row("catalina_tune", "CatalinaTune", &[Board, Token, Text, Double], &[Double]),
    row("set_dc_offset_auto", "SetDcOffsetAuto", &[Board, Token, Text, Bool], &[]),
    row("set_timing_mode", "SetTimingMode", &[Board, Token, Text], &[]),
    row("set_iq_balance_auto", "SetIqBalanceAuto", &[Board, Token, Text, Bool], &[]),
    row("get_freq", "GetFreq", &[Board, Token, Text], &[Double]),
    row("data_port_loopback", "DataPortLoopback", &[Board, Token, Bool], &[]),
    row("get_filter_names", "GetFilterNames", &[Board, Token, Text], &[Texts]),
    row("set_freq", "SetFreq", &[Board, Token, Text, Double, Bool], &[Double]),
    row("get_gain", "GetGain", &[Board, Token, Text], &[Double]),
    row("get_bandwidth", "GetBandwidth", &[Board, Token, Text], &[Double]),
    row("set_bandwidth", "SetBandwidth", &[Board, Token, Text, Double], &[Double]),
    row("set_lo_source", "SetLoSource", &[Board, Token, Text, Text], &[Text]),
    row("get_lo_source", "GetLoSource", &[Board, Token, Text], &[Text]),
    row("set_fir", "SetFir", &[Board, Token, Text, Int, Ints], &[]),
    row("get_fir", "GetFir", &[Board, Token, Text], &[Int, Ints]),
    row("get_ad9371_lo_lock", "GetAd9371LoLock", &[Board, Token, Text], &[Bool]),
    row("get_lowband_lo_lock", "GetLowbandLoLock", &[Board, Token, Text], &[Bool]),
    row("enable_rx_lowband_lo", "EnableRxLowbandLo", &[Board, Token, Bool], &[]),
    row("enable_tx_lowband_lo", "EnableTxLowbandLo", &[Board, Token, Bool], &[]),
    row("set_master_clock_rate", "SetMasterClockRate", &[Board, Token, Double], &[Double]),
    row("is_lo_dist_present", "IsLoDistPresent", &[Board, Token], &[Bool]),
    row("enable_lo_export", "EnableLoExport", &[Board, Token, Text, Bool], &[]),
    row("enable_lo_output", "EnableLoOutput", &[Board, Token, Text, Uint, Bool], &[]),
    row("rfdc_set_nco_freq", "RfdcSetNcoFreq", &[Uint, Token, Text, Uint, Double, Uint], &[Double]),
    row("rfdc_get_nco_freq", "RfdcGetNcoFreq", &[Uint, Token, Text, Uint, Uint], &[Double]),
    row("enable_iq_swap", "EnableIqSwap", &[Bool, Text, Uint, Token, Board], &[]),
    row("get_dboard_sample_rate", "GetDboardSampleRate", &[Token, Board], &[Double]),
    row("get_dboard_prc_rate", "GetDboardPrcRate", &[Token, Board], &[Double]),
    row("is_db_gpio_ifc_present", "IsDbGpioIfcPresent", &[Uint, Token], &[Bool]),
    row(
        "dio_get_supported_voltage_levels",
        "DioGetSupportedVoltageLevels",
        &[Token, Text],
        &[Texts],
    ),
    row("dio_set_voltage_level", "DioSetVoltageLevel", &[Token, Text, Text], &[]),
    row("dio_get_voltage_level", "DioGetVoltageLevel", &[Token, Text], &[Text]),
    row("reset_timer_and_mgr", "ResetTimerAndMgr", &[Token], &[]),
    row("update_ref_clock_freq", "UpdateRefClockFreq", &[Board, Token, Double], &[]),
];

/// Returns the method with this name in gRPC.
pub fn by_grpc_name(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.grpc == name)
}

/// Returns the method of a MessagePack call, and the daughterboard that its name contains.
pub fn by_name(name: &str) -> Option<(&'static Method, Option<u32>)> {
    let (board, name) = match split_board(name) {
        Some((board, name)) => (Some(board), name),
        None => (None, name),
    };
    let method = METHODS.iter().find(|method| method.name == name)?;
    (method.request.contains(&Board) == board.is_some()).then_some((method, board))
}

/// Splits the name of a daughterboard's method: its number, and the name after it.
pub fn split_board(name: &str) -> Option<(u32, &str)> {
    let (number, name) = name.strip_prefix("db_")?.split_once('_')?;
    Some((number.parse().ok()?, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_method_is_found_by_both_names_and_stands_here_once() {
        let names: HashSet<_> = METHODS.iter().map(|method| method.name).collect();
        assert_eq!(names.len(), METHODS.len());
        for method in METHODS {
            assert_eq!(by_grpc_name(method.grpc), Some(method));
            let (name, board) = match method.request.contains(&Board) {
                true => (format!("db_1_{}", method.name), Some(1)),
                false => (method.name.to_owned(), None),
            };
            assert_eq!(by_name(&name), Some((method, board)));
            // One exception: the last word is shortened.
            let words = method.grpc.to_lowercase().replace("number", "num");
            assert_eq!(method.name.replace('_', ""), words);
        }
    }

    #[test]
    fn a_name_without_its_daughterboard_is_none() {
        for name in ["set_gain", "db_0_claim", "db_x_set_gain", "db_0", "db_0_", ""] {
            assert_eq!(by_name(name), None, "{name}");
        }
    }
}
