import { expect, test } from "vitest";
import { knownSecrets } from "./known-secrets.ts";

test("the password in an address is a secret, as written and as meant, whatever its variable is called", () => {
  const env = {
    DATABASE_URL: "postgres://kit:pass%2Fw0rd-1@db.example/kit",
    PROXY: "http://proxy.example:8080/a@b",
    BROKEN: "amqp://user:100%sure-of-it@host",
  };
  expect(knownSecrets(env, {}, "postgresql://kit:another-one@db.example/kit")).toEqual([
    "pass%2Fw0rd-1",
    "pass/w0rd-1",
    "100%sure-of-it",
    "another-one",
  ]);
});

test("each of the keys that open the server is a secret, not only their list", () => {
  const env = { KIT_API_KEYS: "alpha-key, beta-key tiny,gamma-key-of-the-list" };
  expect(knownSecrets(env)).toEqual(["alpha-key", "beta-key", "gamma-key-of-the-list"]);
});
