"""From nothing to samples: what a user writes first. `make python` runs it with the wheel in a clean environment."""

import millstream

with millstream.Radio("radio=emulated") as radio:
    radio.set_rate(1e6)
    with radio.receive() as stream:
        samples = stream.read(100_000).samples

assert samples.shape == (100_000,)
stream.ledger.check()
print(f"millstream {millstream.__version__}: {len(samples)} samples, {stream.ledger.lost_total} lost")
