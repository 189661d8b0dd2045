/* File descriptors: reading, writing, and sending them to another process. Also folders. */
#include "helper.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_DESCRIPTORS 8

void write_all(int fd, const void *data, size_t length) {
    for (const char *at = data; length > 0;) {
        ssize_t wrote = write(fd, at, length);
        if (wrote < 0 && errno != EINTR) die("cannot write");
        if (wrote > 0) at += wrote, length -= (size_t)wrote;
    }
}

void read_all(int fd, void *data, size_t length) {
    for (char *at = data; length > 0;) {
        ssize_t got = read(fd, at, length);
        if (got == 0) errno = 0;
        if (got == 0 || (got < 0 && errno != EINTR)) die("the input ends too early");
        if (got > 0) at += got, length -= (size_t)got;
    }
}

void make_folders(const char *path, mode_t mode) {
    char copy[4096];
    if (snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy) die("path too long: %s", path);
    for (char *slash = copy + 1; *slash; slash++) {
        if (*slash != '/') continue;
        *slash = 0;
        mkdir(copy, 0755);
        *slash = '/';
    }
    if (mkdir(copy, mode) != 0 && errno != EEXIST) die("cannot make %s", path);
}

/* SOCK_SEQPACKET: a packet is received completely or not at all, together with its descriptors. */
int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

int send_descriptors(int socket, const void *packet, size_t size, const int *descriptors, int count) {
    union { char space[CMSG_SPACE(sizeof(int) * MAX_DESCRIPTORS)]; struct cmsghdr align; } control = {{0}};
    struct iovec part = {(void *)packet, size};
    size_t bytes = sizeof(int) * (size_t)count;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = CMSG_SPACE(bytes)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(header), descriptors, bytes);
    return sendmsg(socket, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* Receives a packet with exactly `count` descriptors; returns its size, or -1. Descriptors of any other packet are
 * closed: otherwise a sender could exhaust the descriptors of this process. */
ssize_t receive_descriptors(int socket, void *packet, size_t size, int *descriptors, int count) {
    union { char space[CMSG_SPACE(sizeof(int) * MAX_DESCRIPTORS)]; struct cmsghdr align; } control;
    struct iovec part = {packet, size};
    size_t bytes = sizeof(int) * (size_t)count;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = CMSG_SPACE(bytes)};
    ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
    if (!header || header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) return -1;
    size_t received = header->cmsg_len - CMSG_LEN(0);
    memcpy(descriptors, CMSG_DATA(header), received < bytes ? received : bytes);
    if (received == bytes && !(message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) return got;
    for (size_t at = 0; at + sizeof(int) <= received; at += sizeof(int)) {
        int stray;
        memcpy(&stray, CMSG_DATA(header) + at, sizeof stray);
        close(stray);
    }
    return -1;
}
