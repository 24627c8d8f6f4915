"""Times the function of the reference's SUT_API.py that sends a request to a server and reads its answer.

    reference.py PORT REQUESTS TOKENS

Prints the mean time of a request in microseconds as its last line. What the file imports beside the function's own needs is made empty.
"""
import sys
import time
import types


class Anything(types.ModuleType):
    """A module with every name, each of which is a class."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


for module in (
    "torch", "torch.nn", "torch.nn.functional", "torch.utils", "torch.utils.data", "transformers", "transformers.generation",
    "transformers.generation.streamers", "mlperf_loadgen", "dataset", "more_itertools", "tqdm",
):
    sys.modules[module] = Anything(module)

import SUT_API  # noqa: E402

port, requests, tokens = map(int, sys.argv[1:])
sut = SUT_API.SUT.__new__(SUT_API.SUT)
sut.api_servers = [f"http://127.0.0.1:{port}"]
sut.api_model_name = "null"
prompt = list(range(20_000, 20_000 + tokens))
sut.query_api_vllm(prompt, 0)
begun = time.perf_counter()
for _ in range(requests):
    texts = sut.query_api_vllm(prompt, 0)
    assert len(texts) == 1
print((time.perf_counter() - begun) * 1e6 / requests)
