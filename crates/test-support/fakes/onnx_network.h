/* An ONNX network in memory, for the fake shim (trt_shim.c): its inputs, outputs, weights and nodes with their attributes. What the
 * nodes compute is in onnx_operations.h. Reads ModelProto.graph of onnx.proto; weights are in raw_data, as the export tools write them, or in packed
 * float_data or int64_data. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ONNX_FLOAT = 1, ONNX_INT32 = 6, ONNX_INT64 = 7, ONNX_BOOL = 9, ONNX_FLOAT16 = 10 };
enum { ONNX_RANK = 8, ONNX_PORTS = 8, ONNX_ATTRIBUTES = 8, ONNX_TENSORS = 4096, ONNX_NODES = 4096, ONNX_ENDS = 24 };

/* A field of a message: a number or bytes. */
typedef struct { int number, wire; uint64_t value; onnx_bytes bytes; } onnx_part;
/* An end of the network, or a weight with its elements. */
typedef struct { onnx_bytes name; int type, rank; int64_t dims[ONNX_RANK]; void* data; } onnx_value;
typedef struct { onnx_bytes name; int64_t number, list[ONNX_RANK]; int count; float real; } onnx_attribute;
typedef struct {
    onnx_bytes kind, inputs[ONNX_PORTS], outputs[ONNX_PORTS];
    int input_count, output_count, attribute_count;
    onnx_attribute attributes[ONNX_ATTRIBUTES];
} onnx_node;
typedef struct {
    onnx_node nodes[ONNX_NODES];
    onnx_value weights[ONNX_TENSORS], inputs[ONNX_ENDS], outputs[ONNX_ENDS];
    int node_count, weight_count, input_count, output_count;
    unsigned char* file;
} onnx_network;

static int onnx_part_of(onnx_bytes* in, onnx_part* part) {
    if (in->at >= in->end) return 0;
    uint64_t key = onnx_varint(in), length;
    *part = (onnx_part){.number = (int)(key >> 3), .wire = (int)(key & 7)};
    if (part->wire == 0) return part->value = onnx_varint(in), 1;
    length = part->wire == 1 ? 8 : part->wire == 5 ? 4 : onnx_varint(in);
    if (length > (uint64_t)(in->end - in->at)) return 0;
    part->bytes = (onnx_bytes){in->at, in->at + length};
    return in->at += length, 1;
}
static int onnx_is(onnx_bytes name, const char* word) {
    size_t length = (size_t)(name.end - name.at);
    return length == strlen(word) && !memcmp(name.at, word, length);
}
static int onnx_same(onnx_bytes one, onnx_bytes other) {
    return one.end - one.at == other.end - other.at && !memcmp(one.at, other.at, (size_t)(one.end - one.at));
}
/* A list of integers is packed or not. */
static void onnx_integers(onnx_part part, int64_t* list, int* count) {
    if (part.wire == 0 && *count < ONNX_RANK) list[(*count)++] = (int64_t)part.value;
    while (part.wire == 2 && part.bytes.at < part.bytes.end && *count < ONNX_RANK) list[(*count)++] = (int64_t)onnx_varint(&part.bytes);
}
static onnx_value onnx_weight(onnx_bytes in) {
    onnx_value value = {0};
    onnx_bytes raw = {in.at, in.at}, integers = raw;
    for (onnx_part part; onnx_part_of(&in, &part);) {
        if (part.number == 1) onnx_integers(part, value.dims, &value.rank);
        if (part.number == 2) value.type = (int)part.value;
        /* Packed floats have the bytes of raw ones. */
        if (part.number == 4 || part.number == 9) raw = part.bytes;
        if (part.number == 7 && part.wire == 2) integers = part.bytes;
        if (part.number == 8) value.name = part.bytes;
    }
    value.data = malloc((size_t)(raw.end - raw.at) + (size_t)(integers.end - integers.at) * sizeof(int64_t) + 1);
    memcpy(value.data, raw.at, (size_t)(raw.end - raw.at));
    for (int64_t* to = value.data; integers.at < integers.end; ++to) *to = (int64_t)onnx_varint(&integers);
    return value;
}
/* ValueInfoProto.type.tensor_type: element type and dimensions, -1 for a named one. */
static onnx_value onnx_end(onnx_bytes in) {
    onnx_value value = {0};
    for (onnx_part part; onnx_part_of(&in, &part);) {
        if (part.number == 1) value.name = part.bytes;
        for (onnx_part kind; part.number == 2 && onnx_part_of(&part.bytes, &kind);)
            for (onnx_part tensor; kind.number == 1 && onnx_part_of(&kind.bytes, &tensor);) {
                if (tensor.number == 1) value.type = (int)tensor.value;
                for (onnx_part dim; tensor.number == 2 && onnx_part_of(&tensor.bytes, &dim);) {
                    int64_t size = -1;
                    for (onnx_part of; dim.number == 1 && onnx_part_of(&dim.bytes, &of);)
                        if (of.number == 1) size = (int64_t)of.value;
                    if (value.rank < ONNX_RANK) value.dims[value.rank++] = size;
                }
            }
    }
    return value;
}
static onnx_attribute onnx_attribute_of(onnx_bytes in) {
    onnx_attribute attribute = {0};
    for (onnx_part part; onnx_part_of(&in, &part);) {
        if (part.number == 1) attribute.name = part.bytes;
        if (part.number == 2) memcpy(&attribute.real, part.bytes.at, sizeof attribute.real);
        if (part.number == 3) attribute.number = (int64_t)part.value;
        if (part.number == 8) onnx_integers(part, attribute.list, &attribute.count);
    }
    return attribute;
}
static onnx_node onnx_node_of(onnx_bytes in) {
    onnx_node node = {0};
    for (onnx_part part; onnx_part_of(&in, &part);) {
        if (part.number == 1 && node.input_count < ONNX_PORTS) node.inputs[node.input_count++] = part.bytes;
        if (part.number == 2 && node.output_count < ONNX_PORTS) node.outputs[node.output_count++] = part.bytes;
        if (part.number == 4) node.kind = part.bytes;
        if (part.number == 5 && node.attribute_count < ONNX_ATTRIBUTES) node.attributes[node.attribute_count++] = onnx_attribute_of(part.bytes);
    }
    return node;
}
static void onnx_network_free(onnx_network* network) {
    for (int i = 0; network && i < network->weight_count; ++i) free(network->weights[i].data);
    if (network) free(network->file);
    free(network);
}
/* Reads a network from the bytes of a file, which are copied. NULL when there is none. */
static onnx_network* onnx_network_read(const void* bytes, size_t size) {
    onnx_network* network = calloc(1, sizeof *network);
    network->file = malloc(size ? size : 1);
    memcpy(network->file, bytes, size);
    onnx_bytes model = {network->file, network->file + size};
    for (onnx_part part; onnx_part_of(&model, &part);)
        for (onnx_part of; part.number == 7 && part.wire == 2 && onnx_part_of(&part.bytes, &of);) {
            if (of.wire != 2) continue;
            if (of.number == 1 && network->node_count < ONNX_NODES) network->nodes[network->node_count++] = onnx_node_of(of.bytes);
            if (of.number == 5 && network->weight_count < ONNX_TENSORS) network->weights[network->weight_count++] = onnx_weight(of.bytes);
            if (of.number == 11 && network->input_count < ONNX_ENDS) network->inputs[network->input_count++] = onnx_end(of.bytes);
            if (of.number == 12 && network->output_count < ONNX_ENDS) network->outputs[network->output_count++] = onnx_end(of.bytes);
        }
    if (network->node_count && network->input_count && network->output_count) return network;
    return onnx_network_free(network), NULL;
}
