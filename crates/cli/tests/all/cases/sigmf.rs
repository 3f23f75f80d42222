//! Recordings of other programs.

use super::{case, samples, shell};
use crate::common::millstream;
use serde_json::{Value, json};
use std::path::Path;

fn meta(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_copy_keeps_what_its_original_says() {
    let folder = case("sigmf-copy-gets-todays-date");
    let set = ["--set", "in=rec.sigmf-meta", "--set", "out=copy.sigmf-meta"];
    millstream(folder.path(), &[&["run", "copy.toml"][..], &set].concat()).succeeds();
    let (was, is) = (folder.path().join("rec.sigmf-meta"), folder.path().join("copy.sigmf-meta"));
    let (was, is) = (meta(&was), meta(&is));
    for key in ["core:author", "core:description", "core:sample_rate"] {
        assert_eq!(is["global"][key], was["global"][key], "{key} of {is}");
    }
    assert_eq!(is["captures"].as_array().unwrap().len(), 2, "{is}");
    for (is, was) in [0, 1].map(|n| (&is["captures"][n], &was["captures"][n])) {
        for key in ["core:sample_start", "core:frequency"] {
            assert_eq!(is[key].as_f64(), was[key].as_f64(), "{key} of {is}");
        }
        let time = |capture: &Value| {
            let text = capture["core:datetime"].as_str().unwrap();
            humantime::parse_rfc3339(text).unwrap()
        };
        assert_eq!(time(is), time(was), "{is}");
    }
    assert_eq!(is["annotations"].as_array().unwrap().len(), 1, "{is}");
    for (key, value) in was["annotations"][0].as_object().unwrap() {
        let same = is["annotations"][0][key] == *value
            || is["annotations"][0][key].as_f64().is_some_and(|f| Some(f) == value.as_f64());
        assert!(same, "{key} of {is}");
    }
}

#[test]
fn bytes_behind_the_samples_are_no_samples() {
    let folder = case("trailing-bytes-are-samples");
    assert_eq!(samples(folder.path(), "rec.sigmf-meta"), 10);
}

#[test]
fn the_field_dataset_names_the_data_or_is_refused_by_name() {
    let folder = case("dataset-field-ignored");
    let outcome = millstream(folder.path(), &["inspect", "rec.sigmf-meta", "--json"]);
    match outcome.status {
        Some(0) => assert_eq!(outcome.json()["results"]["samples"], json!(10)),
        _ => assert!(outcome.stderr.contains("core:dataset"), "{outcome:?}"),
    }
    millstream(folder.path(), &["inspect", "meta.sigmf-meta"]).fails(1, "core:metadata_only");
}

#[test]
fn whole_numbers_may_have_a_decimal_point() {
    let folder = case("integral-float-sample-start");
    let outcome = millstream(folder.path(), &["inspect", "rec.sigmf-meta", "--json"]);
    let results = outcome.succeeds().json()["results"].take();
    assert_eq!(results["samples"], 10, "{results}");
    assert_eq!(
        results["sigmf"]["metadata"]["captures"].as_array().map(Vec::len),
        Some(2),
        "{results}"
    );
}

#[test]
fn null_is_absent() {
    let folder = case("sigmf-null-fields");
    assert_eq!(samples(folder.path(), "header.sigmf-meta"), 10);
    assert_eq!(samples(folder.path(), "channels.sigmf-meta"), 10);
}

#[test]
fn a_rate_of_zero_or_less_is_no_rate() {
    let folder = case("sigmf-rate-zero-or-negative");
    for name in ["zero.sigmf-meta", "minus.sigmf-meta"] {
        let outcome = millstream(folder.path(), &["inspect", name]);
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(!said.contains("inf ") && !said.contains("-0.0"), "{outcome:?}");
        let told = said.contains("core:sample_rate") || said.contains("rate is not known");
        assert!(told, "{outcome:?}");
    }
}

#[test]
fn an_archive_is_named_and_no_hint_leads_to_its_bytes() {
    let folder = case("integral-float-sample-start");
    let archive = "mkdir rec && mv rec.sigmf-* rec && tar cf rec.sigmf rec/*";
    let outcome = shell(folder.path(), &format!("{archive} && $M inspect rec.sigmf"));
    if outcome.status == Some(0) {
        return assert!(outcome.stdout.contains("10 samples"), "{outcome:?}");
    }
    outcome.fails(1, "archive");
    assert!(!outcome.stderr.contains("--format sc16"), "{outcome:?}");
}
