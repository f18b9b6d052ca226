import { conversionFormats, sourceTypes } from "../../protocol/enums.ts";
import type { ConversionFormat, SourceType } from "../../protocol/guideline.ts";
import { frameworkOf } from "../../specs/frameworks.ts";

// The server and the MCP tools read these names, and load no converter for it.

/**
 * The source type of a wire value, framework id or alias in any case: `claude` is `fw_c`, `kiro` is `steering`.
 *
 * @example
 * ```ts
 * import { sourceTypeOf } from "kit/guidelines";
 *
 * console.log(sourceTypeOf("kiro")); // steering
 * ```
 */
export function sourceTypeOf(name: string): SourceType | undefined {
  const lowered = name.toLowerCase();
  const framework = frameworkOf(lowered);
  const value = framework === "fw_a" ? "steering" : (framework ?? lowered);
  return sourceTypes.find((type) => type === value);
}

/**
 * The same for a format to convert to.
 *
 * @example
 * ```ts
 * import { conversionFormatOf } from "kit/guidelines";
 *
 * console.log(conversionFormatOf("claude")); // fw_c
 * ```
 */
export function conversionFormatOf(name: string): ConversionFormat | undefined {
  const type = sourceTypeOf(name);
  return conversionFormats.find((format) => format === type);
}
