"""Small programs that write into products of vectors, which have memory of their own."""

from slicing.small_programs import Small

HEAD = """
w = dilim.ones(2, requires_grad=True)
M = dilim.ones((2, 2), requires_grad=True)
"""
TAIL = """
def f(x):
    y = g(x)
    y.sum().backward()
    return y.detach()
"""
PRODUCTS = {
    "matrix and vector": "M @ w",
    "vector and matrix": "w @ M",
    "two vectors": "w @ w",
    "two tensors": "dilim.tensordot(x, M, axes=1)",
    "logarithm of a sum": "dilim.logsumexp(M * x, axis=0)",
}
BODIES = {
    "written": """
    y = {product}
    y *= 2.0
    return y
""",
    "written after it was used": """
    y = {product}
    z = y * 3.0
    y += z
    return y + z
""",
    "written in a loop": """
    y = {product}
    for i in range(12):
        y = y * 0.5 + ({product}) * 0.1
        y += 1.0
    return y
""",
    "written, and a view of it": """
    y = {product}
    y += 1.0
    view = y[...]
    return y + view
""",
    "written before and after it is printed": """
    y = {product}
    y += 1.0
    print(y.sum().item())
    y *= 2.0
    return y
""",
    "written by two names": """
    y = z = {product}
    z -= 0.5
    return y * z
""",
}
CALLS = tuple(f"[{x}]" for x in ("dilim.ones((2, 2))", "dilim.full((2, 2), 0.5)") * 2)


PROGRAMS = {
    f"{name}, {how}": Small(
        f"{HEAD}\ndef g(x):{body.format(product=product)}{TAIL}", CALLS, None, None
    )
    for name, product in PRODUCTS.items()
    for how, body in BODIES.items()
}
