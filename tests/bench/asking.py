"""An upstream and callers for a gateway that is looked at alone: plain requests, whatever they take."""
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


def ask(port, times, connections):
    """So many requests on each of some connections, all of them at once."""
    request = b"GET /api/hello HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n"
    streams = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(connections)]
    for _ in range(times):
        for stream in streams:
            stream.sendall(request)
        for stream in streams:
            answer = b""
            while b"\r\n\r\n" not in answer or len(answer) < answer.index(b"\r\n\r\n") + 104:
                piece = stream.recv(65536)
                if not piece:
                    sys.exit("the gateway closed a connection: %r" % answer)
                answer += piece
            if not answer.startswith(b"HTTP/1.1 200"):
                sys.exit("the gateway answered: %r" % answer)
    for stream in streams:
        stream.close()
