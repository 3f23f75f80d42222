//! Derives of `millstream_flow`: the ports of a block (`Ports`) and its parameters
//! (`registry::BlockParameters`); see those traits.

mod parameters;
mod ports;

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Code;
use quote::quote;
use syn::{DeriveInput, Error};

/// Makes the code of a derive, which gets the path of the runtime.
type Expand = fn(&DeriveInput, &Code) -> Result<Code, Error>;

fn derive(input: TokenStream, flow: &Code, expand: Expand) -> TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    expand(&input, flow).unwrap_or_else(Error::into_compile_error).into()
}

/// Shows every field of type `In`, `Out` or `Emitter`, in the order of the fields.
///
/// A field called `input` is the port `in`, one called `output` the port `out`, any other has its
/// own name; `#[port("name")]` gives another. An array or a `Vec` of ports gives numbered ones:
/// `#[port("in")] inputs: Vec<In<f32>>` is `in0`, `in1` and so on.
#[proc_macro_derive(Ports, attributes(port))]
pub fn ports(input: TokenStream) -> TokenStream {
    derive(input, &quote!(::millstream_flow), ports::expand)
}

/// Does what [`macro@Ports`] does, for programs that use `millstream_flow` as `millstream::flow`;
/// that module calls it `Ports`.
#[proc_macro_derive(FacadePorts, attributes(port))]
pub fn facade_ports(input: TokenStream) -> TokenStream {
    derive(input, &quote!(::millstream::flow), ports::expand)
}

/// Declares the fields of a struct as parameters; with `#[block(...)]` also a type of block. The
/// variants of an enum are the choices of a parameter.
#[proc_macro_derive(BlockParameters, attributes(parameter, block))]
pub fn block_parameters(input: TokenStream) -> TokenStream {
    derive(input, &quote!(::millstream_flow), parameters::expand)
}

/// Does what [`macro@BlockParameters`] does, for programs that use `millstream_flow` as
/// `millstream::flow`; that module calls it `BlockParameters`.
#[proc_macro_derive(FacadeBlockParameters, attributes(parameter, block))]
pub fn facade_block_parameters(input: TokenStream) -> TokenStream {
    derive(input, &quote!(::millstream::flow), parameters::expand)
}
