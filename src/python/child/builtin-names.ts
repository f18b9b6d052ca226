/** Names that Python knows by itself. */
export const builtinNames: ReadonlySet<string> = new Set(
  `ArithmeticError AssertionError AttributeError BaseException EOFError Ellipsis Exception FileExistsError
  FileNotFoundError ImportError IndexError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError
  ModuleNotFoundError NameError NotADirectoryError NotImplemented NotImplementedError OSError OverflowError
  PermissionError RecursionError RuntimeError StopAsyncIteration StopIteration SyntaxError SystemExit
  TimeoutError TypeError UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError ValueError
  ZeroDivisionError abs all any ascii bin bool bytes chr dict divmod enumerate filter float frozenset getattr
  hasattr hash hex id int isinstance iter len list map max min next object oct open ord pow print property
  range repr reversed round set setattr slice sorted str sum tuple type zip`.split(/\s+/),
);
