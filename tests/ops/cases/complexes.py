"""Complex tensors: parts, conjugates, and how they are made."""

import numpy as np

from . import Error, Input, case

ANY = np.array([-2.3, -0.7, 0.2, 1.9])
ONE = np.array([1 + 2j], np.complex64)

case("real", np.real, Input((2, 3)), complex=True)
case("imag", np.imag, Input(np.array([1 + 2j, 3 - 1j])), complex=True, low=False)
case("imag", None, Error(RuntimeError, "imag is not implemented for tensors with non-complex dtypes.", (2,)))
case("conj", np.conj, Input((2, 3)), complex=True, ints=True, pointwise=True)
case("conj_physical", np.conj, Input((2, 3)), complex=True)
case("resolve_conj", lambda x: x, Input((2, 3)), complex=True)
case("resolve_neg", lambda x: x, Input((2, 3)), complex=True)
case("angle", lambda x: np.angle(x), Input(ANY), Input((2, 3)), complex=True, pointwise=True)
case("angle", lambda x: np.where(x < 0, np.pi, 0.0), Input(np.array([-2, 0, 3])), grad=0)

FLOATS = "Expected both inputs to be Half, Float or Double tensors but got"
case(
    "complex",
    lambda x, y: x + 1j * y,
    Input((2, 3), (3,)),
    Input((4,), (4,)),
    Error(RuntimeError, f"{FLOATS} Float and Long", (1,), np.array([2])),
    Error(RuntimeError, f"{FLOATS} Long and Long", np.array([1]), np.array([2])),
    low=False,
    pointwise=True,
)
case(
    "polar",
    lambda r, a: r * np.exp(1j * a),
    Input(np.array([[0.5, 2.0, 1.5]]), (2, 3)),
    Input(np.array([0.5, 2.0]), (2,)),
    Error(RuntimeError, f"{FLOATS} Float and Long", (1,), np.array([2])),
    low=False,
    pointwise=True,
)
case(
    "view_as_real",
    lambda z: np.stack([z.real, z.imag], -1),
    Input(np.array([[1 + 2j, 3 - 1j], [0.5j, -2]])),
    Error(RuntimeError, "view_as_real is only supported for complex tensors", (2,)),
    low=False,
)
case(
    "view_as_complex",
    lambda x: x[..., 0] + 1j * x[..., 1],
    Input((3, 2)),
    Input((2,)),
    Error(RuntimeError, "Tensor must have a last dimension of size 2", (3,)),
    Error(RuntimeError, "Input tensor must have one or more dimensions", ()),
    f=lambda x: __import__("cudagrad").view_as_complex(x.contiguous()),
    low=False,
)
