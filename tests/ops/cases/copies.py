"""Views that are copies."""

import numpy as np

import cudagrad

from . import Input, case

case("alias_copy", lambda x: x, Input((2, 3)))
case("diagonal_copy", lambda x, offset=0: np.diagonal(x, offset), Input((3, 3)), Input((3, 3), offset=1))
case("expand_copy", lambda x, size: np.broadcast_to(x, size), Input((1, 3), size=(2, 3)))
case("permute_copy", lambda x, dims: np.transpose(x, dims), Input((2, 3, 4), dims=(2, 0, 1)))
case("squeeze_copy", lambda x: np.squeeze(x), Input((2, 1, 3)))
case("t_copy", lambda x: x.T, Input((2, 3)))
case("transpose_copy", lambda x, dim0, dim1: np.swapaxes(x, dim0, dim1), Input((2, 3), dim0=0, dim1=1))
case(
    "unfold_copy", lambda x, dimension, size, step: np.stack([x[0:2], x[2:4]]), Input((5,), dimension=0, size=2, step=2)
)
case("unsqueeze_copy", lambda x, dim: np.expand_dims(x, dim), Input((2, 3), dim=1))
case("unbind_copy", lambda x, dim=0: tuple(x), Input((2, 3)))
case("split_copy", lambda x, split_size: (x[:2], x[2:]), Input((3, 2), split_size=2))
case("split_with_sizes_copy", lambda x, split_sizes: (x[:1], x[1:]), Input((3, 2), split_sizes=[1, 2]))
# These two are of a layout, so they get the tensor in rows.
case(
    "view_copy",
    lambda x, size: x.reshape(size),
    Input((2, 3), size=(3, 2)),
    f=lambda x, size: cudagrad.view_copy(x.contiguous(), size),
)
case(
    "as_strided_copy",
    lambda x, size, stride: x.reshape(-1)[:4].reshape(2, 2),
    Input((2, 3), size=(2, 2), stride=(2, 1)),
    f=lambda x, size, stride: cudagrad.as_strided_copy(x.contiguous(), size, stride),
)
