// What plain CUDA sources include by this name; on the emulated device it is all in one file.
#pragma once
#include "cuda_emulated.h"
