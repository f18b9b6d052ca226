const encoder = new TextEncoder();

export function toBytes(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

export function joinBytes(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(first.length + second.length);
  joined.set(first);
  joined.set(second, first.length);
  return joined;
}

/** The bytes of a hexadecimal text; undefined when it is none. */
export function fromHex(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/i.test(text)) return undefined;
  const bytes = new Uint8Array(text.length / 2);
  for (let index = 0; index < bytes.length; index += 1) {
    bytes[index] = Number.parseInt(text.slice(index * 2, index * 2 + 2), 16);
  }
  return bytes;
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** The bytes of a Base64 text, padded or not; undefined when it is none. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined;
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/** Whether one of the signatures is the HMAC-SHA-256 of a text under one of the keys, in constant time. */
export async function isSigned(
  signed: Uint8Array<ArrayBuffer>,
  keys: readonly Uint8Array<ArrayBuffer>[],
  signatures: readonly (Uint8Array<ArrayBuffer> | undefined)[],
): Promise<boolean> {
  let matches = false;
  for (const bytes of keys) {
    const key = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [
      "verify",
    ]);
    for (const signature of signatures) {
      // WebCrypto compares in constant time; all are looked at, whichever matches.
      if (signature !== undefined && (await crypto.subtle.verify("HMAC", key, signature, signed)))
        matches = true;
    }
  }
  return matches;
}

export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)));
}
