"""Lazy modules: shapes from the first input, from a state_dict, and what is refused before."""

import copy

import pytest

import cudagrad as cg
from cudagrad import nn

CASES = [
    ("Linear", (4,), (3, 5), (4, 5)),
    ("Conv1d", (4, 3), (2, 5, 7), (4, 5, 3)),
    ("Conv2d", (4, 3), (5, 7, 7), (4, 5, 3, 3)),
    ("Conv3d", (4, 2), (2, 5, 4, 4, 4), (4, 5, 2, 2, 2)),
    ("ConvTranspose1d", (4, 3), (2, 5, 7), (5, 4, 3)),
    ("ConvTranspose2d", (4, 3), (2, 5, 7, 7), (5, 4, 3, 3)),
    ("ConvTranspose3d", (4, 2), (2, 5, 4, 4, 4), (5, 4, 2, 2, 2)),
    ("BatchNorm1d", (), (3, 5), (5,)),
    ("BatchNorm2d", (), (2, 5, 3, 3), (5,)),
    ("BatchNorm3d", (), (2, 5, 3, 3, 3), (5,)),
    ("InstanceNorm1d", (), (5, 7), (5,)),
    ("InstanceNorm2d", (), (2, 5, 3, 3), (5,)),
    ("InstanceNorm3d", (), (2, 5, 3, 3, 3), (5,)),
]


@pytest.mark.parametrize(("name", "args", "shape", "weight"), CASES)
def test_the_first_input_gives_the_shape_and_an_ordinary_module(name, args, shape, weight):
    m = getattr(nn, "Lazy" + name)(*args)
    assert m.has_uninitialized_params() and type(m).__name__ == "Lazy" + name
    x = cg.ones(*shape)
    out = m(x)
    assert type(m) is getattr(nn, name) and tuple(m.weight.shape) == weight
    assert type(m.weight) is nn.Parameter and not m._forward_pre_hooks and not m._load_state_dict_pre_hooks
    again = copy.deepcopy(m)
    assert out.shape == again(x).shape and m.bias is not None and type(m.bias) is nn.Parameter
    assert (m.in_features if name == "Linear" else getattr(m, "in_channels", getattr(m, "num_features", None))) == 5


@pytest.mark.parametrize(("name", "args", "shape", "weight"), CASES)
def test_a_state_dict_gives_the_shape(name, args, shape, weight):
    ready = getattr(nn, "Lazy" + name)(*args)
    ready(cg.ones(*shape))
    m = getattr(nn, "Lazy" + name)(*args)
    m.load_state_dict(ready.state_dict())
    assert not m.has_uninitialized_params() and m.weight.tolist() == ready.weight.tolist()
    x = cg.ones(*shape)
    ready.eval(), m.eval()
    assert m(x).tolist() == ready(x).tolist() and type(m) is type(ready)


def test_lazy_modules_save_copy_and_convert_before_their_first_call():
    m = nn.Sequential(nn.LazyLinear(3), nn.LazyLinear(2, bias=False))
    assert isinstance(m.state_dict()["0.weight"], nn.UninitializedParameter)
    other = copy.deepcopy(m).double()
    assert other(cg.ones(2, 4, dtype=cg.float64)).dtype is cg.float64
    assert m[0].has_uninitialized_params() and m[1].bias is None
    fresh = nn.Sequential(nn.LazyLinear(3), nn.LazyLinear(2, bias=False))
    fresh.load_state_dict(m.state_dict())
    assert fresh[0].has_uninitialized_params()


def test_a_lazy_parameter_goes_into_no_ordinary_module():
    m = nn.Linear(2, 3)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter or buffer"):
        m.load_state_dict(nn.LazyLinear(3).state_dict())


def test_wrong_inputs_are_refused():
    with pytest.raises(
        RuntimeError, match=r"^Expected 3D \(unbatched\) or 4D \(batched\) input to LazyConv2d, but got inp"
    ):
        nn.LazyConv2d(4, 3)(cg.ones(2, 5))
    with pytest.raises(ValueError, match="^in_channels must be divisible by groups$"):
        nn.LazyConv2d(4, 3, groups=2)(cg.ones(2, 5, 7, 7))


def test_a_lazy_module_of_the_users_own():
    class Scale(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, x):
            self.weight.materialize(x.shape[-1:])
            nn.init.ones_(self.weight)

        def forward(self, x):
            return x * self.weight

    m = Scale()
    assert m(cg.tensor([2.0, 3.0])).tolist() == [2.0, 3.0] and not m.has_uninitialized_params()

    class Never(Scale):
        def initialize_parameters(self, x):
            pass

    with pytest.raises(RuntimeError, match="^module Never has not been fully initialized$"):
        Never()(cg.ones(2))


@pytest.mark.peer
def test_lazy_reprs_are_pytorchs():
    torch = pytest.importorskip("torch")
    import warnings

    for name, args, _, _ in CASES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = repr(getattr(torch.nn, "Lazy" + name)(*args))
        assert repr(getattr(nn, "Lazy" + name)(*args)) == theirs
