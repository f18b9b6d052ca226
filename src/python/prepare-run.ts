import { KitError } from "../base/kit-error.ts";
import type { PythonFunction, PythonRunOptions } from "./contract.ts";
import type { DataclassRegistry } from "./dataclass-registry.ts";
import type { RunMessage } from "./process/messages.ts";
import { deadlineOf, defaultResourceLimits, memoryCeilingOf } from "./resource-limits.ts";
import { encodeValue } from "./values/encode-value.ts";
import { isPythonName } from "./values/identifier.ts";

const maxCodeChars = 1_000_000;

/** A run as the process is told of it, but for the variables, which are chosen when its turn has come. */
export interface PreparedRun {
  readonly message: Omit<RunMessage, "state">;
  readonly functions: ReadonlyMap<string, PythonFunction>;
}

/** Checks names, inputs and limits. Throws `invalid_request` for what Python cannot have. */
export function prepareRun(
  code: string,
  options: PythonRunOptions,
  registry: DataclassRegistry,
): PreparedRun {
  if (typeof code !== "string") throw refused("Python code is a text.");
  if (code.length > maxCodeChars) {
    throw refused(`Python code has at most ${maxCodeChars.toLocaleString("en")} characters.`);
  }
  const functions = new Map(Object.entries(options.functions ?? {}));
  const inputs = Object.entries(options.inputs ?? {});
  const dataclasses = registry.all();
  const taken = new Map<string, string>();
  const claim = (name: string, what: string): void => {
    if (!isPythonName(name)) throw refused(`"${name}" cannot be the name of ${what} in Python.`);
    const other = taken.get(name);
    if (other !== undefined) throw refused(`"${name}" is both ${other} and ${what}.`);
    taken.set(name, what);
  };
  for (const { name } of dataclasses) claim(name, "a dataclass");
  for (const name of functions.keys()) claim(name, "a function");
  for (const [name] of inputs) claim(name, "an input");
  const limits = options.resourceLimits ?? defaultResourceLimits;
  const given = Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
  return {
    functions,
    message: {
      type: "run",
      code,
      functions: [...functions.keys()],
      inputs: inputs.map(([name, value]) => [name, encodeValue(value, `inputs.${name}`, registry)]),
      dataclasses: dataclasses.map(({ name, frozen, fields, methods }) => ({
        name,
        frozen,
        methods: [...methods.keys()],
        fields: fields.map((field) =>
          "default" in field
            ? { name: field.name, default: encodeValue(field.default, `${name}.${field.name}`, registry) }
            : { name: field.name },
        ),
      })),
      limits: encodeValue(given, "resourceLimits", registry),
      returns: options.returns ?? "value",
      deadline_ms: deadlineOf(limits),
      memory_ceiling: memoryCeilingOf(limits),
    },
  };
}

function refused(message: string): KitError {
  return new KitError({ code: "invalid_request", message });
}
