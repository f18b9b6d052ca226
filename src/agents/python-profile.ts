import type { AnyPythonDataclass, PythonFunction, PythonResourceLimits } from "../python/contract.ts";

/** What the Python of an agent's sessions can call and use, for the model and for `runPython` alike. */
export interface PythonProfile {
  readonly functions?: Readonly<Record<string, PythonFunction>>;
  readonly dataclasses?: readonly AnyPythonDataclass[];
  readonly resourceLimits?: PythonResourceLimits;
}

/** The profile that `python: true` and no word about Python are short for. */
export function pythonProfileOf(python: boolean | PythonProfile | undefined): PythonProfile {
  return typeof python === "object" ? python : {};
}
