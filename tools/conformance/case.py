"""One model of a few nodes with its inputs; the case's name seeds the random numbers."""
import dataclasses
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper

ELEMENTS = {"float32": TensorProto.FLOAT, "float64": TensorProto.DOUBLE, "int64": TensorProto.INT64,
            "int32": TensorProto.INT32, "uint8": TensorProto.UINT8, "int8": TensorProto.INT8,
            "bool": TensorProto.BOOL, "float16": TensorProto.FLOAT16, "object": TensorProto.STRING,
            "int16": TensorProto.INT16}


@dataclasses.dataclass
class Case:
    name: str
    model: object
    inputs: dict
    expected: list = None


def rng(name):
    return np.random.RandomState(zlib.crc32(name.encode()) & 0x7FFFFFFF)


def real(generator, *shape, scale=1.0, dtype=np.float32):
    return (generator.standard_normal(shape) * scale).astype(dtype)


def model_of(nodes, inputs, outputs, initializers=(), opset=17, ml=None, microsoft=None, preview=None, functions=()):
    values = [helper.make_tensor_value_info(n, ELEMENTS[str(v.dtype)], v.shape) for n, v in inputs.items()]
    results = [helper.make_empty_tensor_value_info(n) if t is None else helper.make_tensor_value_info(n, t, None)
               for n, t in outputs.items()]
    constants = [onnx.numpy_helper.from_array(v, n) for n, v in dict(initializers).items()]
    graph = helper.make_graph(nodes, "g", values, results, constants)
    imports = [helper.make_opsetid("", opset)]
    for domain, version in (("ai.onnx.ml", ml), ("com.microsoft", microsoft), ("ai.onnx.preview", preview)):
        if version:
            imports.append(helper.make_opsetid(domain, version))
    return helper.make_model(graph, opset_imports=imports, ir_version=8, producer_name="tenon", functions=list(functions))


def ml_case(name, op, inputs, outputs, version=3, **attrs):
    node = helper.make_node(op, list(inputs), list(outputs), domain="ai.onnx.ml", **attrs)
    return Case("ml_" + name, model_of([node], inputs, outputs, ml=version), inputs)


def microsoft_case(name, op, inputs, outputs=None, constants=None, names=None, expected=None, **attrs):
    """`names` are the node's inputs in order ("" for an omitted one); the rest are constants."""
    outputs = outputs or {"y": TensorProto.FLOAT}
    constants = constants or {}
    names = names or list(inputs) + list(constants)
    node = helper.make_node(op, names, list(outputs), domain="com.microsoft", **attrs)
    model = model_of([node], inputs, {k: v for k, v in outputs.items() if k}, constants, microsoft=1)
    return Case("microsoft_" + name, model, inputs, expected)
