import type { MontySnapshot } from "@pydantic/monty";
import { attempt } from "../../base/attempt.ts";
import type { AnswerMessage } from "../process/messages.ts";
import type { PythonExceptionInfo } from "../python-error.ts";
import { createValueBudget, fromPythonLimits } from "../values/wire-value.ts";
import { constructDataclass, type DataclassTypes } from "./dataclass-calls.ts";
import type { HostLink } from "./host-link.ts";
import { fromMonty, toMonty } from "./monty-values.ts";

export type Answer = { readonly returnValue: unknown } | { readonly exception: PythonExceptionInfo };

/** A call that was sent to kit, which answers it. */
const asked = "asked";

/**
 * A host function in Monty's form. Its name contains a space, which no Python name can, to distinguish its calls from those
 * of a method, which Monty reports by its plain name.
 */
export function hostFunction(kind: "host" | "class", name: string): () => void {
  return Object.defineProperty(() => undefined, "name", { value: `${kind} ${name}` });
}

/** Answers the call of a dataclass here; sends any other call to kit and returns "asked". */
export function callHost(
  snapshot: MontySnapshot,
  host: { readonly link: HostLink; readonly types: DataclassTypes },
): Answer | typeof asked {
  const { functionName, args } = snapshot;
  const kwargs = attempt(() => new Map(Object.entries(snapshot.kwargs)));
  if (kwargs === undefined) {
    const message = "keywords must be strings without NUL";
    return { exception: { type: "TypeError", message } };
  }
  const [, kind, name = ""] = /^(host|class) (.*)$/s.exec(functionName) ?? [];
  if (kind === "class") {
    const shape = host.types.get(name);
    if (shape === undefined) return unknownName(name);
    const made = constructDataclass(shape, { args, kwargs }, host.types);
    return "instance" in made ? { returnValue: made.instance } : made;
  }
  if (kind === "host") return ask({ name, args, kwargs }, host);
  const self: unknown = args[0];
  const dataclass = dataclassOf(self);
  if (dataclass === undefined) return unknownName(functionName);
  if (host.types.get(dataclass)?.methods.includes(functionName) !== true) {
    const message = `'${dataclass}' object has no attribute '${functionName}'`;
    return { exception: { type: "AttributeError", message } };
  }
  return ask({ name: functionName, dataclass, args, kwargs }, host);
}

function unknownName(name: string): Answer {
  return { exception: { type: "NameError", message: `name '${name}' is not defined` } };
}

function dataclassOf(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !("__monty_type__" in value)) return undefined;
  return value.__monty_type__ === "Dataclass" && "name" in value ? String(value.name) : undefined;
}

interface HostCall {
  readonly name: string;
  readonly dataclass?: string | undefined;
  readonly args: readonly unknown[];
  readonly kwargs: ReadonlyMap<string, unknown>;
}

function ask(call: HostCall, { link }: { readonly link: HostLink }): Answer | typeof asked {
  let tooMuch: string | undefined;
  const budget = createValueBudget((problem) => {
    tooMuch = problem;
    throw new RangeError(problem);
  }, fromPythonLimits);
  try {
    const args = call.args.map((value) => fromMonty(value, budget));
    const kwargs = Array.from(call.kwargs, ([key, value]) => {
      budget.text(key.length);
      return [key, fromMonty(value, budget)] as const;
    });
    const { name, dataclass } = call;
    link.send({ type: "call", name, args, kwargs, dataclass });
    return asked;
  } catch (error) {
    if (tooMuch === undefined) throw error;
    return { exception: { type: "ValueError", message: `The call of ${call.name}() ${tooMuch}.` } };
  }
}

/** Converts kit's answer to Monty's form. */
export function toAnswer(message: AnswerMessage, types: DataclassTypes): Answer {
  return message.type === "raise"
    ? { exception: message.exception }
    : { returnValue: toMonty(message.value, types.typeId) };
}
