import type { OAuthConfig } from "../../app/config/server-schema.ts";
import { KitError } from "../../base/kit-error.ts";
import type { Principal } from "../../protocol/access.ts";

/** Signatures by which kit learns no secret. */
const algorithms = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];

/** How far the clock of the issuer may be from this one's. */
const clockTolerance = "30s";

/** Verifies the tokens of an issuer. */
export interface TokenCheck {
  /**
   * Returns the principal of a token: its `sub`. Throws `unauthorized`, `forbidden` for a token without the scopes, and `unavailable`
   * if the issuer's keys cannot be read.
   */
  check(authorization: string | undefined): Promise<Principal>;
  /** The error for a request without a token. */
  missing(): KitError;
}

export function createTokenCheck(
  { issuer, jwks, resource, audience = resource, scopes = [] }: OAuthConfig,
  onError?: (error: unknown) => void,
): TokenCheck {
  let loaded: ReturnType<typeof loadKeys> | undefined;
  const challenge = {
    resource_metadata: metadataAddress(resource),
    ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") }),
  };
  const refuse = (message: string): KitError =>
    new KitError({ code: "unauthorized", message, meta: { ...challenge, reason: "invalid_token" } });
  const missing = (): KitError =>
    new KitError({ code: "unauthorized", message: "A valid API key or token is needed.", meta: challenge });
  return {
    missing,
    async check(authorization) {
      const token = /^Bearer +([^\s]+) *$/i.exec(authorization ?? "")?.[1];
      if (token === undefined) throw missing();
      loaded ??= loadKeys(jwks, onError);
      const { jwtVerify, errors, keys } = await loaded;
      const { payload } = await jwtVerify(token, keys, {
        ...{ issuer, audience, algorithms, clockTolerance },
        requiredClaims: ["exp", "sub"],
      }).catch((error: unknown) => {
        if (error instanceof errors.JWTExpired) throw refuse("The token has expired.");
        if (error instanceof errors.JWTClaimValidationFailed)
          throw refuse(`The token is not for this server: its ${error.claim} does not match.`);
        const isInvalid =
          error instanceof errors.JWTInvalid ||
          error instanceof errors.JWSInvalid ||
          error instanceof errors.JWSSignatureVerificationFailed ||
          error instanceof errors.JOSEAlgNotAllowed ||
          error instanceof errors.JOSENotSupported ||
          error instanceof errors.JWKSNoMatchingKey ||
          error instanceof errors.JWKSMultipleMatchingKeys;
        if (isInvalid) throw refuse("The token is not valid.");
        throw new KitError({
          code: "unavailable",
          message: "The keys of the token's issuer cannot be read now.",
          meta: { retry_after_s: 5 },
          cause: error,
        });
      });
      const { scope, scp, client_id } = payload;
      const sub: unknown = payload.sub;
      // The ids of keys begin so, and would name another sender.
      if (typeof sub !== "string" || !/^(?!key_)\P{C}{1,256}$/u.test(sub))
        throw refuse("The token's sub cannot be the id of a sender.");
      const granted = [scope, scp]
        .flat()
        .flatMap((text) => (typeof text === "string" ? text.split(" ") : []));
      if (scopes.some((needed) => !granted.includes(needed)))
        throw new KitError({
          code: "forbidden",
          message: `The token lacks the scope ${scopes.join(" ")}.`,
          meta: { ...challenge, reason: "insufficient_scope" },
        });
      return { id: sub, issuer, scopes: granted, ...(typeof client_id === "string" ? { client_id } : {}) };
    },
  };
}

async function loadKeys(address: string, onError?: (error: unknown) => void) {
  const { createRemoteJWKSet, customFetch, jwtVerify, errors } = await import("jose");
  const keys = createRemoteJWKSet(new URL(address), {
    timeoutDuration: 5_000,
    [customFetch]: createKeyFetch(onError),
  });
  return { jwtVerify, errors, keys };
}

/** How many bytes the keys of an issuer may have. */
const maxKeyBytes = 1_048_576;

/** How long the keys are not requested again after a failure, in ms. */
const pauseMs = 5_000;

/** Fetches keys, but not more than `maxKeyBytes`, and no sooner than `pauseMs` after a failure. */
function createKeyFetch(onError?: (error: unknown) => void) {
  let failure: { readonly error: unknown; readonly until: number } | undefined;
  return async (address: string, options: RequestInit): Promise<Response> => {
    if (failure !== undefined && performance.now() < failure.until) throw failure.error;
    try {
      const reply = await fetch(address, options);
      const keys: unknown = reply.ok ? JSON.parse(await readKeys(reply)) : undefined;
      if (!Array.isArray(Object(keys).keys))
        throw new Error(
          `The issuer of server.oauth has no keys at server.oauth.jwks: status ${reply.status}.`,
        );
      failure = undefined;
      return Response.json(keys);
    } catch (error) {
      if (failure === undefined) onError?.(error);
      failure = { error, until: performance.now() + pauseMs };
      throw error;
    }
  };
}

async function readKeys({ body }: Response): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of body ?? []) {
    bytes += part.length;
    if (bytes > maxKeyBytes) throw new Error("The keys at server.oauth.jwks have more than 1 MiB.");
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

/** The address of the description of a resource, below the same folder as `/mcp`, so that a proxy that passes one passes both. */
function metadataAddress(resource: string): string {
  return `${resource.replace(/\/(?:mcp\/?)?$/, "")}/.well-known/oauth-protected-resource/mcp`;
}
