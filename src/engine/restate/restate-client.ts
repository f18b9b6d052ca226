import { KitError } from "../../base/kit-error.ts";
import type { Owned } from "../cluster.ts";

export interface RestateClientOptions {
  /** The ingress addresses of all servers: if one does not answer, the next is tried. */
  readonly ingress: readonly string[];
  readonly admin: readonly string[];
  /** The name of kit's service in Restate. */
  readonly service: string;
  /** The token that kit sends as `Authorization: Bearer`. */
  readonly token?: string | undefined;
}

export interface Call {
  readonly key: string;
  readonly handler: "turn" | "takeOver";
  /** Restate ignores further calls with the same key until the first one has ended. */
  readonly idempotencyKey?: string | undefined;
}

/** Time limit of a request to Restate. */
const answerMs = 5_000;
/** The longest part of an answer in an error message, in characters. */
const longestAnswer = 300;

/** Restate does not know kit's object: no node has registered it yet, or Restate has lost its data. */
class NotRegisteredError extends KitError {}

/** Whether Restate refused a call because kit's object is not registered. */
export function isNotRegistered(error: unknown): boolean {
  return error instanceof NotRegisteredError;
}

/** A client of Restate's HTTP interfaces: the ingress, which accepts calls, and the admin API, which registers kit's service. */
export class RestateClient {
  readonly #options: RestateClientOptions;
  /** The index of the server that answered last. */
  #ingress = 0;
  #admin = 0;

  constructor(options: RestateClientOptions) {
    this.#options = options;
  }

  /** Sends a call; resolves once Restate has stored it. Rejects with `unavailable` if no server accepts it. */
  async send({ key, handler, idempotencyKey }: Call, signal: AbortSignal): Promise<void> {
    const { ingress, service } = this.#options;
    const path = `/${service}/${encodeURIComponent(key)}/${handler}/send`;
    const headers = idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey };
    const sendTo = (base: string) =>
      this.#post(base + path, {
        headers,
        body: undefined,
        signal,
        toError: (status, text) => (status === 404 ? notRegistered(service) : refused(status, text)),
      });
    this.#ingress = await firstOf(ingress, this.#ingress, sendTo);
  }

  /**
   * Registers the address of kit's service: Restate requests the service's description from there, and then calls it.
   * Rejects with `unavailable` if no server answers, and with `invalid_request` if Restate refuses the registration.
   */
  async register(uri: string, signal: AbortSignal): Promise<void> {
    const body = JSON.stringify({ uri, force: true });
    const toError = (status: number, text: string) =>
      status === 500 ? notReached(uri, text) : refused(status, text);
    const registerAt = (base: string) =>
      this.#post(`${base}/deployments`, { headers: {}, body, signal, toError });
    this.#admin = await firstOf(this.#options.admin, this.#admin, registerAt);
  }

  async #post(
    url: string,
    request: {
      readonly headers: Readonly<Record<string, string>>;
      readonly body: string | undefined;
      readonly signal: AbortSignal;
      toError(status: number, text: string): KitError;
    },
  ): Promise<void> {
    const { token } = this.#options;
    const response = await fetch(url, {
      method: "POST",
      headers: {
        ...request.headers,
        ...(request.body === undefined ? {} : { "content-type": "application/json" }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: request.body ?? null,
      signal: AbortSignal.any([request.signal, AbortSignal.timeout(answerMs)]),
    });
    const text = await response.text();
    if (!response.ok) throw request.toError(response.status, text);
  }
}

/** Tries each address, beginning with the one that answered last; returns the index of the first that answers. */
async function firstOf(
  bases: readonly string[],
  first: number,
  ask: (base: string) => Promise<void>,
): Promise<number> {
  let problem: unknown;
  for (let tries = 0; tries < bases.length; tries += 1) {
    const index = (first + tries) % bases.length;
    try {
      await ask(bases[index] as string);
      return index;
    } catch (error) {
      problem = error;
    }
  }
  throw problem instanceof KitError ? problem : away(problem);
}

function notRegistered(service: string): KitError {
  return new NotRegisteredError({
    code: "unavailable",
    message: `Restate does not know the object ${service}: no node has registered it.`,
    hint: "Start a node: kit start with this configuration. If Restate refuses it, its log says why.",
  });
}

/** The error for a registration in which Restate got no valid answer from the address. */
function notReached(uri: string, text: string): KitError {
  const answer = readAnswer(text);
  if (/\b401 Unauthorized\b/.test(answer)) {
    return new KitError({
      code: "unavailable",
      message: `Restate reaches ${uri}, but its calls are not signed with the identity key set here.`,
      hint: "Set KIT_RESTATE_IDENTITY_KEY (engine.restate.identity_key) to the publickeyv1_… that restate-server logs at its start. It signs its calls only when request-identity-private-key-pem-file is set.",
    });
  }
  return new KitError({
    code: "unavailable",
    message: `Restate does not reach this node at ${uri}: ${answer}`,
    hint: "Check engine.restate.address (KIT_RESTATE_ADDRESS): Restate must reach the nodes at this address from its own machine, by HTTP/2 without TLS or through a balancer.",
  });
}

/** The reason in an answer of Restate, without the parts that differ each time. */
function readAnswer(text: string): string {
  let message = text;
  try {
    message = String((JSON.parse(text) as { readonly message?: unknown }).message ?? text);
  } catch {
    // An answer that is not JSON comes from a balancer.
  }
  return message
    .replace(/^(\[META\d+\] )+/, "")
    .replace(/ Response headers: .*/s, "")
    .slice(0, longestAnswer);
}

/** The error for a refused request. A retry can succeed if the server is starting, has no leader, or does not know the service yet. */
function refused(status: number, text: string): KitError {
  const isTemporary = status >= 500 || status === 404 || status === 408 || status === 429;
  return new KitError({
    code: isTemporary ? "unavailable" : "invalid_request",
    message: `Restate answered ${status}: ${readAnswer(text)}`,
    hint:
      status === 401 || status === 403
        ? "Set KIT_RESTATE_TOKEN to a token that Restate accepts."
        : "Check engine.restate.ingress, engine.restate.admin and engine.restate.address.",
  });
}

function away(cause: unknown): KitError {
  const { code = undefined } = (cause as { readonly cause?: { readonly code?: unknown } }).cause ?? {};
  return new KitError({
    code: "unavailable",
    message: `Restate does not answer${typeof code === "string" ? ` (${code})` : ""}.`,
    hint: "Check that restate-server runs, and engine.restate.ingress and engine.restate.admin.",
    cause,
  });
}

/** The key of an instance or a run in Restate; operators read it in Restate's web pages. */
export function toRestateKey(owned: Owned): string {
  if ("run_id" in owned) return `run/${encodeURIComponent(owned.run_id)}`;
  return `agent/${encodeURIComponent(owned.agent)}/${encodeURIComponent(owned.instance_id)}`;
}

/** The instance or run of a key; `undefined` for a key that kit has not made. */
export function fromRestateKey(key: string): Owned | undefined {
  try {
    const [kind, ...names] = key.split("/");
    const [first, second, ...surplus] = names.map((name) => decodeURIComponent(name));
    if (first === undefined || first === "" || surplus.length > 0) return undefined;
    if (kind === "run" && second === undefined) return { run_id: first };
    return kind === "agent" && second !== undefined ? { agent: first, instance_id: second } : undefined;
  } catch {
    return undefined;
  }
}
