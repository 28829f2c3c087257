/* A gettimeofday whose answers are off by as many microseconds as the file that FAKEWALL names says at the moment. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long offset(void) {
  const char *path = getenv("FAKEWALL");
  int fd = path ? open(path, O_RDONLY) : -1;
  if (fd < 0) return 0;
  char text[32] = {0};
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  return n > 0 ? atoll(text) : 0;
}

int gettimeofday(struct timeval *tv, void *tz) {
  struct timespec now;
  (void)tz;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  long long us = now.tv_sec * 1000000LL + now.tv_nsec / 1000 + offset();
  tv->tv_sec = us / 1000000;
  tv->tv_usec = us % 1000000;
  return 0;
}
