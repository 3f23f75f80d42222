//! `#[derive(BlockParameters)]`: the parameters of a block, and the type of block that has them.

use proc_macro2::TokenStream as Code;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DataEnum, DataStruct, DeriveInput, Error, Expr, Field, Ident, LitStr};

pub(crate) fn expand(input: &DeriveInput, flow: &Code) -> Result<Code, Error> {
    let registry = quote!(#flow::registry);
    match &input.data {
        Data::Struct(data) => {
            let parameters = parameters(input, data, &registry)?;
            let block = input.attrs.iter().find(|attribute| attribute.path().is_ident("block"));
            let block = block.map(|attribute| block_type(input, attribute, flow)).transpose()?;
            Ok(quote!(#parameters #block))
        }
        Data::Enum(data) => choices(input, data, &registry),
        Data::Union(_) => Err(Error::new(input.span(), "parameters are fields of a struct")),
    }
}

/// Returns the trait's implementation for a struct.
fn parameters(input: &DeriveInput, data: &DataStruct, registry: &Code) -> Result<Code, Error> {
    let name = &input.ident;
    let fields: Vec<ParameterCode> =
        data.fields.iter().map(|field| parameter(field, registry)).collect::<Result<_, _>>()?;
    let (declared, read): (Vec<_>, Vec<_>) =
        fields.into_iter().map(|field| (field.declared, field.read)).unzip();
    Ok(quote! {
        impl #registry::BlockParameters for #name {
            fn declare(declared: &mut ::std::vec::Vec<#registry::Parameter>) {
                let _ = &declared;
                #(#declared)*
            }

            fn read(
                values: &#registry::ParameterValues,
            ) -> ::std::result::Result<Self, ::std::boxed::Box<
                dyn ::std::error::Error + ::std::marker::Send + ::std::marker::Sync,
            >> {
                let _ = values;
                Ok(Self { #(#read)* })
            }
        }
    })
}

/// The code for one field.
struct ParameterCode {
    declared: Code,
    read: Code,
}

fn parameter(field: &Field, registry: &Code) -> Result<ParameterCode, Error> {
    let Some(ident) = &field.ident else {
        return Err(Error::new(field.span(), "a parameter needs a field with a name"));
    };
    let (name, ty) = (ident.to_string(), &field.ty);
    let mut is_group = false;
    let mut default = None;
    let mut incidental = None;
    let unbounded = || quote!(::std::ops::Bound::Unbounded);
    let (mut least, mut most) = (unbounded(), unbounded());
    for attribute in field.attrs.iter().filter(|one| one.path().is_ident("parameter")) {
        attribute.parse_nested_meta(|meta| {
            let word = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            let bound = |kind: Code| {
                let number: Expr = meta.value()?.parse()?;
                Ok::<_, Error>(quote!(::std::ops::Bound::#kind((#number) as f64)))
            };
            match word.as_str() {
                "flatten" => is_group = true,
                "incidental" => incidental = Some(quote!(.incidental())),
                "default" => default = Some(value_of(meta.value()?.parse()?, registry)),
                "least" => least = bound(quote!(Included))?,
                "above" => least = bound(quote!(Excluded))?,
                "most" => most = bound(quote!(Included))?,
                "below" => most = bound(quote!(Excluded))?,
                _ => {
                    return Err(meta.error(
                        "expected `default`, `least`, `above`, `most`, `below`, `incidental` or \
                         `flatten`",
                    ));
                }
            }
            Ok(())
        })?;
    }
    if is_group {
        return Ok(ParameterCode {
            declared: quote!(<#ty as #registry::BlockParameters>::declare(declared);),
            read: quote!(#ident: <#ty as #registry::BlockParameters>::read(values)?,),
        });
    }
    let help = documentation(&field.attrs);
    if help.is_empty() {
        return Err(Error::new(ident.span(), "a parameter needs a doc comment: its help text"));
    }
    let default = default.map(|value| quote!(.with_default(#value)));
    Ok(ParameterCode {
        declared: quote! {
            <#ty as #registry::ParameterField>::declare(
                #registry::Parameter::new(#name, #help)
                    .within(#registry::ParameterRange::new(#least, #most))
                    #default
                    #incidental,
                declared,
            );
        },
        read: quote!(#ident: values.field::<#ty>(#name)?,),
    })
}

/// Returns a default as a value: a whole number is one of 64 bits, `[]` an empty list.
fn value_of(default: Expr, registry: &Code) -> Code {
    let is_whole = |expr: &Expr| {
        let unsigned = match expr {
            Expr::Unary(unary) => &*unary.expr,
            other => other,
        };
        matches!(unsigned, Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(_), .. }))
    };
    match &default {
        Expr::Array(list) => quote!(#registry::ParameterValue::Numbers(#list.to_vec())),
        expr if is_whole(expr) => quote!(#registry::ParameterValue::Integer(#expr)),
        expr => quote!(#expr),
    }
}

/// Returns the first paragraph of the doc comments, in one line.
fn documentation(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter(|one| one.path().is_ident("doc")).filter_map(|one| {
        let value = &one.meta.require_name_value().ok()?.value;
        let literal = match value {
            Expr::Group(group) => &*group.expr,
            other => other,
        };
        match literal {
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => {
                Some(text.value().trim().to_owned())
            }
            _ => None,
        }
    });
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns the trait's implementation for an enum of choices.
fn choices(input: &DeriveInput, data: &DataEnum, registry: &Code) -> Result<Code, Error> {
    let mut variants: Vec<(String, &Ident)> = Vec::new();
    for variant in &data.variants {
        if !variant.fields.is_empty() {
            return Err(Error::new(variant.span(), "a choice has no data"));
        }
        let said = variant.attrs.iter().find(|one| one.path().is_ident("parameter"));
        let said = said.map(|one| one.parse_args::<LitStr>()).transpose()?;
        let name = said.map_or_else(|| in_small_letters(&variant.ident), |said| said.value());
        variants.push((name, &variant.ident));
    }
    if variants.is_empty() {
        return Err(Error::new(input.span(), "a parameter needs a choice"));
    }
    let name = &input.ident;
    let names = variants.iter().map(|(name, _)| name);
    let arms = variants.iter().map(|(name, ident)| quote!(#name => Self::#ident,));
    Ok(quote! {
        impl #registry::ParameterChoice for #name {
            const NAMES: &'static [&'static str] = &[#(#names),*];

            fn named(name: &str) -> ::std::option::Option<Self> {
                ::std::option::Option::Some(match name {
                    #(#arms)*
                    _ => return ::std::option::Option::None,
                })
            }
        }
    })
}

/// Returns `BlackmanHarris` as `blackman_harris`.
fn in_small_letters(ident: &Ident) -> String {
    let mut name = String::new();
    for letter in ident.to_string().chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

/// What `#[block(...)]` says.
#[derive(Default)]
struct Said {
    name: String,
    effect: String,
    /// What is in the parentheses of the effect.
    of_effect: Option<Code>,
    items: Vec<Ident>,
    example: Option<Expr>,
    with: Option<syn::Type>,
}

const EFFECTS: [&str; 5] = ["pure", "paced", "reads", "writes", "live"];

impl Said {
    fn of(attribute: &Attribute) -> Result<Self, Error> {
        let mut said = Self::default();
        attribute.parse_nested_meta(|meta| said.add(&meta))?;
        if said.name.is_empty() || said.effect.is_empty() {
            return Err(Error::new(
                attribute.span(),
                "expected `#[block(NAME, EFFECT)]`: the name in graph files, and what the block \
                 does outside of the graph: `pure`, `paced`, `reads`, `writes` or `live`",
            ));
        }
        Ok(said)
    }

    fn add(&mut self, meta: &ParseNestedMeta<'_>) -> Result<(), Error> {
        let word = meta.path.require_ident()?.to_string();
        match word.as_str() {
            "example" => self.example = Some(meta.value()?.parse()?),
            "with" => self.with = Some(meta.value()?.parse()?),
            "items" => meta.parse_nested_meta(|item| {
                self.items.push(item.path.require_ident()?.clone());
                Ok(())
            })?,
            effect if EFFECTS.contains(&effect) && !self.name.is_empty() => {
                self.effect = word;
                if meta.input.peek(syn::token::Paren) {
                    let content;
                    syn::parenthesized!(content in meta.input);
                    self.of_effect = Some(content.parse()?);
                }
            }
            _ if self.name.is_empty() => self.name = word,
            _ => {
                return Err(meta.error(
                    "expected the name, an effect (`pure`, `paced`, `reads`, `writes`, `live`), \
                     `items(...)`, `example = ...` or `with = ...`",
                ));
            }
        }
        Ok(())
    }
}

/// Returns the code that declares a type of block.
fn block_type(input: &DeriveInput, attribute: &Attribute, flow: &Code) -> Result<Code, Error> {
    let said = Said::of(attribute)?;
    let (parameters, name, summary) = (&input.ident, &said.name, documentation(&input.attrs));
    if summary.is_empty() {
        return Err(Error::new(
            parameters.span(),
            "a type of block needs a doc comment: a sentence that says what its blocks do",
        ));
    }
    let items = (!said.items.is_empty()).then(|| {
        let names = said.items.iter().map(ToString::to_string);
        quote!(.items(&[#(#names),*]))
    });
    let example = said.example.as_ref().map(|example| quote!(.example(#example)));
    let shared = said.with.as_ref().map(|with| quote!(let with: #with = registry.shared();));
    let again = said.with.as_ref().map(|_| quote!(let with = with.clone();));
    let argument = said.with.as_ref().map(|_| quote!(&with));
    let make = |function: &str| {
        let function = Ident::new(function, parameters.span());
        said.factory(flow, parameters, |item| {
            let generic = item.map(|item| quote!(::<#item>));
            quote!(parameters.#function #generic (#argument))
        })
    };
    let (makes, of_effect) = (make("make")?, &said.of_effect);
    let is_discarded = of_effect.as_ref().is_some_and(|code| code.to_string() == "discard");
    let completed = match said.effect.as_str() {
        "reads" => quote!(.reads(&[#of_effect], #makes)),
        "writes" if is_discarded => {
            let discard = said.factory(flow, parameters, |item| {
                let item = item.map(|item| quote!(::<#item>));
                quote!({
                    let _ = parameters;
                    #flow::blocks::NullSink #item ::new()
                })
            })?;
            quote!(.writes(#discard, #makes))
        }
        effect => {
            let completes = Ident::new(effect, parameters.span());
            let stand_in = match effect {
                "writes" | "live" => {
                    let rehearse = make("rehearse")?;
                    Some(quote!({ #again #rehearse },))
                }
                _ => None,
            };
            quote!(.#completes(#stand_in #makes))
        }
    };
    Ok(quote! {
        const _: () = {
            fn block_type(registry: &mut #flow::Registry) -> #flow::BlockType {
                let _ = &registry;
                #shared
                #flow::BlockType::declare::<#parameters>(#name, #summary)
                    #items
                    #example
                    #completed
            }

            #flow::registry::submit! {
                #flow::registry::DeclaredType {
                    module: ::std::module_path!(),
                    make: block_type,
                }
            }
        };
    })
}

impl Said {
    /// Returns the closure that makes a block; `call` makes it of `parameters` for a type of items.
    fn factory(
        &self,
        flow: &Code,
        parameters: &Ident,
        call: impl Fn(Option<&Code>) -> Code,
    ) -> Result<Code, Error> {
        let boxed = |code: Code| quote!(#flow::registry::MadeBlock::boxed(#code));
        let made = if self.items.is_empty() {
            boxed(call(None))
        } else {
            let mut arms = Vec::new();
            for item in &self.items {
                let name = item.to_string();
                let made = boxed(call(Some(&item_type(item, flow)?)));
                arms.push(quote!(#name => #made,));
            }
            let name = &self.name;
            quote! {
                match values.item() {
                    #(#arms)*
                    other => ::std::unreachable!("{} has no items {}", #name, other),
                }
            }
        };
        Ok(quote! {
            move |values: &#flow::registry::ParameterValues| {
                let parameters = values.read::<#parameters>()?;
                #made
            }
        })
    }
}

/// Returns the type of a name of items.
fn item_type(item: &Ident, flow: &Code) -> Result<Code, Error> {
    Ok(match item.to_string().as_str() {
        "sc16" => quote!([i16; 2]),
        "cf32" => quote!(#flow::Complex<f32>),
        "u8" | "i8" | "i16" | "f32" => quote!(#item),
        _ => return Err(Error::new(item.span(), "expected u8, i8, i16, sc16, f32 or cf32")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn code(input: &DeriveInput) -> String {
        match expand(input, &quote!(::flow)) {
            Ok(code) => code.to_string().split_whitespace().collect(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_field_says_its_parameter_once() {
        let made = code(&parse_quote! {
            struct Filter {
                /// sample rate,
                /// Hz
                #[parameter(default = -1, above = 0, most = MOST, incidental)]
                rate_hz: f64,
                #[parameter(flatten)]
                taps: Taps,
            }
        });
        let declared = "Parameter::new(\"rate_hz\",\"samplerate,Hz\").within(\
                        ::flow::registry::ParameterRange::new(\
                        ::std::ops::Bound::Excluded((0)asf64),\
                        ::std::ops::Bound::Included((MOST)asf64))).with_default(\
                        ::flow::registry::ParameterValue::Integer(-1)).incidental(),declared,);";
        assert!(made.contains(declared), "{made}");
        assert!(made.contains("rate_hz:values.field::<f64>(\"rate_hz\")?,"), "{made}");
        assert!(made.contains("<Tapsas::flow::registry::BlockParameters>::declare(declared);"));
        assert!(!made.contains("submit"), "a group is no type of block: {made}");
    }

    #[test]
    fn a_type_of_block_is_made_for_each_type_of_items_and_submitted() {
        let made = code(&parse_quote! {
            /// Passes items on.
            #[block(again, live, items(cf32, u8), with = Handle, example = "n = 1")]
            struct Again {}
        });
        for part in [
            "BlockType::declare::<Again>(\"again\",\"Passesitemson.\").items(&[\"cf32\",\"u8\"])\
             .example(\"n=1\").live(",
            "\"u8\"=>::flow::registry::MadeBlock::boxed(parameters.rehearse::<u8>(&with)),",
            "boxed(parameters.make::<::flow::Complex<f32>>(&with)),",
            "letwith:Handle=registry.shared();",
            "::flow::registry::submit!{",
        ] {
            assert!(made.contains(part), "{part} in {made}");
        }
    }

    #[test]
    fn variants_are_choices_in_small_letters() {
        let made = code(&parse_quote! {
            enum Window { BlackmanHarris, #[parameter("none")] Rectangular }
        });
        assert!(made.contains("&[\"blackman_harris\",\"none\"]"), "{made}");
        assert!(made.contains("\"none\"=>Self::Rectangular,"), "{made}");
    }

    #[test]
    fn what_is_incomplete_does_not_compile() {
        for (input, expected) in [
            (parse_quote! { struct A { n: u32 } }, "a parameter needs a doc comment"),
            (parse_quote! { struct A(u32); }, "a parameter needs a field with a name"),
            (parse_quote! { #[block(a, pure)] struct A {} }, "a type of block needs a doc comment"),
            (parse_quote! { #[block(a)] #[doc = "B."] struct A {} }, "expected `#[block(NAME, EFF"),
            (parse_quote! { #[block(a, clean)] #[doc = "B."] struct A {} }, "an effect (`pure`"),
            (
                parse_quote! { #[block(a, pure, items(f64))] #[doc = "B."] struct A {} },
                "expected u8, i8, i16, sc16, f32 or cf32",
            ),
            (parse_quote! { struct A { #[parameter(max = 3)] n: u32 } }, "expected `default`"),
            (parse_quote! { enum A { One(u32) } }, "a choice has no data"),
            (parse_quote! { enum A {} }, "a parameter needs a choice"),
        ] {
            let error = code(&input);
            assert!(error.contains(expected), "{error}");
        }
    }
}
