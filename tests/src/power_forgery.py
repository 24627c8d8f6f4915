# Forges a power session in one place, and corrects the SHA-1 of the changed files: python3 power_forgery.py KIND DIRECTORY.
# The official checker accepts each result.
import hashlib, json, os, re, sys
from datetime import datetime, timedelta

STAMP = "%m-%d-%Y %H:%M:%S.%f"
SAMPLES, LOG, SERVER = "run_1/spl.txt", "power/ptd_logs.txt", "power/server.json"
kind, session = sys.argv[1:]


def read(name):
    with open(os.path.join(session, name)) as file:
        return file.read()


def write(name, text):
    with open(os.path.join(session, name), "w") as file:
        file.write(text)


def without_copies(log):
    # Some versions of PTDaemon copy their samples to their log, others do not.
    return "".join(line + "\n" for line in log.splitlines() if not line.startswith("Time,"))


def copy_samples():
    write(LOG, without_copies(read(LOG)) + read("ranging/spl.txt") + read(SAMPLES))


def change(edit):
    lines = enumerate(read(SAMPLES).splitlines())
    edited = (edit(number, line) if line.startswith("Time,") else line for number, line in lines)
    write(SAMPLES, "".join(line + "\n" for line in edited if line is not None))


def one_sample(watts):
    write(LOG, without_copies(read(LOG)))
    change(lambda number, line: re.sub("Watts,[^,]*", "Watts," + watts, line) if number == 5 else line)


def lower(number, line):
    return re.sub("Watts,([^,]*)", lambda found: "Watts,%f" % (float(found[1]) - 0.5), line)


def later(number, line):
    stamp = line.split(",")[1]
    return line.replace(stamp, (datetime.strptime(stamp, STAMP) + timedelta(seconds=5)).strftime(STAMP)[:-3])


def other_meter():
    server = json.loads(read(SERVER))
    for analyzer in server["ptd_config"]:
        analyzer["device_type"] = 8
    write(SERVER, json.dumps(server))


def cut_log():
    log = read(LOG)
    write(LOG, log[: log.rindex("\n", 0, log.index("_testing'")) + 1])


if kind in ("changed", "shifted", "dropped"):
    copy_samples()
{
    "device-type": other_meter,
    "changed": lambda: change(lower),
    "shifted": lambda: change(later),
    "dropped": lambda: change(lambda number, line: None if number % 4 == 1 else line),
    "zero": lambda: one_sample("0.000000"),
    "negative": lambda: one_sample("-30.000000"),
    "nan": lambda: one_sample("nan"),
    "marks": lambda: change(lambda number, line: line.replace("_testing", "_ranging")),
    "cut-log": cut_log,
    "half": lambda: change(lambda number, line: None if number % 2 else line),
}[kind]()
for name in ("power/client.json", SERVER):
    description = json.loads(read(name))
    for file in description["results"]:
        path = os.path.join(session, file)
        if os.path.exists(path):
            with open(path, "rb") as bytes_of:
                description["results"][file] = hashlib.sha1(bytes_of.read()).hexdigest()
    write(name, json.dumps(description))
