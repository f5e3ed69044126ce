"""Cases of com.microsoft."""
import numpy as np
from onnx import TensorProto

from case import microsoft_case, real, rng

F, I32, U8, I8 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.UINT8, TensorProto.INT8


def gelu(x):
    from math import erf
    return x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2))).astype(np.float32)


def products():
    g = rng("microsoft products")
    a, b = real(g, 2, 3, 4), real(g, 2, 5, 4)
    yield microsoft_case("fused_matmul", "FusedMatMul", {"a": a, "b": b}, transB=1, alpha=0.5)
    yield microsoft_case("fused_matmul_batch", "FusedMatMul", {"a": real(g, 3, 2, 4), "b": real(g, 4, 2, 5)}, transBatchA=1, transBatchB=1)
    x, w, z = real(g, 1, 3, 6, 6), real(g, 4, 3, 3, 3), real(g, 1, 4, 6, 6)
    bias = real(g, 4)
    yield microsoft_case("fused_conv_relu", "FusedConv", {"x": x, "w": w, "b": bias}, activation="Relu", pads=[1, 1, 1, 1], kernel_shape=[3, 3])
    yield microsoft_case("fused_conv_sum", "FusedConv", {"x": x, "w": w, "b": bias, "z": z}, activation="Relu", pads=[1, 1, 1, 1])
    yield microsoft_case("fused_conv_clip", "FusedConv", {"x": x, "w": w}, activation="Clip", activation_params=[0.0, 1.5], kernel_shape=[3, 3])
    yield microsoft_case("fused_conv_leaky", "FusedConv", {"x": x, "w": w}, activation="LeakyRelu", activation_params=[0.3], kernel_shape=[3, 3])
    yield microsoft_case("fused_gemm", "FusedGemm", {"a": real(g, 3, 4), "b": real(g, 5, 4), "c": real(g, 5)}, transB=1,
                         alpha=0.5, beta=2.0, activation="LeakyRelu", activation_alpha=0.2)
    x = real(g, 2, 3, 8)
    yield microsoft_case("gelu", "Gelu", {"x": x})
    yield microsoft_case("fast_gelu", "FastGelu", {"x": x, "b": real(g, 8)})
    yield microsoft_case("bias_gelu", "BiasGelu", {"x": x, "b": real(g, 8)})
    yield microsoft_case("quick_gelu", "QuickGelu", {"x": x}, alpha=1.5)
    bias = real(g, 8)
    sum_ = x + bias
    yield microsoft_case("bias_split_gelu", "BiasSplitGelu", {"x": x, "b": bias}, expected=[sum_[..., :4] * gelu(sum_[..., 4:])])


def norms():
    g = rng("microsoft norms")
    x, skip = real(g, 2, 3, 8), real(g, 2, 3, 8)
    gamma, beta, bias = real(g, 8), real(g, 8), real(g, 8)
    yield microsoft_case("skip_layer_norm", "SkipLayerNormalization", {"x": x, "skip": skip, "gamma": gamma, "beta": beta}, epsilon=1e-5)
    yield _skip_with_sum(x, skip, gamma, beta, bias)
    yield microsoft_case("skip_layer_norm_broadcast", "SkipLayerNormalization", {"x": x, "skip": skip[0], "gamma": gamma}, epsilon=1e-5)
    yield _skip_rms(x, skip, gamma, bias)
    ids, segments = g.randint(0, 6, (2, 4)).astype(np.int32), g.randint(0, 2, (2, 4)).astype(np.int32)
    mask = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)
    tables = {"word": real(g, 6, 8), "position": real(g, 5, 8), "segment": real(g, 2, 8), "gamma": gamma, "beta": beta}
    yield microsoft_case("embed_layer_norm", "EmbedLayerNormalization", {"ids": ids, "segments": segments, "mask": mask},
                         {"y": F, "counts": I32}, tables, names=["ids", "segments"] + list(tables) + ["mask"], epsilon=1e-5)
    yield microsoft_case("embed_layer_norm_positions", "EmbedLayerNormalization",
                         {"ids": ids, "at": np.array([[3, 2, 1, 0]], np.int32)}, {"y": F, "counts": I32, "sum": F},
                         {k: v for k, v in tables.items() if k != "segment"},
                         names=["ids", "", "word", "position", "", "gamma", "beta", "", "at"], epsilon=1e-5)
    image = real(g, 2, 4, 4, 8)
    group = image.reshape(2, 16, 2, 4)
    mean, deviation = group.mean((1, 3), keepdims=True), np.sqrt(group.var((1, 3), keepdims=True) + 1e-5)
    normal = ((group - mean) / deviation).reshape(image.shape) * gamma + beta
    yield microsoft_case("group_norm", "GroupNorm", {"x": image, "gamma": gamma, "beta": beta}, groups=2, activation=1,
                         channels_last=1, epsilon=1e-5, expected=[(normal / (1 + np.exp(-normal))).astype(np.float32)])


def _several(name, op, inputs, outputs, **attrs):
    """Outputs by name, "" for an omitted one."""
    from onnx import helper
    from case import Case, model_of
    node = helper.make_node(op, list(inputs), outputs, domain="com.microsoft", **attrs)
    return Case("microsoft_" + name, model_of([node], inputs, {o: F for o in outputs if o}, microsoft=1), inputs)


def _skip_with_sum(x, skip, gamma, beta, bias):
    return _several("skip_layer_norm_sum", "SkipLayerNormalization",
                    {"x": x, "skip": skip, "gamma": gamma, "beta": beta, "bias": bias}, ["y", "", "", "sum"], epsilon=1e-5)


def _skip_rms(x, skip, gamma, bias):
    return _several("skip_rms_norm", "SkipSimplifiedLayerNormalization", {"x": x, "skip": skip, "gamma": gamma, "bias": bias},
                    ["y", "", "", "sum"], epsilon=1e-5)


def attention():
    g = rng("microsoft attention")
    x, weights, bias = real(g, 2, 3, 8), real(g, 8, 24, scale=0.4), real(g, 24)
    base = {"x": x, "w": weights, "b": bias}
    yield microsoft_case("attention", "Attention", base, num_heads=2)
    yield microsoft_case("attention_causal", "Attention", base, num_heads=2, unidirectional=1)
    yield microsoft_case("attention_lengths", "Attention", dict(base, m=np.array([2, 3], np.int32)), num_heads=2)
    yield microsoft_case("attention_lengths_causal", "Attention", dict(base, m=np.array([2, 3], np.int32)), num_heads=2, unidirectional=1)
    yield microsoft_case("attention_ends_and_starts", "Attention", dict(base, m=np.array([2, 3, 0, 1], np.int32)), num_heads=2)
    yield microsoft_case("attention_mask", "Attention", dict(base, m=np.array([[1, 1, 0], [0, 1, 1]], np.int32)), num_heads=2)
    yield microsoft_case("attention_mask_by_query", "Attention", dict(base, m=(g.rand(2, 3, 3) < 0.7).astype(np.int32)), num_heads=2)
    past = real(g, 2, 2, 2, 4, 4)
    yield microsoft_case("attention_past", "Attention", dict(base, past=past), {"y": F, "present": F},
                         names=["x", "w", "b", "", "past"], num_heads=2, unidirectional=1)
    yield microsoft_case("attention_bias", "Attention", dict(base, extra=real(g, 1, 2, 3, 3)),
                         names=["x", "w", "b", "", "", "extra"], num_heads=2, scale=0.3)
    yield microsoft_case("attention_sizes", "Attention", {"x": x, "w": real(g, 8, 22, scale=0.4), "b": real(g, 22)}, num_heads=2,
                         qkv_hidden_sizes=[8, 8, 6])
    q, k, v = real(g, 2, 3, 8), real(g, 2, 5, 8), real(g, 2, 5, 8)
    heads = {"q": q, "k": k, "v": v}
    yield microsoft_case("multi_head_attention", "MultiHeadAttention", heads, num_heads=2)
    yield microsoft_case("multi_head_attention_bias", "MultiHeadAttention", dict(heads, b=real(g, 24)), num_heads=2)
    yield microsoft_case("multi_head_attention_mask", "MultiHeadAttention",
                         dict(heads, m=np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], np.int32)),
                         names=["q", "k", "v", "", "m"], num_heads=2)
    yield microsoft_case("multi_head_attention_past", "MultiHeadAttention",
                         {"q": q, "k": k[:, :3], "v": v[:, :3], "pk": real(g, 2, 2, 4, 4), "pv": real(g, 2, 2, 4, 4)},
                         {"y": F, "present_k": F, "present_v": F}, names=["q", "k", "v", "", "", "", "pk", "pv"], num_heads=2,
                         unidirectional=1)
    yield microsoft_case("multi_head_attention_cross", "MultiHeadAttention",
                         {"q": q, "k": real(g, 2, 2, 6, 4), "v": real(g, 2, 2, 6, 4)}, num_heads=2)


def grouped():
    g = rng("microsoft grouped")
    angles = np.outer(np.arange(16), 1 / 10 ** np.arange(0, 8)).astype(np.float32)
    caches = {"cos": np.cos(angles), "sin": np.sin(angles)}
    outputs = {"y": F, "present_k": F, "present_v": F}
    q, k, v = real(g, 2, 3, 64), real(g, 2, 3, 32), real(g, 2, 3, 32)
    prompt = {"q": q, "k": k, "v": v, "last": np.array([2, 2], np.int32), "total": np.array(3, np.int32)}
    names = ["q", "k", "v", "", "", "last", "total"]
    total = {"total": prompt.pop("total")}
    yield microsoft_case("grouped_attention_prompt", "GroupQueryAttention", prompt, outputs, total, names, num_heads=4, kv_num_heads=2)
    yield microsoft_case("grouped_attention_rotary", "GroupQueryAttention", dict(prompt, **caches), outputs, total,
                         names + ["cos", "sin"], num_heads=4, kv_num_heads=2, do_rotary=1)
    yield microsoft_case("grouped_attention_window", "GroupQueryAttention", prompt, outputs, total, names, num_heads=4, kv_num_heads=2,
                         local_window_size=2, softcap=1.5)
    more = rng("microsoft grouped sinks")
    sinks = dict(prompt, sink=real(more, 4))
    yield microsoft_case("grouped_attention_sink", "GroupQueryAttention", sinks, outputs, total,
                         names + ["", "", "", "", "sink"], num_heads=4, kv_num_heads=2)
    yield microsoft_case("grouped_attention_sink_window", "GroupQueryAttention", sinks, outputs, total,
                         names + ["", "", "", "", "sink"], num_heads=4, kv_num_heads=2, local_window_size=2, softcap=1.5)
    yield microsoft_case("grouped_attention_smooth", "GroupQueryAttention", prompt, outputs, total, names, num_heads=4,
                         kv_num_heads=2, smooth_softmax=1)
    step = {"q": real(g, 2, 1, 64), "k": real(g, 2, 1, 32), "v": real(g, 2, 1, 32), "pk": real(g, 2, 2, 4, 16), "pv": real(g, 2, 2, 4, 16),
            "last": np.array([4, 4], np.int32)}
    five = {"total": np.array(5, np.int32)}
    names = ["q", "k", "v", "pk", "pv", "last", "total"]
    yield microsoft_case("grouped_attention_step", "GroupQueryAttention", dict(step, **caches), outputs, five, names + ["cos", "sin"],
                         num_heads=4, kv_num_heads=2, do_rotary=1, rotary_interleaved=1)
    yield microsoft_case("grouped_attention_sink_step", "GroupQueryAttention", dict(step, **caches, sink=sinks["sink"]), outputs, five,
                         names + ["cos", "sin", "", "", "sink"], num_heads=4, kv_num_heads=2, do_rotary=1)
    bias = dict(step, bias=real(more, 2, 4, 1, 5))
    yield microsoft_case("grouped_attention_bias", "GroupQueryAttention", bias, outputs, five, names + ["", "", "", "bias"],
                         num_heads=4, kv_num_heads=2)
    packed = {"q": real(g, 2, 1, 128), "pk": step["pk"], "pv": step["pv"], "last": step["last"]}
    yield microsoft_case("grouped_attention_packed", "GroupQueryAttention", dict(packed, **caches), outputs, five,
                         ["q", "", "", "pk", "pv", "last", "total", "cos", "sin"], num_heads=4, kv_num_heads=2, do_rotary=1)
    x = real(g, 2, 3, 32)
    at = np.array([[0, 1, 2], [3, 4, 5]], np.int64)
    for name, interleaved in (("halves", 0), ("pairs", 1)):
        yield microsoft_case(f"rotary_embedding_{name}", "RotaryEmbedding", dict({"x": x, "at": at}, **caches), interleaved=interleaved)
    yield microsoft_case("rotary_embedding_offset", "RotaryEmbedding", dict({"x": real(g, 2, 2, 3, 16), "at": np.array([2], np.int64)}, **caches))


def quantized_lstm():
    """DynamicQuantizeLSTM: weights transposed, a scale per direction or per column."""
    g = rng("microsoft quantized lstm")
    for name, direction, count, columns in (("", "forward", 1, ()), ("_bidirectional", "bidirectional", 2, ()),
                                            ("_columns", "reverse", 1, (20,))):
        def signed(*shape):
            return g.randint(-127, 128, shape).astype(np.int8)

        scales = [(0.003 + 0.002 * g.rand(count, *columns)).astype(np.float32) for _ in range(2)]
        zeros = [np.zeros((count, *columns), np.int8)] * 2
        constants = {"w": signed(count, 4, 20), "r": signed(count, 5, 20), "b": real(g, count, 40, scale=0.3),
                     "ws": scales[0], "wz": zeros[0], "rs": scales[1], "rz": zeros[1]}
        yield microsoft_case("dynamic_quantize_lstm" + name, "DynamicQuantizeLSTM", {"x": real(g, 3, 1, 4)}, {"y": F, "h": F, "c": F},
                             constants, ["x", "w", "r", "b", "", "", "", "", "ws", "wz", "rs", "rz"], direction=direction, hidden_size=5)


def quantized():
    g = rng("microsoft quantized")

    def byte(*shape):
        return g.randint(0, 256, shape).astype(np.uint8)

    def signed(*shape):
        return g.randint(-127, 128, shape).astype(np.int8)

    def scale(value):
        return np.array(value, np.float32)

    def zero(value, dtype=np.uint8):
        return np.array(value, dtype)

    a, b = byte(2, 3, 4), byte(2, 3, 4)
    three = {"as": scale(0.043), "az": zero(120)}, {"bs": scale(0.031), "bz": zero(90)}, {"ys": scale(0.0713), "yz": zero(110)}
    constants = {**three[0], **three[1], **three[2]}
    for op in ("QLinearAdd", "QLinearMul"):
        yield microsoft_case(op.lower(), op, {"a": a, "b": b}, {"y": U8}, constants, ["a", "as", "az", "b", "bs", "bz", "ys", "yz"])
    one = {"as": scale(0.043), "az": zero(120), "ys": scale(0.0391), "yz": zero(17)}
    names = ["a", "as", "az", "ys", "yz"]
    yield microsoft_case("qlinear_sigmoid", "QLinearSigmoid", {"a": a}, {"y": U8}, dict(one, ys=scale(1 / 256), yz=zero(0)), names)
    yield microsoft_case("qlinear_leaky_relu", "QLinearLeakyRelu", {"a": a}, {"y": U8}, one, names, alpha=0.1)
    yield microsoft_case("qlinear_softmax", "QLinearSoftmax", {"a": a}, {"y": U8}, dict(one, ys=scale(1 / 256), yz=zero(0)), names, axis=-1, opset=13)
    image = byte(1, 3, 6, 6)
    yield microsoft_case("qlinear_average_pool", "QLinearAveragePool", {"a": image}, {"y": U8}, one, names, kernel_shape=[3, 3], strides=[2, 2])
    yield microsoft_case("qlinear_average_pool_last", "QLinearAveragePool", {"a": byte(1, 6, 6, 3)}, {"y": U8}, one, names,
                         kernel_shape=[2, 2], strides=[2, 2], channels_last=1)
    yield microsoft_case("qlinear_global_average_pool", "QLinearGlobalAveragePool", {"a": image}, {"y": U8}, one, names)
    yield microsoft_case("qlinear_concat", "QLinearConcat", {"a": a, "b": b}, {"y": U8}, constants,
                         ["ys", "yz", "a", "as", "az", "b", "bs", "bz"], axis=1)
    condition = g.rand(2, 3, 4) < 0.5
    yield microsoft_case("qlinear_where", "QLinearWhere", {"c": condition, "a": a, "b": b}, {"y": U8}, constants,
                         ["c", "a", "as", "az", "b", "bs", "bz", "ys", "yz"])
    left, right = byte(3, 8), signed(5, 8)
    sizes = {"as": scale(0.02), "az": zero(128), "bs": scale(0.01), "bz": zero(0, np.int8)}
    yield microsoft_case("qgemm", "QGemm", {"a": left}, {"y": U8}, dict(sizes, b=right, c=g.randint(-500, 500, 5).astype(np.int32), ys=scale(0.05), yz=zero(100)),
                         ["a", "as", "az", "b", "bs", "bz", "c", "ys", "yz"], transB=1)
    yield microsoft_case("qgemm_real", "QGemm", {"a": left}, {"y": F}, dict(sizes, b=right), ["a", "as", "az", "b", "bs", "bz"], transB=1)
    flat = signed(8, 5)
    yield microsoft_case("matmul_integer_to_float", "MatMulIntegerToFloat", {"a": left}, {"y": F},
                         dict(sizes, b=flat, c=real(g, 5)), ["a", "b", "as", "bs", "az", "bz", "c"])
    yield microsoft_case("dynamic_quantize_matmul", "DynamicQuantizeMatMul", {"a": real(g, 3, 8)}, {"y": F},
                         {"b": flat, "bs": scale(0.01), "bz": zero(3, np.int8), "c": real(g, 5)}, ["a", "b", "bs", "bz", "c"])
    yield from quantized_lstm()
    yield microsoft_case("qattention", "QAttention", {"x": byte(2, 3, 8), "m": np.array([2, 3], np.int32)}, {"y": F},
                         {"w": signed(8, 24), "b": real(g, 24), "xs": scale(0.02), "ws": scale(0.01), "xz": zero(128), "wz": zero(0, np.int8)},
                         ["x", "w", "b", "xs", "ws", "m", "xz", "wz"], num_heads=2)
    for bits, block, k in ((4, 16, 32), (4, 32, 48), (8, 16, 32)):
        blocks = (k + block - 1) // block
        packed, scales = byte(6, blocks, block * bits // 8), np.abs(real(g, 6 * blocks, scale=0.05))
        yield microsoft_case(f"matmul_nbits_{bits}_{block}_{k}", "MatMulNBits", {"a": real(g, 2, 3, k)}, {"y": F},
                             {"b": packed, "s": scales}, K=k, N=6, bits=bits, block_size=block)
    points = byte(6 * 2)
    yield microsoft_case("matmul_nbits_zero_points", "MatMulNBits", {"a": real(g, 3, 48)}, {"y": F},
                         {"b": byte(6, 3, 8), "s": np.abs(real(g, 18, scale=0.05)), "z": points}, K=48, N=6, bits=4, block_size=16)


def cases():
    for family in (products, norms, attention, grouped, quantized):
        yield from family()
