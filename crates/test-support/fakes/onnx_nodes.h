/* The nodes of an ONNX file, for the fake shim (trt_shim.c): each one's name and kind, in the file's order. Goes through
 * ModelProto.graph (7), GraphProto.node (1), NodeProto.name (3) and .op_type (4); knows nothing else of a network. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { const unsigned char *at, *end; } onnx_bytes;

static uint64_t onnx_varint(onnx_bytes* in) {
    uint64_t value = 0;
    for (int shift = 0; in->at < in->end && shift < 64; shift += 7) {
        unsigned char byte = *in->at++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) break;
    }
    return value;
}
/* The next field that holds bytes, and its number; 0 at the end. */
static int onnx_field(onnx_bytes* in, onnx_bytes* field) {
    while (in->at < in->end) {
        uint64_t key = onnx_varint(in), length = 0;
        if ((key & 7) == 0) onnx_varint(in);
        else length = (key & 7) == 1 ? 8 : (key & 7) == 5 ? 4 : onnx_varint(in);
        if (length > (uint64_t)(in->end - in->at)) return in->at = in->end, 0;
        *field = (onnx_bytes){in->at, in->at + length};
        in->at += length;
        if ((key & 7) == 2) return (int)(key >> 3);
    }
    return 0;
}
static void onnx_word(onnx_bytes from, char* word, size_t capacity) {
    size_t length = (size_t)(from.end - from.at) < capacity ? (size_t)(from.end - from.at) : capacity - 1;
    memcpy(word, from.at, length), word[length] = 0;
}

typedef void (*onnx_take)(void* user, const char* name, const char* kind);

/* How many nodes there were; 0 for a file that cannot be read or is no ONNX. */
static int onnx_nodes(const char* path, onnx_take take, void* user) {
    FILE* file = fopen(path, "rb");
    if (!file) return 0;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    unsigned char* bytes = malloc(size > 0 ? (size_t)size : 1);
    rewind(file);
    onnx_bytes model = {bytes, bytes + fread(bytes, 1, size > 0 ? (size_t)size : 0, file)}, graph, node, word;
    int nodes = 0;
    fclose(file);
    for (int field; (field = onnx_field(&model, &graph));)
        for (int inner; field == 7 && (inner = onnx_field(&graph, &node));) {
            char name[128] = "", kind[64] = "";
            for (int part; inner == 1 && (part = onnx_field(&node, &word));) {
                if (part == 3) onnx_word(word, name, sizeof name);
                if (part == 4) onnx_word(word, kind, sizeof kind);
            }
            if (inner == 1) take(user, name, kind), ++nodes;
        }
    free(bytes);
    return nodes;
}
