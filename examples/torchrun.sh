#!/bin/bash
# An audit on several machines with four processes each (docs/distributed.md). Start the same line on every machine:
#     HOST=host1 MACHINES=2 examples/torchrun.sh
set -eu
HOST=${HOST:-localhost} MACHINES=${MACHINES:-1} PROCESSES=${PROCESSES:-4}

# The folder must be one that all machines share. If a process dies, all start again and go on, three times at most.
torchrun --nnodes "$MACHINES" --nproc-per-node "$PROCESSES" --max-restarts 3 \
  --rdzv-backend c10d --rdzv-endpoint "$HOST:29500" --no-python holdfast audit \
  --model mlp:examples/model.safetensors --inputs examples/inputs.npy --schema examples/schema.json \
  --epsilon 0.5 --metric 'top_k(k=4)' --out "${OUT:-runs/audit}"
