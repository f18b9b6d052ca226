import { expect, test } from "vitest";
import { isPostgresUrl } from "./is-postgres-url.ts";

test.each([
  "postgres://kit:secret@db.example:5432/kit",
  "postgresql://kit@db.example/kit?sslmode=require",
  "postgres://kit:p%2Fss%40@[::1]:5432/kit",
  "postgres://kit:p@ss@db.example/kit",
  "postgres://db.example/kit?user=kit@tenant&password=a%40b",
  "postgres:///kit?host=/run/postgresql",
])("%s is the address of a database", (text) => {
  expect(isPostgresUrl(text)).toBe(true);
});

// Parsers read the user as the host, the digits as the port, and the rest of the password as the name of the database.
test.each([
  "postgres://kit:12/secret@db.example/kit",
  "postgres://kit:12#secret@db.example/kit",
  "postgres://kit:12?secret@db.example/kit",
  "postgres://kit:pa/ss@db.example/kit",
  "mysql://kit:secret@db.example/kit",
  "db.example/kit",
  "",
])("%s is not the address of a database", (text) => {
  expect(isPostgresUrl(text)).toBe(false);
});
