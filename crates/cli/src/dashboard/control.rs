//! What clients of a dashboard may change, and their answers.

use millstream_flow::{ParameterKind, ParameterValue};
use millstream_web::{ControlInfo, ControlRequest};

/// The control that ends a run.
pub fn end_of_run() -> ControlInfo {
    ControlInfo {
        target: "run".to_owned(),
        name: "stop".to_owned(),
        kind: ParameterKind::Boolean.to_string(),
        help: "end the run as Ctrl-C does".to_owned(),
        ..ControlInfo::default()
    }
}

/// Returns the value that a client wants, if it is of that kind.
pub fn value_of(request: &ControlRequest, kind: ParameterKind) -> Result<ParameterValue, String> {
    let ControlRequest { target, name, value, .. } = request;
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    ParameterValue::from_text(&text, kind)
        .ok_or_else(|| format!("{target}.{name} is {kind}, but got {text}"))
}

/// Why a control does not exist, with those that its target has.
pub fn unknown_control<'a>(
    request: &ControlRequest,
    others: impl Iterator<Item = &'a str>,
) -> String {
    let ControlRequest { target, name, .. } = request;
    let fixed = match (target.as_str(), name.as_str()) {
        ("radio", "position_s") => ": its samples come from now on",
        ("radio", "rate_hz") => {
            ": files and the blocks of a graph have one rate; `rx --out /dev/null` takes others"
        }
        _ => "",
    };
    let others = others.collect::<Vec<_>>().join(", ");
    let has = if others.is_empty() { "nothing".to_owned() } else { others };
    format!("`{target}` has no `{name}`{fixed}; clients may set {has}, and run.stop ends the run")
}
