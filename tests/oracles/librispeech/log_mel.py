"""The front ends of the references of RNN-T, FilterbankFeatures of pytorch/parts/features.py, and of Whisper, the WhisperFeatureExtractor of
transformers, step by step in NumPy with 64-bit floats."""
import numpy as np


def mel_filters(rate, transform, bands):
    """librosa.filters.mel with its defaults: Slaney's scale and norm."""
    step = np.log(6.4) / 27
    to_mel = lambda hertz: hertz * 3 / 200 if hertz < 1000 else 15 + np.log(hertz / 1000) / step
    mels = np.linspace(0, to_mel(rate / 2), bands + 2)
    edges = np.where(mels < 15, mels * 200 / 3, 1000 * np.exp(step * (mels - 15)))
    ramps = edges[:, None] - np.fft.rfftfreq(transform, 1 / rate)[None]
    between = np.diff(edges)
    rising, falling = -ramps[:-2] / between[:-1, None], ramps[2:] / between[1:, None]
    return np.maximum(0, np.minimum(rising, falling)) * (2 / (edges[2:] - edges[:-2]))[:, None]


def power(waveform, transform, hop, window):
    """torch.stft with center=True, and the squares of its magnitudes: [frequencies, frames]."""
    padded = np.pad(waveform, transform // 2, mode="reflect")
    full = np.zeros(transform)
    before = (transform - len(window)) // 2
    full[before : before + len(window)] = window
    starts = range(0, len(waveform) // hop * hop + 1, hop)
    return np.abs(np.fft.rfft([padded[start : start + transform] * full for start in starts])).T ** 2


def rnnt(waveform):
    """The frames of a waveform: [frames, 240]."""
    waveform = waveform.astype(np.float64)
    emphasised = np.concatenate([waveform[:1], waveform[1:] - 0.97 * waveform[:-1]])
    energies = mel_filters(16000, 512, 80) @ (power(emphasised, 512, 160, np.hanning(320)) + 1e-10)
    logs = np.log(energies + 1e-20)
    stacked = [logs]
    for number in [1, 2]:
        shifted = np.zeros_like(logs)
        shifted[:, :-number] = logs[:, number:]
        stacked.append(shifted)
    frames = np.concatenate(stacked)[:, ::3]
    frames = frames[:, : -(-(-(-len(waveform) // 160)) // 3)]
    deviation = frames.std(1, ddof=1, keepdims=True) + 1e-5
    return ((frames - frames.mean(1, keepdims=True)) / deviation).T


def whisper(waveform, longest=480000):
    """The features of a waveform: [128, 3000]."""
    padded = np.pad(waveform.astype(np.float64), (0, longest - len(waveform)))
    # A window that repeats after 400 values.
    energies = mel_filters(16000, 400, 128) @ power(padded, 400, 160, np.hanning(401)[:-1])[:, :-1]
    logs = np.log10(np.maximum(energies, 1e-10))
    return (np.maximum(logs, logs.max() - 8) + 4) / 4
