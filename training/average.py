"""Average weights that were trained one after the other: ``python average.py ONE TWO … OUT``."""

from __future__ import annotations

import sys

import torch
from safetensors.torch import load_file, save_file


def main() -> None:
    """Write the mean of each tensor, in half precision."""
    *paths, out = sys.argv[1:]
    every = [load_file(path) for path in paths]
    save_file(
        {name: torch.stack([one[name].float() for one in every]).mean(0).half().contiguous() for name in every[0]}, out
    )


if __name__ == "__main__":
    main()
