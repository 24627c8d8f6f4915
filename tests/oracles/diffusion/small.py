"""Makes a small Stable Diffusion XL with random weights, as it is published for diffusers but without tokenizers, and samples of it.

    small.py pipeline DIR    writes the parts of the pipeline, each with config.json and weights
    small.py samples DIR     writes input_ids.npy, input_ids_2.npy and latents.npy, and negative.npy: the negative prompt of both encoders
    small.py dataset DIR     writes captions_source.tsv and merges.txt, of which `prep` makes the same tokens

Numbers of RandomState are the same in every version of NumPy. Text encoders have 16-bit weights. Those of
the UNet are in two files, as large ones are published.
"""
import json
import pathlib
import sys

import numpy as np

# A byte, a byte at the end of a word, two merges, start and end.
LENGTH, MERGES = 12, ["q q", "q q</w>"]
START = 512 + len(MERGES)
END, VOCABULARY = START + 1, START + 2
PADDINGS = [END, 0]
CAPTIONS = ["a cat", "dog", "a red bus", "tea at two or four"]
NEGATIVE = "low res"
SIDE, LATENTS, GROUPS, FEATURES = 8, 4, 8, 8
CHANNELS, HEADS, LAYERS = [16, 32, 32], [2, 2, 4], [1, 1, 2]
# Width, heads, layers, activation and projection of each text encoder.
ENCODERS = {"text_encoder": (16, 2, 3, "quick_gelu", None), "text_encoder_2": (24, 3, 4, "gelu", 20)}
TEXT, POOLED = 16 + 24, 20
DECODED = [16, 16, 24]

SCHEDULER = {
    "beta_end": 0.012,
    "beta_schedule": "scaled_linear",
    "beta_start": 0.00085,
    "clip_sample": False,
    "interpolation_type": "linear",
    "num_train_timesteps": 1000,
    "prediction_type": "epsilon",
    "sample_max_value": 1.0,
    "set_alpha_to_one": False,
    "skip_prk_steps": True,
    "steps_offset": 1,
    "timestep_spacing": "leading",
    "trained_betas": None,
    "use_karras_sigmas": False,
}
UNET = {
    "act_fn": "silu",
    "addition_embed_type": "text_time",
    "addition_time_embed_dim": FEATURES,
    "attention_head_dim": HEADS,
    "block_out_channels": CHANNELS,
    "cross_attention_dim": TEXT,
    "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
    "in_channels": LATENTS,
    "layers_per_block": 2,
    "mid_block_type": "UNetMidBlock2DCrossAttn",
    "norm_eps": 1e-5,
    "norm_num_groups": GROUPS,
    "out_channels": LATENTS,
    "projection_class_embeddings_input_dim": POOLED + 6 * FEATURES,
    "sample_size": SIDE,
    "transformer_layers_per_block": LAYERS,
    "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
    "use_linear_projection": True,
}
VAE = {
    "block_out_channels": DECODED,
    "down_block_types": ["DownEncoderBlock2D"] * 3,
    "force_upcast": True,
    "latent_channels": LATENTS,
    "layers_per_block": 2,
    "norm_num_groups": GROUPS,
    "sample_size": SIDE * 4,
    "scaling_factor": 0.13025,
    "up_block_types": ["UpDecoderBlock2D"] * 3,
}


class Weights(dict):
    """Random tensors by name, which keep the variance of values."""

    def __init__(self, seed):
        super().__init__()
        self.random = np.random.RandomState(seed)

    def tensor(self, name, shape, spread):
        self[name] = (spread * self.random.standard_normal(shape)).astype(np.float32)

    def linear(self, name, taken, out, has_bias=True, kernel=None):
        shape = (out, taken) if kernel is None else (out, taken, kernel, kernel)
        self.tensor(f"{name}.weight", shape, np.prod(shape[1:]) ** -0.5)
        if has_bias:
            self.tensor(f"{name}.bias", (out,), 0.1)

    def norm(self, name, width):
        self.tensor(f"{name}.weight", (width,), 0.2)
        self[f"{name}.weight"] += 1
        self.tensor(f"{name}.bias", (width,), 0.1)

    def resnet(self, name, taken, out, time=None):
        self.norm(f"{name}.norm1", taken)
        self.linear(f"{name}.conv1", taken, out, kernel=3)
        if time:
            self.linear(f"{name}.time_emb_proj", time, out)
        self.norm(f"{name}.norm2", out)
        self.linear(f"{name}.conv2", out, out, kernel=3)
        if taken != out:
            self.linear(f"{name}.conv_shortcut", taken, out, kernel=1)

    def attention(self, name, width, source, has_bias=False):
        self.linear(f"{name}.to_q", width, width, has_bias)
        for part in "kv":
            self.linear(f"{name}.to_{part}", source, width, has_bias)
        self.linear(f"{name}.to_out.0", width, width)

    def transformer(self, name, width, layers):
        self.norm(f"{name}.norm", width)
        self.linear(f"{name}.proj_in", width, width)
        for block in (f"{name}.transformer_blocks.{layer}" for layer in range(layers)):
            for number, source in [(1, width), (2, TEXT)]:
                self.norm(f"{block}.norm{number}", width)
                self.attention(f"{block}.attn{number}", width, source)
            self.norm(f"{block}.norm3", width)
            self.linear(f"{block}.ff.net.0.proj", width, 8 * width)
            self.linear(f"{block}.ff.net.2", 4 * width, width)
        self.linear(f"{name}.proj_out", width, width)


def unet():
    weights, time = Weights(7), 4 * CHANNELS[0]
    weights.linear("conv_in", LATENTS, CHANNELS[0], kernel=3)
    for name, taken in [("time_embedding", CHANNELS[0]), ("add_embedding", POOLED + 6 * FEATURES)]:
        weights.linear(f"{name}.linear_1", taken, time)
        weights.linear(f"{name}.linear_2", time, time)
    kept, before = [CHANNELS[0]], CHANNELS[0]
    for block, (out, kind) in enumerate(zip(CHANNELS, UNET["down_block_types"])):
        for layer in range(2):
            weights.resnet(f"down_blocks.{block}.resnets.{layer}", before, out, time)
            if "Attn" in kind:
                weights.transformer(f"down_blocks.{block}.attentions.{layer}", out, LAYERS[block])
            before = out
            kept.append(out)
        if block < 2:
            weights.linear(f"down_blocks.{block}.downsamplers.0.conv", out, out, kernel=3)
            kept.append(out)
    for number in [0, 1]:
        weights.resnet(f"mid_block.resnets.{number}", before, before, time)
    weights.transformer("mid_block.attentions.0", before, LAYERS[-1])
    for block, (out, kind) in enumerate(zip(CHANNELS[::-1], UNET["up_block_types"])):
        for layer in range(3):
            weights.resnet(f"up_blocks.{block}.resnets.{layer}", before + kept.pop(), out, time)
            if "Attn" in kind:
                weights.transformer(f"up_blocks.{block}.attentions.{layer}", out, LAYERS[2 - block])
            before = out
        if block < 2:
            weights.linear(f"up_blocks.{block}.upsamplers.0.conv", out, out, kernel=3)
    weights.norm("conv_norm_out", before)
    weights.linear("conv_out", before, LATENTS, kernel=3)
    return weights


def vae():
    """The decoder; the encoder is not needed."""
    weights, before = Weights(8), DECODED[-1]
    weights.linear("post_quant_conv", LATENTS, LATENTS, kernel=1)
    weights.linear("decoder.conv_in", LATENTS, before, kernel=3)
    for number in [0, 1]:
        weights.resnet(f"decoder.mid_block.resnets.{number}", before, before)
    name = "decoder.mid_block.attentions.0"
    weights.norm(f"{name}.group_norm", before)
    weights.attention(name, before, before, has_bias=True)
    for block, out in enumerate(DECODED[::-1]):
        for layer in range(3):
            weights.resnet(f"decoder.up_blocks.{block}.resnets.{layer}", before, out)
            before = out
        if block < 2:
            weights.linear(f"decoder.up_blocks.{block}.upsamplers.0.conv", out, out, kernel=3)
    weights.norm("decoder.conv_norm_out", before)
    weights.linear("decoder.conv_out", before, 3, kernel=3)
    return weights


def text_encoder(name):
    width, heads, layers, activation, projection = ENCODERS[name]
    weights = Weights(len(name))
    weights.tensor("text_model.embeddings.token_embedding.weight", (VOCABULARY, width), 1)
    weights.tensor("text_model.embeddings.position_embedding.weight", (LENGTH, width), 0.5)
    for layer in (f"text_model.encoder.layers.{number}" for number in range(layers)):
        for part in ["k_proj", "v_proj", "q_proj", "out_proj"]:
            weights.linear(f"{layer}.self_attn.{part}", width, width)
        for number in [1, 2]:
            weights.norm(f"{layer}.layer_norm{number}", width)
        weights.linear(f"{layer}.mlp.fc1", width, 4 * width)
        weights.linear(f"{layer}.mlp.fc2", 4 * width, width)
    weights.norm("text_model.final_layer_norm", width)
    if projection:
        weights.linear("text_projection", width, projection, has_bias=False)
    config = {
        "bos_token_id": 0,
        # As published: the end is then the largest token.
        "eos_token_id": 2,
        "pad_token_id": 1,
        "hidden_act": activation,
        "hidden_size": width,
        "intermediate_size": 4 * width,
        "layer_norm_eps": 1e-5,
        "max_position_embeddings": LENGTH,
        "model_type": "clip_text_model",
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "projection_dim": projection or width,
        "vocab_size": VOCABULARY,
    }
    return config, {name: value.astype(np.float16) for name, value in weights.items()}


def write_safetensors(path, tensors):
    # Published text encoders also have this.
    tensors = {**tensors, "position_ids": np.arange(4)} if "text" in path.parent.name else tensors
    header, place = {"__metadata__": {"format": "pt"}}, 0
    kinds = {np.dtype(np.float16): "F16", np.dtype(np.float32): "F32", np.dtype(np.int64): "I64"}
    for name, value in tensors.items():
        header[name] = {"dtype": kinds[value.dtype], "shape": value.shape, "data_offsets": [place, place + value.nbytes]}
        place += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(value.tobytes() for value in tensors.values()))


def write_part(directory, name, config, tensors, files=("model.safetensors",)):
    part = directory / name
    part.mkdir(parents=True, exist_ok=True)
    (part / "config.json").write_text(json.dumps(config))
    names = list(tensors)
    for number, file in enumerate(files):
        write_safetensors(part / file, {tensor: tensors[tensor] for tensor in names[number :: len(files)]})


def write_pipeline(directory):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "model_index.json").write_text(json.dumps({"_class_name": "StableDiffusionXLPipeline"}))
    for name in ENCODERS:
        write_part(directory, name, *text_encoder(name))
    write_part(directory, "unet", UNET, unet(), [f"diffusion_pytorch_model-0000{number}-of-00002.safetensors" for number in [1, 2]])
    write_part(directory, "vae", VAE, vae(), ["diffusion_pytorch_model.safetensors"])
    (directory / "scheduler").mkdir(exist_ok=True)
    (directory / "scheduler/scheduler_config.json").write_text(json.dumps(SCHEDULER))


def padded(text, encoder):
    """The tokens of a text without punctuation that the tokenizer separates, or words that it merges."""
    letters = [ord(letter) - ord("!") + 256 * (place == len(word)) for word in text.split() for place, letter in enumerate(word, 1)]
    tokens = [START, *letters[: LENGTH - 2], END]
    return tokens + [PADDINGS[encoder]] * (LENGTH - len(tokens))


def write_samples(directory):
    for encoder, name in enumerate(["input_ids", "input_ids_2"]):
        np.save(directory / f"{name}.npy", np.array([padded(caption, encoder) for caption in CAPTIONS], np.int32))
    np.save(directory / "negative.npy", np.array([padded(NEGATIVE, encoder) for encoder in [0, 1]], np.int32))
    latents = np.random.RandomState(9).standard_normal((1, LATENTS, SIDE, SIDE))
    np.save(directory / "latents.npy", latents.astype(np.float32))


def write_dataset(directory):
    directory.mkdir(parents=True, exist_ok=True)
    lines = ["id\timage_id\tcaption\theight\twidth\tfile_name\tcoco_url"]
    lines += [f"{number}\t{number}\t{caption}\t480\t640\t{number}.jpg\t/{number}.jpg" for number, caption in enumerate(CAPTIONS)]
    for name, text in [("captions_source.tsv", lines), ("merges.txt", ["#version: 0.2", *MERGES])]:
        (directory / name).write_text("".join(f"{line}\n" for line in text))


if __name__ == "__main__":
    {"pipeline": write_pipeline, "samples": write_samples, "dataset": write_dataset}[sys.argv[1]](pathlib.Path(sys.argv[2]))
