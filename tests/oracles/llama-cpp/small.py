"""A small Llama with random weights as a GGUF file."""

import json
import os

import gguf
import numpy

WIDTH, HEADS, LAYERS, INNER = 64, 4, 2, 128


def byte_characters():
    """The characters that stand for the bytes in tokens of GPT-2 and Llama 3."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in shown]
    characters = {byte: chr(byte) for byte in shown}
    characters.update({byte: chr(256 + place) for place, byte in enumerate(others)})
    return [characters[byte] for byte in range(256)]


def words():
    """The words of a vocabulary, with the space before them as GPT-2 and Llama 3 write it. 128 of these words have as many characters as a summary of
    the benchmark."""
    found = ["Ġ" + first + "a" + second + "e" for first in "bdfghklmnp" for second in "bdfghklmnprst"]
    return [".", *found[:93]]


def write(path, tokens, special, context, template=None, pre="gpt-2"):
    """Writes the model. The last of the special tokens ends an answer, the first one begins a text. `pre` names how llama.cpp divides texts."""
    tokens = [*tokens, *special]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("small")
    writer.add_context_length(context)
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
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types([1] * (len(tokens) - len(special)) + [3] * len(special))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(len(tokens) - len(special))
    writer.add_eos_token_id(len(tokens) - 1)
    writer.add_add_bos_token(False)
    if template:
        writer.add_chat_template(template)
    random = numpy.random.default_rng(7)

    def weights(*shape):
        return (random.standard_normal(shape) * 0.3).astype(numpy.float32)

    ones = numpy.ones(WIDTH, numpy.float32)
    output = weights(len(tokens), WIDTH)
    # An answer must not end early: LoadGen accepts none of one token.
    output[-len(special) :] = 0
    writer.add_tensor("token_embd.weight", weights(len(tokens), WIDTH))
    writer.add_tensor("output_norm.weight", ones)
    writer.add_tensor("output.weight", output)
    for layer in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", ones)
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", weights(WIDTH, WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_gate.weight", weights(INNER, WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_up.weight", weights(INNER, WIDTH))
        writer.add_tensor(f"blk.{layer}.ffn_down.weight", weights(WIDTH, INNER))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_projector(path):
    """Writes the encoder of speech for the model, with the form of Voxtral's."""
    width, inner, bands, steps, stack = 32, 64, 128, 1500, 2
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_bool("clip.has_audio_encoder", True)
    writer.add_bool("clip.use_gelu", True)
    writer.add_string("clip.projector_type", "voxtral")
    sizes = {
        "num_mel_bins": bands,
        "embedding_length": width,
        "feed_forward_length": inner,
        "block_count": 1,
        "attention.head_count": 2,
        "projection_dim": WIDTH,
        "projector.stack_factor": stack,
    }
    for name, size in sizes.items():
        writer.add_uint32(f"clip.audio.{name}", size)
    writer.add_float32("clip.audio.attention.layer_norm_epsilon", 1e-5)
    random = numpy.random.default_rng(11)

    def add(name, *shape, dtype=numpy.float32):
        writer.add_tensor(name, (random.standard_normal(shape) * 0.3).astype(dtype))

    for number, channels in ((1, bands), (2, width)):
        add(f"a.conv1d.{number}.weight", width, channels, 3, dtype=numpy.float16)
        add(f"a.conv1d.{number}.bias", width, 1)
    add("a.position_embd.weight", steps, width)
    for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
        add(f"a.blk.0.{name}.weight", width, width)
        if name != "attn_k":
            add(f"a.blk.0.{name}.bias", width)
    for name in ("a.blk.0.ln1", "a.blk.0.ln2", "a.post_ln"):
        add(f"{name}.weight", width)
        add(f"{name}.bias", width)
    for name, rows, columns in (("ffn_up", inner, width), ("ffn_down", width, inner)):
        add(f"a.blk.0.{name}.weight", rows, columns)
        add(f"a.blk.0.{name}.bias", rows)
    add("mm.a.mlp.1.weight", WIDTH, width * stack)
    add("mm.a.mlp.2.weight", WIDTH, WIDTH)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def tokenizer(directory, tokens, special, ignore_merges=False):
    """Writes the tokenizer as transformers reads it."""
    first = len(tokens)
    tokens = [*tokens, *special]
    added = [
        {"id": id, "content": tokens[id], "special": True, "normalized": False, "single_word": False, "lstrip": False, "rstrip": False}
        for id in range(first, len(tokens))
    ]
    bytes_as_characters = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    vocabulary = {token: id for id, token in enumerate(tokens)}
    document = {
        "version": "1.0",
        "added_tokens": added,
        "pre_tokenizer": bytes_as_characters,
        "decoder": bytes_as_characters,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": [], "ignore_merges": ignore_merges},
    }
    configuration = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": special[0],
        "eos_token": special[-1],
        "clean_up_tokenization_spaces": True,
    }
    os.makedirs(directory, exist_ok=True)
    for name, content in {"tokenizer.json": document, "tokenizer_config.json": configuration}.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as file:
            json.dump(content, file)
