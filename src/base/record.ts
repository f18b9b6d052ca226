/** Whether a value is an object with keys: not an array, a function or `null`. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

type Defined<Fields> = { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> };

/** Returns the object without the keys that hold `undefined`, and without `__proto__`, which would set a prototype. */
export function defined<Fields extends object>(fields: Fields): Defined<Fields> {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields))
    if (value !== undefined && name !== "__proto__") kept[name] = value;
  return kept as Defined<Fields>;
}

/** A value of which any part can be missing, such as an object that a model is still writing. */
export type DeepPartial<Value> = unknown extends Value
  ? unknown
  : Value extends readonly (infer Item)[]
    ? readonly DeepPartial<Item>[]
    : Value extends object
      ? { readonly [Key in keyof Value]?: DeepPartial<Value[Key]> | undefined }
      : Value;
