import type { App } from "../../app/service/app.ts";
import { webhooksWithoutSecret } from "../../app/sources/webhooks-without-secret.ts";

/** A line for each webhook that refuses what comes, until its secret is there. */
export function secretWarnings(app: Pick<App, "webhooks" | "env">): readonly string[] {
  return webhooksWithoutSecret(app.webhooks(), app.env).map(
    ({ path }) =>
      `${path}: It finds no secret, and refuses every delivery until the environment variable that it reads is set.`,
  );
}
