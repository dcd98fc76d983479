/*
 * Faults on demand: a library to preload that counts the calls by which a process changes files, and at a
 * chosen one kills the process, cuts the power, or lets the call fail.
 *
 *   process ──► write, fsync, rename, … ──► here ──► outside FAULTS_ROOT: the kernel, untouched
 *                                            └────► inside: call number N ──► kill | fail | shorten | the kernel
 *
 * One counter serves the whole process, all threads included, and one lock makes counted calls strictly serial,
 * so that "before call N" means the same in every run of a deterministic program.
 *
 *   FAULTS_ROOT=folder       only calls on this folder and what is below it count; without it nothing happens
 *   FAULTS_COUNT_FILE=file   mapped, and always up to date: four native 64-bit numbers (struct report)
 *   FAULTS_ONLY=class        only this class counts: write, sync, open or name. `open` then includes opening
 *                            for reading, which otherwise does not count
 *   FAULTS_KILL_AT=N         SIGKILL just before call N is carried out
 *   FAULTS_STOP_AT=N         SIGSTOP just before call N is carried out; whoever waits for that does the rest
 *   FAULTS_TORN=1            if call N is a write, its first half still reaches the file
 *   FAULTS_CUT=1             at the kill the power goes too: what was not synced is lost
 *   FAULTS_CUT_AT_EXIT=1     the power goes just after the process has ended by itself; its exit code stands
 *   FAULTS_LIE=1             syncs report success and do nothing: the control that a cut must expose
 *   FAULTS_ERROR_AT=N        call N fails, with FAULTS_ERRNO = ENOSPC, EIO, EMFILE, EDQUOT or EACCES
 *   FAULTS_ERROR_COUNT=M     and so do the calls after it, M in all, or `forever`; 1 if not given
 *   FAULTS_SHORT_AT=N        if call N is a write of two bytes or more, only its first half is written
 *
 * The simulated power cut. For every file below the root, what a change overwrote and the size it changed are
 * kept until a sync of that file succeeds. At the cut they are put back, last change first: each file is then
 * what it was at its last sync. Together with FAULTS_TORN, half of the last write is applied after that, as if
 * it had overtaken all others on its way to the disk. What this takes for granted:
 *
 *   - creating, renaming and removing names is ordered and durable at once; only content can be lost;
 *   - what was written before this process started, or by other processes, is durable;
 *   - changes through shared mappings are not seen. SQLite maps its `-shm` file, which a restart after a real
 *     power cut would not find in use; such files are removed at the cut;
 *   - one process at a time works below the root while FAULTS_CUT is in use.
 *
 * What is not seen at all: system calls that do not go through libc's functions (rustix without its feature
 * `use-libc`, io_uring), output through C's stdio, `mkstemp` and the like inside libc, and static binaries.
 *
 * The environment is cleared of the above when the process starts: its children run without faults.
 *
 * One trap shaped this file: closing any descriptor of a file drops all POSIX locks that the process holds on
 * it, SQLite's included. Descriptors opened here for the undo log are therefore never closed.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 8 && sizeof(long) == 8, "offsets are passed in one register");

enum class { ANY, WRITE, SYNC, OPEN, NAME };

struct report {
    _Atomic uint64_t calls;     /* counted so far */
    _Atomic uint64_t faults;    /* kills, cuts, errors and shortened writes so far */
    _Atomic uint64_t lost;      /* changes that a cut took back */
    _Atomic uint64_t untracked; /* changes that a cut could not have taken back */
};

static struct {
    bool active, torn, cut, cut_at_exit, power_is_off, lie;
    enum class only;
    uint64_t kill_at, stop_at, error_at, error_count, short_at;
    int error;
    char root[PATH_MAX];
    size_t root_length;
} settings;

static struct report unmapped;
static struct report *report = &unmapped;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* libc's own `syscall`: every call from here goes through it, so none comes back to this library. */
static long (*raw)(long number, ...);

/* ── settings ───────────────────────────────────────────────────────────────────────────────────────────── */

/* A harness whose faults are silently off would be green for nothing. */
static _Noreturn void refuse(const char *what, const char *value)
{
    char message[PATH_MAX + 128];
    int length = snprintf(message, sizeof message, "faults: %s: %s\n", what, value);
    raw(SYS_write, 2, message, (size_t)length);
    raw(SYS_exit_group, 97);
    __builtin_unreachable();
}

static bool flag(const char *name)
{
    const char *value = getenv(name);
    if (value && strcmp(value, "1") != 0) refuse(name, value);
    return value != NULL;
}

static uint64_t number(const char *name, uint64_t missing)
{
    const char *value = getenv(name);
    if (!value) return missing;
    if (strcmp(name, "FAULTS_ERROR_COUNT") == 0 && strcmp(value, "forever") == 0) return UINT64_MAX;
    char *end;
    errno = 0;
    unsigned long long parsed = strtoull(value, &end, 10);
    if (errno || end == value || *end || parsed == 0) refuse(name, value);
    return parsed;
}

static int choice(const char *name, const char *const names[], const int values[])
{
    const char *value = getenv(name);
    if (!value) return 0;
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], value) == 0) return values[i];
    refuse(name, value);
}

static bool path_of(int fd, char path[PATH_MAX])
{
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long length = raw(SYS_readlinkat, AT_FDCWD, link, path, (size_t)(PATH_MAX - 1));
    if (length < 0) return false;
    path[length] = 0;
    return true;
}

static void read_root(const char *root)
{
    long fd = raw(SYS_openat, AT_FDCWD, root, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0 || !path_of((int)fd, settings.root)) refuse("FAULTS_ROOT is no folder", root);
    raw(SYS_close, (int)fd);
    settings.root_length = strlen(settings.root);
}

static void map_report(const char *file)
{
    long fd = raw(SYS_openat, AT_FDCWD, file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || raw(SYS_ftruncate, (int)fd, sizeof *report) < 0) refuse("FAULTS_COUNT_FILE", file);
    void *mapped = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
    if (mapped == MAP_FAILED) refuse("FAULTS_COUNT_FILE", file);
    raw(SYS_close, (int)fd);
    report = mapped;
}

static void unlock_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
}

static void read_settings(void)
{
    static const char *const classes[] = {"write", "sync", "open", "name", NULL};
    static const int class_values[] = {WRITE, SYNC, OPEN, NAME};
    static const char *const errors[] = {"ENOSPC", "EIO", "EMFILE", "EDQUOT", "EACCES", NULL};
    static const int error_values[] = {ENOSPC, EIO, EMFILE, EDQUOT, EACCES};
    static const char *const names[] = {
        "FAULTS_ROOT", "FAULTS_COUNT_FILE", "FAULTS_ONLY", "FAULTS_KILL_AT", "FAULTS_TORN", "FAULTS_CUT",
        "FAULTS_CUT_AT_EXIT", "FAULTS_LIE", "FAULTS_ERROR_AT", "FAULTS_ERRNO", "FAULTS_ERROR_COUNT",
        "FAULTS_SHORT_AT", "FAULTS_STOP_AT", "LD_PRELOAD",
    };

    raw = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    const char *root = getenv("FAULTS_ROOT");
    if (!root) return;
    read_root(root);
    settings.only = (enum class)choice("FAULTS_ONLY", classes, class_values);
    settings.kill_at = number("FAULTS_KILL_AT", 0);
    settings.stop_at = number("FAULTS_STOP_AT", 0);
    settings.error_at = number("FAULTS_ERROR_AT", 0);
    settings.error_count = number("FAULTS_ERROR_COUNT", 1);
    settings.short_at = number("FAULTS_SHORT_AT", 0);
    settings.error = choice("FAULTS_ERRNO", errors, error_values);
    settings.torn = flag("FAULTS_TORN");
    settings.cut_at_exit = flag("FAULTS_CUT_AT_EXIT");
    settings.cut = flag("FAULTS_CUT") || settings.cut_at_exit;
    settings.lie = flag("FAULTS_LIE");
    if (settings.error_at && !settings.error) refuse("FAULTS_ERROR_AT", "needs FAULTS_ERRNO");
    const char *file = getenv("FAULTS_COUNT_FILE");
    if (file) map_report(file);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    pthread_atfork(NULL, NULL, unlock_in_child);
    settings.active = true;
}

/* Other libraries may change files before this one's constructor has run. */
__attribute__((constructor)) static void begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int saved = errno;
    pthread_once(&once, read_settings);
    errno = saved;
}

/* ── what is inside the root ────────────────────────────────────────────────────────────────────────────── */

static bool inside(const char *path)
{
    return strncmp(path, settings.root, settings.root_length) == 0 &&
           (path[settings.root_length] == '/' || path[settings.root_length] == 0);
}

static bool fd_inside(int fd)
{
    char path[PATH_MAX];
    return path_of(fd, path) && inside(path);
}

/* The path with all links and dots resolved but for its last name, which need not exist yet. */
static bool resolve(int folder, const char *path, char resolved[PATH_MAX])
{
    char parent[PATH_MAX];
    size_t length = path ? strlen(path) : 0;
    if (length == 0 || length >= PATH_MAX) return false;
    memcpy(parent, path, length + 1);
    while (length > 1 && parent[length - 1] == '/') parent[--length] = 0;
    char *slash = strrchr(parent, '/');
    const char *name = path + (slash ? slash + 1 - parent : 0);
    size_t name_length = length - (size_t)(name - path);
    if (strcmp(slash ? slash + 1 : parent, "..") == 0 || strcmp(slash ? slash + 1 : parent, ".") == 0)
        name_length = 0;
    else if (!slash)
        strcpy(parent, ".");
    else
        slash[slash == parent] = 0;

    long fd = raw(SYS_openat, folder, parent, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0) return false;
    bool found = path_of((int)fd, resolved);
    raw(SYS_close, (int)fd);
    size_t used = found ? strlen(resolved) : 0;
    if (!found || used + name_length + 2 > PATH_MAX) return false;
    if (name_length) {
        if (resolved[used - 1] != '/') resolved[used++] = '/';
        memcpy(resolved + used, name, name_length);
        resolved[used + name_length] = 0;
    }
    return true;
}

static bool path_inside(int folder, const char *path)
{
    char resolved[PATH_MAX];
    return resolve(folder, path, resolved) && inside(resolved);
}

static bool ends_in_shm(const char *path)
{
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, "-shm") == 0;
}

/* ── the undo log of the power cut ──────────────────────────────────────────────────────────────────────── */

struct file {
    dev_t device;
    ino_t number;
    int fd; /* readable and writable, kept to the end, so that the number cannot come to mean another file */
    struct file *next;
};

struct change {
    struct file *file;
    off_t size;    /* of the file before */
    off_t at;      /* where the bytes below were */
    size_t length; /* how many they are */
    struct change *older;
    char bytes[];
};

struct name {
    struct name *next;
    char path[];
};

static struct file *files;
static struct change *newest;
static struct name *mapped_files;

static struct file *known_file(const struct stat *stat)
{
    for (struct file *file = files; file; file = file->next)
        if (file->device == stat->st_dev && file->number == stat->st_ino) return file;
    return NULL;
}

static struct file *add_file(const struct stat *stat, long fd)
{
    struct file *file = fd < 0 ? NULL : malloc(sizeof *file);
    if (!file) return NULL;
    *file = (struct file){stat->st_dev, stat->st_ino, (int)fd, files};
    return files = file;
}

/* Keeps what the given range of a file holds, before it is changed. */
static void keep(struct file *file, off_t size, off_t at, size_t length)
{
    size_t present = at >= size ? 0 : (size_t)(size - at) < length ? (size_t)(size - at) : length;
    struct change *change = file ? malloc(sizeof *change + present) : NULL;
    if (!change) {
        report->untracked++;
        return;
    }
    *change = (struct change){file, size, at, present, newest};
    for (size_t done = 0; done < present;) {
        long got = raw(SYS_pread64, file->fd, change->bytes + done, present - done, at + (off_t)done);
        if (got <= 0) {
            report->untracked++;
            free(change);
            return;
        }
        done += (size_t)got;
    }
    newest = change;
}

static const off_t CURSOR = -1;

static void keep_before_change(int fd, off_t at, size_t length)
{
    struct stat stat;
    char path[PATH_MAX];
    if (!settings.cut || !path_of(fd, path) || ends_in_shm(path)) return;
    if (raw(SYS_fstat, fd, &stat) < 0 || !S_ISREG(stat.st_mode)) return;
    struct file *file = known_file(&stat);
    if (!file) {
        char link[40];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        file = add_file(&stat, raw(SYS_openat, AT_FDCWD, link, O_RDWR | O_CLOEXEC, 0));
    }
    if (at == CURSOR) {
        bool appends = raw(SYS_fcntl, fd, F_GETFL) & O_APPEND;
        at = appends ? stat.st_size : raw(SYS_lseek, fd, (off_t)0, SEEK_CUR);
    }
    keep(file, stat.st_size, at, length);
}

/* The same for a file that is about to be cut to a length by its path, while it is not open. */
static void keep_before_truncation(int folder, const char *path, off_t length, int flags)
{
    struct stat stat;
    int follow = flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0;
    if (!settings.cut || ends_in_shm(path)) return;
    if (raw(SYS_newfstatat, folder, path, &stat, follow) < 0 || !S_ISREG(stat.st_mode)) return;
    struct file *file = known_file(&stat);
    if (!file) file = add_file(&stat, raw(SYS_openat, folder, path, O_RDWR | O_CLOEXEC, 0));
    keep(file, stat.st_size, length, SIZE_MAX);
}

/* A sync succeeded: there is no way back for this file, or, without one, for any. */
static void forget(const struct file *file)
{
    for (struct change **place = &newest; *place;) {
        struct change *change = *place;
        if (file && change->file != file) {
            place = &change->older;
            continue;
        }
        *place = change->older;
        free(change);
    }
}

static void cut_power(void)
{
    for (struct change *change = newest; change; change = change->older) {
        for (size_t done = 0; done < change->length;) {
            long put = raw(SYS_pwrite64, change->file->fd, change->bytes + done, change->length - done,
                           change->at + (off_t)done);
            if (put <= 0) break;
            done += (size_t)put;
        }
        if (raw(SYS_ftruncate, change->file->fd, change->size) < 0) report->untracked++;
        report->lost++;
    }
    newest = NULL;
    for (struct name *name = mapped_files; name; name = name->next)
        raw(SYS_unlinkat, AT_FDCWD, name->path, 0);
}

/* ── the fate of a call ─────────────────────────────────────────────────────────────────────────────────── */

struct fate {
    bool killed, shortened;
    int error;
};

/* Counts a call and holds the lock until `leave`, so that no other call comes between. */
static struct fate enter(enum class class)
{
    struct fate fate = {0};
    pthread_mutex_lock(&lock);
    if (settings.power_is_off) fate.error = EIO;
    if (settings.power_is_off || (settings.only != ANY && settings.only != class)) return fate;
    uint64_t call = ++report->calls;
    fate.killed = call == settings.kill_at;
    fate.shortened = call == settings.short_at && class == WRITE;
    if (settings.error_at && call >= settings.error_at && call - settings.error_at < settings.error_count)
        fate.error = settings.error;
    if (fate.killed || fate.error || call == settings.stop_at) report->faults++;
    if (call == settings.stop_at) raw(SYS_kill, (int)raw(SYS_getpid), SIGSTOP);
    return fate;
}

static void leave(void)
{
    pthread_mutex_unlock(&lock);
}

static _Noreturn void end(void)
{
    raw(SYS_kill, (int)raw(SYS_getpid), SIGKILL);
    for (;;) raw(SYS_sched_yield);
}

static _Noreturn void kill_here(void)
{
    if (settings.cut) cut_power();
    end();
}

/* Carries a call out, unless its fate is another one. `before` runs just before it. */
#define GATED(class, is_inside, before, call)                   \
    ({                                                          \
        long gated_result;                                      \
        int gated_errno = errno;                                \
        begin();                                                \
        if (!settings.active || !(is_inside)) {                 \
            errno = gated_errno;                                \
            gated_result = (call);                              \
        } else {                                                \
            struct fate gated_fate = enter(class);              \
            if (gated_fate.killed) kill_here();                 \
            if (gated_fate.error) {                             \
                errno = gated_fate.error;                       \
                gated_result = -1;                              \
            } else {                                            \
                before;                                         \
                errno = gated_errno;                            \
                gated_result = (call);                          \
            }                                                   \
            leave();                                            \
        }                                                       \
        gated_result;                                           \
    })

/* ── writes ─────────────────────────────────────────────────────────────────────────────────────────────── */

static long put(int fd, const struct iovec *parts, int count, off_t at)
{
    if (at != CURSOR) {
        if (count == 1) return raw(SYS_pwrite64, fd, parts->iov_base, parts->iov_len, at);
        return raw(SYS_pwritev, fd, parts, (long)count, at, 0L);
    }
    if (count == 1) return raw(SYS_write, fd, parts->iov_base, parts->iov_len);
    return raw(SYS_writev, fd, parts, (long)count);
}

static long put_half(int fd, const struct iovec *parts, int count, off_t at, size_t total)
{
    char *bytes = malloc(total);
    if (!bytes) return -1;
    size_t done = 0;
    for (int i = 0; i < count; i++) {
        memcpy(bytes + done, parts[i].iov_base, parts[i].iov_len);
        done += parts[i].iov_len;
    }
    struct iovec half = {bytes, total / 2};
    long result = put(fd, &half, 1, at);
    free(bytes);
    return result;
}

static ssize_t change_content(int fd, const struct iovec *parts, int count, off_t at)
{
    int saved = errno;
    begin();
    if (!settings.active || count < 0 || count > IOV_MAX || !fd_inside(fd)) {
        errno = saved;
        return put(fd, parts, count, at);
    }
    size_t total = 0;
    for (int i = 0; i < count; i++) total += parts[i].iov_len;
    struct fate fate = enter(WRITE);
    if (fate.killed) {
        if (settings.cut) cut_power();
        if (settings.torn && total > 1) put_half(fd, parts, count, at, total);
        end();
    }
    long result = -1;
    if (fate.error) {
        errno = fate.error;
    } else {
        keep_before_change(fd, at, total);
        errno = saved;
        if (fate.shortened && total > 1) {
            report->faults++;
            result = put_half(fd, parts, count, at, total);
        } else {
            result = put(fd, parts, count, at);
        }
    }
    leave();
    return result;
}

ssize_t write(int fd, const void *bytes, size_t length)
{
    return change_content(fd, &(struct iovec){(void *)bytes, length}, 1, CURSOR);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return change_content(fd, parts, count, CURSOR);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at)
{
    /* A negative offset must not be taken for the cursor. */
    if (at < 0) return errno = EINVAL, -1;
    return change_content(fd, &(struct iovec){(void *)bytes, length}, 1, at);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at)
{
    if (at < 0) return errno = EINVAL, -1;
    return change_content(fd, parts, count, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { return pwrite64(fd, bytes, length, at); }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { return pwritev64(fd, parts, count, at); }

int ftruncate64(int fd, off64_t length)
{
    return (int)GATED(WRITE, fd_inside(fd), keep_before_change(fd, length < 0 ? 0 : length, SIZE_MAX),
                      raw(SYS_ftruncate, fd, length));
}

int truncate64(const char *path, off64_t length)
{
    return (int)GATED(WRITE, path_inside(AT_FDCWD, path),
                      keep_before_truncation(AT_FDCWD, path, length < 0 ? 0 : length, 0),
                      raw(SYS_truncate, path, length));
}

int fallocate64(int fd, int mode, off64_t at, off64_t length)
{
    /* Some modes move what comes after the range. */
    return (int)GATED(WRITE, fd_inside(fd), keep_before_change(fd, at < 0 ? 0 : at, SIZE_MAX),
                      raw(SYS_fallocate, fd, mode, at, length));
}

int posix_fallocate64(int fd, off64_t at, off64_t length)
{
    int saved = errno;
    int error = fallocate64(fd, 0, at, length) < 0 ? errno : 0;
    errno = saved;
    return error;
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned flags)
{
    return GATED(WRITE, fd_inside(to), keep_before_change(to, to_at ? *to_at : CURSOR, length),
                 raw(SYS_copy_file_range, from, from_at, to, to_at, length, flags));
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t length)
{
    return GATED(WRITE, fd_inside(to), keep_before_change(to, CURSOR, length),
                 raw(SYS_sendfile, to, from, at, length));
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }
int truncate(const char *path, off_t length) { return truncate64(path, length); }
int fallocate(int fd, int mode, off_t at, off_t length) { return fallocate64(fd, mode, at, length); }
int posix_fallocate(int fd, off_t at, off_t length) { return posix_fallocate64(fd, at, length); }
ssize_t sendfile(int to, int from, off_t *at, size_t length) { return sendfile64(to, from, at, length); }

/* ── syncs ──────────────────────────────────────────────────────────────────────────────────────────────── */

static long sync_content(int fd, long number)
{
    struct stat stat;
    if (settings.lie && fd_inside(fd)) return 0;
    long result = raw(number, fd);
    if (result < 0 || !settings.cut) return result;
    if (number == SYS_syncfs) {
        forget(NULL);
    } else if (raw(SYS_fstat, fd, &stat) == 0) {
        struct file *file = known_file(&stat);
        if (file) forget(file);
    }
    return result;
}

int fsync(int fd) { return (int)GATED(SYNC, fd_inside(fd), , sync_content(fd, SYS_fsync)); }
int fdatasync(int fd) { return (int)GATED(SYNC, fd_inside(fd), , sync_content(fd, SYS_fdatasync)); }
int syncfs(int fd) { return (int)GATED(SYNC, fd_inside(fd), , sync_content(fd, SYS_syncfs)); }

/* ── opening ────────────────────────────────────────────────────────────────────────────────────────────── */

/* Says whether an open counts, and notes files that will be mapped. */
static bool opening_counts(int folder, const char *path, uint64_t flags)
{
    bool changes = flags & (O_CREAT | O_TRUNC) || (flags & O_TMPFILE) == O_TMPFILE;
    if (!changes && settings.only != OPEN) return false;
    char resolved[PATH_MAX];
    if (!resolve(folder, path, resolved) || !inside(resolved)) return false;
    if (settings.cut && ends_in_shm(resolved)) {
        struct name *name = malloc(sizeof *name + strlen(resolved) + 1);
        if (name) {
            strcpy(name->path, resolved);
            pthread_mutex_lock(&lock);
            name->next = mapped_files;
            mapped_files = name;
            pthread_mutex_unlock(&lock);
        }
    }
    return true;
}

static void keep_before_opening(int folder, const char *path, uint64_t flags)
{
    if (flags & O_TRUNC) keep_before_truncation(folder, path, 0, (int)flags);
}

static int open_file(int folder, const char *path, int flags, mode_t mode)
{
    return (int)GATED(OPEN, opening_counts(folder, path, (uint64_t)flags),
                      keep_before_opening(folder, path, (uint64_t)flags),
                      raw(SYS_openat, folder, path, flags, mode));
}

static long open_how(int folder, const char *path, const struct open_how *how, size_t size)
{
    return GATED(OPEN, how && opening_counts(folder, path, how->flags),
                 keep_before_opening(folder, path, how->flags), raw(SYS_openat2, folder, path, how, size));
}

#define WITH_MODE(call)                                                            \
    mode_t mode = 0;                                                               \
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {                     \
        va_list rest;                                                              \
        va_start(rest, flags);                                                     \
        mode = (mode_t)va_arg(rest, int);                                          \
        va_end(rest);                                                              \
    }                                                                              \
    return call;

int open(const char *path, int flags, ...) { WITH_MODE(open_file(AT_FDCWD, path, flags, mode)) }
int open64(const char *path, int flags, ...) { WITH_MODE(open_file(AT_FDCWD, path, flags, mode)) }
int openat(int folder, const char *path, int flags, ...) { WITH_MODE(open_file(folder, path, flags, mode)) }
int openat64(int folder, const char *path, int flags, ...) { WITH_MODE(open_file(folder, path, flags, mode)) }
int creat(const char *path, mode_t mode) { return open_file(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

/* What programs call that were compiled with _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags) { return open_file(AT_FDCWD, path, flags, 0); }
int __open64_2(const char *path, int flags) { return open_file(AT_FDCWD, path, flags, 0); }
int __openat_2(int folder, const char *path, int flags) { return open_file(folder, path, flags, 0); }
int __openat64_2(int folder, const char *path, int flags) { return open_file(folder, path, flags, 0); }

/* ── names and attributes ───────────────────────────────────────────────────────────────────────────────── */

#define BY_PATH(folder, path, ...) (int)GATED(NAME, path_inside(folder, path), , raw(__VA_ARGS__))
#define BY_FD(fd, ...) (int)GATED(NAME, fd_inside(fd), , raw(__VA_ARGS__))

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags)
{
    return (int)GATED(NAME, path_inside(from_folder, from) || path_inside(to_folder, to), ,
                      raw(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    return renameat2(from_folder, from, to_folder, to, 0);
}

int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int unlinkat(int folder, const char *path, int flags)
{
    return BY_PATH(folder, path, SYS_unlinkat, folder, path, flags);
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdirat(int folder, const char *path, mode_t mode)
{
    return BY_PATH(folder, path, SYS_mkdirat, folder, path, mode);
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    return BY_PATH(to_folder, to, SYS_linkat, from_folder, from, to_folder, to, flags);
}

int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int symlinkat(const char *target, int folder, const char *path)
{
    return BY_PATH(folder, path, SYS_symlinkat, target, folder, path);
}

int symlink(const char *target, const char *path) { return symlinkat(target, AT_FDCWD, path); }

int setxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    return BY_PATH(AT_FDCWD, path, SYS_setxattr, path, name, value, size, flags);
}

int lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
    return BY_PATH(AT_FDCWD, path, SYS_lsetxattr, path, name, value, size, flags);
}

int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    return BY_FD(fd, SYS_fsetxattr, fd, name, value, size, flags);
}

int removexattr(const char *path, const char *name)
{
    return BY_PATH(AT_FDCWD, path, SYS_removexattr, path, name);
}

int lremovexattr(const char *path, const char *name)
{
    return BY_PATH(AT_FDCWD, path, SYS_lremovexattr, path, name);
}

int fremovexattr(int fd, const char *name) { return BY_FD(fd, SYS_fremovexattr, fd, name); }
int fchmod(int fd, mode_t mode) { return BY_FD(fd, SYS_fchmod, fd, mode); }
int fchown(int fd, uid_t owner, gid_t group) { return BY_FD(fd, SYS_fchown, fd, owner, group); }

int fchmodat(int folder, const char *path, mode_t mode, int flags)
{
    /* The older call takes no flags; the newer one does, and says so itself where it does not know them. */
    if (flags == 0) return BY_PATH(folder, path, SYS_fchmodat, folder, path, mode);
    return BY_PATH(folder, path, 452 /* fchmodat2 */, folder, path, mode, flags);
}

int chmod(const char *path, mode_t mode) { return fchmodat(AT_FDCWD, path, mode, 0); }

int utimensat(int folder, const char *path, const struct timespec times[2], int flags)
{
    return BY_PATH(folder, path, SYS_utimensat, folder, path, times, flags);
}

int futimens(int fd, const struct timespec times[2]) { return BY_FD(fd, SYS_utimensat, fd, NULL, times, 0); }

/* Sharing the blocks of another file is writing this one; every other request goes its way. */
int ioctl(int fd, unsigned long request, ...)
{
    va_list rest;
    va_start(rest, request);
    long argument = va_arg(rest, long);
    va_end(rest);
    bool writes = request == FICLONE || request == FICLONERANGE;
    return (int)GATED(WRITE, writes && fd_inside(fd), keep_before_change(fd, 0, SIZE_MAX),
                      raw(SYS_ioctl, fd, request, argument));
}

/* ── the rest ───────────────────────────────────────────────────────────────────────────────────────────── */

/* Newer calls often have no function of their own in libc and come by their number. */
long syscall(long number, ...)
{
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(rest, long);
    va_end(rest);
    switch (number) {
    case SYS_openat2:
        return open_how((int)a[0], (const char *)a[1], (const struct open_how *)a[2], (size_t)a[3]);
    case SYS_renameat2:
        return renameat2((int)a[0], (const char *)a[1], (int)a[2], (const char *)a[3], (unsigned)a[4]);
    case SYS_syncfs:
        return syncfs((int)a[0]);
    case SYS_fsync:
        return fsync((int)a[0]);
    case SYS_fdatasync:
        return fdatasync((int)a[0]);
    case SYS_fchmodat:
        return fchmodat((int)a[0], (const char *)a[1], (mode_t)a[2], 0);
    case 452 /* fchmodat2 */:
        return fchmodat((int)a[0], (const char *)a[1], (mode_t)a[2], (int)a[3]);
    case SYS_fchmod:
        return fchmod((int)a[0], (mode_t)a[1]);
    case SYS_mkdirat:
        return mkdirat((int)a[0], (const char *)a[1], (mode_t)a[2]);
    case SYS_unlinkat:
        return unlinkat((int)a[0], (const char *)a[1], (int)a[2]);
    case SYS_linkat:
        return linkat((int)a[0], (const char *)a[1], (int)a[2], (const char *)a[3], (int)a[4]);
    case SYS_symlinkat:
        return symlinkat((const char *)a[0], (int)a[1], (const char *)a[2]);
    case SYS_ftruncate:
        return ftruncate((int)a[0], (off_t)a[1]);
    case SYS_ioctl:
        return ioctl((int)a[0], (unsigned long)a[1], a[2]);
    case SYS_copy_file_range:
        return copy_file_range((int)a[0], (off64_t *)a[1], (int)a[2], (off64_t *)a[3], (size_t)a[4], (unsigned)a[5]);
    default:
        begin();
        return raw(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}

__attribute__((destructor)) static void finish(void)
{
    if (!settings.active || !settings.cut_at_exit) return;
    pthread_mutex_lock(&lock);
    if (!settings.power_is_off) {
        settings.power_is_off = true;
        report->faults++;
        cut_power();
    }
    pthread_mutex_unlock(&lock);
}

_Noreturn void _exit(int code)
{
    begin();
    finish();
    raw(SYS_exit_group, code);
    __builtin_unreachable();
}

_Noreturn void _Exit(int code) { _exit(code); }
