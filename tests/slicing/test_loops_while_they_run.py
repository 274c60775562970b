"""Loops of functions that run as plain Python, compiled while they run."""

from slicing.comparing import Call, check

# memory that is not in row-major order: the function is left as it is
TURNED = Call("[dilim.from_numpy(np.ones((3, 4))[:, ::2])]")


def test_a_break_in_the_else_of_a_loop_is_of_the_loop_around_it():
    check(
        """
        def f(x):
            n = 0
            for i in range(4):
                for j in range(9):
                    n += j
                    if n > 50:
                        break
                else:
                    if n > 100:
                        break
                n += 1
            return x.sum() * n
        """,
        TURNED,
        TURNED,
        fallback="row-major",
    )


def test_that_a_loop_whose_error_is_swallowed_leaves_its_names_as_they_are():
    check(
        """
        import contextlib

        def f(x, n):
            y = dilim.ones(2)
            with contextlib.suppress(ValueError):
                for i in range(n):
                    y = y * 2
                    if i == 3:
                        raise ValueError(i)
            with dilim.no_grad():
                for i in range(n):
                    y = y + 1
            return y, i
        """,
        *(Call(f"[dilim.from_numpy(np.ones((3, 4))[:, ::2]), {n}]") for n in (2, 9)),
        fallback="row-major",
    )
