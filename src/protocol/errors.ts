import { z } from "zod";
import { type ErrorCode, errorCodes } from "./error-code.ts";
import type { Infer } from "./fields.ts";

const codes = Object.keys(errorCodes).filter((code): code is ErrorCode => code in errorCodes);

/**
 * The error that the code of a project threw, or the answer of a model's provider (`name`: `ProviderError`), in the form of
 * records and events: no stack, no path of the machine, no secret, and cut to a size that fits into any record.
 */
export const errorCauseSchema = z
  .object({
    /** `Error`, `TypeError`, `string`. */
    name: z.string().meta({ description: "The class of the error, or the type of another thrown value." }),
    message: z.string(),
    /** The project file that threw the error; absent for other code. */
    path: z.string().optional().meta({ description: "Relative to the project root." }),
    /** From 1. */
    line: z.int().optional(),
    status: z
      .int()
      .optional()
      .meta({ description: "The HTTP status with which the provider of a model answered." }),
    code: z.string().optional().meta({ description: "The provider's code of the error: `invalid_api_key`." }),
    get cause() {
      return errorCauseSchema.optional();
    },
    /** The first errors that an `AggregateError` joins. */
    get errors() {
      return z.array(errorCauseSchema).optional();
    },
  })
  .meta({ id: "ErrorCause", description: "The error that the code of the project threw." });
export interface ErrorCause extends Infer<typeof errorCauseSchema> {}

/** An error in events and replies: safe for any reader. */
export const eventErrorSchema = z
  .object({
    type: z.enum(codes),
    message: z.string(),
    /** Only in records and streams that the reader is permitted to read; never in a public reply. */
    cause: errorCauseSchema.optional(),
  })
  .meta({ id: "EventError" });
export interface EventError extends Infer<typeof eventErrorSchema> {}

/** One fault of an input: its place (`body.format`, `query.limit`) and a message. */
const errorIssueSchema = z.object({ path: z.string(), message: z.string() });
export interface ErrorIssue extends Infer<typeof errorIssueSchema> {}

/** The body of every error reply. */
export const errorEnvelopeSchema = z
  .object({
    error: z.object({
      type: z.enum(codes),
      message: z.string(),
      details: z.string(),
      meta: z.looseObject({ issues: z.array(errorIssueSchema).optional() }).optional(),
      /** Added by `kit dev` only. */
      dev: z.record(z.string(), z.unknown()).optional(),
    }),
  })
  .meta({ id: "Error", description: "The body of every error reply." });
export interface ErrorEnvelope extends Infer<typeof errorEnvelopeSchema> {}
