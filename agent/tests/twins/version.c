/* The version of the TensorRT that the twins stand for. */
int getInferLibVersion(void) { return 8502; }
