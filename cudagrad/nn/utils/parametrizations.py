"""Ready-made parametrizations: orthogonal, weight and spectral normalisation."""

import enum

from ...backend import xp_of
from ...core.modes import no_grad
from ...core.tensor import Tensor, wrap
from ...ops.decomposition import linalg_qr
from ...ops.joining import cat
from ...ops.linalg import matrix_exp, solve
from ...ops.matmul import mv, vdot
from ...ops.normalization import normalize
from ..module import Module
from . import parametrize
from .spectral_norm import as_matrix, default_dim
from .weight_norm import norm_except_dim, weight_of


def _tensor_of(module, name):
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


# ---- orthogonal


class _OrthMaps(enum.Enum):
    matrix_exp = enum.auto()
    cayley = enum.auto()
    householder = enum.auto()


def _eye(n, like):
    return wrap(xp_of(like.array).eye(n, dtype=like.array.dtype))


def _orthogonalised(a):
    """The Q of A = Q R whose R has a non-negative diagonal."""
    q, r = linalg_qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _is_orthogonal(q):
    product = q.mT.conj() @ q
    eps = 10.0 * q.size(-2) * xp_of(q.array).finfo(q.array.dtype).eps
    return bool((product - _eye(q.size(-1), q)).abs().max() <= eps + 1e-5)


def _reflected(vectors, factors):
    """The product of the reflections I - tau v v^T applied to the first columns of the identity.

    Shapes      vectors [...,N,K], factors [...,K] -> [...,N,K]
    """
    n, k = vectors.shape[-2:]
    q = _eye(n, vectors)[:, :k].expand(*vectors.shape)
    for i in reversed(range(k)):
        v = vectors[..., i : i + 1]  # [...,N,1]
        q = q - factors[..., i : i + 1].unsqueeze(-1) * (v @ (v.mT @ q))
    return q


class _Orthogonal(Module):
    """X -> an orthogonal matrix: expm or Cayley map of X - X^H, or the product of X's reflections; times ``base``."""

    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X):
        wide = X.size(-2) < X.size(-1)
        X = X.mT if wide else X
        q = self._reflections(X) if self.orthogonal_map is _OrthMaps.householder else self._of_skew(X)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _of_skew(self, X):
        n, k = X.shape[-2:]
        X = X.tril()
        if n != k:
            X = cat([X, X.new_zeros(n, n - k).expand(*X.shape[:-2], n, n - k)], -1)
        skew = X - X.mT.conj()
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            q = matrix_exp(skew)
        else:
            q = solve(_eye(n, skew) - skew * 0.5, _eye(n, skew) + skew * 0.5)
        return q[..., :k] if n != k else q

    @staticmethod
    def _reflections(X):
        below = X.tril(-1)
        vectors = below + _eye(X.size(-2), X)[:, : X.size(-1)]
        factors = 2.0 / (1.0 + (below * below).sum(-2))
        signs = X.diagonal(dim1=-2, dim2=-1).detach().sign()  # the diagonal holds signs, which are not learned
        return _reflected(vectors, factors) * signs.unsqueeze(-2)

    @no_grad()
    def right_inverse(self, Q):
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        wide = Q.size(-2) < Q.size(-1)
        tall = Q.mT if wide else Q
        if not hasattr(self, "base"):
            if self.orthogonal_map is not _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            reflectors = _reflectors(tall)
            return reflectors.mT if wide else reflectors
        n, k = tall.shape[-2:]
        if n == k:
            self.base = tall.clone() if _is_orthogonal(tall) else _orthogonalised(tall)
        else:
            more = tall.new_empty(*tall.shape[:-2], n, n - k).normal_()
            self.base = _orthogonalised(cat([tall, more], -1))
        # -I makes the product of reflections the identity, and is skew-free for the other maps.
        xp = xp_of(Q.array)
        return wrap(xp.zeros(Q.array.shape, Q.array.dtype) - xp.eye(*Q.array.shape[-2:], dtype=Q.array.dtype))


def _reflectors(a):
    """LAPACK's reflectors of A = Q R below the diagonal, and on it the signs that make R's diagonal positive."""
    xp = xp_of(a.array)
    raw, factors = xp.linalg.qr(a.array, mode="raw")
    raw = xp.swapaxes(raw, -1, -2).astype(a.array.dtype)
    index = xp.arange(raw.shape[-1])
    signs = xp.sign(raw[..., index, index])
    raw[..., index, index] = xp.where(factors == 0, -signs, signs)
    return wrap(xp.ascontiguousarray(raw))


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Make a matrix (or a batch of them) of the module orthogonal, or unitary where it is complex; returns the module.

    ``orthogonal_map``: "matrix_exp" (the default for square and complex ones), "cayley" or "householder".
    ``use_trivialization``: keep a base point, so that the present value stays and training starts at the identity.

    Raises      ValueError for no such tensor, one of fewer than two dimensions, or an unknown map
    Source      Lezcano-Casado 2019, arXiv:1909.09501
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _OrthMaps.__members__:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    map_ = _Orthogonal(weight, _OrthMaps[orthogonal_map], use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, map_, unsafe=True)


# ---- weight normalisation


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return weight_of(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Make a tensor of the module g v / |v|, the norm over all dimensions but ``dim`` (None: over all); returns it.

    g and v are ``parametrizations.<name>.original0`` and ``original1``; state_dicts of the older form load, too.

    Source      Salimans & Kingma 2016, arXiv:1602.07868
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict, prefix, *_):
        old = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


# ---- spectral normalisation


class _SpectralNorm(Module):
    """W -> W / sigma(W), sigma by power iteration whose vectors ``_u`` and ``_v`` are buffers."""

    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{weight.ndim}, {weight.ndim - 1}] but got {dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps = dim % weight.ndim, eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            for buffer, length in (("_u", matrix.size(0)), ("_v", matrix.size(1))):
                start = matrix.new_empty(length).normal_(0, 1)
                self.register_buffer(buffer, normalize(start, dim=0, eps=eps))
            self._power_method(matrix, 15)

    @no_grad()
    def _power_method(self, matrix, count):
        # In place: replicas of the module share the buffers.
        for _ in range(count):
            self._u.copy_(normalize(mv(matrix, self._v), dim=0, eps=self.eps))
            self._v.copy_(normalize(mv(matrix.mT.conj(), self._u), dim=0, eps=self.eps))

    def forward(self, weight):
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        u, v = self._u.clone(), self._v.clone()  # a second forward will change the buffers
        return weight / vdot(u, mv(matrix, v))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Make a tensor of the module itself divided by its largest singular value; returns the module.

    The singular vectors are improved by ``n_power_iterations`` at every access in training mode. ``dim``: the rows of
    the matrix; 1 for transposed convolutions, else 0.

    Source      Miyato et al. 2018, arXiv:1802.05957
    """
    weight = _tensor_of(module, name)
    dim = default_dim(module) if dim is None else dim
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
