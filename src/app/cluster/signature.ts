import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/** The signed parts of a call between nodes. */
export interface SignedCall {
  readonly name: string;
  /** The called node: its address can belong to another node by now. */
  readonly node: string;
  /** The time of the database, in ms since 1970. */
  readonly at: number;
  /** `digestOf` the body. */
  readonly digest: string;
  /** Random: no two calls have the same signature. */
  readonly nonce: string;
}

/** How long a signature is valid. Nodes agree on the time, because they use the database's. */
const validMs = 30_000;

/** Signs a call with the secret that the nodes of a cluster share. The secret itself never leaves a node. */
export function signCall(secret: string, { name, node, at, digest, nonce }: SignedCall): string {
  const signed = `${name}\n${node}\n${at}\n${digest}\n${nonce}`;
  return createHmac("sha256", secret).update(signed).digest("base64url");
}

/** Whether a node of the cluster has signed this call recently. It takes the same time for any wrong signature. */
export function isSigned(
  call: SignedCall,
  signature: string,
  { secret, now }: { readonly secret: string; readonly now: number },
): boolean {
  const expected = Buffer.from(signCall(secret, call));
  const received = Buffer.from(signature);
  const fits = received.length === expected.length && timingSafeEqual(received, expected);
  return fits && Math.abs(now - call.at) <= validMs;
}

export function digestOf(body: string | Uint8Array): string {
  return createHash("sha256").update(body).digest("base64url");
}

/** The most signatures that a node remembers; only nodes of the cluster can add one. */
const maxUsed = 200_000;

/** The valid signatures that were used, so that no call is answered when it is sent again. */
export class UsedSignatures {
  /** In the order of use: by signature, when it was used. */
  readonly #used = new Map<string, number>();

  /** Notes the use of a valid signature; returns false if it was used before. */
  use(signature: string, now: number): boolean {
    if (this.#used.has(signature)) return false;
    for (const [oldest, at] of this.#used) {
      // A signature from the future is valid for twice the time.
      if (now - at <= 2 * validMs && this.#used.size < maxUsed) break;
      this.#used.delete(oldest);
    }
    this.#used.set(signature, now);
    return true;
  }
}
