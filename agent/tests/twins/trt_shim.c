/* A twin of a TensorRT shim for tests: the face of cross/tensorrt/regatta_trt.h without TensorRT behind it. It "builds" a plan
 * out of words, has two DLA cores, and says of one layer in three that DLA cannot run it. Never shipped. */
#include <stdlib.h>
#include <string.h>

#include "regatta_trt.h"

#ifndef TWIN_ABI
#define TWIN_ABI REGATTA_TRT_ABI
#endif

static const char PLAN[] = "a twin's plan";
static const char* error_words = "";

struct regatta_trt_library {
    regatta_trt_log log;
    void* user;
};
struct regatta_trt_engine {
    int32_t core;
};

static int32_t fail(int32_t status, const char* words) {
    error_words = words;
    return status;
}

uint32_t regatta_trt_abi(void) { return TWIN_ABI; }
const char* regatta_trt_headers(void) { return "8.5.2"; }
const char* regatta_trt_error(void) { return error_words; }

int32_t regatta_trt_open(const char* infer, const char* parser, regatta_trt_log log, void* user, regatta_trt_library** library) {
    (void)infer;
    (void)parser;
    *library = malloc(sizeof **library);
    **library = (regatta_trt_library){log, user};
    return REGATTA_TRT_OK;
}
void regatta_trt_close(regatta_trt_library* library) { free(library); }
int32_t regatta_trt_version(const regatta_trt_library* library) { return (void)library, 8502; }
int32_t regatta_trt_dla_cores(regatta_trt_library* library) { return (void)library, 2; }

int32_t regatta_trt_build(regatta_trt_library* library, const regatta_trt_settings* settings) {
    static const char* const layers[][2] = {{"conv1", "Convolution"}, {"top_k", "TopK"}, {"pool1", "Pooling"}};
    if (settings->size != sizeof *settings) return fail(REGATTA_TRT_UNSUPPORTED, "the settings are not those of this shim");
    for (int number = 0; settings->dla_core >= 0 && number < 3; ++number) {
        int supported = number != 1;
        if (!supported) library->log(library->user, 2, "top_k: DLA has no TopK");
        settings->layer(settings->user, layers[number][0], layers[number][1], supported);
    }
    for (int step = 0; step <= 3; ++step)
        if (settings->progress && settings->progress(settings->user, "twin's build", step, 3)) return fail(REGATTA_TRT_CANCELLED, "");
    settings->take_plan(settings->user, PLAN, sizeof PLAN);
    if (settings->take_timing_cache) settings->take_timing_cache(settings->user, "timings", 7);
    return REGATTA_TRT_OK;
}

int32_t regatta_trt_engine_open(regatta_trt_library* library, const void* plan, size_t size, int32_t dla_core, regatta_trt_engine** engine) {
    (void)library;
    if (size != sizeof PLAN || memcmp(plan, PLAN, size) != 0) return fail(REGATTA_TRT_PLAN, "magic number does not match");
    *engine = malloc(sizeof **engine);
    (*engine)->core = dla_core;
    return REGATTA_TRT_OK;
}
void regatta_trt_engine_close(regatta_trt_engine* engine) { free(engine); }
int32_t regatta_trt_engine_tensors(const regatta_trt_engine* engine) { return (void)engine, 2; }
int32_t regatta_trt_engine_tensor(const regatta_trt_engine* engine, int32_t number, regatta_trt_tensor* tensor) {
    (void)engine;
    *tensor = (regatta_trt_tensor){number == 0 ? "image" : "class", number == 0, number == 0 ? 2 : 3, 2, {-1, number == 0 ? 64 : 1}};
    return REGATTA_TRT_OK;
}
int32_t regatta_trt_engine_inspect(regatta_trt_engine* engine, regatta_trt_take take, void* user) {
    static const char json[] = "{\"Layers\": [\"conv1\", \"pool1\"]}";
    (void)engine;
    take(user, json, sizeof json - 1);
    return REGATTA_TRT_OK;
}
