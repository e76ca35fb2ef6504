"""An upstream and callers for a gateway that is looked at alone: plain requests, whatever they take."""
import glob
import socket
import sys
import threading
import time

ANSWER = b"HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/plain\r\nContent-Length: 100\r\nX-Upstream: 1\r\n\r\n" + b"x" * 100


def upstream():
    """An upstream that answers whatever it is asked; gives its address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(stream):
        with stream:
            while (request := stream.recv(65536)):
                stream.sendall(ANSWER * request.count(b"\r\n\r\n"))

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return "127.0.0.1:%d" % listener.getsockname()[1]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def is_open(port):
    """Waits until somebody listens there."""
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.2)
    sys.exit("the gateway did not start")


def process_under(parent, tool):
    """The process under a tool of valgrind among the descendants of `parent`."""
    children = {}
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(stat) as file:
                text = file.read()
        except OSError:
            continue
        pid, rest = int(text.split(" ", 1)[0]), text.rsplit(")", 1)[1].split()
        children.setdefault(int(rest[1]), []).append(pid)
    todo = [parent]
    while todo:
        pid = todo.pop()
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            command = file.read()
        if any(tool in word for word in command.split(b"\0")[:2]):
            return pid
        todo += children.get(pid, [])
    sys.exit("no process under %s was found" % tool.decode())


class Connection:
    """A caller that keeps its connection."""

    REQUEST = b"GET /api/hello HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"

    def __init__(self, port):
        self.stream = socket.create_connection(("127.0.0.1", port), timeout=60)

    def send(self):
        self.stream.sendall(self.REQUEST)

    def receive(self):
        answer = b""
        while b"\r\n\r\n" not in answer or len(answer) < answer.index(b"\r\n\r\n") + 104:
            piece = self.stream.recv(65536)
            if not piece:
                sys.exit("the gateway closed a connection: %r" % answer)
            answer += piece
        if not answer.startswith(b"HTTP/1.1 200"):
            sys.exit("the gateway answered: %r" % answer)

    def ask(self, times):
        """So many requests, one after the other."""
        for _ in range(times):
            self.send()
            self.receive()


class Last(Connection):
    """A caller that asks once."""

    REQUEST = Connection.REQUEST[:-2] + b"Connection: close\r\n\r\n"


def ask(port, times, connections, close=False):
    """So many requests on each of some connections, all of them at once; or each on a connection of its own."""
    if close:
        for _ in range(times):
            ask_on(Last, port, 1, connections)
    else:
        ask_on(Connection, port, times, connections)


def ask_on(kind, port, times, connections):
    connections = [kind(port) for _ in range(connections)]
    for _ in range(times):
        for connection in connections:
            connection.send()
        for connection in connections:
            connection.receive()
    for connection in connections:
        connection.stream.close()
