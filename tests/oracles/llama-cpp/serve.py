"""Runs llama.cpp's server, as its own program does, until it is ended.

    serve.py MODEL PORT CONTEXT PARALLEL [NAME [HOST]]

A model that hears has its encoder of speech beside it, with the ending `.projector`.
"""

import os
import signal
import sys

import xllamacpp

model, port, context, parallel = sys.argv[1:5]
parameters = xllamacpp.CommonParams()
parameters.model.path = model
parameters.hostnames = ["127.0.0.1"]
parameters.port = int(port)
parameters.n_ctx = int(context)
parameters.n_parallel = int(parallel)
parameters.cpuparams.n_threads = 1
parameters.endpoint_metrics = True
if len(sys.argv) > 5:
    parameters.model_alias = {sys.argv[5]}
if len(sys.argv) > 6:
    parameters.hostnames = [sys.argv[6]]
projector = model + ".projector"
if os.path.exists(projector):
    parameters.mmproj.path = projector
    parameters.mmproj_use_gpu = False
server = xllamacpp.Server(parameters)
signal.pause()
