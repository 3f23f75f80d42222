#!/usr/bin/python3
"""Holds our CHDR codec against UHD's own (`uhd.chdr`, Debian package python3-uhd), both ways.

  our packets:   chdr_vectors emits them with their meaning, UHD's codec has to read the same
  UHD's packets: UHD's codec encodes random ones, chdr_vectors has to read the same from them

Every packet type at every CHDR width, each field compared. One exception: above W = 64 UHD 4.3
writes the padding of the last management item behind the end of its buffer and corrupts its heap,
so management packets at those widths are checked in the first direction only.

Usage: peers/chdr_oracle.py [--count N] [--seed S]
Exit status: 0 agreed, 1 did not, 77 skipped because a needed program is not there.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys

from common import ROOT, SKIPPED, example

try:
    from uhd import chdr
except ImportError as error:
    print(f"skipped: no uhd.chdr for {sys.executable} ({error}); Debian package python3-uhd")
    sys.exit(SKIPPED)

WIDTHS = {64: chdr.ChdrWidth.W64, 128: chdr.ChdrWidth.W128,
          256: chdr.ChdrWidth.W256, 512: chdr.ChdrWidth.W512}
MGMT, STRS, STRC, CTRL, DATA, DATA_TS = 0, 1, 2, 4, 6, 7
HEADER_FIELDS = {"vc": "vc", "eob": "eob", "eov": "eov", "num_mdata": "num_mdata",
                 "seq": "seq_num", "length": "length", "dst_epid": "dst_epid"}
# Our names for the fields of a payload, and UHD's.
STRS_FIELDS = {"src_epid": "src_epid", "status": "status", "capacity_bytes": "capacity_bytes",
               "capacity_packets": "capacity_pkts", "count_packets": "xfer_count_pkts",
               "count_bytes": "xfer_count_bytes", "buffer_info": "buff_info",
               "error_info": "status_info"}
STRC_FIELDS = {"src_epid": "src_epid", "op": "op_code", "op_data": "op_data",
               "packets": "num_pkts", "bytes": "num_bytes"}
CTRL_FIELDS = {"src_epid": "src_epid", "dst_port": "dst_port", "src_port": "src_port",
               "ctrl_seq": "seq_num", "is_ack": "is_ack", "timestamp": "timestamp",
               "address": "address", "byte_enables": "byte_enable", "op": "op_code",
               "status": "status"}


def plain(value):
    """A field of UHD's as JSON has it: enums as their numbers."""
    return value if value is None or isinstance(value, bool) else int(value)


def read_fields(source, names):
    return {ours: plain(getattr(source, theirs)) for ours, theirs in names.items()}


# UHD's codec reads: the meaning of a packet in the schema of chdr_vectors.

def read_op(op):
    code, operand = int(op.op_code), op.get_op_payload()
    out = {"code": code}
    if code == 2:
        out["port"] = chdr.MgmtOpSelDest.parse(operand).dest
    elif code == 5:
        info = chdr.MgmtOpNodeInfo.parse(operand)
        out.update(device_id=info.device_id, node_type=info.node_type,
                   instance=info.node_inst, extended=info.ext_info)
    elif code in (6, 7, 8):
        cfg = chdr.MgmtOpCfg.parse(operand)
        out.update(address=cfg.addr, value=cfg.data)
    return out


def read_mgmt(packet):
    mgmt = packet.get_payload_mgmt()
    hops = [mgmt.get_hop(h) for h in range(mgmt.get_num_hops())]
    ops = [[read_op(hop.get_op(o)) for o in range(hop.get_num_ops())] for hop in hops]
    return {"src_epid": mgmt.src_epid, "version": mgmt.proto_ver, "hops": ops}


def read(packet_bytes, width):
    packet = chdr.ChdrPacket.deserialize(WIDTHS[width], packet_bytes)
    header = packet.get_header()
    kind = int(header.pkt_type)
    out = {"hex": packet_bytes.hex(), "width": width, "type": kind}
    out.update(read_fields(header, HEADER_FIELDS))
    if kind == MGMT:
        out.update(read_mgmt(packet))
    elif kind == STRS:
        out.update(read_fields(packet.get_payload_strs(), STRS_FIELDS))
    elif kind == STRC:
        out.update(read_fields(packet.get_payload_strc(), STRC_FIELDS))
    elif kind == CTRL:
        ctrl = packet.get_payload_ctrl()
        out.update(read_fields(ctrl, CTRL_FIELDS), data=list(ctrl.get_data()))
    else:
        lanes = packet.get_metadata()
        out.update(timestamp=packet.get_timestamp(),
                   metadata=b"".join(lane.to_bytes(8, "little") for lane in lanes).hex(),
                   payload=bytes(packet.get_payload_bytes()).hex())
    return out


# UHD's codec writes: a random packet and what was put into it.

def bits(rng, count):
    """A value of that many bits, now and then at its limits."""
    return rng.choice([0, (1 << count) - 1] + 14 * [rng.getrandbits(count)])


def random_ctrl(rng):
    fields = {"src_epid": bits(rng, 16), "dst_port": bits(rng, 10), "src_port": bits(rng, 10),
              "ctrl_seq": bits(rng, 6), "is_ack": rng.random() < 0.5,
              "timestamp": rng.choice([None, bits(rng, 64)]), "address": bits(rng, 20),
              "byte_enables": bits(rng, 4),
              "op": rng.choice([int(op) for op in chdr.CtrlOpCode.__members__.values()]),
              "status": rng.randrange(4)}
    payload = chdr.CtrlPayload()
    for ours, theirs in CTRL_FIELDS.items():
        enum = {"op": chdr.CtrlOpCode, "status": chdr.CtrlStatus}.get(ours, lambda value: value)
        setattr(payload, theirs, enum(fields[ours]))
    data = [bits(rng, 32) for _ in range(rng.randint(1, 15))]
    payload.set_data(data)
    return payload, dict(fields, data=data)


def random_strs(rng):
    fields = {"src_epid": bits(rng, 16), "status": rng.randrange(5),
              "capacity_bytes": bits(rng, 40), "capacity_packets": bits(rng, 24),
              "count_packets": bits(rng, 40), "count_bytes": bits(rng, 64),
              "buffer_info": bits(rng, 16), "error_info": bits(rng, 48)}
    payload = chdr.StrsPayload()
    for ours, theirs in STRS_FIELDS.items():
        value = fields[ours]
        setattr(payload, theirs, chdr.StrsStatus(value) if ours == "status" else value)
    return payload, fields


def random_strc(rng):
    fields = {"src_epid": bits(rng, 16), "op": rng.randrange(3), "op_data": bits(rng, 4),
              "packets": bits(rng, 40), "bytes": bits(rng, 64)}
    payload = chdr.StrcPayload()
    for ours, theirs in STRC_FIELDS.items():
        value = fields[ours]
        setattr(payload, theirs, chdr.StrcOpCode(value) if ours == "op" else value)
    return payload, fields


def random_op(rng):
    code = rng.randrange(9)
    kind, out = chdr.MgmtOpCode(code), {"code": code}
    if code == 2:
        out["port"] = bits(rng, 16)
        return chdr.MgmtOp(kind, chdr.MgmtOpSelDest(out["port"])), out
    if code == 5:
        node_type = rng.randrange(16)
        # Only bits that the type defines: a parser need not keep the others.
        extended = bits(rng, {1: 16, 2: 15, 3: 8}.get(node_type, 18))
        out.update(device_id=bits(rng, 16), node_type=node_type, instance=bits(rng, 10),
                   extended=extended)
        info = chdr.MgmtOpNodeInfo(out["device_id"], node_type, out["instance"], extended)
        return chdr.MgmtOp(kind, info), out
    if code in (6, 7, 8):
        out.update(address=bits(rng, 16), value=0 if code == 7 else bits(rng, 32))
        return chdr.MgmtOp(kind, chdr.MgmtOpCfg(out["address"], out["value"])), out
    return chdr.MgmtOp(kind), out


def random_mgmt(rng, width):
    fields = {"src_epid": bits(rng, 16), "version": bits(rng, 16), "hops": []}
    payload = chdr.MgmtPayload()
    payload.set_header(fields["src_epid"], fields["version"], WIDTHS[width])
    for _ in range(rng.randint(1, 6)):
        hop, meanings = chdr.MgmtHop(), []
        for _ in range(rng.randint(1, 7)):
            op, meaning = random_op(rng)
            hop.add_op(op)
            meanings.append(meaning)
        payload.add_hop(hop)
        fields["hops"].append(meanings)
    return payload, fields


def random_data(rng, width, header):
    """The constructor widens each byte of `metadata`, which is signed, to a 64-bit lane."""
    lanes = bytes(rng.randrange(128) for _ in range(width // 64 * rng.choice([0, 0, 1, 31])))
    payload = rng.randbytes(rng.randint(1, 800))
    timed = rng.random() < 0.5
    header.pkt_type = chdr.PacketType.DATA_WITH_TS if timed else chdr.PacketType.DATA_NO_TS
    ticks = bits(rng, 64) if timed else None
    more = {"timestamp": ticks} if timed else {}
    packet = chdr.ChdrPacket(WIDTHS[width], header, payload, metadata=lanes, **more)
    metadata = b"".join(lane.to_bytes(8, "little") for lane in lanes)
    return packet, {"timestamp": ticks, "metadata": metadata.hex(), "payload": payload.hex(),
                    "vc": header.vc, "eob": header.eob, "eov": header.eov,
                    "num_mdata": len(lanes) * 64 // width}


def write(rng):
    width = rng.choice(list(WIDTHS))
    kind = rng.choice([STRS, STRC, CTRL, DATA] + ([MGMT] if width == 64 else []))
    header = chdr.ChdrHeader()
    header.seq_num, header.dst_epid = bits(rng, 16), bits(rng, 16)
    out = {"width": width, "vc": 0, "eob": False, "eov": False, "num_mdata": 0,
           "seq": header.seq_num, "dst_epid": header.dst_epid}
    if kind == DATA:
        header.vc = bits(rng, 6)
        header.eob, header.eov = rng.random() < 0.5, rng.random() < 0.5
        packet, fields = random_data(rng, width, header)
    else:
        if kind == MGMT:
            payload, fields = random_mgmt(rng, width)
        else:
            payload, fields = {STRS: random_strs, STRC: random_strc, CTRL: random_ctrl}[kind](rng)
        header.pkt_type = chdr.PacketType(kind)
        packet = chdr.ChdrPacket(WIDTHS[width], header, payload)
    packet_bytes = bytes(packet.serialize())
    out.update(fields, hex=packet_bytes.hex(), length=len(packet_bytes),
               type=int(packet.get_header().pkt_type))
    return out


def vectors(*args, lines=None):
    """Runs chdr_vectors and returns what it printed; its complaint is ours."""
    command = [*example("millstream-wire", "chdr_vectors"), *args]
    done = subprocess.run(command, cwd=ROOT, input=lines, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(1)
    return done.stdout.splitlines()


def tally(packets):
    """How many packets of each type at how many widths."""
    names = {MGMT: "management", STRS: "status", STRC: "command", CTRL: "control",
             DATA: "data", DATA_TS: "timed data"}
    counts = []
    for kind, name in names.items():
        widths = [packet["width"] for packet in packets if packet["type"] == kind]
        counts.append(f"{name} {len(widths)} ({len(set(widths))} widths)")
    return ", ".join(counts)


def main():
    options = argparse.ArgumentParser(description="our CHDR codec against uhd.chdr")
    options.add_argument("--count", type=int, default=2000, help="packets in each direction")
    options.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    options = options.parse_args()
    if shutil.which(example("millstream-wire", "chdr_vectors")[0]) is None:
        print("skipped: cargo is not there to build our side")
        sys.exit(SKIPPED)
    print(f"chdr oracle: seed {options.seed}", flush=True)

    ours = [json.loads(line) for line in vectors("emit", str(options.seed), str(options.count))]
    for claimed in ours:
        got = read(bytes.fromhex(claimed["hex"]), claimed["width"])
        if got != claimed:
            differing = sorted(key for key in claimed if got.get(key) != claimed[key])
            print(f"differs in {differing}\nwe say    {json.dumps(claimed)}\n"
                  f"UHD reads {json.dumps(got)}")
            sys.exit(1)

    rng = random.Random(options.seed)
    theirs = [write(rng) for _ in range(options.count)]
    agreed = vectors("check", lines="".join(json.dumps(line) + "\n" for line in theirs))
    if len(ours) != options.count or agreed != [str(options.count)]:
        print(f"lost packets: emitted {len(ours)}, checked {agreed} of {options.count}")
        sys.exit(1)
    print(f"UHD read {len(ours)} of ours: {tally(ours)}")
    print(f"we read {len(theirs)} of UHD's: {tally(theirs)}")
    print(f"chdr oracle: {len(ours) + len(theirs)} packets agreed")


if __name__ == "__main__":
    main()
