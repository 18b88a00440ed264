"""Record modules of PyTorch as safetensors files, with inputs and outputs: PYTHON_WITH_TORCH record_torch.py FOLDER."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import nn


def main(folder: Path) -> None:
    torch.manual_seed(0)
    words = nn.Embedding(7, 4), nn.LSTM(4, 3, batch_first=True, bidirectional=True), nn.LayerNorm(6)
    gru, rnn, heads = (
        nn.GRU(6, 3, batch_first=True),
        nn.RNN(3, 4, batch_first=True),
        nn.MultiheadAttention(4, 2, batch_first=True),
    )
    image = nn.Sequential(
        nn.Conv2d(2, 3, 3, padding=1), nn.ReLU(), nn.BatchNorm2d(3), nn.Conv2d(3, 6, 2, groups=3),
        nn.ConvTranspose2d(6, 2, 2, stride=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 3),
    )  # fmt: skip
    image[2].running_mean.normal_()
    image[2].running_var.uniform_(0.5, 1.5)
    text = nn.ModuleDict(
        {"words": words[0], "both": words[1], "norm": words[2], "gru": gru, "rnn": rnn, "heads": heads}
    )
    for module in (image, text):
        module.eval()
        for p in module.parameters():
            p.data.normal_(0, 0.4)
    tokens, pixels = torch.randint(0, 7, (2, 5)), torch.randn(2, 2, 6, 6)
    with torch.no_grad():
        h = words[2](words[1](words[0](tokens))[0])
        h = rnn(gru(h)[0])[0]
        y = heads(h, h, h, need_weights=False)[0]
        z = image(pixels)
    steps = nn.ModuleDict({
        "apart": nn.Conv1d(2, 4, 2, groups=2), "up": nn.ConvTranspose1d(4, 3, 2, stride=2), "slopes": nn.PReLU(3),
        "norm": nn.RMSNorm(3, eps=1e-6), "both": nn.LSTM(3, 2, 2, batch_first=True),
    })  # fmt: skip
    for p in steps.parameters():
        p.data.normal_(0, 0.4)
    signal = torch.randn(2, 2, 5)
    with torch.no_grad():
        h = steps["slopes"](steps["up"](steps["apart"](signal))).permute(0, 2, 1)
        s = steps["both"](steps["norm"](h))[0]
    arrays = {"tokens": tokens, "y": y, "pixels": pixels.permute(0, 2, 3, 1), "z": z}
    arrays |= {"signal": signal.permute(0, 2, 1), "s": s}
    made = {name: np.ascontiguousarray(x.numpy()) for name, x in arrays.items()}
    for name, module in (("text", text), ("image", image), ("steps", steps)):
        made |= {f"{name}.{key}": np.ascontiguousarray(x.numpy()) for key, x in module.state_dict().items()}
    save_file(made, folder / "torch_modules.safetensors")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
