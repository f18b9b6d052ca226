import { expect, test } from "vitest";
import { knownSecrets, secretsInFile } from "./known-secrets.ts";

test("the password in an address is a secret, encoded and decoded, whatever the name of its variable", () => {
  const env = {
    DATABASE_URL: "postgres://kit:pass%2Fw0rd-1@db.example/kit",
    PROXY: "http://proxy.example:8080/a@b",
    BROKEN: "amqp://user:100%sure-of-it@host",
    SENTRY: "https://0123456789abcdef0123@errors.example/1",
    AZURE: "Server=db.example;User Id=kit;Password=one-of-many-1;Encrypt=true",
    FEED: "https://feed.example/all?format=json&token=two-of-many-2",
  };
  expect(knownSecrets(env, { store: "postgresql://kit:another-one@db.example/kit" })).toEqual([
    "pass%2Fw0rd-1",
    "pass/w0rd-1",
    "100%sure-of-it",
    "0123456789abcdef0123",
    "one-of-many-1",
    "two-of-many-2",
    "another-one",
  ]);
});

test.each([
  ["postgres://kit:12/secretpass@db.example/kit", "12/secretpass"],
  ["postgres://kit:12#secretpass@db.example/kit", "12#secretpass"],
  ["postgres://kit:12?secretpass@db.example/kit", "12?secretpass"],
  [" postgresql://kit:p@secretpass@a.example:5432,b.example:5432/kit", "p@secretpass"],
  ["postgres://kit:secretpass@/kit?host=/run/postgresql", "secretpass"],
  ["mongodb+srv://kit:sec/ret/pass@a.example,b.example/kit", "sec/ret/pass"],
])("the password of %s, which parsers do not find, is a secret", (address, password) => {
  expect(knownSecrets({ ANY_NAME: address })).toContain(password);
});

test("each of the keys that open the server is a secret, not only their list", () => {
  const env = { KIT_API_KEYS: "alpha-key, beta-key tiny,gamma-key-of-the-list" };
  expect(knownSecrets(env, { server: { api_keys: ["delta-key-1"] } })).toEqual([
    env.KIT_API_KEYS,
    "alpha-key",
    "beta-key",
    "gamma-key-of-the-list",
    "delta-key-1",
  ]);
});

test.each([
  "OPENAI_API_KEY",
  "GITHUB_TOKEN",
  "STRIPE_SECRET_LIVE",
  "SMTP_PASS",
  "DB_PASSWORD",
  "DB_PWD",
  "MY_SECRET",
  "SIGNING_KEY",
  "STRIPE_KEY",
  "KEY_2",
  "AWS_ACCESS_KEY_ID",
  "GH_PAT",
  "NODE_AUTH_TOKEN",
  "npm_config__authToken",
  "GITHUB_WEBHOOK_SECRET",
  "SESSION_COOKIE",
])("%s is the name of a secret", (name) => {
  expect(knownSecrets({ [name]: "canary-12" })).toEqual(["canary-12"]);
});

test.each([
  ["PWD", "/home/kit/project-1"],
  ["TOKEN_FILE", "run-secrets-token-1"],
  ["SECRET_PATH", "/run/secrets/token-1"],
  ["AUTH_URL", "https://login.example/oauth2"],
  ["MAX_TOKENS", "100000000"],
  ["PRIMARY_KEY", "customer_id"],
  ["DB_PASSWORD", "postgres"],
  ["DB_PASSWORD", "short-1"],
  ["SSH_AUTH_SOCK", "tmp-ssh-agent-socket"],
  ["NODE_ENV", "production-like-1"],
  ["MONKEY_ISLAND", "canary-12"],
  ["npm_lifecycle_script", "npm-run-all-of-them-at-once"],
])("%s=%s is none", (name, value) => {
  expect(knownSecrets({ [name]: value })).toEqual([]);
});

test("values that look like keys are secrets, and so are the keys in documents and lists", () => {
  const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl";
  const pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\n-----END PRIVATE KEY-----";
  const account = JSON.stringify({ type: "service_account", private_key: pem, client_email: "a@b.example" });
  const env = {
    ONE: "sk-proj-0123456789abcdefgh",
    TWO: jwt,
    GOOGLE_CREDENTIALS: account,
    ROTATING_TOKENS: "first-of-two-tokens,second-of-two-tokens",
  };
  expect(knownSecrets(env)).toEqual([
    env.ONE,
    jwt,
    account,
    pem,
    env.ROTATING_TOKENS,
    "first-of-two-tokens",
    "second-of-two-tokens",
  ]);
});

test("long texts of letters and digits in a file of variables are secrets, whatever their names", () => {
  const variables = {
    ACME: "h7g6f5e4d3c2b1a0x9y8",
    NAME: "shop",
    REGION: "europe-west-1",
    URL: "https://a.example/1234567",
  };
  expect(secretsInFile(variables)).toEqual(["h7g6f5e4d3c2b1a0x9y8"]);
});

test("keys of providers and MCP servers in the configuration are secrets, also those that variables fill in", () => {
  const config = {
    providers: { openai: { api_key: "of-the-provider", headers: { authorization: "Bearer of-a-header" } } },
    mcp: {
      servers: {
        tracker: { command: "x", env: { TRACKER_TOKEN: "$" + "{LINEAR}", REGION: "europe-west-1" } },
        web: { url: "https://mcp.example", headers: { "x-api": "plain-header-value" } },
      },
    },
  };
  expect(knownSecrets({ LINEAR: "filled-in-value" }, config)).toEqual([
    "of-the-provider",
    "of-a-header",
    "filled-in-value",
    "plain-header-value",
  ]);
});
