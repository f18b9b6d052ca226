import fc from "fast-check";
import { expect, test } from "vitest";
import { createRestateEngine } from "./create-restate-engine.ts";
import { fromRestateKey, toRestateKey } from "./restate-client.ts";

const url = "postgres://kit@127.0.0.1:1/kit";

test("the key of an instance or a run in Restate is converted back, whatever its names", () => {
  const name = fc.string({ unit: "binary", minLength: 1 }).filter((text) => text.isWellFormed());
  const owned = fc.oneof(fc.record({ agent: name, instance_id: name }), fc.record({ run_id: name }));
  fc.assert(
    fc.property(owned, (key) => {
      expect(fromRestateKey(toRestateKey(key))).toEqual(key);
    }),
  );
});

test.for(["", "agent", "agent/a", "agent/a/b/c", "run/", "run/a/b", "tool/x", "run/%E0%A4%A", "/"])(
  "a key that kit has not made is not work: %j",
  (key) => {
    expect(fromRestateKey(key)).toBeUndefined();
  },
);

test.for([
  [{ ingress: "restate:8080" }, "engine.restate.ingress is not an address"],
  [{ ingress: [] }, "engine.restate.ingress is not an address"],
  [{ admin: "ftp://restate.example" }, "engine.restate.admin is not an address"],
  [
    { address: "http://kit:hunter2@kit.example" },
    'engine.restate.address is not an address: "http://***@kit.example"',
  ],
  [{ identityKey: "hunter2" }, "The identity key of Restate is not valid"],
  [{ service: "restate-kit" }, '"restate-kit" is not a valid name of an object in Restate'],
] as const)("invalid settings are refused before anything is opened: %j", async ([restate, message]) => {
  const refusal = createRestateEngine({ url, restate }).catch((error: unknown) => error);
  expect(await refusal).toMatchObject({
    code: "invalid_request",
    message: expect.stringContaining(message),
  });
  expect(JSON.stringify(await refusal)).not.toContain("hunter2");
});
