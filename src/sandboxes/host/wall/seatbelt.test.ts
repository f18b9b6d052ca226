import { expect, test } from "vitest";
import { toSeatbeltProfile } from "./seatbelt.ts";

// These tests check the text of the profile, as they do not run on macOS.
const plan = {
  root: "/Users/ann/shop",
  write: false,
  ownFolder: "/private/var/folders/x/kit",
  seen: ["/opt/node"],
  changed: [],
  protectedPaths: ["/Users/ann/shop/.git/hooks"],
  hidden: ["/Users/ann/shop/.kit"],
};

test("a profile denies everything that it does not name, and the network", () => {
  const lines = toSeatbeltProfile(plan).split("\n");
  expect(lines.slice(0, 2)).toEqual(["(version 1)", "(deny default)"]);
  expect(lines).toContain("(deny network*)");
  expect(lines.join("\n")).not.toContain("(allow network");
  expect(lines.join("\n")).not.toMatch(/file-write\*[^\n]*"\/Users\/ann\/shop"\)/);
  expect(lines.join("\n")).toMatch(
    /\(allow file-read\*[^\n]*\(subpath "\/Users\/ann\/shop"\)[^\n]*\(subpath "\/opt\/node"\)/,
  );
});

test("with allowWrite the workspace is writable, and later rules exclude read-only and hidden paths", () => {
  const text = toSeatbeltProfile({ ...plan, write: true, proxyPort: 4000 });
  const at = (part: string): number => {
    expect(text).toContain(part);
    return text.indexOf(part);
  };
  const granted = at(
    '(allow file-write* (subpath "/private/var/folders/x/kit") (subpath "/Users/ann/shop"))',
  );
  expect(at('(deny file-write* (subpath "/Users/ann/shop/.git/hooks"))')).toBeGreaterThan(granted);
  expect(at('(deny file-write-unlink (literal "/Users/ann/shop/.git"))')).toBeGreaterThan(granted);
  expect(at('(deny file-read* file-write* (subpath "/Users/ann/shop/.kit"))')).toBeGreaterThan(granted);
  expect(at('(allow network-outbound (remote ip "localhost:4000"))')).toBeGreaterThan(at("(deny network*)"));
});

test("a path is quoted, whatever characters it contains", () => {
  const root = '/Users/ann/a") (allow default) ("\\';
  expect(toSeatbeltProfile({ ...plan, root })).toContain(
    String.raw`(subpath "/Users/ann/a\") (allow default) (\"\\")`,
  );
});
