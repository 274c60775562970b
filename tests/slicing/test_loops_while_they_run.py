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
