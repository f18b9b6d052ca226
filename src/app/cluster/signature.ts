import { createHash, createHmac, timingSafeEqual } from "node:crypto";

/** A call of one node to another, as far as its signature covers it. */
export interface SignedCall {
  readonly name: string;
  /** The node that is asked: an address may have become another's. */
  readonly node: string;
  /** The time of the database, in ms since 1970. */
  readonly at: number;
  /** `digestOf` the body. */
  readonly digest: string;
}

/** For how long a signature holds. Nodes agree on the time, because it is the database's. */
const validMs = 30_000;

/** Signs a call with the secret that the nodes of a cluster share. The secret itself never leaves a node. */
export function signCall(secret: string, { name, node, at, digest }: SignedCall): string {
  return createHmac("sha256", secret).update(`${name}\n${node}\n${at}\n${digest}`).digest("base64url");
}

/** Whether a node of the cluster has signed this call, just now. Takes as long for any wrong signature. */
export function isSigned(
  call: SignedCall,
  signature: string,
  { secret, now }: { readonly secret: string; readonly now: number },
): boolean {
  const expected = Buffer.from(signCall(secret, call));
  const given = Buffer.from(signature);
  const fits = given.length === expected.length && timingSafeEqual(given, expected);
  return fits && Math.abs(now - call.at) <= validMs;
}

export function digestOf(body: string | Uint8Array): string {
  return createHash("sha256").update(body).digest("base64url");
}
