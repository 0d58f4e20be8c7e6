"""Dropout, its mask drawn in registers."""

import math

from .common import fits


def dropped(run, xp, x, *, p, seed, offset, scale, dims):
    fits("dropout", x)
    flat = xp.ascontiguousarray(x).reshape(-1)
    y = xp.empty(flat.shape, x.dtype)
    per = 1 if dims is None else math.prod(x.shape[dims:])
    given = dict(per=per, limit=round(p * 65536), scale=scale, seed=seed, offset=offset)
    run("dropout.cu", "dropped", x=flat, y=y, **given)
    return y.reshape(x.shape)


FORWARD = {"dropped": dropped}
FIRST_ORDER = {}
