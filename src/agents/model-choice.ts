import { isTexts } from "./check-fields.ts";

/** What a choice of models must be, and whether a value is one. */
export const modelChoice: readonly [string, (value: unknown) => boolean] = [
  "a text such as provider/model, or a list of such texts",
  (value) => typeof value === "string" || (isTexts(value) && value.length > 0),
];
