import { expect, test } from "vitest";
import { maskOf } from "../app/runtime/known-secrets.ts";
import { createErrorLog } from "./serve.ts";

test("no key that opens the server is logged, wherever it was configured", () => {
  const lines: string[] = [];
  const log = createErrorLog(
    maskOf({
      config: { server: { api_keys: ["key-of-the-file", "key-of-a-variable"] } },
      environment: { KIT_API_KEYS: "key-of-a-variable,another-of-it" },
    }),
    (text) => lines.push(text),
  );
  log(new Error("Bearer key-of-the-file, key-of-a-variable and another-of-it are no good"));
  expect(lines.join()).toContain("Bearer [secret], [secret] and [secret] are no good");
});
