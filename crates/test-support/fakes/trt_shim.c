/* A fake TensorRT shim for tests: the interface of crates/tensorrt/shim/regatta_trt.h without TensorRT. Never shipped.
 *
 * It stands for the headers in its own file's name (libregatta_trt-10.3.0.so), and for the library whose number is FAKE_TRT_VERSION
 * (8502 unless it is set): optimisation levels from headers of 8.6 on, progress from 10 on, types from the network alone from 11 on,
 * and no DLA in libraries from 10.8 to 11.4.0. A timing cache counts the builds that it went through, and serves its own version alone.
 *
 * It "builds" a plan that says what the engine takes, has two DLA cores, and says of one layer in three that DLA cannot run it; in
 * fp32, of every one. With FAKE_TRT_READS these layers are the model's nodes, of which DLA runs the kinds that NVIDIA lists. Its engines compute on the CPU, in the streams of the driver's fake (cuda_driver.c): a score per class, the sum
 * of the pixels whose position modulo 64 and then 10 is the class. The image is [1, 8, 8]; a test may write another into the plan.
 * With FAKE_TRT_OUTPUT=index the answer is the best class itself, as of a network that ends in TopK.
 * FAKE_TRT_INPUT (fp32, fp16, int8) is the type of the network's input, which a build may ask otherwise of; FAKE_TRT_FIXED makes
 * a batch that is not free, FAKE_TRT_NO_DLA a chip without DLA, FAKE_TRT_DLA_CORES one with so many cores; FAKE_TRT_REFUSES is what is said of every plan,
 * FAKE_TRT_SLOW the milliseconds before a build's first step, and FAKE_TRT_STEPS how many steps of ten milliseconds it has. Inputs are
 * linear, or chw4 and dla_hwc4 but for fp32: pixels in fours, of which the first counts. An engine belongs to the device that the
 * thread used which loaded it.
 *
 * With FAKE_TRT_PLUGIN the network has a layer of the library trt_plugin.c, without which nothing is built or loaded. With FAKE_TRT_BATCH the
 * network itself has that batch, and no engine is built for another.
 *
 * Where a plan's image begins with a negative number, it is a window of a volume, of one channel and that depth. Each voxel has three
 * scores: 3, its value v, and 6 - v.
 *
 * With FAKE_TRT_INPUTS=3 the network has three inputs of int32 instead (FAKE_TRT_INPUT=int64 makes them that), named as BERT's: its
 * pixels are mask * (ids - segments), and a second output has every score negated. With FAKE_TRT_FREE the model leaves every dimension
 * of its inputs free, as BERT's reference does, and a build must say what they are. Where it says several lengths, each has profiles, and
 * its first output has a number for each token: its pixel and the sum of all pixels.
 *
 * With FAKE_TRT_COMPUTES the plan holds the ONNX file, and its engines compute that network (onnx_operations.h). Its outputs are in the
 * reverse order of the file's, because TensorRT promises no order. The one input of an image may be of another type and layout, as above; that of a volume
 * may also be cdhw32. Calibration finds the input's scale, and numbers of an input of int8 are multiplied by the scale that the calibration cache has for it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "onnx_nodes.h"
#include "onnx_network.h"
#include "onnx_operations.h"
#include "regatta_trt.h"

#ifndef FAKE_ABI
#define FAKE_ABI REGATTA_TRT_ABI
#endif
enum { FP32, FP16, INT8, INT32, INT64 = 8 };
enum { LINEAR = 0, CHW4 = 3, CDHW32 = 7, DLA_HWC4 = 10 };
/* How many channels a layout has at least. */
static int channels_of(int format) { return format <= LINEAR ? 1 : format == CDHW32 ? 32 : 4; }
enum { PIXELS = 64, CLASSES = 10, TENSORS = 2 * ONNX_ENDS, VOXEL_CLASSES = 3, LENGTHS = 4 };
#define PLAN "a fake's plan: input %d output %d batch %d to %d profiles %d dla %d format %d inputs %d image %dx%dx%d level %d sram %d lengths %d %d %d %d"
/* Then the ONNX file. */
#define NETWORK_PLAN "a fake's plan of a network: batch %d to %d profiles %d dla %d input %d format %d scale %x\n%n"
#define TIMINGS "timings of TensorRT %d after %d build(s)"

static char error_words[512];

struct regatta_trt_library {
    regatta_trt_log log;
    void* user;
};
struct regatta_trt_engine {
    regatta_trt_library* library;
    int input, output, min, max, profiles, dla, format, inputs, level, sram;
    int image[3], lengths[LENGTHS];
    int device, used[64];
    onnx_network* network; /* NULL unless it computes one */
    unsigned scale; /* the bits of the scale of its input of int8 */
    char names[TENSORS][64];
};
struct regatta_trt_context {
    regatta_trt_engine* engine;
    int profile;
    int64_t batches[TENSORS];
    int64_t length;
    uint64_t addresses[TENSORS];
};

/* The fake driver, which the agent has opened. */
static int (*launch)(void*, void (*)(void*), const void*, size_t);
static void* (*resolve)(uint64_t, size_t);
static int (*device)(void);
static int driver(void) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return 0;
    *(void**)&launch = dlsym(library, "fake_cuda_launch");
    *(void**)&resolve = dlsym(library, "fake_cuda_resolve");
    *(void**)&device = dlsym(library, "fake_cuda_device");
    return launch && resolve && device;
}

static int32_t fail(int32_t status, const char* words) {
    snprintf(error_words, sizeof error_words, "%s", words);
    return status;
}
static int one_of(const char* variable, const char* const names[], int count, int otherwise) {
    const char* value = getenv(variable);
    for (int i = 0; value && i < count; ++i)
        if (!strcmp(value, names[i])) return i;
    return otherwise;
}
/* Inputs first, then outputs. */
static const char* const one_input[] = {"image", "scores"};
static const char* const three_inputs[] = {"input_ids", "input_mask", "segment_ids", "scores", "opposites"};
static int tensors(const regatta_trt_engine* engine) { return engine->network ? engine->network->input_count + engine->network->output_count : engine->inputs == 3 ? 5 : 2; }
static const char* name_of(const regatta_trt_engine* engine, int number) { return engine->network ? engine->names[number] : engine->inputs == 3 ? three_inputs[number] : one_input[number]; }
/* An input or output of a computed network. Outputs are in reverse order. */
static const onnx_value* end_of(const onnx_network* network, int number) {
    return number < network->input_count ? &network->inputs[number] : &network->outputs[network->input_count + network->output_count - 1 - number];
}
static int number_of(const regatta_trt_engine* engine, const char* name) {
    for (int number = 0; number < tensors(engine); ++number)
        if (!strcmp(name_of(engine, number), name)) return number;
    return -1;
}
static int is_input(const regatta_trt_engine* engine, int number) { return number >= 0 && number < engine->inputs; }
static int size_of(int type) { return type == INT8 ? 1 : type == FP16 ? 2 : type == INT64 ? 8 : 4; }

uint32_t regatta_trt_abi(void) { return FAKE_ABI; }
/* What stands in the file's name behind its prefix. */
const char* regatta_trt_headers(void) {
    static char version[32];
    Dl_info here;
    const char* name = dladdr((void*)regatta_trt_headers, &here) ? strstr(here.dli_fname, "libregatta_trt-") : NULL;
    if (name) sscanf(name, "libregatta_trt-%31[0-9.rtx-]", version);
    size_t length = strlen(version);
    if (length && version[length - 1] == '.') version[length - 1] = 0;
    return version;
}
/* major * 100 + minor of the headers, without a word about TensorRT-RTX. */
static int headers(void) {
    int major = 0, minor = 0;
    sscanf(regatta_trt_headers(), "%d.%d", &major, &minor);
    return major * 100 + minor;
}
static int library_version(void) { return getenv("FAKE_TRT_VERSION") ? atoi(getenv("FAKE_TRT_VERSION")) : 8502; }
static int drives_dla(void) { return !getenv("FAKE_TRT_NO_DLA") && (library_version() < 100800 || library_version() > 110400); }
const char* regatta_trt_error(void) { return error_words; }

int32_t regatta_trt_open(const char* infer, const char* parser, regatta_trt_log log, void* user, regatta_trt_library** library) {
    (void)infer;
    (void)parser;
    *library = malloc(sizeof **library);
    **library = (regatta_trt_library){log, user};
    return REGATTA_TRT_OK;
}
void regatta_trt_close(regatta_trt_library* library) { free(library); }
int32_t regatta_trt_version(const regatta_trt_library* library) { return (void)library, library_version(); }
static int32_t dla_cores(void) { return !drives_dla() ? 0 : getenv("FAKE_TRT_DLA_CORES") ? atoi(getenv("FAKE_TRT_DLA_CORES")) : 2; }
int32_t regatta_trt_dla_cores(regatta_trt_library* library) { return (void)library, dla_cores(); }

/* Whether a library with the plug-in of fakes/trt_plugin.c was loaded. */
static int has_plugin;
int32_t regatta_trt_plugins_load(regatta_trt_library* library, const char* path) {
    (void)library;
    void* opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!opened) return fail(REGATTA_TRT_LIBRARY, dlerror());
    has_plugin |= dlsym(opened, "fake_trt_plugin") != NULL;
    return REGATTA_TRT_OK;
}

static int input_count(void) { return getenv("FAKE_TRT_INPUTS") ? atoi(getenv("FAKE_TRT_INPUTS")) : 1; }
static int is_named(const char* name, int number, int inputs) {
    return name ? !strcmp(name, inputs == 3 ? three_inputs[number] : one_input[number]) : inputs == 1;
}

/* Reads a plan that holds an ONNX file. */
static int read_network(regatta_trt_engine* engine, const void* plan, size_t size) {
    char text[256] = "";
    int head = 0;
    memcpy(text, plan, size < sizeof text ? size : sizeof text - 1);
    if (sscanf(text, NETWORK_PLAN, &engine->min, &engine->max, &engine->profiles, &engine->dla, &engine->input, &engine->format, &engine->scale, &head) != 7 || !head) return 0;
    /* The white space of the format takes every byte like it; the file begins behind the line. */
    head = (int)(strchr(text, '\n') - text) + 1;
    engine->network = onnx_network_read((const char*)plan + head, size - (size_t)head);
    if (!engine->network) return 0;
    engine->inputs = engine->network->input_count;
    for (int number = 0; number < tensors(engine); ++number) onnx_word(end_of(engine->network, number)->name, engine->names[number], sizeof engine->names[number]);
    return 1;
}

/* The elements of one sample. */
static int sample_count(const onnx_value* input) { return (int)onnx_product(input->dims, 1, input->rank); }
/* Whether the settings fix all dynamic dimensions, to possible values. Writes the lengths of sequences where there are several. */
static int32_t check_shapes(const regatta_trt_settings* settings, int lengths[LENGTHS]) {
    static const int64_t image[] = {1, 8, 8}, tokens[] = {PIXELS};
    int inputs = input_count(), rank = inputs == 3 ? 1 : 3, fixed = 0, of_input[3] = {0};
    for (int i = 0; i < settings->input_shape_count; ++i) {
        const regatta_trt_input_shape* shape = &settings->input_shapes[i];
        int number = 0;
        while (number < inputs && !is_named(shape->name, number, inputs)) ++number;
        if (number == inputs) return fail(REGATTA_TRT_MODEL, "the network has no input of that name");
        int several = inputs == 3 && settings->input_shape_count > inputs && shape->rank == 1 && of_input[number] < LENGTHS;
        if (!several && (shape->rank != rank || memcmp(shape->dims, inputs == 3 ? tokens : image, (size_t)rank * sizeof *image)))
            return fail(REGATTA_TRT_MODEL, "the input does not accept that after its batch dimension");
        if (several && number && lengths[of_input[number]] != shape->dims[0]) return fail(REGATTA_TRT_MODEL, "the inputs have different lengths");
        if (several) lengths[of_input[number]] = (int)shape->dims[0];
        fixed += !of_input[number]++;
    }
    return getenv("FAKE_TRT_FREE") && fixed < inputs ? fail(REGATTA_TRT_MODEL, "an input is [-1, -1]; hint: set its dimensions with --input-shape") : REGATTA_TRT_OK;
}

/* The method in the first line of a calibration cache. */
static const char* method_name(const regatta_trt_settings* settings) { return settings->calibration_method == REGATTA_TRT_MIN_MAX ? "MinMaxCalibration" : "EntropyCalibration2"; }
/* TensorRT takes no scales of another method. */
static int32_t check_scales(const regatta_trt_settings* settings) {
    char version[32], method[64], text[128] = "";
    if (settings->calibration_cache) memcpy(text, settings->calibration_cache, settings->calibration_cache_size < sizeof text ? settings->calibration_cache_size : sizeof text - 1);
    int is_other = sscanf(text, "TRT-%31[0-9]-%63s", version, method) == 2 && strcmp(method, method_name(settings));
    return is_other ? fail(REGATTA_TRT_BUILD, "Calibration table does not match calibrator algorithm type.") : REGATTA_TRT_OK;
}

static unsigned bits_of(float value) {
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
/* The bits of the scale that the calibration cache has for a network's input; of 1 when it has none. */
static unsigned input_scale(const regatta_trt_settings* settings, const onnx_network* network) {
    char name[64], line[80], digits[9] = "";
    unsigned bits = bits_of(1);
    onnx_word(network->inputs[0].name, name, sizeof name);
    int length = snprintf(line, sizeof line, "\n%s: ", name);
    const char *cache = settings->calibration_cache, *end = cache + settings->calibration_cache_size;
    const char* found = cache ? memmem(cache, settings->calibration_cache_size, line, (size_t)length) : NULL;
    if (!found || end - found < length + 8) return bits;
    memcpy(digits, found + length, 8);
    sscanf(digits, "%x", &bits);
    return bits;
}
/* Takes all batches that there are and sums their pixels up: the "cache" tells whether every sample came, once. A computed network has one
 * input. */
static int32_t calibrate(const regatta_trt_settings* settings, const onnx_network* network) {
    int inputs = network ? 1 : input_count(), pixels = network ? sample_count(&network->inputs[0]) : PIXELS;
    char own[64] = "";
    if (network) onnx_word(network->inputs[0].name, own, sizeof own);
    const char* const* names = network ? (const char*[]){own} : inputs == 3 ? three_inputs : one_input;
    double sum = 0;
    float largest = 0;
    int batches = 0, count = settings->calibration_batch * pixels;
    void* buffers[3] = {NULL};
    if (!driver()) return fail(REGATTA_TRT_BUILD, "CUDA initialization failure with error: 35");
    if (settings->calibration_input_count != inputs) return fail(REGATTA_TRT_MODEL, "a calibration sample is for other inputs");
    for (int i = 0; i < inputs; ++i)
        if (settings->calibration_inputs[i].sample_bytes != (uint64_t)pixels * 4 || settings->calibration_inputs[i].type != (inputs == 3 ? INT32 : FP32))
            return fail(REGATTA_TRT_MODEL, "a calibration sample is not of the input's size");
    if (settings->input_type >= 0 && settings->input_type != settings->calibration_inputs[0].type)
        return fail(REGATTA_TRT_MODEL, "the input is of another type than its calibration samples");
    while (settings->calibrate(settings->user, names, buffers, inputs)) {
        const int32_t* words[3];
        for (int i = 0; i < inputs; ++i)
            if (!(words[i] = resolve((uint64_t)(uintptr_t)buffers[i], (size_t)count * 4))) return fail(REGATTA_TRT_BUILD, "the calibrator's batch does not lie on the device");
        for (int i = 0; i < count; ++i) sum += inputs == 3 ? words[1][i] * (words[0][i] - words[2][i]) : ((const float*)words[0])[i];
        for (int i = 0; network && i < count; ++i) largest = fmaxf(largest, fabsf(((const float*)words[0])[i]));
        ++batches;
    }
    if (!batches) return fail(REGATTA_TRT_BUILD, "calibration failure occurred with no scaling factors detected");
    char cache[256];
    int size = snprintf(cache, sizeof cache, "TRT-8502-%s\nbatches: %d\nsum: %.0f\n", method_name(settings), batches, sum);
    if (network) size += snprintf(cache + size, sizeof cache - (size_t)size, "%s: %08x\n", own, bits_of(largest / 127));
    if (settings->take_calibration_cache) settings->take_calibration_cache(settings->user, cache, (size_t)size);
    return REGATTA_TRT_OK;
}

/* Whether a network's input can be of the requested type and layout: only that of a network with one input of fp32. */
static int32_t check_input(const regatta_trt_settings* settings, const onnx_network* network) {
    int type = settings->input_type < 0 ? FP32 : settings->input_type, format = settings->input_format < 0 ? LINEAR : settings->input_format;
    int is_own = settings->input_type < 0 && format == LINEAR;
    int is_volume = network->inputs[0].rank == 5;
    int is_possible = network->input_count == 1 && network->inputs[0].type == ONNX_FLOAT && (network->inputs[0].rank == 4 || is_volume) && type <= INT8 && network->inputs[0].dims[1] <= 4 &&
                      (format == LINEAR || (type != FP32 && (is_volume ? format == CDHW32 : format == CHW4 || format == DLA_HWC4)));
    return is_own || is_possible ? REGATTA_TRT_OK : fail(REGATTA_TRT_BUILD, "Could not find any implementation for the input's type and format");
}
/* A plan that holds the ONNX file. */
static int32_t build_network(const regatta_trt_settings* settings) {
    FILE* file = fopen(settings->onnx, "rb");
    if (!file) return fail(REGATTA_TRT_MODEL, "Could not open file");
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char* plan = malloc(size + 256);
    int fixed = settings->dla_core >= 0 || getenv("FAKE_TRT_FIXED"), head = 0;
    char* content = malloc(size ? size : 1);
    size = fread(content, 1, size, file);
    fclose(file);
    onnx_network* network = onnx_network_read(content, size);
    sprintf(plan, NETWORK_PLAN, fixed ? settings->max_batch : settings->min_batch, settings->max_batch, settings->profiles, settings->dla_core,
            settings->input_type, settings->input_format, network ? input_scale(settings, network) : 0, &head);
    memcpy(plan + head, content, size);
    free(content);
    int32_t status = network ? check_input(settings, network) : fail(REGATTA_TRT_MODEL, "Failed to parse ONNX model from file");
    if (!status && settings->precision == REGATTA_TRT_INT8 && settings->calibrate && !settings->calibration_cache) status = calibrate(settings, network);
    if (!status) settings->take_plan(settings->user, plan, (size_t)head + size);
    free(plan);
    onnx_network_free(network);
    return status;
}
/* What headers do not have, as the shim that was compiled against them says it. */
static int32_t check_headers(const regatta_trt_settings* settings) {
    char words[256];
    const char* reason = settings->optimization_level >= 0 && headers() < 806 ? "an optimisation level was requested, which TensorRT %s does not know"
                         : settings->precision != REGATTA_TRT_AS_IN_NETWORK && headers() >= 1100 ? "TensorRT %s takes types from the network alone"
                                                                                                  : NULL;
    if (!reason) return REGATTA_TRT_OK;
    snprintf(words, sizeof words, reason, regatta_trt_headers());
    return fail(REGATTA_TRT_UNSUPPORTED, words);
}

/* A build's layers on their way to the caller. */
typedef struct { regatta_trt_library* library; const regatta_trt_settings* settings; int is_fp32; } placing;

/* What a node of an ONNX becomes in TensorRT, and whether DLA runs it: NVIDIA's list of DLA's layers, without their conditions. */
static void place_node(void* user, const char* name, const char* kind) {
    static const struct { const char *node, *layer; int on_dla; } known[] = {
        {"Conv", "Convolution", 1}, {"Relu", "Activation", 1}, {"MaxPool", "Pooling", 1}, {"GlobalAveragePool", "Pooling", 1},
        {"Add", "ElementWise", 1}, {"Flatten", "Shuffle", 0}, {"Gemm", "MatrixMultiply", 0}, {"MatMul", "MatrixMultiply", 0}, {"ArgMax", "TopK", 0}};
    const placing* p = user;
    size_t at = 0;
    char words[256];
    while (at < sizeof known / sizeof *known && strcmp(kind, known[at].node)) ++at;
    int is_known = at < sizeof known / sizeof *known, supported = is_known && known[at].on_dla && !p->is_fp32;
    snprintf(words, sizeof words, is_known && known[at].on_dla ? "%s: DLA supports only FP16 and INT8 precision type" : "%s: DLA has no such layer", name);
    if (!supported) p->library->log(p->library->user, 2, words);
    p->settings->layer(p->settings->user, name, is_known ? known[at].layer : kind, supported);
}

/* Says of every layer whether DLA can run it: none of them in fp32. */
static void place_on_dla(regatta_trt_library* library, const regatta_trt_settings* settings, int is_fp32) {
    static const char* const layers[][2] = {{"conv1", "Convolution"}, {"top_k", "TopK"}, {"pool1", "Pooling"}};
    placing here = {library, settings, is_fp32};
    if (getenv("FAKE_TRT_READS") && onnx_nodes(settings->onnx, place_node, &here)) return;
    for (int number = 0; number < 3; ++number) {
        int supported = number != 1 && !is_fp32;
        if (number == 1) library->log(library->user, 2, "top_k: DLA has no TopK");
        else if (!supported) library->log(library->user, 2, "DLA supports only FP16 and INT8 precision type");
        settings->layer(settings->user, layers[number][0], layers[number][1], supported);
    }
}

/* Goes through the steps of a build: nonzero when it was told to end. */
static int is_cancelled(const regatta_trt_settings* settings) {
    const char *slow = getenv("FAKE_TRT_SLOW"), *more = getenv("FAKE_TRT_STEPS");
    int steps = more ? atoi(more) : 3;
    /* A signal does not hurry it. */
    struct timespec time = {slow ? atoi(slow) / 1000 : 0, slow ? atoi(slow) % 1000 * 1000000L : 0};
    while (nanosleep(&time, &time)) {}
    for (int step = 0; step <= steps; ++step) {
        if (headers() >= 1000 && settings->progress && settings->progress(settings->user, "fake build", step, steps)) return 1;
        if (more) usleep(10000);
    }
    return 0;
}

/* Gives a timing cache that is one build older than the one that was given, where that is this version's. */
static void give_timings(const regatta_trt_settings* settings) {
    char text[128] = "";
    int version = 0, builds = 0;
    if (settings->timing_cache) memcpy(text, settings->timing_cache, settings->timing_cache_size < sizeof text ? settings->timing_cache_size : sizeof text - 1);
    if (sscanf(text, TIMINGS, &version, &builds) != 2 || version != library_version()) builds = 0;
    int size = snprintf(text, sizeof text, TIMINGS, library_version(), builds + 1);
    if (settings->take_timing_cache) settings->take_timing_cache(settings->user, text, (size_t)size);
}

int32_t regatta_trt_build(regatta_trt_library* library, const regatta_trt_settings* settings) {
    static const char* const types[] = {"fp32", "fp16", "int8", "int32", "", "", "", "", "int64"};
    static const char* const outputs[] = {"scores", "index"};
    if (settings->size != sizeof *settings) return fail(REGATTA_TRT_UNSUPPORTED, "the settings are not those of this shim");
    if (getenv("FAKE_TRT_PLUGIN") && !has_plugin) return fail(REGATTA_TRT_MODEL, "No importer registered for op: FakeLayer");
    const char* batch = getenv("FAKE_TRT_BATCH");
    if (batch && atoi(batch) != settings->max_batch) return fail(REGATTA_TRT_MODEL, "the input has a fixed batch of another size");
    if (getenv("FAKE_TRT_COMPUTES")) return is_cancelled(settings) ? fail(REGATTA_TRT_CANCELLED, "") : build_network(settings);
    int own = one_of("FAKE_TRT_INPUT", types, 9, FP32), input = settings->input_type >= 0 ? settings->input_type : own;
    int lengths[LENGTHS] = {0};
    int32_t status = check_headers(settings);
    if (!status) status = check_shapes(settings, lengths);
    if (!status) status = check_scales(settings);
    if (status) return status;
    int format = settings->input_format >= 0 ? settings->input_format : LINEAR;
    if (settings->output_type > FP32 || settings->output_format > LINEAR) return fail(REGATTA_TRT_BUILD, "the output is fp32 and linear");
    if ((input > INT8 && input_count() == 1) || (format != LINEAR && (input == FP32 || (format != CHW4 && format != DLA_HWC4))))
        return fail(REGATTA_TRT_BUILD, "Could not find any implementation for the input's type and format");
    if (settings->dla_core >= 0) place_on_dla(library, settings, settings->precision == REGATTA_TRT_AS_IN_NETWORK && own == FP32);
    if (settings->precision == REGATTA_TRT_INT8 && settings->calibrate && !settings->calibration_cache) {
        status = calibrate(settings, NULL);
        if (status) return status;
    }
    if (is_cancelled(settings)) return fail(REGATTA_TRT_CANCELLED, "");
    char plan[256];
    int fixed = settings->dla_core >= 0 || getenv("FAKE_TRT_FIXED");
    int size = snprintf(plan, sizeof plan, PLAN, input, one_of("FAKE_TRT_OUTPUT", outputs, 2, 0),
                        fixed ? settings->max_batch : settings->min_batch, settings->max_batch, settings->profiles, settings->dla_core, format,
                        input_count(), 1, 8, 8, settings->optimization_level, (int)settings->dla_sram_bytes, lengths[0], lengths[1], lengths[2], lengths[3]);
    settings->take_plan(settings->user, plan, (size_t)size);
    give_timings(settings);
    return REGATTA_TRT_OK;
}

int32_t regatta_trt_engine_open(regatta_trt_library* library, const void* plan, size_t size, int32_t dla_core, regatta_trt_engine** engine) {
    char text[256] = "";
    regatta_trt_engine read = {.library = library};
    memcpy(text, plan, size < sizeof text ? size : sizeof text - 1);
    int is_network = read_network(&read, plan, size);
    if (!is_network && sscanf(text, PLAN, &read.input, &read.output, &read.min, &read.max, &read.profiles, &read.dla, &read.format, &read.inputs, &read.image[0], &read.image[1], &read.image[2], &read.level, &read.sram, &read.lengths[0], &read.lengths[1], &read.lengths[2], &read.lengths[3]) != 17)
        return fail(REGATTA_TRT_PLAN, "Serialization assertion plan->header.magicTag == rt::kPLAN_MAGIC_TAG failed.");
    if (getenv("FAKE_TRT_PLUGIN") && !has_plugin) return fail(REGATTA_TRT_PLAN, "Cannot find plugin: FakeLayer, version: 1");
    if (getenv("FAKE_TRT_REFUSES")) return fail(REGATTA_TRT_PLAN, getenv("FAKE_TRT_REFUSES"));
    if (dla_core > 1) return fail(REGATTA_TRT_PLAN, "DLA core 2 is not available");
    read.device = driver() ? device() : -1;
    *engine = malloc(sizeof **engine);
    **engine = read;
    return REGATTA_TRT_OK;
}
void regatta_trt_engine_close(regatta_trt_engine* engine) {
    onnx_network_free(engine->network);
    free(engine);
}
static int length_count(const regatta_trt_engine* engine) {
    int count = 0;
    while (count < LENGTHS && engine->lengths[count]) ++count;
    return count;
}
static int is_shape_free(const regatta_trt_engine* engine) { return engine->min < engine->max || length_count(engine) > 1; }
/* Profiles of all lengths, where shapes are free. */
static int profile_count(const regatta_trt_engine* engine) { return engine->profiles * (length_count(engine) ? length_count(engine) : 1); }
int32_t regatta_trt_engine_tensors(const regatta_trt_engine* engine) { return tensors(engine); }
static int output_type(const regatta_trt_engine* engine) { return engine->output ? INT32 : engine->input == FP16 ? FP16 : FP32; }
int32_t regatta_trt_engine_tensor(const regatta_trt_engine* engine, int32_t number, regatta_trt_tensor* tensor) {
    int64_t batch = engine->min < engine->max ? -1 : engine->max;
    if (engine->network) {
        const onnx_value* end = end_of(engine->network, number);
        *tensor = (regatta_trt_tensor){name_of(engine, number), is_input(engine, number), end->type == ONNX_INT64 ? INT64 : end->type == ONNX_INT32 ? INT32 : end->type == ONNX_FLOAT16 ? FP16 : FP32, end->rank, {batch}, LINEAR};
        if (is_input(engine, number) && engine->input >= 0) tensor->type = engine->input;
        if (is_input(engine, number) && engine->format >= 0) tensor->format = engine->format;
        for (int axis = 1; axis < end->rank; ++axis) tensor->dims[axis] = end->dims[axis];
        return REGATTA_TRT_OK;
    }
    if (length_count(engine))
        *tensor = (regatta_trt_tensor){name_of(engine, number), is_input(engine, number), !is_input(engine, number) ? FP32 : engine->input == INT64 ? INT64 : INT32, 2, {batch, length_count(engine) > 1 ? -1 : engine->lengths[0]}, LINEAR};
    else if (engine->inputs == 3)
        *tensor = (regatta_trt_tensor){name_of(engine, number), is_input(engine, number), !is_input(engine, number) ? FP32 : engine->input == INT64 ? INT64 : INT32, 2, {batch, is_input(engine, number) ? PIXELS : CLASSES}, LINEAR};
    else if (engine->image[0] < 0)
        *tensor = (regatta_trt_tensor){name_of(engine, number), number == 0, number == 0 ? engine->input : output_type(engine), 5, {batch, number == 0 ? 1 : VOXEL_CLASSES, -engine->image[0], engine->image[1], engine->image[2]}, LINEAR};
    else if (number == 0)
        *tensor = (regatta_trt_tensor){"image", 1, engine->input, 4, {batch, engine->image[0], engine->image[1], engine->image[2]}, engine->format};
    else
        *tensor = (regatta_trt_tensor){"scores", 0, output_type(engine), 2, {batch, engine->output ? 1 : CLASSES}, LINEAR};
    return REGATTA_TRT_OK;
}
int32_t regatta_trt_engine_inspect(regatta_trt_engine* engine, regatta_trt_take take, void* user) {
    static const char json[] = "{\"Layers\": [\"conv1\", \"pool1\"]}";
    (void)engine;
    take(user, json, sizeof json - 1);
    return REGATTA_TRT_OK;
}
int32_t regatta_trt_engine_profiles(const regatta_trt_engine* engine) { return is_shape_free(engine) ? profile_count(engine) : 1; }
int32_t regatta_trt_engine_batches(const regatta_trt_engine* engine, const char* input, int32_t profile, int64_t* least, int64_t* most) {
    if (!is_input(engine, number_of(engine, input)) || profile >= profile_count(engine)) return fail(REGATTA_TRT_PLAN, "no such input or profile");
    return *least = engine->min, *most = engine->max, REGATTA_TRT_OK;
}
uint64_t regatta_trt_engine_context_bytes(const regatta_trt_engine* engine) { return (uint64_t)engine->max * 1024; }

int32_t regatta_trt_context_open(regatta_trt_engine* engine, int32_t profile, void* stream, regatta_trt_context** context) {
    (void)stream;
    int is_free = is_shape_free(engine);
    if (!driver()) return fail(REGATTA_TRT_RUN, "CUDA initialization failure with error: 35");
    if (device() != engine->device) return fail(REGATTA_TRT_RUN, "the engine was loaded on another device");
    if (profile >= profile_count(engine) || (is_free && engine->used[profile])) return fail(REGATTA_TRT_RUN, "the profile is not there or in use by another context");
    engine->used[profile] = 1;
    *context = calloc(1, sizeof **context);
    **context = (regatta_trt_context){.engine = engine, .profile = profile, .length = length_count(engine) ? engine->lengths[profile % length_count(engine)] : 0};
    for (int number = 0; number < engine->inputs; ++number) (*context)->batches[number] = is_free ? 0 : engine->max;
    return REGATTA_TRT_OK;
}
void regatta_trt_context_close(regatta_trt_context* context) {
    context->engine->used[context->profile] = 0;
    free(context);
}
int32_t regatta_trt_context_shape(regatta_trt_context* context, const char* input, const int64_t* dims, int32_t rank) {
    int number = number_of(context->engine, input);
    if (context->engine->network) {
        const onnx_value* end = is_input(context->engine, number) ? end_of(context->engine->network, number) : NULL;
        int fits = end && rank == end->rank && dims[0] >= context->engine->min && dims[0] <= context->engine->max;
        for (int axis = 1; fits && axis < rank; ++axis) fits = dims[axis] == end->dims[axis];
        return fits ? (context->batches[number] = dims[0], REGATTA_TRT_OK) : fail(REGATTA_TRT_RUN, "the shape is not within the profile");
    }
    if (!is_input(context->engine, number) || rank != (context->engine->inputs == 3 ? 2 : context->engine->image[0] < 0 ? 5 : 4) || dims[0] < context->engine->min || dims[0] > context->engine->max || (context->length && dims[1] != context->length))
        return fail(REGATTA_TRT_RUN, "the shape is not within the profile");
    return context->batches[number] = dims[0], REGATTA_TRT_OK;
}
int32_t regatta_trt_context_address(regatta_trt_context* context, const char* tensor, void* address) {
    int number = number_of(context->engine, tensor);
    if (number < 0) return fail(REGATTA_TRT_RUN, "no such tensor");
    return context->addresses[number] = (uint64_t)(uintptr_t)address, REGATTA_TRT_OK;
}

static float half(uint16_t bits) {
    int exponent = bits >> 10 & 31;
    float value = (float)(bits & 1023) / 1024 + (exponent ? 1 : 0);
    for (int e = exponent ? exponent : 1; e < 15; ++e) value /= 2;
    for (int e = exponent; e > 15; --e) value *= 2;
    return bits & 0x8000 ? -value : value;
}
/* Exact for the small whole numbers that scores are. */
static uint16_t to_half(float value) {
    int exponent = 15;
    if (value == 0) return 0;
    for (; value >= 2; value /= 2) ++exponent;
    for (; value < 1; value *= 2) --exponent;
    return (uint16_t)(exponent << 10 | (int)((value - 1) * 1024));
}
static double token(const void* tokens, size_t number, int wide) { return wide ? (double)((const int64_t*)tokens)[number] : ((const int32_t*)tokens)[number]; }
static void compute_three(const regatta_trt_context* context) {
    const void* inputs[3];
    int wide = context->engine->input == INT64;
    float* outputs[2];
    size_t rows = (size_t)context->batches[0];
    for (int i = 0; i < 3; ++i)
        if (!(inputs[i] = resolve(context->addresses[i], rows * PIXELS * (wide ? 8 : 4)))) return;
    for (int o = 0; o < 2; ++o)
        if (!(outputs[o] = resolve(context->addresses[3 + o], rows * CLASSES * sizeof(float)))) return;
    for (size_t row = 0; row < rows; ++row) {
        float scores[CLASSES] = {0};
        for (size_t i = row * PIXELS; i < (row + 1) * PIXELS; ++i) scores[(i - row * PIXELS) % CLASSES] += (float)(token(inputs[1], i, wide) * (token(inputs[0], i, wide) - token(inputs[2], i, wide)));
        for (int c = 0; c < CLASSES; ++c) {
            outputs[0][row * CLASSES + (size_t)c] = scores[c];
            outputs[1][row * CLASSES + (size_t)c] = -scores[c];
        }
    }
}
static void compute_sequences(const regatta_trt_context* context) {
    const void* inputs[3];
    int wide = context->engine->input == INT64;
    float* outputs[2];
    size_t rows = (size_t)context->batches[0], length = (size_t)context->length;
    for (int i = 0; i < 3; ++i)
        if (!(inputs[i] = resolve(context->addresses[i], rows * length * (wide ? 8 : 4)))) return;
    for (int o = 0; o < 2; ++o)
        if (!(outputs[o] = resolve(context->addresses[3 + o], rows * length * sizeof(float)))) return;
    for (size_t row = 0; row < rows; ++row) {
        float sum = 0;
        for (size_t i = row * length; i < (row + 1) * length; ++i) sum += outputs[0][i] = (float)(token(inputs[1], i, wide) * (token(inputs[0], i, wide) - token(inputs[2], i, wide)));
        for (size_t i = row * length; i < (row + 1) * length; ++i) outputs[1][i] = -(outputs[0][i] += sum);
    }
}
static void compute_volume(const regatta_trt_context* context) {
    const int* image = context->engine->image;
    int input_type = context->engine->input, type = output_type(context->engine);
    size_t rows = (size_t)context->batches[0], count = (size_t)(-image[0] * image[1] * image[2]);
    const char* voxels = resolve(context->addresses[0], rows * count * (size_t)size_of(input_type));
    char* output = resolve(context->addresses[1], rows * count * VOXEL_CLASSES * (size_t)size_of(type));
    for (size_t i = 0; voxels && output && i < rows * count; ++i) {
        const char* voxel = voxels + i * (size_t)size_of(input_type);
        float value = input_type == FP32 ? *(const float*)voxel : input_type == FP16 ? half(*(const uint16_t*)voxel) : *(const signed char*)voxel;
        float scores[VOXEL_CLASSES] = {3, value, 6 - value};
        for (size_t c = 0; c < VOXEL_CLASSES; ++c) {
            char* to = output + ((i / count * VOXEL_CLASSES + c) * count + i % count) * (size_t)size_of(type);
            if (type == FP32) *(float*)to = scores[c];
            if (type == FP16) *(uint16_t*)to = to_half(scores[c]);
        }
    }
}
/* The samples of a network's only input as it computes them: linear, of fp32. NULL when they are that already. */
static float* converted(const regatta_trt_engine* engine, const onnx_value* input, const void* samples, int64_t rows) {
    int is_linear = engine->format <= LINEAR, type = engine->input < 0 ? FP32 : engine->input;
    int64_t channels = is_linear ? 1 : input->dims[1], pixels = sample_count(input) / channels, step = channels_of(engine->format);
    if (is_linear && type == FP32) return NULL;
    float scale;
    memcpy(&scale, &engine->scale, sizeof scale);
    float* values = malloc((size_t)(rows * channels * pixels) * sizeof *values);
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t channel = 0; channel < channels; ++channel) {
            float* to = values + (row * channels + channel) * pixels;
            int64_t from = row * pixels * step + channel;
            if (type == INT8) for (int64_t i = 0; i < pixels; ++i) to[i] = scale * ((const signed char*)samples)[from + i * step];
            else for (int64_t i = 0; i < pixels; ++i) to[i] = half(((const uint16_t*)samples)[from + i * step]);
        }
    return values;
}
/* The bytes of some rows of an input or output in memory. */
static size_t bytes_of(const regatta_trt_engine* engine, int number, int64_t rows) {
    const onnx_value* end = end_of(engine->network, number);
    int64_t count = onnx_product(end->dims, 1, end->rank);
    if (!is_input(engine, number) || (engine->input < 0 && engine->format < 0)) return (size_t)(rows * count) * onnx_size(end->type);
    return (size_t)(engine->format > LINEAR ? rows * count / end->dims[1] * channels_of(engine->format) : rows * count) * (size_t)size_of(engine->input);
}
static void compute_network(const regatta_trt_context* context) {
    const onnx_network* network = context->engine->network;
    void* places[TENSORS];
    int count = tensors(context->engine);
    for (int number = 0; number < count; ++number) {
        const onnx_value* end = end_of(network, number);
        size_t bytes = bytes_of(context->engine, number, context->batches[0]);
        /* Outputs are in the file's order here. */
        void** place = &places[number < network->input_count ? number : network->input_count + (int)(end - network->outputs)];
        if (!(*place = resolve(context->addresses[number], bytes))) return;
    }
    float* values = converted(context->engine, &network->inputs[0], places[0], context->batches[0]);
    if (values) places[0] = values;
    if (!onnx_compute(network, context->batches[0], places, places + network->input_count)) abort();
    free(values);
}
static void compute(void* argument) {
    const regatta_trt_context* context = argument;
    if (context->engine->network) return compute_network(context);
    if (context->length) return compute_sequences(context);
    if (context->engine->inputs == 3) return compute_three(context);
    if (context->engine->image[0] < 0) return compute_volume(context);
    const int* image = context->engine->image;
    int step = context->engine->format == LINEAR ? 1 : 4, count = image[0] * image[1] * image[2];
    int input_type = context->engine->input, type = output_type(context->engine), columns = context->engine->output ? 1 : CLASSES;
    const char* pixels = resolve(context->addresses[0], (size_t)context->batches[0] * (size_t)(count * step * size_of(input_type)));
    char* output = resolve(context->addresses[1], (size_t)context->batches[0] * columns * size_of(type));
    for (int64_t row = 0; pixels && output && row < context->batches[0]; ++row) {
        float scores[CLASSES] = {0};
        int best = 0;
        for (int i = 0; i < count; ++i) {
            const char* pixel = pixels + (row * count + i) * step * size_of(input_type);
            scores[i % PIXELS % CLASSES] += input_type == FP32 ? *(const float*)pixel : input_type == FP16 ? half(*(const uint16_t*)pixel) : *(const signed char*)pixel;
        }
        for (int c = 1; c < CLASSES; ++c) best = scores[c] > scores[best] ? c : best;
        for (int c = 0; c < columns; ++c) {
            char* to = output + (row * columns + c) * size_of(type);
            if (type == INT32) *(int32_t*)to = best;
            if (type == FP32) *(float*)to = scores[c];
            if (type == FP16) *(uint16_t*)to = to_half(scores[c]);
        }
    }
}
int32_t regatta_trt_context_enqueue(regatta_trt_context* context, void* stream) {
    for (int number = 0; number < tensors(context->engine); ++number)
        if (!context->addresses[number] || (is_input(context->engine, number) && (!context->batches[number] || context->batches[number] != context->batches[0])))
            return fail(REGATTA_TRT_RUN, "a shape or an address was not set");
    int result = launch(stream, compute, context, sizeof *context);
    if (!result) return REGATTA_TRT_OK;
    snprintf(error_words, sizeof error_words, "Error Code 1: Cuda Runtime (CUDA error %d in enqueue)", result);
    return REGATTA_TRT_RUN;
}
