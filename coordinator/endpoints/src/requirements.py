"""Prints what the endpoints client needs, a requirement per line, for pip.

    requirements.py client CHECKOUT     the client's own packages
    requirements.py bfcl CHECKOUT       those of its extra `bfcl`
    requirements.py further             what bfcl-eval imports, when it is installed

bfcl-eval pins numpy 1.26.4 and wants libraries of several GB for models that it runs itself. The client uses neither.
"""

import re
import sys
import tomllib
from importlib.metadata import requires

UNUSED = {"numpy", "filelock", "faiss-cpu", "sentence-transformers"}

what = sys.argv[1]
if what == "further":
    for line in requires("bfcl-eval") or []:
        name = re.match(r"[A-Za-z0-9_.-]+", line).group().lower()
        if "extra ==" not in line and name not in UNUSED:
            print(line)
else:
    with open(sys.argv[2] + "/pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    lines = project["dependencies"] if what == "client" else project["optional-dependencies"]["bfcl"]
    print("\n".join(lines))
