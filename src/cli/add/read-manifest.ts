import { readFileSync } from "node:fs";
import { KitError } from "../../base/kit-error.ts";

/** What a package.json holds, `{}` for one that is no object. Throws `invalid_request` for what is no JSON. */
export function readManifest(file: string): object {
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8").replace(/^\uFEFF/, ""));
    return typeof value === "object" && value !== null ? value : {};
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw noJson(file, error);
  }
}

function noJson(file: string, cause: unknown): KitError {
  return new KitError({ code: "invalid_request", message: `${file} is no JSON.`, cause });
}
