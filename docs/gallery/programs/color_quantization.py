"""The colors of a photograph reduced to 64 by k-means, after scikit-learn's example."""

import sys

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import shuffle

COLOURS = 64

sample = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
china = load_sample_image("china.jpg").astype(np.float64) / 255
pixels = china.reshape(-1, 3)

found = KMeans(COLOURS, n_init=4, random_state=0).fit(shuffle(pixels, random_state=0, n_samples=sample))
by_kmeans = found.cluster_centers_[found.predict(pixels)]

chosen = shuffle(pixels, random_state=0, n_samples=COLOURS)
by_chance = chosen[pairwise_distances_argmin(chosen, pixels, axis=0)]

for name, quantized in (("k-means", by_kmeans), ("random colors", by_chance)):
    print(f"{COLOURS} colors by {name}: error {np.sqrt(np.mean((pixels - quantized) ** 2)):.4f}")
