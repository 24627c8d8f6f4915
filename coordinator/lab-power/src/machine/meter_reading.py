# Reads the meter for a few seconds through PTDaemon, as the official server does, and restores its ranges. Reads and prints a line of JSON.
# It also ends PTDaemon when it receives SIGTERM.
import json, os, signal, socket, subprocess, sys, tempfile, time

signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
request = json.loads(sys.stdin.buffer.readline())
SECONDS = 4
PATIENCE = 20
MARK = "preflight"


class Failed(Exception):
    pass


def connect(process):
    for _ in range(300):  # the official server's 30 s
        if process.poll() is not None:
            raise Failed("PTDaemon ended with code %d" % process.returncode)
        try:
            return socket.create_connection(("127.0.0.1", request["port"]), PATIENCE)
        except OSError:
            time.sleep(0.1)
    raise Failed("PTDaemon did not listen within 30 s")


def read(connection, log):
    with connection, connection.makefile("rwb") as stream:

        def command(text):
            stream.write(text.encode() + b"\r\n")
            stream.flush()
            try:
                reply = stream.readline().decode(errors="replace").strip()
            except socket.timeout:
                raise Failed("PTDaemon has not answered %s within %d s" % (text, PATIENCE))
            if not reply:
                raise Failed("PTDaemon closed the connection at " + text)
            return reply

        if command("Hello") != "Hello, PTDaemon here!":
            raise Failed("another program answers on PTDaemon's port")
        identity, ranges = command("Identify"), command("RR").split(",")
        try:
            for text in ("SR,V,Auto", "SR,A,Auto", "Go,1000,0," + MARK):
                reply = command(text)
                if "rror" in reply:
                    raise Failed("PTDaemon answers %s with: %s" % (text, reply))
            time.sleep(SECONDS)
            command("Stop")
        finally:
            # A range that was fixed is set again: Ranges,<amps auto>,<amps>,<volts auto>,<volts>.
            for kind, auto, value in (("A", 1, 2), ("V", 3, 4)):
                if len(ranges) == 5 and ranges[auto] == "0" and float(ranges[value]) > 0:
                    command("SR,%s,%s" % (kind, ranges[value]))
    with open(log, errors="replace") as file:
        return {"identity": identity, "samples": [line.strip() for line in file if MARK in line]}


def last_line(path):
    with open(path, errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    return lines[-1] if lines else "it printed nothing"


with tempfile.TemporaryDirectory() as directory:
    log, output = (os.path.join(directory, name) for name in ("samples", "output"))
    arguments = [log if word == "LOG" else word for word in request["arguments"]]
    with open(output, "wb") as file:
        process = subprocess.Popen(
            [request["ptd"]] + arguments, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=dict(os.environ, TZ="UTC")
        )
    try:
        found = read(connect(process), log)
    except (Failed, OSError) as error:
        found = {"error": "%s (its last line: %s)" % (error, last_line(output))}
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
print(json.dumps(found))
