#!/usr/bin/python3
# A fake of OpenSSH's SFTP server on Windows: OpenSSH's own server, with the names of drive C:. It changes the paths in the packets
# (draft-ietf-secsh-filexfer-02) and nothing else. A path without a drive does not exist.
import os, struct, subprocess, sys, threading

PLACE = os.path.dirname(os.path.abspath(sys.argv[0]))
DRIVE = os.path.realpath(os.path.join(PLACE, "drives", "C:"))
ONE_PATH, TWO_PATHS, REALPATH, NAME = {3, 7, 9, 11, 13, 14, 15, 16, 17, 19}, {18, 20}, 16, 104
questions = set()


def read(stream):
    head = stream.read(4)
    return stream.read(struct.unpack(">I", head)[0]) if len(head) == 4 else None


def write(stream, packet):
    stream.write(struct.pack(">I", len(packet)) + packet)
    stream.flush()


def take_text(packet, at):
    (length,) = struct.unpack_from(">I", packet, at)
    return packet[at + 4 : at + 4 + length], at + 4 + length


def text(of):
    return struct.pack(">I", len(of)) + of


def from_windows(path):
    if path[:4].upper() == b"/C:/" or path[:4].upper() == b"/C:":
        return DRIVE.encode() + path[3:]
    return path if not path.startswith(b"/") else b"/nonexistent" + path


def to_windows(path):
    return b"/C:" + path[len(DRIVE) :] if path.startswith(DRIVE.encode()) else path


def answers(server):
    while (packet := read(server.stdout)) is not None:
        if packet[0] == NAME and packet[1:5] in questions:
            questions.discard(packet[1:5])
            path, end = take_text(packet, 9)
            packet = packet[:9] + text(to_windows(path)) + packet[end:]
        write(sys.stdout.buffer, packet)
    os._exit(0)


server = subprocess.Popen(["/usr/lib/openssh/sftp-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
threading.Thread(target=answers, args=(server,), daemon=True).start()
while (packet := read(sys.stdin.buffer)) is not None:
    if packet[0] == REALPATH:
        questions.add(packet[1:5])
    at, paths = 5, b""
    for _ in range(2 if packet[0] in TWO_PATHS else packet[0] in ONE_PATH):
        path, at = take_text(packet, at)
        paths += text(from_windows(path))
    write(server.stdin, packet[:5] + paths + packet[at:])
