"""Runs the first example of the README, and looks at its samples. `make python` does so with each wheel."""

import pathlib
import re

import millstream

README = pathlib.Path(__file__).parents[1] / "README.md"
names: dict = {}
exec(re.search(r"```python\n(.*?)```", README.read_text("utf-8"), re.S).group(1), names)

samples, ledger = names["block"].samples, names["stream"].ledger
assert samples.shape == (100_000,) and samples.any()
ledger.check()
print(f"millstream {millstream.__version__}: {len(samples)} samples, {ledger.lost_total} lost")
