"""Conversion of tensors: numpy arrays and DLPack producers, without copies."""

from __future__ import annotations

import ctypes
from typing import Any, Sequence

import numpy as np

from ._library import CTensor, UsageError, check, handle_from, lib

try:  # element types beyond numpy's own
    import ml_dtypes as _ml
except ImportError:
    _ml = None


def _extra(name: str, width: Any) -> np.dtype:
    """Returns the element type of that name, or an integer type of its width if it is missing."""
    return np.dtype(getattr(_ml, name)) if _ml is not None and hasattr(_ml, name) else np.dtype(width)


# By tenon_dtype.
DTYPES: dict[int, tuple[str, np.dtype]] = {
    1: ("f64", np.dtype(np.float64)),
    2: ("f32", np.dtype(np.float32)),
    3: ("f16", np.dtype(np.float16)),
    4: ("bf16", _extra("bfloat16", np.uint16)),
    5: ("f8e4m3fn", _extra("float8_e4m3fn", np.uint8)),
    6: ("f8e4m3fnuz", _extra("float8_e4m3fnuz", np.uint8)),
    7: ("f8e5m2", _extra("float8_e5m2", np.uint8)),
    8: ("f8e5m2fnuz", _extra("float8_e5m2fnuz", np.uint8)),
    9: ("f8e8m0", _extra("float8_e8m0fnu", np.uint8)),
    10: ("f4e2m1", np.dtype(np.uint8)),
    11: ("i64", np.dtype(np.int64)),
    12: ("i32", np.dtype(np.int32)),
    13: ("i16", np.dtype(np.int16)),
    14: ("i8", np.dtype(np.int8)),
    15: ("i4", np.dtype(np.int8)),
    16: ("i2", np.dtype(np.int8)),
    17: ("u64", np.dtype(np.uint64)),
    18: ("u32", np.dtype(np.uint32)),
    19: ("u16", np.dtype(np.uint16)),
    20: ("u8", np.dtype(np.uint8)),
    21: ("u4", np.dtype(np.uint8)),
    22: ("u2", np.dtype(np.uint8)),
    23: ("bool", np.dtype(np.bool_)),
    24: ("c64", np.dtype(np.complex64)),
    25: ("c128", np.dtype(np.complex128)),
}
NUMBERS = {name: number for number, (name, _) in DTYPES.items()}
STRING = 26

# tenon_dtype of numpy's own types, without stand-ins that only share the bits.
_OF_NUMPY: dict[np.dtype, int] = {}
for _number, (_name, _dtype) in DTYPES.items():
    if _name not in ("f4e2m1", "i4", "i2", "u4", "u2") and (_dtype not in _OF_NUMPY):
        if not (_name.startswith(("bf", "f8")) and _dtype in (np.dtype(np.uint16), np.dtype(np.uint8))):
            _OF_NUMPY[_dtype] = _number


def as_array(value: Any) -> np.ndarray:
    """Returns an array over the memory of a numpy array or DLPack producer, without a copy if possible."""
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__") and not isinstance(value, np.generic):
        kind = value.__dlpack_device__()[0]
        if int(kind) not in (1, 3):  # kDLCPU, kDLCUDAHost
            raise UsageError(f"a tensor on a device cannot be read from here (DLPack device type {int(kind)})\n"
                             "  hint      copy it to the host: tensor.cpu(); programs compiled with target=\"cuda\", all of "
                             "whose steps are kernels, take tensors of NVIDIA's GPUs as they are")
        if getattr(value, "requires_grad", False) and hasattr(value, "detach"):
            value = value.detach()
        return np.from_dlpack(value)
    return np.asarray(value)


def dtype_number(dtype: np.dtype) -> int:
    number = _OF_NUMPY.get(dtype)
    if number is None:
        raise UsageError(f"no element type of Tenon's is numpy's {dtype}")
    return number


def fitting(array: np.ndarray, number: int, name: str) -> np.ndarray:
    """Returns the array for a port of that element type; copies it only if it is not row-major.

    A type that numpy lacks accepts its bits, or f32, which is rounded."""
    wanted = DTYPES[number][1]
    if array.dtype != wanted:
        if DTYPES[number][0] == "bf16" and array.dtype == np.float32:
            array = bfloat16_bits(array).view(wanted)
        else:
            raise UsageError(f"input '{name}' has the wrong element type\n  expected  {DTYPES[number][0]} "
                             f"(numpy's {wanted})\n  got       {array.dtype}")
    if not array.flags.c_contiguous or not array.flags.aligned:
        array = np.ascontiguousarray(array)
        if not array.flags.aligned:
            array = array.copy()
    return array


def bfloat16_bits(array: np.ndarray) -> np.ndarray:
    """Rounds f32 to the nearest bf16 and returns its bits."""
    bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(array), np.uint16(0x7FC0), rounded)


def float32_of(bits: np.ndarray) -> np.ndarray:
    """Converts the bits of bf16 to f32."""
    return (bits.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def describe(array: np.ndarray, number: int | None = None) -> tuple[CTensor, Any]:
    """Returns a description of the array's memory, and the objects that must outlive it."""
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    tensor = CTensor(address(array), shape, None, array.ndim,
                     dtype_number(array.dtype) if number is None else number)
    return tensor, (array, shape)


class Memory:
    """Memory of the library as a numpy buffer: an array over it keeps the owner alive."""

    def __init__(self, owner: Any, tensor: CTensor) -> None:
        self.owner = owner
        self.shape = tuple(tensor.shape[k] for k in range(tensor.rank))
        self.dtype = DTYPES[tensor.dtype][1]
        size = int(np.prod(self.shape, dtype=np.int64))
        self.__array_interface__ = {
            "shape": (size * self.dtype.itemsize,),
            "typestr": "|u1",
            "data": (tensor.data or 0, False),
            "version": 3,
        }
        self.is_empty = size == 0

    def array(self) -> np.ndarray:
        if self.is_empty:
            return np.empty(self.shape, self.dtype)
        return np.asarray(self).view(self.dtype).reshape(self.shape)


class Value:
    """A value of any kind in the library: a tensor, a sequence, an optional."""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self.handle = handle

    def __del__(self) -> None:
        if lib is not None:
            lib.tenon_value_free(self.handle)

    @staticmethod
    def of(value: Any, type_text: str = "") -> "Value":
        """Converts an array, a list (a sequence) or None (an empty optional); `type_text` is the port's type."""
        if isinstance(value, Value):
            return value
        if type_text.startswith("optional(") or value is None:
            if value is None:
                return Value(handle_from(lib.tenon_value_optional, None))
            item = Value.of(value, type_text[len("optional("):-1])
            return Value(handle_from(lib.tenon_value_optional, item.handle))
        if isinstance(value, (list, tuple)) and (type_text.startswith("seq(") or not type_text):
            inner = type_text[len("seq("):-1]
            items = [Value.of(item, inner) for item in value]
            handles = (ctypes.c_void_p * len(items))(*[item.handle for item in items])
            dtype = NUMBERS.get(inner.split("[")[0], 2)
            return Value(handle_from(lib.tenon_value_sequence, handles, len(items), dtype))
        array = as_array(value)
        if array.dtype.kind in "OUS":
            return _strings(array)
        name = type_text.split("[")[0]
        if name in NUMBERS:
            array = fitting(array, NUMBERS[name], "value")
        elif not array.flags.c_contiguous:
            array = np.ascontiguousarray(array)
        tensor, _alive = describe(array, NUMBERS.get(name))
        return Value(handle_from(lib.tenon_value_tensor, ctypes.byref(tensor)))

    def python(self) -> Any:
        """Returns an array over the value's own memory, a list, or the element of an optional."""
        kind, tensor, count = ctypes.c_int(), CTensor(), ctypes.c_size_t()
        check(lib.tenon_value_look(self.handle, ctypes.byref(kind), ctypes.byref(tensor), ctypes.byref(count)))
        if kind.value == 1:
            return self._read_strings(tensor) if tensor.dtype == STRING else Memory(self, tensor).array()
        items = [Value(handle_from(lib.tenon_value_item, self.handle, k)).python() for k in range(count.value)]
        if kind.value == 2:
            return items
        return items[0] if items else None

    def element_dtype(self) -> int:
        tensor = CTensor()
        check(lib.tenon_value_look(self.handle, None, ctypes.byref(tensor), None))
        return tensor.dtype

    def _read_strings(self, tensor: CTensor) -> np.ndarray:
        shape = [tensor.shape[k] for k in range(tensor.rank)]
        texts = np.empty(int(np.prod(shape, dtype=np.int64)), dtype=object)
        for k in range(texts.size):
            text, length = ctypes.c_void_p(), ctypes.c_size_t()
            check(lib.tenon_value_string(self.handle, k, ctypes.byref(text), ctypes.byref(length)))
            texts[k] = ctypes.string_at(text.value, length.value).decode("utf-8", "surrogateescape")
        return texts.reshape(shape)


def _strings(array: np.ndarray) -> Value:
    encoded = [item if isinstance(item, bytes) else str(item).encode("utf-8", "surrogateescape")
               for item in array.ravel()]
    texts = (ctypes.c_char_p * len(encoded))(*encoded)
    lengths = (ctypes.c_size_t * len(encoded))(*map(len, encoded))
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    return Value(handle_from(lib.tenon_value_strings, texts, lengths, shape, array.ndim))


def shape_of(tensor: CTensor) -> tuple[int, ...]:
    return tuple(tensor.shape[k] for k in range(tensor.rank))


def extents_of(type_text: str) -> list[int | str] | None:
    """Returns the extents in "f32[N, 3]": numbers, and symbols as texts; None for other types."""
    type_text = type_text.split("]@")[0] + "]" if "]@" in type_text else type_text
    if not type_text.endswith("]") or type_text.startswith(("seq(", "optional(")):
        return None
    inside = type_text[type_text.index("[") + 1:-1]
    parts: list[str] = []
    depth = 0
    for character in inside:
        if character == "," and depth == 0:
            parts.append("")
            continue
        depth += {"(": 1, ")": -1}.get(character, 0)
        if not parts:
            parts.append("")
        parts[-1] += character
    texts: Sequence[str] = [part.strip() for part in parts]
    return [int(text) if text.lstrip("-").isdigit() else text for text in texts if text]
