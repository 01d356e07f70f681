// A kernel without Landlock, for LD_PRELOAD: making a ruleset fails as it does there.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>

long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long given[6];
  for (int i = 0; i < 6; ++i) given[i] = va_arg(list, long);
  va_end(list);
  if (number == 444) {
    errno = ENOSYS;
    return -1;
  }
  long (*own)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  return own(number, given[0], given[1], given[2], given[3], given[4], given[5]);
}
