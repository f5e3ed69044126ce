"""ONNX's Backend interface over Tenon: `onnx.backend.test.BackendTest(tenon.backend, __name__)`."""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from ._model import load
from ._program import Program
from ._tensors import float32_of


class TenonRep(BackendRep):
    def __init__(self, program: Program) -> None:
        self._program = program

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        arrays = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
        results = self._program.run(arrays)
        # ONNX's own tools represent bf16 as f32.
        values = [float32_of(value) if port.type.startswith("bf16[") and isinstance(value, np.ndarray) else value
                  for port, value in zip(self._program.outputs, results)]
        return namedtupledict("Outputs", [port.name for port in self._program.outputs])(*values)


class TenonBackend(Backend):
    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> TenonRep:
        super().prepare(model, device, **kwargs)  # runs the checker
        target = "cuda" if device.upper().startswith("CUDA") else None
        return TenonRep(load(model.SerializeToString()).compile(target=target, threads=kwargs.get("threads", 0)))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(cls, node: onnx.NodeProto, inputs: Any, device: str = "CPU",
                 outputs_info: Sequence[tuple[np.dtype, tuple[int, ...]]] | None = None,
                 **kwargs: Any) -> tuple[Any, ...]:
        if outputs_info is None:
            raise ValueError("run_node needs outputs_info: the types of the results")
        arrays = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
        kind = onnx.mapping.NP_TYPE_TO_TENSOR_TYPE
        given = [onnx.helper.make_tensor_value_info(name, kind[array.dtype], array.shape)
                 for name, array in zip(filter(None, node.input), arrays)]
        made = [onnx.helper.make_tensor_value_info(name, kind[np.dtype(dtype)], shape)
                for name, (dtype, shape) in zip(filter(None, node.output), outputs_info)]
        graph = onnx.helper.make_graph([node], "node", given, made)
        opset = kwargs.get("opset_version", onnx.defs.onnx_opset_version())
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(node.domain, opset)])
        return cls.run_model(model, arrays, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.upper() == "CPU"


is_compatible = TenonBackend.is_compatible
prepare = TenonBackend.prepare
run_model = TenonBackend.run_model
run_node = TenonBackend.run_node
supports_device = TenonBackend.supports_device
