import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { KitError } from "../base/kit-error.ts";
import { createOutput } from "./print/output.ts";
import { describeError, reportError } from "./report-error.ts";

function thrownByProject(options: { readonly hint?: string; readonly cause?: unknown } = {}): KitError {
  return new KitError({ code: "invalid_request", message: "Say which file.", ...options });
}

/** As kit hands on what a workflow has thrown. */
function handedOn(error: KitError): KitError {
  const { code, message, hint } = error;
  const meta = { run_id: "run_1" };
  return new KitError({ code, message, meta, cause: error, hint });
}

test("the log of an error that kit passes on shows once where the project threw it", () => {
  const text = describeError(handedOn(thrownByProject()));
  expect(text.split("\n")[0]).toBe("run_1 KitError: Say which file.");
  expect(text).toContain("at thrownByProject ");
  expect(text).not.toContain("at handedOn ");
  expect(text.split("Say which file.")).toHaveLength(2);
});

test("the project's own cause is printed too", () => {
  const text = describeError(handedOn(thrownByProject({ cause: new Error("No such column.") })));
  expect(text).toContain("at thrownByProject ");
  expect(text).toContain("caused by Error: No such column.");
});

test("an error with a hint prints the hint instead of the place where it was thrown", () => {
  expect(describeError(handedOn(thrownByProject({ hint: "Name one." })))).toBe(
    "run_1 Say which file. Name one.",
  );
});

test("a cause that is no error is printed with its fields", () => {
  const cause = { error: { message: "boom", type: "server_error" } };
  const text = describeError(
    new KitError({ code: "internal_error", message: "It failed.", hint: "Why:", cause }),
  );
  expect(text).toContain("boom");
  expect(text).not.toContain("[object Object]");
});

test("the log has only the words of what a model's provider sent, which are the hint", () => {
  const cause = Object.assign(new Error("Incorrect API key: sk-12345678"), {
    name: "AI_APICallError",
    responseBody: "sk-12345678",
  });
  const error = { code: "model_error", message: "It failed.", hint: "Incorrect API key: [secret]", cause };
  expect(describeError(new KitError(error))).toBe("It failed. Incorrect API key: [secret]");
});

function report(error: KitError): string {
  const stderr = new PassThrough();
  reportError(error, createOutput(new PassThrough(), stderr), { json: false, debug: false });
  return String(stderr.read());
}

test("a command that lacks a key names the variable for it, and no header", () => {
  const hint = "Send an API key in the header: Authorization: Bearer <key>.";
  const text = report(new KitError({ code: "unauthorized", message: "A valid API key is needed.", hint }));
  expect(text).toContain("KIT_API_KEY");
  expect(text).not.toContain("header");
});

test("a hint that repeats the issues is left out", () => {
  const issues = [{ path: "payload.cents", message: "expected number" }];
  const error = { code: "invalid_request", message: "The payload does not fit.", meta: { issues } } as const;
  for (const hint of ["payload.cents: expected number", "payload.cents: expected number."])
    expect(report(new KitError({ ...error, hint }))).toBe(
      "error: The payload does not fit.\n  payload.cents: expected number\n",
    );
});
