/* Writes down, in order, what a process does to the files below a folder: a line for each write, cut, sync and name.
 * Preloaded into the program by tests/power_loss.rs, which plays the lines again up to some point. Each line is appended
 * by one write, so that lines of others can stand between them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FDS 4096
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *paths[FDS];

static int below(const char *path) {
    const char *root = getenv("RECORD_ROOT");
    return root && path && strncmp(path, root, strlen(root)) == 0;
}

static const char *known(int fd) { return fd >= 0 && fd < FDS ? paths[fd] : NULL; }

/* `data` is written in hexadecimal digits. */
static void say(const char *what, const char *path, long long number, const char *other, const char *data, size_t len) {
    static int log = -1;
    if (log < 0) log = (int)syscall(SYS_openat, AT_FDCWD, getenv("RECORD_LOG"), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    size_t room = strlen(path) + (other ? strlen(other) : 0) + 2 * len + 64;
    char *line = malloc(room);
    int at = snprintf(line, room, "\n#%s\t%s\t%lld\t%s\t", what, path, number, other ? other : "");
    for (size_t i = 0; i < len; i++) at += sprintf(line + at, "%02x", (unsigned char)data[i]);
    line[at++] = '\n';
    if (syscall(SYS_write, log, line, at) != at) abort();
    free(line);
}

static int opened(int fd, const char *path, int is_new) {
    int error = errno;
    if (fd >= 0 && fd < FDS && below(path)) {
        free(paths[fd]);
        paths[fd] = strdup(path);
        if (is_new) say("create", path, 0, NULL, NULL, 0);
    }
    errno = error;
    return fd;
}

static int is_missing(const char *path) { struct stat found; return stat(path, &found) != 0; }

#define OPEN(name)                                                                    \
    int name(const char *path, int flags, ...) {                                      \
        va_list rest; va_start(rest, flags);                                          \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0;     \
        va_end(rest);                                                                 \
        pthread_mutex_lock(&lock);                                                    \
        int is_new = (flags & O_CREAT) && below(path) && is_missing(path);            \
        int fd = opened(REAL(name)(path, flags, mode), path, is_new);                 \
        if (fd >= 0 && (flags & O_TRUNC) && !is_new && known(fd)) say("cut", path, 0, NULL, NULL, 0); \
        pthread_mutex_unlock(&lock);                                                  \
        return fd;                                                                    \
    }
OPEN(open)
OPEN(open64)

int close(int fd) {
    pthread_mutex_lock(&lock);
    if (known(fd)) { free(paths[fd]); paths[fd] = NULL; }
    int done = REAL(close)(fd);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t write(int fd, const void *data, size_t len) {
    if (!known(fd)) return syscall(SYS_write, fd, data, len);
    pthread_mutex_lock(&lock);
    int appends = fcntl(fd, F_GETFL) & O_APPEND;
    long long at = lseek(fd, 0, appends ? SEEK_END : SEEK_CUR);
    ssize_t done = syscall(SYS_write, fd, data, len);
    int error = errno;
    if (done > 0) say("write", paths[fd], at, NULL, data, done);
    errno = error;
    pthread_mutex_unlock(&lock);
    return done;
}

static ssize_t write_at(int fd, const void *data, size_t len, off64_t at) {
    pthread_mutex_lock(&lock);
    ssize_t done = syscall(SYS_pwrite64, fd, data, len, at);
    int error = errno;
    if (done > 0 && known(fd)) say("write", paths[fd], at, NULL, data, done);
    errno = error;
    pthread_mutex_unlock(&lock);
    return done;
}
ssize_t pwrite(int fd, const void *data, size_t len, off_t at) { return write_at(fd, data, len, at); }
ssize_t pwrite64(int fd, const void *data, size_t len, off64_t at) { return write_at(fd, data, len, at); }

static int cut(int fd, off64_t len) {
    pthread_mutex_lock(&lock);
    int done = (int)syscall(SYS_ftruncate, fd, len);
    if (done == 0 && known(fd)) say("cut", paths[fd], len, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return done;
}
int ftruncate(int fd, off_t len) { return cut(fd, len); }
int ftruncate64(int fd, off64_t len) { return cut(fd, len); }

/* A sync covers what was written before it began: nothing of ours is written meanwhile. */
static int synced(int fd, long call) {
    pthread_mutex_lock(&lock);
    int done = (int)syscall(call, fd);
    if (done == 0 && known(fd)) say("sync", paths[fd], 0, NULL, NULL, 0);
    pthread_mutex_unlock(&lock);
    return done;
}
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

#define NAMED(call, what, path, other)                              \
    pthread_mutex_lock(&lock);                                      \
    int done = (int)(call);                                         \
    if (done == 0 && below(path)) say(what, path, 0, other, NULL, 0); \
    pthread_mutex_unlock(&lock);                                    \
    return done;
int rename(const char *from, const char *to) { NAMED(syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to), "rename", from, to) }
int unlink(const char *path) { NAMED(syscall(SYS_unlinkat, AT_FDCWD, path, 0), "unlink", path, NULL) }
int mkdir(const char *path, mode_t mode) { NAMED(syscall(SYS_mkdirat, AT_FDCWD, path, mode), "mkdir", path, NULL) }
int linkat(int a, const char *from, int b, const char *to, int flags) { NAMED(syscall(SYS_linkat, a, from, b, to, flags), "link", from, to) }
