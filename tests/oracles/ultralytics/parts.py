"""Functions and classes out of the installed `ultralytics`, without importing the package, which needs PyTorch."""

import ast
import importlib.util
import pathlib
from typing import Any
from unittest import mock

import numpy as np


def parts(module, *names, **scope):
    """Returns the named functions and classes of a file of the package. `scope` has what they refer to."""
    file = pathlib.Path(importlib.util.find_spec("ultralytics").origin).parent / module
    nodes = [node for node in ast.parse(file.read_text()).body if getattr(node, "name", None) in names]
    # No array is a tensor.
    scope = {"Any": Any, "np": np, "torch": mock.Mock(Tensor=type("Tensor", (), {})), **scope}
    exec(compile(ast.Module(nodes, []), str(file), "exec"), scope)
    return [scope[name] for name in names]
