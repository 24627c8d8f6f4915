/* A library for TensorRT's own registry and shim. It prints the ways of registration that are used: with REGISTERS_ITSELF its constructor,
 * with INITIALISES the function of NVIDIA's own library, which returns the macro's value, with EXPORTS_CREATORS what TensorRT's registry looks
 * for: the creator of a plug-in that nobody creates. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

static inline void say(const char* what) { fprintf(stderr, "[registration: %s]\n", what); }

#ifdef REGISTERS_ITSELF
__attribute__((constructor)) static void register_itself(void) { say("constructor"); }
#endif

#ifdef INITIALISES
bool initLibNvInferPlugins(void* logger, const char* name_space) {
    say(logger != NULL && *name_space == 0 ? "initLibNvInferPlugins" : "bad arguments");
    return INITIALISES;
}
#endif

#ifdef EXPORTS_CREATORS
struct info {
    const char* kind;
    int32_t major, minor;
};
struct fields {
    int32_t count;
    const void* first;
};

static int32_t language(const void* creator) { return (void)creator, 0; }
static struct info info(const void* creator) { return (void)creator, (struct info){"PLUGIN CREATOR_V3ONE", 1, 0}; }
static void destroy(void* creator) { (void)creator; }
static void* create(void* creator) { return (void)creator, NULL; }
static const struct fields* fields(void* creator) {
    static const struct fields none = {0, NULL};
    return (void)creator, &none;
}
static const char* name(const void* creator) { return (void)creator, "RegistrationTest"; }
static const char* version(const void* creator) { return (void)creator, "1"; }
static const char* name_space(const void* creator) { return (void)creator, ""; }

/* The virtual functions of IPluginCreatorV3One in the order of NvInferRuntime.h, behind the destructors' two entries. */
static void (*const functions[])(void) = {
    (void (*)(void))language, (void (*)(void))info,    (void (*)(void))destroy, (void (*)(void))destroy,    (void (*)(void))create,
    (void (*)(void))fields,   (void (*)(void))name,    (void (*)(void))version, (void (*)(void))name_space,
};
static const void* creator = functions;

void setLoggerFinder(void* finder) { (void)finder; }

const void* const* getCreators(int32_t* count) {
    static const void* const creators[] = {&creator};
    say("getCreators");
    *count = 1;
    return creators;
}
#endif
