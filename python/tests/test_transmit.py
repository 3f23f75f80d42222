"""Transmit streams: what the emulated radio played is compared with what was sent."""

import numpy as np
import pytest

import millstream


@pytest.fixture
def played(tmp_path):
    """A function that transmits with a function of the radio, and returns what was played."""

    def play(send):
        file = tmp_path / "sent.sc16"
        with millstream.EmulatedRadio(
            device="e320-radio", clock_rate=1e6, transmit_files=[file]
        ) as emulated:
            with millstream.Radio(emulated.args) as radio:
                radio.set_rate(1e6)
                ledger = send(radio)
        counted = emulated.counters()["tx_samples"]
        return ledger, np.fromfile(file, "<i2").reshape(-1, 2), counted

    return play


def test_a_burst_is_played_sample_by_sample(played):
    rng = np.random.default_rng(7)
    wave = rng.integers(-32767, 32768, (30_000, 2), np.int16)

    def send(radio):
        with radio.transmit(format="sc16") as stream:
            assert stream.send(wave[:10_000]) == 10_000
            assert stream.send(wave[10_000:], end=True) == 20_000
            event = stream.next_event(5.0)
            assert event is not None and event.kind == "burst_end" and event.time_ns > 0
            assert stream.next_event(0.0) is None and list(stream.events()) == []
        return stream.ledger

    ledger, got, counted = played(send)
    ledger.check()
    assert ledger.accepted == ledger.transmitted == counted == 30_000
    assert (ledger.lost, ledger.lost_total, ledger.unknown, ledger.in_flight) == ({}, 0, 0, 0)
    assert np.array_equal(got[-30_000:], wave)


def test_floats_are_scaled_and_bursts_have_their_time(played):
    tone = (0.5 * np.exp(2j * np.pi * 0.01 * np.arange(5000))).astype(np.complex64)

    def send(radio):
        at_ns = radio.time_ns() + 200_000_000
        with radio.transmit() as stream:
            assert stream.rate == 1e6 and stream.samples_per_send > 0
            stream.send(tone, at_ns=at_ns, end=True)
            event = stream.next_event(5.0)
            assert abs(event.time_ns - (at_ns + 5_000_000)) <= 2000
            stream.send(tone, at_ns=1, end=True)
            assert stream.next_event(5.0).kind == "late"
        return stream.ledger

    ledger, got, _ = played(send)
    ledger.check()
    assert ledger.accepted == 10_000 and ledger.lost.get("late", 0) == 5000
    level = np.hypot(*got[-5000:].T.astype(float)).mean()
    assert abs(level - 0.5 * 32767) < 1


def test_two_channels_and_wrong_arrays(radio):
    with radio.transmit([0, 1]) as stream:
        both = np.zeros((2, 1000), np.complex64)
        both.flags.writeable = False
        assert stream.send(both, end=True) == 1000
        for array, error in [
            (np.zeros(1000, np.complex64), ValueError),
            (np.zeros((2, 1000), np.complex128), TypeError),
            (np.zeros((2, 2000), np.complex64)[:, ::2], ValueError),
            ([1, 2, 3], TypeError),
        ]:
            with pytest.raises(error):
                stream.send(array)
        assert len(stream.ledgers) == 2
    with pytest.raises(millstream.ClosedError):
        stream.send(both)
    stream.close()


def test_a_full_radio_times_out(radio):
    """A burst in an hour: the radio's buffer fills."""
    stream = radio.transmit()
    at_ns = radio.time_ns() + 3_600_000_000_000
    with pytest.raises(TimeoutError, match="took no sample"):
        while True:
            stream.send(np.zeros(1_000_000, np.complex64), at_ns=at_ns, timeout=0.3)
            at_ns = None
    radio.close()
