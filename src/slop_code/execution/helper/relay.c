/* Relay: calls between two boxes that do not have the same kernel, so that no descriptor can be sent from one to the
 * other. `docs/explanation/isolation.md` describes it.
 *
 * The relay of the judge's box takes the place of the spawner: it accepts launchers. The relay of the subject's box,
 * a thread of the spawner, takes the place of the launchers: it makes pipes, and passes them to the spawner. Between
 * them is one connection with a frame for each event. A call has a connection, whose packets are passed on unchanged,
 * and three streams: a source is read here, a sink is written here. A sink has room for WINDOW bytes, and its source
 * sends no more than that ahead, so that no stream stops another one, and a full one stops its writer.
 * An answer of the spawner is passed on after all that the call wrote before its end.
 * A terminal of the tests becomes a terminal of the subject's kernel, and is raw until the call ends. */
#include "relay.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static struct relayed *calls[MAX_RELAYED];
static int call_count, peer, is_judge;
static char *outgoing, incoming[sizeof(struct frame) + MAX_FRAME];
static size_t outgoing_size, incoming_size;

void send_frame(uint32_t call, enum frame_kind kind, uint32_t stream, const void *data, size_t size) {
    struct frame frame = {call, kind, stream, (uint32_t)size};
    char *grown = realloc(outgoing, outgoing_size + sizeof frame + size);
    if (!grown) die("no memory for a call");
    outgoing = grown;
    memcpy(outgoing + outgoing_size, &frame, sizeof frame);
    if (size > 0) memcpy(outgoing + outgoing_size + sizeof frame, data, size);
    outgoing_size += sizeof frame + size;
}

struct relayed *add_relayed(uint32_t id, int fd) {
    struct relayed *call = call_count < MAX_RELAYED ? calloc(1, sizeof *call) : NULL;
    if (!call) return NULL;
    call->id = id, call->fd = fd;
    for (int i = 0; i < STREAMS; i++) call->streams[i] = (struct relayed_stream){.fd = -1, .room = WINDOW};
    return calls[call_count++] = call;
}

static void close_stream(struct relayed_stream *stream) {
    if (stream->fd >= 0) close(stream->fd);
    free(stream->buffer);
    stream->fd = -1, stream->buffer = NULL, stream->held = stream->owed = 0;
}

static void end_stream(struct relayed *call, uint32_t number) {
    close_stream(&call->streams[number]);
    send_frame(call->id, STREAM_END, number, NULL, 0);
}

/* Output goes on after the end of a call: a process that it left may still write. A terminal is closed, as it has no
 * end otherwise. */
static void close_connection(struct relayed *call) {
    close(call->fd);
    call->fd = -1, call->packet_size = 0;
    if (is_judge) restore_terminal(call);
    for (uint32_t i = 0; i < STREAMS; i++)
        if (call->terminal.streams & 1u << i) close_stream(&call->streams[i]);
    if (is_judge) close_stream(&call->streams[0]);
    else call->streams[0].is_ending = 1;
}

/* A stream is a source where its bytes come from: stdin in the judge's box, output in the subject's box. */
static int is_source(uint32_t number) { return (number == 0) == is_judge; }

static void read_source(struct relayed *call, uint32_t number) {
    char data[CHUNK];
    struct relayed_stream *stream = &call->streams[number];
    ssize_t got = read(stream->fd, data, stream->room < CHUNK ? stream->room : CHUNK);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) {
        end_stream(call, number);
        return;
    }
    stream->room -= (size_t)got;
    stream->owed -= stream->owed < (size_t)got ? stream->owed : (size_t)got;
    send_frame(call->id, STREAM_DATA, number, data, (size_t)got);
}

/* A pipe that is ready for writing takes PIPE_BUF bytes at once, and a terminal one: writing does not block. */
static void write_sink(struct relayed *call, uint32_t number) {
    struct relayed_stream *stream = &call->streams[number];
    size_t most = call->terminal.streams & 1u << number ? 1 : PIPE_BUF;
    ssize_t wrote = write(stream->fd, stream->buffer, stream->held < most ? stream->held : most);
    if (wrote < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (wrote < 0) {
        end_stream(call, number);
        return;
    }
    uint32_t written = (uint32_t)wrote;
    memmove(stream->buffer, stream->buffer + written, stream->held -= written);
    stream->owed -= stream->owed < written ? stream->owed : written;
    send_frame(call->id, STREAM_ROOM, number, &written, sizeof written);
}

/* Keeps an answer of the spawner until what the call has written is passed on. */
static void keep_packet(struct relayed *call, const void *data, size_t size) {
    memcpy(call->packet, data, size);
    call->packet_size = size;
    for (int i = 1; i < STREAMS; i++) {
        struct relayed_stream *stream = &call->streams[i];
        int unread = 0;
        if (stream->fd >= 0 && !is_judge && ioctl(stream->fd, FIONREAD, &unread) != 0) unread = 0;
        stream->owed = is_judge ? stream->held : (size_t)unread;
    }
}

static void pass_packet(struct relayed *call) {
    if (call->packet_size == 0 || call->streams[1].owed > 0 || call->streams[2].owed > 0) return;
    if (is_judge) send(call->fd, call->packet, call->packet_size, MSG_NOSIGNAL | MSG_DONTWAIT);
    else send_frame(call->id, CALL_PACKET, 0, call->packet, call->packet_size);
    call->packet_size = 0;
    if (call->is_ending) close_connection(call);
}

static void read_connection(struct relayed *call) {
    char data[MAX_PACKET];
    ssize_t got = recv(call->fd, data, sizeof data, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0 && is_judge) send_frame(call->id, CALL_PACKET, 0, data, (size_t)got);
    else if (got > 0) keep_packet(call, data, (size_t)got);
    else close_connection(call), send_frame(call->id, CALL_END, 0, NULL, 0);
}

static void take_data(struct relayed_stream *stream, const char *data, size_t size) {
    if (stream->fd < 0) return;
    if (!stream->buffer) stream->buffer = malloc(WINDOW);
    errno = 0;
    if (!stream->buffer || size > WINDOW - stream->held) die("the other box sent more than there is room for");
    memcpy(stream->buffer + stream->held, data, size);
    stream->held += size;
}

/* Frames of the subject's box are as trustworthy as its kernel: every number is checked. */
static void take_frame(const struct frame *frame, const char *data) {
    struct relayed *call = NULL;
    for (int i = 0; i < call_count && !call; i++)
        if (calls[i]->id == frame->call) call = calls[i];
    if (frame->kind == CALL_OPEN && !is_judge && !call) open_in_subject(frame, data);
    if (!call || frame->stream >= STREAMS) return;
    struct relayed_stream *stream = &call->streams[frame->stream];
    if (frame->kind == CALL_PACKET && call->fd >= 0 && frame->size > 0 && frame->size <= MAX_PACKET) {
        if (is_judge) keep_packet(call, data, frame->size);
        else send(call->fd, data, frame->size, MSG_NOSIGNAL | MSG_DONTWAIT);
    } else if (frame->kind == CALL_END && call->fd >= 0) {
        if (is_judge && call->packet_size > 0) call->is_ending = 1;
        else close_connection(call);
    } else if (frame->kind == STREAM_DATA && !is_source(frame->stream)) {
        take_data(stream, data, frame->size);
    } else if (frame->kind == STREAM_END) {
        if (is_source(frame->stream)) close_stream(stream);
        else stream->is_ending = 1;
    } else if (frame->kind == STREAM_ROOM && is_source(frame->stream) && frame->size == sizeof(uint32_t)) {
        uint32_t written;
        memcpy(&written, data, sizeof written);
        stream->room = written < WINDOW - stream->room ? stream->room + written : WINDOW;
    }
}

static void read_peer(void) {
    ssize_t got = read(peer, incoming + incoming_size, sizeof incoming - incoming_size);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) exit(0); /* the other box is gone */
    incoming_size += (size_t)got;
    size_t at = 0;
    for (struct frame frame; incoming_size - at >= sizeof frame; at += sizeof frame + frame.size) {
        memcpy(&frame, incoming + at, sizeof frame);
        errno = 0;
        if (frame.size > MAX_FRAME) die("the other box sent too large a frame");
        if (incoming_size - at < sizeof frame + frame.size) break;
        take_frame(&frame, incoming + at + sizeof frame);
    }
    memmove(incoming, incoming + at, incoming_size -= at);
}

static void write_peer(void) {
    ssize_t wrote = outgoing_size > 0 ? send(peer, outgoing, outgoing_size, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
    if (wrote > 0) memmove(outgoing, outgoing + wrote, outgoing_size -= (size_t)wrote);
}

static void watch_call(const struct relayed *call, struct pollfd *watched) {
    watched[0] = (struct pollfd){call->packet_size > 0 ? -1 : call->fd, POLLIN, 0};
    for (uint32_t i = 0; i < STREAMS; i++) {
        const struct relayed_stream *stream = &call->streams[i];
        int is_full = is_source(i) && stream->room == 0;
        /* A sink that has nothing to write is watched for the end of its reader. */
        short events = is_source(i) ? POLLIN : stream->held > 0 ? POLLOUT : 0;
        watched[1 + i] = (struct pollfd){is_full ? -1 : stream->fd, events, 0};
    }
}

static void handle_call(struct relayed *call, const struct pollfd *watched) {
    for (uint32_t i = 0; i < STREAMS; i++) {
        struct relayed_stream *stream = &call->streams[i];
        if (!watched[1 + i].revents || stream->fd < 0) continue;
        if (is_source(i)) read_source(call, i);
        else if (stream->held > 0) write_sink(call, i);
        else if (watched[1 + i].revents & (POLLERR | POLLNVAL)) end_stream(call, i);
    }
    if (watched[0].revents && call->fd >= 0) read_connection(call);
}

/* Closes what has ended, and forgets calls of which nothing is left. */
static void settle_calls(void) {
    for (int i = call_count - 1; i >= 0; i--) {
        int open = calls[i]->fd >= 0;
        for (int j = 0; j < STREAMS; j++) {
            struct relayed_stream *stream = &calls[i]->streams[j];
            if (stream->is_ending && stream->held == 0) close_stream(stream);
            open |= stream->fd >= 0;
        }
        if (calls[i]->fd >= 0) pass_packet(calls[i]);
        if (open) continue;
        free(calls[i]);
        calls[i] = calls[--call_count];
    }
}

_Noreturn void relay(int connection, int listener) {
    static struct pollfd watched[2 + MAX_RELAYED * (1 + STREAMS)];
    peer = connection, is_judge = listener >= 0;
    for (;;) {
        int count = call_count;
        watched[0] = (struct pollfd){peer, (short)(POLLIN | (outgoing_size > 0 ? POLLOUT : 0)), 0};
        watched[1] = (struct pollfd){listener, POLLIN, 0};
        for (int i = 0; i < count; i++) watch_call(calls[i], watched + 2 + i * (1 + STREAMS));
        if (poll(watched, (nfds_t)(2 + count * (1 + STREAMS)), -1) < 0 && errno != EINTR) die("cannot wait for calls");
        for (int i = 0; i < count; i++) handle_call(calls[i], watched + 2 + i * (1 + STREAMS));
        if (watched[0].revents & (POLLIN | POLLHUP | POLLERR)) read_peer();
        if (watched[1].revents) open_in_judge(listener);
        settle_calls();
        write_peer();
    }
}
