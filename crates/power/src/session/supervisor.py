# Runs an official program until it ends, or until Regatta is gone: standard input closes, or brings no line for SILENCE seconds (0: any time).
# Then interrupts the program, so that the server restores the meter's ranges, and ends what is left. No program remains on its machine.
# A program that was stopped by a signal (SIGSTOP) is continued and ended as well: it would measure nothing and end nothing.
# Windows has no interrupts between programs: the server restores the meter's ranges when its client has left, and is ended after a while.
# Lines of standard input are the program's, except empty ones, which only show that Regatta is there.
# Arguments: SILENCE, the program's directory for temporary files or "", the program and its arguments.
import os, signal, subprocess, sys, threading, time

PATIENCE_SECONDS, LAST_PATIENCE_SECONDS, WINDOWS_PATIENCE_SECONDS, STOPPED_SECONDS = 13, 5, 12, 4
IS_WINDOWS = os.name == "nt"
silence, temporary = float(sys.argv[1]), sys.argv[2]
# power-dev stays as it is, without compiled files. The debug switch shortens the official waits and makes every session invalid.
environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1")
environment.pop("MLPP_DEBUG", None)
if temporary:
    environment.update(TMPDIR=temporary, TMP=temporary, TEMP=temporary)


def end_with_this_process():
    try:
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGINT)  # PR_SET_PDEATHSIG: a killed supervisor leaves no program either
    except (ImportError, OSError, AttributeError):
        pass  # only Linux has it


program = subprocess.Popen(
    sys.argv[3:],
    stdin=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    env=environment,
    start_new_session=True,
    preexec_fn=None if IS_WINDOWS else end_with_this_process,
)
heard, closed = [time.monotonic()], threading.Event()


def pass_lines_on():
    for line in iter(sys.stdin.buffer.readline, b""):
        heard[0] = time.monotonic()
        if line.strip():
            try:
                program.stdin.write(line)
                program.stdin.flush()
            except OSError:
                pass  # it reads no more; its end is seen below
    closed.set()


def signal_all(number):
    try:
        os.killpg(program.pid, number)  # its group has a PTDaemon or the workload's shell, too
    except (ProcessLookupError, PermissionError, AttributeError):
        pass


def is_stopped():
    try:
        with open("/proc/%d/stat" % program.pid) as file:
            return file.read().rpartition(")")[2].split()[0] == "T"
    except (OSError, IndexError):
        return False  # only Linux has it


def stop():
    try:
        program.stdin.close()
    except OSError:
        pass
    try:
        if IS_WINDOWS:
            return program.wait(WINDOWS_PATIENCE_SECONDS)
        signal_all(signal.SIGCONT)
        program.send_signal(signal.SIGINT)
        try:
            return program.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            program.send_signal(signal.SIGINT)  # the official server waits for PTDaemon, and ends at once at the second
            return program.wait(LAST_PATIENCE_SECONDS)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        if IS_WINDOWS:
            subprocess.call(["taskkill", "/T", "/F", "/PID", str(program.pid)], stdout=subprocess.DEVNULL)
        program.kill()
        return program.wait()


threading.Thread(target=pass_lines_on, daemon=True).start()
code, ran = None, time.monotonic()
while code is None:
    try:
        code = program.wait(0.1)
    except subprocess.TimeoutExpired:
        now = time.monotonic()
        if silence and now - heard[0] > silence:
            print("supervisor: Regatta has sent nothing for %g s" % silence, flush=True)
            code = stop()
        elif closed.is_set():
            code = stop()
        elif now - ran > STOPPED_SECONDS:
            if is_stopped():
                print("supervisor: the program is stopped by a signal", flush=True)
                stop()
                code = 1
            ran = now
if not IS_WINDOWS:
    signal_all(signal.SIGKILL)  # what the program has left behind
sys.stdout.flush()
os._exit(code if code >= 0 else 128 - code)
