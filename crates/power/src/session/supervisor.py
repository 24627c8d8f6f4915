# Runs an official program until it ends, or until Regatta is gone: standard input closes, or brings no line for SILENCE seconds (0: any time).
# Then interrupts the program, so that the server restores the meter's ranges, and ends what is left. No program remains on its machine.
# Lines of standard input are the program's, except empty ones, which only show that Regatta is there.
# Arguments: SILENCE, the program's directory for temporary files or "", the program and its arguments.
import os, signal, subprocess, sys, threading, time

PATIENCE_SECONDS = 25
silence, temporary = float(sys.argv[1]), sys.argv[2]
# power-dev stays as it is, without compiled files. The debug switch shortens the official waits and makes every session invalid.
environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1")
environment.pop("MLPP_DEBUG", None)
if temporary:
    environment["TMPDIR"] = temporary


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
    preexec_fn=None if os.name == "nt" else end_with_this_process,
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


def stop():
    try:
        program.stdin.close()
    except OSError:
        pass
    try:
        program.send_signal(signal.SIGINT)
        return program.wait(PATIENCE_SECONDS)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        program.kill()
        return program.wait()


threading.Thread(target=pass_lines_on, daemon=True).start()
code = None
while code is None:
    try:
        code = program.wait(0.1)
    except subprocess.TimeoutExpired:
        if silence and time.monotonic() - heard[0] > silence:
            print("supervisor: Regatta has sent nothing for %g s" % silence, flush=True)
            code = stop()
        elif closed.is_set():
            code = stop()
try:
    os.killpg(program.pid, signal.SIGKILL)  # what the program has left behind: a PTDaemon, the workload's shell
except (ProcessLookupError, PermissionError, AttributeError):
    pass
sys.stdout.flush()
os._exit(code if code >= 0 else 128 - code)
