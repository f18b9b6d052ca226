import { z } from "zod";
import { namePattern } from "../base/names.ts";
import { version } from "../base/own-package.ts";
import { isRecord } from "../base/record.ts";
import { type ErrorCode, errorCodes } from "../protocol/error-code.ts";
import { errorEnvelopeSchema } from "../protocol/errors.ts";
import { openAiErrorSchema } from "../protocol/openai.ts";
import type { Route } from "./route.ts";

type Json = Record<string, unknown>;

/**
 * Creates the OpenAPI 3.1 description of routes from the schemas that check their input.
 *
 * OpenAPI 3.1 uses JSON Schema 2020-12, which zod writes, so nothing is converted.
 */
export function toOpenApiDocument(routes: readonly Route[]): Json & { readonly openapi: string } {
  const { schemas, components } = toJsonSchemas(routes);
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    paths[route.path] ??= {};
    const operations = paths[route.path];
    if (operations !== undefined) operations[route.method.toLowerCase()] = toOperation(route, schemas);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "kit",
      version,
      description: "Specs and guidelines of a repository, and the agents and workflows that work under them.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    security: [{}, { apiKey: [] }],
    paths,
    components: {
      securitySchemes: {
        apiKey: { type: "http", scheme: "bearer", description: "Needed where the server has keys." },
      },
      schemas: components,
    },
  };
}

function toOperation(route: Route, schemas: Json): Json {
  const key = route.operation;
  const body = schemas[`${key}.body`];
  return {
    operationId: key,
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    tags: [route.tag],
    parameters: [
      ...pathParameters(route),
      ...queryParameters(schemas[`${key}.query`]),
      ...headerParameters(route),
    ],
    ...(body === undefined
      ? {}
      : { requestBody: { required: isNeeded(body), content: { "application/json": { schema: body } } } }),
    responses: {
      ...replies(route, schemas),
      ...errorReplies(route, route.hasOpenAiErrors ? schemas.openAiError : schemas.error),
    },
  };
}

/** An empty body counts as `{}`, which is valid if no field is required. */
function isNeeded(body: unknown): boolean {
  return isJson(body) && Array.isArray(body.required) && body.required.length > 0;
}

function pathParameters(route: Route): Json[] {
  return [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    description: route.parameters?.[name] ?? "",
    schema: { type: "string", minLength: 1, pattern: namePattern },
  }));
}

const headerTexts = {
  "Idempotency-Key": "1 to 128 printable ASCII characters. The same work under the same key is done once.",
  "Last-Event-ID": "The `id` of the last event that was read; the stream goes on after it.",
  "Kit-Stream":
    "The header of the reply that `Last-Event-ID` comes from: if the instance has been deleted since, the stream starts at the first event of the new one.",
};

function headerParameters(route: Route): Json[] {
  return (route.headers ?? []).map((name) => ({
    name,
    in: "header",
    description: headerTexts[name],
    schema: { type: "string" },
  }));
}

const streamSchema = {
  type: "string",
  description:
    "Server-sent events. `data` of each is an Event; of a last one named `result` it is what the reply is as JSON, of one named `error` an Error.",
};

function streamSchemaOf({ frames }: Route): Json {
  return frames === undefined ? streamSchema : { ...streamSchema, description: frames };
}

/** A stream, and the result of work that a client waits for, always have the status 200. */
function replies(route: Route, schemas: Json): Json {
  const jsonOf = (part: string): Json => ({
    "application/json": { schema: schemas[`${route.operation}.${part}`] },
  });
  const text = { schema: { type: "string" } };
  const stream = route.stream === undefined ? {} : { "text/event-stream": { schema: streamSchemaOf(route) } };
  const page = route.hasPage ? { "text/html": text } : {};
  if (route.status === undefined) {
    const json = route.stream === "always" ? {} : jsonOf("reply");
    const end = { 204: { description: "The reader has read the last event: do not reconnect." } };
    return {
      200: { description: "The answer.", content: { ...json, ...stream, ...page } },
      ...(route.hasEnd ? end : {}),
    };
  }
  const accepted = { [route.status]: { description: "Accepted.", content: jsonOf("reply") } };
  if (route.replyAtEnd === undefined) return accepted;
  const content = { ...jsonOf("replyAtEnd"), ...stream };
  return { 200: { description: "The end of the work.", content }, ...accepted };
}

function queryParameters(schema: unknown): Json[] {
  const properties = isJson(schema) && isJson(schema.properties) ? schema.properties : {};
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...rest } = isJson(property) ? property : {};
    return { name, in: "query", ...(description === undefined ? {} : { description }), schema: rest };
  });
}

const everywhere: readonly ErrorCode[] = [
  "invalid_request",
  "unauthorized",
  "forbidden",
  "too_many_requests",
  "internal_error",
];
const withBody: readonly ErrorCode[] = ["invalid_json", "payload_too_large", "unsupported_media_type"];

const retryAfter = { description: "Seconds, where it is known.", schema: { type: "integer" } };

function namesRetryAfter(codes: readonly ErrorCode[]): boolean {
  return codes.some((code) => code === "too_many_requests" || errorCodes[code].status === 503);
}

/** An error of JSON-RPC 2.0. */
const rpcErrorSchema = {
  type: "object",
  required: ["jsonrpc", "error"],
  properties: {
    jsonrpc: { const: "2.0" },
    id: {},
    error: {
      type: "object",
      required: ["code", "message"],
      properties: { code: { type: "integer" }, message: { type: "string" }, data: {} },
    },
  },
};

function errorReplies(route: Route, schema: unknown): Json {
  const codes = [...everywhere, ...(route.body === undefined ? [] : withBody), ...(route.errors ?? [])];
  const byStatus = Map.groupBy(codes, (code) => errorCodes[code].status);
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [
      status,
      {
        description: ofStatus.join(", "),
        ...(namesRetryAfter(ofStatus) ? { headers: { "Retry-After": retryAfter } } : {}),
        content: route.hasPlainErrors
          ? { "text/plain": { schema: { type: "string" } } }
          : { "application/json": { schema: route.hasRpcErrors ? rpcErrorSchema : schema } },
      },
    ]),
  );
}

/** Converts all schemas in one pass, so that a shared record becomes one component. */
function toJsonSchemas(routes: readonly Route[]): { schemas: Json; components: Json } {
  const all: Record<string, z.ZodType> = { error: errorEnvelopeSchema, openAiError: openAiErrorSchema };
  for (const route of routes) {
    const key = route.operation;
    all[`${key}.reply`] = route.reply;
    if (route.replyAtEnd !== undefined) all[`${key}.replyAtEnd`] = route.replyAtEnd;
    if (route.query !== undefined) all[`${key}.query`] = route.query;
    if (route.body !== undefined) all[`${key}.body`] = route.body;
  }
  const schema = z.toJSONSchema(z.object(all), { io: "input" });
  const moved: unknown = JSON.parse(
    JSON.stringify(schema, tidy).replaceAll('"#/$defs/', '"#/components/schemas/'),
  );
  if (!isJson(moved) || !isJson(moved.properties)) return { schemas: {}, components: {} };
  return { schemas: moved.properties, components: isJson(moved.$defs) ? moved.$defs : {} };
}

// zod limits every integer to the range of a double; remove these limits, which mean nothing to a reader.
function tidy(key: string, value: unknown): unknown {
  if (key === "maximum" && value === Number.MAX_SAFE_INTEGER) return undefined;
  if (key === "minimum" && value === Number.MIN_SAFE_INTEGER) return undefined;
  return value;
}

function isJson(value: unknown): value is Json {
  return isRecord(value);
}
