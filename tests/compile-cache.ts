import { tmpdir } from "node:os";
import { join } from "node:path";

// Processes that tests start share compiled code, which halves their start time. The process of the tests itself does not
// use the cache, with which Node refuses some agents' files (resting-work.test.ts).
process.env.NODE_COMPILE_CACHE ??= join(tmpdir(), "node-compile-cache");
