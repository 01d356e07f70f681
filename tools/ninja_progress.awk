# Ninja's output for a log: of the lines "[124/230] Building ..." one for every tenth of the work, of the others all.
match($0, /^\[[0-9]+\/[0-9]+\] /) {
  split(substr($0, 2, RLENGTH - 3), count, "/")
  tenth = int(10 * count[1] / count[2])
  if (tenth > shown || count[1] == count[2]) {
    shown = tenth
    sub(/CMakeFiles\/[^ ]*\.dir\//, "")
    print substr($0, 1, 120)
    fflush()
  }
  next
}
!/^ninja: Entering directory/ { print; fflush() }
