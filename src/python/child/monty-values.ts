import {
  isWireList,
  toWireNumber,
  type ValueBudget,
  type WireTime,
  type WireValue,
} from "../values/wire-value.ts";

/** Monty's markers of values without a JavaScript counterpart. */
type Marked = { readonly __monty_type__: string } & Readonly<Record<string, unknown>>;

/** Converts a wire value to Monty's form. Monty identifies dataclasses by a number, which `typeId` derives from the name. */
export function toMonty(wire: WireValue, typeId: (name: string) => bigint): unknown {
  if (wire === null || typeof wire !== "object") return wire;
  const inside = (part: WireValue): unknown => toMonty(part, typeId);
  // Where Python needs a hashable value, a list becomes a tuple.
  const key = (part: WireValue): unknown =>
    isWireList(part) ? Object.assign(part.map(key), { __tuple__: true }) : inside(part);
  if (isWireList(wire)) return wire.map(inside);
  switch (wire.t) {
    case "number":
      return Number(wire.v);
    case "int":
      return BigInt(wire.v);
    case "bytes":
      return Buffer.from(wire.v, "base64");
    case "tuple":
      return Object.assign(wire.v.map(inside), { __tuple__: true });
    case "dict":
      return new Map(wire.v.map(([name, value]) => [key(name), inside(value)]));
    case "set":
      return new Set(wire.v.map(key));
    case "time": {
      const { kind, ...fields } = wire.v;
      return { __monty_type__: kind, ...fields };
    }
    case "dataclass":
      return {
        __monty_type__: "Dataclass",
        name: wire.name,
        typeId: typeId(wire.name),
        fieldNames: [...wire.fields],
        fields: Object.fromEntries(wire.fields.map((name, index) => [name, inside(wire.v[index] ?? null)])),
        frozen: wire.frozen,
      };
  }
}

/** Converts a value from Monty's form. Throws the error of `budget` if it is too deep or too large. */
export function fromMonty(value: unknown, budget: ValueBudget, depth = 0): WireValue {
  budget.enter(depth);
  switch (typeof value) {
    case "boolean":
      return value;
    case "number":
      return toWireNumber(value);
    case "bigint": {
      const digits = value.toString();
      budget.text(digits.length);
      return { t: "int", v: digits };
    }
    case "string":
      budget.text(value.length);
      return value;
    case "object":
      return value === null ? null : fromObject(value, budget, depth + 1);
    default:
      return null;
  }
}

function fromObject(value: object, budget: ValueBudget, depth: number): WireValue {
  const inside = (part: unknown): WireValue => fromMonty(part, budget, depth);
  if (Array.isArray(value)) {
    const parts = value.map(inside);
    return "__tuple__" in value ? { t: "tuple", v: parts } : parts;
  }
  if (Buffer.isBuffer(value)) {
    const text = value.toString("base64");
    budget.text(text.length);
    return { t: "bytes", v: text };
  }
  if (value instanceof Map) {
    return { t: "dict", v: Array.from(value, ([key, part]) => [inside(key), inside(part)] as const) };
  }
  if (value instanceof Set) return { t: "set", v: Array.from(value, inside) };
  return isMarked(value) ? fromMarked(value, inside) : null;
}

function isMarked(value: object): value is Marked {
  return "__monty_type__" in value && typeof value.__monty_type__ === "string";
}

function fromMarked(value: Marked, inside: (part: unknown) => WireValue): WireValue {
  const { __monty_type__: kind, ...fields } = value;
  switch (kind) {
    case "Dataclass": {
      const names = (fields.fieldNames as readonly string[] | undefined) ?? [];
      const values = (fields.fields as Readonly<Record<string, unknown>> | undefined) ?? {};
      return {
        t: "dataclass",
        name: String(fields.name),
        frozen: fields.frozen === true,
        fields: names,
        v: names.map((name) => inside(values[name])),
      };
    }
    case "DateTime":
    case "Date":
    case "TimeDelta":
    case "TimeZone":
      return { t: "time", v: { kind, ...fields } as WireTime };
    // Other values become their Python repr.
    case "Exception":
      return `${String(fields.excType)}(${JSON.stringify(String(fields.message ?? ""))})`;
    case "Type":
      return `<class '${String(fields.value)}'>`;
    case "BuiltinFunction":
      return `<built-in function ${String(fields.value)}>`;
    default:
      return kind;
  }
}
