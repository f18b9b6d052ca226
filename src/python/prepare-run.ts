import { KitError } from "../base/kit-error.ts";
import { defined } from "../base/record.ts";
import { checkKeys, checkTable } from "./check-keys.ts";
import type { PythonFunction, PythonRunOptions } from "./contract.ts";
import { type DataclassRegistry, isPythonName } from "./dataclass-registry.ts";
import type { RunMessage } from "./process/messages.ts";
import { checkLimits, deadlineOf, defaultResourceLimits, memoryCeilingOf } from "./resource-limits.ts";
import { encodeValue } from "./values/encode-value.ts";

const maxCodeChars = 1_000_000;

/** The message that starts a run in the process, without the variables, which are chosen when the run starts. */
export interface PreparedRun {
  readonly message: Omit<RunMessage, "state">;
  readonly functions: ReadonlyMap<string, PythonFunction>;
}

/** Checks names, inputs and limits. Throws `invalid_request` for values that Python cannot represent. */
export function prepareRun(
  code: string,
  options: PythonRunOptions,
  registry: DataclassRegistry,
): PreparedRun {
  if (typeof code !== "string") throw refused("Python code is a text.");
  if (code.length > maxCodeChars) {
    throw refused(`Python code has at most ${maxCodeChars.toLocaleString("en")} characters.`);
  }
  checkOptions(options);
  const functions = new Map(Object.entries(options.functions ?? {}));
  for (const [name, definition] of functions) checkFunction(name, definition);
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
      limits: encodeValue(defined(limits), "resourceLimits", registry),
      returns: options.returns ?? "value",
      deadline_ms: deadlineOf(limits),
      memory_ceiling: memoryCeilingOf(limits),
    },
  };
}

function checkOptions(options: PythonRunOptions): void {
  checkKeys(options, "The options of a run", {
    of: "option of a run of Python",
    keys: ["inputs", "functions", "resourceLimits", "signal", "returns"],
  });
  const { inputs = {}, functions = {}, resourceLimits = {}, returns = "value" } = options;
  checkTable(inputs, "inputs");
  checkTable(functions, "functions");
  checkLimits(resourceLimits);
  if (returns !== "value" && returns !== "repr") throw refused('`returns` must be "value" or "repr".');
}

function checkFunction(name: string, definition: PythonFunction): void {
  if (typeof definition === "function") return;
  checkKeys(definition, `functions.${name}`, {
    of: `field of the function ${name}`,
    keys: ["execute", "signature", "description", "timeoutMs"],
  });
  const { execute, timeoutMs = 1 } = definition;
  if (typeof execute !== "function") throw refused(`functions.${name} needs \`execute\`, a function.`);
  if (!(typeof timeoutMs === "number" && timeoutMs > 0)) {
    throw refused(`functions.${name}.timeoutMs must be a number of milliseconds above 0.`);
  }
}

function refused(message: string): KitError {
  return new KitError({ code: "invalid_request", message });
}
