import { createHash } from "node:crypto";
import type { DataclassShape } from "../process/messages.ts";
import type { PythonExceptionInfo } from "../python-error.ts";
import { toMonty } from "./monty-values.ts";

/** The shape and the type id of a dataclass, which Monty needs to create an instance. */
export interface DataclassTypes {
  get(name: string): DataclassShape | undefined;
  typeId(name: string): bigint;
}

export function createDataclassTypes(shapes: readonly DataclassShape[]): DataclassTypes {
  const byName = new Map(shapes.map((shape) => [shape.name, shape]));
  const ids = new Map<string, bigint>();
  return {
    get: (name) => byName.get(name),
    // The id depends only on the name, so that it is the same in every process that continues a program.
    typeId(name) {
      const id = ids.get(name) ?? createHash("sha256").update(name).digest().readBigUInt64BE() >> 1n;
      ids.set(name, id);
      return id;
    },
  };
}

export type Constructed = { readonly instance: unknown } | { readonly exception: PythonExceptionInfo };

/** Calls a dataclass with Python's rules and errors for arguments. */
export function constructDataclass(
  shape: DataclassShape,
  call: { readonly args: readonly unknown[]; readonly kwargs: ReadonlyMap<string, unknown> },
  types: DataclassTypes,
): Constructed {
  const { name, fields, frozen } = shape;
  const wrong = (message: string): Constructed => ({
    exception: { type: "TypeError", message: `${name}.__init__() ${message}` },
  });
  if (call.args.length > fields.length) {
    return wrong(`takes ${fields.length} positional arguments but ${call.args.length} were given`);
  }
  const values = new Map<string, unknown>(
    fields.slice(0, call.args.length).map((field, index) => [field.name, call.args[index]]),
  );
  for (const [key, value] of call.kwargs) {
    if (!fields.some((field) => field.name === key))
      return wrong(`got an unexpected keyword argument '${key}'`);
    if (values.has(key)) return wrong(`got multiple values for argument '${key}'`);
    values.set(key, value);
  }
  for (const field of fields) {
    if (values.has(field.name)) continue;
    if (field.default === undefined) return wrong(`missing a required argument: '${field.name}'`);
    values.set(field.name, toMonty(field.default, types.typeId));
  }
  return {
    instance: {
      __monty_type__: "Dataclass",
      name,
      typeId: types.typeId(name),
      fieldNames: fields.map((field) => field.name),
      fields: Object.fromEntries(fields.map((field) => [field.name, values.get(field.name)])),
      frozen,
    },
  };
}
