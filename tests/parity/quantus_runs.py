"""Quantus' stability metrics with their noise written down, so that it can be given to ours."""

import warnings

import numpy as np
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import quantus
    from quantus.functions.perturb_func import batch_gaussian_noise, batch_uniform_noise

NOISE = {
    "MaxSensitivity": batch_uniform_noise,
    "AvgSensitivity": batch_uniform_noise,
    "LocalLipschitzEstimate": batch_gaussian_noise,
    "RelativeInputStability": batch_uniform_noise,
    "RelativeOutputStability": batch_uniform_noise,
    "RelativeRepresentationStability": batch_uniform_noise,
}


def saliency(model, inputs, targets, **_):
    """What ``saliency`` computes, as Quantus asks for explanations: arrays in, arrays out."""
    x = torch.as_tensor(inputs).requires_grad_()
    chosen = torch.softmax(model(x), 1).gather(1, torch.as_tensor(targets).unsqueeze(1))
    return torch.autograd.grad(chosen.sum(), x)[0].abs().numpy()


def predicted(model, inputs):
    with torch.no_grad():
        return model(torch.as_tensor(inputs)).argmax(1).numpy()


def score(name, model, inputs, *, points, batch_size=64, explain=saliency, **options):
    """Scores of the metric, one a sample."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metric = getattr(quantus, name)(nr_samples=points, disable_warnings=True, **options)
        targets = predicted(model, inputs)
        found = metric(model=model, x_batch=inputs, y_batch=targets, explain_func=explain, batch_size=batch_size, device="cpu")
    return np.asarray(found)


def run(name, model, inputs, *, points, seed=0, **options):
    """Scores, and the perturbed inputs they are of: [samples, points, ...]."""
    noise, drawn = NOISE[name], []

    def remembered(arr, **keywords):
        drawn.append(noise(arr, **keywords))
        return drawn[-1]

    np.random.seed(seed)  # Quantus uses the global generator
    scores = score(name, model, inputs, points=points, perturb_func=remembered, **options)
    batches = [np.stack(drawn[at : at + points], axis=1) for at in range(0, len(drawn), points)]
    return scores, np.concatenate(batches).reshape(len(inputs), points, *inputs.shape[1:])
