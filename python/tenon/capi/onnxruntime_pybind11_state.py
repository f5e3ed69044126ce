"""ONNX Runtime's exceptions and types under their usual path:

    from tenon.capi.onnxruntime_pybind11_state import InvalidArgument, NoSuchFile
"""

from .._ort_errors import (EngineError, EPFail, Fail, InvalidArgument, InvalidGraph, InvalidProtobuf, ModelLoaded, NoModel,
                           NoSuchFile, NotImplemented, RuntimeException)  # noqa: A004
from .._ort_options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from .._ort_values import OrtDevice, get_available_providers, get_device

__all__ = [
    "EPFail", "EngineError", "ExecutionMode", "ExecutionOrder", "Fail", "GraphOptimizationLevel", "InvalidArgument",
    "InvalidGraph", "InvalidProtobuf", "ModelLoaded", "NoModel", "NoSuchFile", "NotImplemented", "OrtDevice", "RunOptions",
    "RuntimeException", "SessionOptions", "get_available_providers", "get_device",
]
