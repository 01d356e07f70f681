// Ends the process at its n-th call that changes or reads a file, as if the machine had been cut off there: for LD_PRELOAD.
//   HOLDFAST_KILL_AT=12      the process ends just before its twelfth call; half of a write is still written first
//   HOLDFAST_KILL_AT=0       it runs to its end and says on standard error how many calls there were
// Calls of the program's start, before main, do not count: they are the dynamic linker's and the libraries'.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long calls;
static long kill_at = -1;
static atomic_int started;

static void end(void) {
  syscall(SYS_kill, getpid(), SIGKILL);
}

// Whether the process ends at this call.
static int is_last(void) {
  if (!started) return 0;
  return atomic_fetch_add(&calls, 1) + 1 == kill_at;
}

// From here on calls count; an empty number kills at none.
void begin_killing_at(const char* call) {
  kill_at = call == NULL || *call == '\0' ? -1 : atol(call);
  calls = 0;
  started = 1;
}

__attribute__((constructor)) static void start(void) {
  begin_killing_at(getenv("HOLDFAST_KILL_AT"));
}

// How the program ends: without destructors, so that one of ours would not run.
void _Exit(int code) {
  if (kill_at == 0) fprintf(stderr, "file calls: %ld\n", (long)calls);
  _exit(code);
}

#define OWN(name) (__typeof__(&name))dlsym(RTLD_NEXT, #name)

// Only what opens for writing counts.
#define OPEN(name)                                                                  \
  int name(const char* path, int flags, ...) {                                      \
    va_list more;                                                                   \
    va_start(more, flags);                                                          \
    const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(more, mode_t) : 0; \
    va_end(more);                                                                   \
    if ((flags & (O_WRONLY | O_RDWR)) && is_last()) end();                          \
    return (OWN(name))(path, flags, mode);                                          \
  }
OPEN(open)
OPEN(open64)

ssize_t write(int file, const void* data, size_t size) {
  if (file > 2 && is_last()) {
    (OWN(write))(file, data, size / 2);
    end();
  }
  return (OWN(write))(file, data, size);
}

#define CALL(result, name, declared, given) \
  result name declared {                    \
    if (is_last()) end();                   \
    return (OWN(name))given;                \
  }
CALL(int, rename, (const char* from, const char* to), (from, to))
CALL(int, unlink, (const char* path), (path))
CALL(int, unlinkat, (int folder, const char* path, int flags), (folder, path, flags))
CALL(int, remove, (const char* path), (path))
CALL(int, rmdir, (const char* path), (path))
CALL(int, mkdir, (const char* path, mode_t mode), (path, mode))
CALL(int, fsync, (int file), (file))
CALL(int, ftruncate, (int file, off_t size), (file, size))
CALL(int, flock, (int file, int operation), (file, operation))
