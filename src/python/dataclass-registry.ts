import { KitError } from "../base/kit-error.ts";
import { checkKeys } from "./check-keys.ts";
import type { AnyPythonDataclass, PythonDataclass, PythonField, PythonObject } from "./contract.ts";

/** A dataclass as the registry keeps it, whatever the type of its instances. */
export interface RegisteredDataclass {
  readonly name: string;
  readonly fields: readonly PythonField[];
  readonly frozen: boolean;
  readonly methods: ReadonlyMap<string, (self: object, ...args: readonly unknown[]) => unknown>;
}

export interface DataclassRegistry {
  register(dataclass: AnyPythonDataclass): void;
  get(name: string): RegisteredDataclass | undefined;
  all(): readonly RegisteredDataclass[];
  /** The dataclass that a value of the host is an instance of. */
  dataclassOf(value: object): RegisteredDataclass | undefined;
  /** An instance for the host; the fields alone where no dataclass of that name is registered. */
  build(name: string, fields: PythonObject): PythonObject;
}

export function createDataclassRegistry(): DataclassRegistry {
  const registered = new Map<string, RegisteredDataclass>();
  const builders = new Map<string, (fields: PythonObject) => object>();
  const prototypes = new Map<object, string>();
  // The registry knows an instance that kit made by the dataclass it was made for, also where no class tells it.
  const made = new WeakMap<object, string>();
  return {
    register(dataclass) {
      const checked = checkDataclass(dataclass);
      for (const [prototype, name] of prototypes) if (name === checked.name) prototypes.delete(prototype);
      registered.set(checked.name, checked);
      builders.set(checked.name, builderOf(dataclass));
      if (dataclass.class !== undefined) prototypes.set(dataclass.class.prototype, checked.name);
    },
    get: (name) => registered.get(name),
    all: () => [...registered.values()],
    dataclassOf(value) {
      const name = made.get(value) ?? prototypes.get(Object.getPrototypeOf(value));
      return name === undefined ? undefined : registered.get(name);
    },
    build(name, fields) {
      const builder = builders.get(name);
      const instance: unknown = builder === undefined ? fields : builder(fields);
      if (typeof instance !== "object" || instance === null) {
        throw refused(`\`create\` of the dataclass ${name} gave no object.`);
      }
      made.set(instance, name);
      return instance as PythonObject;
    },
  };
}

function builderOf(dataclass: AnyPythonDataclass): (fields: PythonObject) => object {
  if (dataclass.create !== undefined) return dataclass.create;
  const prototype: object | undefined = dataclass.class?.prototype;
  return prototype === undefined
    ? (fields) => fields
    : (fields) => {
        const instance: object = Object.create(prototype);
        // Only what is registered: what a dump says of fields can be anything.
        for (const field of dataclass.fields) {
          const name = typeof field === "string" ? field : field.name;
          if (Object.hasOwn(fields, name)) Reflect.set(instance, name, fields[name]);
        }
        return instance;
      };
}

function checkDataclass(dataclass: AnyPythonDataclass): RegisteredDataclass {
  checkKeys(dataclass, "A dataclass", {
    of: "field of a dataclass's definition",
    keys: ["name", "fields", "frozen", "methods", "class", "create"],
  });
  const { name } = dataclass;
  if (!Array.isArray(dataclass.fields)) throw refused("`fields` of a dataclass must be a list.");
  if (typeof name !== "string" || !isPythonName(name))
    throw refused(`"${String(name)}" cannot be the name of a dataclass.`);
  const fields = dataclass.fields.map((field) => (typeof field === "string" ? { name: field } : field));
  const seen = new Set<string>();
  let defaults = false;
  for (const field of fields) {
    if (!isPythonName(field.name) || field.name.startsWith("__")) {
      throw refused(`"${field.name}" cannot be a field of ${name}.`);
    }
    if (seen.has(field.name)) throw refused(`${name} has the field "${field.name}" twice.`);
    seen.add(field.name);
    if (defaults && !("default" in field)) {
      throw refused(`The field "${field.name}" of ${name} needs a default: it comes after one that has one.`);
    }
    defaults ||= "default" in field;
  }
  const methods = new Map<string, (self: object, ...args: readonly unknown[]) => unknown>();
  for (const [method, call] of Object.entries(dataclass.methods ?? {})) {
    // Monty itself refuses names with an underscore in front before any call reaches the host.
    if (!isPythonName(method) || method.startsWith("_")) {
      throw refused(`"${method}" cannot be a method of ${name}: start it with a letter.`);
    }
    if (seen.has(method)) throw refused(`${name} has both a field and a method "${method}".`);
    methods.set(method, call as (self: object, ...args: readonly unknown[]) => unknown);
  }
  return { name, fields, frozen: dataclass.frozen === true, methods };
}

function refused(message: string): KitError {
  return new KitError({ code: "invalid_request", message });
}

const identifier = /^[\p{L}\p{Nl}_][\p{L}\p{Nl}\p{Mn}\p{Mc}\p{Nd}\p{Pc}]{0,127}$/u;

const keywords: ReadonlySet<string> = new Set(
  `False None True and as assert async await break class continue def del elif else except finally for from
  global if import in is lambda nonlocal not or pass raise return try while with yield`.split(/\s+/),
);

/** Names that kit's own parts of a program take. */
export const ownPrefix = "__kit_";

/** Whether Python code can define this name. */
export function isPythonName(name: string): boolean {
  return identifier.test(name) && !keywords.has(name) && !name.startsWith(ownPrefix);
}

/**
 * Returns the dataclass unchanged. In a list of dataclasses, the call infers the instance type for its methods.
 *
 * @example
 * ```ts
 * import { definePythonDataclass } from "kit/python";
 *
 * export const point = definePythonDataclass({ name: "Point", fields: ["x", "y"] });
 * ```
 */
export function definePythonDataclass<Instance extends object = PythonObject>(
  dataclass: PythonDataclass<Instance>,
): AnyPythonDataclass {
  return dataclass;
}
