"""Scripts of tutorials, which run with one changed import."""

import numpy as np
import pytest
from conftest import RATE, check_run

import millstream.uhd_compat as uhd


@pytest.fixture
def usrp(monkeypatch):
    """The radio of a script without an address, and an E320 with the default scene."""
    monkeypatch.setenv("MILLSTREAM_RADIO", "radio=emulated")
    opened = uhd.usrp.MultiUSRP("num_recv_frames=1000")
    yield opened
    opened.close()


@pytest.fixture
def ramp(emulated):
    """A radio whose samples name their tick."""
    opened = uhd.usrp.MultiUSRP(emulated.args)
    opened.set_rx_rate(RATE)
    yield opened
    opened.close()


def level_at(samples, rate, frequency):
    """The level of a tone in dB of full scale."""
    window = np.hanning(len(samples))
    tone = np.exp(-2j * np.pi * frequency / rate * np.arange(len(samples)))
    return 20 * np.log10(np.abs((samples * window * tone).sum()) / window.sum())


def test_recv_num_samps(usrp):
    samples = usrp.recv_num_samps(10000, 1e9 - 100e3, 1e6, [0], 40)
    assert samples.shape == (1, 10000) and samples.dtype == np.complex64
    # The carrier at 1 GHz has -50 dBm; the first samples are those of the filter.
    assert abs(level_at(samples[0][1000:], 1e6, 100e3) + 10) < 1
    two = usrp.recv_num_samps(5000, 1e9 - 100e3, 1e6, [0, 1], 40)
    assert two.shape == (2, 5000)


def test_the_long_receive_script(usrp):
    """Setting by setting, then a loop of recv, as tutorials do it."""
    num_samps, center_freq, sample_rate, gain = 10000, 1e9 - 100e3, 1e6, 40
    usrp.set_rx_rate(sample_rate, 0)
    usrp.set_rx_freq(uhd.libpyuhd.types.tune_request(center_freq), 0)
    usrp.set_rx_gain(gain, 0)

    st_args = uhd.usrp.StreamArgs("fc32", "sc16")
    st_args.channels = [0]
    metadata = uhd.types.RXMetadata()
    streamer = usrp.get_rx_stream(st_args)
    recv_buffer = np.zeros((1, 1000), dtype=np.complex64)

    stream_cmd = uhd.types.StreamCMD(uhd.types.StreamMode.start_cont)
    stream_cmd.stream_now = True
    streamer.issue_stream_cmd(stream_cmd)

    samples = np.zeros(num_samps, dtype=np.complex64)
    for i in range(num_samps // 1000):
        assert streamer.recv(recv_buffer, metadata, 3.0) == 1000
        assert metadata.error_code == uhd.types.RXMetadataErrorCode.none
        samples[i * 1000 : (i + 1) * 1000] = recv_buffer[0]

    stream_cmd = uhd.types.StreamCMD(uhd.types.StreamMode.stop_cont)
    streamer.issue_stream_cmd(stream_cmd)
    assert abs(level_at(samples[1000:], 1e6, 100e3) + 10) < 1
    assert streamer.recv(recv_buffer, metadata) == 0
    assert metadata.error_code == uhd.types.RXMetadataErrorCode.timeout
    assert 1000 < streamer.get_max_num_samps() <= 65536


def test_a_timed_reception_begins_at_its_time(ramp):
    streamer = ramp.get_rx_stream(uhd.usrp.StreamArgs("fc64", "sc16"))
    ramp.set_time_now(uhd.libpyuhd.types.time_spec(0.0))
    command = uhd.types.StreamCMD(uhd.types.StreamMode.num_done)
    command.num_samps, command.stream_now = 5000, False
    command.time_spec = uhd.types.TimeSpec(0.5)
    streamer.issue_stream_cmd(command)
    samples, metadata = np.zeros((1, 6000), np.complex128), uhd.types.RXMetadata()
    assert streamer.recv(samples, metadata, 5.0) == 5000
    assert metadata.has_time_spec and metadata.time_spec == uhd.types.TimeSpec(0.5)
    assert metadata.end_of_burst
    check_run(samples[0, :5000].astype(np.complex64), 500_000)
    command.time_spec = uhd.types.TimeSpec(0.1)
    streamer.issue_stream_cmd(command)
    assert streamer.recv(samples, metadata, 5.0) == 0
    assert metadata.error_code == uhd.types.RXMetadataErrorCode.late
    assert "after its time" in metadata.strerror()


def test_a_gap_is_an_overflow_with_its_time(ramp, emulated):
    emulated.add_fault("lose to_host data every=20")
    streamer = ramp.get_rx_stream(uhd.usrp.StreamArgs())
    command = uhd.types.StreamCMD(uhd.types.StreamMode.num_done)
    command.num_samps = 200_000
    streamer.issue_stream_cmd(command)
    samples, metadata = np.zeros((1, 10_000), np.complex64), uhd.types.RXMetadata()
    gaps, due, total = 0, None, 0
    while True:
        count = streamer.recv(samples, metadata, 3.0)
        time = metadata.time_spec.to_ticks(RATE)
        if metadata.error_code == uhd.types.RXMetadataErrorCode.overflow:
            assert count == 0 and metadata.out_of_sequence
            assert "lost packets" in metadata.strerror()
            total += metadata.missing_samples
            gaps, due = gaps + 1, time
            continue
        if count == 0:
            break
        assert due is None or time == due
        check_run(samples[0, :count], time)
        due, total = time + count, total + count
    assert gaps > 2 and total == 200_000


def test_send_waveform(usrp, capsys):
    samples = 0.1 * np.random.randn(10000) + 0.1j * np.random.randn(10000)
    assert usrp.send_waveform(samples, 0.25, 915e6, 1e6, [0], 20) == 250_000


def test_bursts_are_acknowledged(usrp):
    usrp.set_tx_rate(1e6)
    streamer = usrp.get_tx_stream(uhd.usrp.StreamArgs("fc32", "sc16"))
    metadata = uhd.types.TXMetadata()
    metadata.start_of_burst, metadata.end_of_burst, metadata.has_time_spec = True, True, True
    start = usrp.get_time_now() + uhd.types.TimeSpec(0.2)
    metadata.time_spec = start
    assert streamer.send(np.zeros((1, 5000), np.complex64), metadata, 3.0) == 5000
    event = uhd.types.TXAsyncMetadata()
    assert streamer.recv_async_msg(event, 3.0)
    assert event.event_code == uhd.types.TXMetadataEventCode.burst_ack
    assert abs((event.time_spec - start).get_real_secs() - 5e-3) < 1e-4
    assert not streamer.recv_async_msg(event, 0.0)


def test_settings_round_trip(usrp):
    result = usrp.set_rx_freq(uhd.types.TuneRequest(1e9, 3e6))
    assert abs(result.actual_rf_freq - 1.003e9) < 100 and abs(usrp.get_rx_freq() - 1e9) < 100
    assert abs(result.actual_rf_freq - result.actual_dsp_freq - 1e9) < 100
    usrp.set_rx_gain(30, 0)
    usrp.set_rx_gain(30, "PGA", 0)
    assert usrp.get_rx_gain() == 30
    usrp.set_rx_gain(99, 0)
    assert usrp.get_rx_gain() == 76, "clipped, as by UHD"
    usrp.set_normalized_rx_gain(0.5)
    assert usrp.get_rx_gain() == 38 and usrp.get_rx_gain_range().stop() == 76
    usrp.set_rx_agc(True, 0)
    usrp.set_rx_antenna("TX/RX", 0)
    assert usrp.get_rx_antenna() == "TX/RX" and usrp.get_rx_antennas() == ["RX2", "TX/RX"]
    usrp.set_rx_bandwidth(2e6)
    assert usrp.get_rx_bandwidth() == 2e6
    usrp.set_tx_freq(uhd.types.TuneRequest(2e9))
    usrp.set_tx_gain(10)
    usrp.set_tx_rate(2e6)
    assert (usrp.get_tx_gain(), usrp.get_tx_rate()) == (10, 2e6)
    usrp.set_clock_source("internal")
    usrp.set_time_source("internal")
    assert (usrp.get_clock_source(), usrp.get_time_source()) == ("internal", "internal")
    assert usrp.get_mboard_name() == "e320" and usrp.get_num_mboards() == 1
    assert "2 receive" in usrp.get_pp_string()
    assert usrp.get_usrp_rx_info()["rx_antenna"] == "TX/RX"
    assert usrp.get_rx_sensor("lo_locked").to_bool()
    usrp.set_rx_subdev_spec("A:0 A:1")


def test_time_at_a_pps_edge(usrp):
    usrp.set_time_unknown_pps(uhd.types.TimeSpec(100.0))
    now = usrp.get_time_now().get_real_secs()
    assert 100 < now < 103
    assert usrp.get_time_last_pps().get_real_secs() == pytest.approx(round(now - 0.5), abs=1e-3)


def test_what_is_not_supported_says_so(usrp):
    for call, text in [
        (lambda: usrp.set_rx_subdev_spec("B:0"), "name the channel instead"),
        (lambda: usrp.get_rx_stream(uhd.usrp.StreamArgs("sc8", "sc16")), "fc32"),
        (lambda: usrp.get_rx_stream(uhd.usrp.StreamArgs("fc32", "sc8")), "sc16"),
    ]:
        with pytest.raises((NotImplementedError, RuntimeError), match=text):
            call()
    streamer = usrp.get_rx_stream(uhd.usrp.StreamArgs())
    with pytest.raises(TypeError, match="complex128"):
        streamer.recv(np.zeros((1, 10), np.complex128), uhd.types.RXMetadata())
    with pytest.raises(NotImplementedError, match="num_done"):
        streamer.issue_stream_cmd(uhd.types.StreamCMD(uhd.types.StreamMode.num_more))


def test_times_are_exact():
    spec = uhd.types.TimeSpec
    assert spec(1.75).get_full_secs() == 1 and spec(1.75).get_frac_secs() == 0.75
    assert spec(-0.25) == spec(-1, 0.75) and spec(1) < spec(1, 0.5) and spec(2) >= spec(1, 1.0)
    assert (spec(3, 0.5) - spec(1, 0.75)).get_real_secs() == 1.75
    assert spec.from_ticks(10**15 + 7, 61.44e6).to_ticks(61.44e6) == 10**15 + 7
    assert spec.from_ns(1_700_000_000_123_456_789).to_ns() == 1_700_000_000_123_456_789
    assert len({spec(1), spec(1.0), spec(2)}) == 2 and "1.5" in repr(spec(1.5))
