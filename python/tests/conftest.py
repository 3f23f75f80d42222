"""Shared by the tests: an emulated radio whose samples say at which tick they were taken."""

import numpy as np
import pytest

import millstream

# The antenna "ramp" is a counter of the radio's ticks: I has its low 16 bits, Q its high ones.
RATE = 1e6


@pytest.fixture
def emulated():
    """An emulated radio whose antenna counts ticks."""
    with millstream.EmulatedRadio(
        ["ramp"], device="e320-radio", clock_rate=RATE, any_rate=True, buffer_samples=1 << 23
    ) as radio:
        yield radio


@pytest.fixture
def radio(emulated):
    """That radio, opened, at a million samples per second."""
    with millstream.Radio(emulated.args) as opened:
        assert opened.set_rate(RATE) == RATE
        yield opened


def ticks(samples):
    """The counter in samples of either format, modulo 2^32."""
    if samples.dtype == np.int16:
        pairs = samples.astype(np.int64)
    else:
        pairs = np.rint(samples.view(np.float32).reshape(*samples.shape, 2) * 32767).astype(np.int64)
    return (pairs[..., 1] & 0xFFFF) << 16 | pairs[..., 0] & 0xFFFF


def check_run(samples, first):
    """Every sample is the one taken at its tick."""
    want = (first + np.arange(samples.shape[0])) & 0xFFFFFFFF
    wrong = np.flatnonzero(ticks(samples) != want)
    assert wrong.size == 0, f"sample {wrong[0]} is of tick {ticks(samples)[wrong[0]]}"


def pytest_terminal_summary(terminalreporter):
    """A line as Rust's tests end with, for the count of scripts/test.sh."""
    passed, failed, errors, skipped = (
        len(terminalreporter.stats.get(kind, [])) for kind in ("passed", "failed", "error", "skipped")
    )
    verdict = "FAILED" if failed + errors else "ok"
    print(f"\ntest result: {verdict}. {passed} passed; {failed + errors} failed; {skipped} ignored")
