#!/usr/bin/env bash
# Makes the files of this folder again: a model, inputs with their schema, and explanations before and after an attack.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build/holdfast train examples/train.toml --out "$work/train" --quiet
cp "$work/train/model.safetensors" "$work/train/test/inputs.npy" "$work/train/test/labels.npy" "$work/train/test/schema.json" examples/
build/holdfast attack --model mlp:examples/model.safetensors --inputs examples/inputs.npy --schema examples/schema.json --attack er --norm l2 \
  --epsilon 0.5 --metric 'top_k(k=4)' --out "$work/attack" --quiet
cp "$work/attack/original_attributions.npy" "$work/attack/perturbed_attributions.npy" examples/
