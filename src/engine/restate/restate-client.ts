import { KitError } from "../../base/kit-error.ts";
import type { Owned } from "../cluster.ts";

export interface RestateClientOptions {
  /** The addresses of the ingress of each server: the next one is asked where one does not answer. */
  readonly ingress: readonly string[];
  readonly admin: readonly string[];
  /** The name of kit's service in Restate. */
  readonly service: string;
  /** Sent as `Authorization: Bearer` where Restate asks for it. */
  readonly token?: string | undefined;
}

export interface Call {
  readonly key: string;
  readonly handler: "turn" | "takeOver";
  /** The same call is made once by Restate for as long as it has not ended. */
  readonly idempotencyKey?: string | undefined;
}

const answerMs = 5_000;
const longestAnswer = 300;

/** Restate holds no object of kit's: nothing was registered yet, or its data is gone. */
class NotRegisteredError extends KitError {}

/** Whether a call was refused since Restate does not know where kit's object is. */
export function isNotRegistered(error: unknown): boolean {
  return error instanceof NotRegisteredError;
}

/** Restate over HTTP: its ingress, which takes calls, and its admin API, where kit's service is registered. */
export class RestateClient {
  readonly #options: RestateClientOptions;
  /** The server that answered last. */
  #ingress = 0;
  #admin = 0;

  constructor(options: RestateClientOptions) {
    this.#options = options;
  }

  /** Hands a call over: resolves once Restate has it on disk. Rejects with `unavailable` where none of the servers takes it. */
  async send({ key, handler, idempotencyKey }: Call, signal: AbortSignal): Promise<void> {
    const { ingress, service } = this.#options;
    const path = `/${service}/${encodeURIComponent(key)}/${handler}/send`;
    const headers = idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey };
    const one = (base: string) =>
      this.#post(base + path, {
        headers,
        body: undefined,
        signal,
        toError: (status, text) => (status === 404 ? notRegistered(service) : refused(status, text)),
      });
    this.#ingress = await firstOf(ingress, this.#ingress, one);
  }

  /**
   * Says where kit's service is: Restate asks the address what it offers, and calls it from then on. Rejects with `unavailable` where
   * none of the servers answers, and with `invalid_request` where the answer is no.
   */
  async register(uri: string, signal: AbortSignal): Promise<void> {
    const body = JSON.stringify({ uri, force: true });
    const toError = (status: number, text: string) =>
      status === 500 ? notReached(uri, text) : refused(status, text);
    const one = (base: string) => this.#post(`${base}/deployments`, { headers: {}, body, signal, toError });
    this.#admin = await firstOf(this.#options.admin, this.#admin, one);
  }

  async #post(
    url: string,
    asked: {
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
        ...asked.headers,
        ...(asked.body === undefined ? {} : { "content-type": "application/json" }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: asked.body ?? null,
      signal: AbortSignal.any([asked.signal, AbortSignal.timeout(answerMs)]),
    });
    const text = await response.text();
    if (!response.ok) throw asked.toError(response.status, text);
  }
}

/** Asks each address, beginning with the one that answered last; gives the index of the one that did. */
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

/** Restate has asked the address what it offers, and had no answer of kit's. */
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
    hint: "Check engine.restate.address (KIT_RESTATE_ADDRESS): there Restate, from where it runs, reaches the nodes, by HTTP/2 without TLS or through a balancer.",
  });
}

/** The reason in an answer of Restate's, without what differs each time. */
function readAnswer(text: string): string {
  let message = text;
  try {
    message = String((JSON.parse(text) as { readonly message?: unknown }).message ?? text);
  } catch {
    // A balancer has answered.
  }
  return message
    .replace(/^(\[META\d+\] )+/, "")
    .replace(/ Response headers: .*/s, "")
    .slice(0, longestAnswer);
}

/** Another attempt may succeed where the server is starting, has no leader, or does not know the service yet. */
function refused(status: number, text: string): KitError {
  const mayPass = status >= 500 || status === 404 || status === 408 || status === 429;
  return new KitError({
    code: mayPass ? "unavailable" : "invalid_request",
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

/** The key under which Restate knows an instance, or a run: operators read it in Restate's own pages. */
export function toRestateKey(owned: Owned): string {
  if ("run_id" in owned) return `run/${encodeURIComponent(owned.run_id)}`;
  return `agent/${encodeURIComponent(owned.agent)}/${encodeURIComponent(owned.instance_id)}`;
}

/** Undefined for a key that is none of kit's. */
export function fromRestateKey(key: string): Owned | undefined {
  try {
    const [kind, ...names] = key.split("/");
    const [first, second, ...more] = names.map((name) => decodeURIComponent(name));
    if (first === undefined || first === "" || more.length > 0) return undefined;
    if (kind === "run" && second === undefined) return { run_id: first };
    return kind === "agent" && second !== undefined ? { agent: first, instance_id: second } : undefined;
  } catch {
    return undefined;
  }
}
