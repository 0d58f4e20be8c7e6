"""The module paths that public programs import from."""

import importlib

import pytest

import cudagrad as cg
from cudagrad import nn

PATHS = {
    "nn.modules": "Module",
    "nn.modules.activation": "ReLU MultiheadAttention Softmax",
    "nn.modules.batchnorm": "_BatchNorm BatchNorm2d LazyBatchNorm1d SyncBatchNorm",
    "nn.modules.container": "Sequential ModuleList ParameterDict",
    "nn.modules.conv": "_ConvNd Conv2d LazyConv2d ConvTranspose2d",
    "nn.modules.distance": "CosineSimilarity PairwiseDistance",
    "nn.modules.dropout": "Dropout Dropout2d",
    "nn.modules.flatten": "Flatten Unflatten",
    "nn.modules.fold": "Fold Unfold",
    "nn.modules.instancenorm": "InstanceNorm2d",
    "nn.modules.lazy": "LazyModuleMixin",
    "nn.modules.linear": "Linear Identity LazyLinear NonDynamicallyQuantizableLinear",
    "nn.modules.loss": "_Loss CrossEntropyLoss",
    "nn.modules.module": "Module register_module_forward_hook _IncompatibleKeys",
    "nn.modules.normalization": "LayerNorm GroupNorm RMSNorm",
    "nn.modules.padding": "ZeroPad2d",
    "nn.modules.pixelshuffle": "PixelShuffle",
    "nn.modules.pooling": "MaxPool2d AdaptiveAvgPool2d",
    "nn.modules.rnn": "RNNBase LSTM",
    "nn.modules.sparse": "Embedding EmbeddingBag",
    "nn.modules.transformer": "Transformer",
    "nn.modules.upsampling": "Upsample",
    "nn.modules.utils": "_single _pair _triple _ntuple",
    "nn.parameter": "Parameter Buffer UninitializedParameter is_lazy",
    "nn.parallel": "DataParallel data_parallel",
    "nn.utils.clip_grad": "clip_grad_norm_",
    "nn.utils.rnn": "pack_padded_sequence PackedSequence",
    "nn.utils.stateless": "functional_call",
    "nn.utils.parametrize": "register_parametrization",
    "nn.utils.parametrizations": "orthogonal",
    "nn.utils.weight_norm": "weight_norm WeightNorm",
    "nn.utils.spectral_norm": "spectral_norm SpectralNorm",
    "nn.utils.prune": "l1_unstructured",
    "nn.utils.fusion": "fuse_conv_bn_eval",
    "nn.init": "kaiming_normal_",
    "func": "functional_call",
}


@pytest.mark.parametrize("path", PATHS)
def test_the_path_has_its_names(path):
    module = importlib.import_module("cudagrad." + path)
    for name in PATHS[path].split():
        assert hasattr(module, name), f"{path}.{name}"
        if path.startswith("nn.modules.") and hasattr(nn, name):
            assert getattr(module, name) is getattr(nn, name)


@pytest.mark.peer
def test_no_public_name_of_pytorchs_nn_is_missing():
    torch = pytest.importorskip("torch")
    # What is newer than 2.12, for quantised numbers, or a part of another function.
    not_here = {"LinearCrossEntropyLoss", "LinearCrossEntropyOptions", "ScalingType", "SwizzleType"}
    not_here |= {"assert_int_or_pair", "grouped_mm", "scaled_grouped_mm", "scaled_mm"}
    not_here |= {f"{kind}_max_pool{n}d_with_indices" for kind in ("adaptive", "fractional") for n in (1, 2, 3)}
    theirs = {n for n in torch.nn.modules.__all__} - not_here
    assert sorted(n for n in theirs if not hasattr(nn, n)) == []
    functions = [
        n
        for n, f in vars(torch.nn.functional).items()
        if callable(f) and not n.startswith("_") and getattr(f, "__module__", "").startswith("torch.nn.functional")
    ]
    assert sorted(n for n in functions if not hasattr(nn.functional, n) and n not in not_here) == []


def test_numbers_become_tuples():
    from cudagrad.nn.modules import utils

    assert utils._pair(3) == (3, 3) and utils._triple([1, 2, 3]) == (1, 2, 3) and utils._single(4) == (4,)
    assert utils._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert utils._list_with_default([None, 5], [7, 8, 9]) == [8, 5]


def test_factory_keywords():
    assert nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": cg.float64}}) == {
        "device": "cpu",
        "dtype": cg.float64,
    }
    with pytest.raises(TypeError, match="^unexpected kwargs {'x'}$"):
        nn.factory_kwargs({"x": 1})
    with pytest.raises(TypeError, match="^device specified twice, in ..kwargs and in factory_kwargs$"):
        nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"device": "cpu"}})


def test_data_parallel_is_the_module_itself_on_one_device():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(cg.tensor(2.0))

        def forward(self, x, more=0):
            return x * self.w + more

    m = nn.DataParallel(Twice(), device_ids=[0])
    assert m(cg.tensor(3.0), more=1).item() == 7.0 and list(m.state_dict()) == ["module.w"] and m.device_ids == [0]
    assert nn.parallel.data_parallel(m.module, cg.tensor(3.0), module_kwargs={"more": 2}).item() == 8.0
    with pytest.raises(NotImplementedError, match="^DataParallel runs on one device here, got device_ids="):
        nn.DataParallel(Twice(), device_ids=[0, 1])
    with pytest.raises(RuntimeError, match="^The stateless API can't be used with nn.DataParallel module$"):
        cg.func.functional_call(m, {}, cg.tensor(1.0))
