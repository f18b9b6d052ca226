import { type RemoteReason, remoteError } from "../remote/remote-error.ts";

export const vendor = "modal";

/** The status and the name of a failed gRPC call; `undefined` for any other error. */
export function statusOf(error: unknown): { readonly code: number; readonly call: string } | undefined {
  if (!(error instanceof Error) || error.name !== "ClientError") return undefined;
  if (!("code" in error) || typeof error.code !== "number") return undefined;
  const path = "path" in error ? String(error.path) : "";
  return { code: error.code, call: path.slice(path.lastIndexOf("/") + 1) };
}

/** Converts an error of the vendor's package to an error of kit. */
export function toRemote(error: unknown, reason: RemoteReason = reasonFor(error)): Error {
  const hint = reason === "key" ? "Set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET." : detailOf(error);
  return remoteError(vendor, reason, { cause: error, ...(hint === undefined ? {} : { hint }) });
}

/** The second line of the vendor's message has the reason why building an image failed. */
function detailOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !error.message.startsWith("Image build")) return undefined;
  return error.message.split("\n")[1]?.slice(0, 300);
}

export function reasonFor(error: unknown): RemoteReason {
  if (!(error instanceof Error)) return "unreachable";
  const text = error.message;
  const isRate = /rate|too many requests/i.test(text);
  const isQuota = !isRate && /quota|concurren|maximum|limit|billing|credit|spend/i.test(text);
  switch (statusOf(error)?.code) {
    // INVALID_ARGUMENT, ALREADY_EXISTS, FAILED_PRECONDITION, OUT_OF_RANGE, UNIMPLEMENTED
    case 3:
    case 6:
    case 9:
    case 11:
    case 12:
      return isQuota ? "quota" : "refused";
    case 5: // NOT_FOUND
      return "gone";
    case 7: // PERMISSION_DENIED
      return isQuota ? "quota" : "key";
    case 8: // RESOURCE_EXHAUSTED
      return isQuota ? "quota" : "busy";
    case 16: // UNAUTHENTICATED
      return "key";
    case undefined:
      return reasonOfPackageError(error);
    default:
      return "unreachable";
  }
}

/** The reason of errors that the package itself creates; most of them have no class of their own. */
function reasonOfPackageError({ name, message }: Error): RemoteReason {
  if (/missing credentials/i.test(message)) return "key";
  // The package reports a machine that has ended with this error.
  if (name === "ConflictError") return "gone";
  if (name === "ResourceExhaustedError") return "quota";
  if (name === "InvalidError" || name === "NotFoundError" || message.startsWith("Image build"))
    return "refused";
  return "unreachable";
}
