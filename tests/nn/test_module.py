"""Module: registration, walking, conversion, text, copies. State is tested in test_state.py, hooks in test_hooks.py."""

import copy
import gc
import pickle
import re
import weakref

import numpy as np
import pytest

import cudagrad as cg
from cudagrad import nn


class Linear(nn.Module):
    def __init__(self, n=2, m=3, bias=True):
        super().__init__()
        self.weight = nn.Parameter(cg.ones(m, n))
        self.register_parameter("bias", nn.Parameter(cg.zeros(m)) if bias else None)

    def forward(self, x):
        y = x @ self.weight.T
        return y if self.bias is None else y + self.bias

    def extra_repr(self):
        return "n=2, m=3"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Linear()
        self.second = Linear(3, 3, bias=False)
        self.tied = Linear()
        self.tied.weight = self.first.weight
        self.register_buffer("count", cg.zeros(()))
        self.register_buffer("cache", cg.zeros(2), persistent=False)

    def forward(self, x):
        return self.second(self.first(x))


def test_assignment_before_init_is_refused():
    class Early(nn.Module):
        def __init__(self, value):
            self.value = value

    with pytest.raises(AttributeError, match=r"^cannot assign module before Module.__init__\(\) call$"):
        Early(Linear())
    with pytest.raises(AttributeError, match=r"^cannot assign parameters before Module.__init__\(\) call$"):
        Early(nn.Parameter(cg.zeros(1)))
    with pytest.raises(AttributeError, match=r"^cannot assign buffer before Module.__init__\(\) call$"):
        Early(nn.Buffer(cg.zeros(1)))


def test_only_a_parameter_may_take_a_parameters_place():
    m = Linear()
    with pytest.raises(TypeError) as e:
        m.weight = cg.zeros(3, 2)
    text = "cannot assign 'torch.FloatTensor' as parameter 'weight' (torch.nn.Parameter or None expected)"
    assert str(e.value) == text
    m.weight = None
    assert m.weight is None and "weight" in m._parameters


def test_only_a_module_may_take_a_modules_place():
    m = Net()
    with pytest.raises(TypeError, match=r"^cannot assign 'int' as child module 'first' \(torch.nn.Module or None"):
        m.first = 3
    m.first = None
    assert [name for name, _ in m.named_children()] == ["second", "tied"]


def test_only_a_tensor_may_take_a_buffers_place():
    m = Net()
    with pytest.raises(TypeError, match=r"^cannot assign 'float' as buffer 'count' \(torch.nn.Buffer, torch.Tensor or"):
        m.count = 1.0
    m.count = cg.ones(())
    assert m._buffers["count"].item() == 1


@pytest.mark.parametrize(
    ("name", "error", "text"),
    [
        ("a.b", KeyError, 'parameter name can\'t contain "."'),
        ("", KeyError, 'parameter name can\'t be empty string ""'),
        (3, TypeError, "parameter name should be a string. Got int"),
        ("forward", KeyError, "attribute 'forward' already exists"),
    ],
)
def test_a_bad_parameter_name_is_refused(name, error, text):
    with pytest.raises(error) as e:
        Linear().register_parameter(name, nn.Parameter(cg.zeros(1)))
    assert e.value.args[0] == text


def test_bad_buffers_and_modules_are_refused():
    m = Linear()
    with pytest.raises(KeyError, match="attribute 'weight' already exists"):
        m.register_buffer("weight", cg.zeros(1))
    with pytest.raises(TypeError, match=r"^cannot assign 'int' object to buffer 'x' \(torch Tensor or None required\)"):
        m.register_buffer("x", 3)
    with pytest.raises(TypeError, match="^int is not a Module subclass$"):
        m.add_module("x", 3)
    with pytest.raises(KeyError) as e:
        m.add_module("x.y", Linear())
    assert e.value.args[0] == 'module name can\'t contain ".", got: x.y'
    with pytest.raises(TypeError, match=r"^cannot assign 'torch.FloatTensor' object to parameter 'x'"):
        m.register_parameter("x", cg.zeros(1))


def test_a_computed_tensor_is_no_parameter():
    computed = cg.ones(2, requires_grad=True) * 2
    computed._is_param = True
    with pytest.raises(ValueError, match="^Cannot assign non-leaf Tensor to parameter 'x'. Model parameters must be"):
        Linear().register_parameter("x", computed)


def test_init_takes_no_arguments():
    with pytest.raises(TypeError, match=r"^Module.__init__\(\) got an unexpected keyword argument 'x'$"):
        nn.Module(x=1)
    with pytest.raises(TypeError, match=r"^Module.__init__\(\) takes 1 positional argument but 2 were given$"):
        nn.Module(1)


def test_forward_is_required():
    with pytest.raises(NotImplementedError, match=r'^Module \[Module\] is missing the required "forward" function$'):
        nn.Module()(1)


def test_an_unknown_attribute_is_named():
    with pytest.raises(AttributeError, match="^'Linear' object has no attribute 'wieght'$"):
        getattr(Linear(), "wieght")


def test_names_are_in_order_and_tied_parameters_come_once():
    m = Net()
    assert [n for n, _ in m.named_parameters()] == ["first.weight", "first.bias", "second.weight", "tied.bias"]
    both = [n for n, _ in m.named_parameters(remove_duplicate=False)]
    assert both == ["first.weight", "first.bias", "second.weight", "tied.weight", "tied.bias"]
    assert [n for n, _ in m.named_parameters(prefix="net", recurse=False)] == []
    assert [n for n, _ in m.named_buffers()] == ["count", "cache"]
    assert [n for n, _ in m.named_modules()] == ["", "first", "second", "tied"]
    assert len(list(m.parameters())) == 4


def test_an_attribute_may_change_its_kind():
    m = Linear()
    del m.weight
    m.weight = cg.zeros(1)
    assert "weight" not in m._parameters and m.weight.shape == (1,)
    m.weight = nn.Parameter(cg.zeros(2))
    assert list(m._parameters) == ["bias", "weight"]
    m.weight = Linear() if m._parameters.pop("weight") is not None else None
    assert list(m._modules) == ["weight"] and list(m._parameters) == ["bias"]
    del m.weight
    assert not hasattr(m, "weight")


def test_the_registries_and_the_attributes_never_disagree():
    m = Net()
    other = nn.Parameter(cg.zeros(1))
    m.first._parameters["weight"] = other
    assert m.first.weight is other
    del m.first._parameters["weight"]
    assert not hasattr(m.first, "weight")
    m._modules = {"second": m.second}
    assert not hasattr(m, "first") and m.second is m._modules["second"]
    m._buffers.clear()
    assert not hasattr(m, "count")
    m._modules.update(x=Linear())
    assert m.x is m._modules.setdefault("x") and m._modules.popitem()[0] == "x" and not hasattr(m, "x")


def test_a_plain_attribute_in_front_of_a_parameter_hides_it():
    m = Linear()
    kept = m.weight
    m.__dict__["weight"] = 5
    assert m.weight == 5 and list(m.parameters())[0] is kept
    del m.__dict__["weight"]
    assert m.weight is kept


def test_submodules_are_found_by_their_full_name():
    m = Net()
    m.deep = nn.Sequential(Linear(), nn.Sequential(Linear()))
    assert m.get_submodule("deep.1.0") is m.deep[1][0] and m.get_submodule("") is m
    assert m.get_parameter("deep.1.0.weight") is m.deep[1][0].weight
    assert m.get_buffer("count") is m.count
    with pytest.raises(AttributeError, match="^Net has no attribute `nothing`$"):
        m.get_submodule("nothing.x")
    with pytest.raises(AttributeError, match="^`count` is not an nn.Module$"):
        m.get_submodule("count")
    with pytest.raises(AttributeError, match="^`count` is not an nn.Parameter$"):
        m.get_parameter("count")
    with pytest.raises(AttributeError, match="^`weight` is not a buffer$"):
        m.get_buffer("first.weight")
    new = Linear()
    m.set_submodule("deep.1.0", new)
    assert m.deep[1][0] is new
    with pytest.raises(AttributeError, match="^Net has no attribute `no`$"):
        m.set_submodule("no", new, strict=True)
    with pytest.raises(ValueError, match="^Cannot set the submodule without a target name!$"):
        m.set_submodule("", new)


def test_plain_lists_of_modules_are_warned_of_once():
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [Linear(), Linear()]
            self.names = ["a", "b"]
            self.kept = nn.ModuleList([Linear()])
            self.alias = [self.kept[0]]

    m = Holder()
    with pytest.warns(UserWarning, match="Holder.layers is a plain list with 2 module.* Use nn.ModuleList"):
        found = list(m.parameters())
    assert len(found) == 2
    assert len(list(m.parameters())) == 2


def test_apply_visits_children_first_and_returns_the_module():
    seen = []
    m = Net()
    assert m.apply(lambda module: seen.append(type(module).__name__)) is m
    assert seen == ["Linear", "Linear", "Linear", "Net"]


def test_train_and_eval_reach_every_module():
    m = Net()
    assert m.eval() is m and not m.second.training
    m.train()
    assert m.second.training
    with pytest.raises(ValueError, match="^training mode is expected to be boolean$"):
        m.train(1)


def test_requires_grad_reaches_every_parameter():
    m = Net().requires_grad_(False)
    assert not any(p.requires_grad for p in m.parameters())


def test_zero_grad_drops_or_zeroes():
    m = Linear()
    m(cg.ones(1, 2)).sum().backward()
    m.zero_grad(set_to_none=False)
    assert m.weight.grad.tolist() == [[0.0, 0.0]] * 3
    m.zero_grad()
    assert m.weight.grad is None


def test_conversion_keeps_the_parameters_and_converts_gradients_and_buffers():
    m = Net()
    m.register_buffer("steps", cg.zeros(1, dtype=cg.int64))
    m(cg.ones(1, 2)).sum().backward()
    before = list(m.parameters())
    assert m.double() is m
    assert all(p is q for p, q in zip(m.parameters(), before))
    assert m.first.weight.dtype is cg.float64 and m.first.weight.grad.dtype is cg.float64
    assert m.count.dtype is cg.float64 and m.steps.dtype is cg.int64
    assert m.tied.weight is m.first.weight
    assert m.to(cg.float16).first.weight.dtype is cg.float16
    assert m.to("cpu", cg.float32).first.weight.dtype is cg.float32
    assert m.to(cg.zeros(1, dtype=cg.float64)).count.dtype is cg.float64
    assert m.to(dtype=cg.float32, non_blocking=True).count.dtype is cg.float32
    assert m.float().half().bfloat16().second.weight.dtype is cg.bfloat16
    with pytest.raises(TypeError, match="^nn.Module.to only accepts floating point or complex dtypes, but got desired"):
        m.to(cg.int32)


def test_conversion_moves_the_values():
    m = Linear()
    with cg.no_grad():
        m.weight.copy_(cg.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    assert m.double().weight.tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def test_an_optimizer_made_before_a_conversion_still_updates():
    m = Linear()
    weight = m.weight
    m.double()
    with cg.no_grad():
        weight.add_(1.0)
    assert m.weight.sum().item() == 12.0


def test_to_empty_keeps_shapes():
    m = Linear().to_empty(device="cpu")
    assert m.weight.shape == (3, 2) and isinstance(m.weight, nn.Parameter)


def test_repr_is_indented_by_depth():
    m = nn.Sequential(Linear(), nn.Sequential(Linear()))
    assert repr(m) == ("Sequential(\n  (0): Linear(n=2, m=3)\n  (1): Sequential(\n    (0): Linear(n=2, m=3)\n  )\n)")
    assert repr(nn.Module()) == "Module()"

    class Two(nn.Module):
        def extra_repr(self):
            return "a=1\nb=2"

    assert repr(Two()) == "Two(\n  a=1\n  b=2\n)"


def test_deepcopy_and_pickle_keep_ties_and_registries():
    m = Net()
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert other.tied.weight is other.first.weight and other.first.weight is not m.first.weight
        assert other.first.weight.tolist() == m.first.weight.tolist()
        other.first._parameters["weight"] = nn.Parameter(cg.zeros(1))
        assert other.first.weight.shape == (1,) and m.first.weight.shape == (3, 2)
        assert [n for n, _ in other.named_buffers()] == ["count", "cache"]
        assert list(other.state_dict()) == list(m.state_dict())


def test_a_deep_copied_parameter_has_no_gradient():
    m = Linear()
    m(cg.ones(1, 2)).sum().backward()
    assert copy.deepcopy(m).weight.grad is None


def test_a_shallow_copy_does_not_write_into_the_first():
    m = Net()
    other = copy.copy(m)
    other.first = Linear(5, 5)
    assert m.first.weight.shape == (3, 2) and other.first.weight.shape == (5, 5)


def test_a_module_is_freed_without_the_collector():
    gc.disable()
    try:
        m = Net()
        gone = weakref.ref(m)
        del m
        assert gone() is None
    finally:
        gc.enable()


def test_dir_lists_what_is_registered():
    assert {"first", "count", "forward"} <= set(dir(Net()))
    assert "0" not in dir(nn.Sequential(Linear()))


def test_a_parameter_honours_requires_grad_and_shares_memory():
    data = cg.zeros(2)
    with cg.no_grad():
        p = nn.Parameter(data)
    assert p.requires_grad and p.is_leaf and p.data_ptr() == data.data_ptr()
    assert not nn.Parameter(data, requires_grad=False).requires_grad
    assert repr(p) == "Parameter containing:\ntensor([0., 0.], requires_grad=True)"
    with pytest.raises(RuntimeError, match="^Only Tensors of floating point and complex dtype can require gradients$"):
        nn.Parameter(cg.zeros(2, dtype=cg.int64))
    assert nn.Parameter().shape == (0,)
    assert type(p * 1) is cg.Tensor and not isinstance(p * 1, nn.Parameter)


def test_a_parameter_of_a_tensor_subclass_keeps_the_class():
    class Marked(cg.Tensor):
        pass

    p = nn.Parameter(cg.ones(2).as_subclass(Marked))
    assert type(p) is Marked and isinstance(p, nn.Parameter) and p.requires_grad
    m = nn.Module()
    m.p = p
    assert list(m.parameters()) == [p] or list(m.parameters())[0] is p


def test_a_buffer_registers_itself():
    m = nn.Module()
    m.kept = nn.Buffer(cg.ones(2))
    m.lost = nn.Buffer(cg.ones(2), persistent=False)
    assert list(m._buffers) == ["kept", "lost"] and list(m.state_dict()) == ["kept"]
    assert isinstance(m.kept, nn.Buffer) and not isinstance(cg.ones(2), nn.Buffer)


def test_uninitialized_parameters_refuse_to_be_used():
    p = nn.UninitializedParameter(dtype=cg.float64)
    assert repr(p) == "<UninitializedParameter>" and p.dtype is cg.float64 and p.requires_grad
    with pytest.raises(RuntimeError, match="^Can't access the shape of an uninitialized parameter or buffer."):
        getattr(p, "shape")
    with pytest.raises(ValueError, match="^Attempted to use an uninitialized parameter"):
        p + 1
    assert type(copy.deepcopy(p)) is nn.UninitializedParameter
    p.data = p.half().data
    p.materialize((2, 3))
    assert type(p) is nn.Parameter and p.shape == (2, 3) and p.dtype is cg.float16 and p.requires_grad


@pytest.mark.peer
def test_repr_and_names_are_pytorchs():
    torch = pytest.importorskip("torch")

    def build(lib):
        m = lib.Sequential()
        m.add_module("inner", lib.ModuleList([lib.Sequential(), lib.Sequential(), lib.ModuleDict()]))
        m.add_module("rnn", lib.LSTM(3, 4, 2, batch_first=True, bidirectional=True))
        m.add_module("list", lib.ParameterList())
        return m

    ours, theirs = build(nn), build(torch.nn)
    assert repr(ours) == repr(theirs)
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert re.sub(r"\d", "", repr(ours)) and np.array_equal(
        [tuple(p.shape) for p in ours.parameters()][0], [tuple(p.shape) for p in theirs.parameters()][0]
    )
