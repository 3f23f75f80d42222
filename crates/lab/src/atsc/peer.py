"""GNU Radio's ATSC receiver on recordings: a request per line on standard input, an answer per line."""

import json
import os
import resource
import sys
import time

from gnuradio import blocks, dtv, gr


def receive(request):
    os.sched_setaffinity(0, request["cpus"])
    top = gr.top_block()
    # Its gain control expects levels of some thousands, as 16-bit samples have them.
    top.connect(blocks.file_source(gr.sizeof_short, request["in"], False),
                blocks.interleaved_short_to_complex(False, False, 1.0),
                dtv.atsc_rx(request["rate_hz"], request["samples_per_symbol"]),
                blocks.file_sink(1, request["out"]))

    def look():
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return time.monotonic(), usage.ru_utime + usage.ru_stime

    before = look()
    top.run()
    after = look()
    return {"wall_s": after[0] - before[0], "cpu_s": after[1] - before[1]}


print(json.dumps({"version": gr.version()}), flush=True)
for line in sys.stdin:
    print(json.dumps(receive(json.loads(line))), flush=True)
