"""ONNX Runtime's values, devices and bindings, in host memory."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Sequence

import numpy as np

from ._library import devices, version
from ._ort_errors import InvalidArgument, RuntimeException
from ._tensors import as_array

if TYPE_CHECKING:
    from ._session import InferenceSession

# By TensorProto.DataType: the name in "tensor(NAME)" and numpy's name.
_ELEMENTS = {
    1: ("float", "float32"), 2: ("uint8", "uint8"), 3: ("int8", "int8"), 4: ("uint16", "uint16"), 5: ("int16", "int16"),
    6: ("int32", "int32"), 7: ("int64", "int64"), 8: ("string", "object"), 9: ("bool", "bool"), 10: ("float16", "float16"),
    11: ("double", "float64"), 12: ("uint32", "uint32"), 13: ("uint64", "uint64"), 14: ("complex64", "complex64"),
    15: ("complex128", "complex128"), 16: ("bfloat16", "bfloat16"), 17: ("float8e4m3fn", "float8_e4m3fn"),
    18: ("float8e4m3fnuz", "float8_e4m3fnuz"), 19: ("float8e5m2", "float8_e5m2"), 20: ("float8e5m2fnuz", "float8_e5m2fnuz"),
}


def _dtype_of(element_type: Any) -> np.dtype:
    """Returns numpy's type of an element type: numpy's own, or a number of TensorProto.DataType."""
    if not isinstance(element_type, int):
        return np.dtype(element_type)
    if element_type not in _ELEMENTS:
        raise InvalidArgument(f"no element type has the number {element_type}")
    name = _ELEMENTS[element_type][1]
    if name.startswith(("bfloat", "float8")):
        import ml_dtypes
        return np.dtype(getattr(ml_dtypes, name))
    return np.dtype(name)


def _element_number(dtype: np.dtype) -> int:
    name = "object" if dtype.kind in "OUS" else dtype.name
    for number, (_, own) in _ELEMENTS.items():
        if own == name:
            return number
    raise InvalidArgument(f"no element type is numpy's {dtype}")


def require_cpu(device_type: str) -> None:
    if device_type.lower() not in ("cpu", "cuda_pinned"):
        raise RuntimeException(f"values lie in host memory: no '{device_type}' here")


class OrtDevice:
    """A device. Values lie in host memory, so that every device of a value is the CPU."""

    def __init__(self, name: str = "cpu", memory_type: int = 0, device_id: int = 0) -> None:
        self._name, self._memory_type, self._device_id = name, memory_type, device_id

    @staticmethod
    def make(ort_device_name: str, device_id: int) -> "OrtDevice":
        return OrtDevice(ort_device_name.lower(), 0, device_id)

    def device_id(self) -> int:
        return self._device_id

    def device_type(self) -> str:
        return self._name

    @staticmethod
    def cpu() -> int:
        return 0

    @staticmethod
    def cuda() -> int:
        return 1

    @staticmethod
    def default_memory() -> int:
        return 0


class OrtValue:
    """A tensor, or a sequence of tensors, in host memory."""

    def __init__(self, value: Any) -> None:
        self._value = list(value) if isinstance(value, (list, tuple)) else as_array(value)

    @staticmethod
    def ortvalue_from_numpy(numpy_obj: np.ndarray, device_type: str = "cpu", device_id: int = 0,
                            vendor_id: int = -1) -> "OrtValue":
        require_cpu(device_type)
        return OrtValue(numpy_obj)

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data: np.ndarray, onnx_element_type: int) -> "OrtValue":
        """Interprets the array's memory as elements of that type."""
        return OrtValue(data.view(_dtype_of(onnx_element_type)))

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any = np.float32, device_type: str = "cpu",
                                     device_id: int = 0, vendor_id: int = -1) -> "OrtValue":
        require_cpu(device_type)
        return OrtValue(np.empty(tuple(shape), _dtype_of(element_type)))

    @staticmethod
    def from_dlpack(tensor: Any, is_bool_tensor: bool = False) -> "OrtValue":
        array = as_array(tensor)
        return OrtValue(array.view(np.bool_) if is_bool_tensor else array)

    def numpy(self) -> np.ndarray:
        if self.is_tensor_sequence():
            raise RuntimeException("a sequence of tensors is not one array")
        return self._value

    def to_list(self) -> list[Any]:
        return list(self._value)

    def data_ptr(self) -> int:
        return self.numpy().__array_interface__["data"][0]

    def shape(self) -> list[int]:
        return list(self.numpy().shape)

    def data_type(self) -> str:
        if self.is_tensor_sequence():
            inner = OrtValue(self._value[0]).data_type() if self._value else "tensor(float)"
            return f"seq({inner})"
        return f"tensor({_ELEMENTS[self.element_type()][0]})"

    def element_type(self) -> int:
        """Returns the number of TensorProto.DataType."""
        return _element_number(self.numpy().dtype)

    def device_name(self) -> str:
        return "cpu"

    def is_tensor(self) -> bool:
        return not self.is_tensor_sequence()

    def is_tensor_sequence(self) -> bool:
        return isinstance(self._value, list)

    def is_sparse_tensor(self) -> bool:
        return False

    def has_value(self) -> bool:
        return True

    def update_inplace(self, np_arr: np.ndarray) -> None:
        """Replaces the elements in the same memory."""
        array = self.numpy()
        if np_arr.shape != array.shape or np_arr.dtype != array.dtype:
            raise InvalidArgument(f"a value keeps its type: {array.dtype}{list(array.shape)}, "
                                  f"not {np_arr.dtype}{list(np_arr.shape)}")
        np.copyto(array, np_arr)

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.numpy().__dlpack_device__()


def fed(value: Any) -> Any:
    """Returns the array or list of an input, which may be an OrtValue."""
    return value._value if isinstance(value, OrtValue) else value


class IOBinding:
    """Inputs and outputs bound to fixed memory for several runs."""

    def __init__(self, session: "InferenceSession") -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, np.ndarray | None] = {}
        self._results: dict[str, Any] = {}

    def _require(self, name: str, names: Sequence[str], what: str) -> None:
        if name not in names:
            raise RuntimeException(f"the model has no {what} '{name}'; it has {', '.join(names)}")

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        self._require(name, self._session._input_names, "input")
        self._inputs[name] = as_array(arr_on_cpu)

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None:
        require_cpu(device_type)
        self.bind_cpu_input(name, _array_at(buffer_ptr, element_type, shape))

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        self._require(name, self._session._input_names, "input")
        self._inputs[name] = fed(ortvalue)

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        require_cpu(device_type)
        self._require(name, self._session._output_names, "output")
        self._outputs[name] = None if buffer_ptr is None else _array_at(buffer_ptr, element_type, shape or [])

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        self._require(name, self._session._output_names, "output")
        self._outputs[name] = ortvalue.numpy()

    def synchronize_inputs(self) -> None:
        """Ignored: all memory is host memory."""

    def synchronize_outputs(self) -> None:
        """Ignored: all memory is host memory."""

    def get_outputs(self) -> list[OrtValue]:
        return [OrtValue(self._results[name]) for name in self._outputs]

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self) -> list[Any]:
        return [self._results[name] for name in self._outputs]

    def clear_binding_inputs(self) -> None:
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        self._outputs.clear()
        self._results.clear()


def _array_at(address: int, element_type: Any, shape: Sequence[int]) -> np.ndarray:
    """Returns an array over the caller's memory, which the caller keeps alive."""
    dtype = _dtype_of(element_type)
    count = int(np.prod(tuple(shape), dtype=np.int64))
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(memory, dtype, count).reshape(tuple(shape))


def get_all_providers() -> list[str]:
    return ["CUDAExecutionProvider", "CPUExecutionProvider"]


def get_available_providers() -> list[str]:
    gpu = any(device["kind"] == "cuda" and device["usable"] for device in devices())
    return get_all_providers() if gpu else ["CPUExecutionProvider"]


def get_device() -> str:
    return "GPU" if len(get_available_providers()) > 1 else "CPU"


def get_version_string() -> str:
    return version()


def get_build_info() -> str:
    return f"tenon {version()}"


def set_default_logger_severity(severity: int) -> None:
    """Ignored: Tenon raises errors instead of logging."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Ignored: Tenon raises errors instead of logging."""


def set_seed(seed: int) -> None:
    """Ignored: random operators have their seeds in the model."""


def enable_telemetry_events() -> None:
    """Ignored: Tenon sends nothing."""


def disable_telemetry_events() -> None:
    """Ignored: Tenon sends nothing."""


def preload_dlls(*_given: Any, **_named: Any) -> None:
    """Ignored: the library loads the driver itself."""
