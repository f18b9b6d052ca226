import type { AuthorizeHook, AuthorizeRequest } from "../../app/config/access-config.ts";
import { KitError } from "../../base/kit-error.ts";

/** Throws `forbidden` for what the configuration's `authorize` refuses. */
export type Authorize = (request: AuthorizeRequest) => Promise<void>;

/** Without a hook, whoever may use the server may do everything. */
export function createAuthorize(hook: AuthorizeHook | undefined): Authorize {
  return async (request) => {
    if (hook === undefined || (await hook(request)) === true) return;
    throw new KitError({ code: "forbidden", message: "This is not allowed." });
  };
}
