"""An op's arguments made a kernel's, one file a family of kernels.

FORWARD and FIRST_ORDER name for an op the function that runs its forward, or its first-order rule, by kernels, WRITES
that which writes the forward's result into its first array. It takes what the op's own function takes, behind
``run(file, entry, **arguments)``, which launches on the device of the arrays, and raises ``Unfit`` where no kernel can
serve: the op's own text does then. Only an op with a ``fused`` rule has a first-order rule to serve.
"""

from . import dropout, linear, losses, norms, pointwise, softmax

FAMILIES = (softmax, losses, dropout, norms, linear, pointwise)
FORWARD = {op: serve for family in FAMILIES for op, serve in family.FORWARD.items()}
WRITES = pointwise.WRITES
FIRST_ORDER = {op: serve for family in FAMILIES for op, serve in family.FIRST_ORDER.items()}
