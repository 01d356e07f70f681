"""An objective of Holdfast inside Hugging Face's Trainer, on a tiny transformer with fresh weights: nothing is downloaded.

    python examples/hugging_face_training.py

What is explained and perturbed is the embedding of each token: the objective is given the embeddings and the model from there on.
"""

import tempfile
from typing import Any

import holdfast
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

WORDS, LENGTH = 40, 8


class SteadyTrainer(Trainer):
    objective = holdfast.objective("r2et(top_k=4,gap=0.01,curvature=0)")

    def compute_loss(self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, **_: Any) -> Any:
        embedded = model.get_input_embeddings()(inputs["input_ids"]).detach()
        mask = inputs["attention_mask"]

        def from_embeddings(rows: torch.Tensor) -> torch.Tensor:
            return model(inputs_embeds=rows, attention_mask=mask).logits

        step = self.state.global_step / max(1, self.state.max_steps)
        loss, _ = self.objective(from_embeddings, embedded, inputs["labels"], progress=step)
        return (loss, {"logits": from_embeddings(embedded)}) if return_outputs else loss


def main(steps: int = 25) -> dict[str, float]:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        num_labels=2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation="eager",
    )
    model = BertForSequenceClassification(config)
    words = torch.randint(0, WORDS, (128, LENGTH))
    mask = torch.ones(LENGTH, dtype=torch.long)
    labels = ((words < WORDS // 2).sum(1) > LENGTH // 2).long()
    rows = [{"input_ids": row, "attention_mask": mask, "labels": label} for row, label in zip(words, labels, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            max_steps=steps,
            per_device_train_batch_size=32,
            learning_rate=0.02,
            report_to=[],
            logging_steps=1,
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = SteadyTrainer(model=model, args=arguments, train_dataset=rows)
        trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    return {"first_loss": sum(losses[:5]) / 5, "last_loss": sum(losses[-5:]) / 5}


if __name__ == "__main__":
    print(main())
