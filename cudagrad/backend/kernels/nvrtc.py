"""A `.cu` file as a cubin for one GPU architecture, by NVRTC and CuPy; no GPU and no driver are needed."""

import collections
import functools
import importlib.util
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import cache
from .path import kernels_path

# Every function is the device's unless it says otherwise. Denormals stay and division is exact, as on the CPU.
OPTIONS = ("--std=c++17", "-default-device", "-lineinfo", "--ptxas-options=-v")

ARCHITECTURES = ("75", "80", "86", "89", "90", "90a", "100", "120")


@functools.cache
def compiler():
    """(module, version) of NVRTC; RuntimeError in one sentence where CuPy or the library is missing."""
    try:
        from cupy_backends.cuda.libs import nvrtc

        return nvrtc, nvrtc.getVersion()
    except (ImportError, RuntimeError, OSError) as error:
        raise RuntimeError(
            "CUDA kernels are built with CuPy and NVRTC, which are not both installed: "
            f"pip install 'cudagrad-cupy[cuda12]', or [compile] without a GPU ({str(error).splitlines()[0]})"
        ) from None


@functools.cache
def _includes():
    """Folders of CUDA's own headers: those that CuPy carries, and the runtime's."""
    import cupy
    from cuda.pathfinder import find_nvidia_header_directory

    places = [Path(cupy.__file__).parent / "_core/include/cupy/_cccl/libcudacxx"]
    runtime = find_nvidia_header_directory("cudart")
    return [str(p) for p in (*places, runtime) if p]


@functools.cache
def architecture(capability):
    """The architecture to build for on a GPU of a compute capability, ``"90"``: its own, with all it has (``"90a"``).

    Raises      RuntimeError where the compiler is too old to know one that such a GPU runs
    """
    if capability + "a" in ARCHITECTURES:
        return capability + "a"
    nvrtc, version = compiler()
    number, known = int(capability), nvrtc.getSupportedArchs()
    older = [n for n in known if n // 10 == number // 10 and n <= number]  # a GPU runs what was built for those
    if not older:
        raise RuntimeError(
            f"NVRTC {'.'.join(map(str, version))} knows no GPU of compute capability {number / 10:.1f} "
            f"(it knows {', '.join(map(str, known))}): install a newer one, pip install -U nvidia-cuda-nvrtc-cu12"
        )
    return str(max(older))


def cubin(file, macros, architecture):
    """The path of the cubin of a file of ``kernels/``, or one named by its whole path, for ``"90a"`` or the like.

    Raises      RuntimeError with the compiler's words for a source that does not compile
    """
    return _built(file, macros, architecture)[0]


def resources(file, macros, architecture):
    """Entry -> {"registers", "spills" (bytes stored and loaded), "shared" (static bytes)}, as ptxas tells them."""
    return _read(_built(file, macros, architecture)[1].read_text())


def _built(file, macros, architecture):
    _, version = compiler()
    source = kernels_path() / file
    contents = cache.sources(source, [kernels_path()])
    options = [*OPTIONS, f"-arch=sm_{architecture}", *(f"-D{k}={v}" for k, v in macros), *_half_types(macros)]
    name = cache.key("nvrtc", version, options, contents)
    log = cache.folder() / "kernels" / f"{name}.log"

    def build(path):
        code, told = _compile(source, options)
        path.write_bytes(code)
        path.with_suffix(".log").write_text(told)
        path.with_suffix(".log").replace(log)

    path = cache.built(name, ".cubin", build)
    if not log.is_file():  # removed by hand: the cubin is made once more, for its log
        (cache.folder() / "kernels" / name).unlink()
        path = cache.built(name, ".cubin", build)
    return path, log


def _half_types(macros):
    """The options that make a half type known to a source that names it by a macro only."""
    headers = {"__half": "cuda_fp16.h", "__nv_bfloat16": "cuda_bf16.h"}
    return [f"--pre-include={headers[v]}" for v in sorted({v for _, v in macros} & set(headers))]


def _compile(source, options):
    """(code, log) of a source."""
    nvrtc, _ = compiler()
    given = [*options, f"-I{kernels_path()}", f"-I{Path(source).parent}", *(f"-I{p}" for p in _includes())]
    program = nvrtc.createProgram(Path(source).read_text(encoding="utf-8"), Path(source).name, (), ())
    try:
        try:
            nvrtc.compileProgram(program, given)
        except nvrtc.NVRTCError:
            told = nvrtc.getProgramLog(program)
            raise RuntimeError(f"{Path(source).name} does not compile with {' '.join(options)}:\n{told}") from None
        return nvrtc.getCUBIN(program), nvrtc.getProgramLog(program)
    finally:
        nvrtc.destroyProgram(program)


def _read(log):
    found = {}
    for part in re.split(r"Compiling entry function ", log)[1:]:
        name = re.match(r"'(\w+)'", part)[1]
        spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", part)
        found[name] = {
            "registers": int(re.search(r"Used (\d+) registers", part)[1]),
            "spills": sum(map(int, spills.groups())) if spills else 0,
            "shared": int(m[1]) if (m := re.search(r"(\d+) bytes smem", part)) else 0,
        }
    return found


# ---- what was built, read back


@functools.cache
def disassembler():
    """The path of nvdisasm, a toolkit's or that of the wheel nvidia-cuda-nvdisasm; RuntimeError where there is none."""
    wheel = importlib.util.find_spec("nvidia")
    places = [
        p for root in (wheel.submodule_search_locations if wheel else ()) for p in Path(root).glob("*/bin/nvdisasm")
    ]
    found = shutil.which("nvdisasm") or next((str(p) for p in places), None)
    if found is None:
        raise RuntimeError(
            "instructions are read with nvdisasm, which is not installed: pip install nvidia-cuda-nvdisasm"
        )
    return found


def instructions(file, macros, architecture):
    """Entry -> ``Counter`` of the instructions of its cubin: ``{"LDG.E.128": 2, "FADD": 40, ...}``.

    Raises      RuntimeError where nvdisasm or the compiler is missing
    """
    with tempfile.NamedTemporaryFile(suffix=".cubin") as copy:
        copy.write(cubin(file, macros, architecture).read_bytes() + b"\0")  # CuPy's getCUBIN leaves out the last byte
        copy.flush()
        told = subprocess.run([disassembler(), "-c", copy.name], capture_output=True, text=True, check=True).stdout
    found = {}
    for part in re.split(r"^\s*\.section\s+\.text\.", told, flags=re.M)[1:]:
        name = re.match(r"\w+", part)[0]
        found[name] = collections.Counter(re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", part))
    return found
