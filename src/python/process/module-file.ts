/**
 * The file of a module of kit by its path without extension, relative to the module `from`: TypeScript where
 * kit runs from its sources, JavaScript where it is built.
 */
export function moduleFile(from: string, path: string): URL {
  return new URL(`${path}${from.endsWith(".ts") ? ".ts" : ".js"}`, from);
}
