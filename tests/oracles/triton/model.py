"""The model of Triton's python backend: ONNX Runtime with the network `model.onnx` beside this file, on one thread."""

import os
import sys

# The interpreter of the backend does not read it.
sys.path[:0] = os.environ["PYTHONPATH"].split(os.pathsep)

import onnxruntime  # noqa: E402
import triton_python_backend_utils as triton  # noqa: E402

TYPES = {"tensor(float)": "TYPE_FP32", "tensor(int64)": "TYPE_INT64", "tensor(int32)": "TYPE_INT32"}


def session():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    network = os.path.join(triton.get_model_dir(), "model.onnx")
    return onnxruntime.InferenceSession(network, options, providers=["CPUExecutionProvider"])


def dims(tensor):
    """Returns the dimensions without the batch. Triton has none without dimensions."""
    return [dim if isinstance(dim, int) else -1 for dim in tensor.shape[1:]] or [1]


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        network = session()
        for tensors, add in ((network.get_inputs(), config.add_input), (network.get_outputs(), config.add_output)):
            for tensor in tensors:
                add({"name": tensor.name, "data_type": TYPES[tensor.type], "dims": dims(tensor)})
        return config

    def initialize(self, arguments):
        self.session = session()

    def execute(self, requests):
        return [self.infer(request) for request in requests]

    def infer(self, request):
        inputs = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
        names = list(request.requested_output_names())
        found = zip(names, self.session.run(names, inputs), strict=True)
        outputs = [triton.Tensor(name, value.reshape(len(value), -1) if value.ndim == 1 else value) for name, value in found]
        return triton.InferenceResponse(outputs)
