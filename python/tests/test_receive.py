"""Receive streams against an emulated radio whose samples name their own time."""

import asyncio
import threading
import time

import numpy as np
import pytest
from conftest import RATE, check_run, ticks

import millstream


def test_a_read_has_its_samples_and_their_time(radio):
    with radio.receive(samples=100_000) as stream:
        block = stream.read(100_000)
    assert block.samples.dtype == np.complex64 and block.samples.shape == (100_000,)
    assert block.gap is None and block.end and len(block) == 100_000
    check_run(block.samples, round(block.time_ns * RATE / 1e9))
    assert block.time == block.time_ns / 1e9
    ledger = stream.ledger
    assert (ledger.expected, ledger.delivered, ledger.lost) == (100_000, 100_000, {})
    assert ledger.balances and "delivered" in str(ledger)
    ledger.check()


def test_an_iteration_gives_blocks_until_the_end(radio):
    stream = radio.receive(samples=250_000, block=100_000)
    blocks = list(stream)
    assert [len(block) for block in blocks] == [100_000, 100_000, 50_000]
    whole = np.concatenate([block.samples for block in blocks])
    check_run(whole, round(blocks[0].time_ns * RATE / 1e9))
    assert list(stream) == []
    stream.start(1000)
    assert sum(len(block) for block in stream) == 1000
    stream.close()


def test_recv_into_fills_the_callers_array_in_place(radio):
    out = np.full(70_000, 7 + 7j, np.complex64)
    with radio.receive(samples=60_000) as stream:
        got = stream.recv_into(out[5_000:], 5.0)
    assert got.samples == 60_000 and got.end and got.gap is None
    check_run(out[5_000:65_000], got.time_ticks)
    assert (out[:5_000] == 7 + 7j).all() and (out[65_000:] == 7 + 7j).all()


def test_wire_samples_and_two_channels(radio):
    with radio.receive([0, 1], samples=50_000, format="sc16") as stream:
        block = stream.read(50_000)
    assert block.samples.shape == (2, 50_000, 2) and block.samples.dtype == np.int16
    assert len(block) == 50_000
    first = round(block.time_ns * RATE / 1e9)
    for channel in block.samples:
        check_run(channel, first)
    assert [ledger.delivered for ledger in stream.ledgers] == [50_000, 50_000]


def test_rows_of_a_larger_array(radio):
    out = np.zeros((4, 3000), np.complex64)
    with radio.receive([0, 1], samples=1000) as stream:
        got = stream.recv_into(out[1:3, 500:1500])
    assert got.samples == 1000
    check_run(out[1, 500:1500], got.time_ticks)
    check_run(out[2, 500:1500], got.time_ticks)
    assert not out[0].any() and not out[3].any() and not out[:, :500].any()


def test_skipped_samples_are_gone(radio):
    with radio.receive(samples=100_000) as stream:
        first = stream.read(100)
        assert stream.skip(70_000) == 70_000
        block = stream.read(100)
        assert block.time_ns - first.time_ns == 70_100_000
        assert stream.skip(1_000_000) == 29_800 and stream.skip(1) == 0
    assert stream.ledger.delivered == 100_000


def test_what_is_skipped_takes_its_gap_with_it(emulated, radio):
    emulated.add_fault("lose to_host data skip=5 count=1")
    with radio.receive(samples=10_000, samples_per_packet=100) as stream:
        first = stream.read(500)
        assert len(first) == 500 and stream.skip(1000) == 1000
        block = stream.read(100)
        assert block.gap is None and block.time_ns - first.time_ns == 1_600_000


def test_a_skip_raises_the_gap_that_it_meets(emulated, radio):
    emulated.add_fault("lose to_host data skip=5 count=1")
    with radio.receive(samples=10_000, samples_per_packet=100, gaps="raise") as stream:
        assert stream.skip(2000) == 500
        with pytest.raises(millstream.GapError):
            stream.skip(1)
        assert stream.skip(1000) == 1000


def test_a_start_in_time(radio):
    at_ns = radio.time_ns() + 200_000_000
    with radio.receive(samples=1000, at_ns=at_ns) as stream:
        assert stream.read(1000).time_ns == at_ns
    with radio.receive(start=False) as stream:
        with pytest.raises(millstream.StreamError, match="call its start"):
            stream.read(10)
        stream.start(1000, at_ns=1)
        with pytest.raises(millstream.StreamError, match="that time had passed"):
            stream.read(10)


@pytest.mark.parametrize(
    ("array", "error", "text"),
    [
        (np.zeros(10, np.complex128), TypeError, "numpy's complex128.*give an array of numpy.complex64"),
        (np.zeros(10, np.float32), TypeError, "numpy's float32"),
        (np.zeros(10, ">c8"), TypeError, "give an array of numpy.complex64"),
        ([0j] * 10, TypeError, "a list is not an array"),
        (b"bytes", TypeError, "numpy's unknown"),
        (None, TypeError, "a NoneType is not an array"),
        (np.zeros((2, 10), np.complex64), ValueError, r"shape \[2, 10\].*\(samples,\) or \(1, samples\)"),
        (np.zeros((), np.complex64), ValueError, "this array cannot be used"),
        (np.zeros((1, 1, 10), np.complex64), ValueError, "shape"),
        (np.zeros(20, np.complex64)[::2], ValueError, "do not follow each other"),
        (np.zeros(20, np.complex64)[::-1], ValueError, "do not follow each other"),
        (np.broadcast_to(np.zeros(1, np.complex64), (10,)), ValueError, "read-only|do not follow"),
        (np.frombuffer(b"\0" * 80, np.complex64), ValueError, "read-only"),
        (np.zeros(81, np.uint8)[1:].view(np.complex64), ValueError, "not aligned"),
    ],
)
def test_a_wrong_array_is_refused(radio, array, error, text):
    with radio.receive() as stream:
        with pytest.raises(error, match=text):
            stream.recv_into(array)
        # The stream goes on.
        assert stream.recv_into(np.zeros((1, 10), np.complex64)).samples == 10
        assert stream.recv_into(np.zeros(0, np.complex64), 0.0).samples == 0


def test_wrong_rows_are_refused(radio):
    with radio.receive([0, 1]) as stream:
        for shape in [(10,), (3, 10), (10, 2, 1)]:
            with pytest.raises(ValueError, match="a row for each channel"):
                stream.recv_into(np.zeros(shape, np.complex64))
        overlapping = np.lib.stride_tricks.as_strided(np.zeros(11, np.complex64), (2, 10), (8, 8))
        with pytest.raises(ValueError, match="overlap"):
            stream.recv_into(overlapping)


def test_settings_of_streams_are_checked(radio):
    for keyword, value, text in [
        ("gaps", "ignore", "event, zeros, drop, raise"),
        ("format", "fc32", "cf32"),
        ("channels", 7, "there is no receive channel 7"),
        ("channels", [], "."),
    ]:
        with pytest.raises((ValueError, millstream.Error), match=text):
            radio.receive(**{keyword: value})
    with radio.receive() as stream:
        for timeout in (-1.0, float("nan")):
            with pytest.raises(ValueError, match="timeout is"):
                stream.recv_into(np.zeros(1, np.complex64), timeout)
        with pytest.raises(ValueError, match="give 1 or more"):
            stream.read(0)
        with pytest.raises(millstream.RadioError, match="already in use by a stream"):
            radio.receive()


def gaps_of(stream):
    """Samples by their ticks, and the gaps, checking that each says where samples resume."""
    gaps, due = [], None
    for block in stream:
        if block.gap is not None:
            assert block.gap.resume_ticks - due == block.gap.samples
            assert block.gap.resume_ns == round(block.gap.resume_ticks * 1e9 / RATE)
            assert len(block) == 0 or block.time_ns == block.gap.resume_ns
            gaps.append(block.gap)
            due = block.gap.resume_ticks
        if len(block):
            first = round(block.time_ns * RATE / 1e9)
            assert due is None or first == due
            check_run(block.samples, first)
            due = first + len(block)
    return gaps


@pytest.mark.parametrize("block", [50_000, 100])
def test_a_hundred_gaps_are_exact(emulated, radio, block):
    # Gaps of drawn length: each packet of 100 samples is lost with a chance of a half, by a generator whose seed makes it
    # a hundred gaps. Blocks of 100 samples end where gaps begin.
    emulated.add_fault("lose to_host data skip=50 p=0.5 seed=19 count=202")
    with radio.receive(samples=100_000, samples_per_packet=100, block=block) as stream:
        gaps = gaps_of(stream)
    ledger = stream.ledger
    ledger.check()
    lost = [gap.samples for gap in gaps if gap.cause == "sequence"]
    assert len(lost) == 100 and sum(lost) == 20_200 and {100, 200, 300, 1000} <= set(lost), lost
    assert sum(gap.samples for gap in gaps) == ledger.lost_total
    assert ledger.expected == 100_000


def test_an_overrun_is_a_gap(emulated, radio):
    with radio.receive(samples=400_000) as stream:
        stream.read(1000)
        emulated.add_fault("stall ms=50")
        gaps = gaps_of(stream)
    ledger = stream.ledger
    ledger.check()
    assert sum(gap.samples for gap in gaps) == ledger.lost_total


def test_radios_that_die_say_so():
    """A radio that stops answering or reboots: each call ends with an error of its own."""
    faults = ["stall ms=60000", "reboot silent_ms=60000", "reboot silent_ms=100"]
    results = {}

    def die(fault):
        options = {"device": "e320-radio", "clock_rate": RATE, "any_rate": True, "buffer_samples": 1 << 23}
        with millstream.EmulatedRadio(["ramp"], **options) as emulated:
            radio = millstream.Radio(emulated.args)
            radio.set_rate(RATE)
            stream = radio.receive()
            stream.read(1000)
            emulated.add_fault(fault)
            with pytest.raises(millstream.StreamError, match="stopped answering.*then open it again"):
                while True:
                    stream.read(1000)
            with pytest.raises(millstream.StreamError, match="has ended because of an error"):
                stream.read(1000, timeout=None)
            with pytest.raises(millstream.RadioError):
                stream.start()
            with pytest.raises(millstream.RadioError):
                radio.set_rate(2e6)
            radio.close()
            with pytest.raises(millstream.ClosedError):
                stream.read(1000)
            results[fault] = True

    threads = [threading.Thread(target=die, args=[fault]) for fault in faults]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == len(faults), results


@pytest.mark.parametrize("policy", ["zeros", "drop", "raise"])
def test_other_policies_for_gaps(emulated, radio, policy):
    emulated.add_fault("lose to_host data every=50")
    with radio.receive(samples=100_000, gaps=policy, samples_per_packet=100) as stream:
        parts, gaps = [], []
        while True:
            try:
                block = stream.read(30_000)
            except millstream.GapError as error:
                assert str(error.gap.samples) in str(error)
                gaps.append(error.gap.samples)
                continue
            assert block.gap is None
            parts.append(block.samples)
            if block.end:
                break
    lost, got = stream.ledger.lost_total, np.concatenate(parts)
    assert lost >= 1000 and stream.ledger.balances
    if policy == "zeros":
        assert len(got) == 100_000
        zero = got == 0
        assert zero.sum() in (lost, lost + 1)
        numbers = ticks(got)
        first = numbers[0]
        assert (numbers[~zero] == (first + np.flatnonzero(~zero))).all()
    else:
        assert len(got) == 100_000 - lost
    assert sum(gaps) == (lost if policy == "raise" else 0)


def test_two_threads_read_in_turns(radio):
    with radio.receive(samples=400_000) as stream:
        counts = [0, 0]

        def read(which):
            while True:
                block = stream.read(700 + which)
                if len(block):
                    check_run(block.samples, round(block.time_ns * RATE / 1e9))
                counts[which] += len(block)
                if block.end:
                    break

        threads = [threading.Thread(target=read, args=[which]) for which in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
    assert sum(counts) == 400_000 and min(counts) > 0


def test_a_second_read_waits_no_longer_than_its_time_out(radio):
    with radio.receive() as stream:
        first = threading.Thread(target=lambda: stream.read(50_000_000, timeout=None))
        first.start()
        time.sleep(0.1)
        begin = time.monotonic()
        with pytest.raises(TimeoutError):
            stream.read(10, timeout=0.2)
        assert 0.15 < time.monotonic() - begin < 5
        stream.stop()
        first.join(30)
        assert not first.is_alive()


def test_a_silent_stream_times_out(radio):
    with radio.receive(samples=1000, at_ns=radio.time_ns() + 60_000_000_000) as stream:
        begin = time.monotonic()
        with pytest.raises(TimeoutError, match="no sample came within 0.3 s"):
            stream.read(10, timeout=0.3)
        assert 0.25 < time.monotonic() - begin < 5
        with pytest.raises(TimeoutError):
            stream.read(10, timeout=0)


def test_stop_ends_an_iteration(radio):
    stream = radio.receive(block=1000)
    seen = 0
    for block in stream:
        seen += len(block)
        if seen == 50_000:
            stream.stop()
    assert seen >= 50_000 and not stream.running
    stream.close()


@pytest.mark.parametrize("what", ["stream", "radio"])
def test_close_wakes_a_reader_in_another_thread(emulated, what):
    opened = millstream.Radio(emulated.args)
    stream = opened.receive(samples=1000, at_ns=opened.time_ns() + 3_600_000_000_000)
    caught = []

    def read():
        try:
            stream.read(10, timeout=None)
        except BaseException as error:
            caught.append((error, time.monotonic()))

    reader = threading.Thread(target=read)
    reader.start()
    time.sleep(0.2)
    began = time.monotonic()
    (stream if what == "stream" else opened).close()
    reader.join(10)
    assert not reader.is_alive()
    error, woken = caught[0]
    assert isinstance(error, millstream.ClosedError) and woken - began < 5
    with pytest.raises(millstream.ClosedError):
        stream.read(10)
    opened.close()
    opened.close()


def test_a_thousand_closes_during_reads(radio):
    """Closing while a thread reads: no crash, no hang, each reader sees the end."""
    out = np.zeros(65_536, np.complex64)
    for turn in range(1000):
        stream = radio.receive()
        ends = []

        def read():
            try:
                while True:
                    stream.recv_into(out, 5.0)
            except millstream.ClosedError as error:
                ends.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        if turn % 3:
            time.sleep(0.0005 * (turn % 3))
        stream.close()
        reader.join(10)
        assert len(ends) == 1, turn


def test_closes_during_waits(radio):
    """A reader that waits for a stream which has not begun never takes the close for an end."""
    out = np.zeros(1000, np.complex64)
    for turn in range(20):
        stream = radio.receive(start=False)
        stream.start(1000, at_ns=radio.time_ns() + 3_600_000_000_000)
        ends = []

        def read(skips=turn % 2):
            try:
                ends.append(stream.skip(1000, None) if skips else stream.recv_into(out, None))
            except millstream.ClosedError as error:
                ends.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        # Also at the moment in which a wait begins anew.
        time.sleep(0.0995 + 0.0001 * (turn // 2))
        stream.close()
        reader.join(10)
        assert len(ends) == 1 and isinstance(ends[0], millstream.ClosedError), (turn, ends)


def test_other_threads_run_while_one_waits(radio):
    """The interpreter's lock is free during a wait."""
    count = 0
    with radio.receive(samples=1000, at_ns=radio.time_ns() + 60_000_000_000) as stream:
        waiter = threading.Thread(target=lambda: pytest.raises(TimeoutError, stream.read, 10, 0.5))
        waiter.start()
        while waiter.is_alive():
            count += 1
        waiter.join()
    assert count > 1000


def test_a_signal_interrupts_a_wait(radio):
    import signal

    def alarm(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with radio.receive(samples=1000, at_ns=radio.time_ns() + 60_000_000_000) as stream:
            began = time.monotonic()
            with pytest.raises(KeyboardInterrupt):
                stream.read(10, timeout=None)
            assert time.monotonic() - began < 5
    finally:
        signal.signal(signal.SIGALRM, before)


def test_async_iteration_lets_other_tasks_run(radio):
    async def main():
        beats = 0

        async def beat():
            nonlocal beats
            while True:
                await asyncio.sleep(0.01)
                beats += 1

        other = asyncio.create_task(beat())
        stream = radio.receive(samples=300_000, block=60_000)
        got = [len(block) async for block in stream]
        other.cancel()
        assert (await asyncio.to_thread(lambda: stream.ledger.delivered)) == 300_000
        stream.start(500)
        assert len(await stream.read_async(500)) == 500
        stream.close()
        return got, beats

    got, beats = asyncio.run(main())
    assert got == [60_000] * 5 and beats >= 5


def test_a_change_of_rate_while_a_stream_runs(radio):
    with radio.receive(block=1000) as stream:
        stream.read(1000)
        assert radio.set_rate(500e3, 0, "rx") == 500e3
        deadline = time.monotonic() + 10
        while stream.rate != 500e3 and time.monotonic() < deadline:
            stream.read(1000)
        assert stream.rate == 500e3
        assert len(stream.read(1000)) > 0
