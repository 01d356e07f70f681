"""Prints the numbers that statistics_test.cpp holds ours against, as SciPy gives them: python scipy_statistics.py"""

import numpy as np
from scipy import stats

A = np.array([0.91, 0.85, 0.77, 0.93, 0.60, 0.88, 0.71, 0.95, 0.83, 0.79, 0.90, 0.66])
B = np.array([0.84, 0.85, 0.70, 0.95, 0.52, 0.80, 0.73, 0.88, 0.80, 0.70, 0.85, 0.64])
P = np.array([0.011, 0.02, 0.04, 0.0004, 0.3, 0.02])
X = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8], dtype=float)
Y = np.array([2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4, 5], dtype=float)


def mean_difference(a, b, axis):
    return np.mean(a - b, axis=axis)


exact = stats.permutation_test(
    (A, B), mean_difference, permutation_type="samples", vectorized=True, n_resamples=np.inf, alternative="two-sided"
)
print("sign flip, exact", repr(exact.pvalue), "mean difference", repr(np.mean(A - B)))
print("benjamini_hochberg", stats.false_discovery_control(P, method="bh").tolist())
order = np.argsort(P)
steps = np.maximum.accumulate(np.minimum(1, P[order] * np.arange(len(P), 0, -1)))
print("holm", steps[np.argsort(order)].tolist())
print("pearson", stats.pearsonr(X, Y).statistic)
print("spearman", stats.spearmanr(X, Y).statistic)
print("kendall", stats.kendalltau(X, Y).statistic)
