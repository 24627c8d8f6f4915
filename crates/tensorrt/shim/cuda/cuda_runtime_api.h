/* The two names of CUDA's runtime that TensorRT's headers use, for where CUDA's own headers are not at hand. The shim links no CUDA. */
#pragma once

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
