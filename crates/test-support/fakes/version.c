/* The version of the TensorRT that the twins stand for: TWIN_TRT_VERSION, as a library of that version counts it. */
#include <stdlib.h>

int getInferLibVersion(void) { return getenv("TWIN_TRT_VERSION") ? atoi(getenv("TWIN_TRT_VERSION")) : 8502; }
