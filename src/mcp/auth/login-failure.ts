import { KitError } from "../../base/kit-error.ts";
import type { McpSdk } from "../servers/load-mcp-sdk.ts";
import { type Outcome, ServerFailure } from "../servers/server-failure.ts";

/** The command that a person runs to log in. */
export function loginCommand(name: string): string {
  return `'kit mcp login ${name}'`;
}

/** The failure of a request that needs a person. */
export class LoginNeeded extends ServerFailure {}

/** Why a request needs a person: `why` continues the sentence, such as "It requires a login". */
export function needsLogin(name: string, why: string): LoginNeeded {
  return new LoginNeeded(`${why}: run ${loginCommand(name)}, or open kit's console.`, { outcome: "refused" });
}

/**
 * Explains why an authorization failed. Texts of authorization servers and of the SDK are not passed on, because they can quote
 * secrets; codes of OAuth are.
 */
export function toLoginFailure(sdk: McpSdk, error: unknown): ServerFailure {
  if (error instanceof ServerFailure) return error;
  const failure = (what: string, outcome: Outcome = "refused"): ServerFailure =>
    new ServerFailure(what, { outcome, cause: error });
  for (let each = error, depth = 0; each instanceof Error && depth < 5; each = each.cause, depth += 1) {
    if (each instanceof ServerFailure) return each;
    if (each.name === "TimeoutError")
      return failure("Its authorization server did not answer in time.", "not_sent");
  }
  if (error instanceof sdk.OAuthError)
    return isPassing(sdk, error)
      ? failure("Its authorization server has an error.", "not_sent")
      : failure(`Its authorization server refuses the request (${error.code}).`);
  if (error instanceof sdk.RegistrationRejectedError || /dynamic client registration/.test(messageOf(error)))
    return failure(
      "Its authorization server does not let kit register itself: register kit there, and set `oauth.client_id` of this server.",
    );
  if (error instanceof sdk.IssuerMismatchError || error instanceof sdk.AuthorizationServerMismatchError)
    return failure("Its authorization server is not the one that it should be (issuer).");
  if (error instanceof sdk.InsecureTokenEndpointError)
    return failure("Its authorization server takes tokens without https, so kit sends none.");
  if (/^Protected resource /.test(messageOf(error)))
    return failure("The metadata for its authorization is that of another server (resource).");
  if (error instanceof KitError) return failure(error.message, "not_sent");
  if (error instanceof Error && "syscall" in error)
    return failure("kit cannot write its file of the login.", "not_sent");
  if (error instanceof TypeError) return failure("Its authorization server cannot be reached.", "not_sent");
  return failure("Its authorization server does not answer as OAuth asks.");
}

/** Whether the authorization server may answer otherwise later. */
export function isPassing(sdk: McpSdk, error: unknown): boolean {
  if (!(error instanceof sdk.OAuthError))
    return !(error instanceof ServerFailure && error.outcome === "refused");
  const { ServerError, TemporarilyUnavailable, TooManyRequests } = sdk.OAuthErrorCode;
  return [ServerError, TemporarilyUnavailable, TooManyRequests].some((code) => code === error.code);
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : "";
}
