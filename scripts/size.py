"""Prints lines of code per package, and fails when a file or function is too long.

Limits: 400 lines a file, 60 lines a function (docstrings and blank lines included for files,
docstrings excluded for functions).
"""

import ast
import sys
from collections import Counter
from pathlib import Path

FILE_LIMIT = 400
FUNCTION_LIMIT = 60


def function_lengths(tree: ast.Module) -> list[tuple[str, int]]:
    """Names and body lengths, without the docstring, of all functions."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            length = (body[-1].end_lineno or 0) - body[0].lineno + 1
            found.append((node.name, length))
    return found


def main() -> int:
    """Report and check; returns the exit code."""
    root = Path(__file__).parent.parent / "src" / "dilim"
    lines: Counter[str] = Counter()
    problems = []
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        count = text.count("\n")
        name = path.relative_to(root)
        lines[name.parts[0] if len(name.parts) > 1 else "(top)"] += count
        if count > FILE_LIMIT:
            problems.append(f"{name}: {count} lines, limit {FILE_LIMIT}")
        for function, length in function_lengths(ast.parse(text)):
            if length > FUNCTION_LIMIT:
                problems.append(f"{name}: {function} has {length} lines, limit {FUNCTION_LIMIT}")
    for package, count in sorted(lines.items()):
        print(f"{package:12} {count:6}")
    print(f"{'total':12} {sum(lines.values()):6}")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
