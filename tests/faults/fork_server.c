// Starts the program once, up to its main, and forks it there for every command: loading torch takes ten times as long as most
// commands of the fault tests, and so does taking its registries apart at the end, which children leave out. For the rest a child
// is a process like any other: it can be killed, confined and measured. For LD_PRELOAD, together with kill_at.c.
//   HOLDFAST_SERVER=4,5    commands are read from file 4, answers are written to file 5
// A command: a 32-bit length, then texts that end with a zero: folder, file for standard output, file for standard error,
// HOLDFAST_KILL_AT (empty: not killed), number of variables, the variables (NAME=VALUE), the arguments with the program's name.
// An answer: the child's id as 32 bits when it was started, and its wait status as 32 bits when it has ended.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int Main(int, char**, char**);
void begin_killing_at(const char* call);  // kill_at.c

static Main* program;
static int commands, answers;

static void check(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "fork_server: %s\n", what);
  _exit(120);
}

// A fork copies only the thread that calls it.
static int threads(void) {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  for (const struct dirent* task; tasks != NULL && (task = readdir(tasks)) != NULL;) count += task->d_name[0] != '.';
  if (tasks != NULL) closedir(tasks);
  return count;
}

static int read_all(void* to, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t more = read(commands, (char*)to + done, size - done);
    if (more <= 0) return 0;
    done += (size_t)more;
  }
  return 1;
}

static void answer(int32_t value) {
  check(write(answers, &value, sizeof value) == sizeof value, "nobody reads the answers");
}

static char* next(char** at) {
  char* text = *at;
  *at += strlen(text) + 1;
  return text;
}

static void redirect(const char* path, int file) {
  const int opened = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  check(opened >= 0 && dup2(opened, file) == file, "cannot open a file for the output");
  close(opened);
}

// In the child. Does not return.
static void run(char* text, const char* end) {
  close(commands);
  close(answers);
  unsetenv("LD_PRELOAD");
  unsetenv("HOLDFAST_SERVER");
  check(chdir(next(&text)) == 0, "no such folder");
  redirect(next(&text), 1);
  redirect(next(&text), 2);
  const char* call = next(&text);
  for (int variables = atoi(next(&text)); variables > 0; --variables) putenv(next(&text));
  char* arguments[256];
  int count = 0;
  while (text < end && count < 255) arguments[count++] = next(&text);
  arguments[count] = NULL;
  begin_killing_at(call);
  program(count, arguments, environ);
  check(0, "the program returned from main instead of ending the process");
}

static int serve(void) {
  check(threads() == 1, "the libraries started threads before main");
  for (uint32_t size; read_all(&size, sizeof size);) {
    char* text = malloc(size + 1);
    check(text != NULL && read_all(text, size), "half a command");
    const pid_t child = fork();
    check(child >= 0, "cannot fork");
    if (child == 0) run(text, text + size);
    free(text);
    answer(child);
    int status = 0;
    check(waitpid(child, &status, 0) == child, "lost a child");
    answer(status);
  }
  return 0;
}

static int serve_or_run(int count, char** arguments, char** environment) {
  const char* files = getenv("HOLDFAST_SERVER");
  return files != NULL && sscanf(files, "%d,%d", &commands, &answers) == 2 ? serve() : program(count, arguments, environment);
}

int __libc_start_main(Main* main, int count, char** arguments, void (*init)(void), void (*fini)(void), void (*rtld)(void), void* stack) {
  int (*start)(Main*, int, char**, void (*)(void), void (*)(void), void (*)(void), void*) = dlsym(RTLD_NEXT, "__libc_start_main");
  program = main;
  return start(serve_or_run, count, arguments, init, fini, rtld, stack);
}
