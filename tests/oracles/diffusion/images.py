"""Images of the small pipeline by diffusers, step by step as the reference's backend_pytorch.py, on the weights that small.py writes.

    images.py PIPELINE SAMPLES    prints {"sigmas": [noise of 20 steps], "images": {STEPS: [the bytes of each image in hexadecimal]}}

Needs PyTorch, diffusers 0.30.3 and transformers 4.45.2, which are the reference's. Their output is in images.json, because they are large. A test
compares it with a new one where REGATTA_DIFFUSERS is a Python that has them.
"""
import json
import pathlib
import sys

import numpy as np
import torch
from diffusers import AutoencoderKL, EulerDiscreteScheduler, StableDiffusionXLPipeline, UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent.parent / "tools"))
import safetensors_file

GUIDANCE = 8
# The numbers of steps, and of samples with each.
STEPS = {6: 4, 20: 1}


def part(directory, model, missing=()):
    """A model with the weights of its part of the pipeline."""
    files = sorted(directory.glob("*.safetensors"))
    tensors = {name: value for file in files for name, value in safetensors_file.read_tensors(file).items()}
    state = {name: torch.from_numpy(np.array(value, np.float32)) for name, value in tensors.items()}
    found = model.load_state_dict(state, strict=False)
    missed = [name for name in found.missing_keys if not name.startswith(tuple(missing)) and "position_ids" not in name]
    assert not missed and not found.unexpected_keys, (missed, found.unexpected_keys)
    return model.eval()


def read_pipeline(directory):
    config = lambda name: json.loads((directory / name / "config.json").read_text())
    texts = {}
    for name, kind in [("text_encoder", CLIPTextModel), ("text_encoder_2", CLIPTextModelWithProjection)]:
        own = config(name)
        own.pop("model_type")
        texts[name] = part(directory / name, kind(CLIPTextConfig(**own)))
    unet = part(directory / "unet", UNet2DConditionModel.from_config(config("unet")))
    vae = part(directory / "vae", AutoencoderKL.from_config(config("vae")), ["encoder.", "quant_conv."])
    scheduler = EulerDiscreteScheduler.from_pretrained(directory, subfolder="scheduler")
    pipeline = StableDiffusionXLPipeline(vae, **texts, tokenizer=None, tokenizer_2=None, unet=unet, scheduler=scheduler, add_watermarker=False)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def encode(pipeline, tokens):
    """Hidden states of both encoders, and the projection of the second."""
    encoders = [pipeline.text_encoder, pipeline.text_encoder_2]
    found = [encoder(torch.from_numpy(ids).long()[None], output_hidden_states=True) for encoder, ids in zip(encoders, tokens)]
    return torch.concat([one.hidden_states[-2] for one in found], dim=-1), found[1][0]


@torch.no_grad()
def main(directory, samples):
    pipeline, samples = read_pipeline(pathlib.Path(directory)), pathlib.Path(samples)
    first, second, negative, latents = (np.load(samples / f"{name}.npy") for name in ["input_ids", "input_ids_2", "negative", "latents"])
    negative_text, negative_pooled = encode(pipeline, negative)
    images = {}
    for steps, count in STEPS.items():
        images[steps] = []
        for tokens in list(zip(first, second))[:count]:
            text, pooled = encode(pipeline, tokens)
            (image,) = pipeline(
                prompt_embeds=text,
                negative_prompt_embeds=negative_text,
                pooled_prompt_embeds=pooled,
                negative_pooled_prompt_embeds=negative_pooled,
                guidance_scale=GUIDANCE,
                num_inference_steps=steps,
                output_type="pt",
                latents=torch.from_numpy(latents),
            ).images
            pixels = (image.permute(1, 2, 0).float().numpy() * 255).round().astype(np.uint8)
            images[steps].append(pixels.tobytes().hex())
    pipeline.scheduler.set_timesteps(20)
    sigmas = [float(f"{sigma:.9g}") for sigma in pipeline.scheduler.sigmas]
    print(json.dumps({"sigmas": sigmas, "images": images}, indent=1))


main(*sys.argv[1:])
