"""A plain PyTorch training loop, once as it is and once with an objective that makes explanations hold.

    python examples/pytorch_training.py

The last line is JSON: accuracy and what an attack leaves of the top 2 features, for both; `between` is what the
top features of different samples share: where it is as high as top_k, the maps hold but say little about a sample.
"""

import json

import holdfast
import torch


def data(count: int = 400) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.rand(count, 8, generator=torch.Generator().manual_seed(0))
    a, b, c, d = (x[:, :4] - 0.5).T  # four of eight features matter, two of them only together
    score = a + b + 4 * c * d
    return x, (score > score.median()).long()


def train(objective: str, x: torch.Tensor, y: torch.Tensor, epochs: int = 40) -> torch.nn.Module:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    loss_of = holdfast.objective(objective)
    for epoch in range(epochs):
        for rows in torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch)).split(40):
            loss, _ = loss_of(model, x[rows], y[rows], progress=epoch / epochs)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model


def main() -> None:
    x, y = data()
    seen, held_out = slice(0, 320), slice(320, 400)
    found = {}
    for name, objective in (("plain", "ce"), ("r2et", "r2et(top_k=2,gap=0.1,curvature=0.05)")):
        model = train(objective, x[seen], y[seen])
        threat = holdfast.Threat("l2", 0.1)
        moved = holdfast.attack(model, x[held_out][:40], "gauntlet", metric="top_k(k=2)", threat=threat, random_points=False)
        accuracy = float((model(x[held_out]).argmax(1) == y[held_out]).float().mean())
        found[name] = {"accuracy": accuracy, "top_k": moved.summary.mean, "between": moved.summary.between}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
