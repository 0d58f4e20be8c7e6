"""Kernels' launches: the driver's call, its packed arguments taken apart again and run by the emulated device."""

import ctypes
import struct
import types

import numpy as np

from cudagrad.backend import emulator
from cudagrad.backend.kernels.header import SCALARS, entries

CONFIG = struct.Struct("=7I4xQQI4x")
TYPES = {"float": "f4", "double": "f8", "__half": "f2", "int": "i4", "unsigned": "u4", "unsigned char": "u1"}
TYPES |= {"long long": "i8", "unsigned long long": "u8", "bool": "?"}


class Library:
    """The driver's library."""

    def __init__(self, double):
        self.double, self.functions, self.statuses = double, {}, []

    def module(self, path):
        """``cupy.RawModule(path=...)`` of a file that ``cubin`` named."""
        file, macros = self.double.built[int(path)]
        return types.SimpleNamespace(get_function=lambda name: self._raw_kernel(file, name, macros))

    def cubin(self, file, macros, architecture):
        """In the place of NVRTC: a number for what would be built."""
        assert architecture == "90a"
        self.double.built.append((file, macros))
        return len(self.double.built) - 1

    def _raw_kernel(self, file, name, macros):
        handle = 0x100 + len(self.functions)
        self.functions[handle] = entries(file)[name], macros, self.double.current()
        kernel = types.SimpleNamespace(ptr=handle)
        return types.SimpleNamespace(kernel=kernel, max_dynamic_shared_size_bytes=48 << 10)

    def cuLaunchKernelEx(self, config, function, arguments, extra):
        """Run the entry on the arrays at the addresses that are packed; a status, 0 when all is well."""
        if self.statuses:
            return self.statuses.pop(0)
        *sizes, stream, attributes, count = CONFIG.unpack(ctypes.string_at(config, CONFIG.size))
        assert not attributes and not count and extra is None
        entry, macros, index = self.functions[function.value]
        assert index == self.double.current(), "a function of another GPU"
        grid, block, shared = tuple(sizes[:3]), tuple(sizes[3:6]), sizes[6]
        self.double.launched.append((entry.name, grid, block, shared, stream))
        places = ctypes.cast(arguments, ctypes.POINTER(ctypes.c_void_p))
        given = tuple(self._value(p, places[i], dict(macros)) for i, p in enumerate(entry.parameters))
        plan = types.SimpleNamespace(entry=entry, macros=macros, grid=grid, block=block, shared=shared, arguments=given)
        emulator.run(plan)
        return 0

    def _value(self, p, place, macros):
        if p.pointer:
            (address,) = struct.unpack("Q", ctypes.string_at(place, 8))
            return self.double.at(address)._host if address else None
        kind = np.dtype(SCALARS.get(p.type) or TYPES[macros["CG_" + p.type]])
        return np.frombuffer(ctypes.string_at(place, kind.itemsize), kind)[0]

    def cuGetErrorName(self, status, name):
        name._obj.value = b"CUDA_ERROR_OF_THE_DOUBLE"
        return 0
