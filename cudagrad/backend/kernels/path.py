"""Where the CUDA sources are: beside the package in a checkout or an editable install, inside it in a wheel."""

import functools
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]


@functools.cache
def kernels_path():
    """The folder ``kernels`` of this installation.

    Raises      FileNotFoundError where neither place has it
    """
    for folder in (PACKAGE / "kernels", PACKAGE.parent / "kernels"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"no folder 'kernels' in {PACKAGE} or beside it; is the installation complete?")
