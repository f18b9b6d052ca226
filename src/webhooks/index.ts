/** `kit/webhooks`: verifies the senders of webhooks, and handles their deliveries. */
import "../base/require-node.ts";

export type { DispatchReceipt } from "../protocol/dispatch.ts";
export {
  defineWebhook,
  type WebhookContext,
  type WebhookDefinition,
  type WebhookDispatch,
} from "./define-webhook.ts";
export {
  createMemoryDeliveries,
  type DeliveryLog,
  type VerifiedWebhook,
  type VerifyWebhookOptions,
  verifyWebhook,
} from "./verify-webhook.ts";
export type { WebhookScheme, WebhookSecret } from "./webhook-scheme.ts";
