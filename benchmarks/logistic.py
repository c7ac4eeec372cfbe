"""Logistic models of a handful of features, and how well they tell apart."""

from __future__ import annotations

import numpy as np


def fitted(
    features: np.ndarray, labels: np.ndarray, weights: np.ndarray | None = None, *, ridge: float = 0.01
) -> np.ndarray:
    """Bias and weights of a logistic model, by Newton's method; features are scaled while the ridge holds them.

    Args:
        features: (examples, features).
        labels: 0 or 1 for each example.
        weights: How much each example counts; None: all alike.
        ridge: Times the number of examples, the penalty of the squared weights.
    """
    counts = np.ones(len(labels)) if weights is None else weights * len(labels) / weights.sum()
    scale = features.std(axis=0) + 1e-9
    inputs = np.column_stack([np.ones(len(features)), features / scale])
    penalty = ridge * len(labels) * np.diag([0.0, *np.ones(len(scale))])
    found = np.zeros(inputs.shape[1])
    for _ in range(50):
        said = 1 / (1 + np.exp(-inputs @ found))
        curvature = (inputs * (counts * said * (1 - said))[:, None]).T @ inputs + penalty
        found = found - np.linalg.solve(curvature, inputs.T @ (counts * (said - labels)) + penalty @ found)
    return found / np.array([1.0, *scale])


def auc(values: np.ndarray, right: np.ndarray) -> float:
    """How often a right one has a greater value than another (Mann and Whitney)."""
    differences = values[right][:, None] - values[~right][None, :]
    return float((differences > 0).mean() + (differences == 0).mean() / 2)
