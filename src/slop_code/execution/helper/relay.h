/* Relay between boxes of two kernels: its frames, and both of its ends. */
#ifndef RELAY_H
#define RELAY_H
#include "helper.h"

#include <sys/ioctl.h>
#include <termios.h>

#define STREAMS 3
#define MAX_RELAYED 1024
#define WINDOW 65536u /* as a pipe has */
#define CHUNK 16384u
#define MAX_PACKET sizeof(struct usage)
#define MAX_FRAME (8u << 20) /* Linux takes at most 6 MiB of arguments and environment */

enum frame_kind { CALL_OPEN = 1, CALL_PACKET, CALL_END, STREAM_DATA, STREAM_END, STREAM_ROOM };
/* Of CALL_OPEN, in the place of the stream: the first packet of a connection, or a struct opening and its words. */
enum open_kind { OPEN_PACKET, OPEN_CALL };

struct frame { uint32_t call, kind, stream, size; };

struct terminal {
    uint32_t streams; /* a bit for each stream that is the terminal */
    struct termios settings;
    struct winsize size;
};

struct opening {
    struct request request;
    uint32_t has_one_output; /* stdout and stderr are the same file */
    struct terminal terminal;
};

struct relayed_stream {
    int fd; /* -1: it has ended here */
    int is_ending; /* the other side has sent all */
    size_t room; /* bytes that a source may send */
    size_t held; /* bytes that a sink has in its buffer */
    size_t owed; /* bytes that are passed on before the answer is */
    char *buffer;
};

struct relayed {
    uint32_t id;
    int fd; /* the connection to the launcher, or to the spawner; -1: it has ended */
    int is_ending;
    size_t packet_size; /* an answer that waits for output; 0: none does */
    char packet[MAX_PACKET];
    struct terminal terminal;
    struct relayed_stream streams[STREAMS];
};

/* relay.c */
_Noreturn void relay(int connection, int listener); /* -1: in the subject's box */
struct relayed *add_relayed(uint32_t id, int fd);
void send_frame(uint32_t call, enum frame_kind kind, uint32_t stream, const void *data, size_t size);

/* relay_ends.c */
void open_in_judge(int listener);
void open_in_subject(const struct frame *frame, const char *data);

/* relay_terminal.c */
struct terminal read_terminal(const int *fds);
void restore_terminal(const struct relayed *call);
int open_terminal(const struct terminal *terminal, int *inner);

#endif
