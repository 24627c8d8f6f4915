# Watches this machine beside a session: a line of JSON every SECONDS, until standard input closes, or brings no line for the request's
# silence_s seconds (null: any time). Its first line is the request as JSON.
# It wakes seldom, because it may run on the machine that is measured. It changes nothing.
import json, os, shutil, socket, struct, sys, threading, time

SECONDS = 5
NTP_EVERY = 4  # lines; 20 s
EPOCH_1900 = 2208988800
request = json.loads(sys.stdin.buffer.readline())
heard = [time.monotonic()]


def hear():
    for _ in iter(sys.stdin.readline, ""):
        heard[0] = time.monotonic()
    os._exit(0)


def ahead():
    # NTP's slewing moves both clocks, a step only the first.
    return time.time() - time.monotonic()


def ntp(server):
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.settimeout(3)
            udp.connect((server, 123))
            sent = time.time()
            stamp = struct.pack("!II", int(sent + EPOCH_1900), int(sent % 1 * 2**32))
            udp.send(b"\x23" + bytes(39) + stamp)
            reply, arrived = udp.recv(512), time.time()
        if len(reply) < 48 or reply[24:32] != stamp:
            return {"error": "the answer is none of NTP"}
        times = struct.unpack("!IIII", reply[32:48])
        received, replied = (times[at] + times[at + 1] / 2**32 - EPOCH_1900 for at in (0, 2))
        return {"offset": ((received - sent) + (replied - arrived)) / 2}
    except OSError as error:
        return {"error": str(error)}


def free_mib(directory):
    try:
        return shutil.disk_usage(directory).free >> 20
    except OSError:
        return None


threading.Thread(target=hear, daemon=True).start()
begun, number = ahead(), 0
silence = request["silence_s"]
while silence is None or time.monotonic() - heard[0] < silence:
    answer = ntp(request["ntp"]) if request["ntp"] and number % NTP_EVERY == 0 else None
    found = {"step": ahead() - begun, "free_mib": free_mib(request["directory"]), "ntp": answer}
    print(json.dumps(found), flush=True)
    number += 1
    time.sleep(SECONDS)
