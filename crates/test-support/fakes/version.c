/* The version of the TensorRT that the fakes simulate: FAKE_TRT_VERSION, as a library of that version counts it. */
#include <stdlib.h>

int getInferLibVersion(void) { return getenv("FAKE_TRT_VERSION") ? atoi(getenv("FAKE_TRT_VERSION")) : 8502; }
