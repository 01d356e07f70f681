"""A plain PyTorch training loop, once as it is and once with an objective that makes explanations hold.

    python examples/pytorch_training.py

The last line is JSON: accuracy and what an attack leaves of the top 2 features, for both.
"""

import json

import holdfast
import torch


def data(count: int = 240) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.rand(count, 8, generator=torch.Generator().manual_seed(0))
    return x, (x[:, 0] + 0.6 * x[:, 1] ** 2 > 0.7).long()


def train(objective: str, x: torch.Tensor, y: torch.Tensor, epochs: int = 40) -> torch.nn.Module:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 24), torch.nn.Softplus(), torch.nn.Linear(24, 2))
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
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
    seen, held_out = slice(0, 160), slice(160, 240)
    found = {}
    for name, objective in (("plain", "ce"), ("r2et", "r2et(top_k=2,gap=0.5,curvature=0.5)")):
        model = train(objective, x[seen], y[seen])
        threat = holdfast.Threat("l2", 0.3)
        moved = holdfast.attack(model, x[held_out], "er(steps=30)", metric="top_k(k=2)", threat=threat, random_points=False)
        accuracy = float((model(x[held_out]).argmax(1) == y[held_out]).float().mean())
        found[name] = {"accuracy": accuracy, "top_k": moved.summary.mean}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
