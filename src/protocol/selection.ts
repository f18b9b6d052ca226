import { z } from "zod";
import { cursorField, limitField, textField } from "./fields.ts";

/** Which records a request changes at once: those with these ids. */
export const idsField = z
  .array(textField(200).min(1, "must not be empty"), { error: "must be a list of ids" })
  .min(1, "must not be empty")
  .max(1_000, "must have at most 1,000 ids")
  .meta({ description: "The records to change, instead of a filter; at most 1,000." });

/** The page of a request that changes records by a filter. */
export const bulkPageShape = {
  limit: limitField.optional().meta({ description: "Number of records to check, 1 to 1,000; default 100." }),
  cursor: cursorField.optional(),
};

/** Why one of several records could not be changed. */
export const failureSchema = z.object({ type: z.string(), message: z.string() });

/**
 * Checks that a request names its records in one way. With `needsFilter`, an empty body is refused: it must not end all
 * work by mistake.
 */
export function checkSelection({
  needsFilter,
}: {
  readonly needsFilter: boolean;
}): (body: { readonly ids?: readonly string[] | undefined }, context: z.RefinementCtx) => void {
  return ({ ids, ...rest }, context) => {
    const filters = Object.entries(rest).filter(
      ([name, value]) => !(name in bulkPageShape) && value !== undefined,
    );
    const given = Object.entries(rest).filter(([, value]) => value !== undefined);
    if (ids !== undefined && given.length > 0)
      context.addIssue({ code: "custom", path: ["ids"], message: "cannot be combined with other fields" });
    if (needsFilter && ids === undefined && filters.length === 0)
      context.addIssue({ code: "custom", path: ["ids"], message: "is required, or a filter" });
  };
}
