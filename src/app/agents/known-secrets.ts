import type { ProviderConfigs } from "../../models/provider-config.ts";
import type { StoreConfig } from "../config/kit-config.ts";

/** Names of variables that hold secrets as a rule: `OPENAI_API_KEY`, `DB_PASSWORD`, `GITHUB_TOKEN`. */
const secretName =
  /(?:^|_)(?:API_?KEYS?|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)(?:$|_(?:ID|V?\d+)$)/i;

/** Shorter values are hardly keys, and would mask ordinary words. */
const minLength = 8;

/** A variable of such a name may also hold the name of a key, or where it lies. */
const minVariableLength = 16;

/**
 * The values of keys that the environment and the configuration hold, as far as their names tell; and the
 * passwords in addresses, such as that of a database.
 */
export function knownSecrets(
  env: Readonly<Record<string, string | undefined>>,
  providers: ProviderConfigs = {},
  store?: StoreConfig,
): readonly string[] {
  const values = new Set<string>();
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined) continue;
    if (secretName.test(name) && isKeyLike(value)) values.add(value);
    addPassword(values, value);
  }
  for (const key of (env.KIT_API_KEYS ?? "").split(/[\s,]+/)) if (key.length >= minLength) values.add(key);
  for (const { api_key, headers } of Object.values(providers)) {
    if (api_key !== undefined && api_key.length >= minLength) values.add(api_key);
    for (const value of Object.values(headers ?? {})) {
      // Of "Bearer abc…" the second word is the key.
      const key = value.slice(value.lastIndexOf(" ") + 1);
      if (key.length >= minLength) values.add(key);
    }
  }
  if (typeof store === "string") addPassword(values, store);
  return [...values];
}

function addPassword(values: Set<string>, address: string): void {
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^@/]*@/i.test(address)) return;
  const encoded = URL.parse(address)?.password ?? "";
  for (const password of [encoded, decoded(encoded)]) {
    if (password.length >= minLength) values.add(password);
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A lone percent sign is one.
    return text;
  }
}

function isKeyLike(value: string): boolean {
  return value.length >= minVariableLength && !/\s/.test(value) && !/^[./~]/.test(value);
}
