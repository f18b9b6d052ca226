import type { CallToolResult } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { createJsonValidator } from "../../app/runtime/validate-json.ts";
import { isRecord } from "../../base/record.ts";
import { limits } from "../limits.ts";
import { readCatalogue } from "./read-catalogue.ts";
import { toToolOutput, withoutNulls } from "./server-tool.ts";

const asIs = (text: string): string => text;
const output = (result: Partial<CallToolResult>): unknown => toToolOutput({ content: [], ...result }, asIs);
const text = (value: string) => ({ type: "text" as const, text: value });
const png = (data: string) => ({ type: "image" as const, mimeType: "image/png", data });

test("texts and images become parts in the same order", () => {
  expect(output({ content: [text("a"), png("AAAA"), text("b")] })).toEqual({
    content: [text("a"), { type: "image", media_type: "image/png", data: "AAAA" }, text("b")],
  });
});

test("a failed call becomes an error result for the model", () => {
  expect(output({ content: [text("No.")], isError: true })).toEqual({
    content: [text("No.")],
    isError: true,
  });
});

test("structured content replaces a missing text, and is dropped if there is a text", () => {
  expect(output({ structuredContent: { sum: 3 } })).toEqual({ content: [text('{"sum":3}')] });
  expect(output({ content: [text("three")], structuredContent: { sum: 3 } })).toEqual({
    content: [text("three")],
  });
  expect(output({ content: [png("AAAA")], structuredContent: { sum: 3 } })).toMatchObject({
    content: [text('{"sum":3}'), {}],
  });
  expect(output({})).toEqual({ content: "The tool returned no output." });
});

test("a resource becomes its text or its name", () => {
  const { content } = output({
    content: [
      { type: "resource", resource: { uri: "file:///a.md", text: "A" } },
      { type: "resource", resource: { uri: "file:///a.bin", mimeType: "application/x", blob: "AAAA" } },
      { type: "resource", resource: { uri: "file:///a.png", mimeType: "image/png", blob: "AAAA" } },
      { type: "resource_link", uri: "file:///b.md", name: "b", description: "More." },
      { type: "audio", mimeType: "audio/wav", data: "AAAA" },
    ],
  }) as { content: { type: string; text?: string }[] };
  expect(content.map((part) => part.text ?? part.type)).toEqual([
    "[Resource file:///a.md]\nA",
    "[Resource file:///a.bin of type application/x, which is not text.]",
    "image",
    "[Resource file:///b.md: b. More.]",
    "[Audio of type audio/wav, which models cannot read.]",
  ]);
});

test("an image that a provider would refuse is replaced by a note", () => {
  const { content } = output({
    content: [
      { type: "image", mimeType: "image/svg+xml", data: "AAAA" },
      png("no base64!"),
      png(""),
      png("A".repeat(2 * limits.imageBytes)),
    ],
  }) as { content: { type: string }[] };
  expect(content.map((part) => part.type)).toEqual(["text", "text", "text", "text"]);
});

test("an unknown part is replaced by a note, and the rest of the result is kept", () => {
  const odd = [
    { type: "hologram", data: 7 },
    { type: "constructor" },
    { data: "no type" },
    null,
    7,
    [text("nested")],
    "a bare text",
    { type: "text" },
    { type: "image", mimeType: 7, data: [] },
    { type: "image", mimeType: "image/png", data: 7 },
    { type: "audio" },
    { type: "resource" },
    { type: "resource", resource: { uri: 7, blob: "AAAA" } },
    { type: "resource_link" },
    { type: "\u001b[31mred\u202e" },
  ];
  const { content } = output({ content: [text("first"), ...odd, text("last")] as never }) as {
    content: { text: string }[];
  };
  expect(content.map((part) => part.text)).toEqual([
    "first",
    "[A part of type hologram is missing, because kit does not know this type.]",
    "[A part of type constructor is missing, because kit does not know this type.]",
    "[A part of type unknown is missing, because kit does not know this type.]",
    "[A part is missing, because it is not an object.]",
    "[A part is missing, because it is not an object.]",
    "[A part is missing, because it is not an object.]",
    "a bare text",
    "",
    "[An image of type unknown, which models cannot read.]",
    "[An image that cannot be read.]",
    "[Audio of type unknown, which models cannot read.]",
    "[Resource unknown of type unknown, which is not text.]",
    "[Resource unknown of type unknown, which is not text.]",
    "[Resource unknown: unknown.]",
    "[A part of type red is missing, because kit does not know this type.]",
    "last",
  ]);
  expect(output({ content: text("alone") as never })).toEqual({ content: [text("alone")] });
  expect(output({ content: null as never, structuredContent: [1] as never })).toEqual({
    content: [text("[1]")],
  });
  for (const none of [null, undefined, "done", 7, []]) {
    expect(() => toToolOutput(none, asIs)).toThrow("not what the protocol asks for");
  }
});

test("a result is limited in parts and images, and its last parts are kept", () => {
  const many = output({ content: Array.from({ length: 10_000 }, (_, index) => text(`part ${index}`)) }) as {
    content: { text: string }[];
  };
  expect(many.content.length).toBe(limits.resultParts + 1);
  expect(many.content[140]?.text).toBe("[9800 parts of the result are missing here.]");
  expect(many.content.at(-1)?.text).toBe("part 9999");
  const images = output({ content: Array.from({ length: 100 }, () => png("AAAA")) }) as {
    content: { type: string }[];
  };
  expect(images.content.filter((part) => part.type === "image")).toHaveLength(limits.resultImages);
});

test("a text of any length is passed on completely, as the turn loop cuts it", () => {
  const long = `${"x".repeat(3_000_000)} the end`;
  expect(output({ content: [text(long)] })).toEqual({ content: [text(long)] });
});

test("texts can be stored and sent: they contain no NUL, no half characters and no secrets", () => {
  const mask = (value: string): string => value.replaceAll("s3cret", "[secret]");
  const reported = { type: "resource_link", uri: "file:///s3cret", name: "s3cret" };
  const result = toToolOutput(
    { content: [text("a\0b\ud800 s3cret"), reported], structuredContent: {} },
    mask,
  );
  expect(result).toEqual({
    content: [text("ab\ufffd [secret]"), text("[Resource file:///[secret]: [secret].]")],
  });
  expect(toToolOutput({ content: [], structuredContent: { key: "s3cret" } }, mask)).toEqual({
    content: [text('{"key":"[secret]"}')],
  });
});

test("structured content of any depth does not fail", () => {
  let deep: unknown = 1;
  for (let level = 0; level < 100_000; level += 1) deep = { deep };
  expect(output({ structuredContent: deep as never })).toEqual({
    content: [text("[The structured content is nested too deeply.]")],
  });
});

test("nulls of optional arguments that take none are left out, others stay", async () => {
  const inputSchema = {
    type: "object",
    properties: {
      text: { type: "string" },
      verbose: { type: "boolean" },
      note: { type: ["string", "null"] },
      level: { enum: ["low", "high"] },
      any: {},
      items: { type: "array", items: { type: "object", properties: { size: { type: "integer" } } } },
    },
    required: ["text"],
  };
  const { tools } = readCatalogue(
    { tools: [{ name: "t", inputSchema }], isCut: false },
    { server: "s", maxTools: 9, secrets: [] },
  );
  const validateJson = createJsonValidator({ isLenient: true });
  const [tool] = tools;
  if (tool === undefined) throw new Error("There is no tool.");
  const check = (args: object) => withoutNulls(tool, args, validateJson);
  const nulls = { text: "a", verbose: null, note: null, level: null, any: null, items: [{ size: null }] };
  expect(await check(nulls)).toEqual({ args: { text: "a", note: null, any: null, items: [{}] }, issues: [] });
  expect((await check({ text: null, verbose: null })).issues).toHaveLength(1);
  expect(isRecord((await check({ text: "a", note: null })).args)).toBe(true);
});
