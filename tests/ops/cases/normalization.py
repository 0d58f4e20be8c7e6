"""Normalisation from its definitions: means and variances of the elements that belong " "together."""

import math

import numpy as np

from . import Error, Input, case


def standardised(x, axes, eps):
    away = x - x.mean(axes, keepdims=True)
    return away / np.sqrt((away * away).mean(axes, keepdims=True) + eps)


def scaled(h, weight, bias):
    h = h if weight is None else h * weight
    return h if bias is None else h + bias


def layer(x, normalized_shape, weight=None, bias=None, eps=1e-5):
    return scaled(standardised(x, tuple(range(-len(normalized_shape), 0)), eps), weight, bias)


def rms(x, normalized_shape, weight=None, eps=None):
    axes = tuple(range(-len(normalized_shape), 0))
    eps = np.finfo(x.dtype).eps if eps is None else eps
    return scaled(x / np.sqrt((x * x).mean(axes, keepdims=True) + eps), weight, None)


def along(v, x):
    return None if v is None else v.reshape(-1, *(1,) * (x.ndim - 2))


def group(x, num_groups, weight=None, bias=None, eps=1e-5):
    h = standardised(x.reshape(x.shape[0], num_groups, math.prod(x.shape[1:]) // num_groups), 2, eps).reshape(x.shape)
    return scaled(h, along(weight, x), along(bias, x))


def batch(x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5):
    if training:
        h = standardised(x, (0, *range(2, x.ndim)), eps)
    else:
        h = (x - along(running_mean, x)) / np.sqrt(along(running_var, x) + eps)
    return scaled(h, along(weight, x), along(bias, x))


def instance(
    x, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5
):
    if not use_input_stats:
        return batch(x, running_mean, running_var, weight, bias, False, momentum, eps)
    return scaled(standardised(x, tuple(range(2, x.ndim)), eps), along(weight, x), along(bias, x))


def local(x, size, alpha=1e-4, beta=0.75, k=1.0):
    out = np.empty_like(x)
    for c in range(x.shape[1]):
        first, last = max(c - size // 2, 0), min(c + (size - 1) // 2, x.shape[1] - 1)
        total = (x[:, first : last + 1] ** 2).sum(1)
        out[:, c] = x[:, c] / (k + alpha * total / size) ** beta
    return out


def normal(x, p=2.0, dim=1, eps=1e-12):
    size = np.abs(x)
    norm = size.max(dim, keepdims=True) if p == math.inf else (size**p).sum(dim, keepdims=True) ** (1 / p)
    return x / np.maximum(norm, eps)


# Statistics of a few elements: where their spread is small, rounding of the mean is magnified.
FACTS = {"roundings": 32}
V = np.array([0.5, -1.5, 2.0])
SPREAD = np.array([[0.0, 1e-3], [5.0, 5.0]])  # eps counts; and no spread at all

for prefix in ("", "nn.functional."):
    case(
        prefix + "layer_norm",
        lambda x, shape, w=None, b=None, **o: layer(x, tuple(shape), w, b, **o),
        Input((4, 3), [3]),
        Input((2, 4, 3), [3], (3,)),
        Input((2, 4, 3), [4, 3], (4, 3), (4, 3), eps=0.1),
        Input((3,), [3], V, V),
        Input((0, 3), [3], V),
        Input((700, 40), [40], (40,), (40,)),
        **FACTS,
    )
    case(
        prefix + "rms_norm",
        lambda x, shape, w=None, **o: rms(x, tuple(shape), w, **o),
        Input((4, 3), [3], eps=1e-3),
        Input((2, 4, 3), [4, 3], (4, 3), eps=0.1),
        Input((700, 40), [40], (40,), eps=1e-5),
        **FACTS,
    )
    case(
        prefix + "group_norm",
        group,
        Input((2, 4, 3), 2),
        Input((3, 6), 3, (6,), (6,)),
        Input((2, 4, 2, 3), 1, (4,), eps=0.1),
        Input((2, 4, 3), 4, (4,), (4,)),
        Input((0, 4, 2), 2),
        **FACTS,
    )
case(
    "nn.functional.instance_norm",
    lambda x, w=None, b=None, **o: instance(x, weight=w, bias=b, **o),
    Input((2, 3, 4)),
    Input((2, 3, 2, 3), eps=0.1),
    **FACTS,
)
case(
    "nn.functional.batch_norm",
    batch,
    Input((4, 3), None, None, training=True),
    Input((2, 3, 5), None, None, (3,), training=True),
    Input((2, 3, 2, 2), None, None, (3,), (3,), training=True, eps=0.1),
    Input((1, 3, 700), None, None, (3,), (3,), training=True),
    **FACTS,
)
case(
    "nn.functional.batch_norm",
    batch,
    Input((4, 3), V, V * V, V, V),
    Input((1, 3, 2, 2), V, V * V, eps=0.1),
    Input((0, 3, 2), V, V * V),
    wrt=(0, 3, 4),
    **FACTS,
)
case("layer_norm", lambda x, shape: layer(x, tuple(shape)), Input(SPREAD, [2]), low=False, **FACTS)
case(
    "nn.functional.instance_norm",
    instance,
    Input((2, 3, 4), V, V * V, V, V, False),
    wrt=(0, 3, 4),
    **FACTS,
)
case(
    "nn.functional.instance_norm",
    instance,
    Input((2, 3, 4), None, None, (3,), (3,)),
    **FACTS,
)
case(
    "layer_norm",
    layer,
    Error(
        RuntimeError,
        "Given normalized_shape=[4], expected input with shape [*, 4], but got input of size[2, 3]",
        (2, 3),
        [4],
    ),
    Error(
        RuntimeError,
        "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
        "element, but got normalized_shape = []",
        (2, 3),
        [],
    ),
    Error(
        RuntimeError,
        "Expected weight to be of same shape as normalized_shape, but got weight of shape [4] and "
        "normalized_shape = [3]",
        (2, 3),
        [3],
        (4,),
    ),
    Error(
        RuntimeError,
        "Expected bias to be of same shape as normalized_shape, but got bias of shape [4] and normalized_shape = [3]",
        (2, 3),
        [3],
        (3,),
        (4,),
    ),
    Error(NotImplementedError, "\"LayerNormKernelImpl\" not implemented for 'Long'", np.ones((2, 3), int), [3]),
    Error(
        TypeError, "layer_norm(): argument 'normalized_shape' (position 2) must be tuple of ints, not int", (2, 3), 3
    ),
)
case(
    "rms_norm",
    rms,
    Error(
        RuntimeError,
        "Given normalized_shape=[4], expected input with shape [*4], but got input of size[2, 3]",
        (2, 3),
        [4],
    ),
    Error(NotImplementedError, "\"rms_norm\" not implemented for 'Long'", np.ones((2, 3), int), [3]),
)
case(
    "group_norm",
    group,
    Error(
        RuntimeError,
        "Expected number of channels in input to be divisible by num_groups, but got input of shape "
        "[2, 3, 4] and num_groups=2",
        (2, 3, 4),
        2,
    ),
    Error(
        RuntimeError,
        "Expected weight to be a vector of size equal to the number of channels in input, but got "
        "weight of shape [3] and input of shape [2, 4, 4]",
        (2, 4, 4),
        2,
        (3,),
    ),
    Error(IndexError, "Dimension out of range (expected to be in range of [-1, 0], but got 1)", (4,), 2),
    Error(RuntimeError, "Expected num groups to be greater than 0, got 0", (2, 4), 0),
    Error(RuntimeError, "Expected num groups to be greater than 0, got -1", (2, 4), -1),
)
case("group_norm", lambda x, groups: 0 * x, Input((1, 4), 4), grad=0)  # one value a group is its own mean
for name, ref, count in (("group_norm", group, 2), ("layer_norm", layer, [4])):
    case(name, lambda *a, ref=ref: ref(*a[:5]), Input((2, 4), count, (4,), (4,), 1e-5, False), **FACTS)
case(
    "nn.functional.group_norm",
    group,
    Error(RuntimeError, "Expected at least 2 dimensions for input tensor but received 1", (4,), 2),
    Error(ValueError, "Expected more than 1 value per channel when training, got input size [1, 4]", (1, 4), 4),
    Error(ZeroDivisionError, "integer division or modulo by zero", (2, 4), 0),
    Error(RuntimeError, "Expected num groups to be greater than 0, got -1", (2, 4), -1),
)
case(
    "nn.functional.batch_norm",
    batch,
    Error(
        ValueError,
        "Expected more than 1 value per channel when training, got input size torch.Size([1, 3])",
        (1, 3),
        None,
        None,
        training=True,
    ),
    Error(RuntimeError, "running_mean should contain 3 elements not 4", (2, 3), (4,), (4,)),
    Error(RuntimeError, "running_mean must be defined in evaluation mode", (2, 3), None, None),
    Error(RuntimeError, "weight should contain 3 elements not 4", (2, 3), (3,), (3,), (4,)),
    Error(NotImplementedError, "\"batch_norm\" not implemented for 'Long'", np.ones((2, 3), int), (3,), (3,)),
    Error(
        ValueError,
        "batch_norm eps must be positive during training, but got -1",
        (2, 3),
        None,
        None,
        training=True,
        eps=-1,
    ),
)
case(
    "nn.functional.instance_norm",
    instance,
    Error(
        ValueError,
        "Expected more than 1 spatial element when training, got input size torch.Size([2, 3, 1])",
        (2, 3, 1),
    ),
    Error(
        RuntimeError,
        "Expected running_mean and running_var to be defined when use_input_stats is false",
        (2, 3, 4),
        use_input_stats=False,
    ),
    Error(
        ValueError, "running_mean and running_var must either both be None or neither be None", (2, 3, 4), (3,), None
    ),
)
case(
    "nn.functional.local_response_norm",
    local,
    Input((2, 5, 3), size=3, alpha=0.5, beta=0.6, k=1.1),
    Input((2, 4, 2, 2), size=2, alpha=1.0),
    Input((1, 3, 1, 2, 2), size=5, alpha=0.3),
    Error(
        ValueError,
        "Expected 3D or higher dimensionality                          input (got 2 dimensions)",
        (2, 3),
        size=2,
    ),
    **FACTS,
)
case(
    "nn.functional.normalize",
    normal,
    Input((2, 3, 2)),
    Input((2, 3), p=1, dim=0),
    Input((4, 3), p=3.0, dim=-1),
    Input((4, 3), p=math.inf),
    **FACTS,
)
case("nn.functional.normalize", normal, Input(np.array([[0.0, 0.0], [3.0, 4.0]])), grad=0, low=False)
