/* A library with a plug-in for the fake of TensorRT's shim, which only looks for this name. */
int fake_trt_plugin(void) { return 1; }
