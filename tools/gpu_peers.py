"""PyTorch's side of tools/gpu_check: the same networks, timed in PyTorch's common modes.

  python3 tools/gpu_peers.py serve            each line of stdin names a workload; the answer is lines of JSON, the last {"done": …}
  python3 tools/gpu_peers.py prepare WORK…    compiles workloads to fill the compiler's cache on disk
  python3 tools/gpu_peers.py list             lists the workloads

A line of an answer has work, mode, ms (the median), least_ms and, for training, peak_bytes: the peak of PyTorch's
allocator. `cudnn.benchmark` is on, images are channels last, f32 may be computed in tf32.
TENON_PEERS_DEVICE=cpu runs everything once on a processor, as a smoke test.
"""

import contextlib
import gc
import json
import os
import sys
import time

DEVICE = os.environ.get("TENON_PEERS_DEVICE", "cuda")
ON_GPU = DEVICE == "cuda"
INFERENCE = ("eager", "graph", "compile")
# Workload: (constructor, arguments, modes). U-Net has only its fastest mode, because the search for convolution
# algorithms takes most of its time.
WORKS = {
    "conv": ("document_convolution", (), INFERENCE),
    "resnet50 f16 b1": ("resnet50", (1, "float16"), INFERENCE),
    "resnet50 f16 b10": ("resnet50", (10, "float16"), INFERENCE),
    "resnet50 f16 b128": ("resnet50", (128, "float16"), INFERENCE),
    "resnet50 tf32 b10": ("resnet50", (10, "float32"), INFERENCE),
    "bert f16 b1": ("bert", (1,), INFERENCE),
    "bert f16 b32": ("bert", (32,), INFERENCE),
    "alexnet step tf32": ("alexnet_step", (), INFERENCE),
    "unet step tf32": ("unet_step", (False,), ("graph",)),
    "unet step bf16": ("unet_step", (True,), ("graph",)),
}


def say(**fields):
    print(json.dumps(fields), flush=True)


def wait():
    if ON_GPU:
        torch.cuda.synchronize()


def times_of(run, repeats):
    """Returns milliseconds by device events, after five warm-up runs."""
    for _ in range(5 if ON_GPU else 1):
        run()
    wait()
    times = []
    for _ in range(repeats if ON_GPU else 1):
        if ON_GPU:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            run()
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end))
        else:
            begin = time.perf_counter()
            run()
            times.append(1e3 * (time.perf_counter() - begin))
    return sorted(times)


def recorded(run):
    """Captures the run as a CUDA graph."""
    if not ON_GPU:
        return run
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()  # without the workspace of the search for convolutions
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def channels_last(x):
    return x.to(memory_format=torch.channels_last)


# ---- inference: a function without arguments, for a way to compile the model ----


def inference(model, *inputs):
    model = model.to(DEVICE).eval()

    def runs(compiled):
        called = compiled(model)
        return lambda: called(*inputs)

    return runs


def document_convolution():
    """Convolution of the AITemplate document: an image of 28 x 28 x 128, 256 outputs, windows of 3 x 3, and an add."""

    class Convolution(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(256, 128, 3, 3) * 0.03)
            self.added = nn.Parameter(torch.randn(1, 256, 26, 26))

        def forward(self, x):
            return F.conv2d(x, self.weight) + self.added

    x = channels_last(torch.randn(1, 128, 28, 28, device=DEVICE).half())
    return inference(channels_last(Convolution().half()), x)


def resnet50(batch, dtype):
    import torchvision

    dtype = getattr(torch, dtype)
    model = channels_last(torchvision.models.resnet50(weights=None).to(dtype))
    return inference(model, channels_last(torch.randn(batch, 3, 224, 224, device=DEVICE).to(dtype)))


def bert(batch):
    """The model of the transformers package."""
    from transformers import BertConfig, BertModel

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = BertModel(BertConfig(), add_pooling_layer=False)

        def forward(self, ids):
            return self.bert(ids).last_hidden_state

    return inference(Last().half(), torch.randint(0, 30000, (batch, 128), device=DEVICE))


# ---- training: forward, backward, plain gradient descent ----


def training(model, loss, dtype=None):
    model = channels_last(model.to(DEVICE).train())
    parameters = list(model.parameters())

    def runs(compiled):
        called = compiled(model)

        def step():
            for parameter in parameters:
                parameter.grad = None
            narrow = torch.autocast(DEVICE, dtype=dtype) if dtype else contextlib.nullcontext()
            with narrow:
                value = loss(called)
            value.backward()
            with torch.no_grad():
                torch._foreach_add_(parameters, [parameter.grad for parameter in parameters], alpha=-0.01)

        return step

    return runs


def alexnet_step():
    """The convolutional part of TensorFlow's benchmark, batch 128."""

    class AlexNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 64, 11, 4, padding=4)
            self.conv2 = nn.Conv2d(64, 192, 5, padding=2)
            self.conv3 = nn.Conv2d(192, 384, 3, padding=1)
            self.conv4 = nn.Conv2d(384, 256, 3, padding=1)
            self.conv5 = nn.Conv2d(256, 256, 3, padding=1)
            self.norm = nn.LocalResponseNorm(5, 5e-4, 0.75, 2.0)

        def forward(self, x):
            x = F.max_pool2d(self.norm(F.relu(self.conv1(x))), 3, 2)
            x = F.max_pool2d(self.norm(F.relu(self.conv2(x))), 3, 2)
            x = F.relu(self.conv5(F.relu(self.conv4(F.relu(self.conv3(x))))))
            return F.max_pool2d(x, 3, 2)

    x = channels_last(torch.randn(128 if ON_GPU else 1, 3, 224, 224, device=DEVICE))
    return training(AlexNet(), lambda model: model(x).sum())


def unet_step(is_narrow):
    """The network of the Chainer document, as zoo:unet572; batch 8."""

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList()
            before = 1
            for width in (64, 128, 256, 512, 1024):
                self.down.append(nn.ModuleList([nn.Conv2d(before, width, 3), nn.Conv2d(width, width, 3)]))
                before = width
            self.raise_, self.up = nn.ModuleList(), nn.ModuleList()
            for width, raised in ((512, 512), (256, 256), (128, 128), (64, 128)):
                self.raise_.append(nn.ConvTranspose2d(2 * width, raised, 2, 2))
                self.up.append(nn.ModuleList([nn.Conv2d(width + raised, width, 3), nn.Conv2d(width, width, 3)]))
            self.score = nn.Conv2d(64, 2, 1)

        def forward(self, x):
            skips = []
            for level, (first, second) in enumerate(self.down):
                x = F.relu(second(F.relu(first(x))))
                if level < 4:
                    skips.append(x)
                    x = F.max_pool2d(x, 2)
            for raised, (first, second) in zip(self.raise_, self.up):
                x = F.relu(raised(x))
                skip = skips.pop()
                cut, size = (skip.shape[2] - x.shape[2]) // 2, x.shape[2]
                x = torch.cat([skip[:, :, cut:cut + size, cut:cut + size], x], 1)
                x = F.relu(second(F.relu(first(x))))
            return self.score(x)

    batch = 8 if ON_GPU else 1
    x = torch.randn(batch, 1, 572, 572, device=DEVICE)
    target = torch.randint(0, 2, (batch, 388, 388), device=DEVICE)
    return training(UNet(), lambda model: F.cross_entropy(model(x).float(), target),
                    torch.bfloat16 if is_narrow else None)


# ---- requests ----


def compiled(model):
    return torch.compile(model, mode="reduce-overhead")


def plain(model):
    return model


def forget():
    torch._dynamo.reset()
    gc.collect()
    if ON_GPU:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def answer(work, only_prepare=False):
    maker, arguments, modes = WORKS[work]
    is_training = work.find(" step ") >= 0
    for mode in modes:
        if only_prepare and mode != "compile":
            continue
        forget()
        began = time.time()
        try:
            torch.manual_seed(0)
            run = globals()[maker](*arguments)(compiled if mode == "compile" else plain)
            with contextlib.nullcontext() if is_training else torch.inference_mode():
                for _ in range(2):
                    run()
                wait()
                if only_prepare:
                    continue
                if ON_GPU:
                    torch.cuda.reset_peak_memory_stats()
                times = times_of(recorded(run) if mode == "graph" else run, 20 if is_training else 30)
            row = {"work": work, "mode": mode, "ms": times[len(times) // 2], "least_ms": times[0]}
            if is_training and ON_GPU:
                row["peak_bytes"] = torch.cuda.max_memory_allocated()
            say(**row, seconds=round(time.time() - began, 1))
        except Exception as error:  # another mode may work
            say(work=work, mode=mode, error=f"{type(error).__name__}: {error}"[:300])
        finally:
            run = None


def main():
    global torch, nn, F
    words = sys.argv[1:]
    if words == ["list"]:
        print("\n".join(WORKS))
        return 0
    if not words or words[0] not in ("serve", "prepare"):
        print(__doc__)
        return 2
    import torch
    import torch.nn.functional as F
    from torch import nn

    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    if words[0] == "prepare":
        for work in words[1:]:
            answer(work, only_prepare=True)
        return 0
    about = {"torch": torch.__version__}
    if ON_GPU:
        about.update(device=torch.cuda.get_device_name(), cudnn=torch.backends.cudnn.version())
    say(ready=True, **about)
    for line in sys.stdin:
        work = line.strip()
        if work in WORKS:
            answer(work)
            forget()
        say(done=work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
