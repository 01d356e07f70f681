#!/bin/bash
# An audit on two machines with four processes each (docs/distributed.md). Start it with: sbatch examples/slurm.sh
#SBATCH --job-name=holdfast-audit
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=4
#SBATCH --time=04:00:00

# The folder must be one that both machines share. If the job is cut off, submit it again: it goes on.
srun --kill-on-bad-exit=1 holdfast audit \
  --model mlp:examples/model.safetensors --inputs examples/inputs.npy --schema examples/schema.json \
  --epsilon 0.5 --metric 'top_k(k=4)' --threads "$SLURM_CPUS_PER_TASK" --out runs/audit
