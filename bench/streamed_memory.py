"""Peak memory of an audit that reads its samples from a Dataset: 50,000 images of 3 x 32 x 32 stay under 2 GiB.

bench/streamed_memory.py [IMAGES]
"""

import resource
import sys
import warnings

import holdfast
import torch

LIMIT = 2.0


class Images(torch.utils.data.Dataset):
    """Made when they are asked for, so that only what the audit keeps is in memory."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(index)), index % 10


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main():
    warnings.simplefilter("ignore")
    images = Images(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, stride=4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(256, 10))
    before = peak()
    run = holdfast.audit(
        {"cnn": model}, images, attack="random(samples=1)", metric="top_k(k=100)", threat={"epsilon": 0.5}, progress=False
    )
    assert run.rows[0]["count"] == len(images)
    few = holdfast.audit(
        {"cnn": model},
        torch.stack([images[i][0] for i in range(200)]),
        attack="random(samples=1)",
        metric="top_k(k=100)",
        threat={"epsilon": 0.5},
        progress=False,
    )
    first = run.samples()["value"][:200].to_numpy()
    assert (first == few.samples()["value"].to_numpy()).all(), "the same samples have the same values"
    print(f"audit of {len(images)} streamed images: {peak():.2f} GiB, {before:.2f} before it (at most {LIMIT})")
    sys.exit("streamed_memory: missed" if peak() > LIMIT else 0)


if __name__ == "__main__":
    main()
