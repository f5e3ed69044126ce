"""Tensors in a GPU's memory, on a machine with a GPU: tools/python tests/python/gpu_tensors.py [TARGET]

Inputs and outputs are exchanged by DLPack, accessed in place, and compared with the processor's results. Uses PyTorch
if it is installed, otherwise Tenon's own arrays.
"""

import ctypes
import sys

import numpy as np

import tenon
from tenon._device import DeviceArray, driver

MODEL = b"""graph (x: f32[N, 64]) {
  w = constant f32[64, 32] uniform(seed = 1, low = -1.0, high = 1.0)
  m = matmul(x, w)
  y = relu(m)
  return y
}
"""
passed = failed = 0


def expect(what, is_so, detail=""):
    global passed, failed
    passed, failed = passed + bool(is_so), failed + (not is_so)
    print("  " if is_so else "failed: ", what, "" if is_so else detail, sep="")


def to_gpu(array):
    made = DeviceArray.empty(array.shape, "f32")
    driver().here("cuMemcpyHtoD_v2", ctypes.c_uint64(made.pointer), ctypes.c_void_p(array.ctypes.data),
                  ctypes.c_size_t(array.nbytes))
    return made


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    model = tenon.load(MODEL)
    host, gpu = model.compile(), model.compile(target=target)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(8, 64)).astype(np.float32)
    wanted = host(x)
    near = lambda y, w=wanted: np.allclose(y, w, rtol=1e-3, atol=1e-3)
    expect("host memory in, host memory out", near(gpu(x)))
    on_gpu = to_gpu(x)
    y = gpu(on_gpu)
    expect("a result of tensors on the GPU stays there", isinstance(y, DeviceArray), y)
    expect("it is what the processor gives", near(y.numpy()))
    out = DeviceArray.empty((8, 32), "f32")
    for k in range(4):  # the third run is captured, the fourth replays the graph
        given = gpu(on_gpu, out=out)
        expect(f"written to the memory that was given, run {k}", given is out and near(out.numpy()))
    for k in range(4):  # memory that changes from run to run
        other = rng.normal(size=(8, 64)).astype(np.float32)
        expect(f"other memory, run {k}", near(gpu(to_gpu(other)).numpy(), host(other)))
    expect("the first memory again", near(gpu(on_gpu, out=out).numpy()))
    mixed = np.empty((8, 32), np.float32)
    gpu(on_gpu, out=mixed)
    expect("from the GPU to host memory", near(mixed))
    gpu(x, out=out)
    expect("from host memory to the GPU", near(out.numpy()))
    shifted = to_gpu(np.concatenate([np.zeros(1, np.float32), x.ravel()]))
    part = DeviceArray(shifted.pointer + 4, (8, 64), "f32", 0, shifted)
    expect("memory that lies unevenly", near(gpu(part).numpy()))
    try:
        host(on_gpu)
        expect("a program of the processor refuses them", False)
    except tenon.UsageError as error:
        expect("a program of the processor refuses them", "cuda" in str(error), error)
    try:
        import torch
    except ImportError:
        print("  torch is not installed: its tensors were not tried")
    else:
        tensor = torch.from_numpy(x).cuda()
        scaled = torch.empty_like(tensor)
        with torch.cuda.stream(torch.cuda.Stream()):  # producer still running when the run starts
            for _ in range(200):
                scaled = tensor * 0.5 + scaled * 0
            expect("a stream of the maker's is waited for", near(gpu(scaled * 2).numpy()))
        result = torch.from_dlpack(gpu(tensor))
        expect("torch shows the result", result.is_cuda and near(result.cpu().numpy()))
        filled = torch.empty(8, 32, device="cuda")
        gpu(tensor, out=filled)
        expect("torch's memory is written to", near(filled.cpu().numpy()))
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
