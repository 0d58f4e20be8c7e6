"""``compile``: accepted, and runs the function as it is; there is no static capture yet."""


def compile(
    model=None, *, fullgraph=False, dynamic=None, backend="eager", mode=None, options=None, disable=False, **ignored
):
    """``model`` itself, a function or a Module.

    Differs     nothing is compiled: the function runs eagerly, which is what PyTorch's ``backend="eager"`` does
    """
    if model is None:
        return lambda function: function
    return model
