# Whether bash completes commands and options: bash complete.bash
. /usr/share/bash-completion/bash_completion
_completion_loader millstream
complete -p millstream || exit 1

# expect WANTED WORD...: what the Tab key gives behind these words of a line.
expect() {
  local wanted=$1
  shift
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMPREPLY=()
  COMP_POINT=${#COMP_LINE}
  _millstream millstream "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  echo "$*: ${COMPREPLY[*]}"
  [ "${COMPREPLY[*]}" = "$wanted" ] || exit 1
}
expect doctor millstream host doc
expect --time-scale millstream demo --tim
