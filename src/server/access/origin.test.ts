import { expect, test } from "vitest";
import { checkOrigin, type OriginHeaders } from "./origin.ts";

const none: OriginHeaders = {
  host: "localhost:2024",
  origin: undefined,
  fetchSite: undefined,
  fetchMode: undefined,
};

function passes(headers: Partial<OriginHeaders>, allowed: readonly string[] = []): boolean {
  try {
    checkOrigin({ ...none, ...headers }, new Set(allowed));
    return true;
  } catch (error) {
    expect(error).toMatchObject({
      code: "forbidden",
      message: expect.stringContaining("other web pages"),
      hint: expect.stringContaining("server.allowed_origins"),
    });
    return false;
  }
}

test("programs, which send no Origin, pass", () => {
  expect(passes({})).toBe(true);
});

test("a page of the same host passes, with or without TLS in front", () => {
  expect(passes({ origin: "http://localhost:2024" })).toBe(true);
  expect(passes({ origin: "https://LOCALHOST:2024" })).toBe(true);
});

test("pages of other hosts, other ports and no host at all are refused", () => {
  for (const origin of [
    "https://evil.example",
    "http://localhost:3000",
    "null",
    "http://localhost:2024.evil",
    "",
  ]) {
    expect(passes({ origin }), origin).toBe(false);
  }
  for (const origin of ["http://localhost:2024", "http://undefined", "http://"]) {
    expect(passes({ origin, host: undefined }), origin).toBe(false);
  }
});

test("a configured origin passes, and only that one", () => {
  expect(passes({ origin: "https://app.example" }, ["https://app.example"])).toBe(true);
  expect(passes({ origin: "https://app.example:8443" }, ["https://app.example"])).toBe(false);
});

test("a request that a foreign page embeds is refused, a link from it is not", () => {
  expect(passes({ fetchSite: "cross-site", fetchMode: "no-cors" })).toBe(false);
  expect(passes({ fetchSite: "cross-site", fetchMode: "navigate" })).toBe(true);
  expect(passes({ fetchSite: "none", fetchMode: "navigate" })).toBe(true);
  expect(passes({ fetchSite: "same-origin", fetchMode: "cors" })).toBe(true);
});
