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

export function createTokenCheck({
  issuer,
  jwks,
  resource,
  audience = resource,
  scopes = [],
}: OAuthConfig): TokenCheck {
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
      loaded ??= loadKeys(jwks);
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
      const { sub = "", scope, scp, client_id } = payload;
      // The ids of keys begin so, and would name another sender.
      if (sub === "" || sub.startsWith("key_")) throw refuse("The token's sub cannot be the id of a sender.");
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

async function loadKeys(address: string) {
  const { createRemoteJWKSet, jwtVerify, errors } = await import("jose");
  return { jwtVerify, errors, keys: createRemoteJWKSet(new URL(address), { timeoutDuration: 5_000 }) };
}

/** The address of the description of a resource, below the same folder as `/mcp`, so that a proxy that passes one passes both. */
function metadataAddress(resource: string): string {
  return `${resource.replace(/\/(?:mcp\/?)?$/, "")}/.well-known/oauth-protected-resource/mcp`;
}
