import type { AnyPythonDataclass, PythonDataclass, PythonObject } from "./contract.ts";

/**
 * Gives a dataclass as it is: in a list, this is where its methods learn what their instance is.
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
