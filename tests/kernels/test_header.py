"""Headers of kernels: read, held to their form, and made into launches."""

import ml_dtypes
import numpy as np
import pytest

from cudagrad.backend import emulator
from cudagrad.backend.kernels.header import FIELDS, OPTIONAL, HeaderError, entries, expression, parse, value
from cudagrad.backend.kernels.launch import Unfit, plan
from cudagrad.backend.kernels.path import kernels_path

FILES = sorted(p.name for p in kernels_path().glob("*.cu"))

TEXT = """/*
twice                     y = 2 x

math     y[i] = 2 * x[i]
source   arithmetic
shapes   x, y: T[N]   s: float[N,3] or null
where    P = min(power2(N), 256)
launch   grid = ceil(N, P)   block = P   shared = 4 * P
bytes    2 * N * size_T
flops    N
limits   1 <= N and N < 2**31
used by  this test
*/
extern "C" __global__ void twice(const T* x, T* y, const float* s, int N, double k) {
}
"""


@pytest.mark.parametrize("file", FILES)
def test_every_entry_has_a_header_of_all_fields(file):
    found = entries(file)
    assert found
    for entry in found.values():
        assert set(FIELDS) - OPTIONAL <= set(entry.fields) and entry.title


@pytest.mark.parametrize("file", FILES)
def test_what_uses_a_kernel_exists_and_names_it(file):
    """``used by`` names files of the package, each with ops in it."""
    for entry in entries(file).values():
        for word in entry.fields["used by"].replace(",", " ").split():
            if "/" in word:
                path, text = word, (kernels_path().parent / word).read_text(encoding="utf-8")
            else:
                assert f"def {word}(" in text, f"{entry.name}: {path} has no {word}"


def planned(**changes):
    x = np.ones(300, changes.pop("dtype", np.float32))
    given = {"x": x, "y": np.empty_like(x), "k": 1, **changes}
    return plan_of(parse("twice.cu", TEXT)["twice"], given)


def plan_of(entry, given):
    import cudagrad.backend.kernels.launch as module

    before = module.entries
    module.entries = lambda file: {entry.name: entry}
    try:
        return plan(entry.file, entry.name, given, emulator.address, 4)
    finally:
        module.entries = before


def test_geometry_and_cost_come_from_the_header():
    made = planned()
    assert (made.grid, made.block, made.shared) == ((2, 1, 1), (256, 1, 1), 1024)
    assert made.cost("bytes") == 2400 and made.cost("flops") == 300
    assert dict(made.macros)["CG_T"] == "float"
    assert dict(planned(dtype=np.float64).macros) == {"CG_T": "double", "CG_W": "double", "CG_A": "double"}
    assert dict(planned(dtype=ml_dtypes.bfloat16).macros)["CG_T"] == "__nv_bfloat16"


def test_arguments_stand_in_the_entrys_order_and_have_its_widths():
    x, y, s, n, k = planned().arguments
    assert s is None and x.shape == y.shape
    assert (n.dtype, n) == (np.int32, 300) and (k.dtype, k) == (np.float64, 1)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"y": None}, TypeError, "argument y is missing"),
        ({"y": np.empty(299, "f4")}, ValueError, r"argument y has shape \(299,\), and must be \[N\] with N = 300"),
        ({"y": np.empty((300, 1), "f4")}, ValueError, r"argument y has shape \(300, 1\), and must be \[N\]"),
        ({"y": np.empty(300, "f8")}, TypeError, "argument y is float64, where T is float32"),
        ({"y": np.empty(600, "f4")[::2]}, ValueError, "argument y must be C-contiguous"),
        ({"s": np.empty((300, 3), "f8")}, TypeError, "argument s is float64, and must be float"),
        ({"s": np.empty((300, 2), "f4")}, ValueError, r"argument s has shape .* with 3 = 3"),
        ({"y": 3.0}, TypeError, "argument y must be an array, not float"),
        ({"k": None}, TypeError, "argument k is missing"),
        ({"N": 299}, ValueError, "argument N is 299, and 300 by the arrays' shapes"),
        ({"z": 1}, TypeError, "has no argument z"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(changes, error, words):
    with pytest.raises(error, match=words):
        planned(**changes)


def test_a_number_too_large_for_its_parameter_is_refused():
    x = np.ones(4, "f4")
    entry = parse("twice.cu", TEXT.replace("double k", "int k"))["twice"]
    with pytest.raises(ValueError, match="argument k = 2147483648 does not fit into int"):
        plan_of(entry, {"x": x, "y": x.copy(), "k": 2**31})


def test_the_name_of_an_array_that_may_be_null_says_whether_it_is_given():
    entry = parse("twice.cu", TEXT.replace("2 * N * size_T", "(2 + 3 * s) * N * 4"))["twice"]
    x = np.ones(10, "f4")
    given = {"x": x, "y": x.copy(), "k": 1}
    assert plan_of(entry, given).cost("bytes") == 80
    assert plan_of(entry, {**given, "s": np.ones((10, 3), "f4")}).cost("bytes") == 200


def test_outside_the_limits_the_kernel_declines_and_says_why():
    with pytest.raises(Unfit, match=r"twice: outside its limits \(1 <= N and N < 2\*\*31\) with N = 0"):
        planned(x=np.empty(0, "f4"), y=np.empty(0, "f4"))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("flops    N\n", "", "lacks flops"),
        ("void twice", "void thrice", "below the header of twice must stand"),
        ("x, y: T[N]", "x: T[N]", "shapes of twice does not give the array y"),
        ("x, y: T[N]", "x, y, z: T[N]", "shapes of twice names z, which is no array of it"),
        ("x, y: T[N]", "x, y: float[N]", "x of twice is T\\* in the signature and float in shapes"),
        ("double k", "size_t k", "k of twice has type size_t"),
        ("block = P ", "", "launch of twice must read"),
        ("ceil(N, P)", "open(N)", "may use numbers, letters"),
        ("power2(N)", "N.bit_length()", "may use numbers, letters"),
        ("ceil(N, P)", "ceil(N,", "is no expression"),
        ("*/\n", "stray\n*/\n", "a line that belongs to no field: 'stray'"),
    ],
)
def test_a_header_that_does_not_fit_its_entry_is_refused(before, after, words):
    with pytest.raises(HeaderError, match=words):
        parse("twice.cu", TEXT.replace(before, after))


def test_an_entry_without_header_is_refused():
    with pytest.raises(HeaderError, match="thrice has no header"):
        parse("twice.cu", TEXT + '\nextern "C" __global__ void thrice(int n) {\n}\n')


def test_expressions_of_headers():
    letters = {"N": 1000, "C": 33}
    for text, expected in [("ceil(N, C)", 31), ("power2(C)", 64), ("power2(1)", 1), ("(N, 2)", (1000, 2))]:
        assert value(expression(text, "test"), letters) == expected
    assert value(expression("8 if C % 8 == 0 and N > 1 else 1", "test"), letters) == 1


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("grid = ceil(N, P)   block = 2048", r"a block of \(2048, 1, 1\) is not of 1 to 1024 threads"),
        ("grid = ceil(N, P)   block = 0", r"a block of \(0, 1, 1\) is not of 1 to 1024 threads"),
        ("grid = ceil(N, P)   block = (1, 1, 65)", r"a block of \(1, 1, 65\) is not of"),
        ("grid = (1, 65536)   block = P", r"a grid of \(1, 65536, 1\) is not of 1 to"),
        ("grid = N / 7   block = P", r"grid is \(42\.8.*,\), which is not whole; ceil\(a, b\) rounds up"),
    ],
)
def test_a_launch_that_no_gpu_takes_is_shown_as_the_header_has_it(part, words):
    entry = parse("twice.cu", TEXT.replace("grid = ceil(N, P)   block = P", part))["twice"]
    with pytest.raises(ValueError, match=r"twice: launch grid = .* with N = 300, P = 256: " + words):
        plan_of(entry, {"x": np.ones(300, "f4"), "y": np.ones(300, "f4"), "k": 1})


def test_shared_memory_has_an_end():
    entry = parse("twice.cu", TEXT.replace("shared = 4 * P", "shared = 2**20"))["twice"]
    with pytest.raises(ValueError, match="0 to 232448 bytes of shared memory, not 1048576"):
        plan_of(entry, {"x": np.ones(300, "f4"), "y": np.ones(300, "f4"), "k": 1})


def test_a_number_that_is_not_whole_is_no_int():
    entry = parse("twice.cu", TEXT.replace("double k", "int k"))["twice"]
    with pytest.raises(ValueError, match="argument k = 2.5 is not whole, and int is"):
        plan_of(entry, {"x": np.ones(4, "f4"), "y": np.ones(4, "f4"), "k": 2.5})
