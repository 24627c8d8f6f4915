/* Computes an ONNX network on the CPU, for the fake shim (trt_shim.c): the operations that the networks of RNN-T, Whisper, Stable Diffusion XL and a
 * small RetinaNet have, in 32-bit floats, one after the other and without any optimisation. An operation that is not here ends the computation. */
/* Otherwise an encoder takes seconds. */
#pragma GCC optimize("O3")
#include <math.h>
#include <stdio.h>

typedef struct { onnx_bytes name; int type, rank; int64_t dims[ONNX_RANK]; void* data; } onnx_tensor;
typedef struct { onnx_tensor tensors[ONNX_TENSORS + 4 * ONNX_NODES]; int count, failed; } onnx_memory;

static size_t onnx_size(int type) { return type == ONNX_INT64 ? 8 : type == ONNX_BOOL ? 1 : type == ONNX_FLOAT16 ? 2 : 4; }
static int64_t onnx_product(const int64_t* dims, int from, int to) {
    int64_t product = 1;
    for (int axis = from; axis < to; ++axis) product *= dims[axis];
    return product;
}
static int64_t onnx_count(const onnx_tensor* t) { return onnx_product(t->dims, 0, t->rank); }
static onnx_tensor* onnx_find(onnx_memory* memory, onnx_bytes name) {
    for (int i = memory->count - 1; i >= 0; --i)
        if (onnx_same(memory->tensors[i].name, name)) return &memory->tensors[i];
    return NULL;
}
static onnx_tensor* onnx_new(onnx_memory* memory, onnx_bytes name, int type, int rank, const int64_t* dims) {
    onnx_tensor* t = &memory->tensors[memory->count++];
    *t = (onnx_tensor){.name = name, .type = type, .rank = rank};
    memcpy(t->dims, dims, (size_t)rank * sizeof *dims);
    t->data = malloc((size_t)onnx_count(t) * onnx_size(type) + 1);
    return t;
}
static const onnx_attribute* onnx_attribute_named(const onnx_node* node, const char* name) {
    for (int i = 0; i < node->attribute_count; ++i)
        if (onnx_is(node->attributes[i].name, name)) return &node->attributes[i];
    return NULL;
}
static int64_t onnx_number(const onnx_node* node, const char* name, int64_t otherwise) {
    const onnx_attribute* found = onnx_attribute_named(node, name);
    return found ? found->number : otherwise;
}
static int onnx_axis(int64_t axis, int rank) { return (int)(axis < 0 ? axis + rank : axis); }

/* The place of an element of the broadcast result in one of its sources. */
static int64_t onnx_place(const onnx_tensor* source, const onnx_tensor* result, int64_t element) {
    int64_t place = 0, stride = 1;
    int shift = result->rank - source->rank;
    for (int axis = result->rank - 1; axis >= shift; --axis) {
        int64_t at = element % result->dims[axis], dim = source->dims[axis - shift];
        element /= result->dims[axis];
        if (dim > 1) place += at * stride;
        stride *= dim;
    }
    return place;
}
static int onnx_broadcast(onnx_tensor* const* sources, int count, int64_t dims[ONNX_RANK]) {
    int rank = 0;
    for (int i = 0; i < count; ++i) rank = sources[i]->rank > rank ? sources[i]->rank : rank;
    for (int axis = 0; axis < rank; ++axis) {
        dims[axis] = 1;
        for (int i = 0; i < count; ++i) {
            int own = axis - (rank - sources[i]->rank);
            if (own >= 0 && sources[i]->dims[own] > dims[axis]) dims[axis] = sources[i]->dims[own];
        }
    }
    return rank;
}
static double onnx_integer(const onnx_tensor* t, int64_t place) { return t->type == ONNX_INT64 ? (double)((int64_t*)t->data)[place] : t->type == ONNX_INT32 ? ((int32_t*)t->data)[place] : ((float*)t->data)[place]; }

static void onnx_elementwise(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in, char kind) {
    int64_t dims[ONNX_RANK];
    int rank = onnx_broadcast(in, 2, dims), compares = kind == '=' || kind == '<';
    if (!compares && (in[0]->type != ONNX_FLOAT || in[1]->type != ONNX_FLOAT)) { m->failed = 1; return; }
    onnx_tensor* out = onnx_new(m, node->outputs[0], compares ? ONNX_BOOL : ONNX_FLOAT, rank, dims);
    for (int64_t i = 0, count = onnx_count(out), a_count = onnx_count(in[0]), b_count = onnx_count(in[1]); i < count; ++i) {
        int64_t a = a_count == count ? i : onnx_place(in[0], out, i), b = b_count == count ? i : b_count == 1 ? 0 : onnx_place(in[1], out, i);
        if (compares) {
            double one = onnx_integer(in[0], a), other = onnx_integer(in[1], b);
            ((char*)out->data)[i] = kind == '=' ? one == other : one < other;
            continue;
        }
        float one = ((float*)in[0]->data)[a], other = ((float*)in[1]->data)[b];
        ((float*)out->data)[i] = kind == '+' ? one + other : kind == '-' ? one - other : kind == '*' ? one * other : one / other;
    }
}
static void onnx_where(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    int64_t dims[ONNX_RANK];
    int rank = onnx_broadcast(in, 3, dims);
    onnx_tensor* out = onnx_new(m, node->outputs[0], ONNX_FLOAT, rank, dims);
    for (int64_t i = 0, count = onnx_count(out); i < count; ++i) {
        const onnx_tensor* from = ((char*)in[0]->data)[onnx_place(in[0], out, i)] ? in[1] : in[2];
        ((float*)out->data)[i] = ((float*)from->data)[onnx_place(from, out, i)];
    }
}
static float onnx_sigmoid(float value) { return 1 / (1 + expf(-value)); }
static void onnx_unary(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in, char kind) {
    onnx_tensor* out = onnx_new(m, node->outputs[0], ONNX_FLOAT, in[0]->rank, in[0]->dims);
    for (int64_t i = 0, count = onnx_count(out); i < count; ++i) {
        float value = ((float*)in[0]->data)[i];
        ((float*)out->data)[i] = kind == 'r' ? (value > 0 ? value : 0) : kind == 's' ? sqrtf(value) : kind == 'e' ? erff(value) : onnx_sigmoid(value);
    }
}
static float onnx_half(uint16_t bits) {
    float sign = bits & 0x8000 ? -1.0f : 1.0f, fraction = (float)(bits & 1023) / 1024;
    int exponent = bits >> 10 & 31;
    return sign * (exponent ? ldexpf(1 + fraction, exponent - 15) : ldexpf(fraction, -14));
}
static void onnx_cast(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    if (in[0]->type != ONNX_FLOAT16 || onnx_number(node, "to", 0) != ONNX_FLOAT) { m->failed = 1; return; }
    onnx_tensor* out = onnx_new(m, node->outputs[0], ONNX_FLOAT, in[0]->rank, in[0]->dims);
    for (int64_t i = 0, count = onnx_count(out); i < count; ++i) ((float*)out->data)[i] = onnx_half(((uint16_t*)in[0]->data)[i]);
}
/* The same elements in another shape. */
static void onnx_shaped(onnx_memory* m, onnx_bytes name, const onnx_tensor* in, int rank, const int64_t* dims) {
    onnx_tensor* out = onnx_new(m, name, in->type, rank, dims);
    if (onnx_count(out) == onnx_count(in)) memcpy(out->data, in->data, (size_t)onnx_count(in) * onnx_size(in->type));
    else m->failed = 1;
}
static void onnx_reshape(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    int64_t dims[ONNX_RANK], known = 1;
    int rank = (int)onnx_count(in[1]), open = -1;
    for (int axis = 0; axis < rank; ++axis) {
        int64_t size = ((int64_t*)in[1]->data)[axis];
        dims[axis] = size ? size : in[0]->dims[axis];
        if (size < 0) open = axis;
        else known *= dims[axis];
    }
    if (open >= 0) dims[open] = onnx_count(in[0]) / known;
    onnx_shaped(m, node->outputs[0], in[0], rank, dims);
}
/* Adds or removes dimensions of 1. */
static void onnx_squeeze(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in, int adds) {
    int64_t dims[ONNX_RANK];
    int count = (int)onnx_count(in[1]), rank = in[0]->rank + (adds ? count : -count);
    for (int axis = 0, own = 0, other = 0; axis < (adds ? rank : in[0]->rank); ++axis) {
        int listed = 0;
        for (int i = 0; i < count; ++i) listed |= onnx_axis(((int64_t*)in[1]->data)[i], adds ? rank : in[0]->rank) == axis;
        if (adds) dims[axis] = listed ? 1 : in[0]->dims[own++];
        else if (!listed) dims[other++] = in[0]->dims[axis];
    }
    onnx_shaped(m, node->outputs[0], in[0], rank, dims);
}
static void onnx_transpose(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    const onnx_attribute* order = onnx_attribute_named(node, "perm");
    int64_t dims[ONNX_RANK], strides[ONNX_RANK];
    int rank = in[0]->rank;
    if (!order || order->count != rank) { m->failed = 1; return; }
    for (int axis = 0; axis < rank; ++axis) {
        dims[axis] = in[0]->dims[order->list[axis]];
        strides[axis] = onnx_product(in[0]->dims, (int)order->list[axis] + 1, rank);
    }
    onnx_tensor* out = onnx_new(m, node->outputs[0], in[0]->type, rank, dims);
    for (int64_t i = 0, count = onnx_count(out), size = (int64_t)onnx_size(in[0]->type); i < count; ++i) {
        int64_t place = 0, left = i;
        for (int axis = rank - 1; axis >= 0; --axis) place += left % dims[axis] * strides[axis], left /= dims[axis];
        memcpy((char*)out->data + i * size, (char*)in[0]->data + place * size, (size_t)size);
    }
}
static void onnx_concat(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    int axis = onnx_axis(onnx_number(node, "axis", 0), in[0]->rank);
    int64_t dims[ONNX_RANK], before = onnx_product(in[0]->dims, 0, axis), size = (int64_t)onnx_size(in[0]->type), offset = 0;
    memcpy(dims, in[0]->dims, sizeof dims);
    for (int i = 1; i < node->input_count; ++i) dims[axis] += in[i]->dims[axis];
    onnx_tensor* out = onnx_new(m, node->outputs[0], in[0]->type, in[0]->rank, dims);
    int64_t whole = onnx_product(dims, axis, out->rank) * size;
    for (int i = 0; i < node->input_count; ++i) {
        int64_t part = onnx_product(in[i]->dims, axis, in[i]->rank) * size;
        for (int64_t row = 0; row < before; ++row) memcpy((char*)out->data + row * whole + offset, (char*)in[i]->data + row * part, (size_t)part);
        offset += part;
    }
}
static void onnx_gather(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    int axis = onnx_axis(onnx_number(node, "axis", 0), in[0]->rank), rank = in[0]->rank - 1 + in[1]->rank;
    int64_t dims[2 * ONNX_RANK], before = onnx_product(in[0]->dims, 0, axis), picks = onnx_count(in[1]);
    int64_t part = onnx_product(in[0]->dims, axis + 1, in[0]->rank) * (int64_t)onnx_size(in[0]->type);
    memcpy(dims, in[0]->dims, (size_t)axis * sizeof *dims);
    memcpy(dims + axis, in[1]->dims, (size_t)in[1]->rank * sizeof *dims);
    memcpy(dims + axis + in[1]->rank, in[0]->dims + axis + 1, (size_t)(in[0]->rank - axis - 1) * sizeof *dims);
    onnx_tensor* out = onnx_new(m, node->outputs[0], in[0]->type, rank, dims);
    for (int64_t row = 0; row < before; ++row)
        for (int64_t pick = 0; pick < picks; ++pick) {
            int64_t at = (int64_t)onnx_integer(in[1], pick);
            if (at < 0 || at >= in[0]->dims[axis]) { m->failed = 1; return; }
            memcpy((char*)out->data + (row * picks + pick) * part, (char*)in[0]->data + (row * in[0]->dims[axis] + at) * part, (size_t)part);
        }
}
static void onnx_reduce_mean(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    const onnx_attribute* axes = onnx_attribute_named(node, "axes");
    int last = in[0]->rank - 1;
    if (!axes || axes->count != 1 || onnx_axis(axes->list[0], in[0]->rank) != last) { m->failed = 1; return; }
    int64_t dims[ONNX_RANK], width = in[0]->dims[last];
    memcpy(dims, in[0]->dims, sizeof dims), dims[last] = 1;
    onnx_tensor* out = onnx_new(m, node->outputs[0], ONNX_FLOAT, in[0]->rank, dims);
    for (int64_t row = 0, rows = onnx_count(out); row < rows; ++row) {
        double sum = 0;
        for (int64_t i = 0; i < width; ++i) sum += ((float*)in[0]->data)[row * width + i];
        ((float*)out->data)[row] = (float)(sum / (double)width);
    }
}
static void onnx_softmax(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    int64_t width = in[0]->dims[in[0]->rank - 1];
    onnx_tensor* out = onnx_new(m, node->outputs[0], ONNX_FLOAT, in[0]->rank, in[0]->dims);
    for (int64_t row = 0, rows = onnx_count(out) / width; row < rows; ++row) {
        const float* from = (float*)in[0]->data + row * width;
        float *to = (float*)out->data + row * width, most = -INFINITY, sum = 0;
        for (int64_t i = 0; i < width; ++i) most = from[i] > most ? from[i] : most;
        for (int64_t i = 0; i < width; ++i) sum += to[i] = expf(from[i] - most);
        for (int64_t i = 0; i < width; ++i) to[i] /= sum;
    }
}
/* Of each channel of [N, channels, width], without factors and summands: those of the exports are ones and zeros. */
static void onnx_instance_norm(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    const onnx_attribute* epsilon = onnx_attribute_named(node, "epsilon");
    if (in[0]->rank != 3 || !epsilon) { m->failed = 1; return; }
    for (int64_t i = 0; i < onnx_count(in[1]); ++i) m->failed |= ((float*)in[1]->data)[i] != 1 || ((float*)in[2]->data)[i] != 0;
    int64_t width = in[0]->dims[2];
    onnx_tensor* out = onnx_new(m, node->outputs[0], ONNX_FLOAT, 3, in[0]->dims);
    for (int64_t row = 0, rows = onnx_count(out) / width; row < rows; ++row) {
        const float* from = (float*)in[0]->data + row * width;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < width; ++i) mean += from[i] / (double)width;
        for (int64_t i = 0; i < width; ++i) variance += (from[i] - mean) * (from[i] - mean) / (double)width;
        for (int64_t i = 0; i < width; ++i) ((float*)out->data)[row * width + i] = (float)((from[i] - mean) / sqrt(variance + epsilon->real));
    }
}
/* Doubles height and width of [N, channels, height, width] by the nearest pixel. */
static void onnx_resize(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    const float doubled[] = {1, 1, 2, 2};
    if (in[0]->rank != 4 || node->input_count != 3 || onnx_count(in[2]) != 4 || memcmp(in[2]->data, doubled, sizeof doubled)) { m->failed = 1; return; }
    int64_t height = 2 * in[0]->dims[2], width = 2 * in[0]->dims[3];
    onnx_tensor* out = onnx_new(m, node->outputs[0], ONNX_FLOAT, 4, (int64_t[]){in[0]->dims[0], in[0]->dims[1], height, width});
    for (int64_t i = 0, count = onnx_count(out); i < count; ++i)
        ((float*)out->data)[i] = ((float*)in[0]->data)[(i / (height * width) * (height / 2) + i / width % height / 2) * (width / 2) + i % width / 2];
}
/* A part of the last dimension. */
static void onnx_slice(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    int last = in[0]->rank - 1;
    if (node->input_count != 4 || onnx_count(in[1]) != 1 || onnx_axis(*(int64_t*)in[3]->data, in[0]->rank) != last) { m->failed = 1; return; }
    int64_t begin = *(int64_t*)in[1]->data, width = *(int64_t*)in[2]->data - begin, whole = in[0]->dims[last], dims[ONNX_RANK];
    if (begin < 0 || width <= 0 || begin + width > whole) { m->failed = 1; return; }
    memcpy(dims, in[0]->dims, sizeof dims), dims[last] = width;
    onnx_tensor* out = onnx_new(m, node->outputs[0], ONNX_FLOAT, in[0]->rank, dims);
    for (int64_t row = 0, rows = onnx_count(out) / width; row < rows; ++row) memcpy((float*)out->data + row * width, (float*)in[0]->data + row * whole + begin, (size_t)width * sizeof(float));
}
/* One product of matrices, [rows, inner] by [inner, columns], added to what is there. */
static void onnx_multiply(const float* a, const float* b, float* out, int64_t rows, int64_t inner, int64_t columns) {
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t i = 0; i < inner; ++i)
            for (int64_t column = 0; column < columns; ++column) out[row * columns + column] += a[row * inner + i] * b[i * columns + column];
}
static void onnx_mat_mul(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    onnx_tensor a = *in[0], b = *in[1];
    int64_t dims[ONNX_RANK], rows = a.dims[a.rank - 2], inner = a.dims[a.rank - 1], columns = b.dims[b.rank - 1];
    a.rank -= 2, b.rank -= 2;
    int rank = onnx_broadcast((onnx_tensor*[]){&a, &b}, 2, dims);
    dims[rank] = rows, dims[rank + 1] = columns;
    onnx_tensor* out = onnx_new(m, node->outputs[0], ONNX_FLOAT, rank + 2, dims);
    memset(out->data, 0, (size_t)onnx_count(out) * sizeof(float));
    onnx_tensor batches = *out;
    batches.rank -= 2;
    for (int64_t batch = 0, count = onnx_count(&batches); batch < count; ++batch)
        onnx_multiply((float*)a.data + onnx_place(&a, &batches, batch) * rows * inner, (float*)b.data + onnx_place(&b, &batches, batch) * inner * columns, (float*)out->data + batch * rows * columns, rows, inner, columns);
}
/* The product with a transposed matrix, plus a bias. */
static void onnx_gemm(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    if (!onnx_number(node, "transB", 0) || onnx_number(node, "transA", 0)) { m->failed = 1; return; }
    int64_t rows = in[0]->dims[0], inner = in[0]->dims[1], columns = in[1]->dims[0];
    onnx_tensor* out = onnx_new(m, node->outputs[0], ONNX_FLOAT, 2, (int64_t[]){rows, columns});
    for (int64_t i = 0; i < rows * columns; ++i) {
        float sum = node->input_count > 2 ? ((float*)in[2]->data)[i % columns] : 0;
        for (int64_t k = 0; k < inner; ++k) sum += ((float*)in[0]->data)[i / columns * inner + k] * ((float*)in[1]->data)[i % columns * inner + k];
        ((float*)out->data)[i] = sum;
    }
}
/* The places of a window on images, [N, channels, height, width]: stride and padding are the same in all directions. */
typedef struct { int64_t kernel, stride, before, height, width, rows, columns; } onnx_window;
static int onnx_window_of(const onnx_node* node, const onnx_tensor* in, int64_t kernel, onnx_window* window) {
    const onnx_attribute *pads = onnx_attribute_named(node, "pads"), *strides = onnx_attribute_named(node, "strides");
    if (in->rank != 4 || !pads || !strides || pads->count != 4) return 0;
    *window = (onnx_window){kernel, strides->list[0], pads->list[0], in->dims[2], in->dims[3], 0, 0};
    window->rows = (window->height + 2 * window->before - kernel) / window->stride + 1;
    window->columns = (window->width + 2 * window->before - kernel) / window->stride + 1;
    return 1;
}
/* Adds an image's pixels, each with the weight of its place in the window. Counts them in `counts`, unless that is NULL. */
static void onnx_slide(const onnx_window* w, const float* image, const float* weights, float* out, float* counts) {
    for (int64_t place = 0; place < w->kernel * w->kernel; ++place)
        for (int64_t row = 0; row < w->rows; ++row) {
            int64_t y = row * w->stride + place / w->kernel - w->before;
            for (int64_t column = 0; y >= 0 && y < w->height && column < w->columns; ++column) {
                int64_t x = column * w->stride + place % w->kernel - w->before;
                if (x < 0 || x >= w->width) continue;
                out[row * w->columns + column] += (weights ? weights[place] : 1) * image[y * w->width + x];
                if (counts) ++counts[row * w->columns + column];
            }
        }
}
static void onnx_conv_of_images(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    onnx_window w;
    if (node->input_count != 3 || !onnx_window_of(node, in[0], in[1]->dims[2], &w)) { m->failed = 1; return; }
    int64_t n = in[0]->dims[0], from = in[0]->dims[1], to = in[1]->dims[0], pixels = w.rows * w.columns;
    onnx_tensor* out = onnx_new(m, node->outputs[0], ONNX_FLOAT, 4, (int64_t[]){n, to, w.rows, w.columns});
    for (int64_t channel = 0; channel < n * to; ++channel) {
        float* image = (float*)out->data + channel * pixels;
        for (int64_t i = 0; i < pixels; ++i) image[i] = ((float*)in[2]->data)[channel % to];
        for (int64_t c = 0; c < from; ++c)
            onnx_slide(&w, (float*)in[0]->data + (channel / to * from + c) * w.height * w.width, (float*)in[1]->data + (channel % to * from + c) * w.kernel * w.kernel, image, NULL);
    }
}
/* The average of the pixels in each window, without the padding. */
static void onnx_average_pool(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    const onnx_attribute* kernel = onnx_attribute_named(node, "kernel_shape");
    onnx_window w;
    if (!kernel || !onnx_window_of(node, in[0], kernel->list[0], &w)) { m->failed = 1; return; }
    int64_t images = in[0]->dims[0] * in[0]->dims[1], pixels = w.rows * w.columns;
    onnx_tensor* out = onnx_new(m, node->outputs[0], ONNX_FLOAT, 4, (int64_t[]){in[0]->dims[0], in[0]->dims[1], w.rows, w.columns});
    float* counts = malloc((size_t)pixels * sizeof *counts);
    memset(out->data, 0, (size_t)(images * pixels) * sizeof(float));
    for (int64_t image = 0; image < images; ++image) {
        float* to = (float*)out->data + image * pixels;
        memset(counts, 0, (size_t)pixels * sizeof *counts);
        onnx_slide(&w, (float*)in[0]->data + image * w.height * w.width, NULL, to, counts);
        for (int64_t i = 0; i < pixels; ++i) to[i] /= counts[i];
    }
    free(counts);
}
/* Along one dimension, [N, channels, width]. */
static void onnx_conv(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    if (in[0]->rank == 4) { onnx_conv_of_images(m, node, in); return; }
    const onnx_attribute *pads = onnx_attribute_named(node, "pads"), *strides = onnx_attribute_named(node, "strides");
    if (in[0]->rank != 3 || !pads || !strides || node->input_count != 3) { m->failed = 1; return; }
    int64_t n = in[0]->dims[0], from = in[0]->dims[1], width = in[0]->dims[2], to = in[1]->dims[0], kernel = in[1]->dims[2];
    int64_t stride = strides->list[0], before = pads->list[0], steps = (width + before + pads->list[1] - kernel) / stride + 1;
    onnx_tensor* out = onnx_new(m, node->outputs[0], ONNX_FLOAT, 3, (int64_t[]){n, to, steps});
    for (int64_t channel = 0; channel < n * to; ++channel) {
        float* line = (float*)out->data + channel * steps;
        for (int64_t step = 0; step < steps; ++step) line[step] = ((float*)in[2]->data)[channel % to];
        for (int64_t c = 0; c < from; ++c)
            for (int64_t k = 0; k < kernel; ++k) {
                float weight = ((float*)in[1]->data)[(channel % to * from + c) * kernel + k];
                const float* source = (float*)in[0]->data + (channel / to * from + c) * width;
                for (int64_t step = 0; step < steps; ++step) {
                    int64_t at = step * stride + k - before;
                    if (at >= 0 && at < width) line[step] += weight * source[at];
                }
            }
    }
}
/* One direction; gates in the order input, output, forget, cell; states are given. */
static void onnx_lstm(onnx_memory* m, const onnx_node* node, onnx_tensor* const* in) {
    if (node->input_count != 7 || node->output_count != 3 || in[4]) { m->failed = 1; return; }
    int64_t steps = in[0]->dims[0], n = in[0]->dims[1], width = in[0]->dims[2], hidden = in[2]->dims[2];
    const float *w = in[1]->data, *r = in[2]->data, *bias = in[3]->data;
    onnx_tensor* y = onnx_new(m, node->outputs[0], ONNX_FLOAT, 4, (int64_t[]){steps, 1, n, hidden});
    onnx_shaped(m, node->outputs[1], in[5], 3, (int64_t[]){1, n, hidden});
    onnx_shaped(m, node->outputs[2], in[6], 3, (int64_t[]){1, n, hidden});
    float *h = m->tensors[m->count - 2].data, *c = m->tensors[m->count - 1].data, *gates = malloc((size_t)hidden * 4 * sizeof *gates);
    for (int64_t step = 0; step < steps; ++step)
        for (int64_t row = 0; row < n; ++row) {
            const float* x = (float*)in[0]->data + (step * n + row) * width;
            for (int64_t gate = 0; gate < 4 * hidden; ++gate) {
                float sum = bias[gate] + bias[4 * hidden + gate];
                for (int64_t i = 0; i < width; ++i) sum += w[gate * width + i] * x[i];
                for (int64_t i = 0; i < hidden; ++i) sum += r[gate * hidden + i] * h[row * hidden + i];
                gates[gate] = sum;
            }
            for (int64_t i = 0; i < hidden; ++i) {
                float* cell = &c[row * hidden + i];
                *cell = onnx_sigmoid(gates[2 * hidden + i]) * *cell + onnx_sigmoid(gates[i]) * tanhf(gates[3 * hidden + i]);
                h[row * hidden + i] = onnx_sigmoid(gates[hidden + i]) * tanhf(*cell);
            }
            memcpy((float*)y->data + (step * n + row) * hidden, h + row * hidden, (size_t)hidden * sizeof *h);
        }
    free(gates);
}
static void onnx_compute_node(onnx_memory* m, const onnx_node* node) {
    onnx_tensor* in[ONNX_PORTS] = {NULL};
    for (int i = 0; i < node->input_count; ++i) {
        int is_left_out = node->inputs[i].at == node->inputs[i].end;
        in[i] = is_left_out ? NULL : onnx_find(m, node->inputs[i]);
        if (!in[i] && !is_left_out) { m->failed = 1; return; }
    }
    onnx_bytes kind = node->kind;
    if (onnx_is(kind, "Add")) onnx_elementwise(m, node, in, '+');
    else if (onnx_is(kind, "Sub")) onnx_elementwise(m, node, in, '-');
    else if (onnx_is(kind, "Mul")) onnx_elementwise(m, node, in, '*');
    else if (onnx_is(kind, "Div")) onnx_elementwise(m, node, in, '/');
    else if (onnx_is(kind, "Equal")) onnx_elementwise(m, node, in, '=');
    else if (onnx_is(kind, "Less")) onnx_elementwise(m, node, in, '<');
    else if (onnx_is(kind, "Where")) onnx_where(m, node, in);
    else if (onnx_is(kind, "Relu")) onnx_unary(m, node, in, 'r');
    else if (onnx_is(kind, "Sqrt")) onnx_unary(m, node, in, 's');
    else if (onnx_is(kind, "Erf")) onnx_unary(m, node, in, 'e');
    else if (onnx_is(kind, "Sigmoid")) onnx_unary(m, node, in, 'g');
    else if (onnx_is(kind, "Cast")) onnx_cast(m, node, in);
    else if (onnx_is(kind, "Reshape")) onnx_reshape(m, node, in);
    else if (onnx_is(kind, "Unsqueeze")) onnx_squeeze(m, node, in, 1);
    else if (onnx_is(kind, "Squeeze")) onnx_squeeze(m, node, in, 0);
    else if (onnx_is(kind, "Transpose")) onnx_transpose(m, node, in);
    else if (onnx_is(kind, "Concat")) onnx_concat(m, node, in);
    else if (onnx_is(kind, "Gather")) onnx_gather(m, node, in);
    else if (onnx_is(kind, "ReduceMean")) onnx_reduce_mean(m, node, in);
    else if (onnx_is(kind, "Softmax")) onnx_softmax(m, node, in);
    else if (onnx_is(kind, "MatMul")) onnx_mat_mul(m, node, in);
    else if (onnx_is(kind, "Gemm")) onnx_gemm(m, node, in);
    else if (onnx_is(kind, "Conv")) onnx_conv(m, node, in);
    else if (onnx_is(kind, "AveragePool")) onnx_average_pool(m, node, in);
    else if (onnx_is(kind, "InstanceNormalization")) onnx_instance_norm(m, node, in);
    else if (onnx_is(kind, "Resize")) onnx_resize(m, node, in);
    else if (onnx_is(kind, "Slice")) onnx_slice(m, node, in);
    else if (onnx_is(kind, "LSTM")) onnx_lstm(m, node, in);
    else m->failed = 1;
    if (m->failed) fprintf(stderr, "the fake cannot compute a node of the kind %.*s\n", (int)(kind.end - kind.at), (const char*)kind.at);
}
/* Computes `rows` rows of inputs, whose memory is given, to outputs in memory that is given. Returns whether that worked. */
static int onnx_compute(const onnx_network* network, int64_t rows, void* const* inputs, void* const* outputs) {
    onnx_memory* m = calloc(1, sizeof *m);
    for (int i = 0; i < network->weight_count + network->input_count; ++i) {
        int is_input = i >= network->weight_count;
        const onnx_value* from = is_input ? &network->inputs[i - network->weight_count] : &network->weights[i];
        onnx_tensor* t = &m->tensors[m->count++];
        *t = (onnx_tensor){.name = from->name, .type = from->type, .rank = from->rank, .data = is_input ? inputs[i - network->weight_count] : from->data};
        memcpy(t->dims, from->dims, sizeof t->dims);
        if (is_input) t->dims[0] = rows;
    }
    int own = m->count;
    for (int i = 0; i < network->node_count && !m->failed; ++i) onnx_compute_node(m, &network->nodes[i]);
    for (int i = 0; i < network->output_count && !m->failed; ++i) {
        const onnx_tensor* found = onnx_find(m, network->outputs[i].name);
        if (found) memcpy(outputs[i], found->data, (size_t)onnx_count(found) * onnx_size(found->type));
        m->failed |= !found;
    }
    int worked = !m->failed;
    for (int i = own; i < m->count; ++i) free(m->tensors[i].data);
    free(m);
    return worked;
}
