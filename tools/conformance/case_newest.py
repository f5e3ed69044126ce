"""Cases of ai.onnx that Debian's set of tests lacks. Expectations of operators that ONNX Runtime lacks are computed
here from their definitions.
"""
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
    # Bodies compute in the type of softmax: f32 for narrower operands.
    narrow = {name: value.astype(np.float16) for name, value in inputs.items()}
    exact = [value.astype(np.float32) for value in narrow.values()]
    exact = softmax(exact[0] @ np.repeat(exact[1], 2, 1).transpose(0, 1, 3, 2) / np.float32(math.sqrt(8)) + bias) * half @ np.repeat(exact[2], 2, 1)
    yield Case("flex_attention_narrow", model_of([node], narrow, {"y": TensorProto.FLOAT16}, preview=1), narrow,
               [exact.astype(np.float16)])
    # A body that declares the narrow type receives it, and builds a mask of positions from the scores' shape.
    stated = TensorProto.FLOAT16
    positions = [helper.make_node("Shape", ["x"], ["rows"], start=2, end=3), helper.make_node("Shape", ["x"], ["columns"], start=3),
                 helper.make_node("Squeeze", ["rows"], ["l"]), helper.make_node("Squeeze", ["columns"], ["s"]),
                 helper.make_node("Range", ["zero", "l", "one"], ["row"]), helper.make_node("Range", ["zero", "s", "one"], ["column"]),
                 helper.make_node("Unsqueeze", ["row", "one_axis"], ["below"]),
                 helper.make_node("GreaterOrEqual", ["below", "column"], ["is_seen"]),
                 helper.make_node("Where", ["is_seen", "x", "never"], ["z"])]
    constants = [helper.make_tensor(n, TensorProto.INT64, [], [v]) for n, v in (("zero", 0), ("one", 1))]
    constants += [helper.make_tensor("one_axis", TensorProto.INT64, [1], [1]), helper.make_tensor("never", stated, [], [-math.inf])]
    causal = helper.make_graph(positions, "causal", [helper.make_tensor_value_info("x", stated, ["B", "H", "L", "S"])],
                               [helper.make_tensor_value_info("z", stated, ["B", "H", "L", "S"])], constants)
    node = helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain="ai.onnx.preview", score_mod=causal)
    exact = [value.astype(np.float32) for value in narrow.values()]
    exact = (exact[0] @ np.repeat(exact[1], 2, 1).transpose(0, 1, 3, 2) / np.float32(math.sqrt(8))).astype(np.float16)
    exact = np.where(np.arange(3)[:, None] >= np.arange(5), exact.astype(np.float32), -np.inf)
    exact = softmax(exact) @ np.repeat(narrow["v"].astype(np.float32), 2, 1)
    yield Case("flex_attention_causal_narrow", model_of([node], narrow, {"y": TensorProto.FLOAT16}, preview=1), narrow,
               [exact.astype(np.float16)])
    # A body that captures an outer value.
    outer = helper.make_graph([helper.make_node("Add", ["x", "bias"], ["z"])], "score",
                              [helper.make_tensor_value_info("x", F, None)], [helper.make_tensor_value_info("z", F, None)])
    node = helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain="ai.onnx.preview", score_mod=outer)
    inputs = dict(inputs, bias=bias)
    yield Case("flex_attention_outer_value", model_of([node], inputs, {"y": F}, preview=1), inputs,
               [softmax(scores / np.float32(math.sqrt(8)) + bias) @ wide_v])


def windowed_attention(q, k, v, left=-1, right=-1, causal=False, past=0, counts=None, mask=None):
    """Attention of opset 25 by its definition: query i at position p = i + offset sees keys p - left to p + right."""
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = q @ k.transpose(0, 1, 3, 2) / np.float32(math.sqrt(q.shape[3]))
    offset = np.full(q.shape[0], past) if counts is None else counts - q.shape[2]
    position = np.arange(q.shape[2])[:, None] + offset[:, None, None]
    key = np.arange(k.shape[2])
    sees = np.ones((q.shape[0], q.shape[2], k.shape[2]), bool)
    if counts is not None:
        sees &= key < counts[:, None, None]
    if causal:
        sees &= key <= position
    if left >= 0:
        sees &= key >= position - left
    if right >= 0:
        sees &= key <= position + right
    if mask is not None:
        missing = k.shape[2] - mask.shape[-1]
        is_bool = mask.dtype == bool
        padding = [(0, 0)] * (mask.ndim - 1) + [(0, missing)]
        mask = np.pad(mask, padding, constant_values=False if is_bool else -np.inf)
        scores = np.where(mask, scores, -np.inf) if is_bool else scores + mask
    scores = np.where(sees[:, None], scores, -np.inf)
    high = scores.max(-1, keepdims=True)
    e = np.exp(scores - np.where(np.isneginf(high), 0, high))
    total = e.sum(-1, keepdims=True)
    return (e / np.where(total == 0, 1, total) @ v).astype(q.dtype)


def attention_windows():
    generator = rng("windows")

    def heads(count, length, size):
        return real(generator, 2, count, length, size)

    def case(name, inputs, names, attrs, expected, outputs=("y",)):
        node = helper.make_node("Attention", names, list(outputs), **attrs)
        return Case("attention_" + name, model_of([node], inputs, {o: F for o in outputs}, opset=25), inputs, expected)

    both = dict(left_window_size=1, right_window_size=2)
    q, k, v = heads(2, 4, 8), heads(2, 6, 8), heads(2, 6, 5)
    inputs = {"q": q, "k": k, "v": v}
    yield case("window_left", inputs, list(inputs), dict(left_window_size=2, is_causal=1),
               [windowed_attention(q, k, v, 2, causal=True)])
    yield case("window_both", inputs, list(inputs), both, [windowed_attention(q, k, v, 1, 2)])
    yield case("window_unlimited", inputs, list(inputs), dict(left_window_size=-1, right_window_size=-1), [windowed_attention(q, k, v)])
    past = {"past_key": heads(2, 3, 8), "past_value": heads(2, 3, 5)}
    k_all, v_all = np.concatenate([past["past_key"], k], 2), np.concatenate([past["past_value"], v], 2)
    yield case("window_past", {**inputs, **past}, list(inputs) + ["", *past], dict(left_window_size=2, is_causal=1),
               [windowed_attention(q, k_all, v_all, 2, causal=True, past=3), k_all, v_all], ("y", "keys", "values"))
    # An external cache with grouped heads, and masks of every rank.
    q, k, v = heads(4, 2, 8), heads(2, 7, 8), heads(2, 7, 5)
    counts = np.array([5, 7], np.int64)
    masks = {"rank2": generator.rand(2, 7) > 0.2, "rank2_short": real(generator, 1, 6), "rank3": real(generator, 4, 1, 7),
             "rank4": generator.rand(2, 1, 2, 7) > 0.2, "rank4_heads": real(generator, 2, 4, 2, 7)}
    for name, mask in masks.items():
        inputs = {"q": q, "k": k, "v": v, "mask": mask, "counts": counts}
        yield case(f"window_cache_{name}", inputs, ["q", "k", "v", "mask", "", "", "counts"], dict(left_window_size=2, is_causal=1),
                   [windowed_attention(q, k, v, 2, causal=True, counts=counts, mask=mask)])


def linear_attention():
    """A state [keys, values] per head that every token decays, corrects, updates and reads."""
    generator = rng("linear")
    batch, steps, query_heads, heads, size, width = 2, 5, 4, 2, 8, 6
    q, k = real(generator, batch, steps, query_heads * size), real(generator, batch, steps, heads * size)
    v = real(generator, batch, steps, heads * width)
    decay, beta = -generator.rand(batch, steps, heads).astype(np.float32), generator.rand(batch, steps, heads).astype(np.float32)
    for rule in ("linear", "gated_delta"):
        inputs = {"q": q, "k": k, "v": v}
        if rule == "gated_delta":
            inputs.update(decay=decay, beta=beta)
        state, rows = np.zeros((batch, heads, size, width), np.float32), []
        for t in range(steps):
            key, value = k[:, t].reshape(batch, heads, size, 1), v[:, t].reshape(batch, heads, 1, width)
            if rule == "gated_delta":
                state = state * np.exp(decay[:, t])[:, :, None, None]
                value = beta[:, t][:, :, None, None] * (value - key.transpose(0, 1, 3, 2) @ state)
            state = state + key @ value
            query = q[:, t].reshape(batch, heads, query_heads // heads, size) / np.float32(math.sqrt(size))
            rows.append((query @ state).reshape(batch, query_heads * width))
        names = ["q", "k", "v"] + (["", "decay", "beta"] if rule == "gated_delta" else [])
        node = helper.make_node("LinearAttention", names, ["y", "state"], q_num_heads=query_heads, kv_num_heads=heads, update_rule=rule)
        yield Case(f"linear_attention_{rule}", model_of([node], inputs, {"y": F, "state": F}, opset=27), inputs, [np.stack(rows, 1), state])


def causal_conv():
    generator = rng("causal")
    x, weight, bias, past = (real(generator, *shape) for shape in ((2, 3, 5), (3, 1, 4), (3,), (2, 3, 3)))
    for name, inputs in (("plain", {"x": x, "weight": weight}), ("past", {"x": x, "weight": weight, "bias": bias, "past": past})):
        padded = np.concatenate([inputs.get("past", np.zeros_like(past)), x], 2)
        y = sum(padded[:, :, tap:tap + 5] * weight[:, :, tap] for tap in range(4))
        if "bias" in inputs:
            y = y + bias[:, None]
            y = y / (1 + np.exp(-y))
        activation = {"activation": "silu"} if "bias" in inputs else {}
        node = helper.make_node("CausalConvWithState", list(inputs), ["y", "state"], **activation)
        yield Case(f"causal_conv_{name}", model_of([node], inputs, {"y": F, "state": F}, opset=27), inputs, [y, padded[:, :, -3:]])


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
    """The taken branch is known from a shape; the other one would be an error."""
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


def late_types():
    """Data-dependent ranks with known element types, which CastLike needs."""
    any_type = helper.make_empty_tensor_value_info
    count = np.array([4], np.int64)
    scalar = helper.make_graph([helper.make_node("Identity", ["half"], ["s"])], "scalar", [], [any_type("s")])
    vector = helper.make_graph([helper.make_node("Div", ["ones", "half"], ["v"])], "vector", [], [any_type("v")])
    nodes = [helper.make_node("Equal", ["count", "one"], ["is_one"]),
             helper.make_node("If", ["is_one"], ["step"], then_branch=scalar, else_branch=vector),
             helper.make_node("Range", ["zero", "end", "one"], ["whole"]), helper.make_node("Squeeze", ["count"], ["end"])]
    nodes = [nodes[0], nodes[1], nodes[3], nodes[2], helper.make_node("CastLike", ["whole", "step"], ["real"]),
             helper.make_node("Mul", ["real", "step"], ["y"])]
    constants = {"one": np.array(1, np.int64), "zero": np.array(0, np.int64), "half": np.array(0.5, np.float32),
                 "ones": np.array([1], np.float32)}
    yield Case("cast_like_late_branch", model_of(nodes, {"count": count}, {"y": F}, constants, opset=19), {"count": count},
               [np.arange(4, dtype=np.float32) * 2])
    # Squeeze drops the axes that are 1 at run time.
    x = real(rng("late"), 2, 1, 6)
    shape = np.array([2, 1, 6], np.int64)
    nodes = [helper.make_node("Expand", ["row", "shape"], ["wide"]), helper.make_node("Squeeze", ["wide"], ["narrow"]),
             helper.make_node("Split", ["narrow"], ["a", "b"], axis=1, num_outputs=2),
             helper.make_node("Less", ["a", "b"], ["is_less"]), helper.make_node("CastLike", ["is_less", "a"], ["one"]),
             helper.make_node("CastLike", ["a", "is_less"], ["truth"]), helper.make_node("Concat", ["one", "b"], ["y"], axis=1)]
    row = x[:1]
    wide = np.broadcast_to(row, (2, 1, 6))[:, 0]
    a, b = wide[:, :3], wide[:, 3:]
    yield Case("cast_like_late_rank", model_of(nodes, {"row": row, "shape": shape}, {"y": F, "truth": TensorProto.BOOL}, opset=19),
               {"row": row, "shape": shape}, [np.concatenate([(a < b).astype(np.float32), b], 1), a.astype(bool)])


def late_ranks_of_recurrence():
    """torch.squeeze(x, 0) becomes an If whose branches give two ranks; the recurrent operators fix the rank."""
    generator = rng("late recurrence")
    any_type = helper.make_empty_tensor_value_info
    squeezed = helper.make_graph([helper.make_node("Squeeze", ["x", "zero"], ["flat"])], "squeezed", [], [any_type("flat")])
    same = helper.make_graph([helper.make_node("Identity", ["x"], ["whole"])], "same", [], [any_type("whole")])
    first = [helper.make_node("Shape", ["x"], ["extents"]), helper.make_node("Gather", ["extents", "first"], ["count"]),
             helper.make_node("Equal", ["count", "one"], ["is_one"]),
             helper.make_node("If", ["is_one"], ["steps"], then_branch=squeezed, else_branch=same)]
    for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        x = real(generator, 1, 3, 2, 4)
        constants = {"zero": np.array([0], np.int64), "first": np.array(0, np.int64), "one": np.array(1, np.int64),
                     "w": real(generator, 1, gates * 5, 4, scale=0.4), "r": real(generator, 1, gates * 5, 5, scale=0.4)}
        node = helper.make_node(op, ["steps", "w", "r"], ["y", "h"], hidden_size=5)
        values = {"y": F, "h": F}
        model = model_of(first + [node], {"x": x}, values, constants)
        # With a fixed extent the importer would know the branch.
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
        yield Case(f"{op.lower()}_late_rank", model, {"x": x})


def late_zero_points():
    """Dynamic quantization: the zero point of the left operand is known only in the run."""
    g = rng("late zero points")

    def case(name, op, x, weights, zero, **attrs):
        constants = {"w": weights, **({} if zero is None else {"wz": zero})}
        nodes = [helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
                 helper.make_node(op, ["q", "w", "z"] + ([] if zero is None else ["wz"]), ["sums"], **attrs),
                 helper.make_node("Cast", ["sums"], ["real"], to=F), helper.make_node("Mul", ["real", "s"], ["y"])]
        return Case("late_zero_point_" + name, model_of(nodes, {"x": x}, {"y": F, "z": TensorProto.UINT8}, constants), {"x": x})

    def bytes_of(*shape):
        return g.randint(0, 256, shape).astype(np.uint8)

    def signed(*shape):
        return g.randint(-127, 128, shape).astype(np.int8)

    zero = np.array(113, np.uint8)
    yield case("matmul", "MatMulInteger", real(g, 2, 3, 16), bytes_of(16, 8), zero)
    yield case("matmul_row", "MatMulInteger", real(g, 16), signed(16, 8), None)
    yield case("matmul_columns", "MatMulInteger", real(g, 3, 16), signed(16, 8), signed(8))
    yield case("conv", "ConvInteger", real(g, 1, 4, 7, 6), bytes_of(8, 4, 3, 3), zero, pads=[1, 0, 2, 1], strides=[2, 1], dilations=[1, 2])
    yield case("conv_groups", "ConvInteger", real(g, 1, 4, 7, 6), signed(8, 2, 3, 3), np.array(0, np.int8), pads=[1, 1, 1, 1], group=2)
    yield case("conv_groups_zero", "ConvInteger", real(g, 1, 4, 7, 6), bytes_of(8, 2, 3, 3), zero, pads=[1, 1, 1, 1], group=2)
    yield case("conv_same", "ConvInteger", real(g, 1, 4, 9), bytes_of(6, 4, 3), zero, auto_pad="SAME_UPPER", strides=[2])


def geglu():
    generator = rng("geglu")
    a, b = real(generator, 3, 4), real(generator, 3, 4)
    exact = 0.5 * a * (1 + np.vectorize(math.erf)(a / math.sqrt(2)))
    near = 0.5 * a * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a ** 3)))
    for name, gate, attrs in (("geglu", exact, {}), ("geglu_tanh", near, {"approximate": "tanh"})):
        node = helper.make_node("GeGLU", ["a", "b"], ["y"], **attrs)
        yield Case(name, model_of([node], {"a": a, "b": b}, {"y": F}, opset=28), {"a": a, "b": b}, [(gate * b).astype(np.float32)])


def images():
    """Encoded and decoded by Pillow: squares of random colours, as in ONNX's own tests."""
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
    for family in (swiglu, geglu, flex_attention, attention_windows, linear_attention, causal_conv, inverse_dft,
                   known_branch, late_types, late_ranks_of_recurrence, late_zero_points, images):
        yield from family()
