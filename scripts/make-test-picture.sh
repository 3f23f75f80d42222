#!/usr/bin/env bash
# Makes the transport stream that `millstream demo` transmits: a test picture, a running clock and a tone.
# The result is committed (crates/cli/assets/test-picture.ts), so that the demo needs no ffmpeg to transmit.
set -euo pipefail
out=${1:-crates/cli/assets/test-picture.ts}
font=/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf
box="fontfile=$font:fontcolor=white:box=1:boxcolor=black@1:boxborderw=14"
ffmpeg -hide_banner -loglevel error -y \
  -f lavfi -i "smptehdbars=size=1280x720:rate=30000/1001" \
  -f lavfi -i "sine=frequency=1000:sample_rate=48000" \
  -filter_complex "[0:v]drawtext=$box:fontsize=96:x=(w-tw)/2:y=150:text='MILLSTREAM',\
drawtext=$box:fontsize=52:x=(w-tw)/2:y=310:text='8-VSB first light   %{pts\:hms}',\
drawtext=$box:fontsize=36:x=mod(200*t\,w):y=640:text='\>\>\>'[v]" \
  -map "[v]" -map 1:a -t 10 \
  -c:v mpeg2video -pix_fmt yuv420p -b:v 500k -maxrate 2M -bufsize 1M -g 15 -bf 2 -qmin 3 \
  -c:a ac3 -b:a 96k -ac 2 \
  -f mpegts -mpegts_service_id 1 -pcr_period 20 -muxdelay 0.1 -muxpreload 0.1 \
  -metadata service_provider=Millstream -metadata service_name="First light" \
  -flags +bitexact -fflags +bitexact "$out"
ls -l "$out"
