import { KitError } from "../../base/kit-error.ts";
import { webhookRoutes } from "../../protocol/routes/run-routes.ts";
import { receiveWebhook } from "../../webhooks/receive-webhook.ts";
import { jsonReply } from "../reply.ts";
import { readBody } from "../request/read-request.ts";
import { bindRoutes, type Handlers, type Route } from "../route.ts";
import type { ServiceContext } from "../service-context.ts";

/** `POST /webhooks/{name}`: what signed senders deliver. The signature takes the place of a key. */
export function bindWebhookRoutes({ service, limits, masked }: ServiceContext): readonly Route[] {
  const handlers: Handlers<typeof webhookRoutes> = {
    async "POST /webhooks/{name}"({ segment, raw, incoming, clientGone }) {
      const name = segment("name");
      const webhook = service.app.webhooks().find((one) => one.name === name);
      if (webhook === undefined)
        throw new KitError({ code: "not_found", message: "There is no webhook of this name." });
      const { status, body } = await receiveWebhook(webhook.definition, {
        name,
        headers: raw.headers,
        body: await readBody({ raw, incoming }, limits),
        env: service.app.env,
        // The signer of this webhook is one sender, however many threads it writes to.
        calls: service.callsFor(`webhook/${name}`),
        signal: clientGone(),
        once: service.engine.once,
      });
      return jsonReply(masked(body), status);
    },
  };
  return bindRoutes(webhookRoutes, handlers);
}
