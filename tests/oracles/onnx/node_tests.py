"""The tests of each operator that the ONNX library has for runtimes: networks of a node or few, with inputs and right outputs.

    node_tests.py OUT    writes OUT/NAME/model.onnx, input_N.pb and output_N.pb, and a line for each test into OUT/tests.txt:
                         its name, the relative and the absolute tolerance

Values that are not tensors (sequences, optional values) are left out, with their tests.
"""

import sys
from pathlib import Path

import numpy as np
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

out = Path(sys.argv[1])
lines = []
for case in collect_testcases(None):
    inputs, outputs = case.data_sets[0]
    if not all(isinstance(value, (np.ndarray, np.generic)) for value in [*inputs, *outputs]):
        continue
    directory = out / case.name
    directory.mkdir(parents=True)
    (directory / "model.onnx").write_bytes(case.model.SerializeToString())
    for kind, values in (("input", inputs), ("output", outputs)):
        for number, value in enumerate(values):
            tensor = numpy_helper.from_array(np.asarray(value))
            (directory / f"{kind}_{number}.pb").write_bytes(tensor.SerializeToString())
    lines.append(f"{case.name} {case.rtol} {case.atol}\n")
(out / "tests.txt").write_text("".join(lines))
