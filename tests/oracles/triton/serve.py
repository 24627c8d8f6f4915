"""Runs Triton's server of the package in place of itself, with the backend for this Python.

    serve.py ARGUMENTS OF tritonserver
"""

import glob
import importlib.util
import os
import shutil
import sys
import tempfile

root = importlib.util.find_spec("pytriton").submodule_search_locations[0]
server = os.path.join(root, "tritonserver")
stub = os.path.join(server, "python_backend_stubs", f"{sys.version_info[0]}.{sys.version_info[1]}", "triton_python_backend_stub")
backend = os.path.join(server, "backends", "python")
installed = os.path.join(backend, "triton_python_backend_stub")
if not os.path.exists(installed):
    # Several servers may start at once.
    with tempfile.NamedTemporaryFile(dir=backend, delete=False) as draft, open(stub, "rb") as source:
        shutil.copyfileobj(source, draft)
    os.chmod(draft.name, 0o755)
    os.rename(draft.name, installed)
libraries = [os.path.join(server, "lib"), *glob.glob(os.path.join(os.path.dirname(root), "nvidia_pytriton.libs"))]
libraries += glob.glob(os.path.join(server, "external_libs"))
os.environ["LD_LIBRARY_PATH"] = ":".join(libraries + [os.environ.get("LD_LIBRARY_PATH", "")])
program = os.path.join(server, "bin", "tritonserver")
os.execv(program, [program, f"--backend-directory={os.path.dirname(backend)}", *sys.argv[1:]])
