import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { attempt } from "../../base/attempt.ts";
import { thrownText } from "../../base/thrown.ts";
import { causeOf, type ErrorCause } from "../../protocol/error-cause.ts";
import { hidePaths } from "../../python/host-exception.ts";

/** An error of a project's code, with paths of the project's files only. */
export interface CodeFailure {
  readonly message: string;
  /** The place of the error, if the stack has one: project-relative, with the line from 1. */
  readonly place?: { readonly path: string; readonly line: number } | undefined;
}

/**
 * Reads an error thrown by a project's file, or by Node while it loaded one. `root` is the real path of
 * the project.
 */
export function describeFailure(error: unknown, root: string): CodeFailure {
  if (!(error instanceof Error)) return { message: `It threw ${thrownText(error)}, which is not an error.` };
  const place = placeOf(error.stack ?? "", root);
  const message = withoutRoot(error.message, root)
    .replace(/ imported from \S+$/, "")
    .trim();
  return {
    message: `${message === "" ? error.name : message}${adviceFor(error)}`,
    place,
  };
}

/** Creates the function that converts an error to the cause in a record, without secrets, which `mask` removes, and without paths of the machine. */
export function createToCause(
  root: string,
  mask: (text: string) => string = (text) => text,
): (error: unknown, also?: (text: string) => string) => ErrorCause | undefined {
  return (error, also = (text) => text) =>
    causeOf(error, {
      // Secrets first: a path may be a part of one.
      clean: (text) => hidePaths(withoutRoot(mask(also(text)), root)),
      place: (stack) => placeOf(stack, root),
    });
}

/** One line about it: the place in brackets, `itself` being the file that is spoken of already. */
export function failureLine({ message, place }: CodeFailure, itself?: string): string {
  if (place === undefined) return message;
  return place.path === itself
    ? `${message} (line ${place.line})`
    : `${message} (${place.path}:${place.line})`;
}

/** A field, or a name in quotes, in a fault: `tools[0].parametrs`, "read". */
const namedPart = /^`(?:[^`]*\.)?([\w$]+)`(?!.*")|"([^"]+)"/;

/** Adds to a fault the first line of the file that has the field or the name in it. */
export function withLine(sentence: string, file: string): string {
  const [, field, name] = namedPart.exec(sentence) ?? [];
  const pattern =
    name === undefined
      ? new RegExp(`(?<![\\w$])${field?.replaceAll("$", "\\$")}\\s*[:,(}]`)
      : new RegExp(`["'\`]${name.replace(/[^\w]/g, "\\$&")}["'\`]`);
  const lines = attempt(() => readFileSync(file, "utf8"), "").split("\n");
  const at = field === undefined && name === undefined ? -1 : lines.findIndex((line) => pattern.test(line));
  return at === -1 ? sentence : `${sentence} (line ${at + 1})`;
}

function adviceFor(error: Error): string {
  const code = "code" in error ? error.code : undefined;
  if (code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") return "; Node runs TypeScript by leaving its types out";
  if (
    error instanceof SyntaxError &&
    /^Cannot use import statement|^Unexpected token 'export'/.test(error.message)
  )
    return '; package.json needs "type": "module"';
  const missing = /Cannot find module '([^']+)'/.exec(error.message)?.[1];
  return code === "ERR_MODULE_NOT_FOUND" && missing !== undefined && !/\.\w+$/.test(missing)
    ? "; imports name the file with its extension"
    : "";
}

/** Longer lines are no calls. */
const maxLineChars = 2_000;

/** The first file of the project that the stack names: the head of a syntax error, or a call. */
function placeOf(stack: string, root: string): CodeFailure["place"] {
  for (const line of stack.split("\n").slice(0, 40)) {
    if (line.length > maxLineChars || line.includes("/node_modules/")) continue;
    const [, path, row] = /^(?:\s+at )?([^?\s][^?]*?\.[cm]?[jt]s)(?:\?[^:)\s]*)?:(\d+)(?::\d+)?\)?$/.exec(
      withoutRoot(line.replace(/\s+at .*\(/, "    at "), root),
    ) ?? [undefined, undefined, undefined];
    const file = path?.replace(/^async /, "");
    if (file === undefined || row === undefined || /^(?:\/|[a-z]+:|\.\.\/)/i.test(file)) continue;
    return { path: file, line: Number(row) };
  }
  return undefined;
}

function withoutRoot(text: string, root: string): string {
  return text
    .replaceAll(`${pathToFileURL(root).href}/`, "")
    .replaceAll(`${root}/`, "")
    .replaceAll(`${root}\\`, "");
}
