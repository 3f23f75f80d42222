//! The fields of SigMF metadata are read as the standard says, or refused in words that fit.

use crate::sigmf_truth::write;
use millstream_blocks::sigmf::SigmfRecording;
use serde_json::{Value, json};

fn opened(global: &Value, captures: &Value, bytes: usize) -> Result<SigmfRecording, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.sigmf-meta");
    let mut all = json!({ "core:datatype": "ci16_le" });
    all.as_object_mut().unwrap().extend(global.as_object().unwrap().clone());
    write(&path, &json!({ "global": all, "captures": captures, "annotations": null }), bytes);
    std::fs::write(folder.path().join("other.raw"), [0; 40]).unwrap();
    SigmfRecording::open(&path, None).map_err(|error| error.to_string())
}

#[test]
fn fields_are_read_as_the_standard_says() {
    let samples =
        |global: Value, captures: Value, bytes| opened(&global, &captures, bytes).unwrap().samples;
    assert_eq!(samples(json!({ "core:trailing_bytes": 8 }), json!([]), 48), 10);
    assert_eq!(samples(json!({ "core:trailing_bytes": 3.0 }), json!([]), 43), 10);
    assert_eq!(samples(json!({ "core:dataset": "other.raw" }), json!([]), 8), 10);
    // A null is absent, in every field that is read.
    let keys =
        ["sample_rate", "num_channels", "trailing_bytes", "dataset", "metadata_only", "extensions"];
    let nulls: Value = keys.iter().map(|key| (format!("core:{key}"), Value::Null)).collect();
    let nothing = json!([{ "core:sample_start": 0, "core:header_bytes": null,
        "core:global_index": null, "core:frequency": null, "core:datetime": null }]);
    assert_eq!(samples(nulls, nothing, 40), 10);
    let floats = json!([{ "core:sample_start": 0.0 }, { "core:sample_start": 5e0 }]);
    assert_eq!(opened(&json!({}), &floats, 40).unwrap().captures.len(), 2);
    let refused = |global: Value, captures: Value, part: &str| {
        let error = opened(&global, &captures, 40).unwrap_err();
        assert!(error.contains(part), "{error}");
    };
    for (value, part) in [
        (json!(-5), "core:sample_start is -5, but a whole number from 0 on is expected"),
        (json!(10.5), "core:sample_start is 10.5, but a whole number"),
        (json!("7"), "core:sample_start is \"7\", but a whole number"),
    ] {
        refused(json!({}), json!([{ "core:sample_start": value }]), part);
    }
    for (global, part) in [
        (json!({ "core:sample_rate": 0 }), "core:sample_rate is 0, but more than 0 is expected"),
        (json!({ "core:sample_rate": -1e6 }), "core:sample_rate is -1000000, but more than 0"),
        (json!({ "core:sample_rate": "1000000" }), "is \"1000000\", but a number is expected"),
        (json!({ "core:trailing_bytes": 50 }), "core:trailing_bytes is 50, but the file has 40"),
        (json!({ "core:metadata_only": true }), "core:metadata_only is true"),
        (json!({ "core:dataset": "../x" }), "a file in the same folder"),
        (json!({ "core:dataset": "no.raw" }), "no.raw: No such file"),
        (json!({ "core:num_channels": 2 }), "several channels"),
        (
            json!({ "core:extensions": [{ "name": "capture_details", "optional": false }] }),
            "it needs the SigMF extension capture_details",
        ),
    ] {
        refused(global, json!([]), part);
    }
    refused(json!({}), json!([{ "core:sample_start": 0, "core:header_bytes": 8 }]), "a header");
    let named = |name: &str| SigmfRecording::open(name.as_ref(), None).unwrap_err().to_string();
    assert!(named("x.sigmf").contains("it is a SigMF archive: extract it first"));
    assert!(named("x.sigmf-collection").contains("collection"));
}
