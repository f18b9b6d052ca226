import type { Monty } from "@pydantic/monty";
import { type ComposedProgram, composeProgram, type ProgramParts } from "./compose-program.ts";
import type { MontyModule } from "./machine.ts";
import { RunFailed } from "./run-failed.ts";
import { childrenOf, parsePython, textOf } from "./syntax.ts";
import { unreadable } from "./variables.ts";

export interface CompiledProgram {
  readonly program: Monty;
  readonly composed: ComposedProgram;
}

/** Compiles the code alone, so that errors have its own line numbers. Throws `RunFailed`. */
export function checkCode(code: string, monty: MontyModule): void {
  try {
    new monty.Monty(code, { scriptName: "main.py" });
  } catch (error) {
    if (!(error instanceof monty.MontyError)) throw error;
    const { typeName, message } = error.exception;
    // The type declaration lacks this format, but the native part supports it for every error.
    const traceback = (error as { display(format: string): string }).display("traceback").slice(0, 4_000);
    throw new RunFailed({ type: typeName, message }, { traceback, cause: error });
  }
}

/** Compiles code, which compiles alone, together with the code that kit adds. */
export function compileProgram(parts: ProgramParts, monty: MontyModule): CompiledProgram {
  const attempt = (functions: ProgramParts["reading"]["functions"]): CompiledProgram => {
    const composed = composeProgram({ ...parts, reading: { ...parts.reading, functions } });
    const inputs = [...parts.inputs];
    return { program: new monty.Monty(composed.text, { scriptName: "main.py", inputs }), composed };
  };
  const { functions } = parts.reading;
  try {
    return attempt(functions);
  } catch (error) {
    // The grammar may have found a wrong end of a function, so try again without saving functions.
    const kept = [parts.functions, parts.imports].some((sources) => sources.length > 0);
    if (functions.length === 0 && !kept) throw error;
    return compileKept(() => attempt([]), monty);
  }
}

/** The code compiles alone, so if it fails with the saved state, the saved state is invalid. */
function compileKept(attempt: () => CompiledProgram, monty: MontyModule): CompiledProgram {
  try {
    return attempt();
  } catch (error) {
    if (!(error instanceof monty.MontyError)) throw error;
    throw unreadable(`${error.exception.typeName}: ${error.exception.message}`);
  }
}

/**
 * Replaces `SystemExit(1)` by `SystemExit(str(1))`, because Monty's exceptions accept only strings and this one usually gets
 * a number. Tracebacks show the original code.
 */
export function withTextExits(code: string): string {
  if (!/\bSystemExit\s*\(/.test(code)) return code;
  const edits: { readonly at: number; readonly text: string }[] = [];
  parsePython(code)
    .cursor()
    .iterate(({ node }) => {
      const [callee, list] = [node.firstChild, node.getChild("ArgList")];
      if (node.name !== "CallExpression" || callee?.name !== "VariableName" || list === null) return;
      if (textOf(callee, code) !== "SystemExit") return;
      const [argument, ...more] = childrenOf(list).slice(1, -1);
      if (argument === undefined || more.length > 0 || argument.name === "String") return;
      edits.push({ at: argument.from, text: "str(" }, { at: argument.to, text: ")" });
    });
  let text = code;
  for (const { at, text: added } of edits.toSorted((a, b) => b.at - a.at)) {
    text = text.slice(0, at) + added + text.slice(at);
  }
  return text;
}
