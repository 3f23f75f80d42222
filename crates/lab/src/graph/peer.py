"""Runs chains of GNU Radio blocks: a request per line on standard input, an answer per line."""

import json
import os
import resource
import sys
import time

from gnuradio import blocks, filter, gr

SIZES = {"float": gr.sizeof_float, "complex": gr.sizeof_gr_complex}


def stage(kernel, item):
    if kernel == "copy":
        return blocks.copy(SIZES[item])
    if kernel == "multiply":
        if item == "float":
            return blocks.multiply_const_ff(1.001)
        return blocks.multiply_const_cc(0.8 + 0.6j)
    taps = [1.0 / 16] * 16
    return filter.fir_filter_fff(1, taps) if item == "float" else filter.fir_filter_ccf(1, taps)


def measure(request):
    os.sched_setaffinity(0, request["cpus"])
    kernel, item = request["kernel"], request["item"]
    top, sinks = gr.top_block(), []
    for _ in range(request["pipes"]):
        sinks.append(blocks.null_sink(SIZES[item]))
        stages = [stage(kernel, item) for _ in range(request["stages"])]
        top.connect(blocks.null_source(SIZES[item]), *stages, sinks[-1])
    top.start()
    time.sleep(request["warm_up_s"])

    def look():
        usage = resource.getrusage(resource.RUSAGE_SELF)
        cpu, switches = usage.ru_utime + usage.ru_stime, usage.ru_nvcsw + usage.ru_nivcsw
        return time.monotonic(), sum(sink.nitems_read(0) for sink in sinks), cpu, switches

    before = look()
    time.sleep(request["time_s"])
    after = look()
    top.stop()
    top.wait()
    return dict(zip(["seconds", "items", "cpu_s", "switches"], (b - a for a, b in zip(before, after))))


print(json.dumps({"version": gr.version()}), flush=True)
for line in sys.stdin:
    print(json.dumps(measure(json.loads(line))), flush=True)
