/** One case of `security/http.json`, as far as the routes that exist need it. */
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
  readonly chunked?: boolean;
  readonly requires?: string;
  readonly max_ms?: number;
  readonly why: string;
  readonly expected: {
    readonly status: readonly (number | "closed")[];
    readonly envelope: boolean | "if_error" | "if_body";
    readonly error_type_any_of?: readonly string[];
    readonly no_header?: string;
    readonly no_header_value?: Readonly<Record<string, readonly string[]>>;
    readonly header?: Readonly<Record<string, string>>;
    readonly repo_unchanged?: boolean;
  };
}

type Generated =
  | string
  | { readonly concat: readonly Generated[] }
  | { readonly repeat: string; readonly times: number };

/** The text that a case describes instead of spelling it out. */
function generate(value: Generated): string {
  if (typeof value === "string") return value;
  if ("concat" in value) return value.concat.map(generate).join("");
  return value.repeat.repeat(value.times);
}

/** A case as it is sent to this server, or the reason why it cannot be. */
export type Adapted = { readonly sent: HttpCase; readonly on: string } | { readonly skip: string };

const bodyClasses = ["json", "shape", "media", "size", "depth", "keys", "encoding", "accept", "csrf", "auth"];
const prompt = /^\/\/?agents\/\$\{AGENT\}\/[^/?]*/;

/**
 * Moves a case of a route that does not exist yet to one that does, where the case is about the
 * request and not about what the route goes on to do: bodies to the export, which also wants one
 * required string; names in paths to the spec and guideline ids.
 */
export function adapt(one: HttpCase): Adapted {
  const path = one.path ?? "";
  if (one.transport === "raw") return { sent: { ...one, ...rawParts(one) }, on: "this server" };
  if (one.transport !== "http") return { skip: `${one.transport.toUpperCase()} comes with the agents` };
  if (path.startsWith("/api/")) return { sent: one, on: one.route };
  if (one.class === "rebind") return { sent: { ...one, path: "/api/specs" }, on: "GET /api/specs" };
  if (one.route !== "POST /agents/{name}/{id}" || !prompt.test(path))
    return { skip: `the route ${one.route} comes with the agents` };
  if (bodyClasses.includes(one.class)) {
    const sent = { ...one, path: path.replace(prompt, "/api/guidelines/export") };
    return { sent: { ...sent, ...bodyParts(one) }, on: "POST /api/guidelines/export" };
  }
  if (one.class === "method" || one.class === "override") {
    return { sent: { ...one, path: "/api/guidelines/export" }, on: "POST /api/guidelines/export" };
  }
  const { body: _, ...withoutBody } = one;
  if (one.class === "query") {
    return {
      sent: { ...withoutBody, method: "GET", path: path.replace(prompt, "/api/specs") },
      on: "GET /api/specs",
    };
  }
  const sent = { ...withoutBody, method: "GET", path: path.replace(/agents\/\$\{AGENT\}/, "api/specs") };
  return { sent, on: "GET /api/specs/{id}" };
}

// The field of a prompt becomes that of an export, and its good value a good one.
function asExport(text: string): string {
  return text.replaceAll('"message"', '"format"').replaceAll('"hi"', '"claude"');
}

function bodyParts(one: HttpCase): Partial<HttpCase> {
  if (one.body !== undefined) return { body: asExport(one.body) };
  return one.body_gen === undefined ? {} : { body: asExport(generate(one.body_gen)) };
}

function rawParts(one: HttpCase): Partial<HttpCase> {
  const text = one.raw ?? (one.raw_gen === undefined ? "" : generate(one.raw_gen));
  return { raw: text.replace(/\/agents\/\$\{AGENT\}\/\w+/g, "/api/guidelines/export") };
}
