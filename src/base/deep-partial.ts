/** A value of which any part may be missing yet: an object that is still being written. */
export type DeepPartial<Value> = unknown extends Value
  ? unknown
  : Value extends readonly (infer Item)[]
    ? readonly DeepPartial<Item>[]
    : Value extends object
      ? { readonly [Key in keyof Value]?: DeepPartial<Value[Key]> | undefined }
      : Value;
