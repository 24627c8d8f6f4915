"""Writes a small Llama with random weights, whose tokens are printable characters, as a GGUF file.

    make_model.py FILE

The server keeps back bytes that are no complete character. Every token is one here, so that none is kept back.
"""

import sys

import gguf
import numpy

WIDTH, HEADS, LAYERS, INNER, CONTEXT = 64, 4, 2, 128, 4096

tokens = [chr(code) for code in range(33, 127)] + ["<|begin|>", "<|end|>"]
writer = gguf.GGUFWriter(sys.argv[1], "llama")
writer.add_name("small")
writer.add_context_length(CONTEXT)
writer.add_embedding_length(WIDTH)
writer.add_block_count(LAYERS)
writer.add_feed_forward_length(INNER)
writer.add_head_count(HEADS)
writer.add_head_count_kv(HEADS)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_rope_dimension_count(WIDTH // HEADS)
writer.add_vocab_size(len(tokens))
writer.add_file_type(0)
writer.add_tokenizer_model("gpt2")
writer.add_tokenizer_pre("gpt-2")
writer.add_token_list(tokens)
writer.add_token_types([1] * (len(tokens) - 2) + [3] * 2)
writer.add_token_merges(["a b"])
writer.add_bos_token_id(len(tokens) - 2)
writer.add_eos_token_id(len(tokens) - 1)
writer.add_add_bos_token(False)

random = numpy.random.default_rng(7)


def weights(*shape):
    return (random.standard_normal(shape) * 0.3).astype(numpy.float32)


def ones():
    return numpy.ones(WIDTH, numpy.float32)


output = weights(len(tokens), WIDTH)
# An answer must not end early: LoadGen accepts none of one token.
output[-2:] = 0
writer.add_tensor("token_embd.weight", weights(len(tokens), WIDTH))
writer.add_tensor("output_norm.weight", ones())
writer.add_tensor("output.weight", output)
for layer in range(LAYERS):
    for name in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.{layer}.{name}.weight", ones())
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        writer.add_tensor(f"blk.{layer}.{name}.weight", weights(WIDTH, WIDTH))
    writer.add_tensor(f"blk.{layer}.ffn_gate.weight", weights(INNER, WIDTH))
    writer.add_tensor(f"blk.{layer}.ffn_up.weight", weights(INNER, WIDTH))
    writer.add_tensor(f"blk.{layer}.ffn_down.weight", weights(WIDTH, INNER))
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
