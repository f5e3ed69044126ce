"""Tenon: reads a neural network, optimizes it, runs or trains it, and profiles time and memory.

    import tenon
    y = tenon.load("model.onnx").compile(threads=2)(x)

`tenon.InferenceSession` is compatible with ONNX Runtime's; `tenon.backend` is ONNX's backend interface.
"""

from . import zoo
from ._device import DeviceArray
from ._library import (ComparisonFailed, DeviceError, Error, InternalError, InvalidModelError, OutOfMemoryError,
                       UnsupportedError, UsageError, command, devices, load_plugin, run_command, version)
from ._model import Model, Profile, Quantization, Trainer, Training, load
from ._program import Outputs, Pending, Port, Program
from ._session import (ExecutionMode, ExecutionOrder, GraphOptimizationLevel, InferenceSession, IOBinding,
                       ModelMetadata, NodeArg, OrtValue, RunOptions, SessionOptions, get_all_providers,
                       get_available_providers, get_device, set_default_logger_severity, set_default_logger_verbosity)

__version__ = version()

__all__ = [
    "ComparisonFailed", "DeviceArray", "DeviceError", "Error", "ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel",
    "IOBinding", "InferenceSession", "InternalError", "InvalidModelError", "Model", "ModelMetadata", "NodeArg",
    "OrtValue", "OutOfMemoryError", "Outputs", "Pending", "Port", "Profile", "Program", "Quantization", "RunOptions", "SessionOptions",
    "Trainer", "Training", "UnsupportedError", "UsageError", "command", "devices", "get_all_providers",
    "get_available_providers", "get_device", "load", "load_plugin", "run_command", "set_default_logger_severity",
    "set_default_logger_verbosity", "version", "zoo",
]
