"""Opening, settings, time, and the emulated radio."""

import gc
import os
import threading

import numpy as np
import pytest

import millstream


@pytest.fixture(scope="module")
def stock():
    """An emulated E320 with its stock image, whose antennas hear the default scene."""
    with millstream.Radio("radio=emulated") as opened:
        opened.set_rate(1e6)
        yield opened


def peak(radio, channel=0):
    """The frequency and level of the strongest signal."""
    frequencies, levels = radio.spectrum(1 << 14, channel)
    at = levels.argmax()
    return frequencies[at], levels[at]


def test_five_lines_from_nothing_to_samples():
    with millstream.Radio("radio=emulated") as radio:
        radio.set_rate(1e6)
        with radio.receive() as stream:
            samples = stream.read(10_000).samples
    assert samples.shape == (10_000,) and samples.dtype == np.complex64


def test_a_radio_says_what_it_is(stock):
    assert stock.info["product"] == "e320" and stock.info["type"] == "e3xx"
    assert (stock.channels("rx"), stock.channels("tx")) == (2, 2)
    assert stock.tick_rate >= 1e6 and stock.rate() == 1e6
    assert "e320" in repr(stock)
    ranges = stock.ranges()
    assert ranges["gain"] == (0.0, 76.0) and ranges["antennas"] == ["RX2", "TX/RX"]
    assert ranges["frequency"][0] <= 70e6 and ranges["rate"][1] >= 61e6


def test_tuning_moves_the_carrier(stock):
    stock.set_gain(40)
    for below in (100e3, -200e3):
        tuned = stock.set_frequency(1e9 - below)
        assert abs(tuned.frequency - (1e9 - below)) < 100
        assert tuned.frequency == stock.frequency().frequency
        assert abs(tuned.oscillator + tuned.shift - tuned.frequency) < 1
        found, _ = peak(stock)
        assert abs(found - 1e9) < 200, f"the carrier lies at {found} Hz"


def test_gain_bandwidth_and_antenna(stock):
    stock.set_frequency(1e9 - 100e3)
    levels = []
    for gain in (20, 40):
        assert stock.set_gain(gain) == gain == stock.gain()
        levels.append(peak(stock)[1])
    assert abs(levels[1] - levels[0] - 20) < 1
    with pytest.raises(millstream.RadioError, match="it must be 0 to 76 dB"):
        stock.set_gain(1000)
    assert stock.set_gain(10.4) == 10, "the radio's step"
    assert stock.set_bandwidth(2e6) == stock.bandwidth() == 2e6
    stock.set_automatic_gain()
    stock.set_automatic_gain(False)
    stock.set_antenna("TX/RX")
    assert stock.antenna() == "TX/RX"
    stock.set_antenna("RX2")
    with pytest.raises(millstream.RadioError, match="RX9"):
        stock.set_antenna("RX9")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda r: r.set_frequency(1e12), millstream.RadioError, "frequency"),
        (lambda r: r.set_frequency(float("nan")), millstream.RadioError, "frequency"),
        (lambda r: r.set_rate(-1.0), millstream.RadioError, "rate"),
        (lambda r: r.set_gain(10, 7), millstream.RadioError, "channel 7"),
        (lambda r: r.set_gain(10, direction="up"), ValueError, '"rx" or "tx"'),
        (lambda r: r.set_gain("much"), TypeError, "."),
        (lambda r: r.set_gain(10, -1), OverflowError, "."),
        (lambda r: r.time_ns("then"), ValueError, '"now" or "pps"'),
        (lambda r: r.sensor("nose"), ValueError, "there is no sensor"),
        (lambda r: r.add_fault("break everything"), ValueError, "."),
        (lambda r: r.set_sources(clock="sundial"), millstream.RadioError, "."),
    ],
)
def test_a_wrong_setting_is_refused(stock, call, error, text):
    with pytest.raises(error, match=text):
        call(stock)


def test_time_sources_and_sensors(stock):
    stock.set_time_ns(5_000_000_000)
    assert 0 <= stock.time_ns() - 5_000_000_000 < 2_000_000_000
    assert stock.time_ns("pps") <= stock.time_ns()
    assert stock.sources["clock"] == "internal"
    stock.set_sources(clock="internal", time="internal")
    assert isinstance(stock.sensors(), list)
    assert {"lo_locked", "rssi"} <= set(stock.sensors(0))
    assert stock.sensor("lo_locked", 0)[0].lower() == "true"
    stock.set_frequency(1e9 - 100e3)
    assert abs(float(stock.sensor("rssi", 0)[0]) + 50) < 2


def test_wrong_arguments_of_a_radio():
    for args, text in [
        ("radio=real", "emulated"),
        ("adr=1.2.3.4", "one of addr"),
        ("addr=1.2.3.4.5", "IPv4"),
    ]:
        with pytest.raises((ValueError, millstream.RadioError), match=text):
            millstream.Radio(args)
    with pytest.raises(TypeError):
        millstream.Radio()
    with pytest.raises(millstream.RadioError, match="did not answer|refused|cannot"):
        millstream.Radio("addr=127.99.99.99")


def test_a_closed_radio_says_so():
    radio = millstream.Radio("radio=emulated")
    radio.close()
    for call in (lambda: radio.set_rate(1e6), radio.time_ns, radio.receive):
        with pytest.raises(millstream.ClosedError):
            call()
    radio.close()


def test_a_found_radio_can_be_opened():
    found = millstream.find("radio=emulated")
    assert len(found) == 1 and found[0]["product"] == "e320"
    assert all(set(one) == set(found[0]) for one in millstream.find())


def test_the_emulated_radio_counts_and_takes_faults():
    with millstream.EmulatedRadio(["tone:100e3,0.5"], device="e320-radio") as emulated:
        number = emulated.add_fault("lose to_host data every=10")
        assert emulated.remove_fault(number) and not emulated.remove_fault(number)
        with pytest.raises(ValueError):
            emulated.add_fault("nonsense")
        with millstream.Radio(emulated.args) as radio:
            radio.set_rate(1e6)
            with radio.receive(samples=10_000) as stream:
                level = np.abs(stream.read(10_000).samples).mean()
        assert abs(level - 0.5) < 1e-3
    counters = emulated.counters()
    assert counters["rx_packets"] > 0
    with pytest.raises(millstream.ClosedError):
        emulated.add_fault("stall ms=5")
    for wrong in ({"device": "x310"}, {"mtu": 1}, {"time_scale": 0.0}, {"scene": "/nowhere.toml"}):
        with pytest.raises((ValueError, millstream.Error)):
            millstream.EmulatedRadio(**wrong)


def test_settings_from_several_threads(stock):
    errors = []

    def turn(hz):
        try:
            for step in range(20):
                stock.set_frequency(hz + step * 1e3)
                stock.set_gain(step)
        except Exception as error:
            errors.append(error)

    with stock.receive(samples=200_000) as stream:
        threads = [threading.Thread(target=turn, args=(hz,)) for hz in (1e9, 2e9)]
        for thread in threads:
            thread.start()
        assert sum(len(block) for block in stream) == 200_000
        for thread in threads:
            thread.join()
    assert not errors
    stock.set_gain(40)


def resident_kib():
    """Memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def test_memory_is_flat_over_starts_and_stops():
    """Ten thousand starts and stops of one stream."""
    out = np.zeros(100, np.complex64)

    def turns(radio, count):
        with radio.receive(start=False) as stream:
            for _ in range(count):
                stream.start(100)
                assert stream.recv_into(out).samples == 100
                stream.stop()

    # The first turns use all memory of so small a buffer, and of the caches of both sides.
    with millstream.EmulatedRadio(["ramp"], buffer_samples=1 << 16) as emulated:
        with millstream.Radio(emulated.args) as radio:
            radio.set_rate(1e6)
            for _ in range(3):
                turns(radio, 1000)
            gc.collect()
            before = resident_kib()
            turns(radio, int(os.environ.get("MILLSTREAM_STARTS", "2000")))
            gc.collect()
            grown = resident_kib() - before
    assert grown < 1024, f"{grown} KiB more"


def test_memory_is_flat_over_streams(radio):
    def streams(count):
        for _ in range(count):
            with radio.receive(samples=1000) as stream:
                assert len(stream.read(1000)) == 1000

    streams(50)
    gc.collect()
    before = resident_kib()
    streams(300)
    gc.collect()
    grown = resident_kib() - before
    assert grown < 2048, f"{grown} KiB more"


def test_a_frequency_changes_at_its_sample():
    def turns(samples):
        return float(np.angle(np.sum(samples[1:] * samples[:-1].conj())) / (2 * np.pi))

    # The scene has a carrier at 1 GHz.
    with millstream.Radio("radio=emulated") as radio:
        radio.set_rate(1e6)
        radio.set_gain(40)
        radio.set_frequency(999.9e6, oscillator_offset=2e6)
        start = radio.time_ns() // 1000 * 1000 + 1_000_000_000
        with radio.receive(samples=100_000, at_ns=start) as stream:
            tuned = radio.set_frequency(999.8e6, at_ns=start + 50_000_000)
            assert abs(tuned.frequency - 999.8e6) < 2 and abs(tuned.oscillator - 1001.9e6) < 10
            samples = stream.read(100_000, timeout=60).samples
        before, after = turns(samples[10_000:49_000]), turns(samples[51_000:])
        assert abs(before - 0.1) < 1e-3 and abs(after - 0.2) < 1e-3, (before, after)
        with pytest.raises(millstream.Error, match="give a later time"):
            radio.set_frequency(999.9e6, at_ns=start)
        with pytest.raises(millstream.Error, match="is not possible"):
            radio.set_frequency(2e9, at_ns=radio.time_ns() + 1_000_000_000)


def test_a_script_for_uhd_sets_the_time_of_its_commands():
    import millstream.uhd_compat as uhd

    usrp = uhd.usrp.MultiUSRP("radio=emulated")
    usrp.set_rx_rate(1e6)
    usrp.set_rx_freq(1e9)
    streamer = usrp.get_rx_stream(uhd.usrp.StreamArgs("fc32", "sc16"))
    usrp.set_command_time(usrp.get_time_now() + uhd.types.TimeSpec(1.0))
    assert abs(usrp.set_rx_freq(1.001e9).actual_rf_freq - 1e9) < 10
    usrp.clear_command_time()
    assert abs(usrp.set_rx_freq(1.001e9).actual_rf_freq - 1.001e9) < 10
    del streamer
    usrp.close()
