import assert from "node:assert/strict";
import { test } from "node:test";
import { checkPassword, hashPassword } from "./password.ts";
import { createSessions, sessionMs } from "./sessions.ts";

test("a session ends after half an hour", () => {
  let now = 0;
  const sessions = createSessions(() => now);
  const token = sessions.open("ines");
  assert.equal(sessions.customerOf(token), "ines");
  now = sessionMs;
  assert.equal(sessions.customerOf(token), undefined);
});

test("a wrong password does not match", () => {
  const stored = hashPassword("correct horse");
  assert.ok(checkPassword("correct horse", stored));
  assert.ok(!checkPassword("battery staple", stored));
  assert.ok(!checkPassword("correct horse", "not a hash"));
});
