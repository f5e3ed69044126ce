"""ONNX Runtime's session interface on Tenon: scripts run after replacing the import."""

from __future__ import annotations

import ctypes
import enum
import json
import os
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from ._library import UsageError, devices
from ._model import load
from ._program import Port, Program
from ._tensors import as_array

_ONNX_TYPES = {
    "f64": "double", "f32": "float", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32",
    "i16": "int16", "i8": "int8", "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "bool",
    "string": "string", "c64": "complex64", "c128": "complex128", "f8e4m3fn": "float8e4m3fn", "f8e5m2": "float8e5m2",
}


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1


class SessionOptions:
    """`intra_op_num_threads`, `optimized_model_filepath` and free dimensions have an effect. The other fields exist for
    scripts that set them: Tenon always runs its passes and plans memory."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0
        self.inter_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.enable_profiling = False
        self.profile_file_prefix = "tenon_profile"
        self.optimized_model_filepath = ""
        self.enable_mem_pattern = True
        self.enable_mem_reuse = True
        self.enable_cpu_mem_arena = True
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.use_deterministic_compute = False
        self._entries: dict[str, str] = {}
        self._extents: dict[str, int] = {}

    def add_session_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, value: int) -> None:
        """Replaces the symbol `name` in input shapes by a number."""
        self._extents[name] = int(value)

    def add_free_dimension_override_by_denotation(self, denotation: str, value: int) -> None:
        """Ignored: denotations of axes are not imported."""

    def register_custom_ops_library(self, path: str) -> None:
        raise UsageError(f"libraries of ONNX Runtime's operators cannot be loaded: {path}")


class RunOptions:
    def __init__(self) -> None:
        self.log_severity_level = 2
        self.log_verbosity_level = 0
        self.logid = ""
        self.terminate = False
        self.only_execute_path_to_fetches = False
        self._entries: dict[str, str] = {}

    def add_run_config_entry(self, key: str, value: str) -> None:
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        return self._entries[key]


class NodeArg:
    """An input or output: name, shape with numbers and names, and a type such as "tensor(float)"."""

    def __init__(self, port: Port) -> None:
        self.name = port.name
        self.shape = [] if port.shape is None else list(port.shape)
        self.type = _type_text(port.type)

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"

    __repr__ = __str__


def _type_text(text: str) -> str:
    if text.startswith("seq("):
        return f"seq({_type_text(text[4:-1])})"
    if text.startswith("optional("):
        return f"optional({_type_text(text[9:-1])})"
    name = text.split("[")[0]
    return f"tensor({_ONNX_TYPES.get(name, name)})"


class ModelMetadata:
    def __init__(self, description: Mapping[str, Any]) -> None:
        metadata = dict(description.get("metadata", {}))
        self.graph_name = description.get("name", "")
        self.producer_name = metadata.pop("producer_name", metadata.pop("producer", ""))
        self.domain = metadata.pop("domain", "")
        self.description = metadata.pop("doc_string", "")
        self.graph_description = ""
        self.version = int(metadata.pop("model_version", 0) or 0)
        self.custom_metadata_map = metadata


class OrtValue:
    """A tensor in host memory."""

    def __init__(self, array: Any) -> None:
        self._array = as_array(array)

    @staticmethod
    def ortvalue_from_numpy(array: np.ndarray, device_type: str = "cpu", device_id: int = 0) -> "OrtValue":
        _require_cpu(device_type)
        return OrtValue(array)

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any = np.float32, device_type: str = "cpu",
                                     device_id: int = 0) -> "OrtValue":
        _require_cpu(device_type)
        return OrtValue(np.empty(tuple(shape), element_type))

    def numpy(self) -> np.ndarray:
        return self._array

    def data_ptr(self) -> int:
        return self._array.__array_interface__["data"][0]

    def shape(self) -> list[int]:
        return list(self._array.shape)

    def data_type(self) -> str:
        return f"tensor({self._array.dtype.name.replace('float32', 'float').replace('float64', 'double')})"

    element_type = data_type

    def device_name(self) -> str:
        return "cpu"

    def is_tensor(self) -> bool:
        return True

    def is_tensor_sequence(self) -> bool:
        return False

    def is_sparse_tensor(self) -> bool:
        return False

    def update_inplace(self, array: np.ndarray) -> None:
        """Replaces the elements in the same memory."""
        if array.shape != self._array.shape or array.dtype != self._array.dtype:
            raise UsageError(f"a value keeps its type: {self._array.dtype}{list(self._array.shape)}, "
                             f"not {array.dtype}{list(array.shape)}")
        np.copyto(self._array, array)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def has_value(self) -> bool:
        return True


def _require_cpu(device_type: str) -> None:
    if device_type.lower() != "cpu":
        raise UsageError(f"values lie in host memory: no '{device_type}' here")


class IOBinding:
    """Inputs and outputs bound to fixed memory for several runs."""

    def __init__(self, session: "InferenceSession") -> None:
        self._session = session
        self._inputs: dict[str, np.ndarray] = {}
        self._outputs: dict[str, np.ndarray | None] = {}
        self._results: dict[str, Any] = {}

    def bind_cpu_input(self, name: str, array: Any) -> None:
        self._inputs[name] = as_array(array)

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None:
        _require_cpu(device_type)
        self._inputs[name] = _array_at(buffer_ptr, element_type, shape)

    def bind_ortvalue_input(self, name: str, value: OrtValue) -> None:
        self._inputs[name] = value.numpy()

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        _require_cpu(device_type)
        self._outputs[name] = None if buffer_ptr is None else _array_at(buffer_ptr, element_type, shape or [])

    def bind_ortvalue_output(self, name: str, value: OrtValue) -> None:
        self._outputs[name] = value.numpy()

    def synchronize_inputs(self) -> None:
        """Ignored: all memory is host memory."""

    def synchronize_outputs(self) -> None:
        """Ignored: all memory is host memory."""

    def get_outputs(self) -> list[OrtValue]:
        return [OrtValue(self._results[name]) for name in self._outputs]

    def copy_outputs_to_cpu(self) -> list[np.ndarray]:
        return [self._results[name] for name in self._outputs]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results.clear()


def _array_at(address: int, element_type: Any, shape: Sequence[int]) -> np.ndarray:
    """Returns an array over the caller's memory, which the caller keeps alive."""
    dtype = np.dtype(element_type)
    count = int(np.prod(tuple(shape), dtype=np.int64))
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype, count).reshape(tuple(shape))


def _with_extents(ports: Sequence[Port], extents: Mapping[str, int]) -> dict[str, list[int]]:
    """Returns the shapes of inputs whose symbols are all among these."""
    shapes = {}
    for port in ports:
        shape = [extents.get(extent, extent) if isinstance(extent, str) else extent for extent in port.shape or ()]
        if shape != list(port.shape or ()) and all(isinstance(extent, int) for extent in shape):
            shapes[port.name] = shape
    return shapes


class InferenceSession:
    """As onnxruntime.InferenceSession: a path, bytes, or anything else that `tenon.load` reads."""

    def __init__(self, path_or_bytes: Any, sess_options: SessionOptions | None = None,
                 providers: Sequence[Any] | None = None, provider_options: Sequence[Any] | None = None,
                 **_ignored: Any) -> None:
        self._options = sess_options if sess_options is not None else SessionOptions()
        threads = int(self._options.intra_op_num_threads)
        source = path_or_bytes if isinstance(path_or_bytes, (bytes, bytearray, memoryview)) else os.fspath(path_or_bytes)
        names = [provider if isinstance(provider, str) else provider[0] for provider in providers or []]
        if names and not any(name.endswith("ExecutionProvider") for name in names):
            raise ValueError(f"no provider is called {', '.join(map(repr, names))}; there are {get_available_providers()}")
        is_on_gpu = bool(names) and names[0] in ("CUDAExecutionProvider", "TensorrtExecutionProvider")
        loaded = load(source, threads)
        if isinstance(loaded, Program):
            self._program, self._metadata = loaded, ModelMetadata(loaded.describe())
        else:
            if self._options.optimized_model_filepath:
                loaded.save(self._options.optimized_model_filepath, "onnx")
            shapes = _with_extents(loaded.inputs, self._options._extents)
            made = loaded.opt(shapes=shapes) if shapes else loaded
            self._program = made.compile(threads=threads, target="cuda" if is_on_gpu else None)
            self._metadata = ModelMetadata(loaded.describe())
        self._providers = ["CUDAExecutionProvider"] if is_on_gpu else ["CPUExecutionProvider"]
        self._output_names = [port.name for port in self._program.outputs]
        # Lists of maps (ZipMap) are matrices here, with a second output for the labels of their columns.
        columns = self._metadata.custom_metadata_map
        # A map as an input (DictVectorizer, CastMap) is two lists: its keys and its values.
        self._maps = self._maps_among(columns)
        self._labels = {name: json.loads(columns[f"columns of {name}"]) for name in self._output_names
                        if f"columns of {name}" in columns}

    def _given(self, name: str, result: Any) -> Any:
        if name not in self._labels:
            return result
        return [dict(zip(self._labels[name], map(float, row))) for row in result]

    def _maps_among(self, metadata: Mapping[str, str]) -> dict[str, list[str]]:
        names, maps = {port.name for port in self._program.inputs}, {}
        for key, text in metadata.items():
            try:
                parts = json.loads(text) if key.startswith("map ") else None
            except ValueError:
                continue  # metadata of the model itself
            if isinstance(parts, list) and len(parts) == 2 and all(part in names for part in parts):
                maps[key[len("map "):]] = parts
        return maps

    def _without_maps(self, feed: Mapping[str, Any]) -> Mapping[str, Any]:
        if not any(isinstance(feed.get(name), Mapping) for name in self._maps):
            return feed
        made = dict(feed)
        for name, parts in self._maps.items():
            given = made.pop(name)
            for part, items in zip(parts, (given.keys(), given.values())):
                dtype = next(port.dtype for port in self._program.inputs if port.name == part)
                made[part] = np.array(list(items), dtype=object if dtype is None else dtype)
        return made

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any],
            run_options: RunOptions | None = None) -> list[Any]:
        input_feed = self._without_maps(input_feed)
        missing = [port.name for port in self._program.inputs if port.name not in input_feed]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(input_feed)}).")
        wanted = list(output_names) if output_names else self._output_names
        for name in wanted:
            if name not in self._output_names:
                raise UsageError(f"there is no output '{name}'; there are {', '.join(self._output_names)}")
        results = self._program.run(input_feed)
        return [self._given(name, results[name]) for name in wanted]

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_feed: Mapping[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        feed = {name: value.numpy() for name, value in input_feed.items()}
        results = self._program.run(feed)
        return [OrtValue(results[name]) for name in output_names or self._output_names]

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        targets = {name: array for name, array in iobinding._outputs.items() if array is not None}
        results = self._program.run(iobinding._inputs, out=targets or None)
        iobinding._results = results.as_dict()
        if not iobinding._outputs:
            iobinding._outputs = {name: None for name in self._output_names}

    def get_inputs(self) -> list[NodeArg]:
        ports = {port.name: port for port in self._program.inputs}
        arguments = []
        for name, port in ports.items():
            whole = next((key for key, parts in self._maps.items() if name in parts), None)
            if whole is None:
                arguments.append(NodeArg(port))
            elif name == self._maps[whole][0]:
                key, value = (_type_text(ports[part].type) for part in self._maps[whole])
                arguments.append(NodeArg(Port(whole, "", None, None)))
                arguments[-1].type = f"map({key[len('tensor('):-1]},{value})"
        return arguments

    def get_outputs(self) -> list[NodeArg]:
        return [NodeArg(port) for port in self._program.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        return []

    def get_modelmeta(self) -> ModelMetadata:
        return self._metadata

    def get_providers(self) -> list[str]:
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {name: {} for name in self._providers}

    def set_providers(self, providers: Sequence[Any], provider_options: Sequence[Any] | None = None) -> None:
        names = [provider if isinstance(provider, str) else provider[0] for provider in providers]
        if names[:1] != self._providers:
            raise UsageError(f"a session stays where it was made: {self._providers[0]}")

    def get_session_options(self) -> SessionOptions:
        return self._options

    def disable_fallback(self) -> None:
        """Ignored: Tenon has no fallback providers."""

    def enable_fallback(self) -> None:
        """Ignored: Tenon has no fallback providers."""

    def get_profiling_start_time_ns(self) -> int:
        """Traces begin at 0."""
        return 0

    def end_profiling(self) -> str:
        """Writes a Chrome trace of one run on zeros; returns its path."""
        path = Path(f"{self._options.profile_file_prefix}_{os.getpid()}.json")
        shapes = [tuple(extent if isinstance(extent, int) else 1 for extent in port.shape or ())
                  for port in self._program.inputs]
        steps = self._program.watch(*[np.zeros(shape, port.dtype) for shape, port in zip(shapes, self._program.inputs)])
        begin, events = 0.0, []
        for step in steps:
            events.append({"name": step["name"], "cat": "Node", "ph": "X", "pid": os.getpid(), "tid": 0,
                           "ts": begin * 1e6, "dur": step["seconds"] * 1e6, "args": {"kernel": step["kernel"]}})
            begin += step["seconds"]
        path.write_text(json.dumps(events))
        return str(path)


def get_available_providers() -> list[str]:
    gpu = any(device["kind"] == "cuda" and device["usable"] for device in devices())
    return (["CUDAExecutionProvider"] if gpu else []) + ["CPUExecutionProvider"]


get_all_providers = get_available_providers


def set_default_logger_severity(severity: int) -> None:
    """Ignored: Tenon raises errors instead of logging."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Ignored: Tenon raises errors instead of logging."""


def get_device() -> str:
    return "GPU" if len(get_available_providers()) > 1 else "CPU"
