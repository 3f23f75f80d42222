#!/usr/bin/python3
"""UHD's tools over SoapyUHD and our module: a way for programs of UHD to radios that UHD itself does not reach.

`type=soapy` selects SoapyUHD, which passes it on with all other keys. A radio on the network is found and opened with it, and
so is an emulated one in the tool's process; every sample of a ramp arrives.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import array
import glob
import os
import sys
import tempfile

from common import Radio, first_difference, skip, uhd_example, uhd_output
from soapy_common import use_module

# peers/roots.sh puts it where other peers do not load it.
FOLDERS = ["/usr/lib/soapyuhd", *glob.glob("/usr/lib/*/uhd/modules")]
RATE_HZ, SAMPLES = 1_000_000, 500_000


def tool(name, *options):
    """What a tool printed; our module must know all that SoapyUHD passes on."""
    said = uhd_output(name, *options)
    if "has no effect" in said:
        sys.exit(f"{name}: our module does not know what SoapyUHD passes on:\n{said}")
    return said


def check_receive(folder, args):
    """The recording has to be a counter."""
    path = os.path.join(folder, "ramp.sc16")
    tool("rx_samples_to_file", "--args", args, "--rate", str(RATE_HZ), "--nsamps", str(SAMPLES), "--type", "short",
         "--file", path)
    with open(path, "rb") as file:
        got = file.read()
    start = int.from_bytes(got[:4], "little")
    want = array.array("I", ((start + k) & 0xFFFFFFFF for k in range(SAMPLES))).tobytes()
    wrong = first_difference(got, want)
    if wrong:
        sys.exit(f"rx_samples_to_file --args {args}: {len(got)} bytes; {wrong}")
    print(f"rx_samples_to_file --args {args}: {SAMPLES} samples exact")


def main():
    """A radio on the network, then one in the tool's process."""
    module = next((path for folder in FOLDERS for path in glob.glob(f"{folder}/libsoapySupport.so")), None)
    if module is None:
        skip("no SoapyUHD (Debian package uhd-soapysdr)")
    uhd_example("rx_samples_to_file")
    use_module()
    os.environ["UHD_MODULE_PATH"] = module
    with tempfile.TemporaryDirectory() as folder:
        with Radio("--rx-antenna", "ramp", "--rx-buffer-samples", str(4 * RATE_HZ)) as radio:
            args = f"type=soapy,driver=millstream,addr={radio.addr}"
            found = tool("uhd_find_devices", "--args", args)
            if radio.addr not in found or "soapy" not in found:
                sys.exit(f"uhd_find_devices --args {args} does not find it:\n{found}")
            tool("uhd_usrp_probe", "--args", args)
            check_receive(folder, args)
        check_receive(folder, "type=soapy,driver=millstream,radio=emulated,antenna=ramp")


if __name__ == "__main__":
    main()
