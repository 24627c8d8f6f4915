# Reads a request as one line of JSON, and reports what a power session needs to know of this machine as another. It changes nothing.
import hashlib, json, os, shutil, socket, struct, sys, time

request = json.loads(sys.stdin.buffer.readline())
EPOCH_1900 = 2208988800


def first_line(path):
    try:
        with open(path) as file:
            return file.readline().strip() or None
    except OSError:
        return None


def power_dev(root):
    programs = os.path.join(root, "ptd_client_server")
    if not all(os.path.isfile(os.path.join(programs, name)) for name in ("client.py", "server.py")):
        return None
    sources, carriage_returns = {}, []
    for directory, below, files in os.walk(programs):
        below[:] = [name for name in below if name not in ("__pycache__", ".mypy_cache", ".pytest_cache")]
        for name in files:
            if name.endswith(".py"):
                path = os.path.join(directory, name)
                with open(path, "rb") as file:
                    text = file.read()
                key = os.path.relpath(path, programs).replace(os.sep, "/")
                sources[key] = hashlib.sha1(text).hexdigest()
                if b"\r" in text:
                    carriage_returns.append(key)
    return {"sources": sources, "carriage_returns": sorted(carriage_returns)}


def program(path):
    if not os.path.isfile(path):
        return "missing"
    return "usable" if os.access(path, os.X_OK) else "not executable"


def meter(path):
    if not path.startswith("/dev/"):
        return "not a file"
    if not os.path.exists(path):
        return "missing"
    return "usable" if os.access(path, os.R_OK | os.W_OK) else "not permitted"


def in_use(port):
    # Without a connection, which would disturb another user's session.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
        tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tcp.bind(("", port))
            return False
        except OSError:
            return True


def connection(address, port, seconds):
    # Over IPv4, as the official client connects.
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp:
            tcp.settimeout(seconds)
            tcp.connect((address, port))
        return "open"
    except ConnectionRefusedError:
        return "refused"
    except OSError as error:
        return str(error)


def ntp(server):
    # One SNTP request over IPv4, as the official programs send.
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.settimeout(5)
            udp.connect((server, 123))
            sent = time.time()
            stamp = struct.pack("!II", int(sent + EPOCH_1900), int(sent % 1 * 2**32))
            udp.send(b"\x23" + bytes(39) + stamp)
            reply, arrived = udp.recv(512), time.time()
        if len(reply) < 48 or reply[0] & 7 != 4 or reply[1] == 0 or reply[24:32] != stamp:
            return {"error": "the answer is not one of a synchronised NTP server"}
        times = struct.unpack("!IIII", reply[32:48])
        received, replied = (times[at] + times[at + 1] / 2**32 - EPOCH_1900 for at in (0, 2))
        return {"offset": ((received - sent) + (replied - arrived)) / 2}
    except OSError as error:
        return {"error": str(error)}


def left_over(directory):
    try:
        return sorted(os.listdir(directory))
    except OSError:
        return []


def free_mib(directory):
    try:
        return shutil.disk_usage(directory).free >> 20
    except OSError:
        return None


found = {
    "python": list(sys.version_info[:2]),
    "debug": "MLPP_DEBUG" in os.environ,
    "zone": time.strftime("%z"),
    "boot_id": first_line("/proc/sys/kernel/random/boot_id"),
    "power_dev": power_dev(request["power_dev"]) if request["power_dev"] else None,
    "ptd": program(request["ptd"]) if request["ptd"] else None,
    "meter": meter(request["meter"]) if request["meter"] else None,
    "ports_in_use": [port for port in request["ports"] if in_use(port)],
    "reach": connection(request["reach"][0], request["reach"][1], 4) if request["reach"] else None,
    "ntp": ntp(request["ntp"]),
    "free_mib": free_mib(request["directory"]),
    "left_over": left_over(request["left_over"]) if request["left_over"] else [],
}
print(json.dumps(found))
