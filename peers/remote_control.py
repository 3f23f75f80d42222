"""A remote control on the air, for the peers in which rtl_433 decodes it.

The signal is keyed on and off: a long pulse is a 0, a short one a 1. rtl_433 measures the pulses, so samples that were
missing or doubled would show in the bits.
"""

import json
import subprocess
import tempfile

import numpy as np

RATE_HZ = 1_000_000
SHORT_US, LONG_US, GAP_US, RESET_US = 400, 1000, 600, 8000
BITS = "101100111000111101010010"
SECONDS = 4


def signal():
    """One message and the pause behind it, as 16-bit I and Q; 10 kHz above the middle."""
    level = [np.zeros(RESET_US)]
    for bit in BITS:
        level += [np.ones(SHORT_US if bit == "1" else LONG_US), np.zeros(GAP_US)]
    level = np.concatenate([*level, np.zeros(RESET_US)])
    # A whole number of turns: the end fits the beginning.
    level = np.concatenate([level, np.zeros(-len(level) % 100)])
    wave = 12_000 * level * np.exp(2j * np.pi * 10_000 / RATE_HZ * np.arange(len(level)))
    return np.stack([wave.real, wave.imag], 1).round().astype("<i2")


def recording():
    """A file with the signal, and how many messages are sent while rtl_433 listens."""
    samples = signal()
    file = tempfile.NamedTemporaryFile(suffix=".sc16")
    file.write(samples.tobytes())
    file.flush()
    return file, SECONDS * RATE_HZ / len(samples)


def decodes(rtl_433, device, sent):
    """Lets rtl_433 listen at a device; all that it decodes is the message, at least a third of the times."""
    decoder = f"n=remote,m=OOK_PWM,s={SHORT_US},l={LONG_US},g={LONG_US},r={RESET_US // 2},bits={len(BITS)}"
    done = subprocess.run([rtl_433, "-d", device, "-f", "433.92M", "-s", str(RATE_HZ), "-g", "40", "-T", str(SECONDS),
                           "-F", "json", "-R", "0", "-X", decoder],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    want = f"{int(BITS, 2):0{len(BITS) // 4}x}"
    right = [one for one in messages if one["rows"][0]["data"] == want]
    print(f"{len(messages)} messages, {len(right)} of them {want}, in {SECONDS} s; {sent:.0f} were sent")
    # It spends the first moments on opening the radio.
    if len(right) != len(messages) or len(right) < sent / 3:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
