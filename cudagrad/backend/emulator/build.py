"""A `.cu` file as a shared library for this machine's processor, by g++ or clang++."""

import functools
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from ..kernels import cache
from ..kernels.path import kernels_path

HERE = Path(__file__).parent
# DWARF 4, for addr2line 2.40 mistakes the files of version 5.
OPTIONS = (
    "-std=c++17",
    "-O2",
    "-gdwarf-4",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-fno-exceptions",  # a GPU has none
    "-fstack-clash-protection",  # so that no frame steps over the end of a thread's stack
    "-fno-threadsafe-statics",  # g++ guards a __shared__ array of halves as if it had something to construct
    "-Wno-unknown-pragmas",
)
# CUDA's spelling of dynamic shared memory, which is no C++: plain sources have it, those of kernels/ a macro.
_DYNAMIC = re.compile(r"extern\s+__shared__\s+(?:__align__\(\d+\)\s*)?([\w ]+?)\s+(\w+)\s*\[\s*\]")
RUNTIME = ("runtime.cpp", "memory.cpp", "tensor.cpp")
# The race detector's instrumentation with callbacks of our own in check.cpp; its library is never loaded.
CHECKED = ("-fsanitize=thread",)
SEEN = ("memset", "memcpy", "memmove")


def _options():
    """``OPTIONS``, then those of the environment variable ``CXXFLAGS``: -O0 for a debugger, say."""
    return *OPTIONS, *shlex.split(os.environ.get("CXXFLAGS", ""))


@functools.cache
def compiler():
    """(path, version) of the C++ compiler: ``CXX``, else g++ or clang++; RuntimeError where there is none."""
    own = os.environ.get("CXX")
    for name in [own] if own else ("g++", "clang++"):
        path = shutil.which(name)
        if path:
            told = subprocess.run([path, "--version"], capture_output=True, text=True)
            return path, told.stdout.splitlines()[0] if told.stdout else path
    raise RuntimeError(
        "the emulated device builds kernels with a C++ compiler, and there is no "
        f"{own or 'g++ or clang++'} here: install one, or name it in the environment variable CXX"
    )


def library(source, entries, macros, check, extra=()):
    """The path of the built ``source`` (a Path) with a launcher for each of ``entries``."""
    flags = [*_options(), *extra, "-DCG_EMULATED", *(f"-D{k}={v}" for k, v in macros)]
    parts = [_object(file, check, extra) for file in (*RUNTIME, *(["check.cpp"] if check else []))]
    places = [kernels_path(), HERE]
    stub = "".join(_launcher(e) for e in entries)
    text = f'#include "cuda_emulated.h"\n{_included(source)}{stub}'
    contents = cache.sources(source, places)
    name = cache.key(
        compiler(), flags, "short names", (CHECKED, SEEN) if check else (), contents, stub, [p.name for p in parts]
    )

    def build(path):
        unit, made = path.with_suffix(".cpp"), path.with_suffix(".o")
        unit.write_text(text)
        include = [f"-I{place}" for place in (*places, Path(source).parent)]
        # what is built for a copy elsewhere says nothing of where that lay
        include += [f"-fmacro-prefix-map={folder}/=" for folder in {*places, Path(source).parent}]
        _run([*flags, *(CHECKED if check else ()), *include, "-x", "c++", "-c", str(unit), "-o", str(made)], source)
        if check:  # what -fsanitize=thread leaves to the interceptors of its library
            renamed = (f"--redefine-sym={name}=cg_{name}" for name in SEEN)
            subprocess.run(["objcopy", *renamed, str(made)], check=True)
        _refuse_hidden(made, source)
        _run(["-shared", str(made), *map(str, parts), "-o", str(path)], source)

    return cache.built(name, ".so", build)


def _included(source):
    """The text that stands for a source: an ``#include``, or its own lines where they say what is no C++."""
    own = source.read_text(encoding="utf-8")
    translated = _DYNAMIC.sub(r"\1*& \2 = *(\1**)&cg::dynamic_shared", own)  # within a function, and outside of them
    return f'#include "{source}"\n' if translated == own else f'#line 1 "{source}"\n{translated}\n'


def _object(file, check, extra):
    """The built runtime; apart from the kernels, for it is the same for all and never instrumented."""
    flags = [*_options(), *extra, *(["-DCG_CHECK"] if check else [])]
    name = cache.key(compiler(), flags, cache.sources(HERE / file, [HERE]))
    return cache.built(name, ".o", lambda path: _run([*flags, "-c", str(HERE / file), "-o", str(path)], file))


def _launcher(entry):
    """The text of ``void launch_NAME(void** a)``, which calls the kernel with the arguments that ``a`` points at."""
    given = ", ".join(
        f"*({'const ' * p.const}{p.spelled or p.type}{' *' * p.pointer}*)a[{i}]" for i, p in enumerate(entry.parameters)
    )
    head = 'extern "C" __attribute__((visibility("default"))) void'
    return f"{head} launch_{entry.name}(void** a) {{ {entry.name}({given}); }}\n"


def _refuse_hidden(made, source):
    """RuntimeError for a ``__shared__`` array in a template: g++ drops its section, so nothing would watch it."""
    told = subprocess.run(["nm", "-C", str(made)], capture_output=True, text=True).stdout
    hidden = re.findall(r" [bBC] (?!guard variable for |__gcov)(.+)", told)
    if hidden:
        raise RuntimeError(
            f"{Path(source).name}: {hidden[0]} is a __shared__ array of a template function, which g++ cannot place; "
            "let a plain function hold it and return its address"
        )


def _run(arguments, source):
    done = subprocess.run([compiler()[0], *arguments], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{Path(source).name} does not compile:\n{done.stderr.strip()}")
