/* The two names of CUDA's runtime that TensorRT's headers use, for machines without CUDA's own headers. The shim links no CUDA. */
#pragma once

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
