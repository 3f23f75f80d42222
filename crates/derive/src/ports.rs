//! `#[derive(Ports)]`: the ports of a block.

use proc_macro2::TokenStream as Code;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Field, LitStr, Type};

/// Returns the code for a struct; `flow` is the path of the runtime there.
pub(crate) fn expand(input: &DeriveInput, flow: &Code) -> Result<Code, Error> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(input.span(), "ports are fields of a struct"));
    };
    let shown: Vec<Code> = data
        .fields
        .iter()
        .map(|field| show(field, flow))
        .collect::<Result<Vec<_>, _>>()?
        .into_iter()
        .flatten()
        .collect();
    let (name, generics) = (&input.ident, &input.generics);
    let (head, arguments, bounds) = generics.split_for_impl();
    let only = |visit: &str, side: &Code, constant: &Code| {
        let (item, label) = only_one(data, visit)?;
        Some(quote! {
            impl #head #flow::#side for #name #arguments #bounds {
                type Item = #item;
                const #constant: &'static str = #label;
            }
        })
    };
    let input = only("input", &quote!(OneInput), &quote!(INPUT));
    let output = only("output", &quote!(OneOutput), &quote!(OUTPUT));
    Ok(quote! {
        #input
        #output
        impl #head #flow::Ports for #name #arguments #bounds {
            fn ports(&mut self, ports: &mut dyn #flow::PortVisitor) {
                #(#shown)*
            }
        }
    })
}

/// Returns the items and the name of the only port of a struct that this method of the visitor
/// gets; `None` if there is none, or several or numbered ones.
fn only_one<'a>(data: &'a syn::DataStruct, visit: &str) -> Option<(&'a Type, String)> {
    let mut found = None;
    for field in &data.fields {
        let Some((shown_to, several)) = kind(&field.ty) else { continue };
        if shown_to.to_string() != visit {
            continue;
        }
        if several || found.is_some() {
            return None;
        }
        found = Some((items_of(&field.ty)?, name_of_port(field).ok()?));
    }
    found
}

/// Returns `T` of `In<T>` or `Out<T>`.
fn items_of(port: &Type) -> Option<&Type> {
    let Type::Path(path) = port else { return None };
    let syn::PathArguments::AngleBracketed(arguments) = &path.path.segments.last()?.arguments
    else {
        return None;
    };
    match arguments.args.first()? {
        syn::GenericArgument::Type(item) => Some(item),
        _ => None,
    }
}

/// Returns the code that shows a field, if it is a port or several.
fn show(field: &Field, flow: &Code) -> Result<Option<Code>, Error> {
    let Some((visit, several)) = kind(&field.ty) else {
        return match said_name(field)? {
            None => Ok(None),
            Some(name) => Err(Error::new(
                name.span(),
                "not a port: expected `In<T>`, `Out<T>`, `Emitter`, or an array or `Vec` of them",
            )),
        };
    };
    let Some(ident) = &field.ident else {
        return Err(Error::new(field.span(), "a port needs a field with a name"));
    };
    let name = name_of_port(field)?;
    Ok(Some(match several {
        false => quote! { ports.#visit(#name, &mut self.#ident); },
        true => quote! {
            for (index, port) in self.#ident.iter_mut().enumerate() {
                ports.#visit(&#flow::port::NumberedName::new(#name, index), port);
            }
        },
    }))
}

/// Returns the name that the attribute `port` gives.
fn said_name(field: &Field) -> Result<Option<LitStr>, Error> {
    let said = field.attrs.iter().find(|attribute| attribute.path().is_ident("port"));
    said.map(|attribute| attribute.parse_args::<LitStr>()).transpose()
}

/// Returns the name of the port of a field.
fn name_of_port(field: &Field) -> Result<String, Error> {
    let own = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
    Ok(said_name(field)?.map_or_else(|| name_of(&own), |said| said.value()))
}

fn name_of(field: &str) -> String {
    match field {
        "input" => "in",
        "output" => "out",
        other => other,
    }
    .to_owned()
}

/// Returns the visitor's method for a port of this type, and whether there are several.
fn kind(of: &Type) -> Option<(Code, bool)> {
    match of {
        Type::Array(array) => kind(&array.elem).map(|(visit, _)| (visit, true)),
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            match last.ident.to_string().as_str() {
                "In" => Some((quote!(input), false)),
                "Out" => Some((quote!(output), false)),
                "Emitter" => Some((quote!(emitter), false)),
                "Vec" => {
                    let syn::PathArguments::AngleBracketed(arguments) = &last.arguments else {
                        return None;
                    };
                    let syn::GenericArgument::Type(element) = arguments.args.first()? else {
                        return None;
                    };
                    kind(element).map(|(visit, _)| (visit, true))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    /// Returns the calls of the visitor, or the error.
    fn calls(input: &DeriveInput) -> String {
        let text = match expand(input, &quote!(::millstream_flow)) {
            Ok(code) => code.to_string(),
            Err(error) => return error.to_string(),
        };
        let from = text.find("PortVisitor)").expect("it has the method") + "PortVisitor)".len();
        text[from..].split_whitespace().collect()
    }

    #[test]
    fn ports_are_shown_in_the_order_of_the_fields_with_their_names() {
        let block = parse_quote! {
            pub struct Mixed<T: Item> {
                gain: f32,
                pub output: Out<T>,
                pub input: millstream_flow::In<T>,
                pub carrier: In<f32>,
                #[port("else")]
                other: Out<u8>,
            }
        };
        assert_eq!(
            calls(&block),
            "{ports.output(\"out\",&mutself.output);ports.input(\"in\",&mutself.input);\
             ports.input(\"carrier\",&mutself.carrier);ports.output(\"else\",&mutself.other);}}"
        );
    }

    #[test]
    fn the_only_port_of_a_side_is_known_by_its_items_and_several_are_not() {
        let code = |block: &DeriveInput| {
            let code = expand(block, &quote!(::flow)).unwrap().to_string();
            code.split_whitespace().collect::<String>()
        };
        let one = code(&parse_quote! { struct Gain<T: Item> { input: In<T>, output: Out<u8> } });
        let input =
            "impl<T:Item>::flow::OneInputforGain<T>{typeItem=T;constINPUT:&'staticstr=\"in\";}";
        assert!(one.contains(input), "{one}");
        assert!(one.contains("OneOutputforGain<T>{typeItem=u8;"), "{one}");
        let other = code(&parse_quote! { struct Sum { a: In<u8>, b: In<u8>, out: [Out<u8>; 2] } });
        assert!(!other.contains("One"), "{other}");
    }

    #[test]
    fn several_ports_are_numbered() {
        let name = "&::millstream_flow::port::NumberedName::new";
        for ports in [parse_quote!(Vec<In<f32>>), parse_quote!([In<f32>; 3])] {
            let ports: Type = ports;
            let block = parse_quote! { struct Sum { #[port("in")] inputs: #ports } };
            let shown = format!("ports.input({name}(\"in\",index),port);");
            assert!(calls(&block).contains(&shown), "{}", calls(&block));
        }
    }

    #[test]
    fn the_code_names_the_runtime_by_the_path_that_it_has_there() {
        let block = parse_quote! { struct Sum { #[port("in")] inputs: Vec<In<f32>> } };
        let code = expand(&block, &quote!(::millstream::flow)).unwrap().to_string();
        assert!(!code.contains("millstream_flow"), "{code}");
        assert_eq!(code.matches(":: millstream :: flow ::").count(), 3, "{code}");
    }

    #[test]
    fn a_struct_without_ports_shows_nothing() {
        assert_eq!(calls(&parse_quote! { struct Idle; }), "{}}");
        assert_eq!(calls(&parse_quote! { struct Idle { taps: Vec<f32> } }), "{}}");
    }

    #[test]
    fn what_cannot_be_a_port_is_refused() {
        let tuple = calls(&parse_quote! { struct Pair(In<f32>, u8); });
        assert_eq!(tuple, "a port needs a field with a name");
        let number = calls(&parse_quote! { struct Gain { #[port("in")] gain: f32 } });
        assert!(number.starts_with("not a port: expected `In<T>`"), "{number}");
        let either = calls(&parse_quote! { enum Either { One } });
        assert_eq!(either, "ports are fields of a struct");
    }
}
