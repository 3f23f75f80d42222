"""Sends what it receives back, half a second later, by the radio's clock: receiving and transmitting in one loop.

    python repeat.py [ARGS]
"""

import sys

import millstream

DELAY_NS = 500_000_000
args = sys.argv[1] if len(sys.argv) > 1 else "radio=emulated"

with millstream.Radio(args) as radio:
    radio.set_rate(1e6)
    with radio.receive(samples=500_000, block=50_000) as received, radio.transmit() as sent:
        bursts, kinds = 0, []
        for block in received:
            # Each block is a burst with a time of its own, so that a gap stays a gap.
            if len(block):
                sent.send(block.samples, at_ns=block.time_ns + DELAY_NS, end=True)
                bursts += 1
        # The radio reports each burst when its last sample has left.
        while len(kinds) < bursts and (event := sent.next_event(timeout=2.0)):
            kinds.append(event.kind)

print(f"{received.ledger.delivered} samples received, {sent.ledger.accepted} sent back")
print(f"{kinds.count('burst_end')} bursts ended in time, {kinds.count('late')} were late")
