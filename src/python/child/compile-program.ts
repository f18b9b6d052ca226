import type { Monty } from "@pydantic/monty";
import { type ComposedProgram, composeProgram, type ProgramParts } from "./compose-program.ts";
import type { MontyModule } from "./machine.ts";
import { RunFailed } from "./run-failed.ts";

export interface CompiledProgram {
  readonly program: Monty;
  readonly composed: ComposedProgram;
}

/** Compiles the code by itself, so that an error in it is told by its own lines. Throws `RunFailed`. */
export function checkCode(code: string, monty: MontyModule): void {
  try {
    new monty.Monty(code, { scriptName: "main.py" });
  } catch (error) {
    if (!(error instanceof monty.MontyError)) throw error;
    const { typeName, message } = error.exception;
    // The declared formats leave this one out; the native side has it for every kind of error.
    const traceback = (error as { display(format: string): string }).display("traceback").slice(0, 4_000);
    throw new RunFailed({ type: typeName, message }, { traceback, cause: error });
  }
}

/** Compiles code that compiles by itself together with what kit puts around it. */
export function compileProgram(parts: ProgramParts, monty: MontyModule): CompiledProgram {
  const attempt = (functions: ProgramParts["reading"]["functions"]): CompiledProgram => {
    const composed = composeProgram({ ...parts, reading: { ...parts.reading, functions } });
    const inputs = parts.inputs.size === 0 ? {} : { inputs: [...parts.inputs] };
    return { program: new monty.Monty(composed.text, { scriptName: "main.py", ...inputs }), composed };
  };
  const { functions } = parts.reading;
  try {
    return attempt(functions);
  } catch (error) {
    // The grammar took something for the end of a function that is none: then no function is kept.
    if (functions.length === 0) throw error;
    return attempt([]);
  }
}
