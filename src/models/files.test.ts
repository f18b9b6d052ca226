import { describe, expect, test } from "vitest";
import type { AgentProfile } from "../agents/define/agent-profile.ts";
import type { Agent } from "../agents/harness.ts";
import { forTests } from "../testing/for-tests.ts";
import { startProviderServer } from "../testing/provider-server/provider-server.ts";
import { createScriptedModel } from "../testing/scripted-model.ts";
import { createTestAgent } from "../testing/test-runtime.ts";
import { createModelResolver } from "./create-model-resolver.ts";

const server = forTests(startProviderServer, ({ close }) => close());

function agentOf(model: string, compaction: AgentProfile["compaction"] = {}): Agent {
  const resolveModel = createModelResolver({ env: {}, providers: server.providers });
  return createTestAgent(createScriptedModel([]), { model, compaction }, { resolveModel });
}

const data = new Uint8Array([1, 2, 3]);
const pdf = { data, media_type: "application/pdf", filename: "plan.pdf" };
const wav = { data, media_type: "audio/wav" };

describe("a file is sent in the provider's own form", () => {
  test.each([
    [
      "openai/gpt-5.1",
      pdf,
      { type: "input_file", filename: "plan.pdf", file_data: "data:application/pdf;base64,AQID" },
    ],
    ["openai/gpt-audio", wav, { type: "input_audio", input_audio: { data: "AQID", format: "wav" } }],
    [
      "anthropic/claude-sonnet-4-6",
      pdf,
      {
        type: "document",
        source: { type: "base64", media_type: "application/pdf", data: "AQID" },
        title: "plan.pdf",
      },
    ],
    [
      "anthropic/claude-sonnet-4-6",
      { url: "https://example.org/plan.pdf", media_type: "application/pdf" },
      { type: "document", source: { type: "url", url: "https://example.org/plan.pdf" } },
    ],
    ["google/gemini-2.5-pro", pdf, { inlineData: { mimeType: "application/pdf", data: "AQID" } }],
    ["google/gemini-2.5-pro", wav, { inlineData: { mimeType: "audio/wav", data: "AQID" } }],
    ["local/m", wav, { type: "input_audio", input_audio: { data: "AQID", format: "wav" } }],
    ["local/m", { ...wav, media_type: "image/png" }, { type: "image_url" }],
  ] as const)("%s, %o", async (model, file, part) => {
    server.script([{ text: "ok" }]);
    await agentOf(model)
      .session()
      .prompt("x", { files: [file] });
    expect(JSON.stringify(server.requests[0])).toContain(JSON.stringify(part).slice(0, -1));
  });
});

describe("what a model does not take is refused before anything is stored", () => {
  test.each([
    [
      "openai/gpt-5.1",
      wav,
      ["openai/gpt-5.1 does not accept audio/wav files.", "It accepts application/pdf"],
    ],
    ["anthropic/claude-sonnet-4-6", wav, ["does not accept audio/wav files.", "application/pdf, text/plain"]],
    [
      "google/gemini-2.5-pro",
      { url: "https://example.org/a.pdf", media_type: "application/pdf" },
      ["does not accept application/pdf by URL.", "Pass its bytes as `data`."],
    ],
    [
      "local/m",
      { data, media_type: "application/zip" },
      ["does not accept application/zip files.", "audio/mpeg"],
    ],
  ] as const)("%s, %o", async (model, file, said) => {
    server.script([{ text: "ok" }]);
    const session = agentOf(model).session();
    await expect(session.prompt("x", { files: [file] })).rejects.toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining(said[0]),
      hint: expect.stringContaining(said[1]),
    });
    expect(await session.history()).toEqual([]);
    expect(server.requests).toEqual([]);
  });

  test.each([
    [{ data, media_type: "pdf" }, "has a media_type"],
    [{ data, media_type: "audio/wav\r\nx: y" }, "has a media_type"],
    [{ ...pdf, filename: "../../etc/passwd" }, "has a filename"],
    [{ ...pdf, filename: "a\nb.pdf" }, "has a filename"],
    [{ ...pdf, data: "no base64!" }, "has its bytes"],
    [{ ...pdf, data: "" }, "has its bytes"],
    [{ url: "http://example.org/a.pdf", media_type: "application/pdf" }, "starts with https://"],
    [{ url: "file:///etc/passwd", media_type: "application/pdf" }, "starts with https://"],
  ])("%o", async (file, message) => {
    await expect(
      agentOf("local/m")
        .session()
        .prompt("x", { files: [file] }),
    ).rejects.toThrow(message);
  });
});

test("a model that goes on with a history of another is told what it cannot read", async () => {
  server.script([{ text: "one" }, { text: "two" }, { text: "three" }]);
  const session = agentOf("google/gemini-2.5-pro").session();
  await session.prompt("listen", { files: [{ ...wav, filename: "call.wav" }] });
  await session.prompt("and now?", { model: "openai/gpt-5.1" });
  expect(JSON.stringify(server.requests[1])).toContain("[call.wav (audio/wav): this model cannot read it]");
  await session.prompt("and again?");
  expect(JSON.stringify(server.requests[2])).toContain('"inlineData":{"mimeType":"audio/wav"');
});

test("a file counts in the context by its size, and a summary names it", async () => {
  server.script([{ text: "one" }, { text: "the summary" }, { text: "two" }]);
  const session = agentOf("google/gemini-2.5-pro", { keepRecentTokens: 0 }).session();
  await session.prompt("read", { files: [{ ...pdf, data: "A".repeat(400_000) }] });
  await session.compact();
  expect(JSON.stringify(server.requests[1])).toContain("[file plan.pdf]");
});
