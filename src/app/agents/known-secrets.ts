import { maskSecrets } from "../../agents/secrets.ts";
import type { ProviderConfigs } from "../../models/provider-config.ts";

/** Names of variables that hold secrets as a rule: `OPENAI_API_KEY`, `DB_PASSWORD`, `GITHUB_TOKEN`. */
const secretName =
  /(?:^|_)(?:API_?KEYS?|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|PRIVATE_KEY)(?:_|$)/i;

/** Shorter values are hardly keys, and would mask ordinary words. */
const minLength = 8;

/** Takes out of a text what the environment and the configuration hold as keys. */
export function createSecretMask(
  env: Readonly<Record<string, string | undefined>>,
  providers: ProviderConfigs = {},
): (text: string) => string {
  const values = new Set<string>();
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && secretName.test(name)) values.add(value);
  }
  for (const { api_key, headers } of Object.values(providers)) {
    if (api_key !== undefined) values.add(api_key);
    for (const value of Object.values(headers ?? {})) values.add(value.replace(/^\w+\s+/, ""));
  }
  const secrets = [...values].filter((value) => value.length >= minLength);
  return secrets.length === 0 ? (text) => text : (text) => maskSecrets(text, secrets);
}
