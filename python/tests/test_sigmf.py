"""SigMF: recordings with gaps, read as views, and the same by SigMF's own package."""

import json
import tarfile

import numpy as np
import pytest
from conftest import check_run

import millstream


@pytest.fixture
def recording(emulated, radio, tmp_path):
    """A recording of 50 000 samples with gaps of 100."""
    emulated.add_fault("lose to_host data every=100")
    # Small packets: the recording method takes those of the network, so the stream is opened here.
    from millstream.sigmf import record

    with radio.receive(samples=50_000, format="sc16", samples_per_packet=100) as stream:
        made = record(stream, tmp_path / "gaps.sigmf-meta", frequency=1e9, hardware="e320")
        lost = stream.ledger.lost_total
    return made, lost


def test_gaps_are_segments(recording):
    made, lost = recording
    assert lost >= 400 and len(made) == 50_000 - lost
    assert (made.rate, made.frequency, made.datatype) == (1e6, 1e9, "ci16_le")
    segments = made.segments
    assert len(segments) >= 5 and sum(len(one) for one in segments) == len(made)
    assert segments[0].missing == 0
    assert sum(one.missing for one in segments) <= lost
    for one in segments:
        check_run(one.samples, one.global_index)
    for one in segments[1:]:
        assert one.missing == 100
        assert one.annotations == ("sequence: 100 samples missing before this one",)


def test_samples_are_views_of_the_file(recording):
    made, _ = recording
    assert isinstance(made.samples, np.memmap) and made.samples.base is not None
    segment = made.segments[1]
    assert np.shares_memory(segment.samples, segment.samples[:10])
    floats = segment.complex64()
    assert floats.dtype == np.complex64 and len(floats) == len(segment)
    assert np.allclose(floats.real * 32767, segment.samples[:, 0], atol=0.01)
    assert np.array_equal(made.complex64(10, 5), made.complex64()[10:15])
    assert "ci16_le" in repr(made)


def test_sigmfs_own_package_reads_ours(recording):
    sigmf = pytest.importorskip("sigmf")
    made, _ = recording
    theirs = sigmf.fromfile(str(made.path))
    theirs.validate()
    assert len(theirs) == len(made) and theirs.sample_rate == made.rate
    samples = theirs.read_samples(0, 1000)
    # Its scale is 1/32768.
    assert np.allclose(samples, made.complex64(0, 1000), atol=1e-4)
    starts = [capture["core:sample_start"] for capture in theirs.get_captures()]
    assert starts == [one.first for one in made.segments]


def test_we_read_what_sigmfs_own_package_wrote(tmp_path):
    sigmf = pytest.importorskip("sigmf")
    rng = np.random.default_rng(1)
    samples = (rng.normal(size=3000) + 1j * rng.normal(size=3000)).astype(np.complex64)
    samples.tofile(tmp_path / "theirs.sigmf-data")
    written = sigmf.SigMFFile(
        data_file=str(tmp_path / "theirs.sigmf-data"),
        global_info={"core:datatype": "cf32_le", "core:sample_rate": 2e6, "core:version": "1.0.0"},
    )
    written.add_capture(0, metadata={"core:frequency": 5e6})
    written.tofile(str(tmp_path / "theirs.sigmf-meta"))
    written.archive(str(tmp_path / "theirs.sigmf"))
    for name in ("theirs.sigmf-meta", "theirs.sigmf-data", "theirs.sigmf"):
        ours = millstream.open_recording(tmp_path / name)
        assert np.array_equal(ours.samples, samples)
        assert (ours.rate, ours.frequency, len(ours.segments)) == (2e6, 5e6, 1)
        segment = ours.segments[0]
        assert np.shares_memory(segment.complex64(), segment.samples)


@pytest.mark.parametrize(
    ("datatype", "kind", "value"),
    [("ci8", "i1", 1.0), ("cu8", "u1", 1.0), ("ci16_be", ">i2", 1.0), ("cf64_le", "<c16", 1.0)],
)
def test_other_types(tmp_path, datatype, kind, value):
    dtype = np.dtype(kind)
    full = {"i1": 127, "u1": 255, ">i2": 32767, "<c16": 1 + 1j}[kind]
    data = np.full((100, 2) if dtype.kind != "c" else 100, full, dtype)
    data.tofile(tmp_path / "one.sigmf-data")
    meta = {"global": {"core:datatype": datatype}, "captures": [], "annotations": []}
    (tmp_path / "one.sigmf-meta").write_text(json.dumps(meta), encoding="utf-8")
    found = millstream.open_recording(tmp_path / "one.sigmf-meta")
    assert len(found) == 100 and found.rate is None and found.frequency is None
    assert np.allclose(found.complex64(), value * (1 + 1j), atol=1e-6)


def test_wrong_recordings_say_what_is_wrong(tmp_path):
    meta, data = tmp_path / "bad.sigmf-meta", tmp_path / "bad.sigmf-data"
    good = {"global": {"core:datatype": "ci16_le"}, "captures": [{"core:sample_start": 0}]}
    data.write_bytes(b"\0" * 400)
    for text, what in [
        ("{", "not valid SigMF"),
        ("[]", "no 'global'"),
        (json.dumps(good | {"global": {"core:datatype": "rf32"}}), "'rf32'; readable are"),
        (json.dumps(good | {"captures": [{"core:sample_start": -1}]}), "core:sample_start=-1"),
        (json.dumps(good | {"captures": [{"core:sample_start": 101}]}), "truncated"),
        (json.dumps(good | {"captures": 3}), "no 'captures'"),
    ]:
        meta.write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=what):
            millstream.open_recording(meta).segments
    meta.write_text(json.dumps(good), encoding="utf-8")
    for size in (0, 401):
        data.write_bytes(b"\0" * size)
        with pytest.raises(ValueError, match="empty or not complete"):
            millstream.open_recording(meta)
    with pytest.raises(ValueError, match="give a .sigmf-meta"):
        millstream.open_recording("some.wav")
    with pytest.raises(FileNotFoundError):
        millstream.open_recording(tmp_path / "none.sigmf-meta")
    with tarfile.open(tmp_path / "empty.sigmf", "w"):
        pass
    with pytest.raises(ValueError, match="no SigMF archive"):
        millstream.open_recording(tmp_path / "empty.sigmf")


def test_a_radio_records(radio, tmp_path):
    made = radio.record(tmp_path / "plain.sigmf-meta", 20_000, description="a ramp")
    assert len(made) == 20_000 and len(made.segments) == 1
    assert made.metadata["global"]["core:description"] == "a ramp"
    assert made.metadata["global"]["core:hw"] == "e320"
    check_run(made.samples, made.segments[0].global_index)
    assert not list(tmp_path.glob("*.part"))
    with pytest.raises(ValueError, match="sigmf-meta"):
        radio.record(tmp_path / "plain.wav", 100)
