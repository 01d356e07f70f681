"""Models without gradients: estimators and pipelines of scikit-learn, XGBoost, LightGBM and whatever has their methods, and
functions of arrays."""

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


def estimator_function(
    model: Any, asked: str, frame: Callable[[np.ndarray[Any, Any]], Any] | None = None
) -> tuple[Callable[[torch.Tensor], torch.Tensor], str]:
    """A function of tensors that asks the estimator, and what it gives. ``frame``: rows as the frame that it was made for."""
    if asked == "value" or not any(hasattr(model, name) for name in ("predict_proba", "decision_function")):
        method = "inplace_predict" if hasattr(model, "inplace_predict") else "predict"  # XGBoost's own model takes no arrays
        if asked == "auto" and not _is_regressor(model):
            raise Error(
                f"model: a {type(model).__name__} has predict alone; say whether it gives a probability (of class 1), "
                "probabilities or a value: holdfast.as_model(model, output_kind='probability')"
            )
    else:
        method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    kind = asked if asked != "auto" else _METHODS.get(method, "value")

    def ask(inputs: torch.Tensor) -> torch.Tensor:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")  # they were those of a data frame
            rows = inputs.detach().cpu().numpy()
            answer = np.asarray(getattr(model, method)(rows if frame is None else frame(rows)))
        if answer.ndim not in (1, 2):
            raise Error(
                f"model: {type(model).__name__}.{method} gives an array of shape {answer.shape}; one row a sample is expected"
            )
        return torch.as_tensor(answer, dtype=inputs.dtype, device=inputs.device)

    ask.__name__ = ask.__qualname__ = type(model).__name__
    if kind == "auto":  # decision_function: one number for two classes, one for each of more
        kind = "logit" if len(getattr(model, "classes_", (0, 1))) == 2 else "logits"
    return ask, kind


class EitherFunction:
    """A function of tensors, or one of arrays: it is tried with a tensor first."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function, self._takes = function, ""

    def __call__(self, inputs: torch.Tensor) -> Any:
        if self._takes == "arrays":
            return self._ask(inputs)
        try:
            answer = self._function(inputs)
        except (RuntimeError, TypeError, AttributeError, ValueError) as error:
            if self._takes or not _is_about_arrays(error):
                raise
            try:
                answer = self._ask(inputs)
            except Exception:
                raise error from None
            self._takes = "arrays"
            return answer
        if isinstance(answer, np.ndarray):
            return torch.as_tensor(answer, dtype=inputs.dtype, device=inputs.device)
        self._takes = "tensors"
        return answer

    def _ask(self, inputs: torch.Tensor) -> torch.Tensor:
        answer = np.asarray(self._function(inputs.detach().cpu().numpy()))
        return torch.as_tensor(answer, dtype=inputs.dtype, device=inputs.device)


def _is_about_arrays(error: Exception) -> bool:
    """What NumPy and the libraries that stand on it say of a tensor with a gradient."""
    return "numpy()" in str(error) or "Tensor" in str(error)


def is_method_of_estimator(model: Any) -> bool:
    """``forest.predict_proba`` itself."""
    owner = getattr(model, "__self__", None)
    return owner is not None and not isinstance(owner, torch.nn.Module) and is_estimator(owner)


def _is_regressor(model: Any) -> bool:
    if "sklearn" in sys.modules:
        from sklearn.base import BaseEstimator, is_regressor

        if isinstance(model, BaseEstimator):
            return bool(is_regressor(model))
    return getattr(model, "_estimator_type", None) == "regressor"
