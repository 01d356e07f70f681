"""Models without gradients: estimators and pipelines of scikit-learn, XGBoost, LightGBM and whatever has their methods."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ._core import Error


def is_estimator(model: Any) -> bool:
    return not isinstance(model, type) and any(callable(getattr(model, name, None)) for name in _METHODS)


# The method that is asked, and what it gives.
_METHODS = {"predict_proba": "probabilities", "decision_function": "auto", "predict": "value"}


def estimator_function(model: Any, asked: str) -> tuple[Callable[[torch.Tensor], torch.Tensor], str]:
    """A function of tensors that asks the estimator, and what it gives."""
    if asked == "value" or not any(hasattr(model, name) for name in ("predict_proba", "decision_function")):
        method = "predict"
        if asked != "value" and not _is_regressor(model):
            raise Error(
                f"model: a {type(model).__name__} has predict alone, which gives no probabilities; for a regression "
                "holdfast.as_model(model, output_kind='value') says so"
            )
    else:
        method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    kind = asked if asked != "auto" else _METHODS[method]

    def ask(inputs: torch.Tensor) -> torch.Tensor:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")  # they were those of a data frame
            answer = np.asarray(getattr(model, method)(inputs.detach().cpu().numpy()))
        if answer.ndim not in (1, 2):
            raise Error(
                f"model: {type(model).__name__}.{method} gives an array of shape {answer.shape}; one row a sample is expected"
            )
        return torch.as_tensor(answer, dtype=inputs.dtype, device=inputs.device)

    ask.__name__ = ask.__qualname__ = type(model).__name__
    if kind == "auto":  # decision_function: one number for two classes, one for each of more
        kind = "logit" if len(getattr(model, "classes_", (0, 1))) == 2 else "logits"
    return ask, kind


def _is_regressor(model: Any) -> bool:
    if "sklearn" in sys.modules:
        from sklearn.base import is_regressor

        return bool(is_regressor(model))
    return getattr(model, "_estimator_type", None) == "regressor"
