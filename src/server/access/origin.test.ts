import { expect, test } from "vitest";
import { checkOrigin } from "./access.ts";

interface PageHeaders {
  readonly host?: string | undefined;
  readonly origin?: string;
  readonly fetchSite?: string;
  readonly fetchMode?: string;
}

function passes(page: PageHeaders, allowed: readonly string[] = []): boolean {
  const { origin, fetchSite, fetchMode } = page;
  const headers = new Headers();
  if (origin !== undefined) headers.set("origin", origin);
  if (fetchSite !== undefined) headers.set("sec-fetch-site", fetchSite);
  if (fetchMode !== undefined) headers.set("sec-fetch-mode", fetchMode);
  try {
    checkOrigin(headers, "host" in page ? page.host : "localhost:2024", new Set(allowed));
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

test("requests of programs, which send no Origin, pass", () => {
  expect(passes({})).toBe(true);
});

test("a page of the same host passes, also behind a TLS proxy", () => {
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

test("a configured origin passes, and no other", () => {
  expect(passes({ origin: "https://app.example" }, ["https://app.example"])).toBe(true);
  expect(passes({ origin: "https://app.example:8443" }, ["https://app.example"])).toBe(false);
});

test("a request that a foreign page embeds is refused, but a link from it is not", () => {
  expect(passes({ fetchSite: "cross-site", fetchMode: "no-cors" })).toBe(false);
  expect(passes({ fetchSite: "cross-site", fetchMode: "navigate" })).toBe(true);
  expect(passes({ fetchSite: "none", fetchMode: "navigate" })).toBe(true);
  expect(passes({ fetchSite: "same-origin", fetchMode: "cors" })).toBe(true);
});
