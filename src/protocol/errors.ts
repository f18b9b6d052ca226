import { z } from "zod";
import { type ErrorCode, errorCodes } from "./error-code.ts";
import type { Infer } from "./fields.ts";

const codes = Object.keys(errorCodes).filter((code): code is ErrorCode => code in errorCodes);

/**
 * The error that the code of a project threw, as records and events keep it: no stack, no path of the
 * machine, no secret, and cut to a size that any record has room for.
 */
export const errorCauseSchema = z
  .object({
    /** `Error`, `TypeError`, `string`. */
    name: z.string().meta({ description: "Its class, or what else was thrown." }),
    message: z.string(),
    /** The file of the project that it was thrown in; absent when no file of it was. */
    path: z.string().optional().meta({ description: "Relative to the project's root." }),
    /** From 1. */
    line: z.int().optional(),
    get cause() {
      return errorCauseSchema.optional();
    },
    /** The first errors that an `AggregateError` joins. */
    get errors() {
      return z.array(errorCauseSchema).optional();
    },
  })
  .meta({ id: "ErrorCause", description: "What the code of the project threw." });
export interface ErrorCause extends Infer<typeof errorCauseSchema> {}

/** An error as events and replies carry it: safe for any reader. */
export const eventErrorSchema = z
  .object({
    type: z.enum(codes),
    message: z.string(),
    /** For those who may read the record or the stream; never in a public reply. */
    cause: errorCauseSchema.optional(),
  })
  .meta({ id: "EventError" });
export interface EventError extends Infer<typeof eventErrorSchema> {}

/** One thing that is wrong with an input: where (`body.format`, `query.limit`) and what. */
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
