"""Image compression by singular value decomposition, after NumPy's tutorial on linear algebra with images."""

import sys

import numpy as np
from skimage import data, img_as_float


def compressed(channel, rank):
    """Return the best approximation of a matrix by one of the given rank."""
    u, s, vt = np.linalg.svd(channel, full_matrices=False)
    return u[:, :rank] @ np.diag(s[:rank]) @ vt[:rank]


size = int(sys.argv[1]) if len(sys.argv) > 1 else 600
image = img_as_float(data.retina())[:size, :size]
for rank in (10, 50):
    approximation = np.stack([compressed(image[..., colour], rank) for colour in range(3)], axis=-1)
    error = np.linalg.norm(image - approximation) / np.linalg.norm(image)
    kept = rank * (2 * size + 1) / size**2
    print(f"rank {rank}: {kept:.1%} of the numbers, error {error:.1%}")
