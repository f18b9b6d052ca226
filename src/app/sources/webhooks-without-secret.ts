import { attempt } from "../../base/attempt.ts";
import { findSecret } from "../../webhooks/define-webhook.ts";
import type { LoadedWebhook } from "./discover-sources.ts";

/** Returns the webhooks that refuse every delivery in this environment, because they find no secret to check it. */
export function webhooksWithoutSecret(
  webhooks: readonly LoadedWebhook[],
  env: Readonly<Record<string, string | undefined>>,
): readonly LoadedWebhook[] {
  return webhooks.filter(({ definition }) => {
    // The function of the file throws if its variable is not set.
    return attempt(() => findSecret(definition, env) === undefined, true);
  });
}
