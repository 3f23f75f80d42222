#!/usr/bin/env python3
"""Debian's NATS server and the NATS project's own Python client against `nats_sink`, with an outage of the server.

A live stream from an emulated radio is published while the server is killed and started again. Then the subscriber has got
exactly the messages that the sink's ledger calls acknowledged, in order; the missing ones are as many as it counts as
dropped; each has the samples of its time; and the radio lost none. OUTAGE_S=30 makes the outage longer.

The package nats-py is taken as installed, or from PyPI into a throw-away folder.

Exit status: 0 agrees, 1 not, 77 skipped because a needed program is not there.
"""

import asyncio
import shutil
import tempfile

from common import free_port, skip
from publish_common import OUTAGE_S, Broker, Gate, LiveStream, check, load


async def session(nats, folder):
    """Publishes across an outage."""
    port = free_port()
    broker = Broker(["nats-server", "-a", "127.0.0.1", "-p", str(port)], port, folder)
    broker.start()
    back = asyncio.Event()

    async def is_back():
        back.set()

    async def ignore(_error):
        """The outage is no news."""

    client = await nats.connect(f"nats://127.0.0.1:{port}", max_reconnect_attempts=-1, reconnect_time_wait=0.1,
                                reconnected_cb=is_back, error_cb=ignore)
    messages = []

    async def take(message):
        messages.append(message.data)

    await client.subscribe("radio.>", cb=take, pending_msgs_limit=-1, pending_bytes_limit=-1)
    await client.flush()
    # The sink is let in when the subscriber is there: a NATS server keeps nothing for those who come later.
    gate = Gate(port)
    gate.open()
    sink = f'type = "nats_sink"\nsubject = "radio.ramp"\nserver = "127.0.0.1:{gate.port}"'
    with LiveStream(folder, sink) as stream:
        await until("the first messages", lambda: len(messages) > 1000)
        await asyncio.to_thread(gate.shut)
        await asyncio.sleep(1)
        broker.stop()
        await asyncio.sleep(OUTAGE_S)
        back.clear()
        broker.start()
        await asyncio.wait_for(back.wait(), 60)
        await client.flush()
        before = len(messages)
        gate.open()
        await until("messages after the outage", lambda: len(messages) > before + 4000)
        published, ledger = await asyncio.to_thread(stream.end)
    # The last ones may still be on their way.
    await client.flush()
    await asyncio.sleep(0.5)
    await client.close()
    broker.stop()
    check(messages, published, ledger)


async def until(what, found):
    """Waits until something holds."""
    for _ in range(6000):
        if found():
            return
        await asyncio.sleep(0.01)
    raise SystemExit(f"not within a minute: {what}")


def main():
    """Runs the session."""
    if shutil.which("nats-server") is None:
        skip("no nats-server (Debian package nats-server)")
    with tempfile.TemporaryDirectory() as packages, tempfile.TemporaryDirectory() as folder:
        asyncio.run(session(load("nats-py", "nats", packages), folder))


if __name__ == "__main__":
    main()
