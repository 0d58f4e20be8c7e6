"""What of PyTorch's tables is not here (MISSING), or differs on purpose (DIFFERS, with the reason)."""

MISSING = set()

DIFFERS = {}
