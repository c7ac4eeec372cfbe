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


def chosen(choices: list[tuple[np.ndarray, np.ndarray]], *, ridge: float = 0.003) -> np.ndarray:
    """Weights of a conditional logistic model: which of several is chosen (McFadden 1974), by Newton's method.

    Args:
        choices: Of each, the features (options, features) and whether an option is right; more than one may be.
        ridge: Times the number of choices, the penalty of the squared weights.
    """
    choices = [(features, right) for features, right in choices if right.any()]
    width = choices[0][0].shape[1]
    found = np.zeros(width)
    for _ in range(60):
        gradient, curvature = -2 * ridge * len(choices) * found, 2 * ridge * len(choices) * np.eye(width)
        for features, right in choices:
            odds = features @ found
            share = np.exp(odds - odds.max())
            wanted = np.exp(np.where(right, odds, -np.inf) - odds[right].max())
            share, wanted = share / share.sum(), wanted / wanted.sum()
            gradient += (wanted - share) @ features
            curvature += (features * share[:, None]).T @ features - np.outer(share @ features, share @ features)
        step = np.linalg.solve(curvature, gradient)
        # Where several are right it is not concave: no step may go far.
        found = found + step / max(1.0, np.abs(step).max())
    return found


def auc(values: np.ndarray, right: np.ndarray) -> float:
    """How often a right one has a greater value than another (Mann and Whitney)."""
    differences = values[right][:, None] - values[~right][None, :]
    return float((differences > 0).mean() + (differences == 0).mean() / 2)
