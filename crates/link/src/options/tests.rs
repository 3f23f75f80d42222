//! The description agrees with the reader.

use super::*;
use crate::LINKS;
use crate::{LinkError, Spec, options};

const PATH: Parsed<String> = Parsed {
    looks: "PATH",
    wants: "wants a path",
    read: |text| Some(text.to_owned()),
    write: String::clone,
};

options! {
    #[derive(Debug, Clone, PartialEq)]
    struct Sample {
        /// how
        /// it is done
        mode: u8 = 1, Words(&[("one", 1), ("two", 2)]);
        /// whether
        wake: bool = true, OnOff;
        /// how many
        buffers: Option<u32> = None, auto(number("buffers", 8..=64));
        /// how often
        times as "loop": u64 = 1, number("times", 0..=9);
        /// where
        path: Option<String> = None, maybe(PATH);
    }
}

fn text(text: &str) -> Result<Sample, LinkError> {
    Spec::parse(&format!("link:{text}")).and_then(|spec| spec.read())
}

#[test]
fn a_link_string_sets_options_and_leaves_others_at_their_default() {
    let said = text("mode=two,buffers=9,loop=3").unwrap();
    assert_eq!((said.mode, said.buffers, said.times, said.wake), (2, Some(9), 3, true));
    let said = text("buffers=auto,loop=0,path=7").unwrap();
    assert_eq!((said.buffers, said.times, said.path.as_deref()), (None, 0, Some("7")));
    assert_eq!(text("").unwrap(), Sample::default());
}

#[test]
fn values_of_toml_mean_what_a_link_string_says() {
    #[derive(serde::Deserialize)]
    struct File {
        value: Given,
    }
    for (toml, given) in [("false", "off"), ("true", "on"), ("9", "9"), ("\"on\"", "on")] {
        let file: File = toml::from_str(&format!("value = {toml}")).unwrap();
        assert_eq!(file.value, given.into(), "{toml}");
    }
}

#[test]
fn an_error_names_the_option_the_value_and_what_is_wanted() {
    for (option, reason) in [
        ("mode=three", "wants one of: one, two"),
        ("wake=maybe", "wants on or off"),
        ("buffers=7", "wants buffers from 8 to 64"),
        ("loop=-1", "wants times from 0 to 9"),
        ("warp=9", "is not known"),
    ] {
        let error = text(option).unwrap_err().to_string();
        assert_eq!(error, format!("link option \"{option}\": {reason}"));
    }
}

#[test]
fn what_is_written_reads_back_as_the_same() {
    for string in ["", "mode=two", "wake=off,buffers=8,loop=0,path=/a b", "mode=one,buffers=auto"] {
        let said = text(string).unwrap();
        let written = said.written().into_iter().map(|(name, value)| format!("{name}={value}"));
        assert_eq!(text(&written.collect::<Vec<_>>().join(",")).unwrap(), said, "{string}");
    }
    assert_eq!(text("mode=one,wake=on").unwrap().written(), [], "the defaults");
}

#[test]
fn a_description_says_values_default_and_meaning() {
    let help: Vec<_> = Sample::describe().iter().map(Opt::help).collect();
    assert_eq!(
        help,
        [
            "mode=one|two (how it is done; default one)",
            "wake=on|off (whether; default on)",
            "buffers=auto|8-64 (how many; default auto)",
            "loop=0-9 (how often; default 1)",
            "path=PATH (where)",
        ]
    );
    let described = Sample::describe();
    assert!(described.iter().map(|option| option.name).eq(Sample::NAMES.iter().copied()));
}

#[test]
fn a_slip_is_understood_and_another_word_is_not() {
    let names = ["mode", "buffers", "queues", "p"];
    let all = "known: mode, buffers, queues, p";
    for (wrong, meant) in [
        ("mod", Some("mode")),
        ("buffer", Some("buffers")),
        ("bufers", Some("buffers")),
        ("queue", Some("queues")),
        ("warp", None),
        ("x", None),
        ("", None),
    ] {
        let expected = meant.map_or(all.into(), |meant| format!("did you mean `{meant}`? {all}"));
        assert_eq!(names_for(wrong, &names, "known: "), expected, "{wrong}");
    }
}

#[test]
fn a_line_is_taken_part_by_part_and_nothing_is_left_unsaid() {
    let line = |text: &'static str| Line::of(text.split_whitespace()).unwrap();
    let mut all = line("one up mode=two loop=3");
    assert_eq!(all.word().as_deref(), Some("one"));
    assert_eq!(all.choice("way", &[("up", 1), ("down", 2)]), Ok(1));
    assert_eq!(all.take::<Sample>().unwrap().mode, 2);
    assert_eq!(all.finish(), Ok(()));
    let way = |text| {
        let error = line(text).choice("way", &[("up", 1), ("down", 2)]).unwrap_err();
        error.to_string()
    };
    assert_eq!(way(""), "`way` is missing; give one of up, down");
    assert_eq!(way("dwn"), "`dwn` is no way; did you mean `down`? give one of up, down");
    let mut placed = line("7 two");
    placed.name_words(&["loop", "mode"]).unwrap();
    assert_eq!(placed.take::<Sample>().unwrap().times, 7);
    let left = |text| {
        let mut line = line(text);
        line.take::<Sample>().and_then(|_| line.finish()).unwrap_err().to_string()
    };
    assert_eq!(left("up"), "`up` is not of the form name=value");
    assert_eq!(left("loop=1 loop=2"), "`loop=2` is given twice");
    let names = "the options here are mode, wake, buffers, loop, path";
    assert_eq!(left("wak=on"), format!("`wak=on` is not known; did you mean `wake`? {names}"));
    assert!(Line::of(["a=1", "b"]).is_err() && line("up").name_words(&[]).is_err());
}

/// Every described value of an option is accepted by its link, and another is refused with what is
/// wanted. A user who knows the option needs no list of all.
#[test]
fn the_options_of_every_link_are_what_they_are_described_as() {
    for entry in LINKS {
        let link = match entry.target {
            crate::entry::Target::None => format!("{}:", entry.name),
            crate::entry::Target::Device => format!("{}:memif0,", entry.name),
            _ => format!("{}:eth1,", entry.name),
        };
        if entry.takes_interface() {
            let error = crate::check_options(entry.name).unwrap_err().to_string();
            let write = format!("names no interface: write {}:INTERFACE", entry.name);
            assert!(error.contains(&write), "{error}");
        }
        for option in (entry.options)() {
            if !matches!(option.values, OptionValues::Text(_)) {
                let wrong = format!("{}=?", option.name);
                let error = crate::check_options(&format!("{link}{wrong}")).unwrap_err();
                let error = error.to_string();
                assert!(error.contains(&format!("\"{wrong}\": wants ")), "{error}");
                assert!(!error.contains("options of this link"), "{error}");
            }
            let mut values: Vec<String> = option.default.iter().cloned().collect();
            match &option.values {
                OptionValues::Switch => values.extend(["on".into(), "off".into()]),
                OptionValues::Words(words) => {
                    values.extend(words.iter().map(|word| (*word).into()))
                }
                OptionValues::Number { min, max, or, .. } => {
                    values.extend(or.map(str::to_owned));
                    // Some sizes between are refused (a power of two is required), the limits are
                    // not.
                    values.extend([min.to_string(), max.to_string()]);
                }
                OptionValues::Text(_) => {}
            }
            for value in values {
                let text = format!("{link}{}={value}", option.name);
                let understood = crate::check_options(&text);
                let alone = understood.as_ref().err().is_none_or(|error| {
                    let error = error.to_string();
                    error.contains("belong")
                });
                assert!(alone, "{text}: {understood:?}");
            }
            assert!(!option.about.is_empty() && !option.about.contains('\n'), "{}", option.name);
        }
    }
}
