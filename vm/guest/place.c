/* Places in the world that PID 1 mounts over or writes to.
 *
 * What lies there is the choice of an image, or of root in an earlier run of the session. A link on
 * the way would lead PID 1 into the toolkit, so it walks name by name, follows none, and what is
 * not what it must be makes way. */
#include "guest.h"

#define ASIDE_MAX 100
#define NOREPLACE 1 /* RENAME_NOREPLACE of linux/fs.h */

/* A link or special file holds nothing; a file or folder keeps its bytes under another name. */
static bool make_way(int parent, const char *name, mode_t mode) {
    char aside[NAME_MAX + 16];
    dprintf(2, "CLOCHE %s is in the way of a mount and was moved\n", name);
    if (!S_ISREG(mode) && !S_ISDIR(mode)) return !unlinkat(parent, name, 0);
    for (unsigned n = 1; n <= ASIDE_MAX; n++) {
        snprintf(aside, sizeof aside, "%s.moved-%u", name, n);
        if (!syscall(SYS_renameat2, parent, name, parent, aside, NOREPLACE)) return true;
        if (errno != EEXIST) return false;
    }
    return false;
}

static int step(int parent, const char *name, bool folder) {
    struct stat st;
    int fd = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT) return -1;
    if (fd >= 0) {
        bool right = !fstat(fd, &st) && (folder ? S_ISDIR(st.st_mode) : S_ISREG(st.st_mode));
        if (right) return fd;
        close(fd);
        if (!make_way(parent, name, st.st_mode)) return -1;
    }
    if (folder ? mkdirat(parent, name, 0755) : mknodat(parent, name, S_IFREG | 0644, 0)) return -1;
    return openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

/* Opens (O_PATH) a folder or a plain file below `root`, made where it is missing; -1 with errno. */
int place(int root, const char *path, bool folder) {
    char name[NAME_MAX + 1];
    int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
    for (size_t n; at >= 0 && *path; path += n + strspn(path + n, "/")) {
        n = strcspn(path, "/");
        int parent = at, whole = snprintf(name, sizeof name, "%.*s", (int)n, path);
        at = whole < (int)sizeof name ? step(parent, name, folder || path[n]) : -1;
        int code = whole < (int)sizeof name ? errno : ENAMETOOLONG;
        close(parent);
        errno = code;
    }
    return at;
}

/* Makes a new plain file in a folder below `root` in the place of whatever has that name; returns
 * it open for writing, or -1 with errno. */
int place_fresh(int root, const char *folder, const char *name) {
    struct stat st;
    int parent = place(root, folder, true);
    if (parent < 0) return -1;
    if (!fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode))
        make_way(parent, name, st.st_mode);
    else unlinkat(parent, name, 0);
    int fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    int code = errno;
    close(parent);
    errno = code;
    return fd;
}
