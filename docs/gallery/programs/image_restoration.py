"""A noisy and a blurred photograph restored with scikit-image: total variation, and Richardson-Lucy."""

import sys

import numpy as np
from scipy.ndimage import gaussian_filter
from skimage import data, img_as_float
from skimage.metrics import peak_signal_noise_ratio
from skimage.restoration import denoise_tv_chambolle, richardson_lucy

size = int(sys.argv[1]) if len(sys.argv) > 1 else 600
random = np.random.default_rng(0)
photograph = img_as_float(data.hubble_deep_field())[:size, :size]

noisy = np.clip(photograph + random.normal(scale=0.12, size=photograph.shape), 0, 1)
denoised = denoise_tv_chambolle(noisy, weight=0.1, max_num_iter=20, channel_axis=-1)
print(f"noisy: {peak_signal_noise_ratio(photograph, noisy):.1f} dB")
print(f"total variation: {peak_signal_noise_ratio(photograph, denoised):.1f} dB")

grey = photograph.mean(axis=-1)
point = np.zeros((15, 15))
point[7, 7] = 1
spread = gaussian_filter(point, 2)
blurred = np.clip(gaussian_filter(grey, 2) + random.normal(scale=0.005, size=grey.shape), 0, 1)
sharp = richardson_lucy(blurred, spread, num_iter=20)
print(f"blurred: {peak_signal_noise_ratio(grey, blurred):.1f} dB")
print(f"Richardson-Lucy: {peak_signal_noise_ratio(grey, sharp):.1f} dB")
