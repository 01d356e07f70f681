"""Metrics against SciPy and NumPy, through the Python package, one thread.

usage: metric_rivals.py [ROUNDS]

Values are compared first: rank correlations within 1e-12, sets exactly. Then medians of rounds that alternate between the two, in
the thread's own time: neither uses another, and what else the machine does counts less. Speed = the rival's time / ours. Exits 1
when values differ or a speed is below its limit.
"""

import statistics
import sys
import time

import holdfast
import numpy as np
import scipy.ndimage
import scipy.stats
import torch

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 7


def saliency_like(shape, seed):
    """Two sets of maps: magnitudes that fall off exponentially, the second the first with noise, a fifth of both exactly zero."""
    random = np.random.default_rng(seed)
    original = np.abs(random.normal(size=shape) * random.exponential(size=shape))
    perturbed = np.abs(original + 0.3 * random.normal(size=shape))
    for maps in (original, perturbed):
        maps[random.random(shape) < 0.2] = 0
    return original.astype(np.float32), perturbed.astype(np.float32)


def ours(metric, original, perturbed):
    return holdfast.measure(original, perturbed, metric, levels=False).values


def rank_correlation(function, original, perturbed):
    return np.array([function(a, b).statistic for a, b in zip(original, perturbed, strict=True)])


def top_masks(maps, k):
    """The k largest of each map; where the k-th value is tied, those with the lower index."""
    kth = np.partition(maps, maps.shape[1] - k, axis=1)[:, maps.shape[1] - k, None]
    masks = maps >= kth
    for row in np.flatnonzero(np.count_nonzero(masks, axis=1) > k):
        ties = np.flatnonzero(maps[row] == kth[row])
        masks[row, ties[k - np.count_nonzero(maps[row] > kth[row]) :]] = False
    return masks


def precision_by_slices(original, perturbed, k, w, chunk=64):
    """NumPy at its best: partition for the sets, shifted slices or-ed for the windows, chunks that stay in the cache."""
    samples, height, width = original.shape
    values = np.empty(samples)
    for start in range(0, samples, chunk):
        a, b = (maps[start : start + chunk].reshape(-1, height * width) for maps in (original, perturbed))
        members = top_masks(b, k).reshape(-1, height, width)
        across = members.copy()
        for shift in range(1, w + 1):
            across[:, :, shift:] |= members[:, :, :-shift]
            across[:, :, :-shift] |= members[:, :, shift:]
        near = across.copy()
        for shift in range(1, w + 1):
            near[:, shift:] |= across[:, :-shift]
            near[:, :-shift] |= across[:, shift:]
        values[start : start + chunk] = np.count_nonzero(top_masks(a, k) & near.reshape(len(a), -1), axis=1) / k
    return values


def precision_by_dilation(original, perturbed, k, w):
    """One image at a time, as one writes it with SciPy; a stable sort sends ties to the lower index."""
    window = np.ones((2 * w + 1, 2 * w + 1), bool)
    values = []
    for pair in zip(original, perturbed, strict=True):
        first, second = np.zeros((2, *pair[0].shape), bool)
        for mask, map_ in zip((first, second), pair, strict=True):
            mask.flat[np.argsort(-map_, axis=None, kind="stable")[:k]] = True
        values.append((first & scipy.ndimage.binary_dilation(second, window)).sum() / k)
    return np.array(values)


def seconds(work):
    start = time.thread_time()
    work()
    return time.thread_time() - start


def compare(label, own, rival, tolerance, limit):
    np.testing.assert_allclose(own(), rival(), rtol=0, atol=tolerance)
    own_times, rival_times = [], []
    for _ in range(ROUNDS):
        own_times += [seconds(own) for _ in range(3)]
        rival_times.append(seconds(rival))
    own_time, rival_time = statistics.median(own_times), statistics.median(rival_times)
    speed = rival_time / own_time
    print(f"{label:72} {own_time * 1e3:8.2f} ms, rival {rival_time * 1e3:8.1f} ms: {speed:6.1f} times (limit {limit})")
    return speed >= limit


def main():
    torch.set_num_threads(1)
    passed = True
    for pairs, features, limit in ((1000, 784, 10), (100, 16384, 2)):
        original, perturbed = saliency_like((pairs, features), features)
        for name, function in (("kendall", scipy.stats.kendalltau), ("spearman", scipy.stats.spearmanr)):
            passed &= compare(
                f"{name}, {pairs} pairs of {features} values: scipy.stats.{function.__name__}",
                lambda name=name, a=original, b=perturbed: ours(name, a, b),
                lambda function=function, a=original, b=perturbed: rank_correlation(function, a, b),
                1e-12,
                limit,
            )
    for samples, size, k, w, rivals in (
        (1000, 28, 100, 1, ((precision_by_slices, 4), (precision_by_dilation, 50))),
        (100, 227, 1000, 3, ((precision_by_slices, None), (precision_by_dilation, 10))),
    ):
        original, perturbed = saliency_like((samples, size, size), size)
        for rival, limit in rivals:
            passed &= compare(
                f"lens_precision(k={k},w={w}), {samples} maps {size} x {size}: {rival.__name__}",
                lambda k=k, w=w, a=original, b=perturbed: ours(f"lens_precision(k={k},w={w})", a, b),
                lambda rival=rival, k=k, w=w, a=original, b=perturbed: rival(a, b, k, w),
                0,
                limit or 1,
            )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
