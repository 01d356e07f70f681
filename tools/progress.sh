#!/usr/bin/env bash
# Makes a short log of a long output, line by line as it comes. (Not awk: Debian's waits until it has read 4096 bytes.)
#   ninja ... | tools/progress.sh ninja            one of the lines "[124/230] Building ..." for every tenth of the work, and all others
#   apt-get ... | tools/progress.sh apt PACKAGES   "[12/83] name" for every tenth of so many packages, sizes and errors
#   pip ... | tools/progress.sh pip                large downloads, what is installed, errors
set -uo pipefail
kind=$1
total=${2:-0}
shown=0
count=0

# Shows a line when another tenth is reached: show_tenth COUNT TOTAL TEXT
show_tenth() {
  local tenth=$((10 * $1 / ($2 > 0 ? $2 : 1)))
  if [ "$2" != "$total" ]; then total=$2 shown=0; fi
  if [ "$tenth" -gt "$shown" ]; then
    shown=$tenth
    printf '[%d/%d] %.110s\n' "$1" "$2" "$3"
  fi
}

while IFS= read -r line; do
  case "$kind" in
    ninja)
      if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ (.*) ]]; then
        show_tenth "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"
      elif [[ $line != "ninja: Entering directory"* ]]; then
        printf '%s\n' "$line"
      fi ;;
    apt)
      case "$line" in
        "Setting up "*) count=$((count + 1)) line=${line#Setting up }; show_tenth "$count" "$total" "${line%% *}" ;;
        "Need to get"*|E:*|"dpkg: error"*) printf '%s\n' "$line" ;;
      esac ;;
    pip)
      if [[ $line =~ [0-9]\ [GM]B\) || $line == Installing* || $line == ERROR* ]]; then printf '%.160s\n' "${line#"${line%%[! ]*}"}"; fi ;;
  esac
done
