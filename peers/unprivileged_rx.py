#!/usr/bin/python3
"""A user without root, capabilities or a way to get any receives from a radio over the links that bypass the
kernel, while the kernel's own ping uses the same interface. What the process may is what /proc says of it.
Then the two commands of the guide "Without root": a broker that grants a few ports, and a program of the user's beside it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import namespace
from common import MILLSTREAM, die_with_parent, skip

OURS, THEIRS = "10.77.0.1", "10.77.0.2"
SETS = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]


def status_of(name, parent, log):
    """The status file of the first process called `name` below `parent`, by field, once it streams."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        children = subprocess.run(["pgrep", "-P", str(parent.pid), name], capture_output=True,
                                  text=True, check=False).stdout.split()
        if children and "samples" in open(log, encoding="utf-8").read():
            with open(f"/proc/{children[0]}/status", encoding="utf-8") as status:
                return dict(line.rstrip("\n").split(":\t", 1) for line in status)
        if parent.poll() is not None:
            break
        time.sleep(0.05)
    sys.exit(f"nothing streams:\n{open(log, encoding='utf-8').read()}")


def wait_for_radio(log):
    """Until it serves; a busy machine takes its time."""
    deadline = time.monotonic() + 20
    while "ready" not in (text := open(log, encoding="utf-8").read()):
        if time.monotonic() > deadline:
            sys.exit(f"the radio did not become ready:\n{text}")
        time.sleep(0.05)


def check(link, program, folder):
    """Records over one link as nobody, and looks at the process meanwhile."""
    out, log = (os.path.join(folder, name) for name in (f"{link}.sc16", f"{link}.log"))
    args = f"addr={THEIRS},link={link}:peer0"
    command = [program, "host", "grant", "--interface", "peer0", "--user", "nobody", "--link", link,
               "--", program, "rx", "--args", args, "--rate", "1e6", "--duration", "4", "--out", out]
    with open(log, "w", encoding="utf-8") as errors:
        grant = subprocess.Popen(command, stdout=errors, stderr=errors, preexec_fn=die_with_parent)
        status = status_of("millstream", grant, log)
        ping = subprocess.run(["ping", "-c", "3", "-i", "0.2", "-W", "2", THEIRS],
                              capture_output=True, text=True, check=False)
        ended = grant.wait(60)
    text = open(log, encoding="utf-8").read()
    if ended != 0 or "balances" not in text:
        sys.exit(f"the recording over {link} ended with {ended}:\n{text}")
    rights = {name: status[name] for name in SETS}
    if any(int(value, 16) for value in rights.values()) or status["Uid"].split()[0] == "0":
        sys.exit(f"the process has rights: {rights}, Uid {status['Uid']}")
    if status["NoNewPrivs"] != "1":
        sys.exit("the process could get rights")
    if ping.returncode != 0:
        sys.exit(f"the kernel's ping does not work beside {link}:\n{ping.stdout}")
    shown = subprocess.run(["ip", "link", "show", "peer0"], capture_output=True, text=True, check=True)
    if "xdp" in shown.stdout:
        sys.exit(f"a program is left on the interface: {shown.stdout}")
    samples = re.search(r"(\d+) samples expected = (\d+) delivered", text)
    print(f"{link}: uid {status['Uid'].split()[0]}, no capability; {samples[0] if samples else ''}")


def recipe(program, folder):
    """The commands of the guide "Without root", with a user who may not write where root does."""
    out, broker = os.path.join(folder, "recipe.sc16"), os.path.join(folder, "grant.sock")
    grant = [program, "host", "grant", "--interface", "peer0", "--user", "nobody", "--port", "49153-49400", "--socket", broker]
    rx = [program, "rx", "--args", f"addr={THEIRS},link=xdp:peer0", "--rate", "1e6", "--duration", "1", "--out", out, "--force"]
    user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--no-new-privs",
            "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"]
    log = os.path.join(folder, "grant.log")
    with open(log, "w", encoding="utf-8") as errors:
        granting = subprocess.Popen(grant, stdout=errors, stderr=errors, preexec_fn=die_with_parent)
        deadline = time.monotonic() + 20
        while not os.path.exists(broker):
            if granting.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the broker does not listen:\n{open(log, encoding='utf-8').read()}")
            time.sleep(0.05)
        for turn in range(3):
            ended = subprocess.run(user + rx, capture_output=True, text=True, check=False, timeout=60,
                                   env={**os.environ, "MILLSTREAM_GRANT": broker})
            if ended.returncode != 0 or "balances" not in ended.stdout + ended.stderr:
                sys.exit(f"the recipe of docs/guides/without-root.md fails (try {turn}): {ended.stdout}{ended.stderr}")
        granting.terminate()
        granting.wait(20)
    if "refused: UDP port" in open(log, encoding="utf-8").read():
        sys.exit("a port was tried that is not granted")
    print("xdp beside a broker with --port 49153-49400: 3 of 3 recordings")


def main():
    """The radio lives in a namespace of its own, the recorder in ours."""
    if os.geteuid() != 0:
        skip("only root has rights to grant")
    if not os.access(MILLSTREAM, os.X_OK):
        skip(f"no {MILLSTREAM} (run make build)")
    namespace.enter()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        program = shutil.copy(MILLSTREAM, os.path.join(folder, "millstream"))
        os.chmod(program, 0o755)
        radio = [program, "sim", "radio", "--addr", THEIRS, "--rx-antenna", "ramp", "--mtu", "1500"]
        with open(os.path.join(folder, "radio.log"), "w", encoding="utf-8") as log:
            with namespace.Neighbour(radio, OURS, THEIRS, log):
                wait_for_radio(log.name)
                for link in ("xdp", "packet"):
                    check(link, program, folder)
                recipe(program, folder)
    print("agreed: /proc, ping")


if __name__ == "__main__":
    main()
