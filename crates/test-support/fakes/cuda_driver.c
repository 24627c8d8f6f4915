/* A fake of CUDA's driver for tests: the functions that regatta-cuda calls, computed on the CPU. Never shipped.
 *
 * Streams are threads with a queue, so work is done after the call that gave it, in order. Device memory is host memory at an
 * address that the host cannot use, with guard bytes around it. Graphs are kept and done again. A kernel is a function of the
 * fake shim (trt_shim.c), set by fake_cuda_launch.
 *
 * FAKE_CUDA_FAULTS (or fake_cuda_faults) is a list of what goes wrong: no-device, version=10020, memory=BYTES (no more than
 * that), launch=N (the Nth launch is refused), late=N (the Nth kernel fails, told later), lost=N (the device is lost in the Nth
 * kernel), slow=MICROSECONDS (every kernel), discrete (no shared memory), capture (graphs cannot be captured),
 * code=N (late and lost with this result), devices=N (number of GPUs), unlike (the second is of another kind), device=N (launch, late and
 * lost happen on that one, 0 otherwise), sms=N (multiprocessors of each, 16 otherwise). While it starts it may: talk (on standard
 * output), hang, crash, quit (the whole process, as if all were well), leave (a process behind that keeps what it has open).
 * Compiled with FAKE_FAULTS, that is the list where the environment has none.
 *
 * Devices are apart, as real ones are: memory of one has no address on another, and what is given to a stream comes from a thread
 * that is bound to its device. Host memory belongs to all. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, NO_DEVICE = 100, INVALID_CONTEXT = 201,
       ECC = 214, INVALID_HANDLE = 400, NOT_READY = 600, ILLEGAL_ADDRESS = 700, OUT_OF_RESOURCES = 701, LAUNCH_FAILED = 719,
       CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901 };
#define GUARD 64
#define TAG (1ull << 60)
#define ARGUMENT 1024
#define DEVICES 8

typedef struct device { int number, lost; long launches, kernels; } device;
typedef struct memory { struct memory* next; unsigned char* bytes; size_t size; device* of; } memory;
typedef struct event { unsigned long set, reached; } event;
typedef enum { COPY, COPY_ROWS, CLEAR, KERNEL, RECORD, WAIT } kind;
typedef struct op {
    struct op* next;
    kind kind;
    void *to, *from;
    size_t bytes, rows, to_pitch, from_pitch;
    void (*kernel)(void*);
    event* event;
    unsigned long ticket;
    _Alignas(16) unsigned char argument[ARGUMENT];
} op;
typedef struct graph { op *first, *last; size_t nodes; } graph;
typedef struct stream { device* of; pthread_t thread; op *first, *last; int busy, ends; graph* captured; int capture_broken; } stream;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static memory* memories;
static size_t taken;
static long live, allocations;
static int started;
static device devices[DEVICES];
/* The device that the calling thread uses; in a stream's own thread the stream's. */
static __thread device* bound;
static __thread stream* capturing;
static struct { long memory, launch, late, lost, slow, version, code, device, devices, sms; int no_device, discrete, capture, unlike; const char* start; } faults;

static long number(const char* list, const char* name) {
    const char* found = list ? strstr(list, name) : NULL;
    return found ? strtol(found + strlen(name), NULL, 10) : 0;
}
void fake_cuda_faults(const char* list) {
    faults.memory = number(list, "memory="), faults.launch = number(list, "launch="), faults.late = number(list, "late=");
    faults.lost = number(list, "lost="), faults.slow = number(list, "slow="), faults.version = number(list, "version=");
    faults.code = number(list, "code="), faults.device = number(list, "device="), faults.devices = number(list, "devices=");
    faults.unlike = list && strstr(list, "unlike"), faults.sms = number(list, "sms="), faults.start = list ? list : "";
    faults.no_device = list && strstr(list, "no-device"), faults.discrete = list && strstr(list, "discrete");
    faults.capture = list && strstr(list, "capture");
    for (int i = 0; i < DEVICES; ++i) devices[i].number = i, devices[i].launches = devices[i].kernels = 0;
}
#ifndef FAKE_FAULTS
#define FAKE_FAULTS NULL
#endif
__attribute__((constructor)) static void begin(void) {
    const char* list = getenv("FAKE_CUDA_FAULTS");
    fake_cuda_faults(list ? list : FAKE_FAULTS);
}

/* Streams, events, graphs, memories and contexts that were not freed. */
long fake_cuda_live(void) { return live; }
/* Memories that were ever requested. */
long fake_cuda_allocations(void) { return allocations; }

/* Which device the calling thread uses, -1 for none. */
int fake_cuda_device(void) { return bound ? bound->number : -1; }

static int ready(void) { return !started ? NOT_INITIALIZED : !bound ? INVALID_CONTEXT : bound->lost; }
#define READY()                              \
    do {                                     \
        int result = ready();                \
        if (result != SUCCESS) return result; \
    } while (0)
#define READY_FOR(s)                                \
    do {                                            \
        READY();                                    \
        if ((s)->of != bound) return INVALID_HANDLE; \
    } while (0)

/* Where an address of the calling thread's device is in the fake's memory; NULL when nothing of that size is there. */
static void* resolve(uint64_t address, size_t bytes) {
    unsigned char* place = (unsigned char*)(uintptr_t)(address & ~TAG);
    if (!(address & TAG)) return NULL;
    for (memory* m = memories; m; m = m->next)
        if (place >= m->bytes && place + bytes <= m->bytes + m->size && (!m->of || m->of == bound)) return place;
    return NULL;
}
void* fake_cuda_resolve(uint64_t address, size_t bytes) {
    pthread_mutex_lock(&mutex);
    void* place = resolve(address, bytes);
    if (!place && bound) bound->lost = ILLEGAL_ADDRESS;
    pthread_mutex_unlock(&mutex);
    return place;
}

static void do_op(op* o) {
    if (bound->lost) return;
    if (o->kind == KERNEL) {
        pthread_mutex_lock(&mutex);
        long mine = bound->number == faults.device ? ++bound->kernels : 0;
        if (mine && mine == faults.late) bound->lost = faults.code ? (int)faults.code : LAUNCH_FAILED;
        if (mine && mine == faults.lost) bound->lost = faults.code ? (int)faults.code : ECC;
        pthread_mutex_unlock(&mutex);
        if (faults.slow) nanosleep(&(struct timespec){faults.slow / 1000000, faults.slow % 1000000 * 1000}, NULL);
        if (!bound->lost) o->kernel(o->argument);
    } else if (o->kind == COPY) {
        memcpy(o->to, o->from, o->bytes);
    } else if (o->kind == COPY_ROWS) {
        for (size_t row = 0; row < o->rows; ++row) memcpy((char*)o->to + row * o->to_pitch, (char*)o->from + row * o->from_pitch, o->bytes);
    } else if (o->kind == CLEAR) {
        memset(o->to, 0, o->bytes);
    }
}

static void* work(void* argument) {
    stream* s = argument;
    bound = s->of;
    pthread_mutex_lock(&mutex);
    for (;;) {
        while (!s->first && !s->ends) pthread_cond_wait(&changed, &mutex);
        op* o = s->first;
        if (!o) break;
        if (o->kind == WAIT)
            while (o->event->reached < o->ticket && !bound->lost) pthread_cond_wait(&changed, &mutex);
        s->first = o->next, s->last = s->first ? s->last : NULL;
        pthread_mutex_unlock(&mutex);
        do_op(o);
        pthread_mutex_lock(&mutex);
        if (o->kind == RECORD && !bound->lost && o->event->reached < o->ticket) o->event->reached = o->ticket;
        s->busy--;
        free(o);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void append(op** first, op** last, op* o) {
    o->next = NULL;
    *last = *first ? ((*last)->next = o) : (*first = o);
}
static int give(stream* s, op operation) {
    op* o = malloc(sizeof *o);
    *o = operation;
    if (s->captured) {
        s->captured->nodes++;
        append(&s->captured->first, &s->captured->last, o);
        return SUCCESS;
    }
    pthread_mutex_lock(&mutex);
    append(&s->first, &s->last, o);
    s->busy++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    return SUCCESS;
}
static int launch(void) {
    pthread_mutex_lock(&mutex);
    int refused = bound->number == faults.device && ++bound->launches == faults.launch;
    pthread_mutex_unlock(&mutex);
    return refused ? OUT_OF_RESOURCES : SUCCESS;
}
/* Has `kernel` called with a copy of the argument, in the stream's turn. */
int fake_cuda_launch(stream* s, void (*kernel)(void*), const void* argument, size_t size) {
    READY_FOR(s);
    if (size > ARGUMENT) return INVALID_VALUE;
    int refused = s->captured ? SUCCESS : launch();
    op o = {.kind = KERNEL, .kernel = kernel};
    memcpy(o.argument, argument, size);
    return refused ? refused : give(s, o);
}

static void start(void) {
    if (strstr(faults.start, "talk") && write(STDOUT_FILENO, "a driver that talks", 19) < 0) exit(1);
    if (strstr(faults.start, "hang")) pause();
    if (strstr(faults.start, "crash")) *(volatile char*)8 = 0;
    if (strstr(faults.start, "quit")) _exit(0);
    if (strstr(faults.start, "leave") && !fork()) sleep(20), _exit(0);
}
int cuInit(unsigned flags) {
    start();
    return flags ? INVALID_VALUE : faults.no_device ? NO_DEVICE : (started = 1, SUCCESS);
}
int cuDriverGetVersion(int* version) { return *version = faults.version ? (int)faults.version : 11040, SUCCESS; }
static int count(void) { return faults.devices && faults.devices <= DEVICES ? (int)faults.devices : 1; }
int cuDeviceGetCount(int* found) { return *found = count(), SUCCESS; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, ordinal >= 0 && ordinal < count() ? SUCCESS : INVALID_VALUE; }
int cuDeviceGetName(char* name, int size, int device) {
    return snprintf(name, (size_t)size, faults.unlike && device == 1 ? "another fake GPU" : "fake GPU"), SUCCESS;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
    (void)device;
    *value = attribute == 75 ? 8 : attribute == 76 ? 7 : attribute == 16 ? (faults.sms ? (int)faults.sms : 16) : attribute == 18 ? !faults.discrete : 0;
    return SUCCESS;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) { return (void)device, *bytes = faults.memory ? (size_t)faults.memory : (size_t)1 << 30, SUCCESS; }
int cuDevicePrimaryCtxRetain(device** context, int number) { return live++, *context = &devices[number], SUCCESS; }
int cuDevicePrimaryCtxRelease_v2(int device) { return (void)device, live--, SUCCESS; }
int cuCtxSetCurrent(device* context) { return bound = context, context ? context->lost : SUCCESS; }
int cuMemGetInfo_v2(size_t* available, size_t* total) {
    READY();
    *total = faults.memory ? (size_t)faults.memory : (size_t)1 << 30;
    *available = *total > taken ? *total - taken : 0;
    return SUCCESS;
}

static int allocate(unsigned char** place, size_t size, device* of) {
    READY();
    if (capturing) return capturing->capture_broken = 1, CAPTURE_UNSUPPORTED;
    pthread_mutex_lock(&mutex);
    allocations++;
    int full = faults.memory && taken + size > (size_t)faults.memory;
    if (!full) {
        memory* m = malloc(sizeof *m);
        unsigned char* whole = malloc(size + 2 * GUARD);
        memset(whole, 0xA5, size + 2 * GUARD);
        *m = (memory){memories, whole + GUARD, size, of};
        memories = m, taken += size, live++, *place = m->bytes;
    }
    pthread_mutex_unlock(&mutex);
    return full ? OUT_OF_MEMORY : SUCCESS;
}
static int release(unsigned char* place) {
    pthread_mutex_lock(&mutex);
    memory** m = &memories;
    while (*m && (*m)->bytes != place) m = &(*m)->next;
    memory* found = *m;
    if (found) {
        for (int i = 0; i < GUARD; ++i)
            if (place[-1 - i] != 0xA5 || place[found->size + i] != 0xA5) {
                fprintf(stderr, "fake_cuda: written beyond a memory of %zu bytes\n", found->size);
                abort();
            }
        *m = found->next, taken -= found->size, live--;
        free(place - GUARD), free(found);
    }
    pthread_mutex_unlock(&mutex);
    return !found ? INVALID_VALUE : bound ? bound->lost : SUCCESS;
}
int cuMemAlloc_v2(uint64_t* address, size_t size) {
    unsigned char* place = NULL;
    int result = allocate(&place, size, bound);
    return *address = (uint64_t)(uintptr_t)place | TAG, result;
}
int cuMemFree_v2(uint64_t address) { return release((unsigned char*)(uintptr_t)(address & ~TAG)); }
int cuMemHostAlloc(void** place, size_t size, unsigned flags) { return (void)flags, allocate((unsigned char**)place, size, NULL); }
int cuMemFreeHost(void* place) { return release(place); }
int cuMemHostGetDevicePointer_v2(uint64_t* address, void* place, unsigned flags) {
    READY();
    return (void)flags, *address = (uint64_t)(uintptr_t)place | TAG, SUCCESS;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, stream* s) {
    READY_FOR(s);
    void* place = fake_cuda_resolve(to, bytes);
    return place ? give(s, (op){.kind = COPY, .to = place, .from = (void*)from, .bytes = bytes}) : INVALID_VALUE;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, stream* s) {
    READY_FOR(s);
    void* place = fake_cuda_resolve(from, bytes);
    return place ? give(s, (op){.kind = COPY, .to = to, .from = place, .bytes = bytes}) : INVALID_VALUE;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, stream* s) {
    READY_FOR(s);
    void *place = fake_cuda_resolve(to, bytes), *source = fake_cuda_resolve(from, bytes);
    return place && source ? give(s, (op){.kind = COPY, .to = place, .from = source, .bytes = bytes}) : INVALID_VALUE;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, stream* s) {
    READY_FOR(s);
    void* place = value ? NULL : fake_cuda_resolve(to, bytes);
    return place ? give(s, (op){.kind = CLEAR, .to = place, .bytes = bytes}) : INVALID_VALUE;
}
/* CUDA_MEMCPY2D; copies within the device alone. */
typedef struct {
    size_t from_x, from_y;
    int from_type;
    const void* from_host;
    uint64_t from;
    void* from_array;
    size_t from_pitch, to_x, to_y;
    int to_type;
    void* to_host;
    uint64_t to;
    void* to_array;
    size_t to_pitch, width, height;
} rows_copy;
int cuMemcpy2DAsync_v2(const rows_copy* c, stream* s) {
    READY_FOR(s);
    if (c->from_type != 2 || c->to_type != 2 || c->from_x || c->from_y || c->to_x || c->to_y) return INVALID_VALUE;
    if (c->width > c->from_pitch || c->width > c->to_pitch || !c->height) return INVALID_VALUE;
    void* place = fake_cuda_resolve(c->to, (c->height - 1) * c->to_pitch + c->width);
    void* source = fake_cuda_resolve(c->from, (c->height - 1) * c->from_pitch + c->width);
    if (!place || !source) return INVALID_VALUE;
    return give(s, (op){.kind = COPY_ROWS, .to = place, .from = source, .bytes = c->width, .rows = c->height, .to_pitch = c->to_pitch, .from_pitch = c->from_pitch});
}

int cuStreamCreate(stream** s, unsigned flags) {
    READY();
    (void)flags;
    *s = calloc(1, sizeof **s);
    (*s)->of = bound, live++;
    return pthread_create(&(*s)->thread, NULL, work, *s) ? OUT_OF_RESOURCES : SUCCESS;
}
int cuStreamDestroy_v2(stream* s) {
    pthread_mutex_lock(&mutex);
    s->ends = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    pthread_join(s->thread, NULL);
    live--;
    return free(s), bound ? bound->lost : SUCCESS;
}
int cuStreamSynchronize(stream* s) {
    READY();
    if (s->captured) return s->capture_broken = 1, CAPTURE_UNSUPPORTED;
    pthread_mutex_lock(&mutex);
    while (s->busy && !s->of->lost) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    return s->of->lost;
}
int cuStreamWaitEvent(stream* s, event* e, unsigned flags) {
    READY_FOR(s);
    (void)flags;
    if (s->captured) return s->capture_broken = 1, CAPTURE_UNSUPPORTED;
    return give(s, (op){.kind = WAIT, .event = e, .ticket = e->set});
}
int cuStreamBeginCapture_v2(stream* s, int mode) {
    READY_FOR(s);
    (void)mode;
    if (faults.capture) return CAPTURE_UNSUPPORTED;
    s->captured = calloc(1, sizeof *s->captured), s->capture_broken = 0, capturing = s;
    return SUCCESS;
}
static void drop_ops(graph* g) {
    for (op* o = g->first; o;) {
        op* next = o->next;
        free(o), o = next;
    }
    free(g), live--;
}
int cuStreamEndCapture(stream* s, graph** g) {
    graph* captured = s->captured;
    s->captured = NULL, capturing = NULL, live++, *g = NULL;
    if (s->capture_broken) return drop_ops(captured), CAPTURE_INVALIDATED;
    return *g = captured, SUCCESS;
}
int cuGraphGetNodes(graph* g, void* nodes, size_t* count) { return (void)nodes, *count = g->nodes, SUCCESS; }
int cuGraphDestroy(graph* g) { return drop_ops(g), SUCCESS; }
int cuGraphExecDestroy(graph* g) { return drop_ops(g), SUCCESS; }
int cuGraphInstantiateWithFlags(graph** made, graph* g, unsigned long long flags) {
    READY();
    (void)flags;
    *made = calloc(1, sizeof **made), live++;
    for (op* o = g->first; o; o = o->next) {
        op* copy = malloc(sizeof *copy);
        *copy = *o;
        append(&(*made)->first, &(*made)->last, copy);
    }
    return SUCCESS;
}
#ifndef FAKE_WITHOUT_GRAPHS
int cuGraphLaunch(graph* g, stream* s) {
    READY_FOR(s);
    int refused = launch();
    for (op* o = g->first; o && !refused; o = o->next) give(s, *o);
    return refused;
}
#endif

int cuEventCreate(event** e, unsigned flags) {
    READY();
    return (void)flags, live++, *e = calloc(1, sizeof **e), SUCCESS;
}
int cuEventDestroy_v2(event* e) { return free(e), live--, bound ? bound->lost : SUCCESS; }
int cuEventRecord(event* e, stream* s) {
    READY_FOR(s);
    if (s->captured) return s->capture_broken = 1, CAPTURE_UNSUPPORTED;
    pthread_mutex_lock(&mutex);
    unsigned long ticket = ++e->set;
    pthread_mutex_unlock(&mutex);
    return give(s, (op){.kind = RECORD, .event = e, .ticket = ticket});
}
int cuEventQuery(event* e) {
    READY();
    pthread_mutex_lock(&mutex);
    int reached = e->reached == e->set;
    pthread_mutex_unlock(&mutex);
    return bound->lost ? bound->lost : reached ? SUCCESS : NOT_READY;
}
int cuEventSynchronize(event* e) {
    READY();
    pthread_mutex_lock(&mutex);
    while (e->reached < e->set && !bound->lost) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    return bound->lost;
}

static const struct { int code; const char *name, *words; } RESULTS[] = {
    {SUCCESS, "CUDA_SUCCESS", "no error"}, {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}, {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {ECC, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
    {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
};
static int words(int code, const char** text, int name) {
    for (size_t i = 0; i < sizeof RESULTS / sizeof *RESULTS; ++i)
        if (RESULTS[i].code == code) return *text = name ? RESULTS[i].name : RESULTS[i].words, SUCCESS;
    return *text = NULL, INVALID_VALUE;
}
int cuGetErrorName(int code, const char** name) { return words(code, name, 1); }
int cuGetErrorString(int code, const char** text) { return words(code, text, 0); }
