import { createJsonValidator } from "../../app/runtime/validate-json.ts";
import { KitError } from "../../base/kit-error.ts";
import { badCursor } from "../../engine/shared/read-page.ts";
import type { Delivery, DeliveryQuery, WebhookAccepted } from "../../protocol/dispatch.ts";
import { errorCodes, isErrorCode } from "../../protocol/error-code.ts";
import { webhookRoutes } from "../../protocol/routes/run-routes.ts";
import type { ApplicationCalls, StartRun } from "../../protocol/run-calls.ts";
import { receiveWebhook } from "../../webhooks/receive-webhook.ts";
import { jsonReply } from "../reply.ts";
import { readBody } from "../request/read-request.ts";
import { bindRoutes, type Handlers, type Route } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";

/** `POST /webhooks/{name}`: what signed senders deliver. The signature takes the place of a key. */
export function bindWebhookRoutes({
  service,
  limits,
  masked,
  authorization,
}: ServiceContext): readonly Route[] {
  const deliveries = new Deliveries();
  const validateJson = createJsonValidator();
  const handlers: Handlers<typeof webhookRoutes> = {
    async "GET /deliveries"({ query, principal, itemAction: action }) {
      const { items, next_cursor } = deliveries.page(query);
      const visible = await authorization.permitted(items, ({ webhook }) => ({ principal, action, webhook }));
      return { deliveries: visible, next_cursor };
    },
    async "POST /webhooks/{name}"({ segment, raw, incoming, clientGone }) {
      const name = segment("name");
      const webhook = service.app.webhooks().find((one) => one.name === name);
      if (webhook === undefined)
        throw new KitError({ code: "not_found", message: "There is no webhook of this name." });
      const delivery = deliveries.begin(name);
      try {
        const bytes = await readBody({ raw, incoming }, limits);
        delivery.bytes = bytes.length;
        const { status, body } = await receiveWebhook(webhook.definition, {
          name,
          headers: raw.headers,
          body: bytes,
          env: service.app.env,
          callsOf(deliveryId) {
            const delivery_id = deliveryId.slice(0, longestId);
            // The signer of this webhook is one sender, however many threads it writes to.
            const principal = `webhook/${name}`;
            const cause = { type: "webhook", webhook: name, delivery_id } as const;
            return delivery.record(service.callsFor({ principal, cause }), delivery_id);
          },
          signal: clientGone(),
          validateJson,
          once: service.engine.once,
        });
        delivery.end(status, dispatchesIn(status, body));
        return jsonReply(masked(body), status);
      } catch (error) {
        delivery.fail(error);
        throw error;
      }
    },
  };
  return bindRoutes(webhookRoutes, handlers);
}

/** The most characters of a delivery's id that records keep. */
const longestId = 200;

/** The ids in the reply that kit itself gives; a file's own reply may say anything. */
function dispatchesIn(status: number, body: unknown): readonly string[] {
  if (status !== 202) return [];
  return (body as WebhookAccepted).dispatches.map(({ dispatch_id }) => dispatch_id);
}

const mostDeliveries = 1_000;
/** The most ids of each kind that a delivery lists. */
const mostBegun = 100;

interface NumberedDelivery extends Delivery {
  /** Rises; cursors name it. */
  readonly number: number;
}

/** The deliveries since the server started. Senders that are refused may be anybody: memory is bounded. */
class Deliveries {
  /** Oldest first. */
  readonly #ended: NumberedDelivery[] = [];
  #count = 0;

  begin(webhook: string): {
    bytes: number;
    /** The calls of the delivery, which notes what they begin. */
    record(calls: ApplicationCalls, deliveryId: string): ApplicationCalls;
    /** `replied`: ids in the reply, which a delivery that comes again has of the first one. */
    end(status: number, replied: readonly string[]): void;
    fail(error: unknown): void;
  } {
    const received_at = new Date().toISOString();
    const began = performance.now();
    const dispatches = new Set<string>();
    const runs = new Set<string>();
    let delivery_id: string | undefined;
    const add = (outcome: Pick<Delivery, "status" | "error">): void => {
      this.#count += 1;
      const duration_ms = Math.round(performance.now() - began);
      const { bytes } = delivery;
      const begun = { dispatches: [...dispatches], runs: [...runs] };
      this.#ended.push({
        number: this.#count,
        webhook,
        delivery_id,
        received_at,
        duration_ms,
        bytes,
        ...begun,
        ...outcome,
      });
      if (this.#ended.length > mostDeliveries) this.#ended.shift();
    };
    const delivery = {
      bytes: 0,
      record(calls: ApplicationCalls, deliveryId: string): ApplicationCalls {
        delivery_id = deliveryId;
        return {
          getRun: calls.getRun,
          dispatch: async (...asked) => {
            const receipt = await calls.dispatch(...asked);
            if (dispatches.size < mostBegun) dispatches.add(receipt.dispatch_id);
            return receipt;
          },
          startRun: (async (...asked: Parameters<StartRun>) => {
            const run = await calls.startRun(...asked);
            if (runs.size < mostBegun) runs.add(run.runId);
            return run;
          }) as StartRun,
        };
      },
      end(status: number, replied: readonly string[]) {
        for (const id of replied.slice(0, mostBegun)) dispatches.add(id);
        add({ status });
      },
      fail(error: unknown) {
        const { type, message } =
          error instanceof KitError && isErrorCode(error.code)
            ? { type: error.code, message: error.message }
            : // What the project's own code threw is for its log.
              { type: "internal_error" as const, message: "The webhook's file failed: the log says why." };
        add({ status: errorCodes[type].status, error: { type, message } });
      },
    };
    return delivery;
  }

  page({ webhook, delivery_id, limit = 50, cursor }: DeliveryQuery): {
    readonly items: readonly Delivery[];
    readonly next_cursor?: string;
  } {
    if (cursor !== undefined && !/^\d{1,15}$/.test(cursor)) throw badCursor();
    const before = cursor === undefined ? Number.POSITIVE_INFINITY : Number(cursor);
    const found = this.#ended.filter(
      (one) =>
        one.number < before &&
        (webhook === undefined || one.webhook === webhook) &&
        (delivery_id === undefined || one.delivery_id === delivery_id),
    );
    const page = found.slice(-limit).reverse();
    const items = page.map(({ number: _, ...delivery }) => delivery);
    const last = page.at(-1);
    return found.length > page.length && last !== undefined
      ? { items, next_cursor: String(last.number) }
      : { items };
  }
}
