import fc from "fast-check";
import { expect, test } from "vitest";
import { KitError } from "../base/kit-error.ts";
import { createSecretMask, maskError, maskValue } from "./secrets.ts";

const key = "sk-canary-7f3a+9c/ä";
const bytes = Buffer.from(key);

test.each([
  ["as it is", key],
  ["in base64", bytes.toString("base64")],
  ["in base64 with a line break, as echo gives it", Buffer.from(`${key}\n`).toString("base64")],
  ["in base64url", bytes.toString("base64url")],
  ["in hexadecimal", bytes.toString("hex")],
  ["in upper-case hexadecimal", bytes.toString("hex").toUpperCase()],
  ["percent-encoded", encodeURIComponent(key)],
  ["in JSON", JSON.stringify({ key })],
  ["one character a line", [...key].join("\n")],
  ["in bytes with spaces", (bytes.toString("hex").match(/../g) ?? []).join(" ")],
])("a secret is masked %s", (_, text) => {
  const masked = createSecretMask([key])(`a ${text} z`);
  expect(masked).toMatch(/^a .*\[secret\].* z$/s);
  // The remaining base64 characters hold bits of both the secret and the text after it.
  expect(masked.length).toBeLessThan("a [secret] z".length + 11);
});

test("a secret is masked in the base64 of a file that holds it, wherever its lines break", () => {
  for (const before of ["", "A=", "AB=", "ABC="]) {
    const encoded = Buffer.from(`NAME=x\n${before}${"canary".repeat(12)}\nLAST=y\n`).toString("base64");
    const wrapped = encoded.replace(/.{76}/g, "$&\n");
    const masked = createSecretMask(["canary".repeat(12)])(wrapped);
    expect(masked).toContain("[secret]");
    expect(Buffer.from(masked, "base64").toString("latin1")).not.toContain("canary");
  }
});

test("a multi-line key is masked line by line, as a file is shown with numbers", () => {
  const pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n";
  const output = pem.split("\n").map((line, at) => `${at + 1}\t${line}`);
  expect(createSecretMask([pem])(output.join("\n"))).toBe(
    "1\t[secret]\n2\t[secret]\n3\t[secret]\n4\t[secret]\n5\t",
  );
});

test("the longer of two secrets that begin alike counts, and overlapping ones are masked as one", () => {
  expect(createSecretMask(["abcdefgh", "abcdefghijkl"])("abcdefghijkl abcdefghij")).toBe(
    "[secret] [secret]ij",
  );
  expect(createSecretMask(["abcdefgh", "efghijkl"])("abcdefghijkl")).toBe("[secret]");
  expect(createSecretMask(["efghijkl"])("abcd efghijkl")).toBe("abcd [secret]");
});

test("short secrets are found whole only, with the white space that they have", () => {
  const mask = createSecretMask(["pass word", "hunter22"]);
  expect(mask("hunter22, hunter 22, pass word, password, pass  word")).toBe(
    "[secret], hunter 22, [secret], password, pass  word",
  );
});

const letters = fc.string({ unit: fc.constantFrom("a", "b", "ä", " "), maxLength: 40 });
const secret = fc.string({ unit: fc.constantFrom("a", "b", "ä"), minLength: 4, maxLength: 8 });

test("in parts the same is masked as in the whole, and nothing is lost or said too early", () => {
  fc.assert(
    fc.property(fc.array(secret, { maxLength: 4 }), fc.array(letters, { maxLength: 12 }), (values, parts) => {
      const mask = createSecretMask(values);
      const stream = mask.stream();
      let said = "";
      for (const part of parts) said += stream.push(part);
      said += stream.end();
      expect(said).toBe(mask(parts.join("")));
      for (const value of values) expect(said.replaceAll("[secret]", "|")).not.toContain(value);
    }),
    { numRuns: 2_000 },
  );
});

test("a text without a secret in sight comes out of a stream as it went in", () => {
  const stream = createSecretMask([key]).stream();
  expect(stream.push("Hello, ")).toBe("Hello, ");
  expect(stream.push("world sk-can")).toBe("world ");
  expect(stream.push("ned food")).toBe("sk-canned food");
  expect(stream.end()).toBe("");
});

test("a secret comes out of a stream as soon as it is complete", () => {
  const stream = createSecretMask([key]).stream();
  expect(stream.push(`It is ${key}`)).toBe("It is [secret]");
});

test("white space after what may be a secret is held back up to a limit, at the same cost for each part", () => {
  const stream = createSecretMask([key]).stream();
  expect(stream.push("x s")).toBe("x ");
  let said = "";
  for (let at = 0; at < 100_000; at += 1) said += stream.push("\n       ");
  expect(said).toBe(`s${"\n       ".repeat(100_000)}`);
  expect(stream.push("k-")).toBe("k-");
});

test("a secret with up to 64 characters of white space in a row is masked, or as many as it has itself", () => {
  const mask = createSecretMask([key, `pass${" ".repeat(100)}word`]);
  expect(mask([...key].join(" ".repeat(64)))).toBe("[secret]");
  expect(mask(key.replace("-", `-${" ".repeat(100)}`))).toBe("[secret]");
  expect(mask(key.replace("-", `-${" ".repeat(101)}`))).not.toContain("[secret]");
  expect(mask(`a pass${" ".repeat(100)}word`)).toBe("a [secret]");
  expect(createSecretMask([key])([...key].join(" ".repeat(65)))).not.toContain("[secret]");
});

test("values and errors are masked throughout, and are the same objects where nothing is", () => {
  const mask = createSecretMask([key]);
  const value = { a: [1, { b: `x${key}` }], [key]: true, c: null };
  expect(maskValue(value, mask)).toEqual({ a: [1, { b: "x[secret]" }], "[secret]": true, c: null });
  const clean = { a: ["x"] };
  expect(maskValue(clean, mask)).toBe(clean);
  const error = new KitError({
    code: "model_error",
    message: `Wrong key ${key}`,
    hint: key,
    meta: { key },
    cause: new Error(key),
  });
  const masked = maskError(error, mask);
  expect(masked).toMatchObject({ code: "model_error", message: "Wrong key [secret]", hint: "[secret]" });
  expect(
    JSON.stringify([masked, String((masked as Error).stack), String((masked as Error).cause)]),
  ).not.toContain(key);
  const other = new Error("fine");
  expect(maskError(other, mask)).toBe(other);
});

test.each([
  ["Python", "p\u00e4sswort-1234", String.raw`{"a": "p\u00e4sswort-1234"}`],
  ["Jackson", "p\u00e4sswort-1234", String.raw`{"a": "p\u00E4sswort-1234"}`],
  ["Go", "a=1&b=<2>", String.raw`{"a": "a=1\u0026b=\u003c2\u003e"}`],
  ["PHP", "\u00e4/b/c&d", String.raw`{"a": "\u00e4\/b\/c&d"}`],
  ["PHP within JSON", "\u00e4/b/c&d", JSON.stringify(String.raw`"\u00e4\/b\/c&d"`)],
])("a secret is masked in JSON as %s escapes it, also across pieces", (_, secret, text) => {
  const mask = createSecretMask([secret]);
  expect(mask(text)).toMatch(/^[^[]*"\[secret\]\\?"}?"?$/);
  for (const size of [1, 3, 7]) {
    const stream = mask.stream();
    let masked = "";
    for (let at = 0; at < text.length; at += size) masked += stream.push(text.slice(at, at + size));
    expect(masked + stream.end()).toBe(mask(text));
  }
});
