# Whether the emulated radio runs with the command and the options of its service: bash radio.bash
set -e
. /etc/default/millstream
[ -n "$RADIO" ]
start=$(sed -n 's/^ExecStart=//p' /lib/systemd/system/millstream-radio.service)
# The options are several words, as for systemd.
eval "$start --duration 1s"
