"""Bad input: PyTorch's exception and its first line, found on PyTorch 2.13, and nothing changed by what failed."""

# ruff: noqa: E501  a row stands on its line, whole texts of PyTorch too

import numpy as np
import pytest

import cudagrad as torch
from cudagrad import nn

F = nn.functional
o, z, t = torch.ones, torch.zeros, torch.tensor
i64, i32, f64 = torch.int64, torch.int32, torch.float64
NAMES = {"torch": torch, "nn": nn, "F": F, "np": np, "o": o, "z": z, "t": t, "i64": i64, "i32": i32, "f64": f64}

# what is called, the exception, its first line
CALLS = [
    # shapes
    ('o(2, 3) @ o(2, 3)', RuntimeError, 'mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)'),
    ('o(2, 3) @ o(4)', RuntimeError, 'size mismatch, got input (2), mat (2x3), vec (4)'),
    ('o(3) @ o(2, 3)', RuntimeError, 'mat1 and mat2 shapes cannot be multiplied (1x3 and 2x3)'),
    ('o(2, 2, 3) @ o(2, 4, 3)', RuntimeError, 'Expected size for first two dimensions of batch2 tensor to be: [2, 3] but got: [2, 4].'),
    ('o(2, 2, 3) @ o(3, 3, 2)', RuntimeError, 'The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0'),
    ('torch.mm(o(2), o(2, 2))', RuntimeError, 'self must be a matrix'),
    ('torch.mm(o(2, 3), o(2, 3))', RuntimeError, 'mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)'),
    ('torch.bmm(o(2, 3), o(2, 3, 4))', RuntimeError, 'batch1 must be a 3D tensor'),
    ('torch.bmm(o(2, 3, 4), o(3, 4, 5))', RuntimeError, 'Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [3, 4].'),
    ('torch.bmm(o(2, 3, 4), o(2, 3, 5))', RuntimeError, 'Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 3].'),
    ('torch.mv(o(2, 3), o(2))', RuntimeError, 'size mismatch, got input (2), mat (2x3), vec (2)'),
    ('torch.dot(o(2), o(3))', RuntimeError, 'inconsistent tensor size, expected tensor [2] and src [3] to have the same number of elements, but got 2 and 3 elements respectively'),
    ('torch.dot(o(2, 2), o(2))', RuntimeError, '1D tensors expected, but got 2D and 1D tensors'),
    ('torch.addmm(o(3), o(2, 2), o(2, 2))', RuntimeError, 'The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 1.  Target sizes: [2, 2].  Tensor sizes: [3]'),
    ('torch.outer(o(2, 2), o(2))', RuntimeError, 'outer: Expected 1-D argument self, but got 2-D'),
    ('F.linear(o(2, 3), o(4, 2))', RuntimeError, 'mat1 and mat2 shapes cannot be multiplied (2x3 and 2x4)'),
    ('F.linear(o(2, 3), o(4, 3), o(5))', RuntimeError, 'The expanded size of the tensor (4) must match the existing size (5) at non-singleton dimension 1.  Target sizes: [2, 4].  Tensor sizes: [5]'),
    ('o(2, 3) + o(3, 2)', RuntimeError, 'The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1'),
    ('o(2).add_(o(2, 2))', RuntimeError, "output with shape [2] doesn't match the broadcast shape [2, 2]"),
    ('o(2, 3).view(4, 2)', RuntimeError, "shape '[4, 2]' is invalid for input of size 6"),
    ('o(2, 3).view(-1, -1)', RuntimeError, 'only one dimension can be inferred'),
    ('o(2, 3).view(-1, 4)', RuntimeError, "shape '[-1, 4]' is invalid for input of size 6"),
    ('o(2, 3).reshape(7)', RuntimeError, "shape '[7]' is invalid for input of size 6"),
    ('o(2, 3).reshape(-2, 3)', RuntimeError, 'invalid shape dimension -2 at index 0 of shape [-2, 3]'),
    ('o(2, 3).t().view(6)', RuntimeError, "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."),
    ('o(2, 3).permute(0)', RuntimeError, 'permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = 2 is not equal to len(dims) = 1'),
    ('o(2, 3).permute(0, 0)', RuntimeError, 'permute(): duplicate dims are not allowed.'),
    ('o(2, 3).permute(0, 2)', IndexError, 'Dimension out of range (expected to be in range of [-2, 1], but got 2)'),
    ('o(2, 3).transpose(0, 2)', IndexError, 'Dimension out of range (expected to be in range of [-2, 1], but got 2)'),
    ('o(2, 3, 4).t()', RuntimeError, 't() expects a tensor with <= 2 dimensions, but self is 3D'),
    ('o(2, 3).expand(2)', RuntimeError, 'expand(torch.FloatTensor{[2, 3]}, size=[2]): the number of sizes provided (1) must be greater or equal to the number of dimensions in the tensor (2)'),
    ('o(2, 3).expand(3, 3)', RuntimeError, 'The expanded size of the tensor (3) must match the existing size (2) at non-singleton dimension 0.  Target sizes: [3, 3].  Tensor sizes: [2, 3]'),
    ('o(2, 3).squeeze(2)', IndexError, 'Dimension out of range (expected to be in range of [-2, 1], but got 2)'),
    ('o(2).unsqueeze(2)', IndexError, 'Dimension out of range (expected to be in range of [-2, 1], but got 2)'),
    ('o(2).unsqueeze(-3)', IndexError, 'Dimension out of range (expected to be in range of [-2, 1], but got -3)'),
    ('torch.cat([])', ValueError, 'torch.cat(): expected a non-empty list of Tensors'),
    ('torch.cat([o(2), o(2, 2)])', RuntimeError, 'Tensors must have same number of dimensions: got 1 and 2'),
    ('torch.cat([o(2, 2), o(3, 3)])', RuntimeError, 'Sizes of tensors must match except in dimension 0. Expected size 2 but got size 3 for tensor number 1 in the list.'),
    ('torch.cat([o(2)], 1)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 1)'),
    ('torch.cat([o(2), 3])', TypeError, 'expected Tensor as element 1 in argument 0, but got int'),
    ('torch.stack([])', RuntimeError, 'stack expects a non-empty TensorList'),
    ('torch.stack([o(2), o(3)])', RuntimeError, 'stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1'),
    ('torch.stack([o(2)], 3)', IndexError, 'Dimension out of range (expected to be in range of [-2, 1], but got 3)'),
    ('o(5).split(0)', RuntimeError, 'split_size can only be 0 if dimension size is 0, but got dimension size of 5'),
    ('o(5).split(-1)', RuntimeError, 'split expects split_size be non-negative, but got split_size=-1'),
    ('o(5).split([2, 2])', RuntimeError, "split_with_sizes expects split_sizes to sum exactly to 5 (input tensor's size at dimension 0), but got split_sizes=[2, 2]"),
    ('o(5).chunk(0)', RuntimeError, 'chunk expects `chunks` to be greater than 0, got: 0'),
    ('o(5).unfold(0, 6, 1)', RuntimeError, 'maximum size for tensor at dimension 0 is 5 but size is 6'),
    ('o(5).unfold(0, 2, 0)', RuntimeError, 'step is 0 but must be > 0'),
    ('o(2, 3).narrow(1, 2, 2)', RuntimeError, 'start (2) + length (2) exceeds dimension size (3).'),
    ('o(2, 3).narrow(2, 0, 1)', IndexError, 'Dimension out of range (expected to be in range of [-2, 1], but got 2)'),
    ('o(2, 3).narrow(1, 0, -1)', RuntimeError, 'narrow(): length must be non-negative.'),
    ('o(2, 3).diagonal(0, 0, 0)', RuntimeError, 'diagonal dimensions cannot be identical 0, 0'),
    ('o(2).diagonal()', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 1)'),
    ('torch.diag(o(1, 1, 1))', RuntimeError, 'diag(): Supports 1D or 2D tensors. Got 3D'),
    ('o(2).flip(1)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 1)'),
    ('o(2, 3).roll(1, 2)', IndexError, 'Dimension out of range (expected to be in range of [-2, 1], but got 2)'),
    ('o(2, 3).flatten(2)', IndexError, 'Dimension out of range (expected to be in range of [-2, 1], but got 2)'),
    ('o(2, 3).unflatten(1, (2, 2))', RuntimeError, "unflatten: Provided sizes [2, 2] don't multiply up to the size of dim 1 (3) in the input tensor"),
    ("torch.einsum('ij,jk->ik', o(2, 3), o(2, 3))", RuntimeError, 'einsum(): subscript j has size 2 for operand 1 which does not broadcast with previously seen size 3'),
    ("torch.einsum('ij->k', o(2, 3))", RuntimeError, 'einsum(): output subscript k does not appear in the equation for any input operand'),
    ("torch.einsum('ij', o(2))", RuntimeError, 'einsum(): the number of subscripts in the equation (2) does not match the number of dimensions (1) for operand 0 and no ellipsis was given'),
    ('torch.tensordot(o(2, 3), o(2, 3), 1)', RuntimeError, 'contracted dimensions need to match, but first has size 3 in dim -1 and second has size 2 in dim 0'),
    ('torch.where(t([True, False]), o(2), o(3))', RuntimeError, 'The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0'),
    ('torch.broadcast_to(o(3), (2,))', RuntimeError, 'The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 0.  Target sizes: [2].  Tensor sizes: [3]'),
    ('torch.linalg.inv(o(2, 3))', RuntimeError, 'linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices'),
    ('torch.linalg.inv(z(2, 2))', torch.linalg.LinAlgError, 'linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular.'),
    ('torch.linalg.cholesky(-torch.eye(2))', torch.linalg.LinAlgError, 'linalg.cholesky: The factorization could not be completed because the input is not positive-definite (the leading minor of order 1 is not positive-definite).'),
    ('torch.linalg.solve(o(2, 2), o(3))', RuntimeError, 'linalg.solve: Incompatible shapes of A and B for the equation AX = B (2x2 and 3x1)'),
    ('torch.cross(o(2), o(2))', RuntimeError, 'no dimension of size 3 in input'),
    ('torch.cdist(o(2, 3), o(2, 4))', RuntimeError, 'X1 and X2 must have the same number of columns. X1: 3 X2: 4'),
    ('o(2, 3).repeat(2)', RuntimeError, 'Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor'),
    ('o(2).tile(-1)', RuntimeError, 'Trying to create tensor with negative dimension -2: [-2]'),
    ('o(2).repeat_interleave(-1)', RuntimeError, 'Repeats must be non-negative'),
    # dims
    ('o(2).sum(1)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 1)'),
    ('o(2, 3).sum((0, 0))', RuntimeError, 'dim 0 appears multiple times in the list of dims'),
    ('o(2).mean(5)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 5)'),
    ('o(2).max(1)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 1)'),
    ('o(2).softmax(1)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 1)'),
    ('o(2).argmax(-2)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got -2)'),
    ('o(2).sort(1)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 1)'),
    ('o(2).topk(3)', RuntimeError, 'selected index k out of range'),
    ('o(2).topk(-1)', RuntimeError, 'selected index k out of range'),
    ('o(2).kthvalue(3)', RuntimeError, 'kthvalue(): selected number k out of range for dimension 0'),
    ('o(2).cumsum(1)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 1)'),
    ('o(2).size(1)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 1)'),
    ('o(2, 2).norm(dim=2)', IndexError, 'Dimension out of range (expected to be in range of [-2, 1], but got 2)'),
    ('o(2).select(0, 2)', IndexError, 'select(): index 2 out of range for tensor of size [2] at dimension 0'),
    ('o(2).select(1, 0)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 1)'),
    ('o(2).index_select(1, t([0]))', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 1)'),
    ('o(2).gather(1, t([0]))', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 1)'),
    ('z(2, 2, 2).squeeze((0, 3))', IndexError, 'Dimension out of range (expected to be in range of [-3, 2], but got 3)'),
    # indices
    ('o(3)[3]', IndexError, 'index 3 is out of bounds for dimension 0 with size 3'),
    ('o(3)[-4]', IndexError, 'index -4 is out of bounds for dimension 0 with size 3'),
    ('o(3, 2)[0, 2]', IndexError, 'index 2 is out of bounds for dimension 1 with size 2'),
    ('o(3)[0, 0]', IndexError, 'too many indices for tensor of dimension 1'),
    ('o(3)[t([3])]', IndexError, 'index 3 is out of bounds for dimension 0 with size 3'),
    ('o(3)[[0, 5]]', IndexError, 'index 5 is out of bounds for dimension 0 with size 3'),
    ('o(3)[t([1.0])]', IndexError, 'tensors used as indices must be long, int, byte or bool tensors'),
    ('o(3)[1.5]', IndexError, 'only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got float)'),
    ('o(3)["a"]', TypeError, "new(): invalid data type 'str'"),
    ('o(3)[None, None, 0, 0]', IndexError, 'too many indices for tensor of dimension 1'),
    ('o(3)[t([True, False])]', IndexError, 'The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [3] at index 0'),
    ('o(2, 2)[t([[True]])]', IndexError, 'The shape of the mask [1, 1] at index 0 does not match the shape of the indexed tensor [2, 2] at index 0'),
    ('o(3)[:: -1]', ValueError, 'step must be greater than zero'),
    ('t(1.0)[0]', IndexError, 'invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor to a number'),
    ('o(3)[t([0, 1]), t([0])]', IndexError, 'too many indices for tensor of dimension 1'),
    ('o(3, 3)[t([0, 1]), t([0, 1, 2])]', IndexError, 'shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]'),
    ('o(3).gather(0, t([3]))', RuntimeError, 'index 3 is out of bounds for dimension 0 with size 3'),
    ('o(3).gather(0, t([0.0]))', RuntimeError, 'gather(): Expected dtype int32/int64 for index'),
    ('o(3).gather(0, t([[0]]))', RuntimeError, 'Index tensor must have the same number of dimensions as input tensor'),
    ('o(3).scatter(0, t([3]), 1.0)', RuntimeError, 'index 3 is out of bounds for dimension 0 with size 3'),
    ('o(3).scatter(0, t([0, 1]), o(1))', RuntimeError, 'Expected index [2] to be no larger than self [3] apart from dimension 0 and to be no larger size than src [1]'),
    ('o(3).scatter_add(0, t([5]), o(1))', RuntimeError, 'index 5 is out of bounds for dimension 0 with size 3'),
    ('o(3).index_select(0, t([3]))', IndexError, 'index out of range in self'),
    ('o(3).index_select(0, t([[0]]))', IndexError, 'index_select(): Index is supposed to be a vector'),
    ('o(3).index_select(0, t([0.5]))', RuntimeError, 'index_select(): Expected dtype int32 or int64 for index'),
    ('o(3).index_add(0, t([0, 1]), o(1))', RuntimeError, 'index_add_(): Number of indices (2) should be equal to source.size(dim): (1), for dim: 0'),
    ('o(3).index_copy(0, t([3]), o(1))', IndexError, 'index_copy_(): index 3 is out of bounds for dimension 0 with size 3'),
    ('o(3).index_fill(0, t([3]), 1.0)', IndexError, 'index 3 is out of bounds for dimension 0 with size 3'),
    ('o(3).take(t([3]))', IndexError, 'out of range: tried to access index 3 on a tensor of 3 elements.'),
    ('o(3).masked_fill(t([1, 0, 1]), 0.0)', RuntimeError, 'masked_fill_ only supports boolean masks, but got mask with dtype long int'),
    ('o(3).masked_fill(t([True, False]), 0.0)', RuntimeError, 'The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0'),
    ('o(3).masked_fill(t([True, False, True]), o(2))', RuntimeError, 'masked_fill_ only supports a 0-dimensional value tensor, but got tensor with 1 dimension(s).'),
    ('o(3).masked_select(t([1, 0, 1]))', RuntimeError, 'masked_select: expected BoolTensor for mask'),
    ('o(3).masked_select(t([True, False]))', RuntimeError, 'The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0'),
    ('F.embedding(t([3]), o(3, 2))', IndexError, 'index out of range in self'),
    ('F.embedding(t([-1]), o(3, 2))', IndexError, 'index out of range in self'),
    ('F.embedding(t([0.5]), o(3, 2))', RuntimeError, "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.FloatTensor instead (while checking arguments for embedding)"),
    ('F.one_hot(t([3]), 2)', RuntimeError, 'Class values must be smaller than num_classes.'),
    ('F.one_hot(t([-1]))', RuntimeError, 'Class values must be non-negative.'),
    ('F.one_hot(t([0.5]))', RuntimeError, 'one_hot is only applicable to index tensor of type LongTensor.'),
    ('torch.bincount(t([-1]))', RuntimeError, 'bincount only supports 1-d non-negative integral inputs.'),
    ('torch.bincount(t([0.5]))', NotImplementedError, '"bincount_cpu" not implemented for \'Float\''),
    # dtypes
    ('o(2, 2) @ o(2, 2, dtype=f64)', RuntimeError, 'expected m1 and m2 to have the same dtype, but got: float != double'),
    ('F.linear(o(2, 2), o(2, 2, dtype=f64))', RuntimeError, 'expected m1 and m2 to have the same dtype, but got: float != double'),
    ('o(2, dtype=i64).mean()', RuntimeError, 'mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long'),
    ('o(2, dtype=i64).softmax(0)', NotImplementedError, '"softmax_lastdim_kernel_impl" not implemented for \'Long\''),
    ('o(2, dtype=i64).std()', RuntimeError, 'std and var only support floating point and complex dtypes'),
    ('o(2, dtype=i64).requires_grad_()', RuntimeError, 'only Tensors of floating point dtype can require gradients'),
    ('o(2, dtype=i64).norm()', RuntimeError, 'linalg.vector_norm: Expected a floating point or complex tensor as input. Got Long'),
    ('o(2, dtype=torch.bool) - 1', RuntimeError, 'Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.'),
    ('-o(2, dtype=torch.bool)', RuntimeError, 'Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.'),
    ('~o(2)', TypeError, '~ (operator.invert) is only implemented on integer and Boolean-type tensors'),
    ('o(2) & 1', NotImplementedError, '"bitwise_and_cpu" not implemented for \'Float\''),
    ('o(2) << 1', NotImplementedError, '"lshift_cpu" not implemented for \'Float\''),
    ('o(2, dtype=i64) ** -1', RuntimeError, 'Integers to negative integer powers are not allowed.'),
    ('o(2, dtype=i64).add_(1.5)', RuntimeError, "result type Float can't be cast to the desired output type Long"),
    ('o(2, dtype=i64).exp_()', RuntimeError, "result type Float can't be cast to the desired output type Long"),
    ('o(2, dtype=i64).uniform_(0, 1)', NotImplementedError, '"check_uniform_bounds" not implemented for \'Long\''),
    ('torch.arange(3, dtype=torch.bool)', NotImplementedError, '"arange_cpu" not implemented for \'Bool\''),
    ("t([1, 2], dtype='float32')", TypeError, "tensor(): argument 'dtype' must be torch.dtype, not str"),
    ('o(2, dtype=float).add(o(2, dtype=torch.complex64)).floor()', NotImplementedError, 'floor is not supported for complex inputs'),
    ('o(2, dtype=torch.complex64) < 1', NotImplementedError, '"lt_cpu" not implemented for \'ComplexFloat\''),
    ('o(2, dtype=torch.complex64).max()', NotImplementedError, '"max_all" not implemented for \'ComplexFloat\''),
    ('o(2, dtype=torch.complex64).sort()', RuntimeError, ' Sort does not support complex dtypes on CPU'),
    ('F.dropout(o(2, dtype=i64), 0.5)', RuntimeError, "result type Float can't be cast to the desired output type Long"),
    ('F.layer_norm(o(2, dtype=i64), (2,))', NotImplementedError, '"LayerNormKernelImpl" not implemented for \'Long\''),
    ('torch.bernoulli(o(2, dtype=i64))', NotImplementedError, '"bernoulli_tensor_cpu_p_" not implemented for \'Long\''),
    ('torch.randint(3, 1, (2,))', RuntimeError, "random_ expects 'from' to be less than 'to', but got from=3 >= to=1"),
    ('torch.randn(2, dtype=i64)', NotImplementedError, '"normal_kernel_cpu" not implemented for \'Long\''),
    ('torch.rand(2, dtype=i64)', NotImplementedError, '"check_uniform_bounds" not implemented for \'Long\''),
    ('torch.normal(0.0, -1.0, (2,))', RuntimeError, 'normal expects std >= 0.0, but found std -1'),
    ('torch.bernoulli(t([1.5]))', RuntimeError, 'Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message be improved?  If so, please report an enhancement request to PyTorch.)'),
    ('torch.multinomial(o(3), 5)', RuntimeError, 'cannot sample n_sample > prob_dist.size(-1) samples without replacement'),
    ('torch.multinomial(t([-1.0, 2.0]), 1)', RuntimeError, 'probability tensor contains either `inf`, `nan` or element < 0'),
    ('torch.multinomial(z(2), 1)', RuntimeError, 'invalid multinomial distribution (sum of probabilities <= 0)'),
    ('torch.randperm(-1)', RuntimeError, 'Trying to create tensor with negative dimension -1: [-1]'),
    ('o(-1)', RuntimeError, 'Trying to create tensor with negative dimension -1: [-1]'),
    ('z(2, -3)', RuntimeError, 'zeros: Dimension size must be non-negative.'),
    ('o(1.5)', TypeError, "ones(): argument 'size' (position 1) must be tuple of ints, not float"),
    ('o("a")', TypeError, "ones(): argument 'size' (position 1) must be tuple of ints, not str"),
    ('torch.eye(-1)', RuntimeError, 'n must be greater or equal to 0, got -1'),
    ('torch.linspace(0, 1, -1)', RuntimeError, 'number of steps must be non-negative'),
    ('torch.arange(0, 3, 0)', RuntimeError, 'step must be nonzero'),
    ('torch.arange(3, 0, 1)', RuntimeError, 'upper bound and lower bound inconsistent with step sign'),
    ('torch.full((2,), None)', TypeError, "full(): argument 'fill_value' (position 2) must be Number, not NoneType"),
    ('t([[1], [1, 2]])', ValueError, 'expected sequence of length 1 at dim 1 (got 2)'),
    ('t([1, "a"])', TypeError, "new(): invalid data type 'str'"),
    ('t("abc")', TypeError, "new(): invalid data type 'str'"),
    ('t([None])', RuntimeError, 'Could not infer dtype of NoneType'),
    ('t(object())', RuntimeError, 'Could not infer dtype of object'),
    ('torch.from_numpy([1, 2])', TypeError, 'expected np.ndarray (got list)'),
    ('torch.from_numpy(np.array(["a"]))', TypeError, "can't convert np.ndarray of type numpy.str_. The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."),
    ('torch.from_numpy(np.ones(3)[::-1])', ValueError, 'At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. (You can probably work around this by making a copy of your array  with array.copy().) '),
    # devices
    ('o(2, device="cpu:x")', RuntimeError, "Invalid device string: 'cpu:x'"),
    ('o(2, device="")', RuntimeError, 'Device string must not be empty'),
    ('torch.device("cuda:-1")', RuntimeError, "Invalid device string: 'cuda:-1'"),
    ('nn.Linear(2, 2).to(torch.int64)', TypeError, 'nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=torch.int64'),
    ('torch.device("cpu", -2)', RuntimeError, 'Device index must not be negative'),
    # losses, NaN targets, ranges
    ('F.cross_entropy(o(2, 3), t([0, 3]))', IndexError, 'Target 3 is out of bounds.'),
    ('F.cross_entropy(o(2, 3), t([0, -1]))', IndexError, 'Target -1 is out of bounds.'),
    ('F.cross_entropy(o(2, 3), t([0, 1, 2]))', ValueError, 'Expected input batch_size (2) to match target batch_size (3).'),
    ('F.cross_entropy(o(2, 3), t([0.0, 1.0]))', RuntimeError, 'expected target dtype to be Long or Byte, but got Float'),
    ('F.cross_entropy(o(2, 3), t([0, 1], dtype=i32))', RuntimeError, 'expected target dtype to be Long or Byte, but got Int'),
    ('F.cross_entropy(o(2, 3), t([[0], [1]]))', RuntimeError, '0D or 1D target tensor expected, multi-target not supported'),
    ('F.cross_entropy(o(2, 3), t([0, 1]), weight=o(2))', RuntimeError, 'weight tensor should be defined either for all 3 classes or no classes but got weight tensor of shape: [2]'),
    ('F.cross_entropy(o(2, 3), t([0, 1]), label_smoothing=1.5)', RuntimeError, 'label_smoothing must be between 0.0 and 1.0. Got: 1.5'),
    ('F.cross_entropy(o(2, 3), t([0, 1]), reduction="avg")', ValueError, 'avg is not a valid value for reduction'),
    ('F.cross_entropy(o(2, 3), t([float("nan"), 1.0]))', RuntimeError, 'expected target dtype to be Long or Byte, but got Float'),
    ('F.nll_loss(o(2, 3), t([0, 4]))', IndexError, 'Target 4 is out of bounds.'),
    ('F.nll_loss(o(2, 3), t([0]))', ValueError, 'Expected input batch_size (2) to match target batch_size (1).'),
    ('F.nll_loss(o(()), t(0))', ValueError, 'Expected 1 or more dimensions (got 0)'),
    ('F.binary_cross_entropy(t([1.5]), t([1.0]))', RuntimeError, 'all elements of input should be between 0 and 1'),
    ('F.binary_cross_entropy(t([0.5]), t([1.0, 0.0]))', ValueError, 'Using a target size (torch.Size([2])) that is different to the input size (torch.Size([1])) is deprecated. Please ensure they have the same size.'),
    ('F.binary_cross_entropy(t([float("nan")]), t([1.0]))', RuntimeError, 'all elements of input should be between 0 and 1'),
    ('F.binary_cross_entropy_with_logits(o(2), o(3))', ValueError, 'Target size (torch.Size([3])) must be the same as input size (torch.Size([2]))'),
    ('F.mse_loss(o(2), o(3))', RuntimeError, 'The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0'),
    ('F.mse_loss(o(2), o(2), reduction="x")', ValueError, 'x is not a valid value for reduction'),
    ('F.l1_loss(o(2), o(3))', RuntimeError, 'The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0'),
    ('F.smooth_l1_loss(o(2), o(2), beta=-1)', RuntimeError, 'smooth_l1_loss does not support negative values for beta.'),
    ('F.huber_loss(o(2), o(2), delta=0)', RuntimeError, 'huber_loss does not support non-positive values for delta.'),
    ('F.margin_ranking_loss(o(2), o(2), o(2, 2))', RuntimeError, 'margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: torch.Size([2]), input2: torch.Size([2]), target: torch.Size([2, 2]) '),
    ('F.triplet_margin_loss(o(2), o(2), o(2, 2))', RuntimeError, 'The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor 1D, positive 1D, and negative 2D inputs'),
    ('F.cosine_embedding_loss(o(2), o(2), o(2))', RuntimeError, '1D target tensor expects 2D input tensors, but found inputs with sizes [2] and [2].'),
    ('F.gaussian_nll_loss(o(2), o(2), -o(2))', ValueError, 'var has negative entry/entries'),
    ('F.kl_div(o(2), o(3), reduction="sum")', RuntimeError, 'The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 0'),
    ('F.ctc_loss(o(3, 1, 2), t([[1]]), t([5]), t([1]))', RuntimeError, 'Expected input_lengths to have value at most 3, but got value 5 (while checking arguments for ctc_loss_allocate_outputs)'),
    # layers
    ('nn.Linear(2, 3)(o(4))', RuntimeError, 'mat1 and mat2 shapes cannot be multiplied (1x4 and 2x3)'),
    ('nn.Linear(2, 3)(o(1, 2, dtype=i64))', RuntimeError, 'mat1 and mat2 must have the same dtype, but got Long and Float'),
    ('nn.Linear(2)', TypeError, "Linear.__init__() missing 1 required positional argument: 'out_features'"),
    ('nn.Linear(2, 3, biass=True)', TypeError, "Linear.__init__() got an unexpected keyword argument 'biass'"),
    ('nn.Conv2d(3, 4, 3)(o(1, 2, 5, 5))', RuntimeError, 'Given groups=1, weight of size [4, 3, 3, 3], expected input[1, 2, 5, 5] to have 3 channels, but got 2 channels instead'),
    ('nn.Conv2d(3, 4, 3)(o(3, 2, 2))', RuntimeError, "Calculated padded input size per channel: (2 x 2). Kernel size: (3 x 3). Kernel size can't be greater than actual input size"),
    ('nn.Conv2d(3, 4, 3)(o(2, 2))', RuntimeError, 'Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [2, 2]'),
    ('nn.Conv2d(3, 4, 3, groups=2)', ValueError, 'in_channels must be divisible by groups'),
    ('F.conv2d(o(1, 1, 4, 4), o(1, 1, 2, 2), stride=0)', RuntimeError, 'non-positive stride is not supported'),
    ('F.conv2d(o(1, 1, 4, 4), o(1, 1, 2, 2), padding=-1)', RuntimeError, 'negative padding is not supported'),
    ('F.max_pool2d(o(1, 1, 2, 2), 3)', RuntimeError, 'Given input size: (1x2x2). Calculated output size: (1x0x0). Output size is too small'),
    ('F.max_pool2d(o(1, 1, 4, 4), 2, padding=2)', RuntimeError, 'pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 and dilation=1'),
    ('F.avg_pool2d(o(1, 1, 4, 4), 0)', RuntimeError, 'stride should not be zero'),
    ('F.adaptive_avg_pool2d(o(2), 2)', RuntimeError, 'adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got [2]'),
    ('nn.BatchNorm2d(3)(o(1, 3, 4))', ValueError, 'expected 4D input (got 3D input)'),
    ('nn.BatchNorm1d(3)(o(2, 4))', RuntimeError, 'running_mean should contain 4 elements not 3'),
    ('nn.BatchNorm1d(3)(o(1, 3))', ValueError, 'Expected more than 1 value per channel when training, got input size torch.Size([1, 3])'),
    ('nn.LayerNorm(3)(o(2, 4))', RuntimeError, 'Given normalized_shape=[3], expected input with shape [*, 3], but got input of size[2, 4]'),
    ('nn.GroupNorm(2, 3)', ValueError, 'num_channels (3) must be divisible by num_groups (2)'),
    ('nn.GroupNorm(2, 4)(o(1, 6))', RuntimeError, 'Expected weight to be a vector of size equal to the number of channels in input, but got weight of shape [4] and input of shape [1, 6]'),
    ('nn.Embedding(3, 2, padding_idx=5)', AssertionError, 'Padding_idx must be within num_embeddings'),
    ('nn.Embedding(3, 2)(o(2))', RuntimeError, "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.FloatTensor instead (while checking arguments for embedding)"),
    ('nn.Dropout(1.5)', ValueError, 'dropout probability has to be between 0 and 1, but got 1.5'),
    ('F.dropout(o(2), -0.1)', ValueError, 'dropout probability has to be between 0 and 1, but got -0.1'),
    ('nn.LSTM(2, 3)(o(4, 1, 5))', RuntimeError, 'input.size(-1) must be equal to input_size. Expected 2, got 5'),
    ('nn.LSTM(2, 3)(o(2))', ValueError, 'LSTM: Expected input to be 2D or 3D, got 1D instead'),
    ('nn.LSTM(2, 3, num_layers=0)', ValueError, 'num_layers must be greater than zero'),
    ('nn.LSTM(2, 3, dropout=2)', ValueError, 'dropout should be a number in range [0, 1] representing the probability of an element being zeroed'),
    ('nn.GRU(2, 3)(o(4, 1, 2), o(1, 2, 3))', RuntimeError, 'Expected hidden size (1, 1, 3), got [1, 2, 3]'),
    ('nn.MultiheadAttention(5, 2)', AssertionError, 'embed_dim must be divisible by num_heads'),
    ('nn.Transformer(7, 2)', AssertionError, 'embed_dim must be divisible by num_heads'),
    ('nn.Sequential(1)', TypeError, 'int is not a Module subclass'),
    ('nn.ModuleList([1])', TypeError, 'int is not a Module subclass'),
    ('nn.Sequential(nn.ReLU(), 3)', TypeError, 'int is not a Module subclass'),
    ('nn.Sequential(nn.ReLU())[3]', IndexError, 'index 3 is out of range'),
    ('nn.Parameter(o(2, dtype=i64))', RuntimeError, 'Only Tensors of floating point and complex dtype can require gradients'),
    ('nn.Module()(1)', NotImplementedError, 'Module [Module] is missing the required "forward" function'),
    ('nn.Module().foo', AttributeError, "'Module' object has no attribute 'foo'"),
    ('nn.Linear(2, 2).register_parameter("a.b", None)', KeyError, '\'parameter name can\\\'t contain "."\''),
    ('nn.Linear(2, 2).register_buffer("weight", o(1))', KeyError, '"attribute \'weight\' already exists"'),
    ('nn.Linear(2, 2).load_state_dict({"weight": o(2, 2)})', RuntimeError, 'Error(s) in loading state_dict for Linear:'),
    ('nn.Linear(2, 2).load_state_dict([1])', TypeError, "Expected state_dict to be dict-like, got <class 'list'>."),
    ('F.interpolate(o(1, 1, 4), size=2, scale_factor=2)', ValueError, 'only one of size or scale_factor should be defined'),
    ('F.interpolate(o(1, 1, 4))', ValueError, 'either size or scale_factor should be defined'),
    ('F.interpolate(o(1, 1, 4), size=2, mode="x")', NotImplementedError, 'Input Error: Only 3D, 4D and 5D input Tensors supported (got 3D) for the modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got x)'),
    ('F.pad(o(2), (1, 2, 3, 4))', RuntimeError, 'Padding length should be less than or equal to two times the input dimension but got padding length 4 and input of dimension 1'),
    ('F.pad(o(2), (1,))', RuntimeError, 'Padding length must be divisible by 2'),
    ('F.pad(o(1, 1, 2), (3, 3), mode="reflect")', RuntimeError, 'Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (3, 3) at dimension 2 of input [1, 1, 2]'),
    ('F.pad(o(2), (1, 1), mode="x")', NotImplementedError, 'Unrecognised padding mode x'),
    ('F.scaled_dot_product_attention(o(1, 2, 3), o(1, 2, 4), o(1, 2, 4))', RuntimeError, 'Expected size for first two dimensions of batch2 tensor to be: [1, 3] but got: [1, 4].'),
    ('F.scaled_dot_product_attention(o(1, 2, 3), o(1, 2, 3), o(1, 2, 3), attn_mask=o(3, 3))', RuntimeError, 'The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 2'),
    ('F.scaled_dot_product_attention(o(1, 2, 3), o(1, 2, 3), o(1, 2, 3), attn_mask=o(2, 2), is_causal=True)', RuntimeError, '_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True'),
    ('F.gelu(o(2), approximate="x")', RuntimeError, 'approximate argument must be either none or tanh.'),
    ('F.pixel_shuffle(o(1, 3, 2, 2), 2)', RuntimeError, "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but input.size(-3)=3 is not divisible by 4"),
    ('F.grid_sample(o(1, 1, 2, 2), o(1, 2, 2, 3))', RuntimeError, 'grid_sampler(): expected grid to have size 2 in last dimension, but got grid with sizes [1, 2, 2, 3]'),
    ('F.normalize(o(2), dim=1)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 1)'),
    # empty tensors
    ('z(0).max()', RuntimeError, "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."),
    ('z(0).argmax()', IndexError, 'argmax(): Expected reduction dim to be specified for input.numel() == 0.'),
    ('z(2, 0).max(1)', IndexError, 'max(): Expected reduction dim 1 to have non-zero size.'),
    ('z(0).min()', RuntimeError, "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."),
    ('z(0).item()', RuntimeError, 'a Tensor with 0 elements cannot be converted to Scalar'),
    ('z(0, 3).argmin(0)', IndexError, 'argmin(): Expected reduction dim 0 to have non-zero size.'),
    ('z(0).topk(1)', RuntimeError, 'selected index k out of range'),
    ('z(0).median(0)', IndexError, 'median(): Expected reduction dim 0 to have non-zero size.'),
    ('z(0)[0]', IndexError, 'index 0 is out of bounds for dimension 0 with size 0'),
    ('z(0).quantile(0.5)', RuntimeError, 'quantile() input tensor must be non-empty'),
    ('z(0, 2).inverse()', RuntimeError, 'linalg.inv: A must be batches of square matrices, but they are 0 by 2 matrices'),
    ('F.conv1d(z(1, 1, 0), o(1, 1, 1))', RuntimeError, "Calculated padded input size per channel: (0). Kernel size: (1). Kernel size can't be greater than actual input size"),
    # keywords and arguments
    ('torch.add(o(2), other=1, beta=2)', TypeError, "add() got an unexpected keyword argument 'beta'"),
    ('torch.exp(2)', TypeError, "exp(): argument 'input' (position 1) must be Tensor, not int"),
    ('torch.exp(o(2), 3)', TypeError, 'exp() takes 1 positional argument but 2 were given'),
    ('torch.cat(o(2), o(2))', TypeError, "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"),
    ('torch.zeros()', TypeError, 'zeros() missing 1 required positional arguments: "size"'),
    ('torch.zeros(2, dtyp=f64)', TypeError, "zeros() got an unexpected keyword argument 'dtyp'"),
    ('torch.zeros(2, dtype="float")', TypeError, "zeros(): argument 'dtype' must be torch.dtype, not str"),
    ('torch.zeros(2, dtype=1)', TypeError, "zeros(): argument 'dtype' must be torch.dtype, not int"),
    ('torch.clamp(o(2))', RuntimeError, "torch.clamp: At least one of 'min' or 'max' must not be None"),
    ('torch.where(o(2) > 0, o(2))', TypeError, 'where() received an invalid combination of arguments - got (Tensor, Tensor), but expected one of:'),
    ('torch.where(o(2), o(2), o(2))', RuntimeError, 'where expected condition to be a boolean tensor, but got a tensor with dtype Float'),
    ('o(2).view()', TypeError, 'view() received an invalid combination of arguments - got (), but expected one of:'),
    ('o(2).reshape()', TypeError, 'reshape() missing 1 required positional arguments: "shape"'),
    ('o(2).foo', AttributeError, "'Tensor' object has no attribute 'foo'"),
    ('o(2).backward()', RuntimeError, 'element 0 of tensors does not require grad and does not have a grad_fn'),
    ('o(2, requires_grad=True).backward(5)', TypeError, "'int' object is not iterable"),
    ('o(2, requires_grad=True).sum().backward(o(2))', RuntimeError, 'Mismatch in shape: grad_output[0] has a shape of torch.Size([2]) and output[0] has a shape of torch.Size([]).'),
    ('torch.autograd.grad(o(2, requires_grad=True).sum(), o(2))', RuntimeError, 'One of the differentiated Tensors does not require grad'),
    ('torch.autograd.grad(o(2, requires_grad=True).sum(), o(2, requires_grad=True))', RuntimeError, 'The differentiated Tensor at index 0 appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.'),
    ('torch.autograd.grad(3, o(2, requires_grad=True))', TypeError, "'int' object is not iterable"),
    ('torch.optim.SGD([], lr=0.1)', ValueError, 'optimizer got an empty parameter list'),
    ('torch.optim.SGD([o(2)], lr=-1)', ValueError, 'Invalid learning rate: -1'),
    ('torch.optim.SGD(o(2), lr=1)', TypeError, 'params argument given to the optimizer should be an iterable of Tensors or dicts, but got torch.FloatTensor'),
    ('torch.optim.SGD([3], lr=1)', TypeError, 'optimizer can only optimize Tensors, but one of the params is int'),
    ('torch.optim.Adam([o(2)], betas=(1.5, 0.9))', ValueError, 'Invalid beta parameter at index 0: 1.5'),
    ('torch.optim.Adam([o(2)], lrr=1)', TypeError, "Adam.__init__() got an unexpected keyword argument 'lrr'"),
    ('nn.utils.clip_grad_norm_(3, 1.0)', TypeError, "'int' object is not iterable"),
    ('o(2) + None', TypeError, "unsupported operand type(s) for +: 'Tensor' and 'NoneType'"),
    ('o(2) + "a"', TypeError, "unsupported operand type(s) for +: 'Tensor' and 'str'"),
    ('o(2) * [1, 2]', TypeError, 'only integer tensors of a single element can be converted to an index'),
    ('None + o(2)', TypeError, "unsupported operand type(s) for +: 'NoneType' and 'Tensor'"),
    ('o(2) @ 2', TypeError, "unsupported operand type(s) for @: 'Tensor' and 'int'"),
    ('o(2)()', TypeError, "'Tensor' object is not callable"),
    ('bool(o(2))', RuntimeError, 'Boolean value of Tensor with more than one value is ambiguous'),
    ('int(o(2))', ValueError, 'only one element tensors can be converted to Python scalars'),
    ('float(o(2))', ValueError, 'only one element tensors can be converted to Python scalars'),
    ('int(t(float("nan")))', ValueError, 'cannot convert float NaN to integer'),
    ('len(t(1))', TypeError, 'len() of a 0-d tensor'),
    ('list(t(1))', TypeError, 'iteration over a 0-d tensor'),
    ('o(2).item()', RuntimeError, 'a Tensor with 2 elements cannot be converted to Scalar'),
    ('range(t(1.5))', TypeError, 'only integer tensors of a single element can be converted to an index'),
    ('[1, 2][t([0, 1])]', TypeError, 'only integer tensors of a single element can be converted to an index'),
    ('{}[o(2)]', KeyError, 'tensor([1., 1.])'),
    ('o(2, requires_grad=True).numpy()', RuntimeError, "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."),
    ('torch.manual_seed("a")', ValueError, "invalid literal for int() with base 10: 'a'"),
    ('torch.set_default_dtype(i64)', TypeError, 'only floating-point types are supported as the default type'),
    ('torch.quantile(o(2), 1.5)', RuntimeError, 'quantile() q must be in the range [0, 1] but got 1.5'),
    ('torch.histc(o(2), bins=0)', RuntimeError, 'torch.histogram(): bins must be > 0, but got 0 for dimension 0'),
    ('torch.allclose(o(2), o(2, dtype=f64))', RuntimeError, 'Float did not match Double'),
    ('torch.searchsorted(o(2, 2), o(3))', RuntimeError, 'torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match, but we got boundaries tensor [2, 2] and input value tensor [3]'),
    ('torch.lerp(o(2), o(2), o(3))', RuntimeError, 'The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0'),
    ('torch.polar(o(2), 1)', TypeError, "polar(): argument 'angle' (position 2) must be Tensor, not int"),
    ('torch.view_as_complex(o(3))', RuntimeError, 'Tensor must have a last dimension of size 2'),
    ('torch.view_as_real(o(3))', RuntimeError, 'view_as_real is only supported for complex tensors'),
    ('torch.complex(o(2), o(2, dtype=f64))', RuntimeError, 'Expected object of scalar type Float but got scalar type Double for second argument'),
    ('torch.stft(o(10), 4)', RuntimeError, 'stft requires the return_complex parameter be given for real inputs, and will further require that return_complex=True in a future PyTorch release.'),
    ('torch.Tensor(2, "a")', TypeError, 'new(): argument \'size\' failed to unpack the object at pos 2 with error "type must be tuple of ints,but got str"'),
    ('o(2).half().fill_(None)', TypeError, 'fill_() received an invalid combination of arguments - got (NoneType), but expected one of:'),
    ('o(2).copy_(o(3))', RuntimeError, 'The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0'),
    ('o(2).fill_(o(2))', RuntimeError, 'fill_ only supports 0-dimension value tensor but got tensor with 1 dimensions.'),
    ('o(2).__setitem__(0, "a")', TypeError, "can't assign a str to a torch.FloatTensor"),
    ('o(2).__setitem__(3, 1.0)', IndexError, 'index 3 is out of bounds for dimension 0 with size 2'),
    ('o(2).__setitem__(slice(None), o(3))', RuntimeError, 'The expanded size of the tensor (2) must match the existing size (3) at non-singleton dimension 0.  Target sizes: [2].  Tensor sizes: [3]'),
    ('o(2).__setitem__(t([0]), o(2))', RuntimeError, 'shape mismatch: value tensor of shape [2] cannot be broadcast to indexing result of shape [1]'),
    ('o(2, dtype=i64).__setitem__(0, 1j)', RuntimeError, 'value cannot be converted to type int64_t without overflow'),
    ('o(2).register_hook(print)', RuntimeError, "cannot register a hook on a tensor that doesn't require gradient"),
    ('o(2).detach().retain_grad()', RuntimeError, "can't retain_grad on Tensor that has requires_grad=False"),
    ('o(2).type("abc")', ValueError, "invalid type: 'abc'"),
    ('o(2).unbind(1)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 1)'),
    ('o(2).movedim(0, 1)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 1)'),
    ('o(2).swapaxes(0, 1)', IndexError, 'Dimension out of range (expected to be in range of [-1, 0], but got 1)'),
    ('o(2).index_put((t([5]),), t(1.0))', IndexError, 'index 5 is out of bounds for dimension 0 with size 2'),
    ('o(4).as_strided((2, 3), (1, 5))', RuntimeError, 'setStorage: sizes [2, 3], strides [1, 5], storage offset 0, and itemsize 4 requiring a storage size of 48 are out of bounds for storage of size 16'),
    ('o(2).repeat()', TypeError, 'repeat() missing 1 required positional arguments: "repeats"'),
]  # fmt: skip


@pytest.mark.parametrize("call, kind, first", CALLS, ids=[c[0] for c in CALLS])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_first_line_is_pytorchs(call, kind, first):
    with pytest.raises(kind) as raised:
        eval(call, NAMES)
    assert type(raised.value) is kind
    said = str(raised.value).split("\n")[0]
    assert said.split(". Did you mean '")[0] == first.split(". Did you mean '")[0]  # Python 3.13 asks that itself


@pytest.mark.parametrize(
    "call, kind, first",
    [
        ("o(2, device='cudda')", RuntimeError, "Expected one of cpu, cuda, "),
        ("o(2).to('nowhere')", RuntimeError, "Expected one of cpu, cuda, "),
        ("nn.Linear(2, 2).to('gpux')", RuntimeError, "Expected one of cpu, cuda, "),
        ("torch.Generator('nowhere')", RuntimeError, "Expected one of cpu, cuda, "),
        ("o(2).sum(dims=0)", TypeError, "sum() "),
        ("torch.add(o(2))", TypeError, "add() "),
        ("torch.exp()", TypeError, "exp() missing 1 required positional argument"),
        ("torch.exp(o(2), 3)", TypeError, "exp() takes 1 positional argument but 2 were given"),
        ("torch.max(o(2), 0, 1, 2)", TypeError, "max() "),
        ("o(2).transpose(0)", TypeError, "transpose() missing 1 required positional argument"),
        ("o(2).fill_(None)", TypeError, "fill_() received an invalid combination of arguments - got (NoneType)"),
        ("o(2).fill_(1e40)", RuntimeError, "value cannot be converted to type float without overflow"),
        (
            "o(2, dtype=i64).fill_(float('nan'))",
            RuntimeError,
            "value cannot be converted to type int64_t without overflow",
        ),
        ("o(2).sum(dim='a')", TypeError, ""),
        ("o(2).sum(dtype='x')", TypeError, ""),
        ("nn.Embedding(3, 2)([1, 2])", TypeError, "embedding(): argument "),
        ("F.dropout(3)", TypeError, "dropout(): argument 'input' (position 1) must be Tensor, not int"),
        ("F.conv1d(o(1, 1, 3), None)", TypeError, "conv1d()"),
        ("torch.polar(o(2), 1)", TypeError, "polar(): argument 'angle' (position 2) must be Tensor, not int"),
    ],
)
def test_the_first_line_begins_as_pytorchs(call, kind, first):
    with pytest.raises(kind) as raised:
        eval(call, NAMES)
    assert str(raised.value).startswith(first)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize(
    "call",
    [
        "o(2, device='cuda')",
        "o(2).cuda()",
        "o(2).to('cuda:1')",
        "nn.Linear(2, 2).cuda()",
        "t([1.0], device=0)",
        "o(2).pin_memory()",
    ],
)
def test_cuda_without_a_driver_says_so(call):
    with pytest.raises(RuntimeError, match="^(Found no NVIDIA driver on your system|a CUDA tensor needs CuPy)"):
        eval(call, NAMES)
    assert o(2).device == torch.device("cpu")
    assert torch.cuda.device_count() == 0


# ---- nothing changes


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.add_("a"),
        lambda x: x.add_(o(4)),
        lambda x: x.add_(o(2, 2, 3)),
        lambda x: x.mul_(1j),
        lambda x: x.copy_(o(4)),
        lambda x: x.fill_(None),
        lambda x: x.fill_(o(3)),
        lambda x: x.__setitem__(5, 1.0),
        lambda x: x.__setitem__((0, 7), 1.0),
        lambda x: x.__setitem__(0, "a"),
        lambda x: x.__setitem__(0, o(4)),
        lambda x: x.__setitem__(t([0, 9]), 1.0),
        lambda x: x.__setitem__(t([True, False, True]), 1.0),
        lambda x: x.index_add_(0, t([0, 5]), o(2, 3)),
        lambda x: x.index_copy_(0, t([0, 5]), o(2, 3)),
        lambda x: x.index_fill_(0, t([0, 5]), 1.0),
        lambda x: x.scatter_(0, t([[0, 9, 0]]), 5.0),
        lambda x: x.scatter_add_(0, t([[0, 9, 0]]), o(1, 3)),
        lambda x: x.index_put_((t([0, 9]),), t(1.0)),
        lambda x: x.masked_fill_(t([True]), "a"),
        lambda x: x.masked_scatter_(x > 0, o(1)),
        lambda x: x.clamp_("a"),
        lambda x: x.uniform_(2, 1),
        lambda x: x.normal_(0, -1),
        lambda x: x.bernoulli_(2.0),
        lambda x: x.resize_(-1),
        lambda x: x.requires_grad_().add_(1),
        lambda x: torch.add(x, 1, out=x[:1].expand(2, 3)),
        lambda x: torch.mm(x, x, out=x),
        lambda x: x.view(-1)[1:].add_(x.view(-1)[:-1]),
        lambda x: x.data.__class__(x, "a"),
        lambda x: setattr(x, "data", 3),
        lambda x: setattr(x, "grad", o(7)),
        lambda x: x.sigmoid_(1, 2),
        lambda x: x.div_(2, rounding_mode="up"),
        lambda x: x.addmm_(o(2, 2), o(5, 5)),
        lambda x: nn.init.xavier_uniform_(x[0]),
        lambda x: nn.functional.dropout(x, 1.5, inplace=True),
        lambda x: nn.functional.embedding(t([9]), x, max_norm=1.0),
        lambda x: torch.set_default_dtype(i64),
    ],
)
def test_what_fails_changes_nothing(write):
    x = t([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    view, pointer, state = x[0], x.data_ptr(), torch.get_rng_state().tolist()
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError)):
        write(x)
    assert x.tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    assert x._version == view._version == 0
    assert x.data_ptr() == pointer
    assert x.grad is None
    assert torch.get_rng_state().tolist() == state
    assert torch.get_default_dtype() is torch.float32
    with torch.no_grad():
        x[0, 0] = 7
    assert view[0].item() == 7


def test_integer_tensors_keep_their_values_where_a_float_was_to_be_written():
    for write in (lambda x: x.add_(1.5), lambda x: x.div_(2), lambda x: x.fill_(float("nan")), lambda x: x.exp_()):
        x = torch.arange(3)
        with pytest.raises(RuntimeError):
            write(x)
        assert x.tolist() == [0, 1, 2]
        assert x._version == 0


def test_a_graph_is_as_it_was_after_an_error_in_backward():
    x = t([1.0, 2.0], requires_grad=True)
    y = x * x
    with pytest.raises(RuntimeError, match="^grad can be implicitly created only for scalar outputs"):
        y.backward()
    with pytest.raises(RuntimeError, match=r"^Mismatch in shape: grad_output\[0\]"):
        y.backward(o(3))
    with pytest.raises(RuntimeError, match="^The differentiated Tensor at index 0"):
        torch.autograd.grad(y.sum(), t([1.0], requires_grad=True), retain_graph=True)
    assert x.grad is None
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_module_is_as_it_was_after_a_state_that_does_not_fit():
    m = nn.Linear(2, 2)
    before = [p.tolist() for p in m.parameters()]
    for state in ({"weight": o(3, 3), "bias": o(2)}, {"weight": o(2, 2)}, {}):
        with pytest.raises(RuntimeError, match="^Error.s. in loading state_dict for Linear:"):
            m.load_state_dict(state)
    assert m.bias.tolist() in (before[1], [1.0, 1.0])  # as in PyTorch, what fits is loaded before the others are told
    with pytest.raises(TypeError):
        m.load_state_dict([1])


def test_nan_in_targets_and_logits_gives_nan_and_no_error():
    nan = float("nan")
    assert F.mse_loss(o(2), t([nan, 1.0])).isnan()
    assert F.cross_entropy(t([[nan, 1.0]]), t([0])).isnan()
    assert F.binary_cross_entropy_with_logits(o(1), t([nan])).isnan()
    assert F.l1_loss(o(2), t([nan, 1.0])).isnan()
    x = o(2, requires_grad=True)
    F.mse_loss(x, t([nan, 1.0])).backward()
    assert x.grad.isnan().tolist() == [True, False]


def test_empty_tensors_go_through_most_things():
    x = z(0, 3, requires_grad=True)
    y = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.LayerNorm(4), nn.Linear(4, 2))(x)
    assert y.shape == (0, 2)
    y.sum().backward()
    assert x.grad.shape == (0, 3)
    assert torch.cat([z(0), o(2)]).tolist() == [1.0, 1.0]
    assert nn.Conv2d(1, 2, 3)(z(0, 1, 5, 5)).shape == (0, 2, 3, 3)
    assert z(0).sort().values.shape == (0,)
    assert z(0, 2).max(1).values.shape == (0,)
    assert z(2, 0).softmax(1).shape == (2, 0)
    assert F.embedding(z(0, dtype=i64), o(3, 2)).shape == (0, 2)
