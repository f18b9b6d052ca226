import type { WebhookDefinition } from "./define-webhook.ts";

/** The secret of a webhook, or several; undefined where it finds none, or one that would sign nothing. */
export function findSecret(
  { secret: find }: Pick<WebhookDefinition, "secret">,
  env: Readonly<Record<string, string | undefined>>,
): string | readonly string[] | undefined {
  const secret = find(env);
  if (secret === undefined || secret.length === 0) return undefined;
  return typeof secret !== "string" && secret.includes("") ? undefined : secret;
}
