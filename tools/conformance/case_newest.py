"""What ai.onnx has beyond Debian's set of tests. Expectations are computed here, by the definitions, where ONNX
Runtime does not have an operator."""
import math

import numpy as np
import onnx
from onnx import TensorProto, helper

from case import Case, model_of, real, rng

F = TensorProto.FLOAT


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def swiglu():
    generator = rng("swiglu")
    a, b = real(generator, 3, 4), real(generator, 3, 4)
    node = helper.make_node("SwiGLU", ["a", "b"], ["y"], alpha=1.5)
    yield Case("swiglu", model_of([node], {"a": a, "b": b}, {"y": F}, opset=28), {"a": a, "b": b},
               [a / (1 + np.exp(-1.5 * a)) * b])


def body(name, node, constant):
    value = helper.make_tensor_value_info("x", F, ["B", "H", "L", "S"])
    result = helper.make_tensor_value_info("z", F, ["B", "H", "L", "S"])
    return helper.make_graph([node], name, [value], [result], [onnx.numpy_helper.from_array(constant, "c")])


def flex_attention():
    generator = rng("flex")
    q, k, v = real(generator, 2, 4, 3, 8), real(generator, 2, 2, 5, 8), real(generator, 2, 2, 5, 6)
    inputs = {"q": q, "k": k, "v": v}
    wide_k, wide_v = np.repeat(k, 2, 1), np.repeat(v, 2, 1)
    scores = q @ wide_k.transpose(0, 1, 3, 2)
    plain = helper.make_node("FlexAttention", list(inputs), ["y"], domain="ai.onnx.preview", scale=0.5)
    yield Case("flex_attention", model_of([plain], inputs, {"y": F}, preview=1), inputs,
               [softmax(scores * np.float32(0.5)) @ wide_v])
    bias = real(generator, 3, 5)
    half = np.array(0.5, np.float32)
    node = helper.make_node("FlexAttention", list(inputs), ["y"], domain="ai.onnx.preview",
                            score_mod=body("score", helper.make_node("Add", ["x", "c"], ["z"]), bias),
                            prob_mod=body("share", helper.make_node("Mul", ["x", "c"], ["z"]), half))
    yield Case("flex_attention_bodies", model_of([node], inputs, {"y": F}, preview=1), inputs,
               [softmax(scores / np.float32(math.sqrt(8)) + bias) * half @ wide_v])
    # A body that reads a value from outside.
    outer = helper.make_graph([helper.make_node("Add", ["x", "bias"], ["z"])], "score",
                              [helper.make_tensor_value_info("x", F, None)], [helper.make_tensor_value_info("z", F, None)])
    node = helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain="ai.onnx.preview", score_mod=outer)
    inputs = dict(inputs, bias=bias)
    yield Case("flex_attention_outer_value", model_of([node], inputs, {"y": F}, preview=1), inputs,
               [softmax(scores / np.float32(math.sqrt(8)) + bias) @ wide_v])


def inverse_dft():
    generator = rng("dft")
    for length in (8, 7):
        signal = real(generator, 2, length, 3)
        half = np.fft.rfft(signal, axis=1)
        x = np.stack([half.real, half.imag], -1).astype(np.float32)
        names, constants = ["x"], {}
        if length == 7:
            names, constants = ["x", "length"], {"length": np.array(length, np.int64)}
        node = helper.make_node("DFT", names + [""] * (2 - len(names)) + ["axis"], ["y"], inverse=1, onesided=1)
        constants["axis"] = np.array(1, np.int64)
        yield Case(f"dft_inverse_onesided_{length}", model_of([node], {"x": x}, {"y": F}, constants, opset=20), {"x": x},
                   [signal[..., None]])
        old = helper.make_node("DFT", names, ["y"], inverse=1, onesided=1, axis=1)
        yield Case(f"dft_inverse_onesided_{length}_opset_17",
                   model_of([old], {"x": x}, {"y": F}, {k: v for k, v in constants.items() if k == "length"}), {"x": x},
                   [signal[..., None]])


def known_branch():
    """Which branch is taken is known from a shape; the other one would be an error."""
    size = np.array([2, 3, 4, 5, 6], np.int64)
    theta = real(rng("branch"), 2, 3, 4)

    def graph(name, nodes, results):
        return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(r, TensorProto.INT64, None) for r in results])

    flat = graph("flat", [helper.make_node("Split", ["size"], ["n2", "c2", "h2", "w2"], axis=0, num_outputs=4)],
                 ["n2", "c2", "h2", "w2"])
    deep = graph("deep", [helper.make_node("Split", ["size"], ["n3", "c3", "d3", "h3", "w3"], axis=0, num_outputs=5)],
                 ["n3", "c3", "h3", "w3"])
    same = helper.make_graph([helper.make_node("Identity", ["theta"], ["t3"])], "same", [], [helper.make_empty_tensor_value_info("t3")])
    padded = helper.make_graph([helper.make_node("Concat", ["theta", "theta"], ["t2"], axis=1)], "pad", [],
                               [helper.make_empty_tensor_value_info("t2")])
    nodes = [helper.make_node("Size", ["size"], ["rank"]), helper.make_node("Equal", ["rank", "four"], ["is_flat"]),
             helper.make_node("If", ["is_flat"], ["n", "c", "h", "w"], then_branch=flat, else_branch=deep),
             helper.make_node("If", ["is_flat"], ["t"], then_branch=padded, else_branch=same),
             helper.make_node("CastLike", ["w", "t"], ["width"]), helper.make_node("Mul", ["t", "width"], ["y"])]
    constants = {"four": np.array(4, np.int64)}
    inputs = {"size": size, "theta": theta}
    yield Case("if_known_branch", model_of(nodes, inputs, {"y": F, "h": TensorProto.INT64}, constants, opset=18), inputs,
               [theta * 6, np.array([5], np.int64)])


def images():
    """Encoded by Pillow, and decoded by it too: squares of random colours, as in ONNX's own tests."""
    import io

    import PIL.Image

    generator = rng("images")
    colours = generator.randint(0, 256, (6, 6, 3)).astype(np.uint8)
    picture = PIL.Image.fromarray(np.kron(colours, np.ones((5, 5, 1), np.uint8))[:29, :27])
    formats = {"jpeg": {}, "jpeg_fine": {"quality": 95, "subsampling": 0}, "jpeg_progressive": {"progressive": True},
               "png": {}, "png_palette": {}, "png_grey": {}, "tiff": {}, "tiff_lzw": {"compression": "tiff_lzw"},
               "tiff_deflate": {"compression": "tiff_deflate"}, "webp": {}, "webp_lossless": {"lossless": True},
               "jpeg2000": {}, "bmp": {}, "ppm": {}}
    for name, options in formats.items():
        image = picture
        if name == "png_palette":
            image = picture.quantize(16)
        if name == "png_grey":
            image = picture.convert("L")
        file = io.BytesIO()
        image.save(file, format=name.split("_")[0], **options)
        data = np.frombuffer(file.getvalue(), np.uint8)
        decoded = PIL.Image.open(io.BytesIO(file.getvalue())).convert("RGB")
        for layout in ("RGB", "BGR", "Grayscale") if name == "jpeg" else ("RGB",):
            pixels = np.array(decoded)
            if layout == "BGR":
                pixels = pixels[:, :, ::-1]
            if layout == "Grayscale":
                pixels = np.array(decoded.convert("L"))[:, :, None]
            node = helper.make_node("ImageDecoder", ["data"], ["y"], pixel_format=layout)
            suffix = "" if layout == "RGB" else "_" + layout.lower()
            yield Case(f"image_{name}{suffix}", model_of([node], {"data": data}, {"y": TensorProto.UINT8}, opset=20),
                       {"data": data}, [np.ascontiguousarray(pixels)])


def cases():
    for family in (swiglu, flex_attention, inverse_dft, known_branch, images):
        yield from family()
