import { createHmac } from "node:crypto";
import { bodyOf, type HttpCase } from "./http-case.ts";
import { webhookSecrets } from "./service-files.ts";

/** The headers that sign a case's body, as its sender would; none where it says nothing of signing. */
export function signatureOf(one: HttpCase): Readonly<Record<string, string>> {
  if (one.sign === undefined) return {};
  const body = bodyOf(one) ?? "";
  const seconds = String(Math.floor(Date.now() / 1000) + (one.sign.timestamp_offset_s ?? 0));
  const hmac = (key: string | Buffer, ...parts: readonly (string | Uint8Array)[]): Buffer => {
    const hash = createHmac("sha256", key);
    for (const part of parts) hash.update(part);
    return hash.digest();
  };
  switch (one.sign.scheme) {
    case "github":
      return { "x-hub-signature-256": `sha256=${hmac(webhookSecrets.github, body).toString("hex")}` };
    case "slack":
      return {
        "x-slack-request-timestamp": seconds,
        "x-slack-signature": `v0=${hmac(webhookSecrets.slack, `v0:${seconds}:`, body).toString("hex")}`,
      };
    case "standard": {
      const id = one.sign.id ?? "msg_1";
      const key = Buffer.from(webhookSecrets.standard.slice("whsec_".length), "base64");
      return {
        "webhook-id": id,
        "webhook-timestamp": seconds,
        "webhook-signature": `v1,${hmac(key, `${id}.${seconds}.`, body).toString("base64")}`,
      };
    }
  }
}
