#!/usr/bin/python3
"""SoapySDR's Python API over our module: receiving, gaps, times, transmitting, and careless use.

Radios are emulated, by this process and by `sim radio`. Each sample of their ramp names its own time, so every sample,
every time and every gap is checked exactly.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import ctypes
import subprocess
import threading
import time

from common import PYTHON, Radio, skip
from soapy_common import RAMP, drawn_gaps, text_of, use_module

use_module()
try:
    import numpy as np
    import SoapySDR
    from SoapySDR import (SOAPY_SDR_CF32, SOAPY_SDR_CS16, SOAPY_SDR_CS8, SOAPY_SDR_END_ABRUPT, SOAPY_SDR_END_BURST,
                          SOAPY_SDR_HAS_TIME, SOAPY_SDR_OVERFLOW, SOAPY_SDR_RX, SOAPY_SDR_TIMEOUT, SOAPY_SDR_TIME_ERROR,
                          SOAPY_SDR_TX, SOAPY_SDR_UNDERFLOW)
except ImportError as missing:
    skip(f"{missing} (Debian packages python3-soapysdr and python3-numpy)")

RATE_HZ = 1e6
NS = 1000  # nanoseconds of a sample
PACKET = 500
FAULT, GAPS = drawn_gaps(PACKET)
PATIENCE_US = 10_000_000
HUGE_US = 1 << 30
PROMPT_S = 0.3  # of a call that has to return at once, on a busy machine


def opened(args, rate_hz=RATE_HZ):
    radio = SoapySDR.Device(text_of(args))
    radio.setSampleRate(SOAPY_SDR_RX, 0, rate_hz)
    assert radio.getSampleRate(SOAPY_SDR_RX, 0) == rate_hz
    return radio


def ticks(words):
    """The times in samples of a ramp: I their low, Q their high 16 bits."""
    low, high = (words[..., part].astype(np.int64) & 0xFFFF for part in (0, 1))
    return high << 16 | low


class Reader:
    """A receive stream of 16-bit samples."""

    def __init__(self, radio, channels=(0,), size=4096, **args):
        self.radio, self.size = radio, size
        args = {"spp": str(PACKET), **args}
        self.stream = radio.setupStream(SOAPY_SDR_RX, SOAPY_SDR_CS16, list(channels), args)
        self.buffers = [np.zeros((size, 2), np.int16) for _ in channels]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.radio.closeStream(self.stream)

    def start(self, *args):
        assert self.radio.activateStream(self.stream, *args) == 0

    def read(self, samples=None, timeout_us=PATIENCE_US):
        return self.radio.readStream(self.stream, self.buffers, samples or self.size, timeoutUs=timeout_us)

    def status(self, timeout_us=0):
        return self.radio.readStreamStatus(self.stream, timeoutUs=timeout_us)


def gaps_are_exact(args, size=4096):
    """Each gap: a read with its flag, one overflow with the time at which samples resume, and that time in the status."""
    radio = opened(args)
    with Reader(radio, size=size) as reader:
        reader.start()
        due, resumes, abrupt = None, [], False
        while len(resumes) < len(GAPS):
            got = reader.read()
            assert got.flags & SOAPY_SDR_HAS_TIME, got
            assert abrupt == (got.ret == SOAPY_SDR_OVERFLOW), (got, abrupt)
            abrupt = bool(got.flags & SOAPY_SDR_END_ABRUPT)
            if got.ret == SOAPY_SDR_OVERFLOW:
                assert got.timeNs == due + GAPS[len(resumes)] * NS, (got, due)
                resumes.append(got.timeNs)
            else:
                assert got.ret > 0 and due in (None, got.timeNs), (got, due)
                want = got.timeNs // NS + np.arange(got.ret)
                assert np.array_equal(ticks(reader.buffers[0][:got.ret]), want & 0xFFFFFFFF), got
                assert abrupt or got.ret == reader.size, got
            due = got.timeNs + max(got.ret, 0) * NS
        for resume in resumes:
            event = reader.status()
            assert (event.ret, event.timeNs) == (SOAPY_SDR_OVERFLOW, resume), (event, resume)
        assert reader.status().ret == SOAPY_SDR_TIMEOUT
        assert int(radio.readSensor(SOAPY_SDR_RX, 0, "ledger_lost")) == sum(GAPS)
        gap = radio.readSetting(SOAPY_SDR_RX, 0, "last_gap")
        assert gap == f"samples={GAPS[-1]},cause=sequence,resume_ns={resumes[-1]}", gap


def in_process_gaps():
    gaps_are_exact({**RAMP, "fault": FAULT})
    # Full reads, which end where gaps begin.
    gaps_are_exact({**RAMP, "fault": FAULT}, PACKET)


def gaps_of_another_process():
    with Radio("--rx-antenna", "ramp", "--rx-buffer-samples", str(1 << 26), "--fault", FAULT) as radio:
        found = SoapySDR.Device.enumerate({"driver": "millstream", "addr": radio.addr})
        assert len(found) == 1 and found[0]["addr"] == radio.addr, found
        gaps_are_exact({"driver": "millstream", "addr": radio.addr})


def zeros_keep_the_count():
    """With gaps=zeros no read fails, and samples are as many as their times say."""
    radio = opened({**RAMP, "fault": FAULT})
    with Reader(radio, gaps="zeros") as reader:
        reader.start()
        first, count, zeros = None, 0, 0
        while count < 60 * PACKET + 3 * sum(GAPS):
            got = reader.read()
            assert got.ret == reader.size and not got.flags & SOAPY_SDR_END_ABRUPT, got
            first = got.timeNs if first is None else first
            assert got.timeNs == first + count * NS, (got, first, count)
            times, want = ticks(reader.buffers[0]), got.timeNs // NS + np.arange(got.ret)
            zeros += np.count_nonzero((times == 0) & (want != 0))
            assert np.all((times == 0) | (times == want)), got
            count += got.ret
        assert zeros == sum(GAPS), zeros
        assert reader.status().ret == SOAPY_SDR_OVERFLOW


def overruns_and_jumps_are_exact():
    """The radio loses samples by itself, and its clock jumps: the next sample has the time of the event."""
    jump = 7777
    for policy in ["event", "zeros"]:
        # A small buffer, which a stall fills. Other arguments are another radio.
        radio = opened({**RAMP, "rx_buffer_samples": str(1 << 16), "claim_wait_s": str(len(policy))})
        faults = ["stall ms=400", "stall ms=300", f"clock_jump ticks={jump}"]
        with Reader(radio, gaps=policy) as reader:
            reader.start()
            due, missing, zeros = None, [], 0
            for read in range(2000):
                if read % 400 == 100 and faults:
                    radio.writeSetting("add_fault", faults.pop(0))
                got = reader.read(1000)
                if got.ret == SOAPY_SDR_OVERFLOW:
                    missing.append((got.timeNs - due) // NS)
                else:
                    assert got.ret > 0 and due in (None, got.timeNs), (got, due)
                    times, want = ticks(reader.buffers[0][:got.ret]), got.timeNs // NS + np.arange(got.ret)
                    wrong = times != want
                    assert not np.any(times[wrong]), got
                    zeros += np.count_nonzero(wrong)
                due = got.timeNs + max(got.ret, 0) * NS
            events = [reader.status() for _ in range(3)]
            assert all(event.ret == SOAPY_SDR_OVERFLOW for event in events), [str(event) for event in events]
            lost = int(radio.readSensor(SOAPY_SDR_RX, 0, "ledger_lost"))
            if policy == "event":
                # A busy machine adds overruns of its own, also just before the jump.
                assert min(missing) > 0 and sum(missing) == lost > jump, (missing, lost)
                assert missing[2:] == [jump] or len(missing) != 3, missing
            else:
                assert not missing and zeros == lost > jump, (missing, zeros, lost)


def drop_goes_on():
    radio = opened({**RAMP, "fault": FAULT})
    with Reader(radio, gaps="drop") as reader:
        reader.start()
        due, jumps = None, []
        while len(jumps) < len(GAPS):
            got = reader.read()
            assert got.ret > 0, got
            if due not in (None, got.timeNs):
                jumps.append((got.timeNs - due) // NS)
            due = got.timeNs + got.ret * NS
        assert jumps == GAPS, jumps


def formats_agree():
    """CF32 and CS8 are the 16-bit samples, scaled."""
    radio = opened(RAMP)
    for name, kind, scale in [(SOAPY_SDR_CF32, np.complex64, 1 / 32767), (SOAPY_SDR_CS8, np.int8, 127 / 32767)]:
        stream = radio.setupStream(SOAPY_SDR_RX, name, [0])
        shape = 10_000 if kind == np.complex64 else (10_000, 2)
        buffer = np.zeros(shape, kind)
        assert radio.activateStream(stream) == 0
        got = radio.readStream(stream, [buffer], 10_000, timeoutUs=PATIENCE_US)
        assert got.ret == 10_000, got
        times = got.timeNs // NS + np.arange(got.ret)
        want = [part.astype(np.uint16).view(np.int16).astype(np.float32) * np.float32(scale)
                for part in (times & 0xFFFF, times >> 16 & 0xFFFF)]
        parts = [buffer.real, buffer.imag] if kind == np.complex64 else [buffer[:, 0], buffer[:, 1]]
        for part, wanted in zip(parts, want):
            wanted = wanted if kind == np.complex64 else np.rint(wanted)
            assert np.array_equal(part, wanted), name
        radio.closeStream(stream)


def finite_and_timed():
    radio = opened(RAMP)
    with Reader(radio) as reader:
        start = radio.getHardwareTime() // NS * NS + 200_000_000
        reader.start(SOAPY_SDR_HAS_TIME | SOAPY_SDR_END_BURST, start, 10_007)
        count = 0
        while True:
            got = reader.read()
            assert got.ret > 0 and got.timeNs == start + count * NS, (got, start, count)
            count += got.ret
            if got.flags & SOAPY_SDR_END_BURST:
                break
        assert count == 10_007, count
        assert reader.read(timeout_us=1000).ret == SOAPY_SDR_TIMEOUT
        reader.start(SOAPY_SDR_HAS_TIME, NS, 0)
        got = reader.read()
        assert got.ret == SOAPY_SDR_TIME_ERROR, got
        assert reader.status(PATIENCE_US).ret == SOAPY_SDR_TIME_ERROR


def channels_are_aligned():
    radio = opened({**RAMP, "fault": "lose to_host data skip=50 every=200 count=5"})
    with Reader(radio, (0, 1)) as reader:
        reader.start()
        due, gaps = None, 0
        while gaps < 2:
            got = reader.read()
            if got.ret == SOAPY_SDR_OVERFLOW:
                gaps += 1
                assert got.timeNs == due + PACKET * NS, (got, due)
            else:
                want = got.timeNs // NS + np.arange(got.ret)
                assert all(np.array_equal(ticks(one[:got.ret]), want) for one in reader.buffers), got
            due = got.timeNs + max(got.ret, 0) * NS


def careless_reads():
    """Reads before the start, of no samples, and with huge time-outs; stop and close while a thread reads."""
    radio = opened(RAMP)
    with Reader(radio) as reader:
        begin = time.monotonic()
        assert reader.read(timeout_us=HUGE_US).ret == SOAPY_SDR_TIMEOUT
        assert time.monotonic() - begin < PROMPT_S
        reader.start()
        assert reader.read().ret > 0
    for how in ["stop", "close"] * 20:
        stream = radio.setupStream(SOAPY_SDR_RX, SOAPY_SDR_CS16, [0], {"spp": str(PACKET)})
        # Longer than the test takes.
        buffer, results = np.zeros((100_000_000, 2), np.int16), []
        assert radio.activateStream(stream) == 0

        def read():
            results.append(radio.readStream(stream, [buffer], len(buffer), timeoutUs=HUGE_US).ret)
            results.append(time.monotonic())

        thread = threading.Thread(target=read)
        thread.start()
        time.sleep(0.02)
        begin = time.monotonic()
        if how == "stop":
            assert radio.deactivateStream(stream) == 0
        else:
            radio.closeStream(stream)
        thread.join()
        assert results[1] - begin < PROMPT_S, (how, results[1] - begin)
        assert (results[0] >= 0 or results[0] == SOAPY_SDR_TIMEOUT) if how == "stop" else results[0] < 0, (how, results)
        if how == "stop":
            radio.closeStream(stream)
    # A stream that was closed is none.
    assert radio.readStream(stream, [buffer], 100).ret < 0


def starts_and_stops():
    radio = opened(RAMP)
    with Reader(radio) as reader:
        before = 0
        for _ in range(1000):
            reader.start()
            got = reader.read(100)
            assert got.ret == 100 and got.timeNs >= before, (got, before)
            assert radio.deactivateStream(reader.stream) == 0
            before = got.timeNs + got.ret * NS
        assert int(radio.readSensor(SOAPY_SDR_RX, 0, "ledger_lost")) == 0


def rates_change_live():
    """A thread reads while another one changes the rate; times go on, and no sample is torn."""
    radio = opened(RAMP)
    with Reader(radio) as reader:
        reader.start()
        ends, results = threading.Event(), []

        def read():
            while not ends.is_set():
                results.append(reader.read(timeout_us=100_000).ret)

        thread = threading.Thread(target=read)
        thread.start()
        for turn in range(50):
            rate = [2e6, 1e6, 0.5e6][turn % 3]
            radio.setSampleRate(SOAPY_SDR_RX, 0, rate)
            assert radio.getSampleRate(SOAPY_SDR_RX, 0) == rate
        count = len(results)
        while len(results) < count + 3:
            time.sleep(0.01)
        ends.set()
        thread.join()
        assert all(result > 0 or result == SOAPY_SDR_TIMEOUT for result in results), set(results)
        assert results[-1] > 0


def search_disturbs_nothing():
    radio = opened(RAMP)
    with Reader(radio) as reader:
        reader.start()
        ends, times = threading.Event(), []

        def search():
            while not ends.is_set():
                begin = time.monotonic()
                SoapySDR.Device.enumerate({"driver": "millstream"})
                times.append(time.monotonic() - begin)

        thread = threading.Thread(target=search)
        thread.start()
        due = None
        for _ in range(300):
            got = reader.read()
            assert got.ret > 0 and due in (None, got.timeNs), (got, due)
            due = got.timeNs + got.ret * NS
        ends.set()
        thread.join()
        assert times, "no search"


OPEN_ALL = """
import sys, SoapySDR
for addr in sys.argv[1:]:
    for found in SoapySDR.Device.enumerate({"driver": "millstream", "addr": addr}):
        try:
            pairs = {**dict(found), "claim_wait_s": "0"}.items()
            print(SoapySDR.Device(",".join(f"{key}={value}" for key, value in pairs)).getHardwareKey())
        except RuntimeError as refused:
            print(refused)
"""


def everything_found_is_opened():
    """Another program opens all that it finds, while this one streams from one of them: it gets the others."""
    with Radio("--rx-antenna", "ramp", "--rx-buffer-samples", str(1 << 26), count=2) as radios:
        radio = opened({"driver": "millstream", "addr": radios.addrs[0]})
        with Reader(radio) as reader:
            reader.start()
            first = reader.read()
            done = subprocess.run([PYTHON, "-c", OPEN_ALL, *radios.addrs], capture_output=True, text=True, check=True)
            used, free = done.stdout.splitlines()
            assert "is claimed by" in used and free == "e320", done.stdout
            due = first.timeNs + first.ret * NS
            for _ in range(20):
                got = reader.read()
                assert got.ret > 0 and got.timeNs == due, (got, due)
                due = got.timeNs + got.ret * NS


def transmitted_samples_come_back():
    """A burst at its time through a cable of 100 samples; then events: end of burst, late, underflow."""
    delay, length = 100, 20_000
    radio = opened({**RAMP, "antenna": f"loopback:0;delay={delay}"})
    radio.setSampleRate(SOAPY_SDR_TX, 0, RATE_HZ)
    tx = radio.setupStream(SOAPY_SDR_TX, SOAPY_SDR_CS16, [0])
    assert radio.activateStream(tx) == 0
    burst = np.stack([np.arange(length) % 30_000 + 1, -(np.arange(length) % 20_000)], 1).astype(np.int16)
    with Reader(radio, size=length) as reader:
        start = radio.getHardwareTime() // NS * NS + 300_000_000
        reader.start(SOAPY_SDR_HAS_TIME | SOAPY_SDR_END_BURST, start + delay * NS, length)
        sent = 0
        while sent < length:
            flags = SOAPY_SDR_END_BURST | (SOAPY_SDR_HAS_TIME if sent == 0 else 0)
            done = radio.writeStream(tx, [burst[sent:]], length - sent, flags, start, PATIENCE_US)
            assert done.ret > 0, done
            sent += done.ret
        got = reader.read()
        assert (got.ret, got.timeNs) == (length, start + delay * NS), got
        assert np.array_equal(reader.buffers[0], burst)
    event = radio.readStreamStatus(tx, PATIENCE_US)
    assert event.ret == 0 and event.flags & SOAPY_SDR_END_BURST, event
    done = radio.writeStream(tx, [burst], 100, SOAPY_SDR_HAS_TIME | SOAPY_SDR_END_BURST, NS, PATIENCE_US)
    assert done.ret == 100, done
    assert radio.readStreamStatus(tx, PATIENCE_US).ret == SOAPY_SDR_TIME_ERROR
    assert radio.writeStream(tx, [burst], 4000, 0, 0, PATIENCE_US).ret == 4000
    assert radio.readStreamStatus(tx, PATIENCE_US).ret == SOAPY_SDR_UNDERFLOW
    radio.deactivateStream(tx)
    radio.closeStream(tx)


def settings_answer():
    """Settings return what was set; wrong ones are refused with a text that says what is possible."""
    radio = SoapySDR.Device("driver=millstream,radio=emulated")
    assert radio.getHardwareKey() == "e320" and radio.getNumChannels(SOAPY_SDR_RX) == 2
    radio.setFrequency(SOAPY_SDR_RX, 0, 1e9, {"OFFSET": "2e6"})
    assert abs(radio.getFrequency(SOAPY_SDR_RX, 0) - 1e9) < 1
    assert abs(radio.getFrequency(SOAPY_SDR_RX, 0, "RF") - 1.002e9) < 10
    radio.setFrequency(SOAPY_SDR_RX, 0, "RF", 2e9)
    radio.setFrequency(SOAPY_SDR_RX, 0, "BB", 1e6)
    assert abs(radio.getFrequency(SOAPY_SDR_RX, 0) - 2.001e9) < 10
    radio.setGain(SOAPY_SDR_RX, 0, 33)
    radio.setGainMode(SOAPY_SDR_RX, 0, True)
    assert radio.getGainMode(SOAPY_SDR_RX, 0)
    radio.setGainMode(SOAPY_SDR_RX, 0, False)
    assert radio.getGain(SOAPY_SDR_RX, 0) == 33 and not radio.getGainMode(SOAPY_SDR_RX, 0)
    radio.setAntenna(SOAPY_SDR_RX, 0, "TX/RX")
    assert radio.getAntenna(SOAPY_SDR_RX, 0) == "TX/RX"
    radio.setBandwidth(SOAPY_SDR_RX, 0, 5e6)
    assert radio.getBandwidth(SOAPY_SDR_RX, 0) == 5e6
    radio.setClockSource("external")
    assert radio.getClockSource() == "external"
    radio.setHardwareTime(5_000_000_000)
    assert 5_000_000_000 <= radio.getHardwareTime() < 15_000_000_000
    for wrong, part in [(lambda: radio.setAntenna(SOAPY_SDR_RX, 0, "RX9"), "the channel has RX2"),
                        (lambda: radio.setFrequency(SOAPY_SDR_RX, 0, 60e9), "it must be"),
                        (lambda: radio.setSampleRate(SOAPY_SDR_RX, 7, 1e6), "no receive channel 7"),
                        (lambda: radio.readSensor(SOAPY_SDR_RX, 0, "x"), "there are rssi"),
                        (lambda: SoapySDR.Device("driver=millstream,radio=x"), "radio")]:
        try:
            wrong()
        except Exception as refused:  # SWIG has its own classes.
            assert part in str(refused), refused
        else:
            raise AssertionError(part)


def buffers_are_read_in_place():
    """Direct buffers, which only SoapySDR's C interface has: three are held at once, and all are contiguous."""
    soapy = ctypes.CDLL("libSoapySDR.so.0.8")
    for name in ["makeStrArgs", "setupStream"]:
        getattr(soapy, f"SoapySDRDevice_{name}").restype = ctypes.c_void_p
    device = ctypes.c_void_p(soapy.SoapySDRDevice_makeStrArgs(text_of(RAMP).encode()))
    soapy.SoapySDRDevice_setSampleRate(device, SOAPY_SDR_RX, ctypes.c_size_t(0), ctypes.c_double(RATE_HZ))
    stream = ctypes.c_void_p(soapy.SoapySDRDevice_setupStream(device, SOAPY_SDR_RX, b"CS16", None, ctypes.c_size_t(0), None))
    assert stream and soapy.SoapySDRDevice_getNumDirectAccessBuffers(device, stream) == 8
    assert soapy.SoapySDRDevice_activateStream(device, stream, 0, ctypes.c_longlong(0), ctypes.c_size_t(0)) == 0
    held, due = [], None
    for _ in range(100):
        number, data, flags, when = ctypes.c_size_t(), ctypes.c_void_p(), ctypes.c_int(), ctypes.c_longlong()
        count = soapy.SoapySDRDevice_acquireReadBuffer(device, stream, ctypes.byref(number), ctypes.byref(data),
                                                       ctypes.byref(flags), ctypes.byref(when), ctypes.c_long(PATIENCE_US))
        assert count > 0 and due in (None, when.value), (count, due, when)
        held.append((number.value, data.value, when.value, count))
        due = when.value + count * NS
        if len(held) == 3:
            number, data, first, count = held.pop(0)
            words = np.ctypeslib.as_array((ctypes.c_int16 * (2 * count)).from_address(data)).reshape(-1, 2)
            assert np.array_equal(ticks(words), first // NS + np.arange(count))
            soapy.SoapySDRDevice_releaseReadBuffer(device, stream, ctypes.c_size_t(number))
    soapy.SoapySDRDevice_closeStream(device, stream)
    soapy.SoapySDRDevice_unmake(device)


CHECKS = [in_process_gaps, gaps_of_another_process, zeros_keep_the_count, overruns_and_jumps_are_exact, drop_goes_on,
          formats_agree, finite_and_timed, channels_are_aligned, careless_reads, starts_and_stops, rates_change_live,
          search_disturbs_nothing, everything_found_is_opened, buffers_are_read_in_place, transmitted_samples_come_back,
          settings_answer]


def main():
    for check in CHECKS:
        begin = time.monotonic()
        check()
        print(f"{check.__name__.replace('_', ' '):40} {time.monotonic() - begin:6.1f} s")
    print(f"SoapySDR {SoapySDR.getAPIVersion()}, Python: all agree")


main()
