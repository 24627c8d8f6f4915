"""Sounds like speech: vowels of changing pitch and formants between noises, louder and quieter. Says nothing."""
import numpy as np


def make(lengths):
    """Waveforms of these lengths at 16,000 Hz, padded with zeros to the longest."""
    generator = np.random.default_rng(5)
    rows = np.zeros((len(lengths), max(lengths)), np.float32)
    for row, length in zip(rows, lengths):
        time = np.arange(length) / 16000
        syllable = (time * 5).astype(int)
        value = lambda low, high: generator.uniform(low, high, syllable[-1] + 1)[syllable]
        phase = 2 * np.pi * np.cumsum(value(90, 220)) / 16000
        formants = [value(300, 800), value(900, 2200), value(2300, 3400)]
        voice = 0
        for harmonic in range(1, 18):
            frequency = harmonic * 150
            voice = voice + sum(np.exp(-(((frequency - formant) / 150) ** 2)) for formant in formants) * np.sin(harmonic * phase)
        noise = generator.normal(0, 1, length)
        loud, voiced = value(0.005, 0.2), value(0, 1) < 0.7
        row[:length] = loud * np.where(voiced, voice, 0.3 * noise) + 0.0005 * noise
    return rows
