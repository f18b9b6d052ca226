import { readdirSync } from "node:fs";
import { parse } from "node:path";
import { attempt } from "../base/attempt.ts";
import { KitError } from "../base/kit-error.ts";
import { thrownText } from "../base/thrown.ts";
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
 * Shows Python the error that a function of the host threw: a type that Python code can catch and the
 * message, without the stack and without paths of this machine. Anything can be thrown, and looking at it can
 * throw.
 */
export function toPythonException(error: unknown): PythonExceptionInfo {
  const { type, message } = attempt(() => describe(error)) ?? {
    type: "RuntimeError",
    message: "the function threw a value that has no text",
  };
  // Twice what is kept: a path that ends beyond the cut is still a path.
  const hidden = hidePaths(message.slice(0, 2 * maxMessageChars));
  const cut = hidden.length > maxMessageChars ? `${hidden.slice(0, maxMessageChars)}…` : hidden;
  if (raisable.has(type)) return { type, message: cut };
  const name = type.slice(0, 200);
  return { type: "RuntimeError", message: cut === "" ? name : `${name}: ${cut}` };
}

function describe(error: unknown): PythonExceptionInfo {
  if (!(error instanceof Error)) return { type: "RuntimeError", message: thrownText(error) };
  const message = textOf(error, "message") ?? "";
  if (error instanceof PythonException) return { type: textOf(error, "type") ?? "RuntimeError", message };
  const code = textOf(error, "code") ?? "";
  if (error instanceof KitError) {
    return { type: code === "forbidden" ? "PermissionError" : "RuntimeError", message };
  }
  // Node's text ends in the path: "ENOENT: no such file or directory, open '/…'".
  if (textOf(error, "syscall") !== undefined) {
    return { type: systemErrors[code] ?? "OSError", message: message.split(", ")[0] ?? code };
  }
  if (textOf(error, "name") === "TimeoutError") return { type: "TimeoutError", message };
  if (error instanceof TypeError) return { type: "TypeError", message };
  if (error instanceof RangeError) return { type: "ValueError", message };
  return { type: "RuntimeError", message };
}

/** A text that an error has under this name; undefined where it is something else, or throws. */
function textOf(error: Error, name: string): string | undefined {
  const value = attempt((): unknown => Reflect.get(error, name));
  return typeof value === "string" ? value : undefined;
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
  return attempt(() => new Set(readdirSync(parse(process.cwd()).root)), new Set());
}
