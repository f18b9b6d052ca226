import { readdirSync } from "node:fs";
import { parse } from "node:path";
import { KitError } from "../base/kit-error.ts";
import { PythonException, type PythonExceptionInfo } from "./python-error.ts";

/** Exceptions that Monty can raise for the host. */
const raisable: ReadonlySet<string> = new Set(
  `ArithmeticError AssertionError AttributeError BaseException Exception FileExistsError FileNotFoundError
  ImportError IndexError IsADirectoryError KeyError KeyboardInterrupt LookupError MemoryError NameError
  NotADirectoryError NotImplementedError OSError OverflowError PermissionError RecursionError RuntimeError
  StopIteration SyntaxError SystemExit TimeoutError TypeError UnicodeDecodeError ValueError
  ZeroDivisionError`.split(/\s+/),
);

const systemErrors: Readonly<Record<string, string>> = {
  ENOENT: "FileNotFoundError",
  EEXIST: "FileExistsError",
  EACCES: "PermissionError",
  EPERM: "PermissionError",
  EISDIR: "IsADirectoryError",
  ENOTDIR: "NotADirectoryError",
  ETIMEDOUT: "TimeoutError",
};

const maxMessageChars = 2_000;

/**
 * What a function of the host threw, as Python sees it: a type that Python code can catch and the message,
 * without the stack and without paths of this machine.
 */
export function toPythonException(error: unknown): PythonExceptionInfo {
  const { type, message } = describe(error);
  const hidden = hidePaths(message);
  const cut = hidden.length > maxMessageChars ? `${hidden.slice(0, maxMessageChars)}…` : hidden;
  return raisable.has(type)
    ? { type, message: cut }
    : { type: "RuntimeError", message: cut === "" ? type : `${type}: ${cut}` };
}

function describe(error: unknown): PythonExceptionInfo {
  if (error instanceof PythonException) return { type: error.type, message: error.message };
  if (!(error instanceof Error)) return { type: "RuntimeError", message: String(error) };
  const { message } = error;
  if (error instanceof KitError) {
    return { type: error.code === "forbidden" ? "PermissionError" : "RuntimeError", message };
  }
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  // Node's text ends in the path: "ENOENT: no such file or directory, open '/…'".
  if ("syscall" in error) {
    return { type: systemErrors[code] ?? "OSError", message: message.split(", ")[0] ?? code };
  }
  if (error.name === "TimeoutError") return { type: "TimeoutError", message };
  if (error instanceof TypeError) return { type: "TypeError", message };
  if (error instanceof RangeError) return { type: "ValueError", message };
  return { type: "RuntimeError", message };
}

/** Takes paths of this machine out of a text: those that begin with a folder that its root has. */
export function hidePaths(text: string): string {
  if (!/[/\\]/.test(text)) return text;
  return text
    .replace(/file:\/\/\S+/g, "<path>")
    .replace(/\b[A-Za-z]:\\[^\s'"]+/g, "<path>")
    .replace(/(?<![\w.:/-])\/([^\s/'"`()<>:]+)\/[^\s'"`()<>]*/g, (path, first: string) =>
      rootFolders().has(first) ? "<path>" : path,
    );
}

function rootFolders(): ReadonlySet<string> {
  try {
    return new Set(readdirSync(parse(process.cwd()).root));
  } catch {
    return new Set();
  }
}
