"""RNN-T with random weights, and the symbols that the reference finds with it.

    rnnt.py waveforms DIR                 writes DIR/waveform.npy and DIR/length.npy: speech-like sounds of several lengths
    rnnt.py dataset DIR                   the same as a chapter in the tree of LibriSpeech
    rnnt.py weights FILE.npz HIDDEN       weights with the names and the topology of the reference's checkpoint
    rnnt.py features WAVEFORMS LENGTHS DIR    writes DIR/INDEX.npy, the frames of each waveform
    rnnt.py symbols FILE.npz NETWORKS WAVEFORMS LENGTHS DIR    writes DIR/INDEX.symbols, a byte for each symbol

Symbols are found twice: with LSTMs in NumPy on the weights, a whole utterance at once, and with ONNX Runtime on the three networks in NETWORKS,
piece by piece. Both must be equal. The loop repeats ScriptGreedyDecoder of pytorch/decoders.py. With REGATTA_INFERENCE set to a checkout of
mlcommons/inference and a Python that has PyTorch, `features` calls the reference's own FilterbankFeatures.
"""
import os
import pathlib
import sys

import numpy as np

import log_mel
import voices

BLANK, MOST = 28, 30
WIDTH, PREDICTED = 240, 24
# The shortest with two frames, whole and broken numbers of hops and of frames, even and odd numbers of frames, and the longest.
LENGTHS = [481, 4000, 16000, 47999, 24161, 240000, 96480]


def make_waveforms():
    return voices.make(LENGTHS)


def make_dataset(directory):
    import soundfile

    chapter = pathlib.Path(directory) / "dev-clean/2277/149896"
    chapter.mkdir(parents=True)
    names = [f"2277-149896-{index:04}" for index in range(len(LENGTHS))]
    for name, waveform, length in zip(names, make_waveforms(), LENGTHS):
        soundfile.write(chapter / f"{name}.flac", waveform[:length], 16000, subtype="PCM_16")
    (chapter / "2277-149896.trans.txt").write_text("".join(f"{name}{' NOT KNOWN YET' * 200}\n" for name in names))


def make_weights(path, hidden):
    generator = np.random.default_rng(17)
    tensors = {}

    def tensor(name, shape, most):
        tensors[name] = generator.uniform(-most, most, shape).astype(np.float32)

    def lstm(prefix, layers, width, hidden, most):
        for layer in range(layers):
            tensor(f"{prefix}.weight_ih_l{layer}", [4 * hidden, width if layer == 0 else hidden], most)
            tensor(f"{prefix}.weight_hh_l{layer}", [4 * hidden, hidden], most)
            tensor(f"{prefix}.bias_ih_l{layer}", [4 * hidden], most)
            tensor(f"{prefix}.bias_hh_l{layer}", [4 * hidden], most)

    lstm("encoder.pre_rnn.lstm", 2, WIDTH, hidden, 0.6)
    lstm("encoder.post_rnn.lstm", 3, 2 * hidden, hidden, 0.9)
    tensor("prediction.embed.weight", [BLANK, PREDICTED], 2.0)
    lstm("prediction.dec_rnn.lstm", 2, PREDICTED, PREDICTED, 1.2)
    tensor("joint_net.0.weight", [48, hidden + PREDICTED], 1.0)
    tensor("joint_net.0.bias", [48], 0.5)
    tensor("joint_net.3.weight", [BLANK + 1, 48], 1.0)
    tensor("joint_net.3.bias", [BLANK + 1], 0.5)
    # So that most steps have few symbols, and some of them are spaces.
    tensors["joint_net.3.weight"][BLANK] *= 6
    tensors["joint_net.3.bias"][[BLANK, 0]] += [10.0, 1.5]
    np.savez(path, **tensors)


def sigmoid(value):
    return 1 / (1 + np.exp(-value))


class WholeUtterance:
    """The reference's model in NumPy."""

    def __init__(self, tensors):
        self.tensors = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}

    def lstm(self, prefix, value, states):
        layer, after = 0, []
        while f"{prefix}.weight_ih_l{layer}" in self.tensors:
            ih, hh, bias_ih, bias_hh = (
                self.tensors[f"{prefix}.{part}_l{layer}"] for part in ["weight_ih", "weight_hh", "bias_ih", "bias_hh"]
            )
            size = hh.shape[1]
            hidden, cell = states[layer] if states else (np.zeros(size), np.zeros(size))
            rows = []
            for row in value:
                gates = ih @ row + bias_ih + hh @ hidden + bias_hh
                enter, forget, new, leave = (gates[k * size : (k + 1) * size] for k in range(4))
                cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
                hidden = sigmoid(leave) * np.tanh(cell)
                rows.append(hidden)
            value, layer = np.stack(rows), layer + 1
            after.append((hidden, cell))
        return value, after

    def encode(self, frames):
        value, _ = self.lstm("encoder.pre_rnn.lstm", frames, None)
        value = np.concatenate([value, np.zeros((len(value) % 2, value.shape[1]))])
        value, _ = self.lstm("encoder.post_rnn.lstm", value.reshape(len(value) // 2, -1), None)
        return value

    def predict(self, symbol, states):
        embed = self.tensors["prediction.embed.weight"]
        value = np.zeros(embed.shape[1]) if symbol is None else embed[symbol]
        value, after = self.lstm("prediction.dec_rnn.lstm", value[None], states)
        return value[0], after

    def join(self, encoded, predicted):
        get = self.tensors.get
        value = get("joint_net.0.weight") @ np.concatenate([encoded, predicted]) + get("joint_net.0.bias")
        return get("joint_net.3.weight") @ np.maximum(value, 0) + get("joint_net.3.bias")


class Networks:
    """The three networks in ONNX Runtime."""

    def __init__(self, directory):
        import onnxruntime

        names = ["encoder", "prediction", "joint"]
        self.encoder, self.prediction, self.joint = (
            onnxruntime.InferenceSession(f"{directory}/{name}.onnx", providers=["CPUExecutionProvider"]) for name in names
        )

    def run(self, session, inputs, states):
        zeros = {one.name: np.zeros([1, *one.shape[1:]], np.float32) for one in session.get_inputs() if one.name not in inputs}
        result, *after = session.run(None, {**inputs, **(states or zeros)})
        return result[0], dict(zip(zeros, after))

    def encode(self, frames):
        piece, steps, states = self.encoder.get_inputs()[0].shape[1], [], None
        for first in range(0, len(frames), piece):
            part = frames[first : first + piece].astype(np.float32)
            missing = piece - len(part)
            valid = np.concatenate([np.ones(len(part), np.float32), np.zeros(missing, np.float32)])
            inputs = {"features": np.pad(part, [(0, missing), (0, 0)])[None], "valid": valid[None]}
            result, states = self.run(self.encoder, inputs, states)
            steps.append(result)
        return np.concatenate(steps)[: -(-len(frames) // 2)]

    def predict(self, symbol, states):
        symbol = np.array([BLANK if symbol is None else symbol], np.int32)
        return self.run(self.prediction, {"symbol": symbol}, states)

    def join(self, encoded, predicted):
        return self.joint.run(None, {"encoded": encoded[None], "predicted": predicted[None]})[0][0]


def greedy(model, frames):
    symbols, states = [], None
    for encoded in model.encode(frames):
        for _ in range(MOST):
            predicted, after = model.predict(symbols[-1] if symbols else None, states)
            best = int(np.argmax(model.join(encoded, predicted)))
            if best == BLANK:
                break
            symbols.append(best)
            states = after
    return bytes(symbols)


def of_reference(waveform):
    import types

    import torch

    # For features, the reference needs librosa for its filters only, and soundfile not at all.
    filters = types.SimpleNamespace(mel=lambda sr, n_fft, n_mels, fmin, fmax: log_mel.mel_filters(sr, n_fft, n_mels).astype(np.float32))
    sys.modules.setdefault("librosa", types.SimpleNamespace(filters=filters))
    sys.modules.setdefault("soundfile", types.SimpleNamespace())
    checkout = pathlib.Path(os.environ["REGATTA_INFERENCE"])
    places = [checkout / place / "rnnt/pytorch" for place in ["speech_recognition", "retired_benchmarks/speech_recognition"]]
    sys.path.insert(0, str(next(place for place in places if place.is_dir())))
    from parts.features import FeatureFactory

    config = dict(normalize="per_feature", sample_rate=16000, window_size=0.02, window_stride=0.01, window="hann", features=80, n_fft=512)
    front = FeatureFactory.from_config({**config, "frame_splicing": 3, "dither": 0.00001, "feat_type": "logfbank", "pad_to": 0})
    return front((torch.from_numpy(waveform)[None], torch.tensor([len(waveform)])))[0].T.numpy()


def samples(waveforms, lengths):
    return [waveform[:length].astype(np.float32) for waveform, length in zip(np.load(waveforms, mmap_mode="r"), np.load(lengths))]


def main(command, *arguments):
    if command == "waveforms":
        np.save(f"{arguments[0]}/waveform.npy", make_waveforms())
        np.save(f"{arguments[0]}/length.npy", np.array(LENGTHS, np.int32))
    elif command == "dataset":
        make_dataset(arguments[0])
    elif command == "weights":
        make_weights(arguments[0], int(arguments[1]))
    elif command == "features":
        waveforms, lengths, directory = arguments
        make = of_reference if "REGATTA_INFERENCE" in os.environ else log_mel.rnnt
        for index, waveform in enumerate(samples(waveforms, lengths)):
            np.save(f"{directory}/{index}.npy", np.ascontiguousarray(make(waveform), np.float32))
    else:
        weights, networks, waveforms, lengths, directory = arguments
        models = [WholeUtterance(dict(np.load(weights))), Networks(networks)]
        for index, waveform in enumerate(samples(waveforms, lengths)):
            frames = log_mel.rnnt(waveform)
            one, other = (greedy(model, frames) for model in models)
            assert one == other, f"{index}: the networks find other symbols than the weights: {list(one)} {list(other)}"
            pathlib.Path(f"{directory}/{index}.symbols").write_bytes(one)


main(*sys.argv[1:])
