import { KitError } from "../../base/kit-error.ts";
import { webhookAcceptedSchema } from "../../protocol/dispatch.ts";
import { receiveWebhook } from "../../webhooks/receive-webhook.ts";
import { jsonReply } from "../reply.ts";
import { readBody } from "../request/read-body.ts";
import { defineRoute, type Route } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";

/** `POST /webhooks/{name}`: what signed senders deliver. The signature takes the place of a key. */
export function webhookRoutes({ service, limits, masked }: ServiceContext): readonly Route[] {
  return [
    defineRoute({
      operation: "receiveWebhook",
      method: "POST",
      path: "/webhooks/{name}",
      summary: "Take a signed delivery",
      description:
        "Needs no key: the signature over the raw body takes its place (Standard Webhooks, GitHub or Slack). A delivery that comes again gives the reply of the first, and is not handled again. The file in src/webhooks may answer 200 with a body of its own.",
      tag: "webhooks",
      parameters: { name: "The webhook's name." },
      reply: webhookAcceptedSchema,
      status: 202,
      errors: [
        "invalid_json",
        "invalid_signature",
        "stale_timestamp",
        "not_found",
        "agent_not_found",
        "payload_too_large",
        "unsupported_media_type",
        "unavailable",
        "store_unavailable",
      ],
      async handle({ segment, raw, incoming }) {
        const name = segment("name");
        const webhook = service.app.webhooks().find((one) => one.name === name);
        if (webhook === undefined)
          throw new KitError({ code: "not_found", message: "There is no webhook of this name." });
        const { status, body } = await receiveWebhook(webhook.definition, {
          name,
          headers: raw.headers,
          body: await readBody({ raw, incoming }, limits),
          env: service.app.env,
          dispatch: (agent, { id, session, input, idempotencyKey }) =>
            service.dispatch({ agent, instance_id: id, session: session ?? "default" }, input, {
              idempotencyKey,
              // Who signs for this webhook is one sender, however many threads it writes to.
              principal: `webhook/${name}`,
            }),
          once: service.engine.once,
        });
        return jsonReply(masked(body), status);
      },
    }),
  ];
}
