# Runs the official server until it ends or standard input closes. Then interrupts it, so that it restores the meter's ranges, and
# ends what is left of it. Standard input also closes when Regatta ends or a connection is lost: no server remains.
import os, signal, subprocess, sys, threading

PATIENCE_SECONDS = 25
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)


def stop_at_end_of_input():
    while sys.stdin.buffer.read(4096):
        pass
    try:
        server.send_signal(signal.SIGINT)
        server.wait(PATIENCE_SECONDS)
    except (ProcessLookupError, subprocess.TimeoutExpired):
        server.kill()


threading.Thread(target=stop_at_end_of_input, daemon=True).start()
code = server.wait()
try:
    os.killpg(server.pid, signal.SIGKILL)  # a PTDaemon that the server has left behind
except ProcessLookupError:
    pass
sys.stdout.flush()
os._exit(code if code >= 0 else 128 - code)
