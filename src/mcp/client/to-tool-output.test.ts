import type { CallToolResult } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { limits } from "./limits.ts";
import { toToolOutput } from "./to-tool-output.ts";

const asIs = (text: string): string => text;
const output = (result: Partial<CallToolResult>): unknown => toToolOutput({ content: [], ...result }, asIs);
const text = (value: string) => ({ type: "text" as const, text: value });
const png = (data: string) => ({ type: "image" as const, mimeType: "image/png", data });

test("texts and images are parts, in their order", () => {
  expect(output({ content: [text("a"), png("AAAA"), text("b")] })).toEqual({
    content: [text("a"), { type: "image", media_type: "image/png", data: "AAAA" }, text("b")],
  });
});

test("a failed call is an error that the model reads", () => {
  expect(output({ content: [text("No.")], isError: true })).toEqual({
    content: [text("No.")],
    isError: true,
  });
});

test("structured content stands in for a text, and is left out beside one", () => {
  expect(output({ structuredContent: { sum: 3 } })).toEqual({ content: [text('{"sum":3}')] });
  expect(output({ content: [text("three")], structuredContent: { sum: 3 } })).toEqual({
    content: [text("three")],
  });
  expect(output({ content: [png("AAAA")], structuredContent: { sum: 3 } })).toMatchObject({
    content: [text('{"sum":3}'), {}],
  });
  expect(output({})).toEqual({ content: "The tool gave no output." });
});

test("resources are their text, or named", () => {
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
    "[Resource file:///a.bin of type application/x, which is no text.]",
    "image",
    "[Resource file:///b.md: b. More.]",
    "[Audio of type audio/wav, which models are not given.]",
  ]);
});

test("an image that a provider would refuse is named instead", () => {
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

test("a result is bounded in parts, characters and images", () => {
  const many = output({ content: Array.from({ length: 10_000 }, () => text("x".repeat(1_000))) });
  expect(JSON.stringify(many).length).toBeLessThan(2 * limits.resultChars);
  expect(JSON.stringify(many)).toContain("9800 more parts are left out");
  const images = output({ content: Array.from({ length: 100 }, () => png("AAAA")) }) as {
    content: { type: string }[];
  };
  expect(images.content.filter((part) => part.type === "image")).toHaveLength(limits.resultImages);
});

test("texts are stored and sent: no NUL, no half characters, no secrets", () => {
  const mask = (value: string): string => value.replaceAll("s3cret", "[secret]");
  const result = toToolOutput({ content: [text("a\0b\ud800 s3cret")], structuredContent: {} }, mask);
  expect(result).toEqual({ content: [text("ab\ufffd [secret]")] });
  expect(toToolOutput({ content: [], structuredContent: { key: "s3cret" } }, mask)).toEqual({
    content: [text('{"key":"[secret]"}')],
  });
});

test("structured content of any depth is no reason to fail", () => {
  let deep: unknown = 1;
  for (let level = 0; level < 100_000; level += 1) deep = { deep };
  expect(output({ structuredContent: deep as never })).toEqual({
    content: [text("[The structured content is nested too deeply.]")],
  });
});
