import { KitError } from "../../base/kit-error.ts";
import type { EventError } from "../../protocol/event.ts";
import { toEventError } from "./to-event-error.ts";

/** Parses JSON of the engine's own rows and files. Throws `unavailable` for what is none: the file was damaged. */
export function parseStored(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw damaged(cause);
  }
}

/** Reads the values of one row. What is damaged is null, and `fault` says so: the other rows of a list stay readable. */
export function createRowReader(load: (text: string) => unknown): {
  read(text: string): unknown;
  fault(): { readonly error?: EventError };
} {
  let damage: EventError | undefined;
  return {
    read(text) {
      try {
        return load(text);
      } catch (error) {
        damage ??= toEventError(error, undefined);
        return null;
      }
    },
    fault: () => (damage === undefined ? {} : { error: damage }),
  };
}

function damaged(cause: unknown): KitError {
  return new KitError({
    code: "unavailable",
    message: "A value in the engine's store is damaged.",
    hint: "The rest of the store can be read. The work that was accepted with this value must be sent again.",
    cause,
  });
}
