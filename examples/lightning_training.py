"""An objective of Holdfast inside a LightningModule.

python examples/lightning_training.py
"""

from typing import Any

import holdfast
import lightning
import torch


class Classifier(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.network = torch.nn.Sequential(torch.nn.Linear(8, 24), torch.nn.Softplus(), torch.nn.Linear(24, 2))
        self.objective = holdfast.objective("r2et(top_k=2,gap=0.1,curvature=0.1)")
        self.parts: dict[str, float] = {}

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        x, y = batch
        progress = self.current_epoch / max(1, self.trainer.max_epochs or 1)
        loss, self.parts = self.objective(self.network, x, y, progress=progress)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), 0.02)


def main(epochs: int = 12) -> tuple[dict[str, float], float]:
    lightning.seed_everything(0, verbose=False)
    x = torch.rand(240, 8)
    y = (x[:, 0] + x[:, 1] > 1).long()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x[:160], y[:160]), batch_size=20, shuffle=True)
    model = Classifier()
    trainer = lightning.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
    )
    trainer.fit(model, loader)
    return model.parts, float((model.network(x[160:]).argmax(1) == y[160:]).float().mean())


if __name__ == "__main__":
    print(main())
