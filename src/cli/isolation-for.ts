import { trustHint, trustsCode } from "../app/trust/trust.ts";
import { KitError } from "../base/kit-error.ts";
import type { IsolationOptions } from "../sandboxes/contract.ts";
import { findWall } from "../sandboxes/host/wall/find-wall.ts";

/** Without the trust of a person, the tests and checks of a folder run in isolation or not at all, whatever its configuration says. */
export async function isolationFor(
  root: string,
  configured: IsolationOptions,
  what: "tests" | "checks",
): Promise<IsolationOptions> {
  if (trustsCode(root, process.env)) return configured;
  const found = await findWall();
  if (found.wall !== "none") return { ...configured, isolation: "required" };
  throw new KitError({
    code: "forbidden",
    message: `The ${what} would run without isolation, and you have not trusted the code of this folder. ${found.reason} ${found.hint}`,
    hint: trustHint,
  });
}
