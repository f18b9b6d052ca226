import { createJsonValidator } from "../../app/runtime/validate-json.ts";
import { endsWithin } from "../../base/abort.ts";
import { isoTime, systemClock } from "../../base/clock.ts";
import { createId } from "../../base/id.ts";
import { KitError } from "../../base/kit-error.ts";
import type { DeliveryRecords } from "../../engine/contract.ts";
import type { Delivery, DeliveryOutcome, WebhookAccepted } from "../../protocol/dispatch.ts";
import { errorCodes, isErrorCode } from "../../protocol/error-code.ts";
import { webhookRoutes } from "../../protocol/routes/run-routes.ts";
import type { ApplicationCalls, StartRun } from "../../protocol/run-calls.ts";
import { receiveWebhook } from "../../webhooks/receive-webhook.ts";
import { invalidSignature } from "../../webhooks/webhook-scheme.ts";
import { jsonReply } from "../reply.ts";
import { readBody } from "../request/read-request.ts";
import { bindRoutes, type Handlers, type Route } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";

/** `POST /webhooks/{name}`: deliveries of signed senders. The signature replaces a key. */
export function bindWebhookRoutes({
  service,
  limits,
  masked,
  authorization,
}: ServiceContext): readonly Route[] {
  const { deliveries, cluster, once } = service.engine;
  const validateJson = createJsonValidator();
  const handlers: Handlers<typeof webhookRoutes> = {
    async "GET /deliveries"({ query, principal, itemAction: action }) {
      if (deliveries === undefined)
        throw new KitError({ code: "unavailable", message: "This engine keeps no deliveries." });
      const { items, next_cursor } = await authorization.page(
        async (from) => await deliveries.list({ ...query, ...from }),
        ({ webhook }) => ({ principal, action, webhook }),
      );
      return { deliveries: items, next_cursor };
    },
    async "POST /webhooks/{name}"({ segment, raw, incoming, clientGone }) {
      const name = segment("name");
      const webhook = service.app.webhooks().find((one) => one.name === name);
      // A caller without a signature does not learn which webhooks exist: it gets the same answer.
      if (webhook === undefined) {
        await readBody({ raw, incoming }, limits);
        throw invalidSignature();
      }
      const record = new DeliveryRecord(masked, { webhook: name, node: cluster?.node, log: deliveries });
      try {
        const bytes = await readBody({ raw, incoming }, limits);
        record.bytes = bytes.length;
        const { status, body } = await receiveWebhook(webhook.definition, {
          name,
          headers: raw.headers,
          body: bytes,
          env: service.app.env,
          callsOf(deliveryId) {
            record.deliveryId = deliveryId.slice(0, longestId);
            // All deliveries of this webhook count as one sender, whatever instances they name.
            const principal = `webhook/${name}`;
            const cause = { type: "webhook", webhook: name, delivery_id: record.deliveryId } as const;
            return record.watch(service.callsFor({ principal, cause }));
          },
          signal: clientGone(),
          validateJson,
          once: (key, work) =>
            once(key, async () => {
              const reply = await work();
              // The record is written in one transaction with the outcome of the work.
              void record.end(reply.status, reply.body);
              return reply;
            }),
        });
        await record.end(status, body);
        return jsonReply(masked(body), status);
      } catch (error) {
        await record.fail(error);
        const isUnset =
          record.deliveryId === undefined && error instanceof KitError && error.code === "unavailable";
        throw isUnset ? invalidSignature() : error;
      }
    },
  };
  return bindRoutes(webhookRoutes, handlers);
}

/** The most characters of a delivery's id that records keep. */
const longestId = 200;

/** The most ids of each kind that a delivery lists. */
const mostBegun = 100;
/** The most characters of an error's message that records keep. */
const longestMessage = 2_000;
/** How long a reply waits at most for its record, which is written concurrently with the work. */
const recordMs = 100;

/** Records one request of a webhook's sender. */
class DeliveryRecord {
  bytes = 0;
  deliveryId: string | undefined;
  readonly #masked: ServiceContext["masked"];
  readonly #log: DeliveryRecords | undefined;
  readonly #head: Pick<Delivery, "record_id" | "webhook" | "received_at" | "node">;
  readonly #began = performance.now();
  readonly #dispatches = new Set<string>();
  readonly #runs = new Set<string>();
  /** The write of a record without a reply, before the first work starts. */
  #opened: Promise<void> | undefined;
  /** The recorded outcome, and its write. */
  #ended: { readonly status: number; readonly written: Promise<void> } | undefined;

  constructor(
    masked: ServiceContext["masked"],
    {
      webhook,
      node,
      log,
    }: Pick<Delivery, "webhook" | "node"> & { readonly log: DeliveryRecords | undefined },
  ) {
    this.#masked = masked;
    this.#log = log;
    this.#head = { record_id: createId("delivery"), webhook, received_at: isoTime(Date.now()), node };
  }

  /** Wraps the calls of a delivery and notes the work that they start. The record is written concurrently with the first of it. */
  watch(calls: ApplicationCalls): ApplicationCalls {
    return {
      getRun: calls.getRun,
      dispatch: async (...args) => {
        const opened = this.#open();
        const receipt = await calls.dispatch(...args);
        if (this.#dispatches.size < mostBegun) this.#dispatches.add(receipt.dispatch_id);
        await opened;
        return receipt;
      },
      startRun: (async (...args: Parameters<StartRun>) => {
        const opened = this.#open();
        const run = await calls.startRun(...args);
        if (this.#runs.size < mostBegun) this.#runs.add(run.runId);
        await opened;
        return run;
      }) as StartRun,
    };
  }

  /** Records the reply once; a repeated delivery has the dispatches of the first reply. */
  end(status: number, body: unknown): Promise<void> {
    for (const id of dispatchesIn(status, body).slice(0, mostBegun)) this.#dispatches.add(id);
    return this.#end({ status });
  }

  /** Records an error reply. */
  fail(error: unknown): Promise<void> {
    const { type, message } =
      error instanceof KitError && isErrorCode(error.code)
        ? { type: error.code, message: error.message.slice(0, longestMessage) }
        : // What the project's own code threw is for its log.
          { type: "internal_error" as const, message: "The webhook's file failed: the log says why." };
    return this.#end({ status: errorCodes[type].status, error: { type, message } });
  }

  #open(): Promise<void> {
    this.#opened ??= this.#write({ outcome: "open" });
    return this.#opened;
  }

  #end(reply: { readonly status: number; readonly error?: Delivery["error"] }): Promise<void> {
    if (this.#ended?.status === reply.status) return this.#ended.written;
    const duration_ms = Math.round(performance.now() - this.#began);
    const written = this.#write({ ...reply, outcome: outcomeOf(reply.status), duration_ms });
    this.#ended = { status: reply.status, written };
    return written;
  }

  async #write(outcome: Pick<Delivery, "outcome" | "status" | "duration_ms" | "error">): Promise<void> {
    const record: Delivery = {
      ...this.#head,
      ...outcome,
      bytes: this.bytes,
      delivery_id: this.deliveryId,
      dispatches: [...this.#dispatches],
      runs: [...this.#runs],
    };
    await endsWithin(recordMs, this.#log?.record(this.#masked(record)) ?? Promise.resolve(), systemClock);
  }
}

function outcomeOf(status: number): DeliveryOutcome {
  if (status < 400) return "accepted";
  return status < 500 ? "refused" : "failed";
}

/** Reads the ids in kit's own reply; the reply of a webhook's file can have any form. */
function dispatchesIn(status: number, body: unknown): readonly string[] {
  if (status !== 202) return [];
  return (body as WebhookAccepted).dispatches.map(({ dispatch_id }) => dispatch_id);
}
