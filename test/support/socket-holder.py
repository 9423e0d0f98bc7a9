"""Holds listening sockets and starts a command with them, as systemd does: a generation for each line on standard input.

Arguments: sockets as NAME=HOST (a free port of it) or NAME=/PATH, a double hyphen, the command. Prints one line of JSON with where they listen,
and one with the process id of each generation. At the end of standard input it kills what still runs.
"""

import fcntl
import json
import os
import signal
import socket
import sys

split = sys.argv.index("--")
names, sockets, places = [], [], []
for given in sys.argv[1:split]:
    name, _, place = given.partition("=")
    if place.startswith("/"):
        held = socket.socket(socket.AF_UNIX)
        held.bind(place)
    else:
        held = socket.create_server((place, 0))
        place = "%s:%d" % held.getsockname()
    held.listen(512)
    names.append(name)
    sockets.append(held)
    places.append(place)
print(json.dumps({"places": places}), flush=True)

# What has ended leaves nothing behind.
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
children = []
for _ in sys.stdin:
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # Out of the way first: a descriptor may stand where another one has to go.
        high = [fcntl.fcntl(held.fileno(), fcntl.F_DUPFD, 50) for held in sockets]
        for i, fd in enumerate(high):
            os.dup2(fd, 3 + i, inheritable=True)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        env = dict(os.environ, LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(sockets)))
        if any(names):
            env["LISTEN_FDNAMES"] = ":".join(names)
        os.closerange(3 + len(sockets), 200)
        os.execvpe(sys.argv[split + 1], sys.argv[split + 1 :], env)
    children.append(pid)
    print(json.dumps({"pid": pid}), flush=True)
for pid in children:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
