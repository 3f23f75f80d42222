"""UHD's own MPM simulator (Debian's python3-uhd), served as a device: an E320 with one endpoint.

Debian ships the module, but not its starter program, nor `mprpc`, below its RPC server, nor the
extension module for the hardware. This harness starts it, stands in for those two and mends what
fails on today's libraries and with hosts of its own version. It serves until it is killed and
binds every address of discovery, RPC and CHDR: it wants a network namespace of its own
(`namespace.Neighbour`). Tried: the simulators of UHD 4.3 (MPM 4.2), 4.8 and 4.9 (MPM 5.3).

Usage: mpm_simulator.py SOURCE SINK
  SOURCE  the sample bytes that it sends to a host; every stream begins at its start
  SINK    where it writes the sample bytes that a host sends; every stream begins it anew
"""

import importlib.util
import multiprocessing
import sys
import tempfile
import types

NEEDED = {"usrp_mpm": "python3-uhd", "gevent": "python3-gevent", "msgpack": "python3-msgpack",
          "pyroute2": "python3-pyroute2", "pyudev": "python3-pyudev", "netaddr": "python3-netaddr",
          "six": "python3-six", "systemd": "python3-systemd"}
HARDWARE = "usrp_mpm.libpyusrp_periphs"
SERIAL = "SIM0001"
FLUSH_TIMEOUT = 0x3C
RPC_PORT = 49601
ANY_HOST = "0.0.0.0"
CONFIG = """
[sample.source]
class = FileSource
read_file = {source}
[sample.sink]
class = FileSink
write_file = {sink}
[hardware]
preset = E320
serial_num = {serial}
"""


def missing_packages():
    """Debian packages that have to be installed before it can run."""
    return [package for module, package in NEEDED.items()
            if importlib.util.find_spec(module) is None]


class RPCServer:
    """Stand-in for `mprpc.RPCServer`: serves the MessagePack-RPC calls of each connection."""

    def __init__(self, *_arguments, **_options):
        self.client_host = None

    def __call__(self, connection, address):
        import msgpack
        unpacker = msgpack.Unpacker(raw=False, strict_map_key=False)
        while data := connection.recv(65536):
            unpacker.feed(data)
            for _kind, call_id, method, arguments in unpacker:
                # Calls do not overlap: gevent switches connections while one waits for bytes.
                self.client_host = address[0]
                error, result = None, None
                try:
                    result = getattr(self, method)(*arguments)
                except Exception as problem:  # pylint: disable=broad-except
                    error = f"{type(problem).__name__}: {problem}"
                connection.sendall(msgpack.packb([1, call_id, error, result]))


def install_stand_ins():
    """What the simulator imports and Debian does not have."""
    mprpc = types.ModuleType("mprpc")
    mprpc.RPCServer = RPCServer
    mprpc.exceptions = types.ModuleType("mprpc.exceptions")
    mprpc.exceptions.RPCError = RuntimeError
    sys.modules["mprpc"] = mprpc
    sys.modules["mprpc.exceptions"] = mprpc.exceptions
    sys.modules[HARDWARE] = types.ModuleType(HARDWARE)
    import usrp_mpm
    # Whoever asks again at run time finds that there is no hardware.
    sys.modules[HARDWARE] = None
    return usrp_mpm


def mend_libraries():
    """What fails on today's libraries or keeps a test waiting.

    `get_links` no longer takes a list. A missing mender artifact would be a nil in a string map.
    A sink is closed only when the next stream begins: what it got has to be in its file before.
    Hosts write the register of the flush's time-out, which real endpoints have and it does not.
    UHD asks for the temperature of the board and for the source of time since version 4.4.
    """
    import pyroute2
    from usrp_mpm.periph_manager import base, sim
    from usrp_mpm.simulator import sample_source, sim_dboard
    from usrp_mpm.simulator.stream_ep_regs import StreamEpRegs

    write = StreamEpRegs.write
    StreamEpRegs.write = lambda self, address, value: (
        None if address == FLUSH_TIMEOUT else write(self, address, value))

    board = sim_dboard.SimulatedCatalinaDboard
    for sensors in (board.rx_sensor_callback_map, board.tx_sensor_callback_map):
        sensors["ad9361_temperature"] = "temperature"
    board.temperature = lambda _self, _channel: {
        "name": "temp_ad9361", "type": "REALNUM", "unit": "C", "value": "30.0"}

    sim.sim.get_time_source = lambda _self: "internal"

    get_links = pyroute2.IPRoute.get_links
    pyroute2.IPRoute.get_links = lambda self, index=0, **options: get_links(
        self, index[0] if isinstance(index, list) else index, **options)

    def no_artifact(*_arguments, **_options):
        raise FileNotFoundError("no mender artifact")
    base.get_mender_artifact = no_artifact

    def open_unbuffered(path, mode):
        return open(path, mode, buffering=0 if "w" in mode else -1)
    sample_source.open = open_unbuffered


def main():
    """Serves until it is killed."""
    source, sink = sys.argv[1:]
    usrp_mpm = install_stand_ins()
    from usrp_mpm import rpc_server
    from usrp_mpm.discovery import spawn_discovery_process
    mend_libraries()
    usrp_mpm.get_main_logger(use_console=True, use_journal=False, console_color=False)
    state = usrp_mpm.mpmtypes.SharedState()
    with tempfile.NamedTemporaryFile("w") as config:
        config.write(CONFIG.format(source=source, sink=sink, serial=SERIAL))
        config.flush()
        # The function that starts this process swaps two arguments in UHD 4.3.
        serve = rpc_server._rpc_server_process  # pylint: disable=protected-access
        calls = multiprocessing.Process(target=serve, args=(state, RPC_PORT, {"config": config.name}))
        calls.start()
        servers = [calls, spawn_discovery_process(state, ANY_HOST)]
        for server in servers:
            server.join()


if __name__ == "__main__":
    main()
