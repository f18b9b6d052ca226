import { expect, test } from "vitest";
import { checkOwner } from "./postgres-server.ts";

test("the files of a Postgres server that belong to another user are refused with the way to mend them", async () => {
  // Postgres never runs as the owner of this folder.
  await expect(checkOwner("/")).rejects.toThrow(
    /^\/ belongs to the user 0, but Postgres runs as \d+\. Remove the folder/,
  );
});
