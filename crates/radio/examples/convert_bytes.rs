//! Converts standard input to standard output, for comparison with other programs:
//! `convert_bytes to-user|to-wire WIRE USER SCALE`, for example `to-user sc12 fc32 1.0`.

use std::io::{Read, Write};

use millstream_radio::convert::{Converter, HostSample, Wire};
use millstream_radio::{Complex32, Complex64};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [direction, wire, user, scale] = &arguments[..] else {
        return Err("give DIRECTION WIRE USER SCALE".into());
    };
    let wire = Wire::ALL.into_iter().find(|known| known.name() == wire).ok_or("no such wire")?;
    let scale = scale.parse()?;
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input)?;
    let to_user = direction == "to-user";
    let output = match user.as_str() {
        "fc32" => convert::<Complex32>(&input, wire, scale, to_user),
        "fc64" => convert::<Complex64>(&input, wire, scale, to_user),
        "sc16" => convert::<[i16; 2]>(&input, wire, scale, to_user),
        "sc8" => convert::<[i8; 2]>(&input, wire, scale, to_user),
        _ => return Err("no such user format".into()),
    };
    std::io::stdout().write_all(&output)?;
    Ok(())
}

fn convert<U: HostSample>(input: &[u8], wire: Wire, scale: f64, to_user: bool) -> Vec<u8> {
    let converter = Converter::new(wire);
    if to_user {
        let group = wire.bytes_of(wire.group_samples());
        let mut user = vec![U::zeroed(); input.len() / group * wire.group_samples()];
        converter.to_user(input, &mut user, U::real(scale));
        return bytemuck::cast_slice(&user).to_vec();
    }
    let mut samples = vec![U::zeroed(); input.len() / size_of::<U>()];
    let whole = size_of_val(&samples[..]);
    bytemuck::cast_slice_mut(&mut samples).copy_from_slice(&input[..whole]);
    let mut packed = vec![0; wire.bytes_of(samples.len())];
    converter.to_wire(&samples, &mut packed, U::real(scale));
    packed
}
