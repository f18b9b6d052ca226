import { createPrivateKey, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { connect } from "node:http2";

/** The keys with which a restate-server signs its calls. */
export interface Identity {
  /** As in `request-identity-private-key-pem-file`. */
  readonly pem: string;
  /** `publickeyv1_…`. */
  readonly publicKey: string;
}

export function createIdentity(): Identity {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const raw = publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  return {
    pem: privateKey.export({ format: "pem", type: "pkcs8" }).toString(),
    publicKey: `publickeyv1_${toBase58(raw)}`,
  };
}

/** The headers of a call for a path, signed as restate-server does. */
export function signCall(path: string, { pem, publicKey }: Identity): Record<string, string> {
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const seconds = Math.floor(Date.now() / 1_000);
  const head = { typ: "JWT", alg: "EdDSA", kid: publicKey };
  const claims = { aud: path, nbf: seconds - 60, iat: seconds, exp: seconds + 60, jti: randomUUID() };
  const signed = `${encode(head)}.${encode(claims)}`;
  const signature = sign(null, Buffer.from(signed), createPrivateKey(pem)).toString("base64url");
  return { "x-restate-signature-scheme": "v1", "x-restate-jwt-v1": `${signed}.${signature}` };
}

/** Sends a request to a node like Restate; returns the status of the response. */
export async function callNode(
  address: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<number> {
  const session = connect(address);
  try {
    return await new Promise<number>((resolve, reject) => {
      session.on("error", reject);
      const accept = "application/vnd.restate.endpointmanifest.v4+json";
      const request = session.request({ ":path": path, ":method": "GET", accept, ...headers });
      request.on("error", reject);
      request.on("response", (answer) => resolve(Number(answer[":status"])));
      request.resume();
      request.end();
    });
  } finally {
    session.destroy();
  }
}

const digits = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

function toBase58(bytes: Uint8Array): string {
  let rest = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  let text = "";
  for (; rest > 0n; rest /= 58n) text = digits[Number(rest % 58n)] + text;
  return text;
}
