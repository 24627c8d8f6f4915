/* The C interface between the agent and one version of TensorRT.
 *
 * One source (shim.cc) is compiled against the headers of each TensorRT version into libregatta_trt-<version>.so; the
 * agent asks the installed library for its version, opens the shim that fits, and the shim opens TensorRT by path.
 * Nothing here throws, and every string is UTF-8 as TensorRT gave it. Functions that can fail return 0 or a
 * regatta_trt_status; the words are then in regatta_trt_error() of the same thread. */
#ifndef REGATTA_TRT_H
#define REGATTA_TRT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Grows with every change that a caller could notice. */
#define REGATTA_TRT_ABI 7u

typedef enum {
    REGATTA_TRT_OK = 0,
    REGATTA_TRT_LIBRARY = 1,   /* a library is missing, or is not what its name says */
    REGATTA_TRT_MODEL = 2,     /* the ONNX file cannot be used */
    REGATTA_TRT_BUILD = 3,     /* TensorRT did not build */
    REGATTA_TRT_PLAN = 4,      /* the plan cannot be loaded here */
    REGATTA_TRT_UNSUPPORTED = 5, /* this version or chip has no such thing */
    REGATTA_TRT_CANCELLED = 6, /* the progress function said so */
    REGATTA_TRT_RUN = 7        /* TensorRT did not take or run the work */
} regatta_trt_status;

typedef enum {
    REGATTA_TRT_AS_IN_NETWORK = 0, /* strongly typed where the version knows that: Q/DQ and types of the ONNX decide */
    REGATTA_TRT_FP16 = 1,          /* fp16 allowed */
    REGATTA_TRT_INT8 = 2           /* int8 and fp16 allowed, scales by calibration or Q/DQ */
} regatta_trt_precision;

typedef struct regatta_trt_library regatta_trt_library;
typedef struct regatta_trt_engine regatta_trt_engine;
typedef struct regatta_trt_context regatta_trt_context;

/* TensorRT's own log: severity 0 internal error, 1 error, 2 warning, 3 info, 4 verbose. May come from any thread. */
typedef void (*regatta_trt_log)(void* user, int32_t severity, const char* message);
/* Takes bytes; they are gone when it returns. */
typedef void (*regatta_trt_take)(void* user, const void* data, size_t size);
/* A phase of the build did `step` of `steps`; anything but 0 cancels the build. Versions before 10 do not call it. */
typedef int32_t (*regatta_trt_progress)(void* user, const char* phase, int32_t step, int32_t steps);
/* One layer of the network: whether a DLA core can run it. `supported` is 0 or 1. */
typedef void (*regatta_trt_layer)(void* user, const char* name, const char* type, int32_t supported);
/* Fills device memory with the next calibration batch: `count` inputs by name, their device addresses into `buffers`.
 * Returns 0 when there is no further batch. */
typedef int32_t (*regatta_trt_calibrate)(void* user, const char* const* names, void** buffers, int32_t count);

/* What a model leaves free of an input besides the batch. Inputs may have several, as many each: lengths of sequences. Each of them has
 * profiles of its own; the first of every context come first. */
typedef struct {
    const char* name; /* NULL: of the only input */
    int32_t rank;     /* without the batch */
    int64_t dims[8];
} regatta_trt_input_shape;

/* How scales are found: IInt8EntropyCalibrator2 or IInt8MinMaxCalibrator. */
typedef enum {
    REGATTA_TRT_ENTROPY = 0,
    REGATTA_TRT_MIN_MAX = 1,
} regatta_trt_calibration_method;

/* What calibration samples have for an input. */
typedef struct {
    const char* name;      /* NULL: for the only input */
    int32_t type;          /* as in regatta_trt_tensor */
    uint64_t sample_bytes; /* bytes of each sample, held against the network's input */
} regatta_trt_calibration_input;

typedef struct {
    size_t size;              /* sizeof of this struct, so that it can grow */
    const char* onnx;         /* path */
    int32_t precision;        /* regatta_trt_precision */
    int32_t profiles;         /* optimisation profiles of each shape, one per concurrent context; at least 1 */
    int32_t min_batch, opt_batch, max_batch; /* of a free first dimension; a fixed one must equal max_batch */
    uint64_t workspace_bytes; /* 0: TensorRT's default */
    int32_t optimization_level; /* -1: TensorRT's default; versions before 8.6 have none */
    int32_t dla_core;         /* -1: GPU */
    int32_t gpu_fallback;     /* whether layers that DLA cannot run may go to the GPU */
    uint64_t dla_sram_bytes;  /* managed SRAM per core; 0: TensorRT's default */
    const regatta_trt_input_shape* input_shapes; /* may be NULL */
    int32_t input_shape_count;
    int32_t input_type, output_type;     /* of all inputs or outputs, as in regatta_trt_tensor; -1: the network's */
    int32_t input_format, output_format; /* likewise; -1: TensorRT's choice, which is linear */
    const void* timing_cache; /* may be NULL; one that TensorRT does not take counts as none */
    size_t timing_cache_size;
    const void* calibration_cache; /* may be NULL */
    size_t calibration_cache_size;
    int32_t calibration_method;    /* regatta_trt_calibration_method; that of the cache, if there is one */
    int32_t calibration_batch;     /* samples per batch of `calibrate`: opt_batch, or the fixed one */
    const regatta_trt_calibration_input* calibration_inputs; /* one for each input, in any order */
    int32_t calibration_input_count;
    regatta_trt_calibrate calibrate; /* may be NULL; asked only without a calibration cache */
    regatta_trt_progress progress; /* may be NULL */
    regatta_trt_layer layer;       /* may be NULL; called per layer when dla_core is not -1 */
    regatta_trt_take take_plan;    /* the engine, serialised */
    regatta_trt_take take_timing_cache;      /* may be NULL */
    regatta_trt_take take_calibration_cache; /* may be NULL */
    void* user;                    /* given to all of the above */
} regatta_trt_settings;

typedef struct {
    const char* name; /* lives as long as the engine */
    int32_t is_input;
    int32_t type;     /* 0 fp32, 1 fp16, 2 int8, 3 int32, 4 bool, 5 uint8, 8 int64; others as nvinfer1::DataType */
    int32_t rank;
    int64_t dims[8];  /* -1 where free; those of the network, whatever the format */
    int32_t format;   /* 0 linear, 2 hwc8, 3 chw4, 4 chw16, 5 chw32, 6 dhwc8, 7 cdhw32, 9 dla_linear, 10 dla_hwc4; others as nvinfer1::TensorFormat */
} regatta_trt_tensor;

/* REGATTA_TRT_ABI of the shim. */
uint32_t regatta_trt_abi(void);
/* Version of the headers that it was compiled against, such as "10.3.0" or "rtx-1.7.1". */
const char* regatta_trt_headers(void);
/* What went wrong in this thread's last call that failed. */
const char* regatta_trt_error(void);

/* Opens TensorRT and, unless `parser` is NULL, its ONNX parser, each by path or bare name. Without a parser nothing can be built. */
int32_t regatta_trt_open(const char* infer, const char* parser, regatta_trt_log log, void* user, regatta_trt_library** library);
void regatta_trt_close(regatta_trt_library* library);
/* The installed library's own version number (getInferLibVersion). */
int32_t regatta_trt_version(const regatta_trt_library* library);
/* DLA cores that this version finds here; -1 where no builder can be made, as without a driver. */
int32_t regatta_trt_dla_cores(regatta_trt_library* library);

/* Loads a library with plug-ins (layers of its own) by path, for engines that are built or loaded afterwards. It stays loaded. */
int32_t regatta_trt_plugins_load(regatta_trt_library* library, const char* path);

int32_t regatta_trt_build(regatta_trt_library* library, const regatta_trt_settings* settings);

/* `dla_core` is -1 for an engine without DLA parts. The plan's bytes are not needed afterwards. */
int32_t regatta_trt_engine_open(regatta_trt_library* library, const void* plan, size_t size, int32_t dla_core, regatta_trt_engine** engine);
void regatta_trt_engine_close(regatta_trt_engine* engine);
int32_t regatta_trt_engine_tensors(const regatta_trt_engine* engine);
int32_t regatta_trt_engine_tensor(const regatta_trt_engine* engine, int32_t number, regatta_trt_tensor* tensor);
/* TensorRT's own description of the engine's layers, as JSON. */
int32_t regatta_trt_engine_inspect(regatta_trt_engine* engine, regatta_trt_take take, void* user);
/* Optimisation profiles, at least 1. */
int32_t regatta_trt_engine_profiles(const regatta_trt_engine* engine);
/* Smallest and largest first dimension of an input in a profile. */
int32_t regatta_trt_engine_batches(const regatta_trt_engine* engine, const char* input, int32_t profile, int64_t* least, int64_t* most);
/* Bytes of device memory that each context takes for itself. */
uint64_t regatta_trt_engine_context_bytes(const regatta_trt_engine* engine);

/* A context runs one batch at a time, in one thread at a time; contexts of an engine run side by side, each on a profile of its own
 * where shapes are free. The engine must outlive it. `stream` is a CUstream (cudaStream_t) of the current context of CUDA. */
int32_t regatta_trt_context_open(regatta_trt_engine* engine, int32_t profile, void* stream, regatta_trt_context** context);
void regatta_trt_context_close(regatta_trt_context* context);
/* Sets the shape of an input that has a free dimension. */
int32_t regatta_trt_context_shape(regatta_trt_context* context, const char* input, const int64_t* dims, int32_t rank);
/* The location of a tensor on the device. */
int32_t regatta_trt_context_address(regatta_trt_context* context, const char* tensor, void* address);
/* Gives the work to the stream and returns. With shapes and addresses as in the last call it allocates nothing. */
int32_t regatta_trt_context_enqueue(regatta_trt_context* context, void* stream);

#ifdef __cplusplus
}
#endif

#endif
