"""Random numbers: the published vectors of Philox, its contract, the distributions, and the generators' state."""

import math
import pickle
import threading

import numpy as np
import pytest

import cudagrad as cg
from cudagrad.backend import philox, variates
from cudagrad.core.generator import Generator, fork_rng, generator_of

N = 1 << 17
MASK = 0xFFFFFFFF


@pytest.fixture(autouse=True)
def seeded():
    with fork_rng():
        cg.manual_seed(20)
        yield


# ---- the bits


def definition(counter, key):
    """Philox4x32-10 on Python integers, line for line as the paper has it."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & MASK, (p0 >> 32) ^ c3 ^ k1, p0 & MASK
        k0, k1 = (k0 + 0x9E3779B9) & MASK, (k1 + 0xBB67AE85) & MASK
    return c0, c1, c2, c3


KNOWN = [  # kat_vectors of the Random123 distribution: counter, key, output of philox4x32 with 10 rounds
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


@pytest.mark.parametrize("counter, key, output", KNOWN)
def test_mixing_gives_the_published_vectors(counter, key, output):
    c, k, x = ([int(word, 16) for word in row.split()] for row in (counter, key, output))
    assert definition(c, k) == tuple(x)
    a, b = np.array([c[0] << 32 | c[1]], "u8"), np.array([c[2] << 32 | c[3]], "u8")
    words = np.empty(2, "u8")
    philox.mix(np, a, b, np.empty_like(a), np.empty_like(a), k[0] | k[1] << 32, 0, words)
    assert [int(w) for w in words] == [x[0] << 32 | x[1], x[2] << 32 | x[3]]


def stream(seed, offset, j):
    """The four words of counter j in the order of the contract."""
    counter = offset & MASK, j % 4096, offset >> 32, j // 4096
    x = definition(counter, (seed & MASK, seed >> 32))
    return x[1], x[0], x[3], x[2]


@pytest.mark.parametrize("count", [1, 16, 17, 256, 257, 4000, 16384, 16387, 4 * 16384, 9 * 16384 + 77])
def test_number_i_is_the_one_that_the_contract_names(count):
    """For every way of making them: ahead, part of a row, full rows, blocks of rows and what is left over."""
    seed, offset = 0x123456789ABCDEF0, (7 << 32) + 70
    numbers = philox.bits(np, seed, offset, count, 32)
    for i in {0, 1, 2, 3, count // 3, count // 2, count - 2, count - 1} & set(range(count)):
        assert numbers[i] == stream(seed, offset, i // 4)[i % 4]


@pytest.mark.parametrize("seed, offset", [(0, 0), (2**64 - 1, 2**64 - 1), (1 << 32, 255), (5, 1 << 32)])
def test_all_widths_read_one_stream(seed, offset):
    words = np.array([stream(seed, offset, j) for j in range(100)], "<u4").ravel()
    for width in (16, 32, 64):
        expected = words.view(f"<u{width // 8}")
        for count in (3, 100, expected.size):
            assert np.array_equal(philox.bits(np, seed, offset, count, width), expected[:count])


def test_a_reader_may_start_another_call_between_two_blocks():
    inner, got = philox.bits(np, 2, 0, 50000, 32), []
    for start, words in philox.blocks(np, 1, 0, 200000, 32):
        assert np.array_equal(philox.bits(np, 2, 0, 50000, 32), inner)
        got.append((start, words.copy()))
    assert np.array_equal(np.concatenate([w for _, w in got]), philox.bits(np, 1, 0, 200000, 32))


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.999, 1.0])
def test_decisions_of_dropout_are_16_bit_comparisons(p):
    kept = philox.kept(np, 3, 4, 1000, p)
    assert np.array_equal(kept, philox.bits(np, 3, 4, 1000, 16) >= round(p * 65536))


@pytest.mark.parametrize("count", [1, 7, 131072, 131080, 300001])
def test_decisions_asked_for_again_are_the_same_whether_kept_or_not(count):
    """First made, then read from the bits that were kept, then made again."""
    expected = philox.bits(np, 8, 9, count, 16) >= round(0.3 * 65536)
    for _ in range(3):
        assert np.array_equal(philox.kept(np, 8, 9, count, 0.3), expected)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.003])
def test_decisions_fall_as_often_as_their_probability_says(p):
    keep = philox.kept(np, 1, 1, 1 << 20, p)
    assert abs(keep.mean() - (1 - p)) < 5 * math.sqrt(p * (1 - p) / keep.size)


def test_the_oldest_decisions_make_room():
    recent = philox._Recent(100)
    for i in range(5):
        recent.put(i, np.zeros(40, "u1"))
    assert [i for i in range(5) if recent.pop(i) is not None] == [3, 4]
    recent.put(0, np.zeros(101, "u1"))
    assert recent.pop(0) is None and recent._bytes == 0


# ---- the numbers made of them


@pytest.mark.parametrize("form", [variates.SINGLE, variates.DOUBLE])
def test_the_logarithm_is_within_two_roundings(form):
    u = np.concatenate([np.linspace(0, 1, 20001)[1:], 2.0 ** -np.arange(1, 32), 1 - 2.0 ** -np.arange(4, 23)])
    u = u.astype(form.real)
    work = np.empty((3, u.size), form.real)
    got = variates.log_times(np, -1, u.copy(), *work, form)
    exact = -np.log(u.astype(np.longdouble))
    assert (np.abs(got - exact) <= 2 * np.finfo(form.real).eps * exact).all()


@pytest.mark.parametrize("form", [variates.SINGLE, variates.DOUBLE])
def test_directions_lie_evenly_on_the_unit_circle(form):
    words = philox.bits(np, 1, 2, N, form.width)
    work = np.empty((4, N), form.real)
    variates._circle(np, words, *work, form)
    cos, sin = work[2].astype(np.float64), work[3].astype(np.float64)
    assert np.abs(cos**2 + sin**2 - 1).max() < 4 * np.finfo(form.real).eps
    assert even(np.floor((np.arctan2(sin, cos) / (2 * np.pi) + 0.5) * 64).astype(int) % 64, np.full(64, 1 / 64))


def even(values, chances, sigmas=5):
    """Whether the chi-square statistic of counted values lies within 5 sigma of what their chances let expect."""
    chances = np.asarray(chances)
    keep = chances * len(values) >= 20
    counts = np.bincount(values, minlength=len(chances))[: len(chances)][keep]
    rest = len(values) - counts.sum(), 1 - chances[keep].sum()
    expected = chances[keep] * len(values)
    statistic, freedom = ((counts - expected) ** 2 / expected).sum(), keep.sum() - 1
    if rest[1] * len(values) >= 20:
        statistic += (rest[0] - rest[1] * len(values)) ** 2 / (rest[1] * len(values))
        freedom += 1
    return abs(statistic - freedom) <= sigmas * math.sqrt(2 * max(freedom, 1)) + 5


def follows(values, distribution):
    """Whether the largest gap to a continuous distribution function is below what chance exceeds once in 10^5 times."""
    x = np.sort(np.asarray(values, np.float64).ravel())
    cdf = np.array([distribution(v) for v in x[:: max(1, len(x) // 4096)]])
    seen = np.arange(0, len(x), max(1, len(x) // 4096)) / len(x)
    return np.abs(cdf - seen).max() < 2.5 / math.sqrt(len(x))


def gauss(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


DTYPES = [cg.float32, cg.float64, cg.float16, cg.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_uniform_numbers_fill_the_unit_interval_and_never_reach_one(dtype):
    u = cg.rand(N, dtype=dtype).to(cg.float64).numpy()
    assert 0 <= u.min() and u.max() < 1
    assert abs(u.mean() - 0.5) < 0.003 and abs(u.var() - 1 / 12) < 0.001
    assert even(np.floor(u * 64).astype(int), np.full(64, 1 / 64))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_uniform_range_stays_below_its_end(dtype):
    """1 + u rounds to 2 for the largest u of float32: half of them would for the 8 bits of bfloat16."""
    u = cg.empty(N, dtype=dtype).uniform_(1, 2).to(cg.float64).numpy()
    assert 1 <= u.min() and u.max() < 2
    assert (cg.empty(5).uniform_(3, 3).numpy() == 3).all()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_normal_numbers_follow_the_normal_distribution(dtype):
    z = cg.randn(N, dtype=dtype).to(cg.float64).numpy()
    assert abs(z.mean()) < 0.01 and abs(z.std() - 1) < 0.01
    assert abs((z**3).mean()) < 0.05 and abs((z**4).mean() - 3) < 0.1
    if dtype in (cg.float32, cg.float64):
        assert follows(z, gauss)
        assert abs(np.mean(z[0::2] * z[1::2])) < 0.02 and abs(np.mean(z[0::2] ** 2 * z[1::2] ** 2) - 1) < 0.05


def test_complex_normal_numbers_have_variance_one_in_all():
    z = cg.randn(N, dtype=cg.complex64).numpy()
    assert abs(np.mean(np.abs(z) ** 2) - 1) < 0.02 and abs(np.mean(z.real * z.imag)) < 0.01
    assert abs(np.var(z.real) - 0.5) < 0.01


CONTINUOUS = {
    "exponential_": ((2.5,), lambda x: 1 - math.exp(-2.5 * x)),
    "cauchy_": ((1.0, 2.0), lambda x: 0.5 + math.atan((x - 1) / 2) / math.pi),
    "log_normal_": ((0.5, 0.75), lambda x: gauss((math.log(x) - 0.5) / 0.75)),
    "normal_": ((-3.0, 0.25), lambda x: gauss((x + 3) / 0.25)),
    "uniform_": ((-1.0, 3.0), lambda x: (x + 1) / 4),
}


@pytest.mark.parametrize("dtype", [cg.float32, cg.float64], ids=str)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_in_place_forms_follow_their_distribution(name, dtype):
    parameters, distribution = CONTINUOUS[name]
    x = getattr(cg.empty(N, dtype=dtype), name)(*parameters)
    assert x.dtype is dtype
    assert follows(x.numpy(), distribution)


def test_exponential_numbers_are_never_zero():
    assert (cg.empty(N).exponential_().numpy() > 0).all()
    top = np.full(4, MASK, "u4")
    u = variates.positive(np, top, np.empty(4, "f4"), variates.SINGLE)
    assert (np.minimum(u, np.float32(variates.SINGLE.below_one)) < 1).all()


def poisson_chances(rate):
    k = np.arange(int(rate + 12 * math.sqrt(rate)) + 20)
    return np.exp(k * math.log(rate) - rate - np.array([math.lgamma(v + 1) for v in k]))


@pytest.mark.parametrize("rate", [0.3, 4.0, 9.99, 10.0, 55.0, 3000.0])
def test_poisson_numbers_have_the_chances_of_the_formula(rate):
    k = cg.poisson(cg.full((N,), rate, dtype=cg.float64)).numpy().astype(int)
    assert even(k, poisson_chances(rate))
    assert (cg.poisson(cg.zeros(100)).numpy() == 0).all()


@pytest.mark.parametrize("n, p", [(1, 0.3), (10, 0.5), (10, 0.95), (200, 0.02), (200, 0.4), (200, 0.8)])
def test_binomial_numbers_have_the_chances_of_the_formula(n, p):
    k = cg.binomial(cg.full((N,), float(n), dtype=cg.float64), cg.full((N,), p, dtype=cg.float64)).numpy().astype(int)
    assert 0 <= k.min() and k.max() <= n
    assert even(k, [math.comb(n, v) * p**v * (1 - p) ** (n - v) for v in range(n + 1)])


def test_binomial_numbers_of_certain_outcomes_are_certain():
    assert cg.binomial(cg.tensor([5.0, 5.0, 0.0]), cg.tensor([0.0, 1.0, 0.5])).tolist() == [0.0, 5.0, 0.0]


def test_geometric_numbers_count_trials_up_to_the_first_success():
    k = cg.empty(N, dtype=cg.int64).geometric_(0.3).numpy()
    assert k.min() == 1
    assert even(k, [0.0, *(0.3 * 0.7 ** (v - 1) for v in range(1, 60))])


@pytest.mark.parametrize("low, high", [(0, 1), (-5, 5), (0, 2**21 + 1), (-(2**40), 2**40), (-(2**63), 2**63 - 1)])
def test_integers_are_equally_likely_within_their_bounds(low, high):
    x = cg.randint(low, high, (N,)).numpy()
    assert low <= x.min() and x.max() < high
    place = (x.astype(object) - low) * min(high - low, 32) // (high - low)
    assert even(place.astype(int), np.full(min(high - low, 32), 1 / min(high - low, 32)))


@pytest.mark.parametrize("dtype, top", [(cg.uint8, 255), (cg.int8, 127), (cg.bool, 1), (cg.float32, 2**24)], ids=str)
def test_integers_without_bounds_reach_the_largest_that_the_dtype_holds(dtype, top):
    x = cg.empty(N, dtype=dtype).random_().to(cg.float64).numpy()
    assert 0 <= x.min() and top * 0.999 <= x.max() <= top


def test_unsigned_integers_of_64_bits_use_all_of_them():
    x = cg.empty(N, dtype=cg.uint64).random_().numpy()
    assert x.max() > 0.999 * 2**64 and x.dtype == np.uint64


def test_every_order_of_a_permutation_is_equally_likely():
    orders = [tuple(cg.randperm(3).tolist()) for _ in range(3000)]
    index = {order: i for i, order in enumerate(sorted(set(orders)))}
    assert len(index) == 6
    assert even(np.array([index[o] for o in orders]), np.full(6, 1 / 6))
    assert sorted(cg.randperm(10007).tolist()) == [*range(10007)]
    assert cg.randperm(0).shape == (0,) and cg.randperm(1).tolist() == [0]


def test_bernoulli_follows_each_of_its_probabilities():
    p = cg.tensor([0.0, 0.25, 0.9, 1.0], dtype=cg.float64)
    means = cg.bernoulli(p.expand(N, 4)).numpy().mean(0)
    assert means[0] == 0 and means[3] == 1
    assert abs(means[1] - 0.25) < 0.01 and abs(means[2] - 0.9) < 0.01
    x = cg.empty(N, dtype=cg.bool).bernoulli_(0.75)
    assert x.dtype is cg.bool and abs(x.numpy().mean() - 0.75) < 0.01
    assert cg.empty(2, 3).bernoulli_(cg.tensor([0.0, 1.0, 1.0])).tolist() == [[0.0, 1.0, 1.0]] * 2


P = np.array([0.1, 0.0, 0.3, 0.2, 0.4, 0.0])


@pytest.mark.parametrize("replacement, samples", [(True, 1), (True, 5), (False, 1), (False, 4)])
def test_multinomial_draws_in_proportion_and_never_what_has_no_chance(replacement, samples):
    x = cg.multinomial(cg.tensor(np.tile(3 * P, (20000, 1))), samples, replacement).numpy()
    assert x.shape == (20000, samples)
    assert even(x[:, 0], P) and (P[x] > 0).all()
    if replacement:
        assert even(x[:, -1], P)
    else:
        assert all(len(set(row)) == samples for row in x[:500])


def test_multinomial_without_replacement_draws_the_second_from_what_is_left():
    x = cg.multinomial(cg.tensor(np.tile(P, (20000, 1))), 2).numpy()
    second = [sum(P[a] * P[b] / (1 - P[a]) for a in range(6) if a != b) for b in range(6)]
    assert even(x[:, 1], second)


def test_multinomial_gives_categories_without_chance_only_when_the_others_are_out():
    assert cg.multinomial(cg.tensor([0.0, 1.0]), 2).tolist() == [1, 0]


def test_samples_pass_no_gradient_but_stay_in_the_graph():
    mean, std = cg.zeros(3, requires_grad=True), cg.ones(2, 3, requires_grad=True)
    x = cg.normal(mean, std)
    x.backward(cg.full((2, 3), math.inf))
    assert mean.grad.tolist() == [0.0] * 3 and std.grad.tolist() == [[0.0] * 3] * 2
    for sample in (cg.bernoulli, cg.poisson):
        p = cg.full((3,), 0.5, requires_grad=True)
        sample(p).backward(cg.ones(3))
        assert p.grad.tolist() == [0.0] * 3


def test_normal_takes_tensors_and_numbers_in_every_combination():
    assert cg.normal(5.0, cg.tensor([0.0, 0.0])).tolist() == [5.0, 5.0]
    assert cg.normal(cg.tensor([1.0, 2.0]), 0.0).tolist() == [1.0, 2.0]
    assert cg.normal(cg.tensor([1.0, 2.0])).shape == (2,)
    assert cg.normal(cg.zeros(2, 1), cg.ones(3)).shape == (2, 3)
    assert cg.normal(cg.arange(2.0), cg.ones(2, dtype=cg.float64)).dtype is cg.float32
    assert cg.normal(0, 1, (2, 3), dtype=cg.float64).dtype is cg.float64


# ---- what they depend on


@pytest.mark.parametrize("dtype", [cg.float32, cg.float64], ids=str)
@pytest.mark.parametrize("name", ["uniform", "normal", "exponential", "cauchy"])
def test_a_shorter_call_is_the_beginning_of_a_longer_one(name, dtype):
    """Small calls are made ahead, others in blocks: number i is the same in all."""
    make = getattr(variates, name)
    long = make(np, 9, 77, 150001, dtype.numpy)
    for count in (1, 2, 7, 16, 31, 64, 255, 300, 20001, 150000):
        assert np.array_equal(make(np, 9, 77, count, dtype.numpy), long[:count])


def test_contents_do_not_depend_on_the_layout_of_the_tensor():
    def filled(x):
        cg.manual_seed(1)
        return x.normal_().numpy()

    plain = filled(cg.empty(4, 6))
    assert np.array_equal(plain, filled(cg.empty(6, 4).t()))
    assert np.array_equal(plain, filled(cg.empty(4, 12)[:, ::2]))
    cg.manual_seed(1)
    assert np.array_equal(plain, cg.randn_like(cg.empty(6, 4).t()).numpy())
    cg.manual_seed(1)
    assert np.array_equal(plain, cg.randn(4, 6, out=cg.empty(0)).numpy())


def test_a_seed_fixes_all_numbers_and_a_call_takes_one_offset():
    cg.manual_seed(5)
    first = cg.rand(3), cg.randn(2), cg.randperm(9), cg.randint(0, 9, (4,))
    assert cg.default_generator.get_offset() == 4
    cg.manual_seed(5)
    again = cg.rand(3), cg.randn(2), cg.randperm(9), cg.randint(0, 9, (4,))
    assert all(a.tolist() == b.tolist() for a, b in zip(first, again))
    assert cg.rand(3).tolist() != first[0].tolist()
    cg.manual_seed(6)
    assert cg.rand(3).tolist() != first[0].tolist()


def test_a_generator_of_its_own_leaves_the_default_one_alone():
    g = Generator().manual_seed(5)
    cg.manual_seed(5)
    expected = cg.rand(3).tolist()
    before = cg.default_generator.get_offset()
    assert cg.rand(3, generator=g).tolist() == expected
    assert cg.empty(3).uniform_(generator=g).tolist() != expected
    assert g.get_offset() == 2 and cg.default_generator.get_offset() == before


def test_state_is_sixteen_bytes_that_bring_the_numbers_back():
    cg.rand(3)
    state = cg.get_rng_state()
    assert state.dtype is cg.uint8 and state.shape == (16,)
    expected = cg.randn(5).tolist()
    cg.set_rng_state(state)
    assert cg.randn(5).tolist() == expected
    g = Generator()
    g.set_state(state)
    assert cg.randn(5, generator=g).tolist() == expected
    for other in (pickle.loads(pickle.dumps(g)), g.clone_state()):
        assert cg.rand(2, generator=other).tolist() == cg.rand(2, generator=g.clone_state()).tolist()


def test_fork_rng_puts_the_state_back_also_after_an_error():
    state = cg.get_rng_state().tolist()
    with fork_rng():
        cg.rand(3)
    with pytest.raises(ZeroDivisionError), fork_rng():
        cg.manual_seed(1)
        raise ZeroDivisionError
    assert cg.get_rng_state().tolist() == state
    with fork_rng(enabled=False):
        cg.rand(3)
    assert cg.get_rng_state().tolist() != state


def test_seeds_are_kept_as_pytorch_keeps_them():
    assert Generator().initial_seed() == 67280421310721
    assert cg.manual_seed(-1).initial_seed() == 2**64 - 1 == cg.initial_seed()
    drawn = cg.seed()
    assert 0 <= drawn < 2**64 and cg.initial_seed() == drawn
    with pytest.raises(ValueError, match="^Overflow when unpacking long long"):
        cg.manual_seed(2**64)
    with pytest.raises(RuntimeError, match="^manual_seed expected a long, but got float"):
        Generator().manual_seed(1.5)
    with pytest.raises(TypeError, match="^RNG state must be a torch.ByteTensor"):
        cg.set_rng_state(cg.zeros(16))
    with pytest.raises(TypeError, match="^expected a torch.ByteTensor, but got list"):
        cg.set_rng_state([1])
    with pytest.raises(RuntimeError, match="^RNG state is wrong size"):
        cg.set_rng_state(cg.zeros(3, dtype=cg.uint8))


def test_a_generator_of_another_device_is_refused():
    with pytest.raises(RuntimeError, match="^Expected a 'cpu' device type for generator but found 'cuda'"):
        cg.rand(2, generator=Generator("cuda"))
    with pytest.raises(TypeError, match="argument 'generator' must be torch.Generator, not int"):
        cg.rand(2, generator=3)


def test_all_devices_start_from_one_seed():
    cg.manual_seed(11)
    assert generator_of(cg.device("cuda:3")).draw() == (11, 0)
    assert generator_of(cg.device("cpu")).draw() == (11, 0)


def test_threads_never_share_an_offset():
    g, taken = Generator(), []

    def draw():
        taken.extend(g.draw()[1] for _ in range(2000))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(taken) == [*range(8000)]


# ---- what they refuse


def long():
    return cg.ones(2, dtype=cg.int64)


REFUSED = [
    (lambda: cg.rand(2, dtype=cg.int64), NotImplementedError, "\"check_uniform_bounds\" not implemented for 'Long'"),
    (lambda: cg.randn(2, dtype=cg.int64), NotImplementedError, "\"normal_kernel_cpu\" not implemented for 'Long'"),
    (lambda: cg.rand(-1), RuntimeError, "Trying to create tensor with negative dimension -1: [-1]"),
    (lambda: cg.randint(3, 2), TypeError, "randint(): argument 'size' (position 2) must be tuple of ints, not int"),
    (lambda: cg.randint(2.5, (2,)), TypeError, "argument 'high' (position 1) must be int, not float"),
    (
        lambda: cg.randint(3, 3, (2,)),
        RuntimeError,
        "random_ expects 'from' to be less than 'to', but got from=3 >= to=3",
    ),
    (lambda: cg.randint(0, 300, (2,), dtype=cg.uint8), RuntimeError, "to - 1 is out of bounds for unsigned char"),
    (lambda: cg.empty(2, dtype=cg.uint8).random_(-1, 3), RuntimeError, "from is out of bounds for unsigned char"),
    (lambda: cg.randperm(-1), RuntimeError, "Trying to create tensor with negative dimension -1: [-1]"),
    (lambda: cg.randperm(300, dtype=cg.uint8), RuntimeError, "value cannot be converted to type uint8_t without"),
    (lambda: cg.randperm(3, dtype=cg.bool), NotImplementedError, "\"randperm\" not implemented for 'Bool'"),
    (lambda: cg.normal(0.0, -1.0, (2,)), RuntimeError, "normal expects std >= 0.0, but found std -1"),
    (lambda: cg.normal(cg.zeros(2), cg.full((2,), -1.0)), RuntimeError, "normal expects all elements of std >= 0.0"),
    (lambda: cg.normal(cg.arange(2)), NotImplementedError, "\"normal_kernel_cpu\" not implemented for 'Long'"),
    (
        lambda: cg.bernoulli(cg.tensor([1.5])),
        RuntimeError,
        "Expected p_in >= 0 && p_in <= 1 to be true, but got false.",
    ),
    (lambda: cg.bernoulli(long()), NotImplementedError, "\"bernoulli_tensor_cpu_p_\" not implemented for 'Long'"),
    (lambda: cg.empty(2).bernoulli_(1.5), RuntimeError, "bernoulli_ expects p to be in [0, 1], but got p=1.5"),
    (
        lambda: cg.multinomial(cg.ones(2), 3),
        RuntimeError,
        "cannot sample n_sample > prob_dist.size(-1) samples without",
    ),
    (lambda: cg.multinomial(cg.ones(2), 0), RuntimeError, "cannot sample n_sample <= 0 samples"),
    (
        lambda: cg.multinomial(cg.tensor([-1.0, 2.0]), 1),
        RuntimeError,
        "probability tensor contains either `inf`, `nan` ",
    ),
    (
        lambda: cg.multinomial(cg.zeros(2), 1),
        RuntimeError,
        "invalid multinomial distribution (sum of probabilities <= 0)",
    ),
    (lambda: cg.multinomial(cg.tensor(1.0), 1), RuntimeError, "prob_dist must be 1 or 2 dim"),
    (
        lambda: cg.multinomial(long(), 1),
        RuntimeError,
        "multinomial only supports floating-point dtypes for input, got: L",
    ),
    (lambda: cg.poisson(cg.tensor([-1.0])), RuntimeError, "invalid Poisson rate, expected rate to be non-negative"),
    (
        lambda: cg.empty(2).uniform_(2, 1),
        RuntimeError,
        "uniform_ expects to return a [from, to) range, but found from=2",
    ),
    (lambda: cg.empty(2).uniform_(0, math.inf), RuntimeError, "to is out of bounds for float"),
    (lambda: long().normal_(), NotImplementedError, "\"normal_kernel_cpu\" not implemented for 'Long'"),
    (lambda: cg.empty(2).exponential_(0), RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=0"),
    (lambda: long().exponential_(), RuntimeError, "Exponential distribution is a continuous probability distribution."),
    (lambda: cg.empty(2).geometric_(1), RuntimeError, "geometric_ expects p to be in (0, 1), but got p=1"),
    (lambda: cg.empty(2).log_normal_(1, -1), RuntimeError, "log_normal_ expects std > 0.0, but found std=-1"),
    (lambda: cg.empty(2).cauchy_(0, 0), RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma=0"),
]


@pytest.mark.parametrize("call, kind, line", REFUSED, ids=[line[:40] for _, _, line in REFUSED])
def test_what_cannot_be_is_refused_in_pytorchs_words(call, kind, line):
    before = cg.default_generator.get_offset()
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value).startswith(line) or line in str(caught.value).split("\n")[0]
    assert cg.default_generator.get_offset() == before, "an error takes no numbers"


def test_a_leaf_that_wants_a_gradient_is_not_filled_and_a_fill_counts_as_a_write():
    x = cg.ones(2, requires_grad=True)
    with pytest.raises(
        RuntimeError, match="^a leaf Variable that requires grad is being used in an in-place operation."
    ):
        x.uniform_()
    assert x.tolist() == [1.0, 1.0]
    with cg.no_grad():
        assert x.uniform_() is x
    assert x._version == 1


def test_integers_past_the_precision_of_a_float_warn():
    with pytest.warns(UserWarning, match=r"^to - 1 is out of bounds \[-\(2\^24\), 2\^24\]"):
        cg.randint(0, 2**24 + 2, (2,), dtype=cg.float32)
