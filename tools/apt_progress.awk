# What apt-get does, in about ten lines: awk -v planned=NUMBER_OF_PACKAGES -f apt_progress.awk
/^Setting up / {
  done++
  if (planned > 0 && int(10 * done / planned) > shown) {
    shown = int(10 * done / planned)
    printf "setup: [%d/%d] %s\n", done, planned, $3
    fflush()
  }
}
/^Need to get|^E:|^dpkg: error/ { print "setup: " $0; fflush() }
