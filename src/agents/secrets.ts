import { KitError } from "../base/kit-error.ts";

/** What stands in a text where a secret was. */
const secretMask = "[secret]";

/** Shorter values would mask ordinary words. */
const minMaskedLength = 4;

/** The granted secrets by name, and the values to take out of every output of the call. */
export function secretsFor(
  env: Readonly<Record<string, string | undefined>>,
  names: readonly string[],
): { readonly env: Readonly<Record<string, string>>; readonly values: readonly string[] } {
  const granted: Record<string, string> = {};
  for (const name of names) {
    const value = Object.hasOwn(env, name) ? env[name] : undefined;
    if (value === undefined) {
      throw new KitError({
        code: "invalid_request",
        message: `There is no secret named "${name}".`,
        hint: "Set it in the environment, or in a file named with --env.",
      });
    }
    granted[name] = value;
  }
  return { env: granted, values: Object.values(granted) };
}

/** Replaces every secret value, also base64 and percent-encoded, longest first. */
export function maskSecrets(text: string, values: readonly string[]): string {
  return createSecretMask(values)(text);
}

/** The same, ready for many texts. */
export function createSecretMask(values: readonly string[]): (text: string) => string {
  const forms = values
    .filter((value) => value.length >= minMaskedLength)
    .flatMap((value) => [
      value,
      encodeURIComponent(value),
      base64Of(value),
      JSON.stringify(value).slice(1, -1),
    ])
    .sort((left, right) => right.length - left.length);
  return (text) => {
    let masked = text;
    for (const form of forms) if (masked.includes(form)) masked = masked.replaceAll(form, secretMask);
    return masked;
  };
}

function base64Of(value: string): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(value)) binary += String.fromCharCode(byte);
  // Without padding: the end of a longer text encodes differently.
  return btoa(binary).replace(/=+$/, "");
}
