#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""peer.py MODEL DTYPE BATCH [--seconds N]: PyTorch's time for the same layers as a model of make_models.py, on the first GPU.
peer.py rates: what the GPU can do, in operations and bytes per second.

Prints JSON: the median milliseconds of a run, eager and through torch.compile, and PyTorch's version. fp32 allows TF32. Weights are random: a time
does not depend on their values. Exit status: 77 without PyTorch or a GPU that it can use.
"""
import argparse
import json
import statistics
import sys
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError:
    sys.exit(77)


class Unit(nn.Module):
    """A block of ResNet-50, with its batch normalization folded into the convolutions as in the model."""

    def __init__(self, ins, inner, stride, shortcut):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(ins, inner, 1), nn.Conv2d(inner, inner, 3, stride, 1), nn.Conv2d(inner, 4 * inner, 1)
        self.shortcut = nn.Conv2d(ins, 4 * inner, 1, stride) if shortcut else nn.Identity()

    def forward(self, x):
        return functional.relu(self.c(functional.relu(self.b(functional.relu(self.a(x))))) + self.shortcut(x))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        layers, width = [nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], 64
        for stage, count in enumerate((3, 4, 6, 3)):
            for block in range(count):
                layers.append(Unit(width, 64 << stage, 2 if block == 0 and stage > 0 else 1, block == 0))
                width = 256 << stage
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 1000))

    def forward(self, x):
        return self.layers(x)


class EncoderLayer(nn.Module):
    def __init__(self, width, heads, norm_first):
        super().__init__()
        self.qkv = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.out, self.up, self.down = nn.Linear(width, width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.heads, self.norm_first = heads, norm_first

    def attend(self, x):
        q, k, v = (layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in self.qkv)
        return self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

    def mix(self, x):
        return self.down(functional.gelu(self.up(x)))

    def forward(self, x):
        if self.norm_first:
            x = x + self.attend(self.first(x))
            return x + self.mix(self.second(x))
        x = self.first(x + self.attend(x))
        return self.second(x + self.mix(x))


class Encoder(nn.Sequential):
    def __init__(self):
        super().__init__(*(EncoderLayer(768, 12, False) for _ in range(12)))


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches, self.positions = nn.Conv2d(3, 768, 16, 16), nn.Parameter(torch.randn(1, 196, 768))
        self.layers = nn.Sequential(*(EncoderLayer(768, 12, True) for _ in range(12)), nn.LayerNorm(768))
        self.head = nn.Linear(768, 1000)

    def forward(self, x):
        return self.head(self.layers(self.patches(x).flatten(2).transpose(1, 2) + self.positions).mean(1))


class DecoderLayer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.qkv = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(3))
        self.out, self.down = nn.Linear(width, width, bias=False), nn.Linear(inner, width, bias=False)
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.first, self.second, self.heads = nn.RMSNorm(width, 1e-5), nn.RMSNorm(width, 1e-5), heads

    def forward(self, x, key, value):
        h = self.first(x)
        q, k, v = (layer(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in self.qkv)
        key, value = torch.cat((key, k), 2), torch.cat((value, v), 2)
        x = x + self.out(functional.scaled_dot_product_attention(q, key, value).transpose(1, 2).flatten(2))
        h = self.second(x)
        return x + self.down(functional.silu(self.gate(h)) * self.up(h)), key, value


class DecoderStep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(4096, 32, 11008) for _ in range(4))

    def forward(self, x, *past):
        present = []
        for index, layer in enumerate(self.layers):
            x, key, value = layer(x, past[2 * index], past[2 * index + 1])
            present += [key, value]
        return x, *present


PICTURE = [(3, 224, 224)]
MODELS = {
    "resnet50": (ResNet50, PICTURE),
    "bert_base": (Encoder, [(128, 768)]),
    "vit_b16": (VisionTransformer, PICTURE),
    "decoder_step": (DecoderStep, [(1, 4096)] + [(32, 1024, 128)] * 8),
}


def median_ms(call, seconds):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 10 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def rates(seconds):
    """The rates of large products in TF32 and fp16, and of copies within the GPU's memory, which read and write."""
    n, size = 8192, 1 << 30
    found = {}
    for name, dtype in (("fp32", torch.float32), ("fp16", torch.float16)):
        a = torch.randn(n, n, device="cuda", dtype=dtype)
        found[name] = 2e3 * n**3 / median_ms(lambda: a @ a, seconds)
    source, target = (torch.empty(size, device="cuda", dtype=torch.uint8) for _ in range(2))
    return found | {"bytes": 2e3 * size / median_ms(lambda: target.copy_(source), seconds)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", choices=(*MODELS, "rates"))
    parser.add_argument("dtype", choices=("fp32", "fp16"), nargs="?", default="fp32")
    parser.add_argument("batch", type=int, nargs="?", default=1)
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit(77)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    if options.model == "rates":
        print(json.dumps(rates(options.seconds)))
        return
    dtype = {"fp32": torch.float32, "fp16": torch.float16}[options.dtype]
    build, shapes = MODELS[options.model]
    model = build().eval().to("cuda", dtype)
    inputs = [torch.randn(options.batch, *shape, device="cuda", dtype=dtype) for shape in shapes]
    found = {"torch": torch.__version__}
    with torch.inference_mode():
        found["eager_ms"] = median_ms(lambda: model(*inputs), options.seconds)
        try:
            compiled = torch.compile(model, mode=None if options.model == "decoder_step" else "reduce-overhead")
            found["compiled_ms"] = median_ms(lambda: compiled(*inputs), options.seconds)
        except Exception as error:  # the compiler needs Triton and a C compiler
            found["why"] = f"torch.compile: {type(error).__name__}"
    print(json.dumps(found))


if __name__ == "__main__":
    main()
