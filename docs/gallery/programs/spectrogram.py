"""A recording cleaned in its spectrogram: scipy's short-time Fourier transform, a threshold, and the way back."""

import sys

import numpy as np
from scipy import signal

RATE = 44_100


def recording(seconds, random):
    """Return a melody of chirps, and the same with noise."""
    t = np.arange(int(seconds * RATE)) / RATE
    melody = np.sin(2 * np.pi * (440 + 60 * np.sin(2 * np.pi * 0.25 * t)) * t)
    chirps = signal.chirp(t % 2.0, f0=200, t1=2.0, f1=4_000, method="quadratic")
    clean = 0.6 * melody + 0.4 * chirps
    return clean, clean + random.normal(scale=0.5, size=t.size)


def denoised(noisy):
    """Return the recording without the parts of the spectrogram that are no louder than the noise."""
    _, _, z = signal.stft(noisy, RATE, nperseg=1024, noverlap=768)
    power = np.abs(z) ** 2
    threshold = 6 * np.median(power, axis=0, keepdims=True)
    _, back = signal.istft(np.where(power > threshold, z, 0), RATE, nperseg=1024, noverlap=768)
    return back[: noisy.size]


def ratio(clean, other):
    """Return the ratio of signal to noise in decibels."""
    return 10 * np.log10(np.mean(clean**2) / np.mean((other - clean) ** 2))


seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 40
clean, noisy = recording(seconds, np.random.default_rng(7))
result = denoised(noisy)
frequencies, density = signal.welch(result, RATE, nperseg=4096)
print(f"signal to noise: {ratio(clean, noisy):.1f} dB, then {ratio(clean, result):.1f} dB")
print(f"loudest at {frequencies[np.argmax(density)]:.0f} Hz")
