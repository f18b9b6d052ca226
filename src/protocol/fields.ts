import { z } from "zod";
import { faultOfName, maxNameBytes, namePattern } from "../base/names.ts";
import { hasAtMostCodePoints } from "../base/text-size.ts";

/** The record type of a schema. Records are shared between readers, so all their fields are read-only. */
export type Infer<Schema extends z.core.$ZodType> = Immutable<z.output<Schema>>;

type Immutable<T> = T extends (...args: never[]) => unknown
  ? T
  : T extends object
    ? { readonly [Key in keyof T]: Immutable<T[Key]> }
    : T;

/** The largest page of a list. */
const maxPageSize = 1_000;
export const maxRequestItems = 10_000;

// NUL ends a string in SQLite and in C programs, so inputs cannot hold it.
const withoutNul = /^[^\0]*$/;

/** Creates the message for a value of the wrong kind; a missing value is "required". */
export function needed(message: string): z.core.$ZodErrorMap {
  return (issue) => (issue.input === undefined ? "is required" : message);
}

/** A text of a request: any characters but NUL. */
export function textField(maxLength: number): z.ZodString {
  return atMost(maxLength).regex(withoutNul, "must not contain NUL");
}

/** A text of at most `maxLength` code points, as JSON Schema counts them. */
export function atMost(maxLength: number): z.ZodString {
  return z
    .string({ error: needed("must be a string") })
    .refine((text) => hasAtMostCodePoints(text, maxLength), `must have at most ${maxLength} characters`)
    .meta({ maxLength });
}

/** A path in the project; the file need not exist. */
export const projectPathField = textField(4_096)
  .min(1, "must not be empty")
  .refine(isInsideProject, "must be a path inside the project, relative to its root")
  .meta({ description: "A path inside the project, relative to its root, with forward slashes." });

/** The body of a request without fields. */
export const emptyBodySchema = z.strictObject({});

/** A whole number from 1 to `max`. */
export function countField(max: number): z.ZodInt {
  const message = `must be a whole number from 1 to ${max}`;
  return z
    .int({ error: needed(message) })
    .min(1, message)
    .max(max, message);
}

export const limitField = countField(maxPageSize);

export const cursorField = textField(1_000).meta({
  description: "`next_cursor` of the previous page.",
});

/** Words to search for. */
export const searchField = textField(200).meta({
  description: "Only entries that contain this text; upper and lower case are the same.",
});

/** Asks for `total` in the reply. */
export const totalQueryField = z
  .boolean({ error: needed("must be true or false") })
  .meta({ description: "Whether the reply has `total`, the number of entries on all pages." });

const isoForm = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:Z|[+-]\d{2}:\d{2}))?$/;

/** A time of a request: an ISO 8601 date, which begins at midnight UTC, or a time with its zone. */
export const timeField = textField(40).refine(
  (text) => isoForm.test(text) && !Number.isNaN(Date.parse(text)),
  "must be an ISO 8601 date, or a time with its zone, such as 2026-11-20T10:00:00Z",
);

/** `total` of the reply of a list. */
export const totalField = z.int().meta({
  description:
    "The number of entries on all pages, if `count` asked for it; absent where `server.authorize` decides about each entry, and for a store or an engine that cannot count.",
});

/** A name or id that can be a path segment. */
export const nameField = z
  .string({ error: needed("must be a string") })
  .superRefine((text, context) => {
    const fault = faultOfName(text);
    if (fault !== undefined) context.addIssue(fault);
  })
  // Clients of the HTTP description can check a name as the server does.
  .meta({ minLength: 1, maxLength: maxNameBytes, pattern: namePattern });

/** The index of an event after which events are requested. */
export const eventPositionField = z
  .int({ error: needed("must be a whole number from 0") })
  .min(0, "must be a whole number from 0")
  .meta({ description: "Events after this index; 0 is the beginning." });

/** The start of an event stream: after an index, or with the next new event. */
export const streamPositionField = z
  .union([eventPositionField, z.literal("now")], { error: needed("must be a whole number from 0, or now") })
  .meta({ description: "Events after this index; 0 is the beginning, `now` only new events." });

/** A value from a closed list; the error message names the list. */
export function choiceField<const Value extends string>(values: readonly Value[]) {
  return z.enum(values, { error: needed(`must be one of: ${values.join(", ")}`) });
}

function isInsideProject(path: string): boolean {
  if (path.startsWith("/") || path.includes("\\") || /^[A-Za-z]:/.test(path)) return false;
  return !path.split("/").includes("..");
}
