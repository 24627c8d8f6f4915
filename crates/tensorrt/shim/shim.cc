// The C interface of regatta_trt.h over one version of TensorRT: 8.5 to 11, and TensorRT-RTX. What a version does not have
// is distinguished by its own version macros, in one place each. CUDA is not linked here: streams and addresses are the caller's.

#include "regatta_trt.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

#include "NvInfer.h"
#include "NvOnnxParser.h"

#if defined(TRT_MAJOR_RTX)
#define REGATTA_RTX 1
#else
#define REGATTA_RTX 0
#endif
// Types come from the network alone: no precision flags, no calibrators.
#define REGATTA_STRONG_ONLY (REGATTA_RTX || NV_TENSORRT_MAJOR >= 11)
#define REGATTA_HAS_PROGRESS (REGATTA_RTX || NV_TENSORRT_MAJOR >= 10)
// The registry loads libraries itself, if they export their creators for it.
#define REGATTA_LOADS_PLUGINS (REGATTA_RTX || NV_TENSORRT_MAJOR >= 9 || (NV_TENSORRT_MAJOR == 8 && NV_TENSORRT_MINOR >= 6))
#define REGATTA_HAS_LEVEL (REGATTA_RTX || NV_TENSORRT_MAJOR >= 9 || (NV_TENSORRT_MAJOR == 8 && NV_TENSORRT_MINOR >= 6))

namespace {

thread_local std::string last_error;

int32_t fail(regatta_trt_status status, std::string words) {
    last_error = std::move(words);
    return status;
}

// Passes TensorRT's words on and remembers its errors, which say more than the null pointer that follows them.
class Log final : public nvinfer1::ILogger {
public:
    Log(regatta_trt_log log, void* user) : log_(log), user_(user) {}

    void log(Severity severity, char const* message) noexcept override {
        if (severity <= Severity::kERROR) {
            std::lock_guard<std::mutex> lock(mutex_);
            if (errors_.size() < 4096) errors_ += (errors_.empty() ? "" : "; ") + std::string(message);
        }
        if (log_) log_(user_, static_cast<int32_t>(severity), message);
    }

    // The errors since the last call.
    std::string errors(char const* otherwise) {
        std::lock_guard<std::mutex> lock(mutex_);
        std::string words = errors_.empty() ? otherwise : errors_;
        errors_.clear();
        return words;
    }

private:
    regatta_trt_log log_;
    void* user_;
    std::mutex mutex_;
    std::string errors_;
};

struct Handle {
    void* library = nullptr;
    ~Handle() {
        if (library) dlclose(library);
    }
    template <class Function>
    Function symbol(char const* name) const {
        return reinterpret_cast<Function>(dlsym(library, name));
    }
};

using CreateWithLogger = void* (*)(void*, int32_t);
using CreateParser = void* (*)(void*, void*, int);
using LibraryVersion = int32_t (*)();

// What one of TensorRT's functions made, or nothing. Without a driver the lean runtime of 11.4 answers with an offset into no object
// instead of a null pointer; no object is in the first page.
template <class Made>
std::unique_ptr<Made> made(void* object) {
    return std::unique_ptr<Made>(reinterpret_cast<uintptr_t>(object) < 4096 ? nullptr : static_cast<Made*>(object));
}

} // namespace

struct regatta_trt_library {
    regatta_trt_library(regatta_trt_log log, void* user) : log(log, user) {}
    Log log;
    Handle infer, parser;
    CreateWithLogger create_builder = nullptr, create_runtime = nullptr;
    CreateParser create_parser = nullptr;
    int32_t version = 0;
    std::string no_parser = "this TensorRT has no ONNX parser"; // why there is none; engines can be loaded all the same
};

struct regatta_trt_engine {
    regatta_trt_library* library;
    std::unique_ptr<nvinfer1::IRuntime> runtime;
    std::unique_ptr<nvinfer1::ICudaEngine> engine;
};

struct regatta_trt_context {
    regatta_trt_engine* engine;
    std::unique_ptr<nvinfer1::IExecutionContext> context;
};

namespace {

#if REGATTA_HAS_PROGRESS
// Counts the steps of nested phases; a caller can stop at the next step.
class Progress final : public nvinfer1::IProgressMonitor {
public:
    Progress(regatta_trt_progress report, void* user) : report_(report), user_(user) {}

    void phaseStart(char const* phase, char const*, int32_t steps) noexcept override { tell(phase, 0, steps); }

    bool stepComplete(char const* phase, int32_t step) noexcept override {
        return tell(phase, step + 1, -1);
    }

    void phaseFinish(char const* phase) noexcept override {
        std::lock_guard<std::mutex> lock(mutex_);
        steps_.erase(phase);
    }

    bool cancelled() {
        std::lock_guard<std::mutex> lock(mutex_);
        return cancelled_;
    }

private:
    bool tell(char const* phase, int32_t step, int32_t steps) {
        std::lock_guard<std::mutex> lock(mutex_);
        if (steps >= 0) steps_[phase] = steps;
        cancelled_ = cancelled_ || report_(user_, phase, step, steps_[phase]) != 0;
        return !cancelled_;
    }

    regatta_trt_progress report_;
    void* user_;
    std::mutex mutex_;
    std::map<std::string, int32_t> steps_;
    bool cancelled_ = false;
};
#endif

#if !REGATTA_STRONG_ONLY
// Calibration over the caller's samples, or by a cache alone. The interface decides how scales are found.
template <class Interface>
class Calibrator final : public Interface {
public:
    explicit Calibrator(regatta_trt_settings const& settings) : settings_(settings) {}

    int32_t getBatchSize() const noexcept override { return std::max(settings_.calibration_batch, 1); }

    bool getBatch(void* bindings[], char const* names[], int32_t count) noexcept override {
        return settings_.calibrate && settings_.calibrate(settings_.user, names, bindings, count) != 0;
    }

    void const* readCalibrationCache(size_t& size) noexcept override {
        size = settings_.calibration_cache_size;
        return settings_.calibration_cache;
    }

    void writeCalibrationCache(void const* cache, size_t size) noexcept override {
        if (settings_.take_calibration_cache) settings_.take_calibration_cache(settings_.user, cache, size);
    }

private:
    regatta_trt_settings const& settings_;
};
#endif

char const* layer_type(nvinfer1::LayerType type) {
    using nvinfer1::LayerType;
    switch (type) {
    case LayerType::kCONVOLUTION: return "Convolution";
    case LayerType::kACTIVATION: return "Activation";
    case LayerType::kPOOLING: return "Pooling";
    case LayerType::kSCALE: return "Scale";
    case LayerType::kSOFTMAX: return "SoftMax";
    case LayerType::kDECONVOLUTION: return "Deconvolution";
    case LayerType::kCONCATENATION: return "Concatenation";
    case LayerType::kELEMENTWISE: return "ElementWise";
    case LayerType::kUNARY: return "Unary";
    case LayerType::kSHUFFLE: return "Shuffle";
    case LayerType::kREDUCE: return "Reduce";
    case LayerType::kTOPK: return "TopK";
    case LayerType::kMATRIX_MULTIPLY: return "MatrixMultiply";
    case LayerType::kCONSTANT: return "Constant";
    case LayerType::kSLICE: return "Slice";
    case LayerType::kSHAPE: return "Shape";
    case LayerType::kRESIZE: return "Resize";
    case LayerType::kQUANTIZE: return "Quantize";
    case LayerType::kDEQUANTIZE: return "Dequantize";
    default: return "other";
    }
}

std::string parser_errors(nvonnxparser::IParser const& parser) {
    std::string words;
    for (int32_t number = 0; number < parser.getNbErrors(); ++number)
        words += (words.empty() ? "" : "; ") + std::string(parser.getError(number)->desc());
    return words.empty() ? "the parser gave no reason" : words;
}

std::string words(nvinfer1::Dims const& dims) {
    std::string words = "[";
    for (int32_t axis = 0; axis < dims.nbDims; ++axis) words += (axis ? ", " : "") + std::to_string(dims.d[axis]);
    return words + "]";
}

// An input by name; the only one where there is no name.
nvinfer1::ITensor* find_input(nvinfer1::INetworkDefinition const& network, char const* name) {
    if (!name) return network.getNbInputs() == 1 ? network.getInput(0) : nullptr;
    for (int32_t number = 0; number < network.getNbInputs(); ++number)
        if (!std::strcmp(network.getInput(number)->getName(), name)) return network.getInput(number);
    return nullptr;
}

int32_t no_such_input(nvinfer1::INetworkDefinition const& network, char const* name) {
    std::string known;
    for (int32_t number = 0; number < network.getNbInputs(); ++number) known += (number ? ", " : "") + std::string(network.getInput(number)->getName());
    return fail(REGATTA_TRT_MODEL, (name ? "the network has no input " + std::string(name) : "the network has several inputs, and none was named") + "; it has " + known);
}

// The shapes that the settings have for an input, in their order.
std::vector<regatta_trt_input_shape const*> shapes_of(nvinfer1::INetworkDefinition const& network, nvinfer1::ITensor const& input, regatta_trt_settings const& settings) {
    std::vector<regatta_trt_input_shape const*> shapes;
    for (int32_t number = 0; number < settings.input_shape_count; ++number) {
        nvinfer1::ITensor const* named = find_input(network, settings.input_shapes[number].name);
        if (named && !std::strcmp(named->getName(), input.getName())) shapes.push_back(&settings.input_shapes[number]);
    }
    return shapes;
}

// How many shapes inputs have: lengths of sequences, or one.
size_t count_lengths(nvinfer1::INetworkDefinition const& network, regatta_trt_settings const& settings) {
    size_t lengths = 1;
    for (int32_t number = 0; number < network.getNbInputs(); ++number)
        lengths = std::max(lengths, shapes_of(network, *network.getInput(number), settings).size());
    return lengths;
}

// 32 bits wide up to TensorRT 9.
template <class Dim>
void set_dim(Dim& dim, int64_t value) { dim = static_cast<Dim>(value); }

// Sets the dynamic dimensions of the inputs, except the batch, in the network itself. All later shapes are then known too. A dimension that
// differs between an input's shapes stays dynamic.
int32_t fix_shapes(nvinfer1::INetworkDefinition& network, regatta_trt_settings const& settings) {
    for (int32_t number = 0; number < settings.input_shape_count; ++number)
        if (!find_input(network, settings.input_shapes[number].name)) return no_such_input(network, settings.input_shapes[number].name);
    size_t const lengths = count_lengths(network, settings);
    if (lengths > 1 && settings.dla_core >= 0) return fail(REGATTA_TRT_UNSUPPORTED, "an engine for DLA has one shape for each input");
    for (int32_t number = 0; number < network.getNbInputs(); ++number) {
        nvinfer1::ITensor* input = network.getInput(number);
        auto const shapes = shapes_of(network, *input, settings);
        if (shapes.size() > 1 && shapes.size() != lengths)
            return fail(REGATTA_TRT_MODEL, "the input " + std::string(input->getName()) + " has " + std::to_string(shapes.size()) + " shapes, but another input has " + std::to_string(lengths));
        nvinfer1::Dims const declared = input->getDimensions();
        nvinfer1::Dims dims = declared;
        for (size_t length = 0; length < shapes.size(); ++length) {
            regatta_trt_input_shape const& shape = *shapes[length];
            std::string requested;
            bool fits = declared.nbDims == shape.rank + 1;
            for (int32_t axis = 0; axis < shape.rank; ++axis) {
                requested += (axis ? ", " : "") + std::to_string(shape.dims[axis]);
                if (!fits) continue;
                fits = declared.d[axis + 1] < 0 || declared.d[axis + 1] == shape.dims[axis];
                set_dim(dims.d[axis + 1], shape.dims[axis] == shapes[0]->dims[axis] && (length == 0 || dims.d[axis + 1] >= 0) ? shape.dims[axis] : -1);
            }
            if (!fits) return fail(REGATTA_TRT_MODEL, "the input " + std::string(input->getName()) + " is " + words(declared) + ", and does not take " + requested + " behind its batch");
        }
        if (!shapes.empty()) input->setDimensions(dims);
    }
    return REGATTA_TRT_OK;
}

// Whether a profile has to say what the input's dimensions are.
bool has_free_dims(nvinfer1::Dims const& dims) {
    return std::any_of(dims.d, dims.d + std::max(dims.nbDims, 0), [](int64_t dim) { return dim < 0; });
}

// Adds one profile: the free first dimension of each input from min to max, and the others as the shape of this length has them.
int32_t add_profile(nvinfer1::IBuilder& builder, nvinfer1::INetworkDefinition& network, nvinfer1::IBuilderConfig& config, regatta_trt_settings const& settings, size_t length) {
    nvinfer1::IOptimizationProfile* profile = builder.createOptimizationProfile();
    for (int32_t number = 0; number < network.getNbInputs(); ++number) {
        nvinfer1::ITensor const& input = *network.getInput(number);
        nvinfer1::Dims dims = input.getDimensions();
        if (dims.nbDims == 0 || !has_free_dims(dims)) continue;
        auto const shapes = shapes_of(network, input, settings);
        for (int32_t axis = 1; axis < dims.nbDims && !shapes.empty(); ++axis) set_dim(dims.d[axis], shapes[std::min(length, shapes.size() - 1)]->dims[axis - 1]);
        std::pair<nvinfer1::OptProfileSelector, int32_t> const sizes[] = {
            {nvinfer1::OptProfileSelector::kMIN, settings.min_batch},
            {nvinfer1::OptProfileSelector::kOPT, settings.opt_batch},
            {nvinfer1::OptProfileSelector::kMAX, settings.max_batch},
        };
        bool const is_free = dims.d[0] < 0;
        for (auto const& size : sizes) {
            if (is_free) dims.d[0] = size.second;
            if (!profile->setDimensions(input.getName(), size.first, dims)) return fail(REGATTA_TRT_BUILD, "TensorRT does not take a batch of " + std::to_string(size.second) + " for " + input.getName());
        }
    }
    if (config.addOptimizationProfile(profile) < 0) return fail(REGATTA_TRT_BUILD, "TensorRT does not take the optimisation profile");
    return REGATTA_TRT_OK;
}

// A profile for every context and every length of sequences.
int32_t add_profiles(nvinfer1::IBuilder& builder, nvinfer1::INetworkDefinition& network, nvinfer1::IBuilderConfig& config, regatta_trt_settings const& settings) {
    bool has_free = false;
    for (int32_t number = 0; number < network.getNbInputs(); ++number) {
        nvinfer1::ITensor const& input = *network.getInput(number);
        nvinfer1::Dims const dims = input.getDimensions();
        bool const has_shapes = !shapes_of(network, input, settings).empty();
        for (int32_t axis = 1; axis < dims.nbDims; ++axis)
            if (dims.d[axis] < 0 && !has_shapes) return fail(REGATTA_TRT_MODEL, "the input " + std::string(input.getName()) + " is " + words(dims) + ", and only the first of its dimensions, the batch, may be free: give the others as --input-shape " + input.getName() + "=D,D,...");
        has_free = has_free || has_free_dims(dims);
        if (dims.nbDims > 0 && dims.d[0] >= 0 && dims.d[0] != settings.max_batch)
            return fail(REGATTA_TRT_MODEL, "the input " + std::string(input.getName()) + " has a fixed batch of " + std::to_string(dims.d[0]) + ", not " + std::to_string(settings.max_batch));
    }
    size_t const lengths = count_lengths(network, settings);
    for (int32_t context = 0; has_free && context < std::max(settings.profiles, 1); ++context)
        for (size_t length = 0; length < lengths; ++length)
            if (int32_t const status = add_profile(builder, network, config, settings, length)) return status;
    return REGATTA_TRT_OK;
}

// Where layers go: everything to the DLA core, or a word about what cannot.
int32_t place_on_dla(regatta_trt_library& library, nvinfer1::IBuilder& builder, nvinfer1::INetworkDefinition& network, nvinfer1::IBuilderConfig& config, regatta_trt_settings const& settings) {
    int32_t const cores = builder.getNbDLACores();
    if (settings.dla_core >= cores)
        return fail(REGATTA_TRT_UNSUPPORTED, "DLA core " + std::to_string(settings.dla_core) + " was requested, but TensorRT " + regatta_trt_headers() + " finds " + std::to_string(cores) + " here; it drives DLA up to 10.7 and, on AGX Orin, again from 11.4.1");
    config.setDefaultDeviceType(nvinfer1::DeviceType::kDLA);
    config.setDLACore(settings.dla_core);
    if (settings.gpu_fallback) config.setFlag(nvinfer1::BuilderFlag::kGPU_FALLBACK);
    if (settings.dla_sram_bytes) config.setMemoryPoolLimit(nvinfer1::MemoryPoolType::kDLA_MANAGED_SRAM, settings.dla_sram_bytes);
    for (int32_t number = 0; settings.layer && number < network.getNbLayers(); ++number) {
        nvinfer1::ILayer const* layer = network.getLayer(number);
        settings.layer(settings.user, layer->getName(), layer_type(layer->getType()), config.canRunOnDLA(layer) ? 1 : 0);
    }
    // What canRunOnDLA says of single layers is no failure of the build.
    library.log.errors("");
    return REGATTA_TRT_OK;
}

// Type and layout of one input or output, where they were requested.
int32_t set_io(nvinfer1::ITensor& tensor, char const* kind, int32_t type, int32_t format) {
    if (type >= 0 && static_cast<int32_t>(tensor.getType()) != type) {
#if !REGATTA_STRONG_ONLY
        tensor.setType(static_cast<nvinfer1::DataType>(type));
#endif
        if (static_cast<int32_t>(tensor.getType()) != type)
            return fail(REGATTA_TRT_UNSUPPORTED, std::string("the ") + kind + " " + tensor.getName() + " is of another type than was requested, and TensorRT " + regatta_trt_headers() + " takes types from the network alone: give an ONNX file where it has that type");
    }
    if (format >= 0) tensor.setAllowedFormats(1u << static_cast<uint32_t>(format));
    return REGATTA_TRT_OK;
}

int32_t set_all_io(nvinfer1::INetworkDefinition& network, regatta_trt_settings const& settings) {
    for (int32_t number = 0; number < network.getNbInputs(); ++number)
        if (int32_t const status = set_io(*network.getInput(number), "input", settings.input_type, settings.input_format)) return status;
    for (int32_t number = 0; number < network.getNbOutputs(); ++number)
        if (int32_t const status = set_io(*network.getOutput(number), "output", settings.output_type, settings.output_format)) return status;
    return REGATTA_TRT_OK;
}

int32_t configure(regatta_trt_library& library, nvinfer1::IBuilder& builder, nvinfer1::INetworkDefinition& network, nvinfer1::IBuilderConfig& config, regatta_trt_settings const& settings) {
    config.setProfilingVerbosity(nvinfer1::ProfilingVerbosity::kDETAILED);
    if (settings.workspace_bytes) config.setMemoryPoolLimit(nvinfer1::MemoryPoolType::kWORKSPACE, settings.workspace_bytes);
    if (settings.optimization_level >= 0) {
#if REGATTA_HAS_LEVEL
        config.setBuilderOptimizationLevel(settings.optimization_level);
#else
        return fail(REGATTA_TRT_UNSUPPORTED, "an optimisation level was requested, which TensorRT " + std::string(regatta_trt_headers()) + " does not know");
#endif
    }
#if REGATTA_STRONG_ONLY
    if (settings.precision != REGATTA_TRT_AS_IN_NETWORK)
        return fail(REGATTA_TRT_UNSUPPORTED, "TensorRT " + std::string(regatta_trt_headers()) + " takes types from the network alone: give an ONNX file in that precision (Q/DQ for int8)");
#else
    config.clearFlag(nvinfer1::BuilderFlag::kTF32);
    if (settings.precision >= REGATTA_TRT_FP16) config.setFlag(nvinfer1::BuilderFlag::kFP16);
    if (settings.precision >= REGATTA_TRT_INT8) config.setFlag(nvinfer1::BuilderFlag::kINT8);
#endif
    if (int32_t const status = fix_shapes(network, settings)) return status;
    if (int32_t const status = set_all_io(network, settings)) return status;
    if (int32_t const status = add_profiles(builder, network, config, settings)) return status;
    return settings.dla_core >= 0 ? place_on_dla(library, builder, network, config, settings) : REGATTA_TRT_OK;
}

std::unique_ptr<nvinfer1::INetworkDefinition> new_network(nvinfer1::IBuilder& builder, int32_t precision) {
    uint32_t flags = 0;
#if !REGATTA_STRONG_ONLY && NV_TENSORRT_MAJOR < 10
    flags |= 1u << static_cast<uint32_t>(nvinfer1::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH);
#elif !REGATTA_STRONG_ONLY
    if (precision == REGATTA_TRT_AS_IN_NETWORK) flags |= 1u << static_cast<uint32_t>(nvinfer1::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED);
#endif
    (void)precision;
    return std::unique_ptr<nvinfer1::INetworkDefinition>(builder.createNetworkV2(flags));
}

#if !REGATTA_STRONG_ONLY
char const* type_word(int32_t type) {
    static char const* const known[] = {"fp32", "fp16", "int8", "int32", "bool", "uint8", "fp8", "bf16", "int64"};
    return type >= 0 && type < 9 ? known[type] : "another type";
}

// TensorRT would read beyond the caller's memory if samples had another size or type than the network's inputs.
int32_t check_calibration(nvinfer1::INetworkDefinition const& network, regatta_trt_settings const& settings) {
    if (network.getNbInputs() != settings.calibration_input_count)
        return fail(REGATTA_TRT_MODEL, "the network has " + std::to_string(network.getNbInputs()) + " input(s), but a calibration sample is for " + std::to_string(settings.calibration_input_count));
    for (int32_t number = 0; number < settings.calibration_input_count; ++number) {
        regatta_trt_calibration_input const& input_samples = settings.calibration_inputs[number];
        nvinfer1::ITensor const* input = find_input(network, input_samples.name);
        if (!input) return no_such_input(network, input_samples.name);
        std::string const name = input->getName();
        int32_t const type = static_cast<int32_t>(input->getType());
        if (type != input_samples.type)
            return fail(REGATTA_TRT_MODEL, "the input " + name + " is " + type_word(type) + ", but its calibration samples are " + type_word(input_samples.type) + "; hint: use samples of the network's own type, and build once without --input-dtype; the scales are kept");
        nvinfer1::Dims const dims = input->getDimensions();
        for (int32_t axis = 1; axis < dims.nbDims; ++axis)
            if (dims.d[axis] < 0) return fail(REGATTA_TRT_MODEL, "the input " + name + " has several shapes, and calibration samples have one; hint: build once with the samples' shape alone; the scales are kept");
        uint64_t bytes = type == 8 ? 8 : type == 1 ? 2 : type == 2 ? 1 : 4;
        for (int32_t axis = 1; axis < dims.nbDims; ++axis) bytes *= static_cast<uint64_t>(dims.d[axis]);
        if (bytes != input_samples.sample_bytes)
            return fail(REGATTA_TRT_MODEL, "a calibration sample has " + std::to_string(input_samples.sample_bytes) + " bytes for the input " + name + ", which takes " + std::to_string(bytes));
    }
    return REGATTA_TRT_OK;
}
#endif

int32_t build(regatta_trt_library& library, regatta_trt_settings const& settings) {
    auto builder = made<nvinfer1::IBuilder>(library.create_builder(&library.log, NV_TENSORRT_VERSION));
    if (!builder) return fail(REGATTA_TRT_LIBRARY, library.log.errors("TensorRT makes no builder"));
    auto network = new_network(*builder, settings.precision);
    if (!network) return fail(REGATTA_TRT_BUILD, library.log.errors("TensorRT makes no network"));
    auto parser = made<nvonnxparser::IParser>(library.create_parser(network.get(), &library.log, NV_ONNX_PARSER_VERSION));
    if (!parser) return fail(REGATTA_TRT_LIBRARY, library.log.errors("TensorRT makes no ONNX parser"));
    library.log.errors("");
    if (!parser->parseFromFile(settings.onnx, static_cast<int32_t>(nvinfer1::ILogger::Severity::kWARNING))) {
        library.log.errors("");
        return fail(REGATTA_TRT_MODEL, parser_errors(*parser));
    }
    std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
    if (!config) return fail(REGATTA_TRT_BUILD, library.log.errors("TensorRT makes no build configuration"));
    if (int32_t const status = configure(library, *builder, *network, *config, settings)) return status;

    // One that TensorRT does not take gives way to an empty one, which the build fills.
    std::unique_ptr<nvinfer1::ITimingCache> timings(config->createTimingCache(settings.timing_cache, settings.timing_cache ? settings.timing_cache_size : 0));
    if (!timings || !config->setTimingCache(*timings, false)) {
        timings.reset(config->createTimingCache(nullptr, 0));
        if (timings && !config->setTimingCache(*timings, false)) timings.reset();
    }
    library.log.errors("");
#if !REGATTA_STRONG_ONLY
    Calibrator<nvinfer1::IInt8EntropyCalibrator2> entropy(settings);
    Calibrator<nvinfer1::IInt8MinMaxCalibrator> min_max(settings);
    nvinfer1::IInt8Calibrator* const calibrator = settings.calibration_method == REGATTA_TRT_MIN_MAX ? static_cast<nvinfer1::IInt8Calibrator*>(&min_max) : &entropy;
    if (settings.calibrate) {
        if (int32_t const status = check_calibration(*network, settings)) return status;
    }
    if (settings.precision >= REGATTA_TRT_INT8 && (settings.calibration_cache || settings.calibrate)) config->setInt8Calibrator(calibrator);
#endif
#if REGATTA_HAS_PROGRESS
    Progress progress(settings.progress, settings.user);
    if (settings.progress) config->setProgressMonitor(&progress);
#endif
    std::unique_ptr<nvinfer1::IHostMemory> plan(builder->buildSerializedNetwork(*network, *config));
#if REGATTA_HAS_PROGRESS
    if (settings.progress && progress.cancelled()) return fail(REGATTA_TRT_CANCELLED, "the build was cancelled");
#endif
    if (!plan) return fail(REGATTA_TRT_BUILD, library.log.errors("TensorRT gave no reason"));
    settings.take_plan(settings.user, plan->data(), plan->size());
    if (timings && settings.take_timing_cache) {
        std::unique_ptr<nvinfer1::IHostMemory> const cache(timings->serialize());
        if (cache) settings.take_timing_cache(settings.user, cache->data(), cache->size());
    }
    return REGATTA_TRT_OK;
}

// Nothing that is thrown in here may cross into the caller, which is not C++.
template <class Call>
int32_t guarded(Call call) {
    try {
        return call();
    } catch (std::exception const& error) {
        return fail(REGATTA_TRT_BUILD, std::string("inside TensorRT or its shim: ") + error.what());
    } catch (...) {
        return fail(REGATTA_TRT_BUILD, "inside TensorRT or its shim: an unknown exception");
    }
}

using InitPlugins = bool (*)(void*, char const*);
using PluginRegistry = nvinfer1::IPluginRegistry* (*)();

// A function of the library itself, or nothing: dlsym also searches the libraries that it needs.
void* own_symbol(void* library, char const* name) {
    void* const found = dlsym(library, name);
    Dl_info info;
    link_map *own = nullptr, *of_found = nullptr;
    bool const is_known = found && !dlinfo(library, RTLD_DI_LINKMAP, &own) && dladdr1(found, &info, reinterpret_cast<void**>(&of_found), RTLD_DL_LINKMAP);
    return is_known && own == of_found ? found : nullptr;
}

// A library registers its plug-ins when it is loaded, as those of REGISTER_TENSORRT_PLUGIN; or by the function of NVIDIA's own library; or
// it exports their creators, and TensorRT's registry loads it.
int32_t load_plugins(regatta_trt_library& library, char const* path) {
    void* const opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!opened) return fail(REGATTA_TRT_LIBRARY, dlerror());
    library.log.errors("");
    if (auto const init = reinterpret_cast<InitPlugins>(own_symbol(opened, "initLibNvInferPlugins"))) {
        if (!init(&library.log, "")) return fail(REGATTA_TRT_LIBRARY, library.log.errors("its initLibNvInferPlugins failed"));
    } else if (own_symbol(opened, "getCreators") || own_symbol(opened, "getPluginCreators")) {
#if REGATTA_LOADS_PLUGINS
        auto const registry = library.infer.symbol<PluginRegistry>("getPluginRegistry");
        if (!registry || !registry() || !registry()->loadLibrary(path)) return fail(REGATTA_TRT_LIBRARY, library.log.errors("TensorRT's plug-in registry does not take it"));
#else
        return fail(REGATTA_TRT_UNSUPPORTED, "it exports its creators, and TensorRT " + std::string(regatta_trt_headers()) + " only knows plug-ins that register themselves");
#endif
    }
    return REGATTA_TRT_OK;
}

int32_t open_library(Handle& handle, char const* name) {
    handle.library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    return handle.library ? REGATTA_TRT_OK : fail(REGATTA_TRT_LIBRARY, dlerror());
}

} // namespace

uint32_t regatta_trt_abi(void) { return REGATTA_TRT_ABI; }

char const* regatta_trt_headers(void) {
    static std::string const version = std::string(REGATTA_RTX ? "rtx-" : "") + std::to_string(NV_TENSORRT_MAJOR) + "." + std::to_string(NV_TENSORRT_MINOR) + "." + std::to_string(NV_TENSORRT_PATCH);
    return version.c_str();
}

char const* regatta_trt_error(void) { return last_error.c_str(); }

int32_t regatta_trt_open(char const* infer, char const* parser, regatta_trt_log log, void* user, regatta_trt_library** library) {
    return guarded([&]() -> int32_t {
        auto opened = std::unique_ptr<regatta_trt_library>(new regatta_trt_library(log, user));
        if (int32_t const status = open_library(opened->infer, infer)) return status;
        auto const version = opened->infer.symbol<LibraryVersion>("getInferLibVersion");
        opened->create_builder = opened->infer.symbol<CreateWithLogger>("createInferBuilder_INTERNAL");
        opened->create_runtime = opened->infer.symbol<CreateWithLogger>("createInferRuntime_INTERNAL");
        if (!version || !opened->create_runtime) return fail(REGATTA_TRT_LIBRARY, std::string(infer) + " is not a TensorRT library");
        opened->version = version();
        if (parser && open_library(opened->parser, parser)) {
            opened->no_parser = last_error;
        } else if (parser) {
            opened->create_parser = opened->parser.symbol<CreateParser>("createNvOnnxParser_INTERNAL");
            opened->no_parser = std::string(parser) + " is no ONNX parser of TensorRT";
        }
        *library = opened.release();
        return REGATTA_TRT_OK;
    });
}

void regatta_trt_close(regatta_trt_library* library) { delete library; }

int32_t regatta_trt_version(regatta_trt_library const* library) { return library->version; }

int32_t regatta_trt_dla_cores(regatta_trt_library* library) {
    if (!library->create_builder) return -1;
    auto const builder = made<nvinfer1::IBuilder>(library->create_builder(&library->log, NV_TENSORRT_VERSION));
    library->log.errors("");
    return builder ? builder->getNbDLACores() : -1;
}

int32_t regatta_trt_plugins_load(regatta_trt_library* library, char const* path) {
    return guarded([&]() -> int32_t { return load_plugins(*library, path); });
}

int32_t regatta_trt_build(regatta_trt_library* library, regatta_trt_settings const* settings) {
    return guarded([&]() -> int32_t {
        if (settings->size != sizeof(regatta_trt_settings)) return fail(REGATTA_TRT_UNSUPPORTED, "the settings are not those of this shim");
        if (!library->create_builder) return fail(REGATTA_TRT_LIBRARY, "this TensorRT has no builder: it is a lean or dispatch runtime, which loads engines and builds none; name one that has by --tensorrt or REGATTA_TENSORRT");
        if (!library->create_parser) return fail(REGATTA_TRT_LIBRARY, library->no_parser);
        return build(*library, *settings);
    });
}

int32_t regatta_trt_engine_open(regatta_trt_library* library, void const* plan, size_t size, int32_t dla_core, regatta_trt_engine** engine) {
    return guarded([&]() -> int32_t {
        auto opened = std::unique_ptr<regatta_trt_engine>(new regatta_trt_engine{library, nullptr, nullptr});
        opened->runtime = made<nvinfer1::IRuntime>(library->create_runtime(&library->log, NV_TENSORRT_VERSION));
        if (!opened->runtime) return fail(REGATTA_TRT_PLAN, library->log.errors("TensorRT makes no runtime"));
        if (dla_core >= 0) opened->runtime->setDLACore(dla_core);
        opened->engine.reset(opened->runtime->deserializeCudaEngine(plan, size));
        if (!opened->engine) return fail(REGATTA_TRT_PLAN, library->log.errors("TensorRT does not load the plan and gave no reason"));
        *engine = opened.release();
        return REGATTA_TRT_OK;
    });
}

void regatta_trt_engine_close(regatta_trt_engine* engine) { delete engine; }

int32_t regatta_trt_engine_tensors(regatta_trt_engine const* engine) { return engine->engine->getNbIOTensors(); }

int32_t regatta_trt_engine_tensor(regatta_trt_engine const* engine, int32_t number, regatta_trt_tensor* tensor) {
    char const* name = engine->engine->getIOTensorName(number);
    if (!name) return fail(REGATTA_TRT_PLAN, "the engine has no tensor " + std::to_string(number));
    nvinfer1::Dims const dims = engine->engine->getTensorShape(name);
    *tensor = {};
    tensor->name = name;
    tensor->is_input = engine->engine->getTensorIOMode(name) == nvinfer1::TensorIOMode::kINPUT;
    tensor->type = static_cast<int32_t>(engine->engine->getTensorDataType(name));
    tensor->rank = dims.nbDims;
    for (int32_t axis = 0; axis < std::min(dims.nbDims, 8); ++axis) tensor->dims[axis] = dims.d[axis];
    tensor->format = static_cast<int32_t>(engine->engine->getTensorFormat(name));
    return REGATTA_TRT_OK;
}

int32_t regatta_trt_engine_inspect(regatta_trt_engine* engine, regatta_trt_take take, void* user) {
    return guarded([&]() -> int32_t {
        std::unique_ptr<nvinfer1::IEngineInspector> const inspector(engine->engine->createEngineInspector());
        char const* json = inspector ? inspector->getEngineInformation(nvinfer1::LayerInformationFormat::kJSON) : nullptr;
        if (!json) return fail(REGATTA_TRT_PLAN, engine->library->log.errors("TensorRT does not describe the engine"));
        take(user, json, std::strlen(json));
        return REGATTA_TRT_OK;
    });
}

int32_t regatta_trt_engine_profiles(regatta_trt_engine const* engine) { return engine->engine->getNbOptimizationProfiles(); }

int32_t regatta_trt_engine_batches(regatta_trt_engine const* engine, char const* input, int32_t profile, int64_t* least, int64_t* most) {
    return guarded([&]() -> int32_t {
        nvinfer1::Dims const min = engine->engine->getProfileShape(input, profile, nvinfer1::OptProfileSelector::kMIN);
        nvinfer1::Dims const max = engine->engine->getProfileShape(input, profile, nvinfer1::OptProfileSelector::kMAX);
        if (min.nbDims < 1 || max.nbDims < 1) return fail(REGATTA_TRT_PLAN, engine->library->log.errors("TensorRT gives no shapes of the profile"));
        *least = min.d[0];
        *most = max.d[0];
        return REGATTA_TRT_OK;
    });
}

uint64_t regatta_trt_engine_context_bytes(regatta_trt_engine const* engine) {
#if REGATTA_RTX || NV_TENSORRT_MAJOR >= 11
    return static_cast<uint64_t>(std::max<int64_t>(engine->engine->getDeviceMemorySizeV2(), 0));
#else
    return engine->engine->getDeviceMemorySize();
#endif
}

int32_t regatta_trt_context_open(regatta_trt_engine* engine, int32_t profile, void* stream, regatta_trt_context** context) {
    return guarded([&]() -> int32_t {
        Log& log = engine->library->log;
        log.errors("");
        auto opened = std::unique_ptr<regatta_trt_context>(new regatta_trt_context{engine, nullptr});
        opened->context.reset(engine->engine->createExecutionContext());
        if (!opened->context) return fail(REGATTA_TRT_RUN, log.errors("TensorRT makes no execution context"));
        if (profile > 0 && !opened->context->setOptimizationProfileAsync(profile, static_cast<cudaStream_t>(stream)))
            return fail(REGATTA_TRT_RUN, log.errors("TensorRT does not take the optimisation profile"));
        *context = opened.release();
        return REGATTA_TRT_OK;
    });
}

void regatta_trt_context_close(regatta_trt_context* context) { delete context; }

int32_t regatta_trt_context_shape(regatta_trt_context* context, char const* input, int64_t const* dims, int32_t rank) {
    return guarded([&]() -> int32_t {
        nvinfer1::Dims shape{};
        shape.nbDims = std::min(rank, static_cast<int32_t>(nvinfer1::Dims::MAX_DIMS));
        std::copy(dims, dims + shape.nbDims, shape.d);
        if (context->context->setInputShape(input, shape)) return REGATTA_TRT_OK;
        return fail(REGATTA_TRT_RUN, context->engine->library->log.errors("TensorRT does not take the input's shape"));
    });
}

int32_t regatta_trt_context_address(regatta_trt_context* context, char const* tensor, void* address) {
    return guarded([&]() -> int32_t {
        if (context->context->setTensorAddress(tensor, address)) return REGATTA_TRT_OK;
        return fail(REGATTA_TRT_RUN, context->engine->library->log.errors("TensorRT does not take the tensor's address"));
    });
}

int32_t regatta_trt_context_enqueue(regatta_trt_context* context, void* stream) {
    return guarded([&]() -> int32_t {
        if (context->context->enqueueV3(static_cast<cudaStream_t>(stream))) return REGATTA_TRT_OK;
        return fail(REGATTA_TRT_RUN, context->engine->library->log.errors("TensorRT gave no reason"));
    });
}
