"""Source text of the public functions of ops, from which they are generated when first used.

For two small tensors of one shape, dtype and tape, ``x * y`` is one NumPy multiplication and the stores that make the
node; nothing is looked up.  Everything else takes the general path (``dispatch``).  The names in the text are:

m, q           metas; ``m is q`` proves same shape, dtype, tape and kind of value
unknown        keywords that the op does not take
Tensor, …      the types on the fast path: ``Tensor``, ``ndarray`` and ``Large``; None while the op is observed (see
               hooks.py), so that all calls go through ``dispatch`` or ``perform_many``, which call the observer
kernel, run    the functions that compute the value; ``run`` may be faster than the kernel
one, both, …   the steps: variants of the op's rules by which operands are on the tape (see op.py)
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import CodeType

REQUIRED = object()  # the default of a parameter without one, so that a call without it raises our error

# Makes one node by storing its slots.  {v} is the expression of its value, {m} its meta.
NODE = (
    "r = new_node(); r.value = {v}; r.meta = {m}; r.via = {step}; r.x = {x}; r.y = {y}; r.g = None; m.push(r); return r"
)
# The same where the result may be big.
PLACE = "if q.pool is not None: return place(v, q, {step}, {x}, {y})\n{pad}" + NODE
# The same of a result that may be a view of its operand.
PLACE_VIEW = (
    "if q.pool is not None: return note_view(place(v, q, {step}, {x}, {y}), x, OP, {{{items}}})\n{pad}"
    + NODE.replace("; m.push(r)", "\n{pad}{note}\n{pad}m.push(r)")
)

# The same in machine code, which gives None for anything unusual (see native.py).
NATIVE = "\n    r = {function}({args})\n    if r is not None: return r"

UNARY = """
def {name}(x):{native}
    if type(x) is Tensor:
        m = x.meta
        if m.plain:
            {plain}
        if m.small:
            {above}
        if m.complex: return place_complex(OP, (x.value,), m, one, x, ())
    elif type(x) is ndarray and x.dtype.kind == "f":
        return {array}
    return dispatch(OP, (x,), {{}})
"""

UNARY_WITH_PARAMS = """
def {name}(x, {params}{unknown}):{refuse}{own}
    if type(x) is Tensor:
        m = x.meta
        if m.raw:
            try: v = {run}
            except CAUGHT as error: raise translate_error(OP, error, (x,), {{{items}}}) from None
            _s = v.shape{scalar}
            q = m.tape[_s, v.dtype]
            {node}
        if m.small:
            v = {above}
            q = m.tape.get_meta(v)
            {node}
    elif type(x) is ndarray and x.ndim and x.dtype is not OBJECT:
        try: return {array}
        except CAUGHT as error: raise translate_error(OP, error, (x,), {{{items}}}) from None
    elif type(x) is Large and x.meta.pool is not None:
        m = x.meta
        try: v = {run}
        except CAUGHT as error: raise translate_error(OP, error, (x,), {{{items}}}) from None
        _s = v.shape{scalar}
        if one.needs[0]: keep(x.x, x.value)
        return {noted}
    return dispatch(OP, (x,), {{{items}}})
"""

BINARY = """
def {name}(x, y):{native}
    t = type(y)
    if type(x) is Tensor:
        m = x.meta
        if t is Tensor:
            q = y.meta
            if {same}:
                {both}
            if m is q and {complex}: return place_complex(OP, (x.value, y.value), m, both, x, y)
            if m.{fast} and q.{fast} and m.tape is q.tape and m.dtype is q.dtype:
                p = q
                try: v = {raw}
                except CAUGHT as error: raise translate_error(OP, error, (x, y), {{}}) from None
                q = m.tape[v.shape, v.dtype]
                {both_fit}
        elif t is float or t is int:{shortcuts}
            if {weak}:
                y = m.constants[y]
                {left}
            if {complex}: return place_complex(OP, (x.value, y), m, left, x, y)
        elif t is complex and {complex}: return place_complex(OP, (x.value, y), m, left, x, y)
        elif t is ndarray and m.{fast} and y.dtype is m.dtype:
            try: v = {raw_left}
            except CAUGHT as error: raise translate_error(OP, error, (x, y), {{}}) from None
            q = m.tape[v.shape, v.dtype]
            {left_array}
    elif t is Tensor and type(x) is ndarray:
        m = y.meta
        if m.{fast} and x.dtype is m.dtype:
            try: v = {raw_right}
            except CAUGHT as error: raise translate_error(OP, error, (x, y), {{}}) from None
            q = m.tape[v.shape, v.dtype]
            {right_array}
    elif (
        t is ndarray and type(x) is ndarray and x.dtype is y.dtype and x.ndim and y.ndim and x.dtype is not OBJECT{wide}
    ):
        try: return {arrays}
        except CAUGHT as error: raise translate_error(OP, error, (x, y), {{}}) from None
    elif {large}:
        m = x.meta
        if t is ndarray and m.pool is not None and y.dtype is m.dtype and y.shape == m.shape:
            if left.needs[0]: keep(x.x, x.value)
            v = kernel(x.value, y, out=take_buffer(m.pool))
            return place(v, m, left, x.x, capture(y, m.tape) if left.needs[1] else m)
{large_shortcuts}    r = perform_with_constant(OP, x, y)
    return dispatch(OP, (x, y), {{}}) if r is None else r

def reflected(y, x):{native_reflected}
    t = type(x)
    if (t is float or t is int) and type(y) is Tensor:
        m = y.meta
        if {weak}:
            x = m.constants[x]
            {right}
        if {complex}: return place_complex(OP, (x, y.value), m, right, y, x)
    elif t is complex and type(y) is Tensor:
        m = y.meta
        if {complex}: return place_complex(OP, (x, y.value), m, right, y, x)
    r = perform_with_constant(OP, x, y)
    return dispatch(OP, (x, y), {{}}) if r is None else r
"""

MANY = """
def {name}({signature}, {unknown}):{refuse}{own}
    return perform_many(OP, {args}, {{{items}}})
"""

OTHER_OPERAND = """
def reflected(y, x):
    return dispatch(OP, (x, y), {})
"""


def write_parameters(
    names: Sequence[str], required: Sequence[str], flags: Sequence[str], checked: bool, first: str
) -> tuple[str, dict[str, str]]:
    """Return the parameters in a function's signature, and the text for keywords that it does not take.

    ``first`` are its inputs, ``flags`` the parameters that are True or False.
    """
    if not checked:
        return ", ".join(names), {"unknown": "", "refuse": ""}
    misses = "".join(f" or {n} is REQUIRED" for n in required)
    misses += "".join(f" or ({n} is not False and {n} is not True)" for n in flags)
    items = ", ".join(f"{n!r}: {n}" for n in names)
    refuse = f"\n    if unknown{misses}: return call_with_unknown(OP, ({first},), unknown, {{{items}}})"
    return ", ".join(f"{n}=_{n}" for n in names), {"unknown": "**unknown", "refuse": refuse}


def write_copies(names: Sequence[str]) -> str:
    """Return the text that copies parameters which the caller could change before the backward pass needs them."""
    return "".join(f"\n    if {n} is not None and type({n}) in MUTABLE: {n} = copy_parameter({n})" for n in names)


def forward_parameters(code: CodeType) -> tuple[str, str]:
    """Return the parameters of a function without their defaults, and the arguments that pass them on, as text.

    >>> forward_parameters((lambda x, /, y=1, *, z=2, **more: 0).__code__)
    ('x, /, y, *, z, **more', 'x, y, z=z, **more')
    """
    names = iter(code.co_varnames)
    first = [next(names) for _ in range(code.co_posonlyargcount)]
    others = [next(names) for _ in range(code.co_argcount - code.co_posonlyargcount)]
    keywords = [next(names) for _ in range(code.co_kwonlyargcount)]
    rest = [f"*{next(names)}"] if code.co_flags & CO_VARARGS else []
    more = [f"**{next(names)}"] if code.co_flags & CO_VARKEYWORDS else []
    bar = rest or ["*"] if keywords else rest
    parameters = [*first, *(["/"] if first else []), *others, *bar, *keywords, *more]
    return ", ".join(parameters), ", ".join([*first, *others, *rest, *(f"{n}={n}" for n in keywords), *more])
