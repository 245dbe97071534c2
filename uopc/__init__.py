"""uopc: an ML compiler small enough to read in a weekend.

    from uopc import Tensor, dtypes, jit, manual_seed, nn

    x = Tensor([[1.0, 2.0]], requires_grad=True)
    (x * 3).sum().backward()
    x.grad.numpy()  →  [[3., 3.]]
"""
from uopc import nn
from uopc.dtype import DType, dtypes
from uopc.jit import jit
from uopc.random import manual_seed
from uopc.runtime import CompileError
from uopc.tensor import Tensor

__all__ = ["CompileError", "DType", "Tensor", "dtypes", "jit", "manual_seed", "nn"]
