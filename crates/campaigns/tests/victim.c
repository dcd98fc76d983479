/*
 * A small program to break. Its arguments are steps, carried out in order in the current folder; each step that
 * succeeds is acknowledged on standard output, and the first that fails ends the program with its error.
 *
 *   w:FILE:TEXT   append        p:FILE:TEXT   overwrite from the start      s:FILE      sync
 *   t:FILE:SIZE   truncate      o:FILE:TEXT   make anew with this content   r:FILE:TO   rename
 *   u:FILE        remove        x:N           N threads append one letter each, 100 times
 *   c:FILE:TO     copy          e:CODE        exit at once, without cleaning up
 *   m:FILE:MODE   permissions   y:FILE:TO     swap two names                d:NAME      make a folder
 *   l:FILE:TO     a link        f:FILE        sync the whole file system    k:FILE:TO   share blocks, if it can
 *   a:FILE        set its times                M:FILE:MODE, D:NAME   the same as m and d, by number
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int put(int fd, const char *text)
{
    long length = (long)strlen(text);
    long done = write(fd, text, (size_t)length);
    if (done >= 0 && done < length) errno = EAGAIN;
    return done == length ? 0 : -1;
}

static void *append(void *name)
{
    int fd = open(name, O_WRONLY | O_APPEND | O_CREAT, 0600);
    for (int i = 0; i < 100; i++)
        if (put(fd, "x")) exit(1);
    close(fd);
    return NULL;
}

static int threads(int count)
{
    pthread_t all[16];
    char names[16][8];
    for (int i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "x%d", i);
        pthread_create(&all[i], NULL, append, names[i]);
    }
    for (int i = 0; i < count; i++) pthread_join(all[i], NULL);
    return 0;
}

static int step(char kind, const char *name, const char *text)
{
    int fd;
    switch (kind) {
    case 'w': return (fd = open(name, O_WRONLY | O_APPEND | O_CREAT, 0600)) < 0 ? -1 : put(fd, text);
    case 'p': return (fd = open(name, O_WRONLY)) < 0 ? -1 : (int)pwrite(fd, text, strlen(text), 0) < 0 ? -1 : 0;
    case 's': return (fd = open(name, O_RDONLY)) < 0 ? -1 : fdatasync(fd);
    case 't': return (fd = open(name, O_RDWR)) < 0 ? -1 : ftruncate(fd, atol(text));
    case 'o': return (fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600)) < 0 ? -1 : put(fd, text);
    case 'r': return rename(name, text);
    case 'u': return unlink(name);
    case 'x': return threads(atoi(name));
    case 'c': {
        int from = open(name, O_RDONLY), to = open(text, O_WRONLY | O_CREAT, 0600);
        return copy_file_range(from, NULL, to, NULL, 100, 0) < 0 ? -1 : 0;
    }
    case 'm': return fchmodat(AT_FDCWD, name, (mode_t)strtol(text, NULL, 8), 0);
    case 'y': return renameat2(AT_FDCWD, name, AT_FDCWD, text, RENAME_EXCHANGE);
    case 'd': return mkdirat(AT_FDCWD, name, 0700);
    case 'l': return symlinkat(text, AT_FDCWD, name);
    /* By their numbers, as some libraries do it. */
    case 'f': return (fd = open(name, O_RDONLY)) < 0 ? -1 : (int)syscall(SYS_syncfs, fd);
    case 'M': return (int)syscall(SYS_fchmodat, AT_FDCWD, name, (mode_t)strtol(text, NULL, 8));
    case 'D': return (int)syscall(SYS_mkdirat, AT_FDCWD, name, 0700);
    case 'a': return utimensat(AT_FDCWD, name, NULL, 0);
    case 'k': {
        int from = open(name, O_RDONLY), to = open(text, O_WRONLY | O_CREAT, 0600);
        /* Not every file system can; that it was asked is what counts. */
        return from < 0 || to < 0 ? -1 : (ioctl(to, FICLONE, from), 0);
    }
    case 'e': _exit(atoi(name));
    default: return errno = EINVAL, -1;
    }
}

int main(int count, char **steps)
{
    for (int i = 1; i < count; i++) {
        char *name = strchr(steps[i], ':') + 1;
        char *text = strchr(name, ':');
        if (text) *text++ = 0;
        if (step(*steps[i], name, text)) {
            dprintf(1, "%s\n", strerrorname_np(errno));
            return 1;
        }
        char line[16];
        snprintf(line, sizeof line, "%d\n", i);
        if (put(1, line)) return 2;
    }
    return 0;
}
