"""Runs the programs that standard input holds as JSON, each by itself, and prints what came of each as JSON.

What comes of a program is what it printed and the repr of the expression that it ends with, or the type of the
exception that it raised.
"""

import ast
import contextlib
import io
import json
import sys


def run(code):
    printed = io.StringIO()
    names = {"__name__": "__main__"}
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            tree = ast.parse(code)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, "main.py", "exec"), names)
            result = None if last is None else eval(compile(ast.Expression(last.value), "main.py", "eval"), names)
            text = repr(result)
    except BaseException as error:
        return printed.getvalue() + "raises " + type(error).__name__
    return printed.getvalue() + text


json.dump([run(code) for code in json.load(sys.stdin)], sys.stdout)
