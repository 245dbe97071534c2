"""Tensor: the handle on a graph that a user holds.

    x = Tensor([[1.0, 2.0]]);  y = (x * 3).sum();  y.item()  →  9.0

A Tensor is lazy: operations build graph, and `realize`, `numpy` or `item` compute it. Values never
change once computed: `assign` and `t[i] = v` give the handle a new value, and other tensors made
from the old one keep it. Equal expressions are one node, so a value that was computed once is found
again wherever the same expression occurs.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

import numpy as np

from uopc import config, recording
from uopc.atomic import atomic, change, fields
from uopc.autodiff import gradients
from uopc.composite import array_buffer, broadcast, buffer_data, is_contiguous_buffer
from uopc.creation import Creation
from uopc.dtype import DType, DTypeLike, Number, as_dtype, from_np
from uopc.elementwise import Elementwise
from uopc.indexing import Indexing
from uopc.kernelize import realize
from uopc.memory import as_array
from uopc.movement import Movement
from uopc.reductions import Reductions
from uopc.uop import Ops, UOp, prod

_leaves: dict[int, weakref.ref[Tensor]] = {}  # of those that want gradients, by id


class Holder(Protocol):
    """What keeps a tensor's value to itself until somebody asks for it; not its shape."""

    shape: tuple[int, ...]

    def release(self) -> None:
        """Put the value into the tensor's `_array`, under the lock `fields`, unless that has
        happened already."""


class Tensor(Creation, Elementwise, Reductions, Movement, Indexing):
    """An n-dimensional array of one dtype.

    `data` may be a number, a (nested) list or a NumPy array, which is copied; Python floats become
    f32 and ints i32 (i64 where they need it). `requires_grad` marks what `backward()` without
    arguments differentiates for. Raises TypeError for a dtype that uopc does not have.
    """

    __array_ufunc__ = None  # `array * tensor` is ours to answer
    fuse_reduce = False     # keep reductions inside their consumers' kernels

    # the value is one of these: a graph; an array, until a graph is asked for; what a Holder has
    _uop: UOp | None = None
    _array: np.ndarray | None = None
    _holder: Holder | None = None
    _former: weakref.ref[UOp] | None = None  # the node that `uop` was until it was computed
    _value: tuple[UOp, UOp] | None = None    # a constant expression and its buffer
    _grad: Tensor | None = None
    _origins: tuple[weakref.ref[Tensor], ...] = ()  # the tensors of which this one is a view

    def __init__(self, data: Any, requires_grad: bool = False,
                 dtype: DTypeLike | None = None) -> None:
        if isinstance(data, Tensor):
            data = data.numpy()
        self._array = as_array(data, None if dtype is None else as_dtype(dtype))
        if requires_grad:
            self.requires_grad = True

    @property
    def uop(self) -> UOp:
        """The graph that gives this tensor's value."""
        while (u := self._uop) is None:
            self._leave()
            with fields:
                if self._uop is None and self._array is not None:
                    self._uop, self._array = array_buffer(self._array), None
        return u

    @uop.setter
    def uop(self, uop: UOp) -> None:
        self._set(uop, None)

    def _leave(self) -> None:
        """Whoever holds the value gives it back."""
        if (holder := self._holder) is not None:
            holder.release()

    def _set(self, uop: UOp | None, array: np.ndarray | None) -> None:
        while True:
            self._leave()
            with fields:
                if self._holder is None:
                    change(self, _uop=uop, _array=array, _former=None)
                    return

    def _become(self, array: np.ndarray) -> None:
        """Take the value of an array, which nobody changes from now on."""
        if (before := self._uop) is not None:
            recording.note_assignment(self, before)
        self._set(None, array)

    def _give(self, holder: Holder) -> bool:
        """From now on `holder` has the value, unless another one has it; returns whether."""
        if (before := self._uop) is not None:
            recording.note_assignment(self, before)
        with fields:
            if self._holder is not None:
                return False
            change(self, _uop=None, _array=None, _former=None, _holder=holder)
            return True

    def __getstate__(self) -> dict[str, Any]:
        """For a copy, which shares the graph: a holder fills the original alone."""
        _ = self.uop
        return self.__dict__

    @property
    def requires_grad(self) -> bool:
        """Whether `backward()` without arguments differentiates for this tensor. Setting it makes
        a constant expression, which equal tensors share, data of its own. Raises TypeError for a
        tensor that is not of floats."""
        return id(self) in _leaves

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if not wanted:
            _leaves.pop(id(self), None)
            return
        if not self.uop.dtype.is_float:
            raise TypeError(f"only floats have gradients; this tensor is {self.uop.dtype}")
        if not _reads_buffer(self.uop):
            recording.note_change(self.uop)
            self.uop = array_buffer(self.numpy())
        # what takes a dead one out is no function of Python's: see _forget in uop.py
        _leaves[id(self)] = weakref.ref(self, partial(_leaves.pop, id(self)))

    @property
    def grad(self) -> Tensor | None:
        """What `backward` has added up."""
        return self._grad

    @grad.setter
    def grad(self, gradient: Tensor | None) -> None:
        change(self, _grad=gradient)

    @classmethod
    def _of(cls, uop: UOp) -> Tensor:
        """The Tensor of a graph."""
        tensor = cls.__new__(cls)
        tensor._uop = uop
        return tensor

    def _view(self, uop: UOp) -> Tensor:
        """The Tensor of a graph that shows elements of this one."""
        view = self._of(uop)
        view._origins = (*(r for r in self._origins if r() is not None), weakref.ref(self))
        return view

    def _refuse_view(self, deed: str) -> None:
        """Raises ValueError for a view of a tensor that somebody has: that one would not change."""
        if any(origin() is not None for origin in self._origins):
            raise ValueError(
                f"{deed} this view, of shape {self.shape}, would not change the tensor that it is "
                "a view of: write to that one with one index (t[0, 1] = v, not t[0][1] = v), or "
                "take a value of its own first (.contiguous())")

    @classmethod
    def _of_array(cls, array: np.ndarray) -> Tensor:
        """The Tensor of a C-contiguous array, which nobody changes from now on."""
        tensor = cls.__new__(cls)
        tensor._array = array
        return tensor

    @classmethod
    def _lift(cls, value: Any) -> Tensor | Number:
        """A Tensor or a Python number, from any operand."""
        if isinstance(value, (Tensor, bool, int, float)):
            return value
        return value.item() if isinstance(value, np.generic) else cls(value)

    # *** what it is ***

    @property
    def shape(self) -> tuple[int, ...]:
        return self._known().shape

    def _known(self) -> UOp | np.ndarray | Holder:
        """What can tell the shape, without asking for a graph."""
        array, holder = self._array, self._holder
        return array if array is not None else self.uop if holder is None else holder

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def dtype(self) -> DType:
        return self.uop.dtype if (array := self._array) is None else from_np(array.dtype)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterable[Tensor]:
        return (self[k] for k in range(len(self)))

    def __repr__(self) -> str:
        grad = ", requires_grad=True" if self.requires_grad else ""
        return f"Tensor(shape={self.shape}, dtype={self.dtype}{grad})"

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(f"the truth of a tensor of shape {self.shape} is ambiguous; use "
                             "any() or all()")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    # *** computing ***

    @staticmethod
    def realize_all(*tensors: Tensor) -> None:
        """Compute several tensors in one plan."""
        wanted = [t.uop for t in tensors]
        roots = _reuse_computed(wanted)
        recording.note_roots(wanted, roots)
        buffers = realize(roots, Tensor.fuse_reduce, config.opt_level())
        owned: set[UOp] = set()
        for t, u, root, buffer in zip(tensors, wanted, roots, buffers, strict=True):
            in_memory = _lies_in_memory(root)
            if is_assigned(u) and (in_memory or buffer in owned):
                shared, buffer = buffer, array_buffer(buffer_data(buffer).copy())
                recording.note_run(None, [shared], [buffer])  # nobody else's storage
            owned.add(buffer)
            t._keep(u, buffer, in_memory)

    def _keep(self, u: UOp, buffer: UOp, in_memory: bool) -> None:
        """Remember the computed value of `u`. Where no gradient goes further the graph is let go,
        unless the tensor has another one by now."""
        if is_assigned(u) or (u.op is Ops.STAGE and u.arg == "detach" and not in_memory):
            with fields:
                if self._uop is u:
                    self._former, self._uop = weakref.ref(u), buffer
        elif is_contiguous_buffer(u):
            return
        if is_assigned(u) or _reads_buffer(u):
            u.__dict__["realized"] = buffer
        else:
            self._value = (u, buffer)

    def realize(self) -> Tensor:
        """Compute this tensor; it keeps its graph, so gradients can still flow through it."""
        Tensor.realize_all(self)
        return self

    def numpy(self) -> np.ndarray:
        """The value as a new NumPy array. Raises RuntimeError in a function that `jit` records."""
        return self._seen().copy()

    def _seen(self) -> np.ndarray:
        """The array that holds the value, which somebody wants to read."""
        if (watching := recording.current()) is not None and watching.strict:
            raise RuntimeError("a value is read in a jitted function; its replays would not read "
                               "it again. Return the tensor, and read it outside")
        return self._data()

    def _data(self) -> np.ndarray:
        """The array that holds the value, which is computed if it is not known."""
        if (u := self._uop) is None:
            if self._array is None:
                self._leave()
            if (array := self._array) is not None:
                return array
        elif "np" in u.__dict__:
            return u.__dict__["np"]
        return buffer_data(self._computed())

    def _computed(self) -> UOp:
        """The contiguous buffer that holds the value, which is computed if it is not known."""
        for _ in range(2):
            u = self.uop
            if is_contiguous_buffer(u):
                return u
            if "realized" in u.__dict__:
                return u.__dict__["realized"]
            if self._value is not None and self._value[0] is u:
                return self._value[1]
            self.realize()
        raise RuntimeError(f"{self!r} was computed, but its value is not known")

    def _check_data(self, check: Callable[[np.ndarray], None]) -> None:
        """Let `check` raise for bad values, now and in every replay of what `jit` records."""
        computed = self._computed()
        check(buffer_data(computed))
        recording.note_check(computed, check)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def item(self) -> Number:
        """The only element, as a Python number. Raises ValueError if there is not exactly one."""
        if self.size != 1:
            raise ValueError(f"item() needs exactly one element, this tensor has shape "
                             f"{self.shape}")
        return self._seen().item()

    def tolist(self) -> Any:
        return self.numpy().tolist()

    def contiguous(self) -> Tensor:
        """The same value, computed into memory of its own before it is used."""
        return self._of(self.uop.stage())

    def detach(self) -> Tensor:
        """The same value, through which no gradient flows."""
        return self._view(self.uop.stage("detach"))

    def assign(self, value: Any) -> Tensor:
        """Give this tensor a new value of the same shape and dtype; gradients do not flow into it.

        Raises ValueError or TypeError that names both shapes or dtypes otherwise, and ValueError
        for a view (a slice, say) of a tensor that is in use: that one would not change.
        """
        self._refuse_view("assigning to")
        value = value if isinstance(value, Tensor) else Tensor(value, dtype=self.dtype)
        if value.shape != self.shape:
            raise ValueError(f"cannot assign shape {value.shape} to a tensor of {self.shape}")
        if value.dtype is not self.dtype:
            raise TypeError(f"cannot assign {value.dtype} to a tensor of {self.dtype}")
        self._assign(value.uop.stage(("assign", next(recording.assignments))))
        return self

    def _assign(self, uop: UOp) -> None:
        recording.note_assignment(self, self.uop)
        self._set(uop, None)

    # *** gradients ***

    @atomic
    def backward(self, params: Iterable[Tensor] | None = None,
                 gradient: Tensor | None = None) -> None:
        """Add the gradient of this tensor to the `.grad` of each of `params`.

        Without `params`, of every living tensor with `requires_grad` that it depends on. `gradient`
        is what is to be multiplied with; without it this tensor must have one element. A parameter
        on which this tensor does not depend keeps its `.grad` (None at first); one that it reads
        through what is constant almost everywhere alone (`floor`, comparisons) gets zeros. Raises
        TypeError for tensors that are not floats, ValueError where a shape does not fit, or where
        nothing wants a gradient.
        """
        if not self.dtype.is_float:
            raise TypeError(f"backward needs a float tensor, this one is {self.dtype}")
        if gradient is None and self.size != 1:
            raise ValueError(f"backward needs a tensor with one element, or a gradient; this one "
                             f"has shape {self.shape}")
        if gradient is not None and gradient.shape != self.shape:
            raise ValueError(f"the gradient's shape {gradient.shape} is not {self.shape}")
        if isinstance(params, Tensor):
            params = [params]
        if params is None:
            below = set(self.uop.toposort())
            living = [p for leaf in list(_leaves.values()) if (p := leaf()) is not None]
            params = [p for p in living if not below.isdisjoint(p._nodes())]
        wanted = list(dict.fromkeys(params))
        if not wanted:
            raise ValueError("backward has nothing to differentiate for: give it tensors, or make "
                             "what this one depends on with requires_grad=True")
        for p in wanted:
            _check_parameter(p)
        seed = broadcast(UOp.const(1, self.dtype), self.shape) if gradient is None \
            else gradient.uop.cast(self.dtype)
        found = gradients(self.uop, {u for p in wanted for u in p._nodes()}, seed)
        for p in wanted:
            for u in p._nodes():
                if u in found:
                    g = self._of(found[u])
                    p.grad = g if p.grad is None else p.grad + g
                    recording.note_gradient(p)

    def _nodes(self) -> list[UOp]:
        """The nodes by which graphs refer to this tensor's value."""
        former = self._former() if self._former else None
        return [self.uop] if former is None else [self.uop, former]


def _reuse_computed(roots: list[UOp]) -> list[UOp]:
    """The roots with every node whose value is known replaced by the buffer that holds it."""
    sink = UOp(Ops.SINK, tuple(roots))
    known = {u: u.__dict__["realized"]
             for u in sink.toposort(stop=lambda u: "realized" in u.__dict__)
             if "realized" in u.__dict__}
    return list(sink.substitute(known).src) if known else roots


def _check_parameter(p: Tensor) -> None:
    if not isinstance(p, Tensor):
        raise TypeError(f"gradients are of tensors; one given is {p!r}")
    if not p.dtype.is_float:
        raise TypeError(f"only floats have gradients; a given tensor is {p.dtype}")
    if not is_assigned(p.uop) and not _reads_buffer(p.uop):
        raise ValueError(f"a given tensor of shape {p.shape} is a constant expression, which equal "
                         "tensors share; create it with requires_grad=True")


def is_assigned(u: UOp) -> bool:
    """True for the node that `assign` makes, a different one at each call."""
    return u.op is Ops.STAGE and isinstance(u.arg, tuple)


def _reads_buffer(u: UOp) -> bool:
    """False for an expression of constants, which any two programs may share."""
    stack, seen = [u], {u}
    while stack:
        node = stack.pop()
        if node.op is Ops.BUFFER:
            return True
        stack.extend(s for s in node.src if s not in seen)
        seen.update(node.src)
    return False


def _lies_in_memory(root: UOp) -> bool:
    """True when realizing `root` gives an existing buffer rather than a new one."""
    while root.op in (Ops.STAGE, Ops.RESHAPE):
        root = root.src[0]
    return root.op is Ops.BUFFER
