"""Memory that no process has: only the control group of the box counts it.

The environment allows 64M of memory and 16M on disk.
"""

IN_FLIGHT = """
import os, signal, socket
signal.alarm(60)
sender, receiver = socket.socketpair()
for _ in range(40):
    file = os.memfd_create("held")
    os.write(file, bytes(8 << 20))
    socket.send_fds(sender, [b"x"], [file])
    os.close(file)
print("all there")
"""
"""Memory files that wait in a socket, which is none of the places where the watch looks."""


def test_memory_in_a_socket(call):
    """The kernel ends the whole box if it needs more memory before that of the socket is free."""
    done = call(IN_FLIGHT)
    assert (done.returncode, done.stdout) == (-9, "")
