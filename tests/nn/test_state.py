"""What a module saves and loads: keys, aliases, versions, errors, hooks."""

import collections

import pytest

import cudagrad as cg
from cudagrad import nn


class Linear(nn.Module):
    def __init__(self, n=2, m=3):
        super().__init__()
        self.weight = nn.Parameter(cg.ones(m, n))
        self.bias = nn.Parameter(cg.zeros(m))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Linear(), Linear()
        self.b.weight = self.a.weight
        self.register_buffer("count", cg.zeros(()))
        self.register_buffer("cache", cg.zeros(2), persistent=False)
        self.register_buffer("absent", None)


def message(module, state, **options):
    with pytest.raises(RuntimeError) as e:
        module.load_state_dict(state, **options)
    return str(e.value)


def test_the_state_dict_aliases_and_is_detached():
    m = Net()
    state = m.state_dict()
    assert list(state) == ["count", "a.weight", "a.bias", "b.weight", "b.bias"]
    assert not state["a.weight"].requires_grad and state["a.weight"].data_ptr() == state["b.weight"].data_ptr()
    with cg.no_grad():
        m.a.weight.fill_(7.0)
    assert state["a.weight"][0, 0].item() == 7.0
    assert m.state_dict(keep_vars=True)["a.weight"] is m.a.weight
    assert list(m.a.state_dict(prefix="x.")) == ["x.weight", "x.bias"]


def test_the_metadata_holds_the_versions():
    class Versioned(Linear):
        _version = 3

    m = nn.Sequential(Versioned(), Linear())
    assert dict(m.state_dict()._metadata) == {"": {"version": 1}, "0": {"version": 3}, "1": {"version": 1}}


def test_a_given_destination_is_filled():
    into = collections.OrderedDict(x=1)
    assert Linear().state_dict(destination=into, prefix="p.") is into
    assert list(into) == ["x", "p.weight", "p.bias"]
    with pytest.warns(FutureWarning, match="^Positional args are being deprecated"):
        assert list(Linear().state_dict(collections.OrderedDict(), "q.")) == ["q.weight", "q.bias"]


def test_loading_copies_the_values_and_keeps_the_tensors():
    m, n = Net(), Net()
    with cg.no_grad():
        m.a.weight.fill_(5.0)
    kept = n.a.weight
    assert repr(n.load_state_dict(m.state_dict())) == "<All keys matched successfully>"
    assert n.a.weight is kept and kept[0, 0].item() == 5.0 and kept.requires_grad
    assert n.a.weight.data_ptr() != m.a.weight.data_ptr()


def test_missing_and_unexpected_keys_have_pytorchs_words():
    state = Linear().state_dict()
    del state["bias"]
    assert message(Linear(), state) == (
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias". '
    )
    state["extra"] = state["more.x"] = cg.ones(1)
    assert message(Linear(), state) == (
        'Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: "bias". '
        '\n\tUnexpected key(s) in state_dict: "extra", "more.x". '
    )
    missing, unexpected = Linear().load_state_dict(state, strict=False)
    assert missing == ["bias"] and unexpected == ["extra", "more.x"]


def test_keys_below_a_missing_submodule_are_unexpected():
    state = nn.Sequential(Linear(), Linear()).state_dict()
    assert nn.Sequential(Linear()).load_state_dict(state, strict=False).unexpected_keys == ["1.weight", "1.bias"]


def test_a_size_mismatch_has_pytorchs_words_even_when_not_strict():
    assert message(nn.Sequential(Linear(2, 3)), nn.Sequential(Linear(4, 3)).state_dict(), strict=False) == (
        "Error(s) in loading state_dict for Sequential:\n\tsize mismatch for 0.weight: copying a param with shape "
        "torch.Size([3, 4]) from checkpoint, the shape in current model is torch.Size([3, 2])."
    )


def test_what_is_no_tensor_is_refused():
    state = dict(Linear().state_dict(), bias=3)
    assert message(Linear(), state) == (
        'Error(s) in loading state_dict for Linear:\n\tWhile copying the parameter named "bias", expected torch.Tensor '
        "or Tensor-like object from checkpoint but received <class 'int'>"
    )
    with pytest.raises(TypeError, match=r"^Expected state_dict to be dict-like, got <class 'list'>\.$"):
        Linear().load_state_dict([])


def test_one_element_loads_into_a_0d_tensor():
    m = Net()
    state = m.state_dict()
    state["count"] = cg.tensor([4.0])
    m.load_state_dict(state)
    assert m.count.shape == () and m.count.item() == 4.0


def test_loading_casts_to_the_modules_dtype():
    m = Linear()
    m.load_state_dict({k: v.double() for k, v in m.state_dict().items()})
    assert m.weight.dtype is cg.float32


def test_assign_takes_the_tensors_themselves():
    m = Linear().requires_grad_(False)
    state = {"weight": cg.zeros(3, 2, dtype=cg.float64), "bias": nn.Parameter(cg.ones(3))}
    m.load_state_dict(state, assign=True)
    assert m.weight.data_ptr() == state["weight"].data_ptr() and m.weight.dtype is cg.float64
    assert isinstance(m.weight, nn.Parameter) and not m.weight.requires_grad
    assert m.bias is state["bias"] and not m.bias.requires_grad


def test_extra_state_travels_under_its_key():
    class Extra(nn.Module):
        value = 1

        def get_extra_state(self):
            return {"value": self.value}

        def set_extra_state(self, state):
            self.value = state["value"]

    m = nn.Sequential(Extra())
    m[0].value = 5
    state = m.state_dict()
    assert state["0._extra_state"] == {"value": 5}
    n = nn.Sequential(Extra())
    n.load_state_dict(state)
    assert n[0].value == 5
    assert n.load_state_dict({}, strict=False).missing_keys == ["0._extra_state"]
    assert nn.Sequential(nn.Module()).load_state_dict(state, strict=False).unexpected_keys == ["0._extra_state"]


def test_the_load_of_one_module_may_be_overridden():
    class Renamed(Linear):
        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            if local_metadata.get("version", None) is None:
                state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    m = nn.Sequential(Renamed())
    given = {"0.w": cg.zeros(3, 2), "0.bias": cg.ones(3)}
    m.load_state_dict(given)
    assert m[0].weight.sum().item() == 0 and list(given) == ["0.w", "0.bias"]


def test_hooks_see_saving_and_loading():
    seen = []
    m = nn.Sequential(Linear())
    m[0].register_state_dict_pre_hook(lambda module, prefix, keep_vars: seen.append(("pre", prefix, keep_vars)))

    def post(module, state, prefix, metadata):
        state[prefix + "more"] = cg.ones(1)

    m[0].register_state_dict_post_hook(post)
    state = m.state_dict()
    assert seen == [("pre", "0.", False)] and list(state) == ["0.weight", "0.bias", "0.more"]
    with pytest.raises(RuntimeError, match="^Cannot register the same function as the state dict post hook"):
        m._register_state_dict_hook(post)

    def before(module, state_dict, prefix, metadata, strict, missing, unexpected, errors):
        seen.append(type(module).__name__)
        del state_dict[prefix + "more"]

    m[0].register_load_state_dict_pre_hook(before)
    m.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    del state["0.bias"]
    m.load_state_dict(state)
    assert seen[-1] == "Linear"


def test_a_post_hook_must_return_nothing():
    m = Linear()
    handle = m.register_state_dict_post_hook(lambda *args: 1)
    with pytest.raises(RuntimeError, match="^state_dict post-hook must return None$"):
        m.state_dict()
    handle.remove()
    m._register_state_dict_hook(lambda module, state, prefix, metadata: {"only": 1})
    assert m.state_dict() == {"only": 1}
    m.register_load_state_dict_post_hook(lambda module, keys: 1)
    with pytest.raises(AssertionError, match="are not expected to return new values"):
        m.load_state_dict(Linear().state_dict())
