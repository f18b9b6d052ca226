import type { LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { KitError } from "../../base/kit-error.ts";
import type { ResolvedModel } from "../../models/contract.ts";
import type { JsonSchema } from "../tool.ts";
import { toStrictSchema } from "./strict-schema.ts";

type JsonFormat = Extract<LanguageModelV4CallOptions["responseFormat"], { type: "json" }>;

/** What a call carries so that the provider itself makes JSON of a schema. */
export type NativeOutput = Pick<LanguageModelV4CallOptions, "responseFormat" | "providerOptions">;

/**
 * Asks the provider for JSON of a schema, where it makes that itself; undefined where it does not, not
 * beside tools, or not for this schema: then the answer is text that holds JSON.
 */
export function nativeOutput(
  resolved: ResolvedModel,
  schema: JsonSchema | undefined,
  mayCall: boolean,
): NativeOutput | undefined {
  const { structuredOutput, looseSchemaOptions } = resolved;
  if (structuredOutput === "never" || (structuredOutput !== "always" && mayCall)) return undefined;
  // A list or a plain value at the root is refused by every provider.
  if (schema?.type !== "object") return undefined;
  const strict = toStrictSchema(schema);
  const format = (given: JsonSchema): JsonFormat => ({
    type: "json",
    name: "result",
    schema: given as NonNullable<JsonFormat["schema"]>,
  });
  if (strict !== undefined) return { responseFormat: format(strict) };
  return {
    responseFormat: format(schema),
    ...(looseSchemaOptions === undefined ? {} : { providerOptions: looseSchemaOptions }),
  };
}

/**
 * Whether a call failed because the provider refused it as it was: an old model without structured
 * output, a keyword it does not know. The same call without a format may be answered.
 */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof KitError) || error.code !== "model_error") return false;
  const { cause } = error;
  const status =
    typeof cause === "object" && cause !== null && "statusCode" in cause ? cause.statusCode : undefined;
  return status === 400 || status === 422;
}
