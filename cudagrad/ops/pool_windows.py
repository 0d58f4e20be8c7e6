"""Where the windows of a pooling lie, and what PyTorch checks about them, in its words."""

from .windows import Windows, several

WORDS = {1: "one int", 2: "two ints", 3: "three ints"}
AXES = {1: "W", 2: "HW", 3: "THW"}


def one_an_axis(name, what, value, ndim):
    """An option as one number an axis."""
    values = several(value, ndim)
    if len(values) == ndim:
        return values
    if name == "max_pool1d":
        kinds = "None, an int, list of ints, or tuple" if what == "stride" else "an int, list of ints or tuple"
        raise RuntimeError(f"max_pool1d() {what} must be {kinds} of ints of size 1 but got size {len(values)}")
    if ndim == 1:
        raise RuntimeError(f"{name}() argument '{what}' should contain one int (got {len(values)})")
    kinds = f"a single int, or a tuple of {WORDS[ndim]}"
    kinds = {"stride": f"either be omitted, {kinds}", "dilation": f"be either {kinds}"}.get(what, f"either be {kinds}")
    raise RuntimeError(f"{name}: {what} must {kinds}")


def _named(prefix, values):
    return " ".join(f"{prefix}{axis}: {v}" for axis, v in zip(AXES[len(values)], values))


def check_kind(kernel, stride, dilation):
    """Kernel, stride and dilation are positive."""
    if 0 in stride:
        raise RuntimeError("stride should not be zero")
    if min(kernel) <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got {_named('k', kernel)}")
    if min(stride) <= 0:
        raise RuntimeError(f"stride should be greater than zero, but got {_named('d', stride)}")
    if min(dilation) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {_named('dilation', dilation)}")


def check_padding(kernel, padding, dilation):
    """Padding is at most half of what a window covers, so that no window lies in padding alone."""
    for k, p, d in zip(kernel, padding, dilation):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )


def check_sizes(name, input, ndim):
    """One or two axes before the pooled ones; only the first of two may be empty."""
    shape = list(input.shape)
    if input.ndim not in (ndim + 1, ndim + 2):
        if ndim == 1 and name.startswith("avg"):
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 'self' (while "
                f"checking arguments for {name})"
            )
        if ndim == 2 and name.startswith("avg"):
            low, high = -input.ndim, input.ndim - 1
            raise IndexError(f"Dimension out of range (expected to be in range of [{low}, {high}], but got -3)")
        if ndim == 1:
            first = f"{name}: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input"
            raise RuntimeError(f"{first}, but got:{shape}")
        raise RuntimeError(f"non-empty {ndim + 1}D or {ndim + 2}D (batch mode) tensor expected for input")
    if 0 in shape[input.ndim - ndim - 1 :] and ndim == 3:
        kind = "max_pool3d_with_indices_out_cpu_template" if name == "max_pool3d" else name
        axis = shape.index(0, input.ndim - ndim - 1) - (input.ndim - ndim - 1)
        raise RuntimeError(
            f"{kind}(): Expected input's non-batch dimensions to have positive length, but input has a shape of "
            f"{shape} and non-batch dimension {axis} has length zero!"
        )
    if 0 in shape[input.ndim - ndim - 1 :]:
        raise RuntimeError(
            f"Expected {ndim + 1}D or {ndim + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{shape}"
        )


def pool_windows(input, kernel, stride, padding, dilation, ceil_mode):
    """The windows of a pooling; with ``ceil_mode`` a last one may reach past the end if it starts within."""
    sizes = tuple(input.shape[input.ndim - len(kernel) :])
    count = []
    for n, k, s, p, d in zip(sizes, kernel, stride, padding, dilation):
        room = n + 2 * p - d * (k - 1) - 1
        length = (-(-room // s) if ceil_mode else room // s) + 1
        if ceil_mode and (length - 1) * s >= n + p:
            length -= 1
        count.append(length)
    if min(count) < 1:
        raise RuntimeError(_too_small(input, sizes, count))
    return Windows(kernel, stride, padding, dilation, tuple(count))


def _too_small(input, sizes, count):
    channels = input.shape[input.ndim - len(sizes) - 1]
    came = (channels, *((1,) if len(sizes) == 1 else ()), *sizes)
    made = (channels, *((1,) if len(sizes) == 1 else ()), *count)
    came, made = ("x".join(map(str, values)) for values in (came, made))
    return f"Given input size: ({came}). Calculated output size: ({made}). Output size is too small"
