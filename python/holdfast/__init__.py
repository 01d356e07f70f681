"""Do a model's explanations hold when the input is nudged?

>>> import holdfast, torch
>>> model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
>>> inputs = torch.rand(4, 6)
>>> maps = holdfast.explain(model, inputs, "saliency")
>>> maps.shape
torch.Size([4, 6])

A model is any ``torch.nn.Module`` or callable, or what :func:`load_model` gives; :func:`as_model` says what its output is.
Inputs and maps are torch tensors or NumPy arrays; results come back as what was given. The algorithms are those of the
command line, and so are their names and options: :func:`list` and :func:`describe` show them.
"""

import re as _re
import typing as _typing

import torch as _torch  # its libraries must be loaded before ours

from ._built_for import CUDA as _CUDA
from ._built_for import TORCH as _TORCH

if _torch.__version__.split("+")[0] != _TORCH.split("+")[0] or (_CUDA and _torch.version.cuda is None):
    raise ImportError(
        f"holdfast was built for torch {_TORCH}{' with CUDA' if _CUDA else ''}, and torch {_torch.__version__} is installed; "
        "build it again in its source folder: pip install --no-deps --force-reinstall ."
    )

try:
    from . import _core as _core
except ImportError as _error:
    if not (_missing := _re.match(r"(lib\S+\.so\S*): cannot open shared object file", str(_error))):
        raise
    raise ImportError(
        f"holdfast needs the library {_missing[1]}, which is not on this machine; install the Debian packages that "
        "docs/building.md names, or build holdfast here: pip install . in its source folder"
    ) from None

from ._attack import Attacked, Threat, attack
from ._audit import audit, audit_config
from ._catalogue import describe
from ._catalogue import list_methods as list
from ._certify import Certified, certify
from ._choose import Suggestion, choose_threat
from ._core import Error
from ._core import version as __version__
from ._explain import Explained, explain
from ._extend import attack_method, explainer, measure_method, metric, objective_method
from ._measure import Similarity, measure
from ._measure_model import Measurement, measure_model
from ._methods import Methods
from ._model import AdaptedModel, Model, as_model, load_model
from ._objective import Objective, objective
from ._run import Run, Worst, compare, load_run
from ._schema import Schema
from ._session import HoldfastWarning
from ._train import train

if _typing.TYPE_CHECKING:
    from . import testing as testing


def __getattr__(name: str) -> _typing.Any:
    if name == "testing":  # read when it is asked for: most programs test nothing
        import importlib

        return importlib.import_module(".testing", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


explainers = Methods("explainers")
attacks = Methods("attacks")
metrics = Methods("metrics")
measures = Methods("measures")
objectives = Methods("objectives")

__all__ = [
    "AdaptedModel",
    "Attacked",
    "Certified",
    "Error",
    "Explained",
    "HoldfastWarning",
    "Measurement",
    "Methods",
    "Model",
    "Objective",
    "Run",
    "Schema",
    "Similarity",
    "Suggestion",
    "Threat",
    "Worst",
    "__version__",
    "as_model",
    "attack",
    "attack_method",
    "attacks",
    "audit",
    "audit_config",
    "certify",
    "choose_threat",
    "compare",
    "describe",
    "explain",
    "explainer",
    "explainers",
    "list",
    "load_model",
    "load_run",
    "measure",
    "measure_method",
    "measure_model",
    "measures",
    "metric",
    "metrics",
    "objective",
    "objective_method",
    "objectives",
    "train",
]
